/*
 * Signatures over heads of the audit chain: HMAC-SHA256 under the audit sub-key
 * over "mcpbox audit 1" NUL, u64 row number, head. The signatures are kept in
 * the database and in the journal.
 */
#ifndef ANCHORS_H
#define ANCHORS_H

#include "keys.h"

/* Signs with the newest key. 0, or -1 without memory. */
int anchors_sign(const struct keys *, uint64_t seq, const struct ipc_hash *head,
    struct ipc_hash *signature);
/* Returns the valid key that made the signature, or NULL if none did. */
const struct keys *anchors_check(const struct keys *, uint64_t seq,
    const struct ipc_hash *head, const struct ipc_hash *signature);

#endif
