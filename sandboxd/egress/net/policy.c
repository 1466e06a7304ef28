#include "policy.h"

#include <stdio.h>

#include "judge.h"
#include "nat64.h"
#include "own.h"

/* Tells whether the address is closed, whatever is granted. */
static bool
closed(const struct egress *g, const struct address *a, uint16_t port,
    char *why, size_t n)
{
	const struct judge_prefixes *nat64 = nat64_prefixes(g->nat64);
	const struct judge_verdict v = judge_address(a, nat64);
	struct address inner[JUDGE_INSIDE];
	const size_t inside = judge_inside(a, nat64, inner);
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

enum policy
policy_address(const struct net *net, enum netgrant_proto proto,
    const struct address *a, uint16_t port, char *why, size_t n)
{
	const struct egress *g = net->egress;
	const struct judge_prefixes *nat64 = nat64_prefixes(g->nat64);
	const struct judge_verdict v = judge_address(a, nat64);
	struct address inner[JUDGE_INSIDE];
	const size_t inside = judge_inside(a, nat64, inner);
	char text[ADDRESS_TEXT];
	bool own;

	if (closed(g, a, port, why, n))
		return POLICY_NEVER;
	address_text(a, text);
	/* The inner addresses are checked, too: by a NAT64 gateway a packet can
	 * come back to this machine's public IPv4 address. */
	own = own_serves(g->own, proto, a, port);
	for (size_t i = 0; i < inside && !own; i++)
		own = own_serves(g->own, proto, &inner[i], port);
	if (own) {
		snprintf(why, n, "%s port %u is a listener of mcpbox itself",
		    text, port);
		return POLICY_NEVER;
	}
	if (v.class != JUDGE_PUBLIC &&
	    net_literal(net, proto, text, port) != NET_RIGHT) {
		snprintf(why, n,
		    "%s is not public (%s, %s): it needs a grant of this "
		    "address and port %u",
		    text, v.what, v.source, port);
		return POLICY_MISSING;
	}
	return POLICY_OPEN;
}

/*
 * Judges an address that a tool named itself. closed() is asked first, because
 * "never open" says more than "a grant is missing". policy_address, which looks
 * for a listener of ours, is asked only for a tool with a grant: the answer
 * would tell other tools that one of our processes listens there.
 */
enum policy
policy_literal(const struct net *net, enum netgrant_proto proto,
    const struct address *a, uint16_t port, char *why, size_t n)
{
	char text[ADDRESS_TEXT];
	enum policy p;

	if (closed(net->egress, a, port, why, n))
		return POLICY_NEVER;
	address_text(a, text);
	if ((p = policy_granted(net, proto, text, true, port, why, n)) !=
	    POLICY_OPEN)
		return p;
	return policy_address(net, proto, a, port, why, n);
}

enum policy
policy_granted(const struct net *net, enum netgrant_proto proto,
    const char *host, bool is_address, uint16_t port, char *why, size_t n)
{
	enum net_right right;

	right = net_covers(net, proto, host, is_address, port);
	if (right == NET_RIGHT)
		return POLICY_OPEN;
	snprintf(why, n, "%s%s", proto == NETGRANT_UDP ? "by UDP " : "",
	    net_missing(right));
	return POLICY_MISSING;
}
