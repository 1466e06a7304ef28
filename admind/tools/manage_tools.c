/* The management tools that list a server's tools, prompts or resources. */
#include <stdio.h>
#include <string.h>

#include "ids.h"
#include "json_kv.h"
#include "manage.h"
#include "management_tools.h"
#include "step.h"
#include "token.h"

enum { PAGE_SIZE = 50 };

/* Keeps only objects that the token's patterns let it see. Without a token
 * every object is kept. */
#define SEEN(t)                                                              \
	" AND ($5::text IS NULL OR mcpbox.token_permits($5::text, $6::text," \
	" (SELECT w.exposed_name FROM mcpbox.tool_versions w"                \
	" WHERE w.tool_id = " t ".id ORDER BY w.version_no DESC LIMIT 1),"   \
	" s.name, " t ".name))"

/* clang-format off */
static const struct db_stmt list_objects = {"manage_list_objects",
    "SELECT s.name, s.status, c.n,"
    "  t.id, t.name, t.enabled, v.exposed_name, v.title, v.description,"
    "  v.state, v.version_no, (SELECT w.version_no"
    "   FROM mcpbox.tool_versions w WHERE w.id = t.serving_version),"
    "  CASE t.object WHEN 'resource' THEN v.uri END,"
    "  CASE t.object WHEN 'template' THEN v.uri END, v.mime_type"
    " FROM mcpbox.servers s"
    /* counted once, not for each row of the page */
    " CROSS JOIN LATERAL (SELECT count(*) AS n FROM mcpbox.tools c"
    "  WHERE c.server_id = s.id AND c.deleted_at IS NULL"
    "  AND c.object = ANY (string_to_array($4::text, ' '))" SEEN("c") ") c"
    " LEFT JOIN LATERAL (SELECT * FROM mcpbox.tools x"
    "  WHERE x.server_id = s.id AND x.deleted_at IS NULL"
    "  AND x.object = ANY (string_to_array($4::text, ' '))" SEEN("x")
    "  ORDER BY x.name LIMIT $2::int8 OFFSET $3::int8) t ON true"
    " LEFT JOIN LATERAL (SELECT exposed_name, title, description, state,"
    "  version_no, uri, mime_type FROM mcpbox.tool_versions y"
    "  WHERE y.tool_id = t.id ORDER BY y.version_no DESC LIMIT 1) v ON true"
    " WHERE s.id = $1::uuid AND s.deleted_at IS NULL ORDER BY t.name",
    DB_FAST};
/* clang-format on */

static void
kv_present(struct job *j, const char *name, const struct pg_result *rows, int i,
    int column)
{
	if (!db_null(rows, i, column))
		json_kv_bytes(&j->json, name, db_bytes(rows, i, column));
}

static void
list_rows(struct job *j, const struct pg_result *rows)
{
	int n = db_nrows(rows);
	struct ipc_id id;
	char list[16];
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
	snprintf(list, sizeof(list), "%ss", management_word(j->manage->object));
	jsonw_name(&j->json, list);
	jsonw_arr(&j->json);
	for (int i = 0; i < n && !db_null(rows, i, 3); i++) {
		bool serving = !db_null(rows, i, 11);

		id = db_id(rows, i, 3);
		jsonw_obj(&j->json);
		json_kv_id(&j->json, "id", &id);
		json_kv_bytes(&j->json, "name", db_bytes(rows, i, 4));
		json_kv_bytes(&j->json, "exposed_name", db_bytes(rows, i, 6));
		kv_present(j, "uri", rows, i, 12);
		kv_present(j, "uri_template", rows, i, 13);
		kv_present(j, "mime_type", rows, i, 14);
		kv_present(j, "title", rows, i, 7);
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
manage_list_objects(struct job *j)
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
	db_p_str(&p,
	    j->manage->object == MANAGEMENT_RESOURCE
		? "resource template"
		: management_word(j->manage->object));
	token_params(j->token, &p);
	job_query(j, &list_objects, &p, list_rows);
}
