/* Contexts of kind KEYS and TELEMETRY: which address a run asks that fetches an
 * issuer's public keys (decision 0097), exchanges the code of a sign-in (0105)
 * or sends telemetry (0107), and which hosts it may reach. No I/O. */
#ifndef FETCH_H
#define FETCH_H

#include "access.h"
#include "buf.h"
#include "err.h"
#include "keys.h"

enum { FETCH_HOSTS_MAX = 8 }; /* as in the access document (access_fields.h) */

/*
 * Adds CTX_KIND, CTX_SPEC, and CTX_REQUIRE and CTX_GRANT for each host. They
 * follow from CTX_ACCESS_SEAL, CTX_ACCESS_DOCUMENT, CTX_KEYS_URL and
 * CTX_KEYS_HOST of the material. CTX_KEYS_URL must be the text of a member
 * "issuer" or "jwks_url" of the document. newest: as for access_check(); NULL
 * is refused. 0; -1: NOT_APPROVED, HASH_MISMATCH or CONFLICT (the document does
 * not hold), FORBIDDEN (an address is not in it), INVALID_REQUEST.
 */
int fetch_put(struct buf *out, const struct keys *, struct access *newest,
    struct ipc_bytes material, struct err *);
/*
 * Adds the same for a run that sends telemetry. CTX_KEYS_URL must be the text
 * of a member "endpoint" of the document, so no other address gets what the run
 * sends. http is allowed for it. Errors as of fetch_put().
 */
int fetch_post(struct buf *out, const struct keys *, struct access *newest,
    struct ipc_bytes material, struct err *);

#endif
