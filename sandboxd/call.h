/*
 * One call from RUN to its record.
 *
 *	WAITING_SLOT	queued until a slot is free	timer: queue_wait
 *	STARTING	slot taken, runner confining	timer: CALL_START_MS
 *	RUNNING		it has code, arguments, secrets	timer: the wall-clock
 *limit ENDING		answered; its tree is killed	timer: CALL_REAP_MS
 *	ENDED		record handed on; freed
 *
 * Whatever happens first decides how the call ended, once: the answer goes to
 * whoever waits, at that moment; the slot is free only after the runner was
 * reaped, and the record, which holds the CPU time, follows then. A pool that
 * dies under a call that has not got its code yet puts it back in the queue:
 * nothing ran. call_change in call.c is the only function that moves a call.
 */
#ifndef CALL_H
#define CALL_H

#include "held.h"
#include "pool.h"
#include "records.h"

enum {
	/* Fork and confinement take 10 to 20 ms; a machine under heavy load
	 * may need a hundred times that. */
	CALL_START_MS = 5000,
	/* SIGKILL of a tree takes ms. After this the pool is given up. */
	CALL_REAP_MS = 5000,
	/* Between the end of a channel and its process being reaped. */
	CALL_HANGUP_MS = 250,
	/* Bytes waiting for a slow gateway before events are dropped. */
	CALL_EVENT_QUEUE_MAX = 1024 * 1024,
	/* What a client is told to wait when the queue is full. */
	CALL_RETRY_MS = 500,

	/* What the memory budget leaves a call at least: the runner's own two
	 * and six of the tool's. */
	CALL_PROCESSES_MIN = 8,
	/* Files in a call's /tmp: each is kernel memory that its size does not
	 * count. */
	CALL_TMP_INODES = 8192
};

enum call_state {
	CALL_NEW,
	CALL_WAITING_SLOT,
	CALL_STARTING,
	CALL_RUNNING,
	CALL_ENDING,
	CALL_ENDED
};

struct calls_conf {
	unsigned queue; /* calls that may wait for a slot */
	uint64_t queue_wait_ms;
	uint64_t limit[LIMIT_COUNT]; /* defaults of a call */
	uint64_t memory_budget;      /* of a call's processes together */
};

struct calls;
extern const struct pool_events calls_pool_events; /* arg: the calls */

struct calls *calls_new(
    struct event_base *, const struct calls_conf *, struct records *);
void calls_pool(struct calls *, struct pool *);
void calls_free(struct calls *);
/* Runs a context (taken over) for the one who waits at peer with request.
 * -1: no memory; the context is still the caller's. */
int calls_run(struct calls *, struct ipc_peer *, uint64_t request,
    struct held *, struct ipc_bytes arguments);
/* Ends a call that `by` started; by NULL (admind): any call. Others are left
 * alone. true if one ended. */
bool calls_cancel(
    struct calls *, const struct ipc_id *, struct ipc_peer *by, enum failure);
/* Nobody waits at this peer any more; its calls go on. */
void calls_peer_gone(struct calls *, struct ipc_peer *);
/* Deadlines by CLOCK_BOOTTIME: fires what passed while the machine slept. */
void calls_sweep(struct calls *, uint64_t now_ms);
size_t calls_count(const struct calls *);
bool calls_has(const struct calls *, const struct ipc_id *);
/* "call_memory=state detail": what bounds the memory of a call now. */
void calls_memory_layer(const struct calls *, char *out, size_t len);
void calls_each(struct calls *, void (*f)(struct table_node *, void *), void *);

#endif
