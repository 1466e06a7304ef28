/*
 * One call from RUN to its record.
 *
 *	WAITING		queued until a runner of its	timer: queue_wait
 *			profile is ready
 *	STARTING	has one; its cgroup gets the	timer: CALL_LIMIT_MS
 *			call's limits (skipped if these
 *			are what it was forked with);
 *			egress hears of it, if it may	timer: NET_OPEN_MS
 *			connect at all
 *	RUNNING		it has code, arguments, secrets	timer: the wall clock
 *	PARKED		it asked its client something	timer: ask_timeout; the
 *			and waits (park.c)		wall clock is stopped
 *	CHECKING	it ran; its result waits for	timer: VERIFY_MS
 *			admind's verdict (verify.c)
 *	REPORTING	it failed and may connect:	timer: CALL_REPORT_MS
 *			egress is asked what it refused
 *			to the call (callnet.c)
 *	ENDING		answered; its tree is killed,	CALL_LINGER_US, then
 *			a moment later if no call waits	the runner's own
 *	ENDED		record handed on; freed
 *
 * The first event that ends a call decides how it ended, once. The answer goes
 * to the waiting client at that moment. The record, which holds the CPU time,
 * follows when the runner was reaped. A call whose runner or pool dies before
 * it had its code waits for another runner: no code of the tool ran.
 * call_change in call.c is the only function that changes a call's state.
 */
#ifndef CALL_H
#define CALL_H

#include "depot.h"
#include "held.h"
#include "net.h"
#include "records.h"
#include "runners.h"

enum {
	/* Writing a cgroup's limits takes less than a ms. */
	CALL_LIMIT_MS = 5000,
	/* A little more than the time that egress has to report. */
	CALL_REPORT_MS = NET_CLOSE_MS + 500,
	/* An answer reaches its client sooner, so the end of its runner and the
	 * fork of the next one, milliseconds of work, do not delay it. */
	CALL_LINGER_US = 300,
	/* Between a process being reaped and the end of its channel. */
	CALL_REAP_MS = 5000,
	/* Between the end of a channel and its process being reaped. */
	CALL_HANGUP_MS = 250,
	/* Bytes waiting for a slow gateway before events are dropped. */
	CALL_EVENT_QUEUE_MAX = 1024 * 1024,
	/* The wait that a client is told: by the load (calls_retry_ms) between
	 * MIN and MAX, or CALL_RETRY_MS if load is not the reason. */
	CALL_RETRY_MIN_MS = 100,
	CALL_RETRY_MAX_MS = 30 * 1000,
	CALL_RETRY_MS = 500,

	/* Processes that the memory budget leaves a call at least: the runner's
	 * own two and six of the tool's. */
	CALL_PROCESSES_MIN = 8,
	/* Files in a call's /tmp: each takes kernel memory that the size of
	 * /tmp does not count. */
	CALL_TMP_INODES = 8192
};

enum call_state {
	CALL_NEW,
	CALL_WAITING,
	CALL_STARTING,
	CALL_RUNNING,
	CALL_PARKED,
	CALL_CHECKING,
	CALL_REPORTING,
	CALL_ENDING,
	CALL_ENDED
};

struct calls_conf {
	unsigned queue; /* calls that may wait for a slot */
	uint64_t queue_wait_ms;
	uint64_t limit[LIMIT_COUNT]; /* defaults of a call */
	uint32_t cpu_percent;        /* of a call, where there is a cgroup */
	uint64_t memory_budget;      /* of a call's processes together */
	unsigned waiting_min, waiting_max; /* runners, see runners_conf */
	uint64_t waiting_memory;
	unsigned forks;
	unsigned parked_max;     /* calls that may wait for their clients */
	uint64_t ask_timeout_ms; /* each question */
};

struct calls;

struct calls *calls_new(
    struct event_base *, const struct calls_conf *, struct records *);
/* Returns the way to egress (net.h), for the code that connects it. */
struct nets *calls_nets(struct calls *);
/* Likewise the way to the module store (depot.h). */
struct depot *calls_depot(struct calls *);
/* Grants a server other hosts: its running calls may connect to those from now
 * on, and to no others. */
void calls_regrant(struct calls *, const struct regrant *);
/* Returns the calls' runners: runners_pool_events' arg. */
struct runners *calls_runners(struct calls *);
void calls_pool(struct calls *, struct pool *);
void calls_free(struct calls *);
/* Runs a context (taken over) for the client that waits at peer with request.
 * -1: no memory; the context is still the caller's. */
int calls_run(struct calls *, struct ipc_peer *, uint64_t request,
    struct held *, struct ipc_bytes arguments);
/* Ends a context that is not held any more and will not run; its record says
 * so. */
void calls_refuse_held(
    struct calls *, struct held *, enum outcome, enum failure);
/* Stops for the end of this process: kills running calls, refuses those that
 * did not begin, and leaves those that are ENDING. */
void calls_stop(struct calls *);
/* Cancels a call that `by` started; by NULL (admind): any call. Other calls are
 * left alone. true if one ended. */
bool calls_cancel(
    struct calls *, const struct ipc_id *, struct ipc_peer *by, enum failure);
/* Takes the client's answer to question `number` of a call that `by` started;
 * ignores anything else. json is foreign. */
void park_answer(struct calls *, const struct ipc_id *, struct ipc_peer *by,
    uint32_t number, struct ipc_bytes json);
/* Attaches admind, which is back, to this task's call: it hears all further
 * events, an open question first. false: no call of a task with this id has an
 * end to come. */
bool calls_attach(
    struct calls *, const struct ipc_id *, struct ipc_peer *, uint64_t request);
/* Sets the connection to admind, or NULL if there is none: it judges results
 * (verify.h). */
void calls_admind(struct calls *, struct ipc_peer *);
/* Forgets a peer that has gone; its calls go on. */
void calls_peer_gone(struct calls *, struct ipc_peer *);
/* Fires the deadlines (CLOCK_BOOTTIME) that passed while the machine slept. */
void calls_sweep(struct calls *, uint64_t now_ms);
size_t calls_count(const struct calls *);
bool calls_has(const struct calls *, const struct ipc_id *);
/* Returns when a client that met `busy` may try again: from the number of
 * waiting calls and the rate at which calls have been ending. */
uint64_t calls_retry_ms(const struct calls *);
/* Writes the calls' state, and more, in one line for `systemctl status`. */
void calls_status(const struct calls *, char *out, size_t, const char *more);
/* Writes "name=state detail" lines of the pool's work, for doctor. */
void calls_layers(const struct calls *, struct buf *);
/* Writes "call_memory=state detail": the present bound of a call's memory. */
void calls_memory_layer(const struct calls *, char *out, size_t len);
void calls_each(struct calls *, void (*f)(struct table_node *, void *), void *);

#endif
