/*
 * SOURCE_RUN: an administrator lists a source, imports from it, or authorises
 * it. OAUTH_CALLBACK: a browser came back from an authorization server.
 *
 * SOURCE_RUN is allowed for an administrator's login that the vault knows, or
 * uid 0, as with ADMIN_ACTION (adminact.c). OAUTH_CALLBACK comes without a
 * login, because a browser sends no SameSite=Strict cookie with another site's
 * redirect. Its only right comes from its parameter `state`: 256 random bits
 * that were told to one administrator and name the source. They are kept as a
 * hash, and are valid once and for ten minutes (decision 0051).
 */
#include <string.h>

#include "admin.h"
#include "login.h"
#include "oauth.h"
#include "sources.h"

enum { REDIRECT_MAX = 2048, CALLBACK_MAX = 8192 };

static void
ended(void *arg, const struct sources_end *e)
{
	struct op *op = arg;
	struct ipc_admin_json m = {.json = e->json};

	if (e->failure != FAILURE_NONE)
		op_refuse(op, e->failure, e->text);
	else
		op_answer(op, IPC_ADMIN_JSON, &m);
}

/* Runs the operation. op->buf has, for an import, names that each end in NUL
 * and, for an authorisation, the redirect URI. */
static void
run(struct op *op)
{
	switch ((enum source_op)op->number) {
	case SOURCE_DISCOVER:
		sources_discover(op->a, &op->id, op->actor, ended, op);
		return;
	case SOURCE_IMPORT:
		sources_import(op->a, &op->id, op->actor,
		    ipc_bytes(op->buf.p, op->buf.len), ended, op);
		return;
	case SOURCE_AUTHORISE:
		oauth_authorise(op->a, &op->id, op->actor,
		    ipc_bytes(op->buf.p, op->buf.len), ended, op);
		return;
	}
	op_refuse(op, FAILURE_INTERNAL, "no such operation");
}

static int
source_run(struct link *l, struct ipc_frame *f)
{
	struct ipc_source_run m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.op < SOURCE_DISCOVER || m.op > SOURCE_AUTHORISE ||
	    memchr(m.text.p, 0, m.text.n) != NULL ||
	    !utf8_valid(m.text.p, m.text.n) ||
	    (m.op == SOURCE_AUTHORISE && m.text.n > REDIRECT_MAX)) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "unknown operation, or malformed text");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->least = ADMIN_ADMINISTRATOR;
	op->id = m.source;
	op->number = m.op;
	buf_put(&op->buf, m.text.p, m.text.n);
	if (m.op == SOURCE_IMPORT && m.text.n > 0) {
		buf_putc(&op->buf, '\0');
		for (size_t i = 0; i < op->buf.len; i++)
			if (op->buf.p[i] == '\n')
				op->buf.p[i] = '\0';
	}
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, run);
	return 0;
}

static int
callback(struct link *l, struct ipc_frame *f)
{
	struct ipc_oauth_callback m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.state.n > 128 || m.code.n > CALLBACK_MAX ||
	    m.iss.n > REDIRECT_MAX || m.error.n > 256) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "these are not an authorization server's parameters");
		return 0;
	}
	if ((op = op_new(l, m.request)) != NULL)
		oauth_callback(l->a, &m, ended, op);
	return 0;
}

int
adminsources_message(struct link *l, struct ipc_frame *f)
{
	return f->type == IPC_SOURCE_RUN ? source_run(l, f) : callback(l, f);
}
