/* notifications: targets of the access document, and a test of one. */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "calls.h"
#include "json.h"
#include "objects.h"
#include "show.h"
#include "tables.h"

/* Says how the test went. Succeeds if the target took it. */
static enum ctl_status
tell(const struct ctl *c, const struct buf *text)
{
	enum ctl_status status = CTL_REFUSED;
	struct json_object *o = NULL;
	const char *error;
	struct buf line;

	if (json_parse(text->p, text->len, &o, NULL) == -1)
		return CTL_REFUSED;
	buf_init(&line, IPC_FRAME_MAX);
	if (strcmp(tables_text(o, "sent"), "true") == 0) {
		status = CTL_DONE;
		if (!c->json)
			puts("sent: look whether it came");
	} else {
		error = tables_text(o, "error");
		buf_puts(&line, "mcpboxctl: not sent: ");
		show_text(&line, error, strlen(error), SHOW_LINE);
		fprintf(stderr, "%.*s\n", (int)line.len, (const char *)line.p);
	}
	if (c->json)
		printf("%.*s\n", (int)text->len, (const char *)text->p);
	buf_free(&line);
	json_object_put(o);
	return status;
}

enum ctl_status
notifications_command(const struct ctl *c)
{
	struct ipc_notify_test m;
	enum ctl_status status;
	struct buf text;

	if (c->nwords == 1)
		return tables_command(c);
	if (c->nwords != 3 || strcmp(c->words[1], "test") != 0)
		return CTL_USAGE;
	memset(&m, 0, sizeof(m));
	m.target = ipc_str(c->words[2]);
	status = calls_json(c, IPC_NOTIFY_TEST, &m, &text);
	if (status == CTL_DONE)
		status = tell(c, &text);
	buf_free(&text);
	return status;
}
