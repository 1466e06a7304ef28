/*
 * mcpbox_discover_external_tools and mcpbox_import_external_tools. The tools
 * that add and list sources are in manage_made.c: PostgreSQL does their work.
 */
#include <string.h>

#include "manage.h"
#include "management_tools.h"
#include "sources.h"
#include "step.h"

static void
ended(void *arg, const struct sources_end *e)
{
	struct job *j = arg;

	if (e->failure != FAILURE_NONE) {
		job_fail(j, e->failure, "%s", e->text);
		return;
	}
	job_out(j, e->json);
	job_done(j);
}

void
manage_discover(struct job *j)
{
	struct ipc_id source;

	if (job_uuid(j, MF_SOURCE_ID, &source) == 0)
		sources_discover(j->a, &source, j->principal, ended, j);
}

void
manage_import_tools(struct job *j)
{
	struct ipc_id source;
	struct tlv_reader r;
	struct buf names;
	struct tlv f;

	if (job_uuid(j, MF_SOURCE_ID, &source) == -1)
		return;
	buf_init(&names, IPC_BLOB_MAX);
	tlv_open(&r, j->fields.p, j->fields.len);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == MF_TOOL_NAMES && f.n > 0) {
			buf_put(&names, f.p, f.n);
			buf_putc(&names, '\0');
		}
	if (names.failed)
		job_fail(j, FAILURE_LIMIT, "too many names");
	else
		sources_import(j->a, &source, j->principal,
		    ipc_bytes(names.p, names.len), ended, j);
	buf_free(&names);
}
