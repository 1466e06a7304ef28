/* Fetches the public keys of issuers (docs/decisions/0097). */
#ifndef KEY_FETCH_H
#define KEY_FETCH_H

#include "admind.h"

struct keyset;

/* Called once a second. Begins each fetch that is due. */
void key_fetch_tick(struct admind *);
/* Appends the members of a context of kind KEYS for the issuer of this set: the
 * document with its seal, and the hosts. The vault judges them (fetch.c there).
 */
void key_fetch_material(struct admind *, const struct keyset *,
    uint64_t result_bytes, struct buf *);

#endif
