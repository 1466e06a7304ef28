/*
 * Approval seals: the vault's proof that a human approved exactly this content.
 *
 * Form: macs.h, purpose MACS_VERSION; the body is a TLV list of enum seal_tag.
 * admind keeps the seals of versions, and brings a seal back with each context
 * to be sealed.
 */
#ifndef SEAL_H
#define SEAL_H

#include "buf.h"
#include "crypto.h"
#include "err.h"
#include "ipc.h"
#include "macs.h"

enum { SEAL_MAX = MACS_MAX }; /* room for many names of secrets and hosts */

enum seal_tag {
	SEAL_REQUEST = 1,      /* uuid of the approval request */
	SEAL_SERVER_ID = 2,    /* uuid */
	SEAL_TOOL_ID = 3,      /* uuid */
	SEAL_VERSION_HASH = 4, /* SHA-256 of the pre-image */
	SEAL_SECRET = 5,       /* a secret's name; any number of them */
	SEAL_HOST = 6,         /* granted host; never written */
	SEAL_APPROVER = 7,     /* administrator's name, or root */
	SEAL_TIME_US = 8,      /* u64 Unix time in us */
	SEAL_FIRST = 9,        /* the first approver, where two are needed */
	SEAL_POLICY = 10 /* u64: serial of the policy that was automatic */
};

/* The approver: a person, two persons, or a policy that a person set. */
struct seal_by {
	struct ipc_bytes approver; /* administrator's name, root, policy:NAME */
	struct ipc_bytes first;    /* empty: one person was enough */
	uint64_t policy;           /* 0: a person approved */
	uint64_t time_us;          /* Unix time */
};

/*
 * Seals the fields of `preimage`, after it checked their strict form. *hash
 * receives the SHA-256 of `preimage`. Replaces the content of out. 0; -1 with
 * FAILURE_INVALID_PARAMS if `preimage` is not a version's.
 */
int seal_make(const struct keys *, const struct ipc_id *request,
    const uint8_t *preimage, size_t n, const struct seal_by *, struct buf *out,
    struct ipc_hash *hash, struct err *);

/*
 * Checks that this is our seal over this pre-image. 0, with the seal's TLV list
 * in *fields, *nfields (borrowed) and the pre-image's SHA-256 in *hash; -1 with
 * FAILURE_NOT_APPROVED.
 */
int seal_check(const struct keys *, const uint8_t *seal, size_t n,
    const uint8_t *preimage, size_t preimage_len, const uint8_t **fields,
    size_t *nfields, struct ipc_hash *hash, struct err *);

/* Returns whether the TLV list of seal_check names this secret. */
bool seal_names_secret(const uint8_t *fields, size_t n, struct ipc_bytes name);

#endif
