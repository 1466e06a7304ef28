/*
 * The verdict on a connection, by the hosts that the user named (--net) and the
 * address policy that tools have (egress/address/judge.h).
 *
 * A name is open if a line names it. Each of its addresses must be public, or
 * be named itself with this port: so a name that an attacker points to a
 * machine of the local network opens nothing. Metadata services, link-local
 * addresses and the like are never open.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "net.h"
#include "netgrant.h"

static struct ipc_bytes
hosts(const struct plan *p)
{
	return ipc_bytes(p->net.p, p->net.len);
}

static bool
covered(const struct plan *p, const char *host, bool is_address, uint16_t port,
    bool literal)
{
	struct ipc_bytes list = hosts(p);
	struct netgrant g = {.proto = NETGRANT_TCP};

	while (netgrant_next(&list, &g, NULL) == 1) {
		if (literal && (g.any || g.form != GRANT_HOST_IP))
			continue;
		if (netgrant_covers(&g, false, NETGRANT_TCP, ipc_str(host),
			is_address, port))
			return true;
	}
	return false;
}

static const char *
open_bracket(const char *host)
{
	return strchr(host, ':') != NULL ? "[" : "";
}

static const char *
close_bracket(const char *host)
{
	return strchr(host, ':') != NULL ? "]" : "";
}

int
verdict_host(const struct plan *p, const char *host, bool is_address,
    uint16_t port, char why[NET_WHY_MAX])
{
	if (covered(p, host, is_address, port, false))
		return 0;
	(void)snprintf(why, NET_WHY_MAX, "not named: add --net %s%.160s%s:%u",
	    open_bracket(host), host, close_bracket(host), port);
	return -1;
}

int
verdict_address(const struct plan *p, const char *host, const struct address *a,
    uint16_t port, const struct judge_prefixes *nat64, char why[NET_WHY_MAX])
{
	const struct judge_verdict v = judge_address(a, nat64);
	char text[ADDRESS_TEXT];

	address_text(a, text);
	switch (v.class) {
	case JUDGE_PUBLIC:
		return 0;
	case JUDGE_LAN:
		if (covered(p, text, true, port, true))
			return 0;
		(void)snprintf(why, NET_WHY_MAX,
		    "its address %s is not public (%s): add --net %s%s%s:%u",
		    text, v.what, open_bracket(text), text, close_bracket(text),
		    port);
		return -1;
	case JUDGE_LOOPBACK:
		(void)snprintf(why, NET_WHY_MAX,
		    "it leads to this machine's loopback, which is never open");
		return -1;
	default:
		(void)snprintf(why, NET_WHY_MAX,
		    "its address %s is never open: %s (%s)", text, v.what,
		    v.source);
		return -1;
	}
}

bool
verdict_name(const struct plan *p, const char *name)
{
	return netgrant_names(hosts(p), ipc_str(name));
}
