/*
 * Seals of access documents (decision 0090). We seal the SHA-256 of a document
 * for an administrator's login, and admind stores both. We do not read the
 * document.
 *
 * A serial is the time of the change, so a clock that is ahead could make one
 * that no later change follows. Such a seal does not hold, and is not counted:
 * see access_ahead().
 */
#ifndef ACCESS_H
#define ACCESS_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "macs.h"
#include "serials.h"

enum {
	ACCESS_SEAL_MAX = 512, /* as the column of access_documents */
	ACCESS_ACTOR_MAX = 254 /* an administrator's name, or root */
};

enum access_tag {
	ACCESS_TAG_SERIAL = 1, /* u64: Unix time of making, in us; only rises */
	ACCESS_TAG_ACTOR = 2,
	ACCESS_TAG_DOCUMENT = 3 /* its SHA-256 */
};

struct access {
	uint64_t serial; /* 0: no document was ever set */
	char actor[ACCESS_ACTOR_MAX + 1];
	struct ipc_hash document; /* SHA-256 */
};

/* Reads a seal of ours. 0; -1 with NOT_APPROVED, or BUSY without memory. */
int access_read(
    const struct keys *, struct ipc_bytes seal, struct access *, struct err *);

/* Tells whether the document is ahead of now_us (serials_ahead()). Then our
 * clock is wrong now, or was wrong when the document was set. */
bool access_ahead(const struct access *, uint64_t now_us);

/* Makes *newest the one of the two that holds: the newer one, of those that are
 * not ahead. A newest one that turns out to be ahead is forgotten. */
void access_take(
    const struct access *seen, uint64_t now_us, struct access *newest);

/*
 * Makes the seal of a document that follows *newest, unless that is ahead, and
 * the stored serial (serials_next()). So no document that we know of is newer,
 * and the database takes the row. out (initialised) receives the seal, *made
 * its fields. 0; -1 with INVALID_PARAMS (no actor).
 */
int access_make(const struct keys *, const struct access *newest,
    uint64_t stored, const struct ipc_hash *document, struct ipc_bytes actor,
    uint64_t now_us, struct buf *out, struct access *made, struct err *);

/*
 * Checks that a document may be used. The seal must be ours and of this
 * document, not ahead, and not older than *newest. Then *newest becomes this
 * document. 0; -1 with NOT_APPROVED (the seal), HASH_MISMATCH (another
 * document), CONFLICT (its time), or BUSY without memory. The sentence is for
 * an administrator.
 */
int access_check(const struct keys *, struct ipc_bytes seal,
    const struct ipc_hash *document, uint64_t now_us, struct access *newest,
    struct err *);

#endif
