/*
 * Profiles: a runner is forked with a profile, and a call needs a runner of its
 * own profile. There is one object for each profile in use, so equal pointers
 * mean equal profiles.
 *
 * A client chooses which of its tools it calls, and so which profiles there
 * are. So profiles without runners and calls are forgotten, except the
 * PROFILES_KEPT that were used last. runners.c may fork runners for those.
 */
#ifndef PROFILES_H
#define PROFILES_H

#include <sys/queue.h>

#include "pool.h"

enum { PROFILES_KEPT = 8 };

struct runner;
TAILQ_HEAD(runner_list, runner);

struct profile {
	TAILQ_ENTRY(profile) link;  /* the last used first */
	struct pool_profile is;     /* its modules are owned */
	unsigned refs;              /* calls and runners */
	unsigned forking, ready;    /* runners in these states */
	unsigned claims;            /* only for dispatch() in calls.c */
	uint64_t used_ms;           /* when a call last asked for it */
	struct runner_list waiting; /* in READY, the oldest first */
};

TAILQ_HEAD(profile_list, profile);

struct profiles {
	struct profile_list list;
	unsigned idle; /* profiles without a reference */
};

void profiles_init(struct profiles *);
void profiles_clear(struct profiles *); /* frees all, referenced or not */
/* Returns the profile equal to this one, with one more reference. NULL: no
 * memory. */
struct profile *profiles_get(struct profiles *, const struct pool_profile *);
/* Drops one reference. */
void profiles_put(struct profiles *, struct profile *);

#endif
