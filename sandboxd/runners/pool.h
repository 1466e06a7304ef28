/*
 * The pool as sandboxd sees it: a connection to spawn that starts it, a socket
 * to pool-init, and the slots of runners.
 *
 * A slot is taken and gets a runner. It is free again only when pool-init has
 * reported that the runner was reaped (or never made). So a slot, and its uid,
 * never have two runners. Uids rotate through the whole range, so that a file
 * or process left by some defect meets no later call soon.
 */
#ifndef POOL_H
#define POOL_H

#include "conf.h"
#include "ipc_peer.h"

enum {
	/* A zygote imports its modules in well under a second. On a busy
	 * machine (a load of 25 on two processors) the import took more than an
	 * earlier limit of 20 s, and each new zygote began from nothing. So a
	 * zygote counts as hanging only after this time. */
	POOL_REPORT_MS = 120 * 1000,
	/* Pause between two attempts to replace a zygote. */
	POOL_RECYCLE_RETRY_MS = 60 * 1000,
	/* A zygote that forks is replaced after an hour, so data shared by its
	 * runners (decision 0075) is of use for an hour at most. A new zygote
	 * costs as much as a hundred calls. Once an hour, this cost is too
	 * small to be noticed. */
	POOL_ZYGOTE_MS = 60 * 60 * 1000,
	/* A pool that lived this long was sound: the next pool starts after the
	 * shortest pause. */
	POOL_STEADY_MS = 5 * 1000,
	POOL_SLOTS_MAX = 256, /* = SLOTS_MAX of pool-init */
	/* Uid 1 belongs to a zygote's trial runners (runner/life/trial.c),
	 * which may run at the same time as calls. */
	POOL_UID_FIRST = 2
};

struct event_base;
struct pool;

/* One use of a slot. */
struct pool_slot {
	uint32_t slot, uid;
	uint64_t generation;
};

/* The properties of a runner that are set before it knows its call, because
 * setting them needs a capability. */
struct pool_profile {
	enum runner_kind kind;
	bool network;
	uint64_t tmp_bytes;
	uint32_t tmp_inodes;
	struct ipc_bytes modules; /* digests, sorted */
};

/* The limits of a runner's cgroup, if the runner has one. */
struct pool_limits {
	uint64_t memory_bytes; /* of all its processes and its /tmp */
	uint32_t processes;
	uint32_t cpu_percent; /* of one processor */
};

/* owner: as given to pool_take. arg: as given to pool_new. */
struct pool_events {
	/* A zygote reported: the first of a pool, or one that replaces another.
	 * From now on this zygote makes the forks. */
	void (*reported)(void *arg);
	/* fork_failed, exited and lost end a use of a slot: the slot is free,
	 * and its owner is forgotten. */
	void (*fork_failed)(void *owner, const char *step, int error);
	void (*exited)(void *owner, const struct ipc_exited *);
	void (*lost)(void *owner);               /* the whole pool died */
	void (*limited)(void *owner, int error); /* answers pool_limit */
};

/* Makes the pool. spawn_path NULL: no connection, for tests; use pool_adopt. */
struct pool *pool_new(struct event_base *, const char *spawn_path,
    unsigned slots, const struct pool_events *, void *arg, struct err *);
void pool_free(struct pool *);
/* Takes ownership of a socket to a pool-init. 0 or -1. */
int pool_adopt(struct pool *, int sock, uint32_t uids);
bool pool_ready(const struct pool *); /* the zygote reported */
/* Takes a free slot. 0, or -1: no pool or no free slot. */
int pool_take(struct pool *, void *owner, struct pool_slot *);
/* Gives back a slot for which pool_fork was not called. */
void pool_untake(struct pool *, const struct pool_slot *);
/* Asks for a runner of this profile. `channel` stays the caller's. -1: the slot
 * is free again and no event will come. */
int pool_fork(struct pool *, const struct pool_slot *,
    const struct pool_profile *, const struct pool_limits *, int channel);
/* Replaces the limits with which the runner was forked. The event `limited`
 * follows. 0 or -1. */
int pool_limit(
    struct pool *, const struct pool_slot *, const struct pool_limits *);
/*
 * Replaces the zygote. Running runners live on. Forks go to the new zygote as
 * soon as it reports. If it does not report within POOL_REPORT_MS, the old
 * zygote stays, and a later fork may try the replacement again. pool_fork also
 * replaces the zygote, after `forks` forks (pool_recycle_after) or
 * POOL_ZYGOTE_MS. forks 0: pool_fork replaces no zygote.
 */
void pool_recycle(struct pool *, const char *why);
void pool_recycle_after(struct pool *, uint64_t forks);
/* Sends sock, peek's connection to egress, to this pool. sock stays the
 * caller's. 0 or -1. */
int pool_peek_link(struct pool *, int sock);
/* Sets the one function that is called each time a pool becomes ready. */
void pool_on_first_report(struct pool *, void (*told)(void *arg), void *arg);
/* Kills the slot's runner. Harmless if the runner has ended. */
void pool_kill(struct pool *, const struct pool_slot *);
/* Gives up the whole pool, in which something is stuck, and starts another
 * pool. */
void pool_restart(struct pool *, const char *why);
/* Returns the number of the zygote that forks now. Each zygote has its own
 * number. */
uint64_t pool_zygote(const struct pool *);
/* Returns magic number and version of the pool's Python; "" without a pool. */
const char *pool_interpreter(const struct pool *);
struct pool_counts {
	uint64_t forks, recycles;
	unsigned slots, busy;
};
struct pool_counts pool_counts(const struct pool *);
/* Returns the "name=state" lines of pool and zygote. If no zygote has reported,
 * returns the lines of the last pool that could not start, or "". */
const char *pool_layers(const struct pool *);
/* Tells whether a cgroup memory controller bounds the sum of a call's
 * processes. spawn and pool-init report this; false while they are not
 * connected. */
bool pool_memory_bound(const struct pool *);
const char *pool_spawn_layers(const struct pool *);

#endif
