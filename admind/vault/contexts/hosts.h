/*
 * Network access in contexts: the hosts that the approved version declares and
 * those that its server is granted, as lines (common/request/netgrant.h). No
 * I/O.
 */
#ifndef HOSTS_H
#define HOSTS_H

#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "keys.h"

/* Consumes field f of SEAL_CONTEXT's material if f belongs to a grant. The
 * fields must be passed in order: a grant is a seal, then its pre-image. *open
 * says whether the last seal still lacks its pre-image. *n counts the grants.
 * 1: consumed; 0: another field; -1: out of order, or too many. */
struct tlv;
int hosts_take(const struct tlv *f, bool *open, size_t *n, struct err *);

/*
 * Adds CTX_REQUIRE for each host in `fields` (the version's checked TLV list),
 * CTX_GRANT for each grant in the material, and CTX_SERVER_ID. Adds nothing if
 * the version names no host. 0; -1: NOT_APPROVED (the seal is not ours, or is
 * of another grant), FORBIDDEN (the grant is of another server),
 * INVALID_REQUEST.
 */
int hosts_put(struct buf *out, const struct keys *, struct ipc_bytes material,
    const uint8_t *fields, size_t nfields, struct err *);

/* Builds the plaintext of a context of kind GRANTS: CTX_SERVER_ID and
 * CTX_GRANT. */
int hosts_grants(struct buf *out, const struct keys *,
    struct ipc_bytes material, const struct ipc_id *server, struct err *);

#endif
