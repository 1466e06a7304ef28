/*
 * The prefixes by which this network leads to IPv4 (NAT64, RFC 6052), found
 * as RFC 7050 says: a name server that makes IPv6 addresses up for names
 * without any (DNS64) does so for ipv4only.arpa, whose IPv4 addresses are
 * known.
 *
 * The prefixes are believed in one direction only: an address under one is
 * refused unless the IPv4 address in it is public too. So who forges the answer
 * can close addresses, which who forges answers can anyhow, and open none; who
 * hides the prefix leaves what there was without it. No tool takes part: the
 * question is ours, and a tool's name server is resolver.c.
 */
#ifndef NAT64_H
#define NAT64_H

#include <sys/queue.h>

#include "judge.h"
#include "lookup.h"

struct nat64;

typedef void nat64_cb(void *arg);

/* A connection that waits for the answer; zeroed at first. */
struct nat64_wait {
	TAILQ_ENTRY(nat64_wait) link;
	struct nat64 *at; /* NULL: it does not wait */
	nat64_cb *cb;
	void *arg;
};

/* Finds the prefixes in the addresses of ipv4only.arpa. No I/O. Of more than
 * JUDGE_PREFIXES_MAX the first are kept. */
void nat64_learn(const struct address *, size_t n, struct judge_prefixes *out);

/* Asks by a resolver that lives longer. NULL without memory. */
struct nat64 *nat64_open(struct lookup *);
/* Nobody may wait any more. */
void nat64_close(struct nat64 *);
/* The prefixes as last told; none before. */
const struct judge_prefixes *nat64_prefixes(const struct nat64 *);
/* Is that answer too old? 1: asks, and calls cb once from the loop, whether an
 * answer came or not; 0: it is good; -1: no memory to ask. */
int nat64_wait(struct nat64 *, struct nat64_wait *, nat64_cb *, void *arg);
/* Harmless where it does not wait. */
void nat64_leave(struct nat64_wait *);

#endif
