/*
 * Management tools on servers. mcpbox_list_servers shows the pattern of all
 * management tools: typed fields come in, one statement runs, one JSON object
 * goes out.
 *
 * A list is one statement: every row has the total, and a page past the end is
 * one row whose other columns are null.
 */
#include "ids.h"
#include "json_kv.h"
#include "manage.h"
#include "management_tools.h"
#include "step.h"
#include "token.h"

/* Default page size (the tool's schema has the same number). */
enum { PAGE_SIZE = 50 };

static const struct db_stmt list_servers = {"manage_list_servers",
    "WITH c AS (SELECT count(*) AS n FROM mcpbox.servers"
    "  WHERE deleted_at IS NULL"
    /* token_permits_server() takes most of this statement's time, so it is
     * called only if the caller has a token. */
    "  AND ($3::text IS NULL"
    "   OR mcpbox.token_permits_server($3::text, $4::text, name)))"
    " SELECT c.n, s.id, s.name, s.description, s.status, s.created_at,"
    "  s.tools"
    " FROM c LEFT JOIN LATERAL (SELECT id, name, description, status,"
    "   created_at, (SELECT count(*) FROM mcpbox.tools t"
    "    WHERE t.server_id = x.id AND t.object = 'tool'"
    "    AND t.deleted_at IS NULL) AS tools"
    "  FROM mcpbox.servers x WHERE x.deleted_at IS NULL"
    "  AND ($3::text IS NULL"
    "   OR mcpbox.token_permits_server($3::text, $4::text, x.name))"
    "  ORDER BY name"
    "  LIMIT $1::int8 OFFSET $2::int8) s ON true"
    " ORDER BY s.name",
    DB_FAST};

static void
list_servers_rows(struct job *j, const struct pg_result *rows)
{
	int n = db_nrows(rows);
	struct ipc_id id;

	jsonw_name(&j->json, "servers");
	jsonw_arr(&j->json);
	for (int i = 0; i < n && !db_null(rows, i, 1); i++) {
		id = db_id(rows, i, 1);
		jsonw_obj(&j->json);
		json_kv_id(&j->json, "id", &id);
		json_kv_bytes(&j->json, "name", db_bytes(rows, i, 2));
		json_kv_bytes(&j->json, "description", db_bytes(rows, i, 3));
		json_kv_bytes(&j->json, "status", db_bytes(rows, i, 4));
		jsonw_kv_int(&j->json, "tool_count", db_int(rows, i, 6));
		json_kv_time(&j->json, "created_at", db_time_us(rows, i, 5));
		jsonw_obj_end(&j->json);
	}
	jsonw_arr_end(&j->json);
	jsonw_kv_int(&j->json, "total", db_int(rows, 0, 0));
	jsonw_kv_int(&j->json, "page", (int64_t)job_number(j, MF_PAGE, 1));
	jsonw_kv_int(&j->json, "page_size",
	    (int64_t)job_number(j, MF_PAGE_SIZE, PAGE_SIZE));
	job_done(j);
}

void
manage_list_servers(struct job *j)
{
	/* admind-check bounds page (1 to 1,000,000) and page_size (1 to
	 * 100). */
	int64_t page = (int64_t)job_number(j, MF_PAGE, 1);
	int64_t size = (int64_t)job_number(j, MF_PAGE_SIZE, PAGE_SIZE);
	struct db_params p;

	db_params_init(&p);
	db_p_i64(&p, size);
	db_p_i64(&p, (page - 1) * size);
	token_params(j->token, &p);
	job_query(j, &list_servers, &p, list_servers_rows);
}

static const struct db_stmt create_server = {"manage_create_server",
    "WITH made AS MATERIALIZED (SELECT mcpbox.create_server($1::uuid,"
    "  $2::text, $3::text, $4::text))"
    " SELECT $1::uuid, $2::text FROM made",
    DB_SURE};

static void
create_server_rows(struct job *j, const struct pg_result *rows)
{
	struct ipc_id id = db_id(rows, 0, 0);

	jsonw_kv_bool(&j->json, "success", true);
	json_kv_id(&j->json, "id", &id);
	json_kv_bytes(&j->json, "name", db_bytes(rows, 0, 1));
	jsonw_kv_str(&j->json, "status", "running");
	jsonw_kv_str(&j->json, "message",
	    "The server is there and runs. Add tools with mcpbox_create_tool.");
	job_done(j);
}

void
manage_create_server(struct job *j)
{
	struct ipc_bytes name = ipc_str(""), description = ipc_str("");
	struct ipc_id id;
	struct db_params p;

	(void)job_field(j, MF_NAME, &name); /* the schema requires it */
	(void)job_field(j, MF_DESCRIPTION, &description);
	uuid_v7(&id);
	db_params_init(&p);
	db_p_id(&p, &id);
	db_p_text(&p, name);
	db_p_text(&p, description);
	db_p_str(&p, j->principal);
	job_query(j, &create_server, &p, create_server_rows);
}

/*
 * set_server_status() switches a server. After a stop is committed, no call of
 * the server's objects by name begins, because writing the intent row checks
 * the server again. The answer waits until gateways dropped their lists.
 *
 * Any principal with the scope manage may ask. Starting a server that an
 * administrator or root stopped would undo the emergency stop, so
 * set_server_status() refuses it (sql/schema/servers.sql). It decides by the
 * role of the transaction, which only ADMIN_ACTION sets (adminact.c). No
 * argument of a management tool reaches the role.
 */
static const struct db_stmt set_status = {"manage_set_status",
    "WITH done AS MATERIALIZED (SELECT mcpbox.set_server_status($1::uuid,"
    "  $2::text, $3::text) AS changed)"
    " SELECT done.changed, s.id, s.name, $2::text, (SELECT count(*)"
    "  FROM mcpbox.tools t WHERE t.server_id = s.id AND t.enabled"
    "  AND t.serving_version IS NOT NULL AND t.object = 'tool'),"
    /* s is the server before this statement, so these words are used only if
     * nothing changed */
    "  CASE s.status WHEN 'stopped' THEN"
    "  mcpbox.server_stop_words(s, 'start') END"
    " FROM done, mcpbox.servers s WHERE s.id = $1::uuid",
    DB_SURE};

static void
set_status_rows(struct job *j, const struct pg_result *rows)
{
	struct ipc_id id = db_id(rows, 0, 1);
	bool changed = db_bool(rows, 0, 0);
	bool running = ipc_streq(db_bytes(rows, 0, 3), "running");
	int64_t tools = db_int(rows, 0, 4);
	struct ipc_bytes words;

	jsonw_kv_bool(&j->json, "success", true);
	json_kv_id(&j->json, "server_id", &id);
	json_kv_bytes(&j->json, "name", db_bytes(rows, 0, 2));
	json_kv_bytes(&j->json, "status", db_bytes(rows, 0, 3));
	jsonw_kv_bool(&j->json, "changed", changed);
	jsonw_kv_int(&j->json, "callable_tools", running ? tools : 0);
	if (!running && !changed && !db_null(rows, 0, 5)) {
		words = db_bytes(rows, 0, 5);
		json_kv_message(j, "Nothing changed: %.*s.", (int)words.n,
		    (const char *)words.p);
	} else if (!running && !changed) {
		/* Somebody stopped the server while this statement waited, and
		 * the row shows the server as it was before. */
		json_kv_message(j,
		    "Nothing changed: somebody stopped it meanwhile; "
		    "mcpbox_get_server says who, and who may start it.");
	} else {
		json_kv_message(j, "%s",
		    !running ? "The server is stopped: none of its tools can "
			       "be called until mcpbox_start_server."
			: tools == 0
			? "The server runs, but has no approved and enabled "
			  "tool yet."
			: "The server runs: its approved and enabled tools "
			  "can be called.");
	}
	if (changed)
		job_done_changed(j);
	else
		job_done(j);
}

static void
set_server(struct job *j, const char *status)
{
	struct ipc_id id;
	struct db_params p;

	if (job_uuid(j, MF_SERVER_ID, &id) == -1)
		return;
	db_params_init(&p);
	db_p_id(&p, &id);
	db_p_str(&p, status);
	db_p_str(&p, j->principal);
	job_query(j, &set_status, &p, set_status_rows);
}

void
manage_start_server(struct job *j)
{
	set_server(j, "running");
}

void
manage_stop_server(struct job *j)
{
	set_server(j, "stopped");
}
