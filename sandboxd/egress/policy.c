#include "policy.h"

#include <stdio.h>

#include "judge.h"
#include "own.h"

bool
policy_never(const struct egress *g, const struct address *a, uint16_t port,
    char *why, size_t n)
{
	const struct judge_verdict v = judge_address(a);
	struct address inner[JUDGE_INSIDE];
	const size_t inside = judge_inside(a, inner);
	bool never = never_has(&g->never, a, port);
	char text[ADDRESS_TEXT];

	address_text(a, text);
	for (size_t i = 0; i < inside; i++)
		never |= never_has(&g->never, &inner[i], port);
	if (never)
		snprintf(why, n, "%s is closed by this host's setting `never`",
		    text);
	else if (v.class == JUDGE_NEVER)
		snprintf(why, n, "%s is never open: %s (%s)", text, v.what,
		    v.source);
	return never || v.class == JUDGE_NEVER;
}

/*
 * What is never open comes first, since it says more than that a grant is
 * missing.
 */
bool
policy_address(const struct net *net, enum netgrant_proto proto,
    const struct address *a, uint16_t port, char *why, size_t n)
{
	const struct egress *g = net->egress;
	const struct judge_verdict v = judge_address(a);
	char text[ADDRESS_TEXT];

	if (policy_never(g, a, port, why, n))
		return false;
	address_text(a, text);
	if (v.class != JUDGE_PUBLIC &&
	    net_literal(net, proto, text, port) != NET_RIGHT) {
		snprintf(why, n,
		    "%s is not public (%s, %s): it needs a grant of this "
		    "address and port %u",
		    text, v.what, v.source, port);
		return false;
	}
	if (own_serves(g->own, proto, a, port)) {
		snprintf(why, n, "%s port %u is a listener of mcpbox itself",
		    text, port);
		return false;
	}
	return true;
}

bool
policy_closed(const struct net *net, enum netgrant_proto proto,
    const struct address *a, uint16_t port)
{
	const struct egress *g = net->egress;
	char why[128];

	return policy_never(g, a, port, why, sizeof(why)) ||
	    own_serves(g->own, proto, a, port);
}

bool
policy_granted(const struct net *net, enum netgrant_proto proto,
    const char *host, bool is_address, uint16_t port, char *why, size_t n)
{
	const char *udp = proto == NETGRANT_UDP ? "udp:" : "";

	switch (net_covers(net, proto, host, is_address, port)) {
	case NET_RIGHT:
		return true;
	case NET_UNDECLARED:
		snprintf(why, n,
		    "%s%.90s:%u is not among the hosts this version declares",
		    udp, host, port);
		return false;
	default:
		snprintf(why, n,
		    "%s%.90s:%u is not granted; mcpbox_request_network_access "
		    "asks for it",
		    udp, host, port);
		return false;
	}
}
