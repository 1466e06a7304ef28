/*
 * Requests whose answer comes later, and requests to the other processes.
 * links.c says which function takes which message.
 */
#include <stdlib.h>

#include "op.h"
#include "token.h"

struct op *
op_new(struct link *l, uint64_t request)
{
	struct op *op = NULL;

	if (l->a->nops < OPS_MAX &&
	    (l->listener != LISTENER_TUNNEL ||
		l->a->tunnel_ops < TUNNEL_OPS_MAX))
		op = calloc(1, sizeof(*op));
	if (op == NULL) {
		link_refuse(
		    l, request, FAILURE_BUSY, "too many requests are in work");
		return NULL;
	}
	op->a = l->a;
	op->a->nops++;
	op->a->tunnel_ops += l->listener == LISTENER_TUNNEL;
	op->link = link_ref(l);
	op->request = request;
	buf_init(&op->buf, IPC_BLOB_MAX);
	return op;
}

int
op_count(struct op *op, struct token *t, struct err *err)
{
	if (t == NULL)
		return 0;
	if (t->share->ops >= TOKEN_OPS_MAX)
		return err_set(err, FAILURE_BUSY,
		    "too many requests of this token are in work");
	op->token = token_ref(t);
	t->share->ops++;
	return 0;
}

void
op_free(struct op *op)
{
	op->a->nops--;
	op->a->tunnel_ops -= op->link->listener == LISTENER_TUNNEL;
	if (op->token != NULL)
		op->token->share->ops--;
	token_unref(op->token);
	link_unref(op->link);
	buf_free(&op->buf);
	free(op);
}

void
op_answer(struct op *op, enum ipc_type type, const void *msg)
{
	link_answer(op->link, op->request, type, msg);
	op_free(op);
}

void
op_ok(struct op *op)
{
	link_ok(op->link, op->request);
	op_free(op);
}

void
op_refuse(struct op *op, enum failure f, const char *message)
{
	link_refuse(op->link, op->request, f, message);
	op_free(op);
}

void
op_refuse_err(struct op *op, const struct err *err)
{
	op_refuse(op, err->failure, err->text);
}

void
op_refuse_lack(struct op *op, const struct lack *lack)
{
	link_refuse_lack(op->link, op->request, lack);
	op_free(op);
}

void
op_db_ok(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;

	if (err != NULL)
		op_refuse_err(op, err);
	else
		op_ok(op);
}

int
ask(struct ipc_client *c, enum ipc_type type, const void *msg,
    ipc_answer_cb *cb, void *arg, struct err *err)
{
	struct ipc_peer *peer = ipc_client_peer(c);
	uint64_t id;

	if (peer != NULL &&
	    ipc_request(peer, type, msg, ASK_MS, cb, arg, &id) == 0)
		return 0;
	switch (ipc_client_role(c)) {
	case IPC_ROLE_VAULT:
		return err_set(err, FAILURE_VAULT_UNAVAILABLE,
		    "the vault is not reachable");
	case IPC_ROLE_SANDBOXD:
		return err_set(err, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is not reachable");
	default:
		return err_set(
		    err, FAILURE_BUSY, "the checking process is not reachable");
	}
}

void
answer_err(struct ipc_frame *f, enum failure gone, struct err *err)
{
	struct ipc_refused r;
	char *text;

	if (f == NULL) {
		err_set(err, gone, "a process did not answer");
		return;
	}
	if (f->type != IPC_REFUSED || ipc_decode(f, &r, NULL) == -1) {
		err_set(
		    err, FAILURE_INTERNAL, "unexpected %s", ipc_name(f->type));
		return;
	}
	text = ipc_strdup(r.message);
	err_set(err,
	    r.failure > 0 && r.failure < FAILURE_COUNT ? r.failure
						       : FAILURE_INTERNAL,
	    "%s", text != NULL ? text : "refused");
	free(text);
}
