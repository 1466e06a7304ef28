/*
 * Connections of admind: the permitted peer of each socket, and the handlers of
 * its messages.
 *
 * A peer's rights follow from its socket: the role is fixed per listener, its
 * uid is checked at accept, and the IPC table checks every frame before this
 * code sees it. So a gateway at the tunnel's socket can never have the local
 * listener's rights, whatever it sends.
 */
#include <stdlib.h>
#include <string.h>

#include "activity.h"
#include "admind.h"
#include "log.h"
#include "openapi.h"
#include "sources.h"
#include "tasks.h"
#include "tokens.h"

/* Not for mcpboxctl, which comes and goes with each command. */
static void
note(const struct link *l, enum activity_kind kind)
{
	static const struct {
		enum ipc_role role;
		const char *process;
	} names[] = {{IPC_ROLE_GATEWAY, "gatewayd"},
	    {IPC_ROLE_WEB, "admind-http"}, {IPC_ROLE_CHECK, "admind-check"},
	    {IPC_ROLE_VAULT, "admind-vault"}, {IPC_ROLE_SANDBOXD, "sandboxd"}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].role == l->role)
			activity_note(l->a, kind, "", l->listener,
			    names[i].process, FAILURE_NONE, 1);
}

static void
link_up(struct ipc_peer *peer, struct admind *a, enum ipc_role role,
    enum listener listener)
{
	struct link *l = calloc(1, sizeof(*l));

	if (l == NULL) {
		ipc_peer_close(peer);
		return;
	}
	l->a = a;
	l->peer = peer;
	l->role = role;
	l->listener = listener;
	l->refs = 1;
	ipc_peer_set_data(peer, l);
	note(l, ACTIVITY_PROCESS_UP);
}

static void
link_down(struct ipc_peer *peer, void *arg)
{
	struct link *l = ipc_peer_data(peer);

	if (l == NULL)
		return;
	note(l, ACTIVITY_PROCESS_DOWN);
	l->peer = NULL;
	link_unref(l);
}

struct link *
link_ref(struct link *l)
{
	l->refs++;
	return l;
}

void
link_unref(struct link *l)
{
	if (l != NULL && --l->refs == 0)
		free(l);
}

void
link_answer(
    struct link *l, uint64_t request, enum ipc_type type, const void *msg)
{
	if (l->peer != NULL)
		(void)ipc_answer(l->peer, request, type, msg);
}

void
link_ok(struct link *l, uint64_t request)
{
	if (l->peer != NULL)
		(void)ipc_answer_ok(l->peer, request);
}

/* How long a client should wait before it tries again. */
static uint64_t
retry_after(enum failure f)
{
	switch (f) {
	case FAILURE_BUSY:
		return 200;
	case FAILURE_STORAGE_UNAVAILABLE:
	case FAILURE_SANDBOX_UNAVAILABLE:
	case FAILURE_VAULT_UNAVAILABLE:
	case FAILURE_UPGRADING:
		return 1000;
	default:
		return 0;
	}
}

void
link_refuse(
    struct link *l, uint64_t request, enum failure f, const char *message)
{
	if (l->peer != NULL)
		(void)ipc_refuse(l->peer, request, f, message, retry_after(f));
}

void
link_refuse_later(struct link *l, uint64_t request, enum failure f,
    const char *message, uint64_t retry_ms, const char *data)
{
	struct ipc_refused m = {.failure = (uint16_t)f,
	    .message = ipc_str(message),
	    .retry_after_ms = retry_ms != 0 ? retry_ms : retry_after(f),
	    .data = ipc_str(data)};

	if (l->peer != NULL)
		(void)ipc_answer(l->peer, request, IPC_REFUSED, &m);
}

/* ---- requests in work ---- */

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
	if (t->ops >= TOKEN_OPS_MAX)
		return err_set(err, FAILURE_BUSY,
		    "too many requests of this token are in work");
	op->token = token_ref(t);
	t->ops++;
	return 0;
}

void
op_free(struct op *op)
{
	op->a->nops--;
	op->a->tunnel_ops -= op->link->listener == LISTENER_TUNNEL;
	if (op->token != NULL)
		op->token->ops--;
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

/* ---- dispatch: one table row a message ---- */

struct route {
	enum ipc_type type;
	int (*handle)(struct link *, struct ipc_frame *);
};

static const struct route routes[] = {
    {IPC_DOCTOR, doctor_message},
    {IPC_GW_ATTACH, auth_message},
    {IPC_AUTHENTICATE, auth_message},
    {IPC_SESSION_END, auth_message},
    {IPC_CATALOGUE_GET, catalogue_message},
    {IPC_AUTHORISE, call_message},
    {IPC_TASK_GET, tasks_message},
    {IPC_TASK_UPDATE, tasks_message},
    {IPC_TASK_CANCEL, tasks_message},
    {IPC_RECORD, records_message},
    {IPC_EPOCH_BEGIN, records_message},
    {IPC_EPOCH_ITEM, records_message},
    {IPC_EPOCH_END, records_message},
    {IPC_RESULT_CHECK, results_message},
    {IPC_CONTENT_GET, approvals_message},
    {IPC_DECISION_STORE, approvals_message},
    {IPC_POLICY_LOAD, approvals_message},
    {IPC_POLICY_STORE, approvals_message},
    {IPC_ADMIN_LOOKUP, approvals_message},
    {IPC_ADMIN_STORE, approvals_message},
    {IPC_SECRET_STORE, approvals_message},
    {IPC_AUDIT_EVENT, approvals_message},
    {IPC_RENEW_GET, renew_message},
    {IPC_RENEW_STORE, renew_message},
    {IPC_RENEW_PHASE, renew_message},
    {IPC_AUDIT_READ, audit_message},
    {IPC_APPROVAL_GET, approvals_message},
    {IPC_ADMIN_QUERY, adminq_message},
    {IPC_ADMIN_ACTION, adminact_message},
    {IPC_SOURCE_RUN, adminsources_message},
    {IPC_OAUTH_CALLBACK, adminsources_message},
    {IPC_OPENAPI_IMPORT, openapi_message},
    {IPC_EXPORT, transfer_message},
    {IPC_IMPORT, transfer_message},
    {IPC_LIMITS_SET, adminset_message},
    {IPC_MODULE_SET, adminset_message},
    {IPC_EXPOSE_SET, adminset_message},
    {IPC_ACTIVITY_FOLLOW, follow_message},
    {IPC_ACTIVITY_LEAVE, follow_message},
    {IPC_METRICS_GET, metrics_message},
    {IPC_TOKEN_CREATE, token_set_message},
    {IPC_TOKEN_REVOKE, token_set_message},
};

static int
on_message(struct ipc_peer *peer, struct ipc_frame *f, void *arg)
{
	struct link *l = ipc_peer_data(peer);

	if (l != NULL && drain_refuses(l, f))
		return 0;
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (routes[i].type == f->type)
			return l != NULL ? routes[i].handle(l, f) : -1;
	log_event(LOG_LV_ERR, "unrouted", "%s", ipc_name(f->type));
	return -1;
}

#define UP(name, role, listener)                      \
	static void name(struct ipc_peer *p, void *a) \
	{                                             \
		link_up(p, a, role, listener);        \
	}
UP(up_gw_local, IPC_ROLE_GATEWAY, LISTENER_LOCAL)
UP(up_gw_tunnel, IPC_ROLE_GATEWAY, LISTENER_TUNNEL)
UP(up_http, IPC_ROLE_WEB, LISTENER_NONE)
UP(up_ctl, IPC_ROLE_CTL, LISTENER_NONE)
UP(up_check, IPC_ROLE_CHECK, LISTENER_NONE)
UP(up_sandboxd, IPC_ROLE_SANDBOXD, LISTENER_NONE)
#undef UP

static void
up_vault(struct ipc_peer *p, void *a)
{
	link_up(p, a, IPC_ROLE_VAULT, LISTENER_NONE);
	auth_vault_up(a);
}

static void
down_sandboxd(struct ipc_peer *p, void *a)
{
	records_sandbox_down(a);
	link_down(p, a);
}

/* Another process may answer next: the verdicts of this one go with it. */
static void
down_check(struct ipc_peer *p, void *arg)
{
	struct admind *a = arg;

	verdicts_clear(&a->verdicts);
	link_down(p, a);
}

static struct ipc_server *
serve(struct admind *a, const char *name, enum ipc_role peer, uid_t uid,
    void (*up)(struct ipc_peer *, void *), struct err *err)
{
	struct ipc_handlers h = {up, on_message, link_down};
	char path[108];

	if (proc_socket_path(
		&a->proc, "admind", name, path, sizeof(path), err) == -1)
		return NULL;
	return ipc_server_new(a->proc.base, path, name, IPC_ROLE_ADMIND, peer,
	    &uid, 1, &h, a, err);
}

static struct ipc_client *
connect_to(struct admind *a, const char *process, enum ipc_role peer,
    void (*up)(struct ipc_peer *, void *),
    void (*down)(struct ipc_peer *, void *), struct err *err)
{
	struct ipc_handlers h = {up, on_message, down};
	char path[108];

	if (proc_socket_path(
		&a->proc, process, "admind", path, sizeof(path), err) == -1)
		return NULL;
	return ipc_client_new(
	    a->proc.base, path, process, IPC_ROLE_ADMIND, peer, &h, a, err);
}

int
links_listen(struct admind *a, struct err *err)
{
	const struct conf *c = a->proc.conf;

	a->gw_local = serve(a, "gateway-local", IPC_ROLE_GATEWAY,
	    conf_user(c, "gateway_local_user"), up_gw_local, err);
	if (a->gw_local == NULL)
		return -1;
	a->gw_tunnel = serve(a, "gateway-tunnel", IPC_ROLE_GATEWAY,
	    conf_user(c, "gateway_tunnel_user"), up_gw_tunnel, err);
	if (a->gw_tunnel == NULL)
		return -1;
	a->http = serve(
	    a, "http", IPC_ROLE_WEB, conf_user(c, "web_user"), up_http, err);
	if (a->http == NULL)
		return -1;
	/* uid 0 by SO_PEERCRED is an administrator: it could read the
	 * database and the master key anyway. */
	a->ctl = serve(a, "ctl", IPC_ROLE_CTL, 0, up_ctl, err);
	return a->ctl != NULL ? 0 : -1;
}

int
links_connect(struct admind *a, struct err *err)
{
	a->check = connect_to(
	    a, "admind-check", IPC_ROLE_CHECK, up_check, down_check, err);
	if (a->check == NULL)
		return -1;
	a->vault = connect_to(
	    a, "admind-vault", IPC_ROLE_VAULT, up_vault, link_down, err);
	if (a->vault == NULL)
		return -1;
	a->sandboxd = connect_to(
	    a, "sandboxd", IPC_ROLE_SANDBOXD, up_sandboxd, down_sandboxd, err);
	return a->sandboxd != NULL ? 0 : -1;
}
