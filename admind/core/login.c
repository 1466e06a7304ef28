/*
 * Finds out which administrator sent a request.
 *
 * A web request carries the SHA-256 of a login token. This file sends it to the
 * vault, because only the vault knows who is logged in. The token itself never
 * comes to this process. So even if this process were taken over, it would have
 * no token that it could show as a person's login. The ctl socket admits uid 0
 * only.
 *
 * A script's key comes as the SHA-256 of the key, after a mark. The database is
 * asked for each request, since REST is not hot. So a revocation, an expiry and
 * another role of its maker hold at once, on every node. A key has
 * 256 random bits, so neither the time of a wrong guess nor a dump of the table
 * helps an attacker. Any program of this machine may send guesses, each a
 * look-up in an index. KEYS_ASKED_MAX bounds those under way, so that guesses
 * do not keep the database from calls.
 *
 * This is the only place that takes a key. The vault knows logins alone, so no
 * key does anything that the vault decides, even if this process is taken over.
 */
#include <string.h>

#include <stdio.h>

#include "ids.h"
#include "login.h"

enum { KEYS_ASKED_MAX = 8 };

static const struct db_stmt use_key = {"script_key_use",
    "SELECT name, state, allowed, role FROM"
    " mcpbox.script_key_use($1::bytea, $2::text)",
    DB_FAST};

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
	if (admin_action_role(m.role, &op->role) == -1 ||
	    op->role < op->least) {
		op_refuse(op, FAILURE_FORBIDDEN, "this role may not do this");
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

/* ---- a key ---- */

static unsigned keys_asked;

/* Gives the request the key's rights: those of its scope, and never more than
 * its maker has now. */
static void
key_found(struct op *op, const struct pg_result *rows)
{
	struct ipc_bytes name = db_bytes(rows, 0, 0);
	enum admin_role maker;
	struct err err;

	op->role =
	    op->scope == SCRIPT_READ ? ADMIN_VIEWER : ADMIN_ADMINISTRATOR;
	if (!ipc_streq(db_bytes(rows, 0, 1), "active")) {
		err_set(&err, FAILURE_UNAUTHENTICATED,
		    ipc_streq(db_bytes(rows, 0, 1), "expired")
			? "this key has expired"
			: "this key was revoked");
	} else if (!db_bool(rows, 0, 2)) {
		err_set(&err, FAILURE_FORBIDDEN, "this key lacks the scope %s",
		    script_scope_name(op->scope));
	} else if (db_null(rows, 0, 3) ||
	    admin_action_role(db_bytes(rows, 0, 3), &maker) == -1 ||
	    name.n == 0 || name.n > SCRIPT_KEY_NAME_MAX) {
		err_set(&err, FAILURE_INTERNAL, "malformed key");
	} else {
		if (maker < op->role)
			op->role = maker;
		if (op->role >= op->least) {
			snprintf(op->actor, sizeof(op->actor), "key:%.*s",
			    (int)name.n, (const char *)name.p);
			op->then(op);
			return;
		}
		err_set(&err, FAILURE_FORBIDDEN,
		    maker < op->least
			? "the maker of this key may not do this any more"
			: "no key may do this");
	}
	op_refuse_err(op, &err);
}

static void
key_asked(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;

	keys_asked--;
	if (err != NULL)
		op_refuse_err(op, err);
	else if (db_nrows(rows) != 1)
		op_refuse(
		    op, FAILURE_UNAUTHENTICATED, "this key is not known here");
	else
		key_found(op, rows);
}

bool
login_is_key(struct ipc_bytes token)
{
	size_t n = strlen(SCRIPT_KEY_MARK);

	return token.n > n && memcmp(token.p, SCRIPT_KEY_MARK, n) == 0;
}

static void
key_check(struct op *op, struct ipc_bytes token)
{
	size_t mark = strlen(SCRIPT_KEY_MARK);
	struct ipc_hash digest;
	struct db_params p;

	if (op->scope == SCRIPT_NEVER) {
		op_refuse(op, FAILURE_FORBIDDEN,
		    "no key may do this: a person does it, with a login");
	} else if (token.n != SCRIPT_KEY_DIGEST_TEXT ||
	    b64url_decode((const char *)token.p + mark, token.n - mark,
		digest.b) != (long)sizeof(digest.b)) {
		op_refuse(op, FAILURE_UNAUTHENTICATED, "malformed key");
	} else if (keys_asked >= KEYS_ASKED_MAX) {
		op_refuse(op, FAILURE_BUSY, "too many keys are looked up now");
	} else {
		keys_asked++;
		db_params_init(&p);
		db_p_hash(&p, &digest);
		db_p_str(&p, script_scope_name(op->scope));
		db_query(op->a->db, &use_key, &p, key_asked, op);
	}
}

void
login_check(struct op *op, struct ipc_bytes token, void (*then)(struct op *))
{
	struct ipc_session_lookup m = {0};
	struct err err;

	op->then = then;
	if (op->link->role == IPC_ROLE_CTL) {
		memcpy(op->actor, "root", sizeof("root"));
		op->role = ADMIN_ROOT;
		then(op);
		return;
	}
	if (login_is_key(token)) {
		key_check(op, token);
		return;
	}
	if (token.n != LOGIN_HASH_TEXT ||
	    b64url_decode((const char *)token.p, token.n, m.token.b) !=
		(long)sizeof(m.token.b)) {
		op_refuse(op, FAILURE_UNAUTHENTICATED, "not logged in");
		return;
	}
	if (ask(op->a->vault, IPC_SESSION_LOOKUP, &m, looked_up, op, &err) ==
	    -1)
		op_refuse_err(op, &err);
}
