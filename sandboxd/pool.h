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
	/* A zygote imports its modules in well under a second; one that has
	 * not reported by now won't. */
	POOL_REPORT_MS = 20 * 1000,
	/* A pool that lived this long was sound: the next starts at once. */
	POOL_STEADY_MS = 5 * 1000,
	POOL_SLOTS_MAX = 256 /* = SLOTS_MAX of pool-init */
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

/* owner: as given to pool_take. arg: as given to pool_new. */
struct pool_events {
	void (*available)(void *arg); /* a slot may be free now */
	/* These three end a use of a slot: it is free, owner is forgotten. */
	void (*fork_failed)(void *owner, const char *step, int error);
	void (*exited)(
	    void *owner, uint32_t status, uint64_t cpu_us, uint64_t peak_kib);
	void (*lost)(void *owner); /* the whole pool died */
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
    const struct pool_profile *, int channel);
/* SIGKILL; harmless if it ended meanwhile. */
void pool_kill(struct pool *, const struct pool_slot *);
/* Something is stuck: the whole pool is given up and started anew. */
void pool_restart(struct pool *, const char *why);
/* "name=state" lines of pool and zygote, and of spawn; "" if not there. */
const char *pool_layers(const struct pool *);
/* Does a cgroup memory controller bound what a call's processes use together?
 * By what spawn reported; false while it is not connected. */
bool pool_memory_bound(const struct pool *);
const char *pool_spawn_layers(const struct pool *);

#endif
