/*
 * Finds out which administrator sent a request.
 *
 * A web request carries the SHA-256 of a login token. This file sends it to the
 * vault, because only the vault knows who is logged in. The token itself never
 * comes to this process. So even if this process were taken over, it would have
 * no token that it could show as a person's login. The ctl socket admits uid 0
 * only.
 */
#include <string.h>

#include "ids.h"
#include "login.h"

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
