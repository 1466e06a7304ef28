/*
 * pool-init's table of runners: one entry for each slot, at most SLOTS_MAX.
 *
 *	FREE -> FORKING	FORK went to the zygote
 *	FORKING -> LIVE	FORKED brought the pidfd
 *	FORKING -> FREE	FORK_FAILED
 *	LIVE -> FREE	reaped
 *
 * slots_set is the only function that changes a slot's state. It refuses any
 * other step, so a confused zygote or sandboxd can't make two runners share a
 * slot.
 */
#ifndef SLOTS_H
#define SLOTS_H

#include <stdbool.h>
#include <stdint.h>

/* The maximum that conf_keys.def allows for the slots of sandboxd. */
enum { SLOTS_MAX = 256 };

enum slot_state { SLOT_FREE, SLOT_FORKING, SLOT_LIVE };

struct slot {
	enum slot_state state;
	bool killed;         /* KILL came; in FORKING, obeyed at FORKED */
	uint64_t generation; /* of this use, chosen by sandboxd */
	int pidfd;           /* while LIVE, else -1; owned */
};

struct slots {
	struct slot s[SLOTS_MAX];
	unsigned forking; /* slots in SLOT_FORKING */
};

void slots_init(struct slots *);
/* Returns the slot with this number and generation in this state, or NULL. */
struct slot *slots_get(
    struct slots *, uint32_t number, uint64_t generation, enum slot_state);
/*
 * Changes a slot's state. To FORKING: generation becomes the slot's. To LIVE:
 * pidfd is taken over. To FREE: the slot's pidfd is closed. 0, or -1 for a step
 * that does not exist (nothing changed, pidfd still the caller's).
 */
int slots_set(struct slots *, uint32_t number, enum slot_state,
    uint64_t generation, int pidfd);

#endif
