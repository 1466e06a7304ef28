/*
 * Reading for administrators: one table row a question, JSON made by
 * PostgreSQL, pages by cursor. Nothing here changes anything.
 *
 * A web request carries a login token; its SHA-256 is shown to the vault,
 * which alone knows who is logged in. The ctl socket admits uid 0 only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admind.h"
#include "crypto.h"
#include "ids.h"
#include "log.h"

enum {
	LIMIT_MAX = 200,
	LIMIT_STANDARD = 50,
	CURSOR_MAX = 128,
	FILTER_MAX = 64,
	/* A page ends before an item that would not fit into one message; an
	 * item has at most some 100 kB (audit's detail, twice). */
	PAGE_BYTES = IPC_BLOB_MAX - 4096
};

/* ---- json helpers ---- */

void
json_kv_id(struct jsonw *w, const char *name, const struct ipc_id *id)
{
	char text[UUID_TEXT_LEN + 1];

	uuid_text(id, text);
	jsonw_kv_str(w, name, text);
}

void
json_kv_time(struct jsonw *w, const char *name, uint64_t unix_us)
{
	char text[TIME_TEXT_LEN + 1];

	jsonw_name(w, name);
	if (unix_us == 0) {
		jsonw_null(w);
		return;
	}
	time_text(unix_us, text);
	jsonw_str(w, text);
}

void
json_kv_bytes(struct jsonw *w, const char *name, struct ipc_bytes b)
{
	jsonw_kv_strn(w, name, b.p, b.n);
}

void
json_kv_hex(struct jsonw *w, const char *name, struct ipc_bytes b)
{
	char hex[2 * 64 + 1];

	hex_encode(b.p, b.n <= 64 ? b.n : 64, hex);
	jsonw_kv_str(w, name, hex);
}

/* ---- logins ---- */

static void
looked_up(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct op *op = arg;
	struct ipc_session_info m;
	struct err err;

	if (f == NULL || f->type != IPC_SESSION_INFO) {
		answer_err(f, gone, &err);
		op_refuse_err(op, &err);
		return;
	}
	if (ipc_decode(f, &m, &err) == -1) {
		op_refuse(op, FAILURE_INTERNAL, "malformed login");
		return;
	}
	if (!ipc_streq(m.role, "administrator") &&
	    (op->writes || !ipc_streq(m.role, "reviewer")) &&
	    (op->writes || op->privileged || !ipc_streq(m.role, "viewer"))) {
		op_refuse(op, FAILURE_FORBIDDEN,
		    op->writes ? "only an administrator may change this"
			       : "this role may not read this");
		return;
	}
	if (m.username.n == 0 || m.username.n > PRINCIPAL_MAX) {
		op_refuse(op, FAILURE_INTERNAL, "malformed login");
		return;
	}
	memcpy(op->actor, m.username.p, m.username.n);
	op->actor[m.username.n] = '\0';
	op->then(op);
}

void
adminq_login(struct op *op, struct ipc_bytes token, void (*then)(struct op *))
{
	struct ipc_session_lookup m = {0};
	struct err err;

	op->then = then;
	if (op->link->role == IPC_ROLE_CTL) {
		memcpy(op->actor, "root", sizeof("root"));
		then(op);
		return;
	}
	if (token.n == 0) {
		op_refuse(op, FAILURE_UNAUTHENTICATED, "not logged in");
		return;
	}
	sha256(token.p, token.n, &m.token);
	if (ask(op->a->vault, IPC_SESSION_LOOKUP, &m, looked_up, op, &err) ==
	    -1)
		op_refuse_err(op, &err);
}

/* ---- questions ---- */

#define TIME(column)                             \
	"to_char(" column " AT TIME ZONE 'UTC'," \
	" 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
#define SERVER_JSON                                                            \
	"json_build_object('id', s.id, 'name', s.name,"                        \
	" 'description', s.description, 'status', s.status,"                   \
	" 'expose', s.expose, 'created_at', " TIME(                            \
	    "s.created_at") ","                                                \
			    " 'created_by', s.created_by, "                    \
			    "'updated_at', " TIME(                             \
				"s.updated_at") ","                            \
						" 'tool_count', (SELECT "      \
						"count(*) FROM mcpbox.tools x" \
						" WHERE x.server_id = s.id"    \
						" AND x.object = 'tool'"       \
						" AND x.deleted_at IS NULL"    \
						"))::text"
#define TOOL_JSON                                                        \
	"json_build_object('id', t.id, 'server_id', t.server_id,"        \
	" 'server', s.name, 'name', t.name, 'enabled', t.enabled,"       \
	" 'object', t.object, 'uri', n.uri,"                             \
	" 'exposed_name', n.exposed_name, 'description', n.description," \
	" 'kind', n.kind, 'approval_status', n.state,"                   \
	" 'version', n.version_no, 'version_id', n.id,"                  \
	" 'hash', encode(n.hash, 'hex'),"                                \
	" 'serving_version', c.version_no, 'serving_version_id', c.id,"  \
	" 'callable', c.id IS NOT NULL AND t.enabled AND s.status = "    \
	"'running',"                                                     \
	" 'created_at', " TIME(                                          \
	    "t.created_at") ", 'created_by', t.created_by,"              \
			    " 'updated_at', " TIME(                      \
				"t.updated_at") ","                      \
						" 'deleted_at', " TIME(  \
						    "t.deleted_at") ")::text"
#define TOOL_FROM                                                           \
	" FROM mcpbox.tools t JOIN mcpbox.servers s ON s.id = t.server_id"  \
	" JOIN LATERAL (SELECT * FROM mcpbox.tool_versions v"               \
	" WHERE v.tool_id = t.id ORDER BY v.version_no DESC LIMIT 1) n ON " \
	"true"                                                              \
	" LEFT JOIN mcpbox.tool_versions c ON c.id = t.serving_version"
#define EXECUTION_HEAD                                                                              \
	"'id', e.id, 'kind', e.kind, 'state', e.state, 'outcome', e.outcome,"                       \
	" 'failure_mode', e.failure, 'delivered', e.delivered,"                                     \
	" 'tool', e.tool, 'version_id', e.version_id,"                                              \
	" 'hash', encode(e.version_hash, 'hex'), 'principal', e.principal,"                         \
	" 'listener', e.listener, 'client', e.client, 'protocol', e.protocol,"                      \
	" 'created_at', " TIME(                                                                     \
	    "e.created_at") ","                                                                     \
			    " 'deadline', " TIME(                                                   \
				"e.deadline") ","                                                   \
					      " 'started_at', " TIME(                               \
						  "e.started_at") ","                               \
								  " 'ended_"                        \
								  "at',"                            \
								  " " TIME(                         \
								      "e."                          \
								      "ended_"                      \
								      "at") ", 'cpu_us', e.cpu_us," \
									    " 'restored', e.restored"

/* What a version sets itself. */
#define LIMIT_PAIR(SYMBOL, name, unit, min, max, context, version, reason) \
	"'" name "', n." name
#define LIMIT_PAIR_MORE(                                    \
    SYMBOL, name, unit, min, max, context, version, reason) \
	", '" name "', n." name

/*
 * Lists take ($1 filter_kind, $2 filter_state, $3 cursor, $4 limit) and give
 * (json, cursor of this row); objects take ($1 id) and give (json). An empty
 * filter or cursor means none. by_name: the id is any short text.
 */
struct question {
	const char *what;
	bool object, privileged;
	struct db_stmt stmt;
	bool by_name;
};

static const struct question questions[] = {
    {"servers", false, false,
	{"adminq_servers",
	    "SELECT " SERVER_JSON ", s.name FROM mcpbox.servers s"
	    " WHERE ($1::text = '' OR true) AND ($2::text = '' OR"
	    " s.status = $2::text) AND s.name > $3::text"
	    " ORDER BY s.name LIMIT $4::int8",
	    DB_FAST}},
    {"server", true, false,
	{"adminq_server",
	    "SELECT " SERVER_JSON " FROM mcpbox.servers s"
	    " WHERE s.id = $1::uuid",
	    DB_FAST}},
    {"tools", false, false,
	{"adminq_tools",
	    "SELECT " TOOL_JSON ", t.id::text" TOOL_FROM
	    " WHERE ($1::text = '' OR t.server_id::text = $1::text)"
	    " AND CASE WHEN t.deleted_at IS NOT NULL THEN $2::text ="
	    " 'deleted' ELSE $2::text IN ('', n.state) END"
	    " AND ($3::text = '' OR t.id::text > $3::text)"
	    " ORDER BY t.id LIMIT $4::int8",
	    DB_FAST}},
    {"tool", true, false,
	{"adminq_tool",
	    "SELECT json_build_object('tool', " TOOL_JSON "::json,"
	    " 'input_schema', convert_from(n.input_schema, 'UTF8')::json,"
	    " 'output_schema', convert_from(n.output_schema, 'UTF8')::json,"
	    " 'secrets', array_to_json(n.secrets),"
	    " 'modules', array_to_json(n.modules), 'limits',"
	    " json_strip_nulls(json_build_object(" LIMITS(LIMIT_PAIR,
		LIMIT_PAIR_MORE) ")), 'versions',"
				 " (SELECT json_agg(json_build_object('id', "
				 "v.id,"
				 " 'version', v.version_no, 'state', v.state,"
				 " 'hash', encode(v.hash, 'hex'), "
				 "'created_at', " TIME(
				     "v.created_at") ", 'created_by', "
						     "v.created_by,"
						     " 'change_note', "
						     "v.change_note) ORDER BY "
						     "v.version_no DESC)"
						     " FROM (SELECT * FROM "
						     "mcpbox.tool_versions w "
						     "WHERE w.tool_id = t.id "
						     "ORDER BY w.version_no "
						     "DESC LIMIT 100) "
						     "v))::text" TOOL_FROM
						     " WHERE t.id = $1::uuid",
	    DB_FAST}},
    /* clang-format off */
    {"approvals", false, false,
	{"adminq_approvals",
	    "SELECT json_build_object('id', a.id, 'kind', a.kind,"
	    " 'state', a.state, 'server', s.name, 'server_id', a.server_id,"
	    " 'tool', coalesce(v.name, t.name), 'tool_id', a.tool_id,"
	    " 'exposed_name', v.exposed_name, 'version', v.version_no,"
	    " 'version_id', v.id, 'module', m.name,"
	    " 'module_version', nullif(m.version, ''),"
	    " 'hash', encode(a.hash, 'hex'),"
	    " 'requested_at', " TIME("a.requested_at") ","
	    " 'requested_by', a.requested_by, 'notes', a.notes,"
	    " 'decided_at', " TIME("a.decided_at") ","
	    " 'decided_by', a.decided_by, 'reason', a.reason,"
	    " 'principal', c.principal, 'listener', c.listener,"
	    " 'arguments', c.arguments, 'expires_at', " TIME("c.expires_at") ","
	    " 'used_at', " TIME("c.used_at") ", 'execution', c.execution)::text,"
	    " a.id::text FROM mcpbox.approval_requests a"
	    " JOIN mcpbox.servers s ON s.id = a.server_id"
	    " LEFT JOIN mcpbox.tools t ON t.id = a.tool_id"
	    " LEFT JOIN mcpbox.call_requests c ON c.id = a.id"
	    " LEFT JOIN mcpbox.tool_versions v"
	    " ON v.id = coalesce(c.version_id, a.subject)"
	    " LEFT JOIN mcpbox.module_requests m ON m.id = a.subject"
	    " WHERE ($1::text = '' OR a.kind = $1::text)"
	    " AND ($2::text = '' OR a.state = $2::text)"
	    " AND ($3::text = '' OR a.id::text > $3::text)"
	    " ORDER BY a.id LIMIT $4::int8",
	    DB_FAST}},
    /* clang-format on */
    /* row: the bytes that were hashed behind prev_hash, for verification */
    {"audit", false, true,
	{"adminq_audit",
	    "SELECT json_build_object('seq', l.seq, 'at', " TIME(
		"l.at") ","
			" 'actor', l.actor, 'action', l.action, 'subject', "
			"l.subject,"
			" 'detail', l.detail::json, 'prev_hash', "
			"encode(l.prev, 'hex'),"
			" 'hash', encode(l.hash, 'hex'), 'row', "
			"encode(mcpbox.audit_row("
			"l.seq, l.at, l.actor, l.action, l.subject, l.detail), "
			"'hex'),"
			" 'signature', encode(x.signature, 'hex'))::text, "
			"l.seq::text"
			" FROM mcpbox.audit_log l"
			" LEFT JOIN mcpbox.audit_anchors x ON x.seq = l.seq"
			" WHERE ($1::text = '' OR l.action = $1::text)"
			" AND ($2::text = '' OR l.actor = $2::text)"
			" AND ($3::text = '' OR l.seq < $3::text::int8)"
			" ORDER BY l.seq DESC LIMIT $4::int8",
	    DB_FAST}},
    {"executions", false, false,
	{"adminq_executions",
	    "SELECT json_build_object(" EXECUTION_HEAD ")::text,"
	    " (extract(epoch FROM e.created_at) * 1000000)::int8::text"
	    " || '.' || e.id::text FROM mcpbox.executions e"
	    " WHERE ($1::text = '' OR e.kind = $1::text)"
	    " AND ($2::text = '' OR e.state = $2::text"
	    " OR e.outcome = $2::text)"
	    " AND ($3::text = '' OR (e.created_at, e.id) <"
	    " (to_timestamp(0) + split_part($3::text, '.', 1)::int8"
	    " * interval '1 microsecond',"
	    " nullif(split_part($3::text, '.', 2), '')::uuid))"
	    " ORDER BY e.created_at DESC, e.id DESC LIMIT $4::int8",
	    DB_FAST}},
    {"execution", true, true,
	{"adminq_execution",
	    "SELECT json_build_object(" EXECUTION_HEAD ","
	    " 'arguments', e.arguments,"
	    " 'args_sha256', encode(e.args_sha256, 'hex'),"
	    " 'stdout', e.stdout, 'result', e.result)::text"
	    " FROM mcpbox.executions e WHERE e.id = $1::uuid",
	    DB_FAST}},
    /* the very bytes whose SHA-256 a change must name */
    {"limits", true, false,
	{"adminq_limits",
	    "SELECT mcpbox.server_limits_json($1::text) WHERE"
	    " mcpbox.server_limits_json($1::text) IS NOT NULL",
	    DB_FAST},
	true},
    {"modules", false, false,
	{"adminq_modules",
	    "SELECT json_build_object('name', m.name, 'version', m.version,"
	    " 'digest', encode(m.digest, 'hex'), 'files', m.files,"
	    " 'bytes', m.bytes, 'state', m.state, 'added_at', " TIME(
		"m.added_at") ","
			      " 'added_by', m.added_by, 'tools', "
			      "coalesce((SELECT"
			      " json_agg(n.exposed_name ORDER BY "
			      "n.exposed_name)"
			      " FROM mcpbox.tool_modules g JOIN "
			      "mcpbox.tool_names n USING (tool_id)"
			      " WHERE (g.name, g.version) = (m.name, m.version)"
			      " AND g.revoked_at IS NULL), '[]'))::text,"
			      " m.name || ' ' || m.version FROM mcpbox.modules "
			      "m"
			      " WHERE ($1::text = '' OR m.name = $1::text)"
			      " AND ($2::text = '' OR m.state = $2::text)"
			      " AND ($3::text = '' OR m.name || ' ' || "
			      "m.version > $3::text"
			      "  COLLATE \"C\")"
			      " ORDER BY m.name || ' ' || m.version COLLATE "
			      "\"C\" LIMIT $4::int8",
	    DB_FAST}},
    {"settings", false, false,
	{"adminq_settings",
	    "SELECT json_build_object('key', d.key, 'value',"
	    " coalesce(s.value, d.value), 'updated_at', " TIME(
		"s.updated_at") ","
				" 'updated_by', s.updated_by)::text, d.key FROM"
				" (VALUES ('confirm_destructive', 'off'))"
				" d (key, value) LEFT JOIN mcpbox.settings s"
				" ON s.key = d.key WHERE $1::text = '' AND"
				" $2::text = '' AND d.key > $3::text"
				" ORDER BY d.key LIMIT $4::int8",
	    DB_FAST}},
    {"status", true, false,
	{"adminq_status",
	    "SELECT json_build_object('servers',"
	    " (SELECT count(*) FROM mcpbox.servers), 'tools',"
	    " (SELECT count(*) FROM mcpbox.tools WHERE object = 'tool'"
	    " AND deleted_at IS NULL), 'pending_approvals',"
	    " (SELECT count(*) FROM mcpbox.approval_requests"
	    " WHERE state = 'pending'), 'open_executions',"
	    " (SELECT count(*) FROM mcpbox.executions WHERE state = 'open'),"
	    " 'administrators', (SELECT count(*) FROM mcpbox.admin_users),"
	    " 'audit_seq', (SELECT seq FROM mcpbox.audit_head),"
	    " 'audit_anchored_seq', (SELECT max(seq)"
	    " FROM mcpbox.audit_anchors), 'catalogue_revision',"
	    " (SELECT revision FROM mcpbox.catalogue), 'schema',"
	    " (SELECT max(version) FROM mcpbox.schema_migrations))::text",
	    DB_FAST}},
};

static const struct question *
question_find(struct ipc_bytes what)
{
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
		if (ipc_streq(what, questions[i].what))
			return &questions[i];
	return NULL;
}

/* One query in work: its fields are copied into op->buf, NUL-separated. */
struct query {
	const struct question *q;
	char kind[FILTER_MAX + 1], state[FILTER_MAX + 1],
	    cursor[CURSOR_MAX + 1];
	uint32_t limit;
};

static void
answer_json(struct op *op, struct buf *b)
{
	struct ipc_admin_json m = {.json = ipc_bytes(b->p, b->len)};

	if (b->failed)
		op_refuse(op, FAILURE_BUSY, "the answer is too large");
	else
		op_answer(op, IPC_ADMIN_JSON, &m);
}

static void
got_object(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct ipc_bytes text;
	struct jsonw w;
	struct buf b;

	buf_init(&b, IPC_BLOB_MAX);
	if (strcmp(op->text, "status") == 0) {
		/* answers without a database too: that is when it is asked */
		jsonw_open(&w, &b);
		jsonw_obj(&w);
		status_json(op->a, &w);
		jsonw_name(&w, "counts");
		if (err == NULL && db_nrows(rows) == 1) {
			text = db_bytes(rows, 0, 0);
			jsonw_raw(&w, text.p, text.n);
		} else {
			jsonw_null(&w);
		}
		jsonw_obj_end(&w);
		answer_json(op, &b);
	} else if (err != NULL) {
		op_refuse_err(op, err);
	} else if (db_nrows(rows) != 1) {
		op_refuse(op, FAILURE_NOT_FOUND, "there is no such object");
	} else {
		text = db_bytes(rows, 0, 0);
		buf_put(&b, text.p, text.n);
		answer_json(op, &b);
	}
	buf_free(&b);
}

/* One row more than the page was asked for: it says whether a page follows. */
static void
got_list(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct ipc_bytes text;
	struct jsonw w;
	struct buf b;
	int n, limit = (int)op->number;

	if (err != NULL) {
		/* a cursor of another list, or made up */
		if (err->failure == FAILURE_INVALID_PARAMS)
			op_refuse(op, FAILURE_INVALID_PARAMS, "unknown cursor");
		else
			op_refuse_err(op, err);
		return;
	}
	n = db_nrows(rows);
	buf_init(&b, IPC_BLOB_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "items");
	jsonw_arr(&w);
	for (int i = 0; i < n && i < limit; i++) {
		text = db_bytes(rows, i, 0);
		if (i > 0 && b.len + text.n > PAGE_BYTES)
			limit = i; /* the rest is on the next page */
		else
			jsonw_raw(&w, text.p, text.n);
	}
	jsonw_arr_end(&w);
	jsonw_name(&w, "next_cursor");
	if (n > limit) {
		text = db_bytes(rows, limit - 1, 1);
		jsonw_strn(&w, text.p, text.n);
	} else {
		jsonw_null(&w);
	}
	jsonw_obj_end(&w);
	answer_json(op, &b);
	buf_free(&b);
}

static void
run(struct op *op)
{
	struct query q;
	struct db_params p;

	memcpy(&q, op->buf.p, sizeof(q));
	db_params_init(&p);
	if (q.q->object) {
		if (q.q->by_name)
			db_p_str(&p, q.cursor);
		else if (strcmp(q.q->what, "status") != 0)
			db_p_id(&p, &op->id);
		db_query(op->a->db, &q.q->stmt, &p, got_object, op);
		return;
	}
	op->number = q.limit;
	db_p_str(&p, q.kind);
	db_p_str(&p, q.state);
	db_p_str(&p, q.cursor);
	db_p_i64(&p, (int64_t)q.limit + 1);
	db_query(op->a->db, &q.q->stmt, &p, got_list, op);
}

static int
copy(char *to, size_t max, struct ipc_bytes from)
{
	if (from.n > max)
		return -1;
	memcpy(to, from.p, from.n);
	to[from.n] = '\0';
	return 0;
}

int
adminq_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_admin_query m;
	struct query q = {0};
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	q.q = question_find(m.what);
	q.limit = m.limit == 0 ? LIMIT_STANDARD : m.limit;
	if (q.q == NULL || q.limit > LIMIT_MAX ||
	    copy(q.kind, FILTER_MAX, m.filter_kind) == -1 ||
	    copy(q.state, FILTER_MAX, m.filter_state) == -1 ||
	    copy(q.cursor, CURSOR_MAX, q.q->by_name ? m.id : m.cursor) == -1) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "unknown question, filter, cursor or limit");
		return 0;
	}
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	if (q.q->object && !q.q->by_name && strcmp(q.q->what, "status") != 0 &&
	    uuid_parse((const char *)m.id.p, m.id.n, &op->id) == -1) {
		op_refuse(op, FAILURE_NOT_FOUND, "there is no such object");
		return 0;
	}
	op->privileged = q.q->privileged;
	snprintf(op->text, sizeof(op->text), "%s", q.q->what);
	buf_put(&op->buf, &q, sizeof(q));
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		adminq_login(op, m.token, run);
	return 0;
}
