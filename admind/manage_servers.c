/*
 * Management tools over servers. mcpbox_list_servers is the pattern of all
 * management tools: typed fields in, one statement, one JSON object out.
 */
#include "admind.h"
#include "management_tools.h"

/* Page size when none is asked for, and at most (the tool's schema). */
enum { PAGE_SIZE = 50 };

static const struct db_stmt list_servers = { "manage_list_servers",
	"SELECT id, name, description, status, created_at,"
	" (SELECT count(*) FROM mcpbox.tools t WHERE t.server_id = s.id),"
	" count(*) OVER ()"
	" FROM mcpbox.servers s ORDER BY name"
	" LIMIT $1::int8 OFFSET $2::int8",
	DB_FAST };

static void
list_servers_rows(struct job *j, const struct pg_result *rows)
{
	int n = db_nrows(rows);
	struct ipc_id id;

	jsonw_name(&j->json, "servers");
	jsonw_arr(&j->json);
	for (int i = 0; i < n; i++) {
		id = db_id(rows, i, 0);
		jsonw_obj(&j->json);
		json_kv_id(&j->json, "id", &id);
		json_kv_bytes(&j->json, "name", db_bytes(rows, i, 1));
		json_kv_bytes(&j->json, "description", db_bytes(rows, i, 2));
		json_kv_bytes(&j->json, "status", db_bytes(rows, i, 3));
		jsonw_kv_int(&j->json, "tool_count", db_int(rows, i, 5));
		json_kv_time(&j->json, "created_at", db_time_us(rows, i, 4));
		jsonw_obj_end(&j->json);
	}
	jsonw_arr_end(&j->json);
	jsonw_kv_int(&j->json, "total", n > 0 ? db_int(rows, 0, 6) : 0);
	jsonw_kv_int(&j->json, "page", (int64_t)job_number(j, MF_PAGE, 1));
	jsonw_kv_int(&j->json, "page_size",
	    (int64_t)job_number(j, MF_PAGE_SIZE, PAGE_SIZE));
	job_done(j);
}

void
manage_list_servers(struct job *j)
{
	/* admind-check bounds both: page 1 to 1,000,000, page_size 1 to 100. */
	int64_t page = (int64_t)job_number(j, MF_PAGE, 1);
	int64_t size = (int64_t)job_number(j, MF_PAGE_SIZE, PAGE_SIZE);
	struct db_params p;

	db_params_init(&p);
	db_p_i64(&p, size);
	db_p_i64(&p, (page - 1) * size);
	job_query(j, &list_servers, &p, list_servers_rows);
}
