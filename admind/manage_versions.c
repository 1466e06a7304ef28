/*
 * Management tools that make versions of tools. A tool's content is only ever
 * written as a new version: what an administrator approved cannot change
 * under him.
 *
 *	create, update -> (modules) -> (inspected) -> made -> (command checked)
 *		-> stored
 */
#include <string.h>

#include "admind.h"
#include "crypto.h"
#include "draft.h"
#include "ids.h"
#include "management_tools.h"
#include "version.h"

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

/*
 * What the version will be made of, from the fields and the version before;
 * each kind has its own parts and no others'. code_bytes: the server's limit, 0
 * for the configured one. 0, or -1 with the job ended.
 */
static int
subject_of(struct job *j, uint64_t code_bytes, struct subject *what)
{
	struct ipc_bytes fields = fields_of(j), f;
	struct draft *d = j->data;
	const char *wrong = NULL;

	memset(what, 0, sizeof(*what));
	what->command = draft_is_command(d, fields);
	if (what->command) {
		if (job_field(j, MF_CODE, &f) == 1 ||
		    (job_field(j, MF_MODULE, &f) == 1 && f.n > 0) ||
		    (job_field(j, MF_SECRET, &f) == 1 && f.n > 0))
			wrong = "a command has spec and executable, but no "
				"python_code, modules and secrets";
		else if (draft_field(d, fields, MF_SPEC, VERSION_SPEC,
			     &what->code) == 0 ||
		    draft_field(d, fields, MF_EXECUTABLE, VERSION_EXECUTABLE,
			&what->executable) == 0)
			wrong = "a command needs spec and executable";
	} else {
		if (job_field(j, MF_SPEC, &f) == 1 ||
		    job_field(j, MF_EXECUTABLE, &f) == 1)
			wrong = "spec and executable are for kind \"command\"";
		else if (draft_field(d, fields, MF_CODE, VERSION_CODE,
			     &what->code) == 0)
			wrong = "python_code is missing";
	}
	if (wrong != NULL) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS, "%s", wrong);
		return -1;
	}
	if (!what->command)
		what->modules = draft_modules(d, fields);
	if (code_bytes == 0)
		code_bytes = (uint64_t)conf_int(j->a->proc.conf, "code_bytes");
	if (what->code.n > code_bytes) {
		job_fail(j, FAILURE_LIMIT,
		    "%s has %zu bytes; the limit code_bytes of this server is "
		    "%llu",
		    what->command ? "spec" : "python_code", what->code.n,
		    (unsigned long long)code_bytes);
		return -1;
	}
	return 0;
}

/* Makes the pre-image, looks once more at a command as a whole (its schema may
 * be the author's own, or an older one), then next. */
static void
make(struct job *j, struct ipc_bytes inspected, void (*next)(struct job *))
{
	struct draft *d = j->data;
	const uint8_t *list;
	struct tlv spec, schema;
	struct err err;
	size_t n;

	if (draft_make(d, fields_of(j), inspected, &err) == -1)
		job_fail(j, err.failure, "%s", err.text);
	else if (!draft_is_command(d, fields_of(j)))
		next(j);
	else if (version_check(
		     d->preimage.p, d->preimage.len, &list, &n, &err) == -1 ||
	    tlv_find(list, n, VERSION_SPEC, &spec) != 1 ||
	    tlv_find(list, n, VERSION_INPUT_SCHEMA, &schema) != 1)
		job_fail(j, FAILURE_INTERNAL, "the command has no schema");
	else
		job_check_command(j, ipc_bytes(spec.p, spec.n),
		    ipc_bytes(schema.p, schema.n), next);
}

/* ---- mcpbox_create_tool ---- */

static const struct db_stmt server_for_tool = {"manage_server_for_tool",
    "SELECT s.name, s.expose = 'bare', EXISTS (SELECT 1"
    "  FROM mcpbox.tools t WHERE t.server_id = s.id AND t.name = $2::text),"
    "  coalesce(l.code_bytes, 0)"
    " FROM mcpbox.servers s"
    " LEFT JOIN mcpbox.server_limits l ON l.server_id = s.id"
    " WHERE s.id = $1::uuid",
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
create_tool_made(struct job *j)
{
	struct draft *d = j->data;
	struct db_params p;

	db_params_init(&p);
	db_p_id(&p, &d->version_id);
	db_p_bytes(&p, d->preimage.p, d->preimage.len);
	db_p_str(&p, j->principal);
	job_query(j, &create_tool, &p, create_tool_stored);
}

static void
create_tool_inspected(struct job *j, struct ipc_bytes inspected)
{
	make(j, inspected, create_tool_made);
}

static void
create_tool_server(struct job *j, const struct pg_result *rows)
{
	struct ipc_bytes name = ipc_str(""), modules;
	struct subject what;
	struct draft *d;

	(void)job_field(j, MF_NAME, &name); /* the schema requires it */
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
	/* Grants are a tool's, and this one is not there yet. */
	if (job_field(j, MF_MODULE, &modules) == 1 && modules.n > 0) {
		job_fail(j, FAILURE_MISSING_GRANT,
		    "no module is granted to a tool that is not there yet: "
		    "create it without `modules`, ask with "
		    "mcpbox_request_module, then name the module in "
		    "mcpbox_update_tool");
		return;
	}
	if (subject_of(j, (uint64_t)db_int(rows, 0, 3), &what) == 0)
		job_inspect(j, &what, d->exposed, create_tool_inspected);
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
    "  v.preimage, v.version_no, v.state, coalesce(l.code_bytes, 0)"
    " FROM mcpbox.tools t JOIN mcpbox.servers s ON s.id = t.server_id"
    " LEFT JOIN mcpbox.server_limits l ON l.server_id = s.id"
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
update_tool_made(struct job *j)
{
	struct draft *d = j->data;
	char note[256];
	struct db_params p;

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
update_tool_inspected(struct job *j, struct ipc_bytes inspected)
{
	make(j, inspected, update_tool_made);
}

/* New code, a new command or another kind is inspected again. */
static void
update_tool_inspect(struct job *j)
{
	static const uint8_t content[] = {
	    MF_KIND, MF_CODE, MF_SPEC, MF_EXECUTABLE};
	struct draft *d = j->data;
	struct subject what;
	struct ipc_bytes f;
	bool inspect = false;

	for (size_t i = 0; i < sizeof(content); i++)
		inspect = inspect || job_field(j, content[i], &f) == 1;
	if (subject_of(j, d->code_bytes, &what) == -1)
		return;
	if (inspect)
		job_inspect(j, &what, d->exposed, update_tool_inspected);
	else
		update_tool_inspected(j, ipc_bytes(NULL, 0));
}

/* ---- modules: names become what exactly was granted ---- */

/* The names as one text: an array's form would have to be escaped. */
static const struct db_stmt module_lock = {"manage_module_lock",
    "SELECT k FROM mcpbox.module_lock($1::uuid,"
    " string_to_array($2::text, E'\\n')) k",
    DB_FAST};

static void
update_tool_locked(struct job *j, const struct pg_result *rows)
{
	struct draft *d = j->data;
	struct ipc_bytes line;

	for (int i = 0; i < db_nrows(rows); i++) {
		line = db_bytes(rows, i, 0);
		tlv_put(&d->lock, VERSION_MODULE, line.p, line.n);
	}
	if (d->lock.failed)
		job_fail(j, FAILURE_BUSY, "out of memory");
	else
		update_tool_inspect(j);
}

static void
update_tool_modules(struct job *j)
{
	struct draft *d = j->data;
	struct tlv_reader r;
	struct db_params p;
	struct buf names;
	struct tlv t;

	buf_init(&names, IPC_FRAME_MAX);
	tlv_open(&r, j->fields.p, j->fields.len);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == MF_MODULE && t.n > 0) {
			if (names.len > 0)
				buf_putc(&names, '\n');
			buf_put(&names, t.p, t.n);
		}
	if (names.failed) {
		job_fail(j, FAILURE_BUSY, "out of memory");
	} else if (names.len == 0) {
		update_tool_inspect(j);
	} else {
		db_params_init(&p);
		db_p_id(&p, &d->tool_id);
		db_p_bytes(&p, names.p, names.len);
		job_query(j, &module_lock, &p, update_tool_locked);
	}
	buf_free(&names);
}

static void
update_tool_found(struct job *j, const struct pg_result *rows)
{
	struct ipc_bytes name, before;
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
	d->code_bytes = (uint64_t)db_int(rows, 0, 8);
	if (draft_names(d, db_bytes(rows, 0, 1), name, db_bool(rows, 0, 2)) ==
		-1 ||
	    d->before.failed) {
		job_fail(j, FAILURE_BUSY, "out of memory");
		return;
	}
	if (draft_asked(fields_of(j)))
		update_tool_modules(j);
	else
		update_tool_enabled(j);
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
