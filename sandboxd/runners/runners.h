/*
 * Runners, from FORK until they were reaped: those that wait for a call, those
 * that have one.
 *
 *	FORKING	asked of the pool; confines itself	deadline: START_MS
 *	READY	confined; waits for a call		renewed after RENEW_MS
 *	TAKEN	a call (or a compilation) has it	its owner's deadline
 *	ENDING	killed, not yet reaped			deadline: REAP_MS
 *	GONE	reaped; freed
 *
 * A runner is used once. life_change in life.c is the only function that
 * moves one. Deadlines are looked at by runners_sweep: none is short.
 *
 * Those of the standard profile are forked ahead of their calls; how many wait
 * follows what is asked for (demand.h), between the configured bounds. What a
 * call needs that none waits for is forked when it is asked for. Other
 * profiles get one waiting runner each while they are in use, RUNNERS_OTHERS
 * in all: which profiles there are is a client's choice, so how many runners
 * they make is not.
 *
 * Forks are the most expensive thing this program causes, so only so many are
 * under way at once, and waiting ones are replaced after an answer has left
 * rather than before.
 */
#ifndef RUNNERS_H
#define RUNNERS_H

#include "demand.h"
#include "pool.h"
#include "profiles.h"

enum {
	/* Fork and confinement take 2 to 20 ms; a machine under heavy load
	 * may need a hundred times that. */
	RUNNERS_START_MS = 5000,
	/* SIGKILL of a tree takes ms. After this the pool is given up. */
	RUNNERS_REAP_MS = 5000,
	/* One that waited this long is replaced: it holds files of a Python
	 * that may have been upgraded, and a clock of timers long past. */
	RUNNERS_RENEW_MS = 2 * 3600 * 1000,
	/* A call usually ends sooner; then its answer leaves first. */
	RUNNERS_REFILL_MS = 3,
	/* Waiting runners of other profiles than the standard one, in all,
	 * and how long after its last call a profile still has one. */
	RUNNERS_OTHERS = 4,
	RUNNERS_OTHERS_MS = 60 * 1000,
	/* Pauses after runners that failed without a call. */
	RUNNERS_BACKOFF_MIN_MS = 100,
	RUNNERS_BACKOFF_MAX_MS = 10 * 1000,
	/* What one more waiting runner costs the machine. Measured over a
	 * hundred of them with Python 3.11: 3.8 MiB, most of it pages it wrote
	 * to since the fork, 0.4 kernel objects, 0.15 page tables. */
	RUNNERS_WAITING_BYTES = 4 * 1024 * 1024
};

struct event_base;
struct runners;
struct runner;

enum runner_state {
	RUNNER_NEW,
	RUNNER_FORKING,
	RUNNER_READY,
	RUNNER_TAKEN,
	RUNNER_ENDING,
	RUNNER_GONE
};

struct runners_conf {
	unsigned min, max; /* waiting runners of the standard profile */
	uint64_t memory;   /* that all waiting ones may hold: lowers both */
	unsigned forks;    /* under way at once */
	struct pool_profile standard;
	struct pool_limits limits; /* what runners are forked with */
};

/* Always from the loop, never from inside a function of runners.h. */
struct runners_events {
	/* A runner is ready, or a slot free: time to look who waits. */
	void (*look)(void *arg);
	/* A runner failed before a call had it; whoever waits for this profile
	 * is told, one of them. The text is for the reader of the log too. */
	void (*failed)(void *arg, struct profile *, const char *text);
	/* Nothing is to be forked and no call waits. */
	void (*idle)(void *arg);
};

/* Who has a runner. `exited` and `lost` end it: the pointer is no good after
 * that. */
struct runner_owner {
	void (*exited)(void *owner, const struct ipc_exited *);
	void (*lost)(void *owner); /* with its whole pool */
	void (*limited)(void *owner, int error);
};

struct runners_counts {
	unsigned waiting, target, max, forking, taken, ending;
	uint64_t hits, misses; /* calls that found one waiting, or did not */
	uint64_t failed;       /* runners that failed without a call */
	unsigned fork_ms;      /* a usual fork's time */
};

extern const struct pool_events runners_pool_events; /* arg: the runners */

struct runners *runners_new(struct event_base *, const struct runners_conf *,
    const struct runners_events *, void *arg);
void runners_pool(struct runners *, struct pool *);
void runners_free(struct runners *);

/* A call's profile, referenced until runners_profile_done. NULL: no memory. */
struct profile *runners_profile(
    struct runners *, const struct pool_profile *, uint64_t now_ms);
void runners_profile_done(struct runners *, struct profile *);
struct profile *runners_standard(struct runners *);

/*
 * A waiting runner of this profile, or NULL. It is the owner's; *channel is
 * its open channel, to be given handlers at once, and closed.
 */
struct runner *runners_take(struct runners *, struct profile *,
    const struct runner_owner *, void *arg, struct ipc_peer **channel);
enum runners_fork {
	RUNNERS_FORKED,
	RUNNERS_LATER, /* no pool, no slot or too many forks: look will come */
	RUNNERS_FAILED /* no descriptors */
};
/* For a call that waits: where no slot is free, a runner that waits for other
 * calls gives its place up. */
enum runners_fork runners_fork(struct runners *, struct profile *);
/* A call found no runner waiting. */
void runners_missed(struct runners *, struct profile *);
/* So many calls wait: while there are some, nothing is forked for later. */
void runners_hungry(struct runners *, unsigned calls);
/* It has another owner from now on. */
void runners_owner(struct runner *, const struct runner_owner *, void *arg);
/* Its owner is done with it: its tree is killed. `exited` or `lost` follows. */
void runners_end(struct runner *);
/* The same, and its owner wants to hear nothing more of it. */
void runners_discard(struct runner *);
/* Its cgroup's limits: 0 if they are what it was forked with, 1 if `limited`
 * will come, -1 if they can't be set: then it must not run. */
int runners_limit(struct runner *, const struct pool_limits *);
/* Something may be due in the background: idle will come. */
void runners_nudge(struct runners *);
/* Which zygote forked it. */
uint64_t runners_zygote(const struct runner *);
/* The generation of its slot, by which peek and egress know it. */
uint64_t runners_net(const struct runner *);
void runners_sweep(struct runners *, uint64_t now_ms);
/* Is there one to spare, that nobody will miss? */
bool runners_spare(const struct runners *);
struct runners_counts runners_counts(const struct runners *);

#endif
