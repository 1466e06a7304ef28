/*
 * A person's approval of one call: the vault's seal over callreq.h's fields,
 * and the memory of used seals.
 *
 * Form: {u8 format 1, TLV list of enum calls_tag, 32-byte HMAC-SHA256}. The MAC
 * is over "mcpbox call approval 1" NUL and everything before it, under the
 * approvals sub-key. The label differs from that of a version's seal, so
 * neither can pass for the other.
 *
 * A seal can be used only once, even if admind is hostile: a used seal is
 * remembered until it has expired. A restart forgets the used seals. So a seal
 * names the vault process that made it, and no later process accepts it: a
 * person is asked again. The wall clock may be set forward and back again
 * before a seal expires. So a seal also expires by CLOCK_BOOTTIME, and only
 * then is its use forgotten.
 */
#ifndef CALLS_H
#define CALLS_H

#include "buf.h"
#include "callreq.h"
#include "crypto.h"
#include "err.h"
#include "ipc.h"
#include "keys.h"

enum {
	CALLS_SEAL_MAX = 2048,
	/* Used seals that have not expired. Each was approved by a person, and
	 * all reviewers together can't approve as many within the time that
	 * requests live. */
	CALLS_USED_MAX = 1024
};

enum calls_tag {
	CALLS_REQUEST = 1,   /* uuid of the approval request */
	CALLS_HASH = 2,      /* SHA-256 of the pre-image */
	CALLS_VERSION = 3,   /* hash of the version */
	CALLS_TOOL = 4,      /* exposed name */
	CALLS_PRINCIPAL = 5, /* the caller */
	CALLS_LISTENER = 6,  /* u64 */
	CALLS_ARGS = 7,      /* SHA-256 of the arguments */
	CALLS_EXPIRES_MS = 8,
	CALLS_APPROVER = 9, /* administrator's name, or root */
	CALLS_TIME_US = 10, /* u64 Unix time in us */
	CALLS_LIFE = 11,    /* 16 bytes: id of the vault process that sealed */
	CALLS_UNTIL_MS = 12 /* u64: expiry by CLOCK_BOOTTIME */
};

struct calls; /* the id of this vault process, and the used seals */

/* The same moment by both clocks. */
struct calls_time {
	uint64_t unix_us; /* the clock of the expiry that a person was shown */
	uint64_t boot_ms; /* CLOCK_BOOTTIME, which no process can set */
};

/* Makes the memory of used seals. It is never freed. NULL without memory. */
struct calls *calls_new(void);

/*
 * Seals the fields of a request's pre-image. *hash receives the pre-image's
 * SHA-256. Replaces the content of out. 0; -1: INVALID_PARAMS (no pre-image of
 * a call, or the pre-image of another request), ALREADY_DECIDED (the request
 * has expired), TOO_LARGE (the seal would be valid for longer than
 * CALLREQ_LIFE_MAX_MS).
 */
int calls_seal(const struct calls *, const struct keys *,
    const struct ipc_id *request, struct ipc_bytes preimage,
    struct ipc_bytes approver, const struct calls_time *now, struct buf *out,
    struct ipc_hash *hash, struct err *);

/* The call that is about to run. */
struct calls_run {
	struct ipc_hash version;
	struct ipc_bytes tool, principal;
	uint64_t listener;
	struct ipc_bytes args_sha256;
};

/*
 * Checks that the seal is ours, unused and unexpired, and approves just that
 * call. 0, with the *hash and *until_ms (CLOCK_BOOTTIME) that calls_use needs;
 * -1 with NOT_CONFIRMED.
 */
int calls_check(struct calls *, const struct keys *, struct ipc_bytes seal,
    const struct calls_run *, const struct calls_time *, struct ipc_hash *hash,
    uint64_t *until_ms, struct err *);
/* Marks a seal as used. 0; -1 with BUSY: too many seals are remembered. */
int calls_use(struct calls *, const struct ipc_hash *, uint64_t until_ms,
    const struct calls_time *, struct err *);

#endif
