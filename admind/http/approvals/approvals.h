/* The object of an approval request that a reviewer sees. */
#ifndef APPROVALS_H
#define APPROVALS_H

#include "buf.h"
#include "err.h"
#include "ipc.h"

/* Writes the REST object of a request, from admind's answer: id, kind, state,
 * its circumstances, the hash computed here over the pre-image, the whole
 * content. 0 with *hash, or -1. */
int approvals_show(const struct ipc_id *, const struct ipc_approval_content *,
    struct buf *out, struct ipc_hash *hash, struct err *);

#endif
