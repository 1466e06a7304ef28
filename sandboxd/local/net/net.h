/*
 * The network of a run: a process outside the namespaces that opens the ways
 * which the user named, and no others.
 *
 * No socket of the host ever enters the sandbox. The program's connect(2) stops
 * in a notification. This process looks the name up, judges the addresses,
 * connects outside, and then connects the program's own socket, inside the
 * program's network namespace, to a listener of ours there; between the two
 * connections it copies bytes (relay.c). So each call on the program's sockets
 * acts in the program's own empty namespace.
 */
#ifndef NET_H
#define NET_H

#include <sys/queue.h>

#include <stdbool.h>

#include "address.h"
#include "explain.h"
#include "names.h"
#include "plan.h"

struct event_base;
struct lookup;
struct nat64;

enum {
	/* Connections of a run at once, each with two descriptors and up to
	 * 128 KiB. A browser-like program needs some tens. */
	NET_RELAYS_MAX = 256,
	NET_ATTEMPTS_MAX = 64, /* connect(2)s that wait for us; others wait in
				* the kernel */
	/* A machine on the internet answers within some 100 ms; Linux itself
	 * repeats a SYN after 1, 3 and 7 s. */
	NET_DIAL_MS = 10 * 1000,    /* for one address */
	NET_ATTEMPT_MS = 30 * 1000, /* for all of a name */
	NET_HOST_MAX = 256,
	NET_WHY_MAX = 256,
	NET_DENIED_MAX = 64, /* told to the user, of one run */
};

/* The descriptors of the process; -1: not used. */
struct net_setup {
	const struct plan *plan;
	int listener; /* of the program's seccomp filter */
	int dns;      /* inside: UDP, 127.0.0.1:53 */
	int relay[2]; /* inside: TCP listeners, 127.0.0.1 and ::1 */
	int dialer;   /* pid 1, which makes connections inside */
	int report;   /* takes struct plan_denied */
	int published[PLAN_PORTS_MAX]; /* outside: TCP listeners */
};

struct relay;
struct attempt;
TAILQ_HEAD(relays, relay);
TAILQ_HEAD(attempts, attempt);

struct net {
	const struct net_setup *setup;
	struct event_base *base;
	struct lookup *lookup;
	struct nat64 *nat64;
	struct names names;
	struct relays relays; /* copying */
	struct attempts attempts;
	unsigned nrelays, nattempts;
	unsigned told;          /* records of the report */
	struct event *readable; /* of setup->listener */
};

/* net.c: runs until it is killed. */
_Noreturn void net_main(const struct net_setup *);
/* Tells the user of a refusal, each host and port once. */
void net_deny(struct net *, const char *host, uint16_t port, const char *why);
/* Reads on from the listener after an attempt has ended. */
void net_resume(struct net *);

/* verdict.c: no I/O. 0: allowed; -1 with the reason. */
/* Judges a host that the program names: by its synthetic address, or by the
 * address itself. */
int verdict_host(const struct plan *, const char *host, bool is_address,
    uint16_t port, char why[NET_WHY_MAX]);
struct judge_prefixes;
/* Judges one address to which a host has led. */
int verdict_address(const struct plan *, const char *host,
    const struct address *, uint16_t port, const struct judge_prefixes *,
    char why[NET_WHY_MAX]);
/* Tells whether a name may be resolved. */
bool verdict_name(const struct plan *, const char *name);

/* resolver.c: answers the program's DNS questions. 0 or -1. */
int resolver_start(struct net *);

/* attempt.c: takes one notification of the listener. */
void attempt_take(struct net *);

/* relay.c */
/* Copies between two connected sockets until both ends have closed; takes both
 * over. 0, or -1: there are too many, or no memory; both are closed. */
int relay_start(struct net *, int inside, int outside);
/* Expects that a socket with this local address and port, inside, connects to
 * a listener of ours, and copies between it and `outside`, which is taken over.
 * 0 or -1. */
int relay_expect(struct net *, sa_family_t, uint16_t port, int outside);
/* Accepts at the listeners inside. 0 or -1. */
int relay_listen(struct net *);

/* publish.c: accepts at the published ports. 0 or -1. */
int publish_start(struct net *);

#endif
