/* Shared by runners.c and life.c only. */
#ifndef RUNNERS_INTERNAL_H
#define RUNNERS_INTERNAL_H

#include "runners.h"

struct runner {
	TAILQ_ENTRY(runner) link;    /* in profile->waiting */
	TAILQ_ENTRY(runner) sibling; /* in all->all */
	struct runners *all;
	enum runner_state state;
	struct profile *profile;
	struct pool_slot slot;
	bool has_slot;         /* until it was reaped */
	struct ipc_peer *peer; /* its channel, until it was taken */
	uint64_t since_ms;     /* when this state began */
	uint64_t zygote;       /* number of the zygote that forked it */
	const struct runner_owner *owner;
	void *owner_arg;
	struct pool_limits limits;
};

struct runners {
	struct event_base *base;
	struct runners_conf conf;
	struct runners_events events;
	void *arg;
	struct pool *pool;
	struct profiles profiles;
	struct profile *standard;
	struct runner_list all;
	struct event *refill; /* timer: forks runners for later */
	struct demand demand;
	unsigned count[RUNNER_GONE]; /* by state */
	unsigned hungry;
	int backoff_ms;
	uint64_t not_before_ms; /* no fork for later before this */
	struct runners_counts told;
	uint64_t fork_us; /* a moving average */
};

/* Changes a runner's state (life.c); GONE frees the runner. */
void life_change(struct runner *, enum runner_state to);
/* Drops a runner that is not needed any more: kills it, or frees it if it was
 * reaped already. */
void life_dismiss(struct runner *);
/* Ends a runner that failed before a call had it. The runner may be freed. */
void life_fail(struct runner *, const char *text);
/* Tells whether the runner is neither too old nor of a former zygote. */
bool life_fresh(const struct runner *);
/* Closes the channel, so no more events of the runner come. */
void life_hang_up(struct runner *);
extern const struct ipc_handlers life_handlers; /* of a runner without a call */

/* runners.c: refills the waiting runners after ms; 0: after the loop's current
 * work. */
void runners_refill_in(struct runners *, int ms);

#endif
