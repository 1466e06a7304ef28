/*
 * Management tools that make versions of tools, prompts and resources. Content
 * is written as a new version alone, so none changes after its review began.
 *
 * create, update -> (modules) -> (inspected) -> made -> (checked) -> stored
 */
#include <stdio.h>
#include <string.h>

#include "crypto.h"
#include "draft.h"
#include "ids.h"
#include "inner.h"
#include "json_kv.h"
#include "management_tools.h"
#include "step.h"
#include "version.h"
#include "versions.h"

#define TOO_LONG                                                        \
	"the name is longer than clients take: with the server's name " \
	"and __ before it, it may have 64 characters"

static struct ipc_bytes
fields_of(const struct job *j)
{
	return ipc_bytes(j->fields.p, j->fields.len);
}

/* Makes the job's draft, which is freed with the job. */
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

/* ---- shared by create and update ---- */

static const char *
word_of(const struct job *j)
{
	return management_word(j->manage->object);
}

/* Shows the version just stored, so the model sees the schema of its code. */
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
 * Finds the content of the new version, from the fields and the version before.
 * Refuses fields that the version's kind does not have. code_bytes: the
 * server's limit, 0 for the configured one. 0, or -1 with the job ended.
 */
static int
subject_of(struct job *j, uint64_t code_bytes, struct subject *what)
{
	struct ipc_bytes fields = fields_of(j), f;
	struct draft *d = j->data;
	const char *wrong = NULL;

	memset(what, 0, sizeof(*what));
	what->command = draft_is_command(d, fields);
	if (draft_kind(d, fields) == DRAFT_STATIC) {
		if ((job_field(j, MF_MODULE, &f) == 1 && f.n > 0) ||
		    (job_field(j, MF_SECRET, &f) == 1 && f.n > 0) ||
		    (job_field(j, MF_REQUIRE, &f) == 1 && f.n > 0))
			wrong = "modules, secrets and requires are for "
				"python_code";
	} else if (draft_kind(d, fields) == DRAFT_HTTP) {
		wrong = manage_http_wrong(j, d, &what->code);
	} else if (what->command) {
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
			wrong = "spec is for kinds \"command\" and \"http\", "
				"executable for \"command\"";
		else if (draft_field(d, fields, MF_CODE, VERSION_CODE,
			     &what->code) == 0)
			wrong = "python_code is missing";
	}
	if (wrong != NULL) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS, "%s", wrong);
		return -1;
	}
	if (draft_kind(d, fields) == DRAFT_PYTHON)
		what->modules = draft_modules(d, fields);
	if (code_bytes == 0)
		code_bytes = (uint64_t)conf_int(j->a->proc.conf, "code_bytes");
	if (what->code.n > code_bytes) {
		job_fail(j, FAILURE_LIMIT,
		    "%s has %zu bytes; the limit code_bytes of this server is "
		    "%llu",
		    draft_kind(d, fields) == DRAFT_PYTHON ? "python_code"
							  : "spec",
		    what->code.n, (unsigned long long)code_bytes);
		return -1;
	}
	return 0;
}

/* Makes the pre-image and calls next. Before that, checks that a command fits
 * its schema, or a static prompt its arguments: either may be an old one. */
static void
make(struct job *j, struct ipc_bytes inspected, void (*next)(struct job *))
{
	struct draft *d = j->data;
	bool command = draft_is_command(d, fields_of(j));
	bool prompt = strcmp(d->object, "prompt") == 0 &&
	    draft_kind(d, fields_of(j)) == DRAFT_STATIC;
	const uint8_t *list;
	struct tlv body, names;
	struct err err;
	size_t n;

	if (draft_make(d, fields_of(j), inspected, &err) == -1)
		job_fail(j, err.failure, "%s", err.text);
	else if (!command && !prompt)
		next(j);
	else if (version_check(
		     d->preimage.p, d->preimage.len, &list, &n, &err) == -1 ||
	    tlv_find(list, n, command ? VERSION_SPEC : VERSION_TEXT, &body) !=
		1 ||
	    tlv_find(list, n,
		command ? VERSION_INPUT_SCHEMA : VERSION_PROMPT_ARGUMENTS,
		&names) != 1)
		job_fail(j, FAILURE_INTERNAL, "the version is not whole");
	else if (command)
		job_check_command(j, ipc_bytes(body.p, body.n),
		    ipc_bytes(names.p, names.n), next);
	else
		job_check_render(j, ipc_bytes(body.p, body.n),
		    ipc_bytes(names.p, names.n), next);
}

/* ---- mcpbox_create_tool, _prompt, _resource ---- */

static const struct db_stmt server_for_tool = {"manage_server_for_tool",
    "SELECT s.name, s.expose = 'bare', (SELECT t.object"
    "  FROM mcpbox.tools t WHERE t.server_id = s.id AND t.name = $2::text"
    "  AND t.deleted_at IS NULL), coalesce(l.code_bytes, 0)"
    " FROM mcpbox.servers s"
    " LEFT JOIN mcpbox.server_limits l ON l.server_id = s.id"
    " WHERE s.id = $1::uuid AND s.deleted_at IS NULL",
    DB_FAST};

static const struct db_stmt create_tool = {"manage_create_tool",
    "SELECT mcpbox.create_tool($1::uuid, $2::bytea, $3::text, $4)", DB_SURE};

static void
create_stored(struct job *j, const struct pg_result *rows)
{
	jsonw_kv_bool(&j->json, "success", true);
	show_draft(j, j->data, 1);
	json_kv_message(j,
	    "The %s is a draft and cannot be used yet. Ask for review with "
	    "mcpbox_request_publish, its id being tool_id.",
	    word_of(j));
	job_done(j);
}

static void
create_made(struct job *j)
{
	struct draft *d = j->data;
	struct db_params p;

	db_params_init(&p);
	db_p_id(&p, &d->version_id);
	db_p_bytes(&p, d->preimage.p, d->preimage.len);
	db_p_str(&p, j->principal);
	db_p_str(&p, inner_change_source(j));
	job_query(j, &create_tool, &p, create_stored);
}

static void
create_inspected(struct job *j, struct ipc_bytes inspected)
{
	make(j, inspected, create_made);
}

static void
create_compare(struct job *j, struct ipc_bytes inspected)
{
	manage_signature(j, inspected, create_inspected);
}

static void
create_server(struct job *j, const struct pg_result *rows)
{
	struct ipc_bytes name = ipc_str(""), modules, word;
	struct subject what;
	struct draft *d;

	(void)job_field(j, MF_NAME, &name); /* the schema requires it */
	if (db_nrows(rows) == 0) {
		job_fail(j, FAILURE_NOT_FOUND,
		    "no server has this id: see "
		    "mcpbox_list_servers");
		return;
	}
	/* Starts no runner if the name is taken. The database decides again
	 * when the version is stored. */
	if (!db_null(rows, 0, 2)) {
		word = db_bytes(rows, 0, 2);
		job_fail(j, FAILURE_CONFLICT,
		    "the server has a %.*s named %.*s: change that, or choose "
		    "another name",
		    (int)word.n, (const char *)word.p, (int)name.n,
		    (const char *)name.p);
		return;
	}
	if ((d = draft_of(j)) == NULL)
		return;
	if (j->manage->object != MANAGEMENT_TOOL)
		snprintf(d->object, sizeof(d->object), "%s",
		    job_field(j, MF_URI_TEMPLATE, &word) == 1 ? "template"
							      : word_of(j));
	uuid_v7(&d->tool_id);
	uuid_v7(&d->version_id);
	if (job_uuid(j, MF_SERVER_ID, &d->server_id) == -1)
		return;
	if (draft_names(d, db_bytes(rows, 0, 0), name, db_bool(rows, 0, 1)) ==
	    -1) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS, TOO_LONG);
		return;
	}
	/* A tool that does not exist yet has no grants of modules. */
	if (job_field(j, MF_MODULE, &modules) == 1 && modules.n > 0) {
		job_fail(j, FAILURE_MISSING_GRANT,
		    "no module is granted to a tool that is not there yet: "
		    "create it without `modules` and without their imports, "
		    "ask with mcpbox_request_module, then name the module "
		    "in mcpbox_update_%s",
		    word_of(j));
		return;
	}
	if (subject_of(j, (uint64_t)db_int(rows, 0, 3), &what) == -1)
		return;
	if (draft_kind(d, fields_of(j)) == DRAFT_STATIC)
		create_inspected(j, ipc_bytes(NULL, 0));
	else if (draft_kind(d, fields_of(j)) == DRAFT_HTTP)
		manage_http_check(j, what.code, create_inspected);
	else
		job_inspect(j, &what, d->exposed, create_compare);
}

void
manage_create(struct job *j)
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
	job_query(j, &server_for_tool, &p, create_server);
}

/* ---- mcpbox_update_tool, _prompt, _resource ---- */

static const struct db_stmt tool_for_update = {"manage_tool_for_update",
    "SELECT t.server_id, s.name, s.expose = 'bare', t.name, t.enabled,"
    "  v.preimage, v.version_no, t.object, coalesce(l.code_bytes, 0),"
    "  CASE WHEN mcpbox.authority_rank(t.disabled_authority) > 0 THEN"
    "  mcpbox.tool_stop_words(t, 'enable') END"
    " FROM mcpbox.tools t JOIN mcpbox.servers s ON s.id = t.server_id"
    " LEFT JOIN mcpbox.server_limits l ON l.server_id = s.id"
    " JOIN LATERAL (SELECT * FROM mcpbox.tool_versions y"
    "  WHERE y.tool_id = t.id ORDER BY y.version_no DESC LIMIT 1) v ON true"
    " WHERE t.id = $1::uuid AND t.deleted_at IS NULL",
    DB_FAST};

static const struct db_stmt add_version = {"manage_add_version",
    "SELECT mcpbox.add_version($1::uuid, $2::bytea, $3::text, $4::text,"
    " $5::int4, $6::text)",
    DB_SURE};

static const struct db_stmt set_enabled = {"manage_set_enabled",
    "SELECT mcpbox.set_tool_enabled($1::uuid, $2::bool, $3::text)", DB_SURE};

static void
update_switched(struct job *j, const struct pg_result *rows)
{
	bool enabled = job_number(j, MF_ENABLED, 0) == 1;
	struct draft *d = j->data;

	jsonw_kv_bool(&j->json, "enabled", enabled);
	/* If no version was made, the answer is still empty. */
	if (d->preimage.len == 0) {
		jsonw_kv_bool(&j->json, "success", true);
		json_kv_id(&j->json, "id", &d->tool_id);
		jsonw_kv_str(&j->json, "name", d->name);
		json_kv_message(j,
		    enabled ? "The %s is enabled: it can be used while it has "
			      "an approved version and its server runs."
			    : "The %s is disabled and cannot be used.",
		    word_of(j));
	}
	if (db_bool(rows, 0, 0))
		job_done_changed(j);
	else
		job_done(j);
}

/* Sets `enabled` if the fields have it, else ends the job. */
static void
update_enabled(struct job *j)
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
	job_query(j, &set_enabled, &p, update_switched);
}

static void
update_stored(struct job *j, const struct pg_result *rows)
{
	jsonw_kv_bool(&j->json, "success", true);
	show_draft(j, j->data, db_int(rows, 0, 0));
	jsonw_kv_str(&j->json, "message",
	    "A new draft was made; an approved version, if there is one, "
	    "serves on. Ask for review with mcpbox_request_publish.");
	update_enabled(j);
}

static void
update_made(struct job *j)
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
		update_enabled(j);
		return;
	}
	draft_note(fields_of(j), note, sizeof(note));
	db_params_init(&p);
	db_p_id(&p, &d->version_id);
	db_p_bytes(&p, d->preimage.p, d->preimage.len);
	db_p_str(&p, note);
	db_p_str(&p, j->principal);
	/* Fields that the arguments leave out were copied from this version. */
	db_p_i32(&p, d->base);
	db_p_str(&p, inner_change_source(j));
	job_query(j, &add_version, &p, update_stored);
}

static void
update_inspected(struct job *j, struct ipc_bytes inspected)
{
	make(j, inspected, update_made);
}

static void
update_compare(struct job *j, struct ipc_bytes inspected)
{
	manage_signature(j, inspected, update_inspected);
}

/* Inspects a new code, command or kind, and a Python version's new schema. */
static void
update_inspect(struct job *j)
{
	static const uint8_t content[] = {
	    MF_KIND, MF_CODE, MF_SPEC, MF_EXECUTABLE, MF_TEXT, MF_BLOB};
	struct draft *d = j->data;
	struct subject what;
	struct ipc_bytes f;
	bool inspect = draft_kind(d, fields_of(j)) == DRAFT_PYTHON &&
	    job_field(j, MF_INPUT_SCHEMA, &f) == 1;

	for (size_t i = 0; i < sizeof(content); i++)
		inspect = inspect || job_field(j, content[i], &f) == 1;
	if (subject_of(j, d->code_bytes, &what) == -1)
		return;
	/* For kind http, other fields follow from the specification. So the
	 * specification is checked even if other arguments were changed. */
	if (draft_kind(d, fields_of(j)) == DRAFT_HTTP)
		manage_http_check(j, what.code, update_inspected);
	else if (inspect && draft_kind(d, fields_of(j)) != DRAFT_STATIC)
		job_inspect(j, &what, d->exposed, update_compare);
	else
		update_inspected(j, ipc_bytes(NULL, 0));
}

/* ---- modules: names become the exact granted entries ---- */

/* The names are one text, because an array literal would need escaping. */
static const struct db_stmt module_lock = {"manage_module_lock",
    "SELECT k FROM mcpbox.module_lock($1::uuid,"
    " string_to_array($2::text, E'\\n')) k",
    DB_FAST};

static void
update_locked(struct job *j, const struct pg_result *rows)
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
		update_inspect(j);
}

static void
update_modules(struct job *j)
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
		update_inspect(j);
	} else {
		db_params_init(&p);
		db_p_id(&p, &d->tool_id);
		db_p_bytes(&p, names.p, names.len);
		job_query(j, &module_lock, &p, update_locked);
	}
	buf_free(&names);
}

static bool
imported(const struct draft *d)
{
	const uint8_t *list;
	struct tlv kind;
	size_t n;

	return version_check(d->before.p, d->before.len, &list, &n, NULL) ==
	    0 &&
	    tlv_find(list, n, VERSION_KIND, &kind) == 1 &&
	    ipc_streq(ipc_bytes(kind.p, kind.n), "mcp");
}

static void
update_found(struct job *j, const struct pg_result *rows)
{
	struct ipc_bytes name, before, object, f;
	bool template;
	struct draft *d;

	object = db_nrows(rows) == 0 ? ipc_str("") : db_bytes(rows, 0, 7);
	template = ipc_streq(object, "template");
	if (!ipc_streq(object, word_of(j)) &&
	    !(template && j->manage->object == MANAGEMENT_RESOURCE)) {
		job_fail(j, FAILURE_NOT_FOUND,
		    "no %s has this id: see mcpbox_list_%ss", word_of(j),
		    word_of(j));
		return;
	}
	/* Refuses before a draft is made. set_tool_enabled() checks again. */
	if (job_number(j, MF_ENABLED, 0) == 1 && !db_null(rows, 0, 9)) {
		f = db_bytes(rows, 0, 9);
		job_fail(
		    j, FAILURE_FORBIDDEN, "%.*s", (int)f.n, (const char *)f.p);
		return;
	}
	if (job_field(j, template ? MF_URI : MF_URI_TEMPLATE, &f) == 1 ||
	    (!template && j->manage->object == MANAGEMENT_RESOURCE &&
		job_field(j, MF_ARGUMENTS, &f) == 1)) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    template ? "this is a template: it has uri_template and "
			       "cannot have uri"
			     : "this is a resource: it has uri and cannot "
			       "have uri_template or arguments");
		return;
	}
	if (template &&
	    (job_field(j, MF_TEXT, &f) == 1 ||
		job_field(j, MF_BLOB, &f) == 1)) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    "a template's resources are read by python_code");
		return;
	}
	before = db_bytes(rows, 0, 5);
	if (!job_seen(j, before) || (d = draft_of(j)) == NULL ||
	    job_object_id(j, &d->tool_id) == -1)
		return;
	if (!ipc_streq(object, "tool"))
		snprintf(d->object, sizeof(d->object), "%.*s", (int)object.n,
		    (const char *)object.p);
	d->server_id = db_id(rows, 0, 0);
	uuid_v7(&d->version_id);
	name = db_bytes(rows, 0, 3);
	(void)job_field(j, MF_NAME, &name);
	buf_put(&d->before, before.p, before.n);
	d->base = (int32_t)db_int(rows, 0, 6);
	d->code_bytes = (uint64_t)db_int(rows, 0, 8);
	if (draft_names(d, db_bytes(rows, 0, 1), name, db_bool(rows, 0, 2)) ==
	    -1) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS, TOO_LONG);
		return;
	}
	if (d->before.failed) {
		job_fail(j, FAILURE_BUSY, "out of memory");
		return;
	}
	if (draft_asked(fields_of(j)) && imported(d))
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    "the tool is another MCP server's: what it is comes with "
		    "mcpbox_import_external_tools; only `enabled` can be set");
	else if (draft_asked(fields_of(j)))
		update_modules(j);
	else
		update_enabled(j);
}

void
manage_update(struct job *j)
{
	struct db_params p;
	struct ipc_id id;

	if (job_object_id(j, &id) == -1)
		return;
	if (!draft_asked(fields_of(j)) &&
	    job_number(j, MF_ENABLED, UINT64_MAX) == UINT64_MAX) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    "there is nothing to "
		    "change: give at least one field beside the id");
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &id);
	job_query(j, &tool_for_update, &p, update_found);
}
