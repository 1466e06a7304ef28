/*
 * Policies of review: which queue needs one person, two, or none (decision
 * 0038). We seal a policy for an administrator's login, and admind stores it.
 * We remember the newest policy that we saw or made. Until the vault restarts,
 * no older policy counts again.
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
	POLICY_ACTOR_MAX = 254 /* an administrator's name, or root */
};

enum policy_tag {
	POLICY_SERIAL = 1, /* u64: Unix time of making, in us; only rises */
	POLICY_MODES = 2,  /* enum review_mode, one byte per queue */
	POLICY_ACTOR = 3,
	POLICY_UNTIL_US = 4 /* u64: end of automatic modes; 0: none */
};

struct policy {
	uint64_t serial; /* 0: no policy was ever set; the default holds */
	uint8_t mode[REVIEW_QUEUES];
	uint64_t until_us;
	char actor[POLICY_ACTOR_MAX + 1];
	struct ipc_hash seal; /* SHA-256 of the sealed form; zero: none */
};

/* Sets the policy that holds before a person set one: REVIEW_REQUIRE for each
 * queue. */
void policy_default(struct policy *);

/* Reads a policy that admind brings. If it is ours and not older than *newest,
 * it becomes *newest. Any other seal is ignored, so the remembered policy
 * holds. */
void policy_take(
    const struct keys *, struct ipc_bytes seal, struct policy *newest);

/*
 * Makes a policy that follows *newest and the stored serial (serials_next()).
 * out (initialised) receives its sealed form, *made its fields. 0; -1 with
 * INVALID_PARAMS (an invalid mode or number of days).
 */
int policy_make(const struct keys *, const struct policy *newest,
    uint64_t stored, const uint8_t mode[REVIEW_QUEUES], uint32_t days,
    struct ipc_bytes actor, uint64_t now_us, struct buf *out,
    struct policy *made, struct err *);

/* Returns the mode of a queue now. An automatic mode that has ended is
 * REVIEW_REQUIRE. */
enum review_mode policy_mode(
    const struct policy *, enum review_queue, uint64_t now_us);

/*
 * Checks that this content may be approved by an automatic policy, without a
 * person. decide.c found the queue by the content's bytes. 0; -1 with FORBIDDEN
 * and the reason.
 */
int policy_covers(enum review_queue, struct ipc_bytes preimage, struct err *);

#endif
