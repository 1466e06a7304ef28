/*
 * Policies of review: which queue needs one person, two, or none (0038). A
 * policy is sealed by us for an administrator's login and rests with admind;
 * the newest one that we saw or made is remembered, and no older one counts
 * again in this life of the vault.
 */
#ifndef POLICY_H
#define POLICY_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "macs.h"
#include "review.h"

enum {
	POLICY_SEAL_MAX = 512,
	POLICY_ACTOR_MAX = 254 /* an administrator's name, root */
};

enum policy_tag {
	POLICY_SERIAL = 1, /* u64: Unix time in us of its making, rising */
	POLICY_MODES = 2,  /* enum review_mode, one byte a queue */
	POLICY_ACTOR = 3,
	POLICY_UNTIL_US = 4 /* u64: end of automatic modes; 0: none is */
};

struct policy {
	uint64_t serial; /* 0: none was ever set; the default holds */
	uint8_t mode[REVIEW_QUEUES];
	uint64_t until_us;
	char actor[POLICY_ACTOR_MAX + 1];
	struct ipc_hash seal; /* SHA-256 of the sealed form; zero: none */
};

/* What holds before anybody set one: REVIEW_REQUIRE everywhere. */
void policy_default(struct policy *);

/* Reads what admind brings: *newest becomes it if it is ours and newer. Bytes
 * that are not ours are ignored: what is remembered holds. */
void policy_take(
    const struct keys *, struct ipc_bytes seal, struct policy *newest);

/*
 * A policy that follows *newest: its serial is now_us or just behind the
 * newest's. out (initialised) receives its sealed form, *made what it says. 0;
 * -1 with INVALID_PARAMS (a mode or number of days that is none).
 */
int policy_make(const struct keys *, const struct policy *newest,
    const uint8_t mode[REVIEW_QUEUES], uint32_t days, struct ipc_bytes actor,
    uint64_t now_us, struct buf *out, struct policy *made, struct err *);

/* The mode of a queue now: an automatic one that ended is REVIEW_REQUIRE. */
enum review_mode policy_mode(
    const struct policy *, enum review_queue, uint64_t now_us);

/*
 * May this content be approved without a person, by a policy that says so? 0;
 * -1 with FORBIDDEN and why not. kind as decide.c found it by the bytes.
 */
int policy_covers(enum review_queue, struct ipc_bytes preimage, struct err *);

#endif
