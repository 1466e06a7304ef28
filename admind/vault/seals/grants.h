/*
 * Seals of grants: a person (or a policy, 0038) approved one module for one
 * tool, or one host for one server. Also seals of first approvals, where two
 * approvals are needed. Form: macs.h; the body is a TLV list of enum
 * grants_tag.
 */
#ifndef GRANTS_H
#define GRANTS_H

#include "buf.h"
#include "err.h"
#include "grantreq.h"
#include "ipc.h"
#include "macs.h"
#include "seal.h"

enum grants_tag {
	GRANTS_REQUEST = 1, /* uuid of the approval request */
	GRANTS_HASH = 2,    /* SHA-256 of the pre-image */
	GRANTS_KIND = 3,    /* u64 enum grant_kind */
	GRANTS_SERVER_ID = 4,
	GRANTS_TOOL_ID = 5, /* of a module */
	GRANTS_NAME = 6,    /* of a module: name, version, digest */
	GRANTS_VERSION = 7,
	GRANTS_DIGEST = 8,
	GRANTS_PROTO = 9, /* of network access */
	GRANTS_HOST = 10,
	GRANTS_PORT = 11,
	GRANTS_APPROVER = 12, /* the approver; if two are needed, the second */
	GRANTS_FIRST = 13,    /* the first of two approvers */
	GRANTS_POLICY = 14,   /* u64: serial of the policy that was automatic */
	GRANTS_TIME_US = 15
};

/*
 * Seals the fields of this request's pre-image, which is read strictly. *hash
 * receives the pre-image's SHA-256. Replaces the content of out. 0; -1:
 * INVALID_PARAMS (no grant, or the grant of another request), MISSING_GRANT (a
 * module that was not recorded).
 */
int grants_seal(const struct keys *, const struct ipc_id *request,
    struct ipc_bytes preimage, const struct seal_by *, struct buf *out,
    struct ipc_hash *hash, struct err *);

/* Checks that this is our seal over this pre-image. 0, with the seal's TLV list
 * in *fields, *n (borrowed); -1 with NOT_APPROVED. */
int grants_check(const struct keys *, struct ipc_bytes seal,
    struct ipc_bytes preimage, const uint8_t **fields, size_t *n, struct err *);

/* Seals a first approval of this request, which may be of any kind but a call.
 * The hash is that of the request's content. Replaces the content of out. 0 or
 * -1. */
int grants_first_seal(const struct keys *, const struct ipc_id *request,
    const struct ipc_hash *, struct ipc_bytes approver, uint64_t time_us,
    struct buf *out, struct err *);
/* Checks that `first` is our first approval of just this request and content. 0
 * with the approver (borrowed); -1 with NOT_APPROVED. */
int grants_first_check(const struct keys *, struct ipc_bytes first,
    const struct ipc_id *request, const struct ipc_hash *,
    struct ipc_bytes *approver, struct err *);

#endif
