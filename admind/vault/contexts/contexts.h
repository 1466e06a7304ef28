/*
 * Context keys, one a sandbox epoch, and the building of sealed contexts. No
 * I/O: bytes in, bytes out.
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

/* Allocates room for the keys in locked memory; NULL without memory. */
struct contexts *contexts_new(void);

/* Returns the confirmed calls of this life of the vault. */
struct calls *contexts_calls(struct contexts *);

/* Writes a fresh random key for this epoch into key. An earlier key of the same
 * epoch ends at once; so does the oldest epoch's when the table is full. */
void contexts_key(
    struct contexts *, const struct ipc_id *epoch, uint8_t key[KEY_LEN]);

/*
 * Builds the plaintext from SEAL_CONTEXT's material and the rules, and seals it
 * under the epoch's key. Replaces the content of out. 0, or -1 with the failure
 * to answer: SANDBOX_UNAVAILABLE (no key for that epoch), NOT_APPROVED,
 * NOT_CONFIRMED, FORBIDDEN (a secret that was not approved or not stored for
 * this place), INVALID_REQUEST, TOO_LARGE.
 */
int contexts_seal(struct contexts *, const struct keys *,
    const struct ipc_seal_context *, struct buf *out, struct err *);

#endif
