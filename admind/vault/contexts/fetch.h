/* Contexts of kind KEYS, TELEMETRY and NOTIFY: which address a run asks that
 * fetches an issuer's public keys (decision 0097), exchanges the code of a
 * sign-in (0105), sends telemetry (0107) or a notification (0112), and which
 * hosts it may reach. No I/O. */
#ifndef FETCH_H
#define FETCH_H

#include "access.h"
#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "keys.h"

enum { FETCH_HOSTS_MAX = 8 }; /* as in the access document (access_fields.h) */

/* Name of the secret in a context of kind NOTIFY. */
#define NOTIFY_SECRET "notify"

/*
 * Adds CTX_KIND, CTX_SPEC, and CTX_REQUIRE and CTX_GRANT for each host. They
 * follow from CTX_ACCESS_SEAL, CTX_ACCESS_DOCUMENT, CTX_KEYS_URL and
 * CTX_KEYS_HOST of the material. CTX_KEYS_URL must be the text of a member of
 * the document, by the kind (enum context_kind):
 *
 *	CONTEXT_KEYS		"issuer" or "jwks_url": https
 *	CONTEXT_TELEMETRY	"endpoint": https or http
 *	CONTEXT_NOTIFY		"notify": a target (target.h); its host is the
 *				only one
 *
 * For a target that names a secret, CTX_SECRET_NAME and CTX_SECRET_VALUE of the
 * material are it, as stored, and its value is added as NOTIFY_SECRET. newest:
 *as for access_check(); NULL is refused. 0; -1: NOT_APPROVED, HASH_MISMATCH or
 * CONFLICT (the document does not hold), FORBIDDEN (an address is not in it),
 * INVALID_REQUEST, or an error of stored_open().
 */
int fetch_put(struct buf *out, const struct keys *, struct access *newest,
    uint8_t kind, struct ipc_bytes material, struct err *);

#endif
