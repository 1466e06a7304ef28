/*
 * Connections of admind: the permitted peer of each socket, and the handlers of
 * its messages.
 *
 * A peer's rights follow from its socket. Each socket has one role, the peer's
 * uid is checked at accept, and the IPC table checks every frame before this
 * code sees it. So a gateway at the tunnel's socket can never have the local
 * listener's rights, whatever it sends.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "activity.h"
#include "admin.h"
#include "approvals.h"
#include "audit.h"
#include "auth.h"
#include "call.h"
#include "catalogue.h"
#include "daemon.h"
#include "log.h"
#include "openapi.h"
#include "records.h"
#include "signin.h"
#include "tasks.h"

/* Notes a connection or its end in the activity log. mcpboxctl is left out,
 * because it connects for each command. */
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
	judging_link_gone(l);
	l->peer = NULL;
	link_unref(l);
}

/* ---- dispatch: one table row per message ---- */

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
    {IPC_TASK_DROP, tasks_message},
    {IPC_RECORD, records_message},
    {IPC_EPOCH_BEGIN, records_message},
    {IPC_EPOCH_ITEM, records_message},
    {IPC_EPOCH_END, records_message},
    {IPC_RESULT_CHECK, results_message},
    {IPC_CONTENT_GET, approvals_message},
    {IPC_DECISION_STORE, approvals_message},
    {IPC_POLICY_LOAD, approvals_message},
    {IPC_POLICY_STORE, approvals_message},
    {IPC_ACCESS_LOAD, access_store_message},
    {IPC_ACCESS_STORE, access_store_message},
    {IPC_ACCESS_REFRESH, adminkeys_message},
    {IPC_NOTIFY_TEST, adminnotify_message},
    {IPC_ADMIN_LOOKUP, approvals_message},
    {IPC_ADMIN_STORE, approvals_message},
    {IPC_PASSKEYS_STORE, approvals_message},
    {IPC_SECRET_STORE, approvals_message},
    {IPC_AUDIT_EVENT, approvals_message},
    {IPC_RENEW_GET, renew_message},
    {IPC_RENEW_STORE, renew_message},
    {IPC_RENEW_PHASE, renew_message},
    {IPC_AUDIT_READ, audit_message},
    {IPC_AUDIT_VERIFIED, audit_verified_message},
    {IPC_APPROVAL_GET, approvals_message},
    {IPC_ADMIN_QUERY, adminq_message},
    {IPC_ADMIN_ACTION, adminact_message},
    {IPC_SOURCE_RUN, adminsources_message},
    {IPC_OAUTH_CALLBACK, adminsources_message},
    {IPC_SIGNIN_LIST, signin_message},
    {IPC_SIGNIN_BEGIN, signin_message},
    {IPC_SIGNIN_BACK, back_message},
    {IPC_OPENAPI_IMPORT, openapi_message},
    {IPC_EXPORT, transfer_message},
    {IPC_IMPORT, transfer_message},
    {IPC_ACTIVITY_FOLLOW, follow_message},
    {IPC_ACTIVITY_LEAVE, follow_message},
    {IPC_METRICS_GET, metrics_message},
    {IPC_TOKEN_CREATE, token_set_message},
    {IPC_TOKEN_REVOKE, token_set_message},
    {IPC_SCRIPT_KEY_CREATE, script_keys_message},
    {IPC_SCRIPT_KEY_CHECK, script_keys_message},
    {IPC_PERSON_CALL, person_call_message},
};

static int
dispatch(struct link *l, struct ipc_frame *f)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (routes[i].type == f->type)
			return routes[i].handle(l, f);
	log_event(LOG_LV_ERR, "unrouted", "%s", ipc_name(f->type));
	return -1;
}

static int
on_message(struct ipc_peer *peer, struct ipc_frame *f, void *arg)
{
	struct link *l = ipc_peer_data(peer);

	if (l == NULL)
		return -1;
	if (drain_refuses(l, f) || judging_takes(l, f))
		return 0;
	return dispatch(l, f);
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
UP(up_sandboxd, IPC_ROLE_SANDBOXD, LISTENER_NONE)
#undef UP

static void
up_vault(struct ipc_peer *p, void *a)
{
	link_up(p, a, IPC_ROLE_VAULT, LISTENER_NONE);
	auth_vault_up(a);
	document_retry(a, true);
	ends_vault_up(a);
}

static void
up_check(struct ipc_peer *p, void *a)
{
	link_up(p, a, IPC_ROLE_CHECK, LISTENER_NONE);
	document_retry(a, true);
}

static void
down_sandboxd(struct ipc_peer *p, void *a)
{
	records_sandbox_down(a);
	link_down(p, a);
}

/* Drops all verdicts of this admind-check, because another process may answer
 * next. */
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

	a->dispatch = dispatch;
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
	/* A peer with uid 0 (by SO_PEERCRED) is an administrator. It could read
	 * the database and the master key anyway. */
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
