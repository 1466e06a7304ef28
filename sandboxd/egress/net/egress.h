/*
 * mcpbox-sandboxd-egress: the declarations that its files share. One process,
 * one loop; a net is one call that may connect (net.h), an attempt is one
 * connect(2) of the call's runner (attempt.h).
 */
#ifndef EGRESS_H
#define EGRESS_H

#include <sys/queue.h>

#include <stdbool.h>

#include "never.h"
#include "proc.h"

struct net;
struct lookup;
struct meter;
struct nat64;
struct own;

enum {
	EGRESS_CHAINS = 256, /* hash chains; some tens of nets are open */
	/* Attempts under way at once, of all nets and of one net: each may hold
	 * some descriptors. Other attempts wait: nets take turns, and a net's
	 * attempts start in their order. */
	EGRESS_RUNNING_MAX = 512,
	EGRESS_RUNNING_NET = 64,
	/* A runner can send datagrams and DNS questions without end, by a
	 * hundred sockets. So their events have the last of three priorities,
	 * and after each event the loop looks for other events first. Otherwise
	 * the connects of other calls would have to wait for all such sockets.
	 */
	EGRESS_PRIORITIES = 3,
	EGRESS_LAST = 2
};

TAILQ_HEAD(net_list, net);

struct egress {
	struct proc proc;
	struct never never;
	struct own *own;
	struct lookup *lookup;
	struct nat64 *nat64;
	struct meter *meter;
	struct net_list chains[EGRESS_CHAINS];
	struct net_list ready; /* nets with attempts that wait for their turn */
	unsigned running;
	bool pumping;        /* pump() in attempt.c is under way */
	uint64_t connect_us; /* from connect(2) to its answer, at most */
};

#endif
