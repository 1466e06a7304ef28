/*
 * Runners, from FORK until they are reaped: those that wait for a call and
 * those that have one.
 *
 *	FORKING	asked of the pool; confines itself	deadline: START_MS
 *	READY	confined; waits for a call		renewed after RENEW_MS
 *	TAKEN	a call (or a compilation) has it	its owner's deadline
 *	ENDING	killed, not yet reaped			deadline: REAP_MS
 *	GONE	reaped; freed
 *
 * A runner is used once. life_change in life.c is the only function that
 * changes a runner's state. runners_sweep checks the deadlines, which are all
 * long.
 *
 * Runners of the standard profile are forked ahead of their calls. The number
 * of waiting runners follows the demand (demand.h), between the configured
 * bounds. If a call finds no waiting runner, a runner is forked for the call.
 * Other profiles get one waiting runner each while they are in use, but at most
 * RUNNERS_OTHERS in all. A client chooses the profiles, and this choice must
 * not decide the number of runners.
 *
 * Forks are the most expensive thing that this program causes. So the number of
 * forks under way is limited, and the successor of a runner that was taken is
 * forked after the call's answer has left rather than before.
 */
#ifndef RUNNERS_H
#define RUNNERS_H

#include "demand.h"
#include "pool.h"
#include "profiles.h"
#include "runners_owner.h"

enum {
	/* Fork and confinement take 2 to 20 ms; a machine under heavy load
	 * may need a hundred times that. */
	RUNNERS_START_MS = 5000,
	/* Killing a tree with SIGKILL takes ms. After this time the pool is
	 * given up. */
	RUNNERS_REAP_MS = 5000,
	/* A runner that waited this long is replaced: it holds files of a
	 * Python that may have been upgraded, and a clock of timers long
	 * past. */
	RUNNERS_RENEW_MS = 2 * 3600 * 1000,
	/* Pause before a taken runner's successor is forked. A call usually
	 * ends sooner, and then its answer leaves first. */
	RUNNERS_REFILL_MS = 3,
	/* Waiting runners of all profiles other than the standard profile, and
	 * how long after its last call such a profile keeps a runner. */
	RUNNERS_OTHERS = 4,
	RUNNERS_OTHERS_MS = 60 * 1000,
	/* Pauses after runners that failed without a call. */
	RUNNERS_BACKOFF_MIN_MS = 100,
	RUNNERS_BACKOFF_MAX_MS = 10 * 1000,
	/* Memory that one more waiting runner costs the machine. A hundred with
	 * Python 3.11 cost 3.8 MiB each: 0.4 MiB kernel objects, 0.15 MiB page
	 * tables, and the rest pages that were written since the fork. */
	RUNNERS_WAITING_BYTES = 4 * 1024 * 1024
};

struct event_base;
struct runners;

struct runners_conf {
	unsigned min, max; /* waiting runners of the standard profile */
	uint64_t memory;   /* for all waiting runners; may lower min and max */
	unsigned forks;    /* most forks under way at once */
	struct pool_profile standard;
	struct pool_limits limits; /* that runners are forked with */
};

/* Events. They come from the loop or from runners_sweep(), and never from
 * inside another function of runners.h. */
struct runners_events {
	/* A runner is ready, or a slot is free: the receiver looks for a call
	 * that waits. */
	void (*look)(void *arg);
	/* A runner failed before a call had it. One call that waits for this
	 * profile gets the text, which the log has, too. */
	void (*failed)(void *arg, struct profile *, const char *text);
	/* No runner is to be forked and no call waits. */
	void (*idle)(void *arg);
};

struct runners_counts {
	unsigned waiting, target, max, forking, taken, ending;
	uint64_t hits, misses; /* hits: calls that found a runner waiting */
	uint64_t failed;       /* runners that failed without a call */
	unsigned fork_ms;      /* a usual fork's time */
};

extern const struct pool_events runners_pool_events; /* arg: the runners */

struct runners *runners_new(struct event_base *, const struct runners_conf *,
    const struct runners_events *, void *arg);
void runners_pool(struct runners *, struct pool *);
void runners_free(struct runners *);

/* Returns a call's profile, referenced until runners_profile_done. NULL: no
 * memory. */
struct profile *runners_profile(
    struct runners *, const struct pool_profile *, uint64_t now_ms);
void runners_profile_done(struct runners *, struct profile *);
struct profile *runners_standard(struct runners *);

/*
 * Takes a waiting runner of this profile, or returns NULL. The caller owns the
 * runner. *channel is the runner's open channel: the caller must set handlers
 * for the channel at once, and close it in the end.
 */
struct runner *runners_take(struct runners *, struct profile *,
    const struct runner_owner *, void *arg, struct ipc_peer **channel);
enum runners_fork {
	RUNNERS_FORKED,
	RUNNERS_LATER, /* no pool or slot, or too many forks: `look` follows */
	RUNNERS_FAILED /* no descriptors */
};
/* Forks a runner for a call that waits. If no slot is free, a runner that waits
 * for other calls gives its slot up. */
enum runners_fork runners_fork(struct runners *, struct profile *);
/* Counts a call that found no runner waiting. */
void runners_missed(struct runners *, struct profile *);
/* Takes the number of calls that wait. While calls wait, no runner is forked
 * ahead of its call. */
void runners_hungry(struct runners *, unsigned calls);
/* Makes the loop call the event `idle` once no runner is to be forked. The
 * caller has background work that may be due. */
void runners_nudge(struct runners *);
void runners_sweep(struct runners *, uint64_t now_ms);
/* Tells whether a waiting runner can be spared: no call will miss it. */
bool runners_spare(const struct runners *);
struct runners_counts runners_counts(const struct runners *);

#endif
