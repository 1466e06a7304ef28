/*
 * The vault's questions to the database, and the content that a reviewer reads.
 *
 * The vault decides; this file only stores. A hostile admind can refuse service
 * here, but anything that it made up would be worthless. The vault seals a
 * context only for an approval that bears the vault's own seal. A verifier that
 * the vault did not make does not open. A content that differs from the shown
 * content has another hash.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "approvals.h"
#include "audit.h"
#include "catalogue.h"
#include "ids.h"
#include "inner.h"
#include "log.h"
#include "login.h"

enum { AUDIT_SUBJECT_MAX = 512, AUDIT_DETAIL_MAX = 16 * 1024 };

/* Reads a request's content for the vault, with the newest policy and, where
 * two approvals are needed, the first approval. The vault sealed both. */
static const struct db_stmt content = {"approvals_content",
    "SELECT a.kind, a.state, coalesce(c.preimage, g.preimage, v.preimage),"
    " (SELECT p.seal FROM mcpbox.approval_policies p"
    " ORDER BY p.serial DESC LIMIT 1),"
    " (SELECT f.seal FROM mcpbox.approval_firsts f WHERE f.request_id = a.id)"
    " FROM mcpbox.approval_requests a"
    " LEFT JOIN mcpbox.call_requests c ON c.id = a.id"
    " LEFT JOIN mcpbox.grant_requests g ON g.id = a.id"
    " LEFT JOIN mcpbox.tool_versions v ON v.id = a.subject"
    " WHERE a.id = $1::uuid AND (c.preimage IS NOT NULL"
    " OR g.preimage IS NOT NULL OR v.preimage IS NOT NULL)",
    DB_FAST};
/* Reads a request for a reviewer. The fourth column, the circumstances, has
 * JSON members without braces. rejected_before has the last few rejections of
 * versions of the same tool or name, no matter who asked. Each reason is cut to
 * 500 characters, which are enough for a reviewer to find the rejected request.
 */
static const struct db_stmt whole = {"approvals_whole",
    "SELECT a.kind, a.state, coalesce(c.preimage, g.preimage, v.preimage),"
    " trim(BOTH '{}' FROM json_build_object('tool_id', a.tool_id,"
    " 'server_id', a.server_id, 'server', split_part(s.name, '@', 1),"
    " 'tool', coalesce(v.name, t.name),"
    " 'exposed_name', v.exposed_name, 'version', v.version_no,"
    " 'version_id', v.id, 'requested_at', to_char(a.requested_at"
    " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'),"
    " 'requested_by', a.requested_by)::text)"
    " || ',\"notes\":' || to_json(a.notes)::text"
    " || ',\"decided_by\":' || coalesce(to_json(a.decided_by)::text, 'null')"
    " || ',\"decided_at\":' || coalesce(to_json(to_char(a.decided_at"
    " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'))::text, 'null')"
    " || ',\"reason\":' || to_json(a.reason)::text"
    " || CASE WHEN c.id IS NULL THEN '' ELSE ',\"used_at\":'"
    " || coalesce(to_json(to_char(c.used_at AT TIME ZONE 'UTC',"
    " 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'))::text, 'null')"
    " || ',\"execution\":' || coalesce(to_json(c.execution)::text, 'null') END"
    " || CASE WHEN a.kind = 'call' THEN ''"
    " ELSE ',' || mcpbox.approval_circumstances(a)"
    " || mcpbox.module_circumstances(a) END"
    /* rejections of other tools of this name count, too: a tool can be deleted
     * and made again */
    " || CASE WHEN a.kind <> 'tool' THEN '' ELSE coalesce((SELECT"
    " ',\"rejections\":' || max(r.n) || ',\"rejected_before\":'"
    " || json_agg(json_build_object('id', r.id,"
    " 'version', r.version_no, 'hash', encode(r.hash, 'hex'),"
    " 'decided_by', r.decided_by,"
    " 'decided_at', mcpbox.approval_time(r.decided_at),"
    " 'reason', left(r.reason, 500),"
    " 'reason_length', length(r.reason)) ORDER BY r.decided_at DESC)::text"
    " FROM (SELECT o.*, w.version_no, count(*) OVER () AS n"
    "  FROM mcpbox.approval_requests o"
    "  LEFT JOIN mcpbox.tool_versions w ON w.id = o.subject"
    "  WHERE o.id IN (SELECT x.id FROM mcpbox.approval_requests x"
    "   WHERE x.tool_id = a.tool_id UNION ALL SELECT x.id"
    "   FROM mcpbox.tool_versions y JOIN mcpbox.approval_requests x"
    "   ON x.tool_id = y.tool_id AND x.subject = y.id"
    "   WHERE y.exposed_name = v.exposed_name)"
    "  AND o.kind = 'tool' AND o.state = 'rejected' AND o.id <> a.id"
    "  ORDER BY o.decided_at DESC LIMIT 5) r),"
    " ',\"rejections\":0,\"rejected_before\":[]') END, x.seal"
    " FROM mcpbox.approval_requests a"
    " LEFT JOIN mcpbox.call_requests c ON c.id = a.id"
    " LEFT JOIN mcpbox.grant_requests g ON g.id = a.id"
    " LEFT JOIN mcpbox.tool_versions v ON v.id = coalesce(c.version_id,"
    " a.subject) JOIN mcpbox.servers s ON s.id = a.server_id"
    " LEFT JOIN mcpbox.tools t ON t.id = a.tool_id"
    " LEFT JOIN mcpbox.approval_seals x ON x.request_id = a.id"
    " WHERE a.id = $1::uuid AND (c.id IS NULL OR c.preimage IS NOT NULL)"
    " AND (c.id IS NOT NULL OR g.id IS NOT NULL OR a.kind = 'tool')",
    DB_FAST};
/* Reads the version with which a request of kind tool is compared: the serving
 * version, else the newest approved one, but never the request's own version.
 * No row: there is no such request. */
static const struct db_stmt base = {"approvals_base",
    "SELECT a.kind, coalesce(b.state, ''), b.preimage,"
    " CASE WHEN b.id IS NULL THEN '' ELSE '\"version\":' || b.version_no END,"
    " x.seal FROM mcpbox.approval_requests a LEFT JOIN LATERAL"
    " (SELECT v.* FROM mcpbox.tool_versions v"
    "  JOIN mcpbox.tools t ON t.id = v.tool_id"
    "  WHERE v.tool_id = a.tool_id AND v.state = 'approved'"
    "  AND v.id <> a.subject AND a.kind = 'tool'"
    "  ORDER BY v.id = t.serving_version DESC NULLS LAST, v.version_no DESC"
    "  LIMIT 1) b ON true"
    " LEFT JOIN mcpbox.approval_seals x ON x.subject = b.id"
    " WHERE a.id = $1::uuid",
    DB_FAST};
static const struct db_stmt decide = {"approvals_decide",
    "SELECT mcpbox.decide_approval($1::uuid, $2::bool, $3::bytea, $4::text,"
    " $5::timestamptz, $6::text, $7::bytea)",
    DB_SURE};
static const struct db_stmt first = {"approvals_first",
    "SELECT mcpbox.first_approval($1::uuid, $2::bytea, $3::text,"
    " $4::timestamptz, $5::bytea)",
    DB_SURE};
static const struct db_stmt admin = {"approvals_admin",
    "SELECT u.role, u.verifier, k.passkeys FROM (SELECT $1::text AS name) n"
    " LEFT JOIN mcpbox.admin_users u ON u.username = n.name"
    " LEFT JOIN mcpbox.admin_passkeys k ON k.username = n.name",
    DB_FAST};
static const struct db_stmt admin_store = {"approvals_admin_store",
    "SELECT mcpbox.admin_store($1::text, $2::text, $3::text, $4::text,"
    " $5::bytea)",
    DB_SURE};
static const struct db_stmt passkeys_store = {"approvals_passkeys_store",
    "SELECT mcpbox.passkeys_store($1::text, $2::text, $3::text, $4::text,"
    " $5::text, $6::bytea, $7::bytea)",
    DB_SURE};
static const struct db_stmt secret_store = {"approvals_secret",
    "SELECT mcpbox.secret_store($1::text, $2::text, $3::text, $4::bytea)",
    DB_SURE};
static const struct db_stmt audit = {"approvals_audit",
    "SELECT mcpbox.audit_append($1::text, $2::text, $3::text, $4::text)",
    DB_SURE};

static void
got_content(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct ipc_content m = {0};
	struct ipc_approval_content w = {0};

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	if (db_nrows(rows) != 1) {
		op_refuse(op, FAILURE_NOT_FOUND, "there is no such request");
		return;
	}
	if (op->link->role == IPC_ROLE_VAULT) {
		m.kind = db_bytes(rows, 0, 0);
		m.state = db_bytes(rows, 0, 1);
		m.preimage = db_bytes(rows, 0, 2);
		m.policy = db_bytes(rows, 0, 3);
		m.first = db_bytes(rows, 0, 4);
		op_answer(op, IPC_CONTENT, &m);
		return;
	}
	/* A viewer may not see the arguments of a call, here or in its
	 * record. */
	if (op->role < ADMIN_REVIEWER &&
	    ipc_streq(db_bytes(rows, 0, 0), "call")) {
		op_refuse(op, FAILURE_FORBIDDEN, "this role may not do this");
		return;
	}
	w.kind = db_bytes(rows, 0, 0);
	w.state = db_bytes(rows, 0, 1);
	w.preimage = db_bytes(rows, 0, 2);
	w.circumstances = db_bytes(rows, 0, 3);
	w.seal = db_bytes(rows, 0, 4);
	op_answer(op, IPC_APPROVAL_CONTENT, &w);
}

static void
read_content(struct op *op)
{
	struct db_params p;

	db_params_init(&p);
	db_p_id(&p, &op->id);
	db_query(op->a->db,
	    op->link->role == IPC_ROLE_VAULT ? &content
		: op->number == 1            ? &base
					     : &whole,
	    &p, got_content, op);
}

static int
content_get(struct link *l, struct ipc_frame *f)
{
	struct ipc_content_get m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op != NULL) {
		op->id = m.approval;
		read_content(op);
	}
	return 0;
}

static int
approval_get(struct link *l, struct ipc_frame *f)
{
	struct ipc_approval_get m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op != NULL) {
		op->id = m.approval;
		op->number = m.base;
		op->scope = SCRIPT_READ;
		login_check(op, m.token, read_content);
	}
	return 0;
}

/* ---- decisions ---- */

static void
decision_announced(void *arg)
{
	op_ok(arg);
}

/* Takes the database's answer. The vault gets OK only after the gateways
 * dropped their lists, so an administrator who approves a tool and then lists
 * tools sees it. */
static void
decided(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	audit_sign(op->a);
	if (op->number == 1)
		catalogue_announce(op->a, decision_announced, op);
	else
		op_ok(op);
}

static int
decision_store(struct link *l, struct ipc_frame *f)
{
	struct ipc_decision_store m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	op->number = m.approved == 1;
	db_params_init(&p);
	db_p_id(&p, &m.approval);
	if (m.approved == 2) {
		db_p_hash(&p, &m.content);
		db_p_text(&p, m.actor);
		db_p_time_us(&p, m.time_us != 0 ? m.time_us : now_us());
		db_p_bytes(&p, m.seal.p, m.seal.n);
		db_query(op->a->db, &first, &p, decided, op);
		return 0;
	}
	db_p_bool(&p, m.approved == 1);
	db_p_hash(&p, &m.content);
	db_p_text(&p, m.actor);
	db_p_time_us(&p, m.time_us != 0 ? m.time_us : now_us());
	db_p_text(&p, m.reason);
	db_p_bytes(&p, m.seal.p, m.seal.n);
	db_query(op->a->db, &decide, &p, decided, op);
	return 0;
}

/* ---- administrators, secrets ---- */

static void
got_admin(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct ipc_admin_record m = {0};

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	if (db_nrows(rows) == 1) {
		m.role = db_bytes(rows, 0, 0);
		m.verifier = db_bytes(rows, 0, 1);
		m.passkeys = db_bytes(rows, 0, 2);
	}
	op_answer(op, IPC_ADMIN_RECORD, &m);
}

static int
admin_lookup(struct link *l, struct ipc_frame *f)
{
	struct ipc_admin_lookup m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	db_params_init(&p);
	db_p_text(&p, m.username);
	db_query(op->a->db, &admin, &p, got_admin, op);
	return 0;
}

/* Answers, then lets calls end whose login the change ended. The order matters:
 * the vault ends logins when it reads this answer, at the latest. */
static void
people_changed(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct admind *a = ((struct op *)arg)->a;

	audit_db_ok(arg, rows, err);
	inner_judge(a);
}

static int
store_admin(struct link *l, struct ipc_frame *f)
{
	struct ipc_admin_store m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	db_params_init(&p);
	db_p_text(&p, m.change);
	db_p_text(&p, m.username);
	db_p_text(&p, m.role);
	db_p_text(&p, m.actor);
	db_p_bytes(&p, m.verifier.p, m.verifier.n);
	db_query(op->a->db, &admin_store, &p, people_changed, op);
	return 0;
}

static int
store_passkeys(struct link *l, struct ipc_frame *f)
{
	struct ipc_passkeys_store m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	db_params_init(&p);
	db_p_text(&p, m.change);
	db_p_text(&p, m.username);
	db_p_text(&p, m.role);
	db_p_text(&p, m.actor);
	db_p_text(&p, m.detail);
	db_p_bytes(&p, m.verifier.p, m.verifier.n);
	db_p_bytes(&p, m.passkeys.p, m.passkeys.n);
	db_query(op->a->db, &passkeys_store, &p, people_changed, op);
	return 0;
}

static int
store_secret(struct link *l, struct ipc_frame *f)
{
	struct ipc_secret_store m;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	db_params_init(&p);
	db_p_text(&p, m.server);
	db_p_text(&p, m.key);
	db_p_text(&p, m.actor);
	db_p_bytes(&p, m.value.p, m.value.n);
	db_query(op->a->db, &secret_store, &p, op_db_ok, op);
	return 0;
}

/* ---- audit events ---- */

/* Writes one line of text for the log's columns. A typed user name must not
 * make the row invalid, because failed logins could be hidden that way. */
static void
one_line(struct buf *out, struct ipc_bytes in, size_t max)
{
	size_t from = out->len;

	db_text_clean(out, in.p, in.n, max);
	for (size_t i = from; i < out->len; i++)
		if (out->p[i] < 0x20 || out->p[i] == 0x7f)
			out->p[i] = '?';
	if (out->len == from)
		buf_putc(out, '-');
}

static int
audit_event(struct link *l, struct ipc_frame *f)
{
	struct ipc_audit_event m;
	struct buf actor, subject;
	struct db_params p;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	buf_init(&actor, PRINCIPAL_MAX);
	buf_init(&subject, AUDIT_SUBJECT_MAX);
	one_line(&actor, m.actor, PRINCIPAL_MAX);
	one_line(&subject, m.subject, AUDIT_SUBJECT_MAX);
	db_params_init(&p);
	db_p_bytes(&p, actor.p, actor.len);
	db_p_text(&p, m.action);
	db_p_bytes(&p, subject.p, subject.len);
	if (m.detail.n > 0 && m.detail.n <= AUDIT_DETAIL_MAX)
		db_p_text(&p, m.detail);
	else
		db_p_str(&p, "{}");
	db_query(op->a->db, &audit, &p, people_changed, op);
	buf_free(&actor);
	buf_free(&subject);
	return 0;
}

int
approvals_message(struct link *l, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_CONTENT_GET:
		return content_get(l, f);
	case IPC_DECISION_STORE:
		return decision_store(l, f);
	case IPC_POLICY_LOAD:
	case IPC_POLICY_STORE:
		return policies_message(l, f);
	case IPC_ADMIN_LOOKUP:
		return admin_lookup(l, f);
	case IPC_ADMIN_STORE:
		return store_admin(l, f);
	case IPC_PASSKEYS_STORE:
		return store_passkeys(l, f);
	case IPC_SECRET_STORE:
		return store_secret(l, f);
	case IPC_AUDIT_EVENT:
		return audit_event(l, f);
	default:
		return approval_get(l, f);
	}
}
