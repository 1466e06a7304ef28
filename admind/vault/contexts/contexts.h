/*
 * Makes context keys, one for each epoch (the life of one sandboxd process),
 * and builds sealed contexts. No I/O.
 */
#ifndef CONTEXTS_H
#define CONTEXTS_H

#include "access.h"
#include "buf.h"
#include "calls.h"
#include "context.h"
#include "err.h"
#include "ipc.h"
#include "keys.h"

struct contexts;

/* Allocates room for the keys in locked memory; NULL without memory. */
struct contexts *contexts_new(void);

/* Returns the memory of used call approvals (calls.h). */
struct calls *contexts_calls(struct contexts *);

/* Says where the newest access document that the vault knows is kept. Before
 * this is said, no context of kind KEYS is sealed. */
void contexts_access(struct contexts *, struct access *newest);

/* Writes a fresh random key for this epoch into key. An earlier key of the same
 * epoch becomes invalid at once. If the table is full, the key that was made
 * first becomes invalid. */
void contexts_key(
    struct contexts *, const struct ipc_id *epoch, uint8_t key[KEY_LEN]);

/*
 * Builds a context's plaintext from SEAL_CONTEXT's material, and seals the
 * plaintext under the epoch's key. Replaces the content of out. 0, or -1 with
 * the failure to answer: SANDBOX_UNAVAILABLE (no key for that epoch),
 * NOT_APPROVED, NOT_CONFIRMED, FORBIDDEN (a secret that was not approved or not
 * stored for this place; a host that is not in the access document),
 * HASH_MISMATCH or CONFLICT (the access document), INVALID_REQUEST, LIMIT,
 * TOO_LARGE.
 */
int contexts_seal(struct contexts *, const struct keys *,
    const struct ipc_seal_context *, struct buf *out, struct err *);

#endif
