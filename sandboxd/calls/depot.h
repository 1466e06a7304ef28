/*
 * sandboxd's side of the module store: what an installer's runner sends goes to
 * mcpbox-sandboxd-store, which alone writes there.
 *
 * sandboxd does not look into the bytes. It keeps one piece at a time of each
 * installer (the runner waits until the piece was taken), and drops an
 * unfinished module when the run ends.
 */
#ifndef DEPOT_H
#define DEPOT_H

#include "held.h"
#include "ipc_peer.h"

enum {
	/* A piece is written to a file; the last one waits for the disk. */
	DEPOT_PUT_MS = 60 * 1000,
	DEPOT_ASK_MS = 5000
};

struct call;
struct depot;
struct install; /* of one call */

struct depot *depot_new(struct event_base *);
/* Connects to the store. 0, or -1: no memory. */
int depot_connect(struct depot *, const char *path, struct err *);
/* Takes a connection that is open already, for tests. */
void depot_adopt(struct depot *, struct ipc_peer *);
/* Frees the depot, after the calls. */
void depot_free(struct depot *);
/* Returns the store's own layers, "" if it is not there. */
const char *depot_layers(const struct depot *);

/* Takes a piece from a call's runner. The call may be gone after this. */
void depot_part(struct call *, bool last, struct ipc_bytes);
/* Forgets a call that is freed, or gets another runner. */
void depot_forget(struct call *);
/* Passes on admind's STORE_ASK, one at a time: which of the digests it knows
 * already are entries here. -1: malformed. */
int depot_ask(struct depot *, struct ipc_peer *, struct ipc_frame *);
/* Forgets admind's connection, which ended. */
void depot_gone(struct depot *, const struct ipc_peer *);

#endif
