/*
 * The hosts that the program may connect to, in the spelling that grants of
 * tools have (common/request/netgrant.h), and the ports that it may serve.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "grantreq.h"
#include "netgrant.h"
#include "plan.h"

/* Tells whether a line names this machine's loopback. Inside, these addresses
 * are the program's own. */
static bool
loopback(struct ipc_bytes line)
{
	struct netgrant g = {.proto = NETGRANT_TCP};

	if (netgrant_read(line, &g, NULL) == -1 || g.any ||
	    g.form != GRANT_HOST_IP)
		return false;
	return (g.host.n > 4 && memcmp(g.host.p, "127.", 4) == 0) ||
	    ipc_streq(g.host, "::1");
}

int
hosts_add(struct plan *p, const char *text, struct err *e)
{
	const size_t before = p->net.len;
	struct ipc_bytes line;

	if (p->nhosts == PLAN_HOSTS_MAX)
		return err_set(e, FAILURE_TOO_LARGE, "name at most %d hosts",
		    PLAN_HOSTS_MAX);
	if (grantreq_need(ipc_str(text), &p->net, NULL) == -1 ||
	    memcmp(p->net.p + before, "tcp ", 4) != 0)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "--net %.64s: give HOST, HOST:PORT, *.DOMAIN, an address "
		    "or [IPv6]:PORT, for TCP",
		    text);
	line = ipc_bytes(p->net.p + before, p->net.len - before);
	if (loopback(line))
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "--net %.64s: the program has a loopback of its own; name "
		    "another address of this machine",
		    text);
	buf_putc(&p->net, '\n');
	if (p->net.failed)
		return err_set(e, FAILURE_BUSY, "no memory");
	p->nhosts++;
	return 0;
}

int
hosts_publish(struct plan *p, const char *text, struct err *e)
{
	unsigned long port;
	char *end;

	errno = 0;
	port = strtoul(text, &end, 10);
	if (*text < '1' || *text > '9' || *end != '\0' || errno != 0 ||
	    port > UINT16_MAX)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "--publish %.64s: give a port, 1 to 65535", text);
	for (size_t i = 0; i < p->nports; i++)
		if (p->port[i] == port)
			return 0;
	if (p->nports == PLAN_PORTS_MAX)
		return err_set(e, FAILURE_TOO_LARGE, "publish at most %d ports",
		    PLAN_PORTS_MAX);
	p->port[p->nports++] = (uint16_t)port;
	return 0;
}
