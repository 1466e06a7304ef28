/* Shared by pool.c and pool_slots.c only. */
#ifndef POOL_INTERNAL_H
#define POOL_INTERNAL_H

#include "pool.h"

struct pool_entry {
	void *owner; /* NULL: free */
	uint64_t generation;
	uint32_t uid;
};

struct pool {
	struct event_base *base;
	struct pool_events events;
	void *arg;
	void (*first)(void *arg); /* called when a pool is ready; or NULL */
	void *first_arg;
	struct ipc_client *spawn; /* reconnects by itself; NULL in tests */
	struct ipc_peer *peer;    /* pool-init, or NULL */
	bool ready, asked;        /* asked: a POOL_START is under way */
	struct event *timer; /* next POOL_START, or the report's deadline */
	int backoff_ms;
	uint64_t ready_ms; /* when this pool reported */
	uint64_t pool_generation, slot_generation;
	uint32_t uids, next_uid; /* ids 1..uids inside the pool */
	unsigned nslots, next_slot;
	struct pool_entry slot[POOL_SLOTS_MAX];
	unsigned busy;
	char *layers, *interpreter;
	char *refused; /* layers of the last pool that could not start */
	uint64_t zygote, forks, recycles;
	uint64_t recycle_after, zygote_forks; /* forks of this zygote */
	uint64_t zygote_ms;                   /* when this zygote reported */
	bool recycling;     /* RECYCLE was sent, the report is awaited */
	bool recycle_again; /* asked for while one was under way */
	uint64_t recycle_not_before_ms; /* for replacements by a fork */
};

/* Returns the entry that a frame of pool-init names, or NULL if the
 * generation's use of the slot is over. */
struct pool_entry *pool_entry(
    struct pool *, uint32_t slot, uint64_t generation);
/* Frees the slot. Returns its owner. */
void *pool_release(struct pool *, struct pool_entry *);

#endif
