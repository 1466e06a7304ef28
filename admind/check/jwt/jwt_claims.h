/* The claims of a token whose signature is right: is the token meant for us,
 * does it hold now, is it a token to come in with, and whose is it? */
#ifndef JWT_CLAIMS_H
#define JWT_CLAIMS_H

#include "buf.h"
#include "doc.h"
#include "err.h"
#include "jwt_issuer.h"

/* A token lives at most this long from now, in s. Issuers give minutes or
 * hours; a longer time would outlive every change of mind. */
enum { JWT_LIFE_MAX_S = 24 * 60 * 60 };

/* Judges everything but the person: `aud`, the times, the kind of token.
 * Appends JWT_ENDPOINT, JWT_EXP_US, JWT_IAT_US, and JWT_BOUND of a bound
 * issuer. 0, or -1 with err (UNAUTHENTICATED). */
int jwt_claims_judge(const struct doc *, const struct jwt_issuer *,
    uint64_t now_us, struct buf *fields, struct err *);

/* Reads the person, the client and the rights. Appends JWT_SUB to JWT_SCOPES.
 * 0, or -1 with err (UNAUTHENTICATED). */
int jwt_person_read(const struct doc *, const struct jwt_issuer *,
    struct buf *fields, struct err *);

/* Reads a time that the token may lack, in s. 1, 0 if absent, -1 with err
 * (UNAUTHENTICATED). */
int jwt_claims_time(
    const struct doc *, const char *name, uint64_t *out, struct err *);

/* Returns an optional claim. Some issuers write null for one that they do not
 * have, so null counts as absent. */
const struct doc_node *jwt_claims_get(const struct doc *, const char *name);

#endif
