/*
 * Trees on their way into the module store: the files of a stream (tree.h) are
 * written below STORE/.incoming, and the tree is renamed into the store when it
 * is whole.
 */
#ifndef DEPOSIT_H
#define DEPOSIT_H

#include "err.h"
#include "ipc.h"

/* Directory of the store for unfinished trees. */
#define DEPOSIT_INCOMING ".incoming"

struct deposits_conf {
	int store;           /* the store's directory, O_PATH or better */
	uint64_t most_files; /* of one tree */
	uint64_t most_bytes; /* of one tree */
	uint64_t most_store; /* bytes of all entries together */
	uint64_t used;       /* bytes of all entries at the start */
};

struct deposits;

/* Makes the deposits. store stays the caller's; STORE/.incoming must be there
 * and empty. NULL with err. */
struct deposits *deposit_new(const struct deposits_conf *, struct err *);
/* Frees the deposits and removes unfinished trees. */
void deposit_free(struct deposits *);
/*
 * Takes the next bytes of the tree that execution `id` sends. Returns 0; 1 if
 * `last` was set and the tree is an entry of the store, which *out names
 * (out->request stays 0); or -1 with err, and nothing of the tree is kept.
 */
int deposit_put(struct deposits *, const struct ipc_id *id, struct ipc_bytes,
    bool last, struct ipc_stored *out, struct err *);
void deposit_drop(struct deposits *, const struct ipc_id *);
void deposit_drop_all(struct deposits *);
/* Tells whether the store has an entry with this digest. */
bool deposit_has(const struct deposits *, const uint8_t digest[32]);

#endif
