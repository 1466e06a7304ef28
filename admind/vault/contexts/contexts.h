/*
 * Context keys, one a sandbox epoch, and the building of sealed contexts.
 * No I/O: bytes in, bytes out.
 */
#ifndef CONTEXTS_H
#define CONTEXTS_H

#include "buf.h"
#include "calls.h"
#include "context.h"
#include "err.h"
#include "ipc.h"
#include "keys.h"

struct contexts;

/* Room for the keys in locked memory; NULL without memory. */
struct contexts *contexts_new(void);

/* The confirmed calls of this life of the vault. */
struct calls *contexts_calls(struct contexts *);

/* A fresh random key for this epoch into key; an earlier one of the same epoch
 * ends at once, the oldest epoch's when the table is full. */
void contexts_key(
    struct contexts *, const struct ipc_id *epoch, uint8_t key[KEY_LEN]);

/*
 * Builds the plaintext that SEAL_CONTEXT's material and rules give and seals
 * it under the epoch's key. Replaces what out holds. 0, or -1 with the
 * failure to answer: SANDBOX_UNAVAILABLE (no key for that epoch),
 * NOT_APPROVED, NOT_CONFIRMED, FORBIDDEN (a secret that was not approved or not
 * stored for this place), INVALID_REQUEST, TOO_LARGE.
 */
int contexts_seal(struct contexts *, const struct keys *,
    const struct ipc_seal_context *, struct buf *out, struct err *);

#endif
