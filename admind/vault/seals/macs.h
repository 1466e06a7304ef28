/*
 * Seals: the vault's proofs, mostly of persons' decisions. Other processes keep
 * them for the vault.
 *
 * Form: {u8 format 2, 8-byte key id, body, 32-byte HMAC-SHA256}; seals made
 * before rotation existed are {u8 format 1, body, MAC}. The MAC is over the
 * purpose's label, the label's NUL, and everything before the MAC, under the
 * approvals sub-key, which no other process has. Each purpose has a label of
 * its own. So no other value that was MACed under any key of ours can pass for
 * a seal of that purpose.
 *
 * A new kind of seal needs a row in MACS_PURPOSES, and a row in renewal.h if
 * seals of this kind are stored anywhere.
 */
#ifndef MACS_H
#define MACS_H

#include "buf.h"
#include "err.h"
#include "keys.h"

/* The purposes of seals: M(purpose, label). */
#define MACS_PURPOSES(M)                    \
	M(VERSION, "mcpbox approval 1")     \
	M(CALL, "mcpbox call approval 1")   \
	M(GRANT, "mcpbox grant approval 1") \
	M(POLICY, "mcpbox policy 1")        \
	M(FIRST, "mcpbox first approval 1") \
	M(DEVICE, "mcpbox device 1")        \
	M(EXPORT, "mcpbox export 1")        \
	M(ACCESS, "mcpbox access 1")

enum macs_purpose {
#define M(name, label) MACS_##name,
	MACS_PURPOSES(M)
#undef M
	    MACS_COUNT
};

enum {
	MACS_LEN = 32,
	MACS_HEAD_LEN = 1 + KEY_ID_LEN,
	MACS_OVERHEAD = MACS_HEAD_LEN + MACS_LEN,
	MACS_MAX = 64 * 1024 /* a whole seal */
};

/* Begins a seal in w (initialised, empty). Then the caller appends the body. */
void macs_open(const struct keys *, struct buf *w);
/* Ends the seal. 0; -1 with TOO_LARGE if w or MACS_MAX is too small for it. */
int macs_close(
    const struct keys *, enum macs_purpose, struct buf *w, struct err *);

/* Checks that we made the seal, for this purpose, with a valid key. 0, with
 * *body and *nbody (borrowed from seal); -1 with NOT_APPROVED, or BUSY without
 * memory. */
int macs_check(const struct keys *, enum macs_purpose, const uint8_t *seal,
    size_t n, const uint8_t **body, size_t *nbody, struct err *);

/* Makes a seal of the same body under the head of the chain, if macs_check
 * accepts the old seal. Replaces the content of out. 0 or -1. */
int macs_renew(const struct keys *, enum macs_purpose, const uint8_t *seal,
    size_t n, struct buf *out, struct err *);

#endif
