/*
 * sandboxd's side of egress: the connection to sandboxd-egress, the calls that
 * may connect (nets), and the link by which peek reaches it.
 *
 * A net is one call's: opened before the call's arguments go out, with what its
 * version declares and its server is granted; closed when its end is known,
 * which brings the report. Its id is the generation of the runner's slot, which
 * pool-init gave the runner's listener too and which never repeats in a life of
 * this process: what one runner asks can't be taken for another's.
 *
 * egress judges; nothing here does. When it ends, the nets stay and are opened
 * again as soon as it is back, so that only calls that connect meanwhile
 * notice. What it had counted is gone then, and the report says so.
 *
 * peek's link is a connection that this process makes, because egress knows it
 * by its uid; it says nothing on it and passes it to the pool. A runner, or
 * pool-init taken over, gains by it what it could ask as a runner: connections
 * of the nets that are open, within their grants.
 */
#ifndef NET_H
#define NET_H

#include "held.h"
#include "ipc_peer.h"
#include "pool.h"

enum {
	/* A lookup in a table and an answer; connecting is not in it. */
	NET_OPEN_MS = 3000,
	/* A report is made of what egress knows already. */
	NET_CLOSE_MS = 2000,
	/* egress is started anew in less; calls that begin meanwhile wait for
	 * it. Away for longer, they are refused at once. */
	NET_AWAY_MS = 2000,
	/* Between two tries to give peek a link. */
	NET_LINK_RETRY_MS = 100
};

struct nets;
struct net;

/* What a net did. Borrowed. */
struct net_report {
	uint64_t bytes;
	uint32_t connections, refused;
	struct ipc_bytes json; /* scanned: an array */
	bool torn; /* egress began anew meanwhile: some are missing */
};

/* Always from the loop. */
struct net_owner {
	/* NONE: it may run. Else why not, and the net is gone. */
	void (*opened)(void *arg, enum failure, const char *text);
	void (*event)(void *arg, const struct ipc_net_event *);
	/* Answers net_close; NULL: there is no report. The net is gone. */
	void (*closed)(void *arg, const struct net_report *);
};

struct nets *nets_new(struct event_base *);
/* Paths of egress' sockets. 0, or -1: no memory. */
int nets_connect(
    struct nets *, const char *path, const char *peek_path, struct err *);
/* Takes a connection that is open already, for tests: the peer's handlers are
 * nets_handlers and nets. */
void nets_adopt(struct nets *, struct ipc_peer *);
extern const struct ipc_handlers nets_handlers;
/* Whose peek gets a link, now and each time it is another pool. */
void nets_pool(struct nets *, struct pool *);
/* After the calls. */
void nets_free(struct nets *);
/* "egress=state detail" for doctor, with a line feed. */
void nets_layer(const struct nets *, struct buf *);
/* egress' own layers, "" if it is not there. */
const char *nets_egress_layers(const struct nets *);

/* h: as long as the net is not gone. NULL with the failure: no memory, or
 * nobody to open it. */
struct net *net_open(struct nets *, uint64_t id, const struct held *h,
    const struct net_owner *, void *arg, struct err *);
/* h->grants is another list now. */
void net_grants(struct net *);
/* Nothing of it connects any more. true: `closed` follows; false: there is no
 * report to be had, and the net is gone. */
bool net_close(struct net *);
/* The same, and its owner wants to hear nothing of it. NULL: nothing. */
void net_drop(struct net *);

#endif
