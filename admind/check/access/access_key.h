/* Public keys of an issuer (JWK, RFC 7517) as records ISSUER_KEY. */
#ifndef ACCESS_KEY_H
#define ACCESS_KEY_H

#include "access_read.h"

/* Checks "keys" of a JWK set and appends a record for each key. Returns a mask
 * of 1 << enum jwt_algorithm: the algorithms that fit one of the keys. */
unsigned access_key_set(
    struct access_doc *, const struct access_at *jwks, struct buf *issuer);

#endif
