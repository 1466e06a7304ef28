/*
 * sandboxd's side of the module store. An installer's runner sends the files of
 * a module in pieces. sandboxd passes them to mcpbox-sandboxd-store, the only
 * process that writes to the store.
 *
 * sandboxd does not look into the bytes. It keeps one piece at a time of each
 * installer (the runner waits until the piece was taken), and tells the store
 * to drop an unfinished module when the run ends.
 */
#ifndef DEPOT_H
#define DEPOT_H

#include "held.h"
#include "ipc_peer.h"

enum {
	/* Time for a piece: it is written to a file, and the answer to the last
	 * piece waits for the disk. */
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
/* Frees the depot. The calls must be freed before. */
void depot_free(struct depot *);
/* Returns the layers of the store process, or "" if it is not connected. */
const char *depot_layers(const struct depot *);

/* Takes a piece from a call's runner; last: the module is complete. The call
 * may be gone after this. */
void depot_part(struct call *, bool last, struct ipc_bytes);
/* Forgets a call that is freed, or gets another runner. */
void depot_forget(struct call *);
/* Passes admind's STORE_ASK (which of these digests are in the store?) to the
 * store, one STORE_ASK at a time. 0, or -1 if the frame is malformed. */
int depot_ask(struct depot *, struct ipc_peer *, struct ipc_frame *);
/* Forgets admind's connection, which ended. */
void depot_gone(struct depot *, const struct ipc_peer *);

#endif
