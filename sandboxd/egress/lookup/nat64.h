/*
 * The prefixes by which this network leads to IPv4 (NAT64, RFC 6052), found as
 * RFC 7050 says: a name server that makes up IPv6 addresses for names without
 * any (DNS64) does so for ipv4only.arpa, whose IPv4 addresses are known.
 *
 * The prefixes are believed in one direction only: an address under one is
 * refused unless the IPv4 address in it is public too. So an attacker who
 * forges the answer can close addresses, which forging answers allows anyhow,
 * and open none. An attacker who hides the prefix leaves things as they were
 * without it. No tool takes part: the question is ours, and a tool's name
 * server is resolver.c.
 */
#ifndef NAT64_H
#define NAT64_H

#include <sys/queue.h>

#include "judge.h"
#include "lookup.h"

struct nat64;

typedef void nat64_cb(void *arg);

/* The wait of a connection; zeroed at first. */
struct nat64_wait {
	TAILQ_ENTRY(nat64_wait) link;
	struct nat64 *at; /* NULL: it does not wait */
	nat64_cb *cb;
	void *arg;
};

/* Finds the prefixes in the addresses of ipv4only.arpa, and keeps the first
 * JUDGE_PREFIXES_MAX. No I/O. */
void nat64_learn(const struct address *, size_t n, struct judge_prefixes *out);

/* Makes the finder, which asks by a resolver that lives longer. NULL without
 * memory. */
struct nat64 *nat64_open(struct lookup *);
/* Closes the finder, when no connection waits any more. */
void nat64_close(struct nat64 *);
/* Returns the prefixes as last told; none before. */
const struct judge_prefixes *nat64_prefixes(const struct nat64 *);
/* Waits for a fresh answer if the last one is too old. 1: asks, and calls cb
 * once from the loop, whether an answer came or not; 0: the answer is good; -1:
 * no memory to ask. */
int nat64_wait(struct nat64 *, struct nat64_wait *, nat64_cb *, void *arg);
/* Ends the wait; harmless if there is none. */
void nat64_leave(struct nat64_wait *);

#endif
