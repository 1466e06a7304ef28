/* The request that a token is bound to, as its claims say
 * (docs/decisions/0098). */
#ifndef JWT_BOUND_H
#define JWT_BOUND_H

#include "buf.h"
#include "doc.h"
#include "err.h"

/* Reads `htm`, `htu`, `bsha256`, `jti` and `session_exp` of a token of a bound
 * issuer. Appends JWT_BOUND. 0, or -1 with err (UNAUTHENTICATED). */
int jwt_bound_read(
    const struct doc *, uint64_t now_us, struct buf *fields, struct err *);

#endif
