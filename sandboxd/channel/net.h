/*
 * sandboxd's side of egress: the connection to sandboxd-egress, the calls that
 * may connect (nets), and the link by which peek reaches egress.
 *
 * A net belongs to one call. It is opened before the call's arguments go out,
 * with the hosts that the tool's version declares and its server is granted. It
 * is closed when the call's end is known; egress then answers with the report.
 * The net's id is the generation of the runner's slot, which pool-init gave the
 * runner's listener, too. A generation never repeats while this process lives,
 * so one runner's question can't be taken for another runner's.
 *
 * Only egress judges connections. When egress ends, the nets stay and are
 * opened again as soon as egress is back, so that only calls that connect in
 * between notice. The counts of egress are lost then, and the report says so.
 *
 * peek's link is a connection that this process makes, because egress knows the
 * process by its uid. This process sends nothing on it and passes it to the
 * pool. A runner, or a taken-over pool-init, gains by the link only the
 * questions that runners can ask anyway: connections of the nets that are open,
 * within the nets' grants.
 */
#ifndef NET_H
#define NET_H

#include "held.h"
#include "ipc_peer.h"
#include "pool.h"

enum {
	/* Time for a lookup in a table and an answer, without connecting. */
	NET_OPEN_MS = 3000,
	/* Time for the report, made of data that egress has already. */
	NET_CLOSE_MS = 2000,
	/* Calls that begin while egress is away wait for it, because a restart
	 * takes less time than this. After this time such calls are refused at
	 * once. */
	NET_AWAY_MS = 2000,
	/* Pause between two attempts to give peek a link. */
	NET_LINK_RETRY_MS = 100
};

struct nets;
struct net;

/* The report of a net. Borrowed. */
struct net_report {
	uint64_t bytes;
	uint32_t connections, refused;
	struct ipc_bytes json; /* scanned: an array */
	bool torn;             /* egress restarted: some are missing */
};

/* Events; always from the loop. */
struct net_owner {
	/* Answers net_open. NONE: the call may run. Any failure: the net is
	 * gone. */
	void (*opened)(void *arg, enum failure, const char *text);
	void (*event)(void *arg, const struct ipc_net_event *);
	/* Answers net_close; NULL: there is no report. The net is gone. */
	void (*closed)(void *arg, const struct net_report *);
};

struct nets *nets_new(struct event_base *);
/* Connects to egress. path, peek_path: its sockets for sandboxd and for peek.
 * 0, or -1: no memory. */
int nets_connect(
    struct nets *, const char *path, const char *peek_path, struct err *);
/* Takes a connection that is open already, for tests. The peer's handlers must
 * be nets_handlers, with nets as their arg. */
void nets_adopt(struct nets *, struct ipc_peer *);
extern const struct ipc_handlers nets_handlers;
/* Sets the pool whose peek gets a link: now, and again at a new pool's first
 * report. */
void nets_pool(struct nets *, struct pool *);
/* Frees the nets, after the calls. */
void nets_free(struct nets *);
/* Appends "egress=state detail" for doctor, with a line feed. */
void nets_layer(const struct nets *, struct buf *);
/* Returns egress' own layers, or "" if egress is not there. */
const char *nets_egress_layers(const struct nets *);

/* Opens a net. h must live as long as the net. NULL with the failure: no
 * memory, or egress is away. */
struct net *net_open(struct nets *, uint64_t id, const struct held *h,
    const struct net_owner *, void *arg, struct err *);
/* Sends the new list of h->grants. */
void net_grants(struct net *);
/* Closes a net: none of its connections is allowed any more. true: `closed`
 * follows; false: no report will come, and the net is gone. */
bool net_close(struct net *);
/* Closes a net without calling its owner. NULL is harmless. */
void net_drop(struct net *);

#endif
