/*
 * mcpbox_diff_tool_versions, and the same for administrators: compares two
 * versions of one object, as a reviewer sees them.
 */
#include <string.h>

#include "ids.h"
#include "json_kv.h"
#include "manage.h"
#include "management_tools.h"
#include "step.h"
#include "version_diff.h"

static const struct db_stmt two_versions = {"manage_two_versions",
    "SELECT t.id, t.name, a.version_no, a.preimage, b.version_no, b.preimage"
    " FROM mcpbox.tools t"
    " LEFT JOIN mcpbox.tool_versions a ON a.tool_id = t.id"
    "  AND a.version_no = $2::int8"
    " LEFT JOIN LATERAL (SELECT * FROM mcpbox.tool_versions x"
    "  WHERE x.tool_id = t.id AND ($3::int8 IS NULL OR x.version_no = $3::int8)"
    "  ORDER BY x.version_no DESC LIMIT 1) b ON true"
    " WHERE t.id = $1::uuid AND t.deleted_at IS NULL",
    DB_FAST};

int
manage_diff_make(const struct pg_result *rows, struct jsonw *w, struct err *err)
{
	struct ipc_bytes from = db_bytes(rows, 0, 3), to = db_bytes(rows, 0, 5);
	struct ipc_id id = db_id(rows, 0, 0);
	struct buf changes;
	int rc;

	buf_init(&changes, IPC_BLOB_MAX);
	rc = version_diff_json(from.p, from.n, to.p, to.n, &changes, err);
	if (rc == 0) {
		json_kv_id(w, "tool_id", &id);
		json_kv_bytes(w, "tool_name", db_bytes(rows, 0, 1));
		jsonw_kv_int(w, "from_version", db_int(rows, 0, 2));
		jsonw_kv_int(w, "to_version", db_int(rows, 0, 4));
		jsonw_kv_bool(w, "identical",
		    from.n == to.n && memcmp(from.p, to.p, to.n) == 0);
		jsonw_kv_raw(w, "changes", changes.p, changes.len);
	}
	buf_free(&changes);
	return rc;
}

static void
compared(struct job *j, const struct pg_result *rows)
{
	struct err err;

	if (db_nrows(rows) == 0)
		job_fail(j, FAILURE_NOT_FOUND,
		    "no tool, prompt or resource has this id: see "
		    "mcpbox_list_tools");
	else if (db_null(rows, 0, 2) || db_null(rows, 0, 4))
		job_fail(j, FAILURE_NOT_FOUND,
		    "it has no such version: see mcpbox_list_tool_versions");
	else if (manage_diff_make(rows, &j->json, &err) == -1)
		job_fail(j, err.failure, "%s", err.text);
	else
		job_done(j);
}

void
manage_diff(struct job *j)
{
	struct db_params p;
	struct ipc_id id;

	if (job_uuid(j, MF_TOOL_ID, &id) == -1)
		return;
	db_params_init(&p);
	db_p_id(&p, &id);
	db_p_i64(&p, (int64_t)job_number(j, MF_FROM_VERSION, 0));
	if (job_number(j, MF_TO_VERSION, 0) == 0)
		db_p_null(&p);
	else
		db_p_i64(&p, (int64_t)job_number(j, MF_TO_VERSION, 0));
	job_query(j, &two_versions, &p, compared);
}
