/*
 * mcpbox_import_openapi: see openapi.h.
 */
#include <stdio.h>
#include <string.h>

#include "jobs.h"
#include "management_tools.h"
#include "openapi.h"
#include "step.h"
#include "tlv.h"
#include "versions.h"

static void
imported(void *arg, const struct openapi_end *e)
{
	char text[ERR_TEXT_MAX + 16];
	struct job *j = arg;

	if (e->failure == FAILURE_NONE) {
		job_out(j, e->json);
		job_done(j);
	} else if (e->json.n > 0) {
		snprintf(text, sizeof(text), "Error: %s", e->text);
		job_error(j, FAILURE_INVALID_ARGUMENTS, text, e->json);
	} else {
		job_fail(j, e->failure, "%s", e->text);
	}
}

void
manage_import_openapi(struct job *j)
{
	struct ipc_bytes document = ipc_str("{}"), base = ipc_str("");
	struct tlv_reader r;
	struct ipc_id server;
	struct buf lines;
	struct tlv f;

	if (job_uuid(j, MF_SERVER_ID, &server) == -1)
		return;
	(void)job_field(j, MF_DOCUMENT, &document);
	(void)job_field(j, MF_BASE_URL, &base);
	buf_init(&lines, IPC_FRAME_MAX);
	tlv_open(&r, j->fields.p, j->fields.len);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == MF_OPERATIONS && f.n > 0) {
			buf_put(&lines, f.p, f.n);
			buf_putc(&lines, '\n');
		}
	if (lines.failed)
		job_fail(j, FAILURE_TOO_LARGE, "`operations` is too long");
	else
		openapi_import(j->a, &server, j->principal, document, base,
		    ipc_bytes(lines.p, lines.len), imported, j);
	buf_free(&lines);
}
