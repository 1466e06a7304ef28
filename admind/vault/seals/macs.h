/*
 * Seals: decisions of persons, as the vault remembers them outside itself.
 *
 * Form: {u8 format 2, 8-byte key id, body, 32-byte HMAC-SHA256}; seals made
 * before rotation existed are {u8 format 1, body, MAC}. The MAC is over the
 * purpose's label, its NUL, and everything before the MAC, under the approvals
 * sub-key, which no other process has. One label a purpose: no other value
 * MACed under any key of ours can pass for a seal of this one.
 *
 * A new kind of seal is a row here, and a row of renewal.h if it is stored
 * anywhere.
 */
#ifndef MACS_H
#define MACS_H

#include "buf.h"
#include "err.h"
#include "keys.h"

/* Purpose, label. */
#define MACS_PURPOSES(M)                    \
	M(VERSION, "mcpbox approval 1")     \
	M(CALL, "mcpbox call approval 1")   \
	M(GRANT, "mcpbox grant approval 1") \
	M(POLICY, "mcpbox policy 1")        \
	M(FIRST, "mcpbox first approval 1") \
	M(DEVICE, "mcpbox device 1")        \
	M(EXPORT, "mcpbox export 1")

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

/* Begins a seal in w (initialised, empty): the caller appends the body. */
void macs_open(const struct keys *, struct buf *w);
/* Ends the seal. 0; -1 with TOO_LARGE if w or the seal is too small for it. */
int macs_close(
    const struct keys *, enum macs_purpose, struct buf *w, struct err *);

/* Checks that we made the seal, for this purpose, with a valid key. 0: *body,
 * *nbody is the body (borrowed); -1: no. err's failure is NOT_APPROVED. */
int macs_check(const struct keys *, enum macs_purpose, const uint8_t *seal,
    size_t n, const uint8_t **body, size_t *nbody, struct err *);

/* Makes a seal of the same body under the head of the chain, if macs_check
 * takes the old one. Replaces the content of out. */
int macs_renew(const struct keys *, enum macs_purpose, const uint8_t *seal,
    size_t n, struct buf *out, struct err *);

#endif
