/*
 * Network access in contexts: what the approved version declares and what its
 * server is granted, as lines (common/request/netgrant.h). No I/O.
 */
#ifndef HOSTS_H
#define HOSTS_H

#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "keys.h"

/* Field f of SEAL_CONTEXT's material, read in order, as far as it is part of a
 * grant: its seal, then its pre-image. *open: a seal without one came before;
 * *n counts. 1: it was one; 0: it is another field; -1: not in their order, or
 * too many. */
struct tlv;
int hosts_take(const struct tlv *f, bool *open, size_t *n, struct err *);

/*
 * CTX_REQUIRE of each host that the version (its checked TLV list) names,
 * CTX_GRANT of each grant in the material, CTX_SERVER_ID; nothing at all for a
 * version that names none. 0; -1: NOT_APPROVED (a seal that is not ours, or
 * another grant's), FORBIDDEN (another server's), INVALID_REQUEST.
 */
int hosts_put(struct buf *out, const struct keys *, struct ipc_bytes material,
    const uint8_t *fields, size_t nfields, struct err *);

/* The plaintext of a context of kind GRANTS: CTX_SERVER_ID and CTX_GRANT. */
int hosts_grants(struct buf *out, const struct keys *,
    struct ipc_bytes material, const struct ipc_id *server, struct err *);

#endif
