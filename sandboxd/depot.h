/*
 * sandboxd's side of the module store: what an installer's runner sends goes to
 * mcpbox-sandboxd-store, which alone writes there; and where installers may
 * connect at all, which this machine's configuration says and nobody else.
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

/* What an installer is: its specification (mcpbox_wheel.py), and the hosts it
 * may connect to as lines of common/request/netgrant.h. spec.len 0: there is
 * none. */
struct depot_conf {
	struct buf spec, hosts;
	uint64_t timeout_ms;
};
/* From the URLs of sandboxd.conf. files: hosts, commas between. -1 with a
 * sentence: one of them is no http or https URL, or no host. */
int depot_configure(struct depot_conf *, const char *index, const char *files,
    const char *advisories, uint64_t wheel_bytes, struct err *);
/* Makes h, of kind MODULE, an installer. -1: none is configured. */
int depot_fill(const struct depot_conf *, struct held *h, struct err *);

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
