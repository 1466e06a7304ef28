/*
 * mcpbox-gatewayd: the only process that reads bytes of MCP clients. Run
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
#include "daemon.h"
#include "front.h"
#include "httpd.h"
#include "log.h"
#include "proxyv2.h"
#include "service.h"

/* Writes the address, with its real port, to a file for other processes. A new
 * file is written and renamed, so that no process reads half of the address. */
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

/* The balancers that `proxy_protocol_from` names. */
static struct proxyv2_from balancers;

/* Checks the settings that are more than a word. -t does the same. */
static int
check(const struct conf *c, struct err *e)
{
	if (gateway_check(c, e) < 0)
		return -1;
	return proxyv2_from_read(
	    conf_str(c, "proxy_protocol_from"), &balancers, e);
}

static void
listen_http(struct gateway *gw, char *address, size_t len)
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
	    .bodies_max = EXCHANGE_BYTES_MAX,
	    .quiet_ms = gw->quiet_ms,
	};
	char host[64] = "", path[108];
	struct err err;
	unsigned wanted;
	uint16_t port = 0;
	bool tunnel = gw->listener == LISTENER_TUNNEL;
	int inherited = service_listener("http");

	if (check(c, &err) != 0)
		log_fatal("config", "%s", err.text);
	if (balancers.n > 0)
		l.proxy_from = &balancers;
	wanted = l.connections;
	l.connections = httpd_files(wanted, FILES_RESERVED);
	if (l.connections < wanted)
		log_event(LOG_LV_WARN, "max_connections",
		    "only %u of %u: the limit of open files is too low "
		    "(LimitNOFILE= of the unit)",
		    l.connections, wanted);
	/*
	 * Use the service manager's listener if there is one: then this process
	 * has no network at all, and connections wait while it is restarted.
	 * Otherwise open a listener. The tunnel's proxy is on this machine, so
	 * the tunnel's listener is a unix socket, which only the proxy can
	 * reach.
	 */
	if (inherited >= 0)
		gw->httpd = httpd_new_inherited(gw->proc.base, inherited, &l,
		    &front_handlers, gw, address, len, &err);
	else if (tunnel
		? proc_socket_path(&gw->proc, "gatewayd-tunnel", "mcp", path,
		      sizeof(path), &err) < 0
		: conf_address(c, "listen", host, sizeof(host), &port) < 0)
		log_fatal("listen", "%s", tunnel ? err.text : "bad address");
	else
		gw->httpd =
		    httpd_new(gw->proc.base, host, port, tunnel ? path : NULL,
			&l, &front_handlers, gw, address, len, &err);
	if (gw->httpd == NULL)
		log_fatal("listen", "%s", err.text);
	write_address(conf_str(c, "addr_file"), address);
	if (inherited >= 0)
		gateway_wait_for_links(gw);
	log_event(LOG_LV_INFO, "listening", "on %s", address);
}

/* For the line that `systemctl status` shows. */
struct status {
	const struct gateway *gw;
	char address[128];
};

static void
say_status(char *buf, size_t len, void *arg)
{
	const struct status *s = arg;

	snprintf(buf, len, "%s listener on %s, %u connections, %s",
	    conf_str(s->gw->proc.conf, "listener"), s->address,
	    httpd_connections(s->gw->httpd),
	    !s->gw->attached ? "waiting for admind"
		: ipc_client_peer(s->gw->sandboxd) == NULL
		? "waiting for sandboxd"
		: "serving");
}

int
main(int argc, char **argv)
{
	/* In addition to the base list of system calls this process needs only
	 * to reconnect: it opens no file and no other socket after start. */
	static const struct confine_spec spec = {.process = "gatewayd",
	    .connect_unix = true,
	    .landlock = true,
	    .landlock_signal_scope = true,
	    .seccomp = true};
	static struct gateway gw;
	static struct status status = {.gw = &gw};
	char line[256];
	struct buf layers;
	struct ipc_hash warm;
	struct err err;
	size_t i;
	int rc;

	proc_check_with(check);
	proc_start(&gw.proc, "gatewayd", argc, argv);
	if (gateway_init(&gw) < 0)
		log_fatal("start", "out of memory");
	listen_http(&gw, status.address, sizeof(status.address));
	/* libcrypto loads its providers at first use. So use libcrypto now,
	 * before confine_self takes away the right to open files. */
	sha256("", 0, &warm);
	hmac_sha256(gw.session_key, "", 0, &warm);

	buf_init(&layers, 4096);
	if (confine_self(&spec, &layers, &err) < 0)
		log_fatal("confine", "%s", err.text);
	buf_putc(&layers, '\0');
	if (layers.failed)
		log_fatal("confine", "out of memory");
	ipc_hello_set("gatewayd", (const char *)layers.p);
	for (i = 0; i < layers.len; i++)
		if (layers.p[i] == '\n')
			layers.p[i] = ' '; /* one line in the log */
	log_event(LOG_LV_INFO, "confined", "%s", (const char *)layers.p);
	buf_free(&layers);

	if (gateway_connect(&gw, &err) < 0)
		log_fatal("socket", "%s", err.text);
	log_event(LOG_LV_INFO, "ready", "serving the %s listener",
	    conf_str(gw.proc.conf, "listener"));
	service_status_from(say_status, &status);
	say_status(line, sizeof(line), &status);
	service_ready(gw.proc.base, line);
	proc_on_stop(&gw.proc, drain_start, &gw);
	rc = proc_run(&gw.proc);

	gateway_free(&gw);
	return rc;
}
