/*
 * The prefixes of IPv6 addresses that this network translates to IPv4 (NAT64,
 * RFC 6052). They are found as RFC 7050 says: a name server that makes up IPv6
 * addresses for names without any (DNS64) does so for ipv4only.arpa, too, and
 * the IPv4 addresses of that name are known.
 *
 * A prefix can only close addresses: an address with the prefix is refused
 * unless the IPv4 address in it is public, too. So an attacker who forges the
 * answer can open no address. He can close addresses, which forged answers
 * allow anyhow. An attacker who hides a prefix makes egress judge as if there
 * were no search for prefixes. No tool takes part: egress asks the question,
 * and a tool's name server is resolver.c.
 */
#ifndef NAT64_H
#define NAT64_H

#include <sys/queue.h>

#include "judge.h"
#include "lookup.h"

struct nat64;

typedef void nat64_cb(void *arg);

/* A connection's wait for the answer. The owner zeroes it before its first use.
 */
struct nat64_wait {
	TAILQ_ENTRY(nat64_wait) link;
	struct nat64 *at; /* NULL: it does not wait */
	nat64_cb *cb;
	void *arg;
};

/* Finds the prefixes in the addresses of ipv4only.arpa. *out gets the first
 * JUDGE_PREFIXES_MAX of the prefixes. No I/O. */
void nat64_learn(const struct address *, size_t n, struct judge_prefixes *out);

/* Makes the finder. The lookup, by which it asks, must live longer. NULL
 * without memory. */
struct nat64 *nat64_open(struct lookup *);
/* Closes the finder. No connection may be waiting. */
void nat64_close(struct nat64 *);
/* Returns the prefixes of the last answer; none before the first answer. */
const struct judge_prefixes *nat64_prefixes(const struct nat64 *);
/* Waits for a fresh answer if the last one is too old. 1: asks, and calls cb
 * once from the loop, whether an answer came or not; 0: the last answer is
 * fresh; -1: no memory to ask. */
int nat64_wait(struct nat64 *, struct nat64_wait *, nat64_cb *, void *arg);
/* Ends the wait; harmless if there is none. */
void nat64_leave(struct nat64_wait *);

#endif
