/*
 * mcpbox-sandboxd-egress: the only way out of a runner. See DESIGN.md.
 */
#include <event2/event.h>

#include <netdb.h>
#include <seccomp.h>
#include <string.h>

#include "closer.h"
#include "confine.h"
#include "control.h"
#include "ipc_peer.h"
#include "log.h"
#include "lookup.h"
#include "meter.h"
#include "nat64.h"
#include "own.h"
#include "service.h"

/*
 * Adds to the base list: internet sockets, connect, and the socketpairs that a
 * runner gets for UDP and for its name server. bind is not added: it would make
 * a listener at an address of ours. Nor is socket() for AF_UNIX, which could
 * reach the suite's own sockets, or for AF_NETLINK: the netlink sockets were
 * opened before. Raw sockets need a capability, which this process lacks.
 */
static const struct confine_rule rules[] = {
    {SCMP_SYS(socket), 0, UINT64_MAX, AF_INET},
    {SCMP_SYS(socket), 0, UINT64_MAX, AF_INET6},
    {SCMP_SYS(socketpair), 0, UINT64_MAX, AF_UNIX},
    {SCMP_SYS(connect), -1, 0, 0},
};

/* Writes whether the layers of egress hold, for `doctor`. */
static void
say_layers(const struct egress *g, struct buf *layers)
{
	buf_putf(layers, "own_listeners=%s\n",
	    own_works(g->own) ? "enforced" : "missing");
	buf_putf(layers, "byte_counts=%s\n",
	    meter_works(g->meter) ? "enforced" : "missing");
	buf_putf(layers, "dns_servers=%s\n",
	    lookup_servers(g->lookup) > 0 ? "enforced" : "missing");
}

/* Checks the settings `never` and `dns_servers` for -t, without reading a file
 * of the machine: lookup_open reads resolv.conf only if no server is named. */
static int
check_lists(const struct conf *c, struct err *e)
{
	const char *servers = conf_str(c, "dns_servers");
	struct never never = {0};
	struct event_base *base;
	struct lookup *l;

	if (never_read(conf_str(c, "never"), &never, e) < 0)
		return -1;
	if (*servers == '\0')
		return 0;
	if ((base = event_base_new()) == NULL)
		return err_set(e, FAILURE_BUSY, "no memory");
	if ((l = lookup_open(base, servers, e)) != NULL)
		lookup_close(l);
	event_base_free(base);
	return l != NULL ? 0 : -1;
}

int
main(int argc, char **argv)
{
	static const struct confine_spec spec = {
	    .process = "egress",
	    .rules = rules,
	    .nrules = sizeof(rules) / sizeof(rules[0]),
	    .connect_tcp = true,
	    .landlock = true,
	    .landlock_signal_scope = true,
	    .seccomp = true,
	};
	static struct egress g;
	struct control *control = NULL;
	struct buf layers;
	struct err e;
	int rc;

	proc_check_with(check_lists);
	proc_start(&g.proc, "egress", argc, argv);
	if (closer_start(&e) < 0)
		log_fatal("closer", "%s", e.text);
	if (event_base_priority_init(g.proc.base, EGRESS_PRIORITIES) != 0)
		log_fatal("loop", "libevent: no priorities");
	for (size_t i = 0; i < EGRESS_CHAINS; i++)
		TAILQ_INIT(&g.chains[i]);
	TAILQ_INIT(&g.ready);
	g.connect_us =
	    (uint64_t)conf_int(g.proc.conf, "connect_timeout") * 1000;

	/* All that reads files or needs netlink sockets is opened here, because
	 * confine_self forbids both. */
	if (never_read(conf_str(g.proc.conf, "never"), &g.never, &e) < 0)
		log_fatal("config", "%s", e.text);
	if ((g.own = own_open(conf_str(g.proc.conf, "own_users"), &e)) ==
		NULL ||
	    (g.lookup = lookup_open(g.proc.base,
		 conf_str(g.proc.conf, "dns_servers"), &e)) == NULL ||
	    (g.meter = meter_open(&g, &e)) == NULL)
		log_fatal("start", "%s", e.text);
	if ((g.nat64 = nat64_open(g.lookup)) == NULL)
		log_fatal("start", "no memory");
	if ((control = control_open(
		 &g, conf_user(g.proc.conf, "sandboxd_user"), &e)) == NULL)
		log_fatal("listen", "%s", e.text);

	buf_init(&layers, 4096);
	if (confine_self(&spec, &layers, &e) != 0)
		log_fatal("confine", "%s", e.text);
	say_layers(&g, &layers);
	buf_putc(&layers, '\0');
	if (layers.failed)
		log_fatal("confine", "no memory");
	ipc_hello_set("mcpbox-sandboxd-egress", (const char *)layers.p);
	log_event(
	    LOG_LV_INFO, "ready", "%u name servers", lookup_servers(g.lookup));
	service_ready(g.proc.base, "serving");
	rc = proc_run(&g.proc);
	control_close(control);
	meter_close(g.meter);
	nat64_close(g.nat64);
	lookup_close(g.lookup);
	own_close(g.own);
	buf_free(&layers);
	return rc;
}
