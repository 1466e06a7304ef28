/*
 * Command openapi: makes tools from operations of an OpenAPI document. Each
 * tool is a request in the approval queue.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "calls.h"
#include "ids.h"
#include "json.h"
#include "objects.h"
#include "tables.h"

/* Finds a server's id: the word itself, or the id of the server with that
 * name. */
static enum ctl_status
server_id(const struct ctl *c, const char *word, struct ipc_id *id)
{
	struct json_object *o = NULL;
	enum ctl_status status;
	struct buf text;
	const char *s;
	struct err err;
	size_t n;

	if (uuid_parse(word, strlen(word), id) == 0)
		return CTL_DONE;
	status = calls_query(c, "server", word, &text);
	if (status == CTL_DONE &&
	    (json_parse(text.p, text.len, &o, &err) == -1 ||
		json_get_str(o, "id", &s, &n, &err) != 1 ||
		uuid_parse(s, n, id) == -1)) {
		fputs("mcpboxctl: admind's answer was unreadable\n", stderr);
		status = CTL_REFUSED;
	}
	json_object_put(o);
	buf_free(&text);
	return status;
}

/* Runs openapi SERVER FILE [base_url=URL] [OPERATION ...], as
 * mcpbox_import_openapi does. */
enum ctl_status
openapi_command(const struct ctl *c)
{
	struct ipc_openapi_import m = {0};
	struct buf document, answer;
	enum ctl_status status;
	int from = 3;

	if (c->nwords < 3)
		return CTL_USAGE;
	if (c->nwords > 3 && strncmp(c->words[3], "base_url=", 9) == 0) {
		m.base_url = ipc_str(c->words[3] + 9);
		from = 4;
	}
	buf_init(&document, IPC_BLOB_MAX);
	if ((status = transfer_read(c->words[2], &document)) != CTL_DONE ||
	    (status = server_id(c, c->words[1], &m.server)) != CTL_DONE)
		goto out;
	m.document_len = (uint32_t)document.len;
	for (int i = from; i < c->nwords; i++)
		buf_putf(&document, "%s\n", c->words[i]);
	m.document_operations = ipc_bytes(document.p, document.len);
	status = calls_json(c, IPC_OPENAPI_IMPORT, &m, &answer);
	if (status == CTL_DONE)
		status = tables_show(c, "openapi", &answer);
	buf_free(&answer);
out:
	buf_free(&document);
	return status;
}
