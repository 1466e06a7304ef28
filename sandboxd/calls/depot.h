/*
 * sandboxd's side of the module store: what an installer's runner sends goes to
 * mcpbox-sandboxd-store, which alone writes there.
 *
 * sandboxd does not look into the bytes. It keeps one piece at a time of each
 * installer (the runner waits until it was taken), and drops what is half there
 * when the run ends.
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
/* 0, or -1: no memory. */
int depot_connect(struct depot *, const char *path, struct err *);
/* Takes a connection that is open already, for tests. */
void depot_adopt(struct depot *, struct ipc_peer *);
/* After the calls. */
void depot_free(struct depot *);
/* The store's own layers, "" if it is not there. */
const char *depot_layers(const struct depot *);

/* A piece from a call's runner. The call may be gone after this. */
void depot_part(struct call *, bool last, struct ipc_bytes);
/* The call is freed, or begins anew. */
void depot_forget(struct call *);
/* STORE_ASK of admind, one at a time: which of the digests it knows already are
 * entries here. -1: malformed. */
int depot_ask(struct depot *, struct ipc_peer *, struct ipc_frame *);
/* admind's connection ended. */
void depot_gone(struct depot *, const struct ipc_peer *);

#endif
