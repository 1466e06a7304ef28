/* The management tool that lists a server's tools. */
#include "admind.h"
#include "ids.h"
#include "management_tools.h"

enum { PAGE_SIZE = 50 };

static const struct db_stmt list_tools = {"manage_list_tools",
    "SELECT s.name, s.status, (SELECT count(*) FROM mcpbox.tools c"
    "  WHERE c.server_id = s.id),"
    "  t.id, t.name, t.enabled, v.exposed_name, v.title, v.description,"
    "  v.state, v.version_no, (SELECT w.version_no"
    "   FROM mcpbox.tool_versions w WHERE w.id = t.serving_version)"
    " FROM mcpbox.servers s"
    " LEFT JOIN LATERAL (SELECT * FROM mcpbox.tools x"
    "  WHERE x.server_id = s.id ORDER BY x.name"
    "  LIMIT $2::int8 OFFSET $3::int8) t ON true"
    " LEFT JOIN LATERAL (SELECT * FROM mcpbox.tool_versions y"
    "  WHERE y.tool_id = t.id ORDER BY y.version_no DESC LIMIT 1) v ON true"
    " WHERE s.id = $1::uuid ORDER BY t.name",
    DB_FAST};

static void
list_tools_rows(struct job *j, const struct pg_result *rows)
{
	int n = db_nrows(rows);
	struct ipc_id id;
	bool running;

	if (n == 0) {
		job_fail(j, FAILURE_NOT_FOUND,
		    "no server has this id: see "
		    "mcpbox_list_servers");
		return;
	}
	running = ipc_streq(db_bytes(rows, 0, 1), "running");
	if (job_uuid(j, MF_SERVER_ID, &id) == -1)
		return;
	json_kv_id(&j->json, "server_id", &id);
	json_kv_bytes(&j->json, "server_name", db_bytes(rows, 0, 0));
	json_kv_bytes(&j->json, "server_status", db_bytes(rows, 0, 1));
	jsonw_name(&j->json, "tools");
	jsonw_arr(&j->json);
	for (int i = 0; i < n && !db_null(rows, i, 3); i++) {
		bool serving = !db_null(rows, i, 11);

		id = db_id(rows, i, 3);
		jsonw_obj(&j->json);
		json_kv_id(&j->json, "id", &id);
		json_kv_bytes(&j->json, "name", db_bytes(rows, i, 4));
		json_kv_bytes(&j->json, "exposed_name", db_bytes(rows, i, 6));
		if (!db_null(rows, i, 7))
			json_kv_bytes(&j->json, "title", db_bytes(rows, i, 7));
		json_kv_bytes(&j->json, "description", db_bytes(rows, i, 8));
		jsonw_kv_bool(&j->json, "enabled", db_bool(rows, i, 5));
		json_kv_bytes(
		    &j->json, "approval_status", db_bytes(rows, i, 9));
		jsonw_kv_int(&j->json, "version", db_int(rows, i, 10));
		jsonw_name(&j->json, "serving_version");
		if (serving)
			jsonw_int(&j->json, db_int(rows, i, 11));
		else
			jsonw_null(&j->json);
		jsonw_kv_bool(&j->json, "callable",
		    running && serving && db_bool(rows, i, 5));
		jsonw_obj_end(&j->json);
	}
	jsonw_arr_end(&j->json);
	jsonw_kv_int(&j->json, "total", db_int(rows, 0, 2));
	jsonw_kv_int(&j->json, "page", (int64_t)job_number(j, MF_PAGE, 1));
	jsonw_kv_int(&j->json, "page_size",
	    (int64_t)job_number(j, MF_PAGE_SIZE, PAGE_SIZE));
	job_done(j);
}

void
manage_list_tools(struct job *j)
{
	int64_t page = (int64_t)job_number(j, MF_PAGE, 1);
	int64_t size = (int64_t)job_number(j, MF_PAGE_SIZE, PAGE_SIZE);
	struct db_params p;
	struct ipc_id id;

	if (job_uuid(j, MF_SERVER_ID, &id) == -1)
		return;
	db_params_init(&p);
	db_p_id(&p, &id);
	db_p_i64(&p, size);
	db_p_i64(&p, (page - 1) * size);
	job_query(j, &list_tools, &p, list_tools_rows);
}
