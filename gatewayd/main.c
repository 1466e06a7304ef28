/*
 * mcpbox-gatewayd: the only process that reads what MCP clients send. Run
 * once per listener; see DESIGN.md in this folder.
 */
#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "confine.h"
#include "gateway.h"
#include "ids.h"
#include "log.h"

static void attach(struct gateway *);

static void
attach_retry_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	attach(arg);
}

/* GW_CONFIG: the listener as admind sees it by the socket, and the key. */
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

	/* Down: up() tries again. */
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

/* What was cached may have been revoked while nobody could tell us. */
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
		/* Dropped before it is answered: the approval, stop or
		 * revocation that waits for this answer then holds here. */
		forget(gw);
		return ipc_answer_ok(p, f->request);
	case IPC_SESSION_ENDED:
		if (ipc_decode(f, &ended, NULL) < 0)
			return -1;
		session_ended_add(gw->ended, &ended.session, ended.expires_ms,
		    now_us() / 1000);
		return 0;
	default:
		return -1;
	}
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

/* The address others read (port 0 becomes a real one). Written beside and
 * moved over, so that nobody reads half of it. */
static void
write_address(const char *path, const char *address)
{
	char tmp[4096];
	int fd;
	bool ok;

	if (snprintf(tmp, sizeof(tmp), "%s.new", path) >= (int)sizeof(tmp))
		log_fatal("addr_file", "%s: path is too long", path);
	fd = open(
	    tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		log_fatal("addr_file", "%s: %m", tmp);
	ok = fchmod(fd, 0644) == 0 && dprintf(fd, "%s\n", address) > 0;
	if (close(fd) < 0 || !ok || rename(tmp, path) < 0)
		log_fatal("addr_file", "%s: %m", path);
}

static void
listen_http(struct gateway *gw)
{
	const struct conf *c = gw->proc.conf;
	struct httpd_limits l = {
	    .connections = (unsigned)conf_int(c, "max_connections"),
	    .connections_per_source =
		(unsigned)conf_int(c, "max_connections_per_source"),
	    .header_ms = (uint64_t)conf_int(c, "header_timeout"),
	    .body_ms = (uint64_t)conf_int(c, "body_timeout"),
	    .idle_ms = (uint64_t)conf_int(c, "idle_timeout"),
	    .head_max = HTTP_HEAD_MAX,
	    .body_max = HTTP_BODY_MAX,
	};
	char host[64] = "", path[108], address[128];
	struct err err;
	uint16_t port = 0;
	bool tunnel = gw->listener == LISTENER_TUNNEL;

	/* The tunnel's proxy is on this machine: a unix socket, so that only
	 * it can reach the listener. */
	if (tunnel ? proc_socket_path(&gw->proc, "gatewayd-tunnel", "mcp", path,
			 sizeof(path), &err) < 0
		   : conf_address(c, "listen", host, sizeof(host), &port) < 0)
		log_fatal("listen", "%s", tunnel ? err.text : "bad address");
	gw->httpd = httpd_new(gw->proc.base, host, port, tunnel ? path : NULL,
	    &l, &front_handlers, gw, address, sizeof(address), &err);
	if (gw->httpd == NULL)
		log_fatal("listen", "%s", err.text);
	write_address(conf_str(c, "addr_file"), address);
	log_event(LOG_LV_INFO, "listening", "on %s", address);
}

/* sandboxd and admind are reached by a socket of this listener's own name. */
static struct ipc_client *
client(struct gateway *gw, const char *process, enum ipc_role role,
    const struct ipc_handlers *h)
{
	struct ipc_client *c;
	struct err err;
	char path[108];

	if (proc_socket_path(&gw->proc, process,
		gw->listener == LISTENER_TUNNEL ? "gateway-tunnel"
						: "gateway-local",
		path, sizeof(path), &err) < 0)
		log_fatal("socket", "%s", err.text);
	c = ipc_client_new(
	    gw->proc.base, path, process, IPC_ROLE_GATEWAY, role, h, gw, &err);
	if (c == NULL)
		log_fatal("socket", "%s", err.text);
	return c;
}

int
main(int argc, char **argv)
{
	static const struct ipc_handlers admind_handlers = {
	    .up = admind_up, .message = admind_message, .down = admind_down};
	static const struct ipc_handlers sandboxd_handlers = {
	    .message = sandboxd_message};
	/* Beyond the base list it needs nothing but reconnecting: it opens no
	 * file and no other socket after start. */
	static const struct confine_spec spec = {.process = "gatewayd",
	    .connect_unix = true,
	    .landlock = true,
	    .landlock_signal_scope = true,
	    .seccomp = true};
	static struct gateway gw;
	struct buf layers;
	struct ipc_hash warm;
	struct err err;
	const char *listener;
	int rc;

	proc_start(&gw.proc, "gatewayd", argc, argv);
	listener = conf_str(gw.proc.conf, "listener");
	gw.listener =
	    strcmp(listener, "tunnel") == 0 ? LISTENER_TUNNEL : LISTENER_LOCAL;
	gw.allowed_origins = conf_str(gw.proc.conf, "allowed_origin");
	gw.session_ttl_ms = (uint64_t)conf_int(gw.proc.conf, "session_ttl");
	TAILQ_INIT(&gw.catalogues);
	TAILQ_INIT(&gw.calls);
	TAILQ_INIT(&gw.exchanges);
	gw.ended = session_ended_new();
	gw.identities = identity_cache_new();
	gw.attach_retry = evtimer_new(gw.proc.base, attach_retry_cb, &gw);
	if (gw.ended == NULL || gw.identities == NULL ||
	    gw.attach_retry == NULL)
		log_fatal("start", "out of memory");
	listen_http(&gw);
	/* libcrypto loads its providers at first use: before files are shut. */
	sha256("", 0, &warm);
	hmac_sha256(gw.session_key, "", 0, &warm);

	buf_init(&layers, 4096);
	if (confine_self(&spec, &layers, &err) < 0)
		log_fatal("confine", "%s", err.text);
	buf_putc(&layers, '\0');
	log_event(LOG_LV_INFO, "confined", "%s",
	    layers.failed ? "" : (const char *)layers.p);
	ipc_hello_set("gatewayd", layers.failed ? "" : (const char *)layers.p);
	buf_free(&layers);

	gw.admind = client(&gw, "admind", IPC_ROLE_ADMIND, &admind_handlers);
	gw.sandboxd =
	    client(&gw, "sandboxd", IPC_ROLE_SANDBOXD, &sandboxd_handlers);
	log_event(LOG_LV_INFO, "ready", "serving the %s listener", listener);
	rc = proc_run(&gw.proc);

	/* What still waits is told that its peer is gone, which ends it. */
	ipc_client_free(gw.sandboxd);
	gw.sandboxd = NULL;
	ipc_client_free(gw.admind);
	gw.admind = NULL;
	httpd_free(gw.httpd);
	event_free(gw.attach_retry);
	catalogue_drop(&gw);
	identity_cache_free(gw.identities);
	session_ended_free(gw.ended);
	explicit_bzero(gw.session_key, sizeof(gw.session_key));
	return rc;
}
