/*
 * Management tools that make and list tools. A tool's content is only ever
 * written as a new version: what an administrator approved cannot change
 * under him.
 */
#include <string.h>

#include "admind.h"
#include "crypto.h"
#include "draft.h"
#include "ids.h"
#include "management_tools.h"
#include "version.h"

enum { PAGE_SIZE = 50 };

static struct ipc_bytes
fields_of(const struct job *j)
{
	return ipc_bytes(j->fields.p, j->fields.len);
}

/* The draft hangs on the job and is freed with it. */
static struct draft *
draft_of(struct job *j)
{
	struct draft *d = draft_new();

	if (d == NULL) {
		job_fail(j, FAILURE_BUSY, "out of memory");
		return NULL;
	}
	j->data = d;
	j->free_data = draft_free;
	return d;
}

/* ---- mcpbox_list_tools ---- */

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

/* ---- what create and update share ---- */

/* Shows the version just stored: the model sees what schema its code got. */
static void
show_draft(struct job *j, const struct draft *d, int64_t version)
{
	const uint8_t *list;
	struct ipc_hash hash;
	struct tlv schema;
	size_t n;

	json_kv_id(&j->json, "id", &d->tool_id);
	jsonw_kv_str(&j->json, "name", d->name);
	jsonw_kv_str(&j->json, "exposed_name", d->exposed);
	jsonw_kv_int(&j->json, "version", version);
	jsonw_kv_str(&j->json, "approval_status", "draft");
	sha256(d->preimage.p, d->preimage.len, &hash);
	json_kv_hex(
	    &j->json, "version_hash", ipc_bytes(hash.b, sizeof(hash.b)));
	if (version_check(d->preimage.p, d->preimage.len, &list, &n, NULL) ==
		0 &&
	    tlv_find(list, n, VERSION_INPUT_SCHEMA, &schema) == 1)
		jsonw_kv_raw(&j->json, "input_schema", schema.p, schema.n);
}

/* ---- mcpbox_create_tool ---- */

static const struct db_stmt server_for_tool = {"manage_server_for_tool",
    "SELECT s.name, s.expose = 'bare', EXISTS (SELECT 1"
    "  FROM mcpbox.tools t WHERE t.server_id = s.id AND t.name = $2::text)"
    " FROM mcpbox.servers s WHERE s.id = $1::uuid",
    DB_FAST};

static const struct db_stmt create_tool = {"manage_create_tool",
    "SELECT mcpbox.create_tool($1::uuid, $2::bytea, $3::text)", DB_SURE};

static void
create_tool_stored(struct job *j, const struct pg_result *rows)
{
	jsonw_kv_bool(&j->json, "success", true);
	show_draft(j, j->data, 1);
	jsonw_kv_str(&j->json, "message",
	    "The tool is a draft and cannot be called yet. Ask for review with "
	    "mcpbox_request_publish.");
	job_done(j);
}

static void
create_tool_inspected(struct job *j, struct ipc_bytes inspected)
{
	struct draft *d = j->data;
	struct db_params p;
	struct err err;

	if (draft_make(d, fields_of(j), inspected, &err) == -1) {
		job_fail(j, err.failure, "%s", err.text);
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &d->version_id);
	db_p_bytes(&p, d->preimage.p, d->preimage.len);
	db_p_str(&p, j->principal);
	job_query(j, &create_tool, &p, create_tool_stored);
}

static void
create_tool_server(struct job *j, const struct pg_result *rows)
{
	struct ipc_bytes name = ipc_str(""), code = ipc_str("");
	struct draft *d;

	(void)job_field(j, MF_NAME, &name); /* the schema requires both */
	(void)job_field(j, MF_CODE, &code);
	if (db_nrows(rows) == 0) {
		job_fail(j, FAILURE_NOT_FOUND,
		    "no server has this id: see "
		    "mcpbox_list_servers");
		return;
	}
	/* Told early, before a runner is spent; the database decides. */
	if (db_bool(rows, 0, 2)) {
		job_fail(j, FAILURE_CONFLICT,
		    "the server has a tool named "
		    "%.*s: change it with mcpbox_update_tool or choose another "
		    "name",
		    (int)name.n, (const char *)name.p);
		return;
	}
	if ((d = draft_of(j)) == NULL)
		return;
	uuid_v7(&d->tool_id);
	uuid_v7(&d->version_id);
	if (job_uuid(j, MF_SERVER_ID, &d->server_id) == -1)
		return;
	if (draft_names(d, db_bytes(rows, 0, 0), name, db_bool(rows, 0, 1)) ==
	    -1) {
		job_fail(j, FAILURE_INTERNAL, "a name is too long");
		return;
	}
	job_inspect(j, code, d->exposed, create_tool_inspected);
}

void
manage_create_tool(struct job *j)
{
	struct ipc_bytes name = ipc_str("");
	struct db_params p;
	struct ipc_id id;

	if (job_uuid(j, MF_SERVER_ID, &id) == -1)
		return;
	(void)job_field(j, MF_NAME, &name);
	db_params_init(&p);
	db_p_id(&p, &id);
	db_p_text(&p, name);
	job_query(j, &server_for_tool, &p, create_tool_server);
}

/* ---- mcpbox_update_tool ---- */

static const struct db_stmt tool_for_update = {"manage_tool_for_update",
    "SELECT t.server_id, s.name, s.expose = 'bare', t.name, t.enabled,"
    "  v.preimage, v.version_no, v.state"
    " FROM mcpbox.tools t JOIN mcpbox.servers s ON s.id = t.server_id"
    " JOIN LATERAL (SELECT * FROM mcpbox.tool_versions y"
    "  WHERE y.tool_id = t.id ORDER BY y.version_no DESC LIMIT 1) v ON true"
    " WHERE t.id = $1::uuid",
    DB_FAST};

static const struct db_stmt add_version = {"manage_add_version",
    "SELECT mcpbox.add_version($1::uuid, $2::bytea, $3::text, $4::text,"
    " $5::int4)",
    DB_SURE};

static const struct db_stmt set_enabled = {"manage_set_enabled",
    "SELECT mcpbox.set_tool_enabled($1::uuid, $2::bool, $3::text)", DB_SURE};

static void
update_tool_switched(struct job *j, const struct pg_result *rows)
{
	bool enabled = job_number(j, MF_ENABLED, 0) == 1;
	struct draft *d = j->data;

	jsonw_kv_bool(&j->json, "enabled", enabled);
	/* Without a new version nothing was shown yet. */
	if (d->preimage.len == 0) {
		jsonw_kv_bool(&j->json, "success", true);
		json_kv_id(&j->json, "id", &d->tool_id);
		jsonw_kv_str(&j->json, "name", d->name);
		jsonw_kv_str(&j->json, "message",
		    enabled ? "The tool is enabled: it can be called while it "
			      "has an approved version and its server runs."
			    : "The tool is disabled and cannot be called.");
	}
	if (db_bool(rows, 0, 0))
		job_done_changed(j);
	else
		job_done(j);
}

/* The switch, if it was asked for, else the end. */
static void
update_tool_enabled(struct job *j)
{
	struct draft *d = j->data;
	struct db_params p;

	if (job_number(j, MF_ENABLED, UINT64_MAX) == UINT64_MAX) {
		job_done(j);
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &d->tool_id);
	db_p_bool(&p, job_number(j, MF_ENABLED, 0) == 1);
	db_p_str(&p, j->principal);
	job_query(j, &set_enabled, &p, update_tool_switched);
}

static void
update_tool_stored(struct job *j, const struct pg_result *rows)
{
	jsonw_kv_bool(&j->json, "success", true);
	show_draft(j, j->data, db_int(rows, 0, 0));
	jsonw_kv_str(&j->json, "message",
	    "A new draft was made; an approved version, if there is one, "
	    "serves on. Ask for review with mcpbox_request_publish.");
	update_tool_enabled(j);
}

static void
update_tool_inspected(struct job *j, struct ipc_bytes inspected)
{
	struct draft *d = j->data;
	char note[256];
	struct db_params p;
	struct err err;

	if (draft_make(d, fields_of(j), inspected, &err) == -1) {
		job_fail(j, err.failure, "%s", err.text);
		return;
	}
	if (d->preimage.len == d->before.len &&
	    memcmp(d->preimage.p, d->before.p, d->before.len) == 0) {
		jsonw_kv_bool(&j->json, "success", true);
		json_kv_id(&j->json, "id", &d->tool_id);
		jsonw_kv_str(&j->json, "name", d->name);
		jsonw_kv_str(&j->json, "message",
		    "Nothing changed: the newest version has this content.");
		update_tool_enabled(j);
		return;
	}
	draft_note(fields_of(j), note, sizeof(note));
	db_params_init(&p);
	db_p_id(&p, &d->version_id);
	db_p_bytes(&p, d->preimage.p, d->preimage.len);
	db_p_str(&p, note);
	db_p_str(&p, j->principal);
	/* Fields left out were copied from this version. */
	db_p_i32(&p, d->base);
	job_query(j, &add_version, &p, update_tool_stored);
}

static void
update_tool_found(struct job *j, const struct pg_result *rows)
{
	struct ipc_bytes name, code, before;
	struct draft *d;

	if (db_nrows(rows) == 0) {
		job_fail(j, FAILURE_NOT_FOUND,
		    "no tool has this id: see mcpbox_list_tools");
		return;
	}
	if ((d = draft_of(j)) == NULL ||
	    job_uuid(j, MF_TOOL_ID, &d->tool_id) == -1)
		return;
	d->server_id = db_id(rows, 0, 0);
	uuid_v7(&d->version_id);
	name = db_bytes(rows, 0, 3);
	(void)job_field(j, MF_NAME, &name);
	before = db_bytes(rows, 0, 5);
	buf_put(&d->before, before.p, before.n);
	d->base = (int32_t)db_int(rows, 0, 6);
	if (draft_names(d, db_bytes(rows, 0, 1), name, db_bool(rows, 0, 2)) ==
		-1 ||
	    d->before.failed) {
		job_fail(j, FAILURE_BUSY, "out of memory");
		return;
	}
	if (!draft_asked(fields_of(j)))
		update_tool_enabled(j);
	else if (job_field(j, MF_CODE, &code) == 1)
		job_inspect(j, code, d->exposed, update_tool_inspected);
	else
		update_tool_inspected(j, ipc_bytes(NULL, 0));
}

void
manage_update_tool(struct job *j)
{
	struct db_params p;
	struct ipc_id id;

	if (job_uuid(j, MF_TOOL_ID, &id) == -1)
		return;
	if (!draft_asked(fields_of(j)) &&
	    job_number(j, MF_ENABLED, UINT64_MAX) == UINT64_MAX) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    "there is nothing to "
		    "change: give at least one field beside tool_id");
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &id);
	job_query(j, &tool_for_update, &p, update_tool_found);
}
