/*
 * ADMIN_ACTION: all changes that an administrator makes without the vault, by
 * one SQL statement (common/admin/admin_action.h).
 *
 * Actions are allowed for admind-http with the token of a login that the vault
 * knows, and for the socket that admits uid 0. The login's role is compared
 * here with the role in the table of actions, before PostgreSQL gets the
 * action. The vault has checked the whole token, both its halves. A taken-over
 * admind-http gains the rights of the logins that pass through it, for as long
 * as these logins live. Without a login it gains nothing. Actions of uid 0
 * alone need the role ADMIN_ROOT, which no login has. A script's key does the
 * actions whose rows name its scope. No request of a language
 * model leads here: no management tool makes an action, and a gateway may not
 * send this message.
 *
 * This process does not read the body, which is JSON. PostgreSQL reads it, as a
 * parameter. Names of actions come from the table, so no part of a message
 * becomes part of a statement.
 */
#include <string.h>

#include "admin.h"
#include "audit.h"
#include "catalogue.h"
#include "limits.h"
#include "login.h"
#include "regrant.h"

static const struct db_stmt act = {"adminact",
    "SELECT mcpbox.admin_act($1::text, $2::text, $3::text, $4::text,"
    " $5::bytea, $6::text, $7::text)",
    DB_SURE};

/* The beginning of op->buf. The id, the key and the body follow, in this
 * order. */
struct head {
	const struct admin_action *action;
	size_t id, key, body;
	bool seen;
};

static struct head
head_of(const struct op *op)
{
	struct head h;

	memcpy(&h, op->buf.p, sizeof(h));
	return h;
}

/* Sends the answer from op->buf, which no longer has the message's parts. */
static void
told(void *arg)
{
	struct op *op = arg;
	struct ipc_admin_json m = {.json = ipc_bytes(op->buf.p, op->buf.len)};

	op_answer(op, IPC_ADMIN_JSON, &m);
}

static void
regranted(void *arg, bool in_force)
{
	struct op *op = arg;

	/* Repeated with the same Idempotency-Key, the request comes here again
	 * and changes nothing twice. */
	if (!in_force) {
		op_refuse(op, FAILURE_BUSY,
		    "it was done, but calls that run could not be told yet; "
		    "they will be");
		return;
	}
	catalogue_announce(op->a, told, op);
}

/*
 * Takes the database's answer. The change may concern a setting, a limit or the
 * set of callable tools. No remembered state may outlive the change, so that
 * the person who gets the answer can rely on the change. So before the answer
 * this process forgets such state (other nodes do so on NOTIFY), the sandbox
 * learns what its calls may connect to, and gateways drop lists that changed.
 */
static void
done(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct ipc_bytes json;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	json = db_bytes(rows, 0, 0);
	buf_clear(&op->buf);
	buf_put(&op->buf, json.p, json.n);
	audit_sign(op->a);
	serving_clear(&op->a->serving);
	limits_reload(op->a);
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY,
		    "it was done; there is no memory for the answer");
	else
		regrant_run(op->a, regranted, op);
}

static void
run(struct op *op)
{
	static const char *const roles[] = {
	    "viewer", "reviewer", "administrator", "root"};
	struct head h = head_of(op);
	const uint8_t *p = op->buf.p + sizeof(h);
	struct db_params q;

	db_params_init(&q);
	db_p_str(&q, h.action->name);
	db_p_str(&q, op->actor);
	db_p_str(&q, roles[op->role]);
	db_p_text(&q, ipc_bytes(p, h.id));
	if (h.seen)
		db_p_hash(&q, &op->hash);
	else
		db_p_null(&q);
	db_p_text(&q, ipc_bytes(p + h.id, h.key));
	db_p_text(&q, ipc_bytes(p + h.id + h.key, h.body));
	db_query(op->a->db, &act, &q, done, op);
}

int
adminact_message(struct link *l, struct ipc_frame *f)
{
	static const struct ipc_hash none;
	struct ipc_admin_action m;
	struct head h = {0};
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	h.action = admin_action_find(m.action);
	h.seen = memcmp(&m.seen, &none, sizeof(none)) != 0;
	if (h.action == NULL || m.id.n > ADMIN_ID_MAX ||
	    (m.key.n > 0 && !admin_action_key(m.key)) || m.body.n == 0 ||
	    memchr(m.body.p, 0, m.body.n) != NULL ||
	    !utf8_valid(m.body.p, m.body.n)) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "unknown action, or a malformed id, key or body");
		return 0;
	}
	if (h.action->seen == ADMIN_SEEN_REQUIRED && !h.seen) {
		link_refuse(l, m.request, FAILURE_HASH_REQUIRED,
		    "this change needs the hash of what was read");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	h.id = m.id.n;
	h.key = m.key.n;
	h.body = m.body.n;
	op->hash = m.seen;
	op->least = h.action->role;
	op->scope = h.action->scope;
	buf_put(&op->buf, &h, sizeof(h));
	buf_put(&op->buf, m.id.p, m.id.n);
	buf_put(&op->buf, m.key.p, m.key.n);
	buf_put(&op->buf, m.body.p, m.body.n);
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, run);
	return 0;
}
