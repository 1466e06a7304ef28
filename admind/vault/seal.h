/*
 * Approval seals: the vault's word that a human approved exactly this content.
 *
 * Form: {u8 format 1, TLV list of enum seal_tag, 32-byte HMAC-SHA256}. The MAC
 * is over "mcpbox approval 1" NUL and everything before it, under the
 * approvals sub-key, which no other process has. admind keeps seals beside
 * the versions and brings them back with each context to be sealed.
 */
#ifndef SEAL_H
#define SEAL_H

#include "buf.h"
#include "crypto.h"
#include "err.h"
#include "ipc.h"

enum { SEAL_MAX = 64 * 1024 }; /* names of secrets and hosts, many */

enum seal_tag {
	SEAL_REQUEST = 1,      /* uuid of the approval request */
	SEAL_SERVER_ID = 2,    /* uuid */
	SEAL_TOOL_ID = 3,      /* uuid */
	SEAL_VERSION_HASH = 4, /* SHA-256 of the pre-image */
	SEAL_SECRET = 5,       /* name; any number */
	SEAL_HOST = 6,         /* granted host; any number; none until egress */
	SEAL_APPROVER = 7,     /* administrator's name, or root */
	SEAL_TIME_US = 8       /* u64 Unix time in us */
};

/*
 * Seals what `preimage` (its strict form is checked) says. *hash receives its
 * SHA-256. Replaces what out holds. 0; -1 with FAILURE_INVALID_PARAMS if it is
 * not a version pre-image.
 */
int seal_make(const uint8_t key[KEY_LEN], const struct ipc_id *request,
    const uint8_t *preimage, size_t n, struct ipc_bytes approver,
    uint64_t time_us, struct buf *out, struct ipc_hash *hash, struct err *);

/*
 * Is this our seal over this pre-image? 0: *fields, *nfields is its TLV list
 * (borrowed) and *hash the pre-image's SHA-256; -1 with FAILURE_NOT_APPROVED.
 */
int seal_check(const uint8_t key[KEY_LEN], const uint8_t *seal, size_t n,
    const uint8_t *preimage, size_t preimage_len, const uint8_t **fields,
    size_t *nfields, struct ipc_hash *hash, struct err *);

/* Does the checked list name this secret? */
bool seal_names_secret(const uint8_t *fields, size_t n, struct ipc_bytes name);

#endif
