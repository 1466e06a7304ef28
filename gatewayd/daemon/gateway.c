/*
 * The process's state, and its links to admind, which decides, and to sandboxd,
 * which runs. This process never tells them who may do what. The socket on
 * which a message arrives tells them which listener this is.
 */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "call.h"
#include "catalogue.h"
#include "daemon.h"
#include "ids.h"
#include "log.h"
#include "methods.h"
#include "origin.h"
#include "parked.h"
#include "quirk.h"
#include "stream.h"
#include "tasks.h"

static void attach(struct gateway *);

/* ---- the first connections ---- */

static void
open_doors(struct gateway *gw)
{
	if (gw->patience == NULL)
		return;
	event_free(gw->patience);
	gw->patience = NULL;
	httpd_accepting(gw->httpd, true);
}

static void
patience_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	open_doors(arg);
}

void
gateway_wait_for_links(struct gateway *gw)
{
	static const struct timeval tv = {PATIENCE_MS / 1000, 0};

	gw->patience = evtimer_new(gw->proc.base, patience_cb, gw);
	if (gw->patience == NULL)
		return;
	httpd_accepting(gw->httpd, false);
	if (event_add(gw->patience, &tv) < 0)
		open_doors(gw);
}

static void
link_came(struct gateway *gw)
{
	if (gw->attached && ipc_client_peer(gw->sandboxd) != NULL)
		open_doors(gw);
}

/* ---- the links ---- */

static void
attach_retry_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	attach(arg);
}

/* Takes GW_CONFIG: admind names the listener, which it knows by the socket, and
 * sends the session key. */
static void
attached(void *arg, struct ipc_frame *f, enum failure gone)
{
	static const struct timeval again = {0, RETRY_MS * 1000};
	struct gateway *gw = arg;
	struct ipc_gw_config m;
	struct refusal r;

	if (f != NULL && f->type == IPC_GW_CONFIG &&
	    ipc_decode(f, &m, NULL) == 0 && m.session_key.n == KEY_LEN) {
		memcpy(gw->session_key, m.session_key.p, KEY_LEN);
		gw->has_key = true;
		gw->attached = true;
		/* Tell streams the changes that were made while the link was
		 * down, and all messages that were due before. */
		if (!gw->seen || gw->revision != m.revision)
			stream_notify_lists(gw, STREAM_ALL_LISTS);
		gw->seen = true;
		gw->revision = m.revision;
		/* While the link was down, a person may have been withdrawn,
		 * or another access document set. admind knows no streams. */
		stream_check_all(gw);
		link_came(gw);
		log_event(LOG_LV_INFO, "attached", "to admind as listener %.*s",
		    (int)m.listener.n, (const char *)m.listener.p);
		return;
	}
	refusal_from(&r, f, gone, "admind");
	log_event(LOG_LV_WARN, "attach_failed", "%s", r.message);
	evtimer_add(gw->attach_retry, &again);
}

static void
attach(struct gateway *gw)
{
	struct ipc_gw_attach m = {0};
	struct ipc_peer *admind = ipc_client_peer(gw->admind);
	uint64_t id;

	/* Without a link, admind_up tries again. */
	if (admind != NULL && !gw->attached)
		ipc_request(admind, IPC_GW_ATTACH, &m, ADMIND_ASK_MS, attached,
		    gw, &id);
}

static void
forget(struct gateway *gw)
{
	catalogue_drop(gw);
	identity_cache_drop(gw->identities);
}

/* Forgets catalogues and identities, because an identity may have been revoked
 * while the link was down. Then attaches. */
static void
admind_up(struct ipc_peer *p, void *arg)
{
	struct gateway *gw = arg;

	(void)p;
	forget(gw);
	attach(gw);
}

static void
admind_down(struct ipc_peer *p, void *arg)
{
	struct gateway *gw = arg;

	(void)p;
	gw->attached = false;
	event_del(gw->attach_retry);
	gw_access_forget(gw);
	forget(gw);
}

static int
admind_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct gateway *gw = arg;
	struct ipc_catalogue_changed changed;
	struct ipc_session_ended ended;

	switch (f->type) {
	case IPC_CATALOGUE_CHANGED:
		if (ipc_decode(f, &changed, NULL) < 0)
			return -1;
		/* Forget before the answer. An approval, stop or revocation
		 * waits in admind for this answer, so from then on it holds
		 * here, too. */
		forget(gw);
		/* An admind that has just started announces its revision. The
		 * streams may have been told of this revision already. */
		if (gw->seen && changed.revision != gw->revision)
			stream_notify_lists(gw, changed.lists);
		gw->revision = changed.revision;
		/* An admind that stops takes no answer any more. That is no
		 * error here, since more frames of it may follow. */
		(void)ipc_answer_ok(p, f->request);
		return 0;
	case IPC_GW_ENDPOINTS:
		/* Lists have names that change with the endpoint, so its
		 * streams ask again. */
		identity_cache_drop(gw->identities);
		return gw_endpoints_take(gw, f, stream_endpoint_changed);
	case IPC_GW_ACCESS:
		if (gw_access_take(gw, f) < 0)
			return -1;
		/* Other people may come in from now on. */
		identity_cache_drop(gw->identities);
		return 0;
	case IPC_CREDENTIAL_ENDED:
		if (credential_ended(gw, f) < 0)
			return -1;
		(void)ipc_answer_ok(p, f->request);
		return 0;
	case IPC_DECIDED:
		return call_decided(gw, f);
	case IPC_TASK_CHANGED:
		return tasks_changed(gw, f);
	case IPC_SESSION_ENDED:
		if (ipc_decode(f, &ended, NULL) < 0)
			return -1;
		session_ended_add(gw->ended, &ended.session, ended.expires_ms,
		    now_us() / 1000);
		session_state_forget(gw->states, &ended.session);
		stream_session_ended(gw, &ended.session);
		return 0;
	default:
		return -1;
	}
}

static void
sandboxd_up(struct ipc_peer *p, void *arg)
{
	(void)p;
	link_came(arg);
}

/* sandboxd sends nothing but answers. */
static int
sandboxd_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	(void)p;
	(void)f;
	(void)arg;
	return -1;
}

/* Connects to a process by the socket that is named after this listener. */
static struct ipc_client *
client(struct gateway *gw, const char *process, enum ipc_role role,
    const struct ipc_handlers *h, struct err *err)
{
	char path[108];

	if (proc_socket_path(&gw->proc, process,
		gw->listener == LISTENER_TUNNEL ? "gateway-tunnel"
						: "gateway-local",
		path, sizeof(path), err) < 0)
		return NULL;
	return ipc_client_new(
	    gw->proc.base, path, process, IPC_ROLE_GATEWAY, role, h, gw, err);
}

static const struct ipc_handlers admind_handlers = {
    .up = admind_up, .message = admind_message, .down = admind_down};
static const struct ipc_handlers sandboxd_handlers = {
    .up = sandboxd_up, .message = sandboxd_message};

static const struct exchange_ops ops = {
    .serve_legacy = legacy_serve,
    .serve_modern = modern_serve,
    .delete_session = legacy_delete,
    .cancel = call_cancel,
};

/*
 * Returns the origin whose pages may call the local listener: the panel's. NULL
 * for none.
 *
 * The tunnel's listener ignores the setting. Its clients come from elsewhere,
 * and a page there needs allowed_origin. gateway_check has judged the text.
 */
static const char *
panel_origin(const struct gateway *gw)
{
	const char *origin = conf_str(gw->proc.conf, "panel_origin");

	return gw->listener == LISTENER_LOCAL && strcmp(origin, "-") != 0
	    ? origin
	    : NULL;
}

int
gateway_check(const struct conf *c, struct err *e)
{
	const char *origin = conf_str(c, "panel_origin");
	size_t n = origin_read(origin);

	if (strcmp(origin, "-") == 0 || (n > 0 && origin[n] == '\0'))
		return 0;
	return err_set(e, FAILURE_INVALID_PARAMS,
	    "panel_origin is an origin as browsers write it, such as "
	    "http://127.0.0.1:8000: a host in lower case, no path, no port 80 "
	    "of http or 443 of https; or - for none");
}

int
gateway_init(struct gateway *gw)
{
	gw->listener = listener_of(conf_str(gw->proc.conf, "listener"));
	gw->allowed_origins = conf_str(gw->proc.conf, "allowed_origin");
	gw->panel_origin = panel_origin(gw);
	gw->session_ttl_ms = (uint64_t)conf_int(gw->proc.conf, "session_ttl");
	gw->page_size = (size_t)conf_int(gw->proc.conf, "page_size");
	gw->quirks = quirk_settings(gw->proc.conf);
	gw->quiet_ms = QUIET_MS;
	gw->ops = &ops;
	TAILQ_INIT(&gw->catalogues);
	TAILQ_INIT(&gw->calls);
	TAILQ_INIT(&gw->exchanges);
	gw->ended = session_ended_new();
	gw->states = session_state_new();
	gw->parked = parked_set_new(gw->proc.base);
	gw->identities = identity_cache_new();
	gw->shares = share_new();
	gw->requests_max = (unsigned)conf_int(gw->proc.conf, "max_connections");
	if (stream_init(gw) < 0)
		return -1;
	gw->attach_retry = evtimer_new(gw->proc.base, attach_retry_cb, gw);
	return gw->ended == NULL || gw->states == NULL || gw->parked == NULL ||
		gw->identities == NULL || gw->shares == NULL ||
		gw->attach_retry == NULL
	    ? -1
	    : 0;
}

int
gateway_connect(struct gateway *gw, struct err *err)
{
	gw->admind =
	    client(gw, "admind", IPC_ROLE_ADMIND, &admind_handlers, err);
	if (gw->admind == NULL)
		return -1;
	gw->sandboxd =
	    client(gw, "sandboxd", IPC_ROLE_SANDBOXD, &sandboxd_handlers, err);
	return gw->sandboxd == NULL ? -1 : 0;
}

void
gateway_free(struct gateway *gw)
{
	/* The links are freed before the clients' connections. A modern client
	 * cancels by closing its connection, but here this process closes it.
	 * So nothing may be sent that ends the client's call, which goes on as
	 * after a crash (docs/decisions/0055). */
	stream_shutdown(gw);
	ipc_client_free(gw->sandboxd);
	gw->sandboxd = NULL;
	ipc_client_free(gw->admind);
	gw->admind = NULL;
	httpd_free(gw->httpd);
	gw->httpd = NULL;
	/* Run the loop once: each request that waits for an answer is told that
	 * no answer will come, and ends. */
	event_base_loop(gw->proc.base, EVLOOP_NONBLOCK);
	call_drop_all(gw);
	parked_set_free(gw->parked);
	if (gw->attach_retry != NULL)
		event_free(gw->attach_retry);
	if (gw->patience != NULL)
		event_free(gw->patience);
	gw->patience = NULL;
	catalogue_drop(gw);
	gw_access_forget(gw);
	gw_endpoints_free(gw);
	identity_cache_free(gw->identities);
	share_free(gw->shares);
	session_ended_free(gw->ended);
	stream_free(gw);
	session_state_free(gw->states);
	explicit_bzero(gw->session_key, sizeof(gw->session_key));
}
