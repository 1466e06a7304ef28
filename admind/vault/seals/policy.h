/*
 * Policies of review: which queue needs one person, two, or none (0038). We
 * seal a policy for an administrator's login, and admind stores it. We remember
 * the newest one that we saw or made; no older one counts again in this life of
 * the vault.
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

/* Sets the policy before any was set: REVIEW_REQUIRE everywhere. */
void policy_default(struct policy *);

/* Reads a policy that admind brings: it becomes *newest if it is ours and
 * newer. Other bytes are ignored: the remembered policy holds. */
void policy_take(
    const struct keys *, struct ipc_bytes seal, struct policy *newest);

/*
 * Makes a policy that follows *newest: its serial is now_us, or one above the
 * newest's. out (initialised) receives its sealed form, *made its fields. 0; -1
 * with INVALID_PARAMS (an invalid mode or number of days).
 */
int policy_make(const struct keys *, const struct policy *newest,
    const uint8_t mode[REVIEW_QUEUES], uint32_t days, struct ipc_bytes actor,
    uint64_t now_us, struct buf *out, struct policy *made, struct err *);

/* Returns the mode of a queue now: an automatic one that ended is
 * REVIEW_REQUIRE. */
enum review_mode policy_mode(
    const struct policy *, enum review_queue, uint64_t now_us);

/*
 * Checks that this content may be approved without a person, by a policy that
 * says so. kind as decide.c found it by the bytes. 0; -1 with FORBIDDEN and why
 * not.
 */
int policy_covers(enum review_queue, struct ipc_bytes preimage, struct err *);

#endif
