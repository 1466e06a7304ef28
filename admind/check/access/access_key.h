/* Public keys of an issuer (JWK, RFC 7517) as records ISSUER_KEY. */
#ifndef ACCESS_KEY_H
#define ACCESS_KEY_H

#include "access_read.h"

/* Checks "keys" of a JWK set and appends a record for each key. Returns a mask
 * of 1 << enum jwt_algorithm: the algorithms that fit one of the keys. */
unsigned access_key_set(
    struct access_doc *, const struct access_at *jwks, struct buf *issuer);

/* Reads the JWK set that is the document itself, as an issuer's server shows
 * it, and appends a record ISSUER_KEY for each key that can be used. Keys that
 * can't are left out. a->r must be empty; it is used up. 0; -1 with UPSTREAM
 * without a usable key, or with too many keys. */
int access_key_fetched(struct access_doc *a, struct buf *out, struct err *);

#endif
