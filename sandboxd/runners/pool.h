/*
 * The pool as sandboxd sees it: a connection to spawn that starts it, a
 * socket to its pool-init, and the slots its runners use.
 *
 * A slot is taken, forked into, and free again only when pool-init reported
 * that its runner was reaped (or never made): a slot, and its uid, never have
 * two processes. Uids rotate through the whole range, so that a file or
 * process left by some defect meets no later call soon.
 */
#ifndef POOL_H
#define POOL_H

#include "conf.h"
#include "ipc_peer.h"

enum {
	/* A zygote imports its modules in well under a second. Beside much
	 * other work (a load of 25 on two processors) it took more than the
	 * 20 s that this once was, and each new one began from nothing; one
	 * that has not reported by now hangs. */
	POOL_REPORT_MS = 120 * 1000,
	/* Between two tries to replace a zygote. */
	POOL_RECYCLE_RETRY_MS = 60 * 1000,
	/* A zygote that forks is replaced after an hour: what runners of one
	 * share (decision 0075) is then of use for an hour. A new one costs as
	 * much as a hundred calls, too little in that time to be seen. */
	POOL_ZYGOTE_MS = 60 * 60 * 1000,
	/* A pool that lived this long was sound: the next starts at once. */
	POOL_STEADY_MS = 5 * 1000,
	POOL_SLOTS_MAX = 256, /* = SLOTS_MAX of pool-init */
	/* Id 1 is that of a zygote's trial runner (runner/trial.c), which may
	 * live beside calls. */
	POOL_UID_FIRST = 2
};

struct event_base;
struct pool;

/* One use of a slot. */
struct pool_slot {
	uint32_t slot, uid;
	uint64_t generation;
};

/* What a runner is made with, before it knows its call: all that needs a
 * capability. */
struct pool_profile {
	enum runner_kind kind;
	bool network;
	uint64_t tmp_bytes;
	uint32_t tmp_inodes;
	struct ipc_bytes modules; /* digests, sorted */
};

/* What a runner's cgroup is held to, where there is one. */
struct pool_limits {
	uint64_t memory_bytes; /* of all its processes and its /tmp */
	uint32_t processes;
	uint32_t cpu_percent; /* of one processor */
};

/* owner: as given to pool_take. arg: as given to pool_new. */
struct pool_events {
	/* A zygote reported: the first of a pool, or one that replaces
	 * another; forks are its from now on. */
	void (*reported)(void *arg);
	/* These three end a use of a slot: it is free, owner is forgotten. */
	void (*fork_failed)(void *owner, const char *step, int error);
	void (*exited)(void *owner, const struct ipc_exited *);
	void (*lost)(void *owner);               /* the whole pool died */
	void (*limited)(void *owner, int error); /* pool_limit was done */
};

/* spawn_path NULL: no connection, for tests; use pool_adopt. */
struct pool *pool_new(struct event_base *, const char *spawn_path,
    unsigned slots, const struct pool_events *, void *arg, struct err *);
void pool_free(struct pool *);
/* Takes a socket to a pool-init over. 0 or -1. */
int pool_adopt(struct pool *, int sock, uint32_t uids);
bool pool_ready(const struct pool *); /* the zygote reported */
/* 0, or -1: no pool or no free slot. */
int pool_take(struct pool *, void *owner, struct pool_slot *);
/* Gives back a slot that pool_fork was never called for. */
void pool_untake(struct pool *, const struct pool_slot *);
/* Asks for a runner of this profile that gets `channel` (stays the caller's).
 * -1: the slot is free again and no event will come. */
int pool_fork(struct pool *, const struct pool_slot *,
    const struct pool_profile *, const struct pool_limits *, int channel);
/* Other limits than it was forked with; answered by `limited`. 0 or -1. */
int pool_limit(
    struct pool *, const struct pool_slot *, const struct pool_limits *);
/*
 * Has the zygote replaced: those that run live on, forks go to the new one as
 * soon as it reports. One that does not report within POOL_REPORT_MS is tried
 * again later, and the old one stays. Happens by itself after `forks` forks
 * (pool_recycle_after; 0: never), and at the first after POOL_ZYGOTE_MS.
 */
void pool_recycle(struct pool *, const char *why);
void pool_recycle_after(struct pool *, uint64_t forks);
/* peek's connection to egress (stays the caller's), for this pool. 0 or -1. */
int pool_peek_link(struct pool *, int sock);
/* Told each time a pool is ready; one that knows of it. */
void pool_on_first_report(struct pool *, void (*told)(void *arg), void *arg);
/* SIGKILL; harmless if it ended meanwhile. */
void pool_kill(struct pool *, const struct pool_slot *);
/* Something is stuck: the whole pool is given up and started anew. */
void pool_restart(struct pool *, const char *why);
/* Which zygote forks now: another number, another zygote. */
uint64_t pool_zygote(const struct pool *);
/* Its Python, as compiled code knows it; "" while there is none. */
const char *pool_interpreter(const struct pool *);
struct pool_counts {
	uint64_t forks, recycles;
	unsigned slots, busy;
};
struct pool_counts pool_counts(const struct pool *);
/* "name=state" lines of pool and zygote, of those that could not start where
 * there are none now, and of spawn; "" if not there. */
const char *pool_layers(const struct pool *);
/* Does a cgroup memory controller bound what a call's processes use together?
 * By what spawn and pool-init reported; false while they are not connected. */
bool pool_memory_bound(const struct pool *);
const char *pool_spawn_layers(const struct pool *);

#endif
