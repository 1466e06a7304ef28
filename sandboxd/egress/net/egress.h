/*
 * mcpbox-sandboxd-egress: the declarations that its files share. One process,
 * one loop; a net is one call that may connect (net.h), an attempt one
 * connect(2) of its runner (attempt.h).
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
	EGRESS_CHAINS = 256, /* of the table of nets: some tens are open */
	/* Attempts under way at once: each may hold some descriptors. Others
	 * wait: a net's in its own order, nets in turn. */
	EGRESS_RUNNING_MAX = 512,
	EGRESS_RUNNING_NET = 64,
	/* Events of the endless senders among runners, datagrams and questions,
	 * have the last of three priorities, and give way after each: one call
	 * has a hundred such sockets, and other calls' connects would meet
	 * them. */
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
	bool pumping;        /* attempt.c starts them */
	uint64_t connect_us; /* from connect(2) to its answer, at most */
};

#endif
