/*
 * mcpbox-admind-http: the admin REST API. See DESIGN.md in this folder.
 */
#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "confine.h"
#include "log.h"
#include "origins.h"
#include "panel.h"
#include "policy.h"
#include "problem.h"
#include "proc.h"
#include "reads.h"
#include "reply.h"
#include "routes.h"
#include "service.h"
#include "web.h"

enum {
	HOST_MAX = 64,
	ADDRESS_MAX = 128, /* host and port, or an inherited socket's path */
	PATH_BYTES_MAX = 4096,
	/* How long clients wait at the start for the links to admind and the
	 * vault. After that, an answer with a failure is better. */
	PATIENCE_MS = 2000,
	/* Descriptors in addition to those of clients: listener, log, links,
	 * and connections to which a refusal is still being sent. */
	FILES_RESERVED = 128,
	QUIET_MS = 15 * 1000 /* after this silence a tail sends a comment */
};

static struct web web;
/* Clients wait at an inherited listener until admind and the vault are both
 * connected, or this timer fires. */
static struct event *patience;
static struct proc proc;

/* Writes the address to a file, for programs that let the system choose the
 * port. The file is written under another name and renamed, so that a reader
 * sees the whole address or none. */
static int
write_address(const char *path, const char *address, struct err *e)
{
	char tmp[PATH_BYTES_MAX], line[ADDRESS_MAX + 2];
	int fd, n, rc = -1;

	n = snprintf(tmp, sizeof(tmp), "%s.new", path);
	if (n < 0 || (size_t)n >= sizeof(tmp))
		return err_set(e, FAILURE_INTERNAL, "addr_file is too long");
	n = snprintf(line, sizeof(line), "%s\n", address);
	fd = open(
	    tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return err_sys(e, FAILURE_INTERNAL, "%s", tmp);
	if (fchmod(fd, 0644) < 0 || write(fd, line, (size_t)n) != n) {
		err_sys(e, FAILURE_INTERNAL, "%s", tmp);
		goto out;
	}
	if (rename(tmp, path) < 0) {
		err_sys(e, FAILURE_INTERNAL, "%s", path);
		goto out;
	}
	rc = 0;
out:
	close(fd);
	return rc;
}

/* Refuses messages. The table of IPC messages permits no request and no event
 * to this process. If it permits one later, -1 closes the connection. */
static int
no_messages(struct ipc_peer *peer, struct ipc_frame *f, void *arg)
{
	(void)arg;
	log_event(LOG_LV_WARN, "unexpected", "%s sent %s", ipc_peer_name(peer),
	    ipc_name(f->type));
	return -1;
}

/* Answers bytes that were no request with the same body as every other
 * refusal. */
static void
parser_refused(int status, const char *why, struct buf *out,
    const char **content_type, void *arg)
{
	(void)arg;
	if (status == 503) /* no room: nothing is wrong with the request */
		problem_body(out, status, FAILURE_BUSY, why, NULL, 1000);
	else
		problem_body(out, status,
		    status == 413 || status == 414 || status == 431
			? FAILURE_TOO_LARGE
			: FAILURE_INVALID_REQUEST,
		    why, "Send one well-formed HTTP/1.1 request.", 0);
	*content_type = "application/problem+json";
}

static void
answering(struct httpd_req *req, void *arg)
{
	(void)arg;
	reply_headers(req);
}

static void
open_doors(void)
{
	if (patience == NULL)
		return;
	event_free(patience);
	patience = NULL;
	httpd_accepting(web.httpd, true);
}

static void
patience_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	open_doors();
}

static void
wait_for_links(struct event_base *base)
{
	static const struct timeval tv = {PATIENCE_MS / 1000, 0};

	patience = evtimer_new(base, patience_cb, NULL);
	if (patience == NULL)
		return;
	httpd_accepting(web.httpd, false);
	if (event_add(patience, &tv) < 0)
		open_doors();
}

static void
link_up(struct ipc_peer *peer, void *arg)
{
	(void)peer;
	(void)arg;
	if (ipc_client_peer(web.admind) != NULL &&
	    ipc_client_peer(web.vault) != NULL)
		open_doors();
}

static struct ipc_client *
connect_to(struct proc *p, const char *process, enum ipc_role role)
{
	static const struct ipc_handlers handlers = {
	    .up = link_up, .message = no_messages};
	struct ipc_client *client;
	char path[128];
	struct err e;

	if (proc_socket_path(p, process, "http", path, sizeof(path), &e) < 0 ||
	    (client = ipc_client_new(p->base, path, process, IPC_ROLE_WEB, role,
		 &handlers, NULL, &e)) == NULL)
		log_fatal("client", "%s", e.text);
	return client;
}

/* The line of `systemctl status`. */
static void
say_status(char *buf, size_t len, void *arg)
{
	snprintf(buf, len, "on %s, %u connections, %s", (const char *)arg,
	    httpd_connections(web.httpd),
	    ipc_client_peer(web.admind) == NULL      ? "waiting for admind"
		: ipc_client_peer(web.vault) == NULL ? "waiting for the vault"
						     : "serving");
}

/* Ends requests that wait for another process, since drain_timeout is over.
 * Their clients are told that the work may or may not have been done, as if
 * that process were gone. */
static void
drain_late(void *arg)
{
	(void)arg;
	log_event(LOG_LV_WARN, "drain_timeout",
	    "requests under way are not waited for any longer");
	ipc_client_free(web.admind);
	ipc_client_free(web.vault);
	web.admind = web.vault = NULL;
}

static void
drain_done(void *arg)
{
	(void)arg;
	proc_end(&proc);
}

/* Ends the process: takes no new connection, ends live tails, and waits until
 * the requests are answered. */
static void
drain(void *arg)
{
	struct httpd_draining d = {
	    .ms = (uint64_t)conf_int(proc.conf, "drain_timeout"),
	    .late = drain_late,
	    .done = drain_done,
	};

	(void)arg;
	web.draining = true;
	tail_end_all();
	httpd_drain(web.httpd, &d);
}

/* Checks the settings that are more than a word, for -t and for the start. */
static int
check(const struct conf *c, struct err *e)
{
	if (origins_check(conf_str(c, "panel_origins"), e) < 0)
		return -1;
	return policy_check(conf_str(c, "mcp_url"), e);
}

int
main(int argc, char **argv)
{
	static const struct httpd_handlers handlers = {
	    .request = routes_request,
	    .gone = routes_gone,
	    .refused = parser_refused,
	    .answering = answering,
	    .large = routes_large,
	};
	static const struct confine_spec confinement = {
	    .process = "admind-http",
	    .connect_unix = true,
	    .landlock = true,
	    .landlock_signal_scope = true,
	    .seccomp = true,
	};
	struct httpd_limits limits = {0};
	char host[HOST_MAX], line[256], address[ADDRESS_MAX];
	struct buf layers;
	struct err e;
	uint16_t port;
	unsigned wanted;
	int rc, inherited;

	proc_check_with(check);
	proc_start(&proc, "admind-http", argc, argv);
	if (check(proc.conf, &e) < 0)
		log_fatal("config", "%s", e.text);
	policy_make(conf_str(proc.conf, "mcp_url"));
	web.origins = conf_str(proc.conf, "panel_origins");
	wanted = (unsigned)conf_int(proc.conf, "max_connections");
	limits.connections = httpd_files(wanted, FILES_RESERVED);
	if (limits.connections < wanted)
		log_event(LOG_LV_WARN, "max_connections",
		    "only %u of %u: the limit of open files is too low "
		    "(LimitNOFILE= of the unit)",
		    limits.connections, wanted);
	limits.connections_per_source = limits.connections;
	limits.header_ms = (uint64_t)conf_int(proc.conf, "header_timeout");
	limits.body_ms = (uint64_t)conf_int(proc.conf, "body_timeout");
	limits.idle_ms = (uint64_t)conf_int(proc.conf, "idle_timeout");
	limits.head_max = HTTP_HEAD_MAX;
	limits.body_max = WEB_BODY_MAX;
	limits.large_max = WEB_LARGE_MAX;
	limits.large_at_once = WEB_LARGE_AT_ONCE;
	limits.quiet_ms = QUIET_MS;
	if (metrics_load(&web, conf_str(proc.conf, "metrics_token_file"), &e) <
	    0)
		log_fatal("metrics_token_file", "%s", e.text);
	if (panel_load(&web, conf_str(proc.conf, "panel"), &e) < 0)
		log_fatal("panel", "%s", e.text);
	if (conf_address(proc.conf, "listen", host, sizeof(host), &port) < 0)
		log_fatal("listen", "the address is not numeric");
	/* The service manager's listener, else our own. */
	inherited = service_listener("http");
	web.base = proc.base;
	web.httpd = inherited >= 0
	    ? httpd_new_inherited(proc.base, inherited, &limits, &handlers,
		  &web, address, sizeof(address), &e)
	    : httpd_new(proc.base, host, port, NULL, &limits, &handlers, &web,
		  address, sizeof(address), &e);
	if (web.httpd == NULL)
		log_fatal("listen", "%s", e.text);
	web.ipv6 = address[0] == '[';
	if (inherited >= 0)
		wait_for_links(proc.base);
	if (write_address(conf_str(proc.conf, "addr_file"), address, &e) < 0)
		log_fatal("addr_file", "%s", e.text);

	buf_init(&layers, 4096);
	if (confine_self(&confinement, &layers, &e) < 0)
		log_fatal("confine", "%s", e.text);
	buf_putc(&layers, '\0');
	if (layers.failed)
		log_fatal("memory", "out of memory");
	ipc_hello_set("admind-http", (const char *)layers.p);
	for (size_t i = 0; i + 1 < layers.len; i++) /* one line in the log */
		if (layers.p[i] == '\n')
			layers.p[i] = ' ';
	log_event(LOG_LV_INFO, "confined", "%s", (const char *)layers.p);
	buf_free(&layers);

	web.admind = connect_to(&proc, "admind", IPC_ROLE_ADMIND);
	web.vault = connect_to(&proc, "admind-vault", IPC_ROLE_VAULT);
	log_event(LOG_LV_INFO, "ready", "listening on %s", address);
	service_status_from(say_status, address);
	say_status(line, sizeof(line), address);
	service_ready(proc.base, line);
	proc_on_stop(&proc, drain, NULL);
	rc = proc_run(&proc);
	if (patience != NULL)
		event_free(patience);
	httpd_free(web.httpd);
	panel_free(&web); /* after the server, which sends its bytes */
	ipc_client_free(web.admind);
	ipc_client_free(web.vault);
	conf_free(proc.conf);
	return rc;
}
