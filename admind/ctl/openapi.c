/*
 * `openapi`: operations of an OpenAPI document as tools, each a request.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl.h"
#include "ids.h"

static int
read_file(const char *path, struct buf *out)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	char part[16 * 1024];
	size_t n;

	if (f == NULL) {
		fprintf(stderr, "mcpboxctl: %s: %s\n", path, strerror(errno));
		return -1;
	}
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		buf_put(out, part, n);
	if (f != stdin)
		(void)fclose(f);
	return 0;
}

/*
 * openapi SERVER FILE [base_url=URL] [OPERATION ...]: what becomes of a
 * document is requests in the queue, as with mcpbox_import_openapi.
 */
static enum ctl_status
send_document(const struct ctl *c, struct ipc_openapi_import *m, struct buf *b)
{
	enum ctl_status status;
	struct ipc_admin_json a;
	struct ipc_frame f;

	m->document_operations = ipc_bytes(b->p, b->len);
	status = calls_ask(c, "admind", IPC_ROLE_ADMIND, IPC_OPENAPI_IMPORT, m,
	    IPC_ADMIN_JSON, &f);
	if (status != CTL_DONE)
		return status;
	if (ipc_decode(&f, &a, NULL) == -1) {
		fputs("mcpboxctl: admind's answer was unreadable\n", stderr);
		status = CTL_REFUSED;
	} else {
		status = tables_json(a.json.p, a.json.n);
	}
	ipc_frame_free(&f);
	return status;
}

enum ctl_status
openapi_command(const struct ctl *c)
{
	struct ipc_openapi_import m = {0};
	enum ctl_status status = CTL_USAGE;
	int from = 3;
	struct buf b;

	if (c->nwords < 3 ||
	    uuid_parse(c->words[1], strlen(c->words[1]), &m.server) == -1) {
		fputs("mcpboxctl: openapi SERVER_ID FILE [base_url=URL] "
		      "[OPERATION ...]\n",
		    stderr);
		return CTL_USAGE;
	}
	if (c->nwords > 3 && strncmp(c->words[3], "base_url=", 9) == 0) {
		m.base_url = ipc_str(c->words[3] + 9);
		from = 4;
	}
	buf_init(&b, IPC_BLOB_MAX);
	if (read_file(c->words[2], &b) == -1)
		goto out;
	m.document_len = (uint32_t)b.len;
	for (int i = from; i < c->nwords; i++)
		buf_putf(&b, "%s\n", c->words[i]);
	if (b.failed)
		fputs("mcpboxctl: the document is too large\n", stderr);
	else
		status = send_document(c, &m, &b);
out:
	buf_free(&b);
	return status;
}
