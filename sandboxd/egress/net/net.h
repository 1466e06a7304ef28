/*
 * A net: the hosts that one call may connect to, its limits, and the records of
 * its connections. NET_OPEN makes it, NET_CLOSE ends it with a report.
 */
#ifndef NET_H
#define NET_H

#include "egress.h"
#include "ipc.h"
#include "ipc_peer.h"
#include "names.h"
#include "netgrant.h"
#include "record.h"

struct attempt;
struct finish;
struct flow;
struct relay;
struct resolver;

enum {
	/* refusals and failures of one call that are sent to sandboxd */
	NET_EVENTS_MAX = 64,
	NET_RATE_SECONDS = 60,
	/* DNS connections of one call at the same time. The resolver library of
	 * a tool keeps one connection for each look-up. */
	NET_RESOLVERS_MAX = 64,
	NET_RELAYS_MAX = 64 /* UDP sockets of one call at the same time */
};

TAILQ_HEAD(attempts, attempt);
TAILQ_HEAD(flows, flow);
TAILQ_HEAD(relays, relay);
TAILQ_HEAD(resolvers, resolver);

struct net {
	TAILQ_ENTRY(net) link, turn;
	struct egress *egress;
	struct ipc_peer *owner; /* sandboxd's connection that opened it */
	uint64_t id;
	struct ipc_id execution;
	uint8_t *
		requires,
			*
			grants; /* owned: lists as netgrant.h has them */
	size_t requires_len, grants_len;
	uint32_t connections_max, connections, refused, events;
	uint64_t bytes_max, bytes;
	uint64_t minute_max, second[NET_RATE_SECONDS], minute;
	uint64_t at_s; /* the last second that is counted in second[] */
	bool told_bytes, told_rate;
	bool over; /* connects no more: closing, or a limit is used up */
	struct names names;
	struct records records;
	struct attempts waiting, running;
	unsigned nrunning;
	bool in_turn; /* on egress->ready */
	struct flows flows;
	struct relays relays;
	struct resolvers resolvers;
	unsigned nrelays, nresolvers;
	/* of may_answer() in resolver.c: the answers so far have used up the
	 * time until this moment */
	uint64_t questions_us;
	uint64_t close_request; /* of NET_CLOSE, while last counts come in */
	bool closing;
	struct finish *finish; /* of meter.c, while closing */
};

/* The right to connect, or its missing part. */
enum net_right {
	NET_RIGHT = 0,
	NET_UNDECLARED = 1, /* the version does not declare the host */
	NET_UNGRANTED = 2,  /* the server is not granted the host */
	NET_NEITHER = 3     /* declaration and grant are missing */
};

struct net *net_find(struct egress *, uint64_t id);
/* Opens the net that a NET_OPEN asks for. NULL with the error. */
struct net *net_open(struct egress *, struct ipc_peer *owner,
    const struct ipc_net_open *, struct err *);
/* Replaces the grants from now on. 0, or -1 with err: the list is malformed, or
 * there is no memory; nothing changed. */
int net_grants(struct net *, struct ipc_bytes, struct err *);
void net_free(struct net *); /* after attempts, flows, ... are gone */

/* Returns NET_RIGHT if both lists, declared and granted, cover the host, else
 * the missing part. host: a name, or the text of an address. */
enum net_right net_covers(const struct net *, enum netgrant_proto,
    const char *host, bool is_address, uint16_t port);
/* Returns NET_RIGHT if both lists name this very address, as LAN and loopback
 * addresses need. The grant must name this very port, too. */
enum net_right net_literal(const struct net *, enum netgrant_proto,
    const char *address, uint16_t port);
/* Returns NET_RIGHT if the name may be resolved at all. */
enum net_right net_resolves(const struct net *, const char *name);
/* Returns the text that says whether declaration or grant is missing, and which
 * tool helps. The text is under RECORD_REASON bytes long and has no host name:
 * events and records have another field for the name. */
const char *net_missing(enum net_right);

/* Sends sandboxd a NET_EVENT. At most NET_EVENTS_MAX refusals and failures of a
 * net are sent. */
void net_tell(struct net *, enum net_event, const char *host, uint16_t port,
    const char *text);
/* Counts more bytes of the net's connections. If a limit is exceeded, the net
 * connects no more and sandboxd is told. */
void net_count(struct net *, uint64_t bytes);

#endif
