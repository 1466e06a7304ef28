/* Shared by the files of this folder only. */
#ifndef CALL_INTERNAL_H
#define CALL_INTERNAL_H

#include <event2/event.h>

#include "call.h"
#include "channel.h"
#include "codecache.h"
#include "share.h"

/* A call's question to its client (park.c). */
struct park {
	struct buf question; /* PARKED: the open question, as sent */
	uint32_t number;     /* of the open question */
	uint64_t since_ms;   /* when PARKED began, CLOCK_BOOTTIME */
	uint64_t total_ms;   /* time in PARKED for all earlier questions */
	uint64_t left_ms;    /* PARKED: the rest of the wall clock */
};

struct call {
	struct table_node node; /* by the execution's id */
	struct ipc_id id;
	TAILQ_ENTRY(call) link; /* while WAITING */
	struct calls *all;
	enum call_state state;
	struct held *held;
	struct share *share; /* of the call's principal */
	bool slotted;        /* true: a slot is counted in share */
	struct buf arguments;
	struct ipc_peer *peer; /* the client that waits, or NULL */
	uint64_t request;
	struct event *timer;
	uint64_t run_us; /* CLOCK_REALTIME at RUN, for the record */
	uint64_t run_ms, deadline_ms; /* CLOCK_BOOTTIME */
	uint64_t started_ms;          /* begin of RUNNING, CLOCK_BOOTTIME */
	struct park park;
	struct verify *verify;   /* CHECKING: the result (verify.c) */
	struct callnet *callnet; /* NULL: the call connects to nothing */
	struct install *install; /* NULL: the call stores no module */
	struct profile *profile;
	struct runner *runner; /* until it was reaped */
	struct channel *channel;
	bool answered; /* by a result: linger() delays the kill */
	bool hungup;   /* the channel ended without a result */
	bool reaped;   /* the runner ended; its last frames may still come */
	uint32_t status, oom_kills;
	uint64_t peak_kib;
};

struct calls {
	struct event_base *base;
	struct calls_conf conf;
	struct pool *pool;
	struct runners *runners;
	struct codecache *cache;
	struct records *records;
	struct verifies *verifies;
	struct nets *nets;
	struct depot *depot;
	struct shares *shares;
	struct table by_id;
	TAILQ_HEAD(call_queue, call) queue;
	unsigned queued;
	unsigned parked;
	uint64_t ended;                      /* calls since the start */
	uint64_t took_us;                    /* the usual time in RUNNING */
	TAILQ_HEAD(early_list, early) early; /* early.c: oldest first */
	unsigned nearly;                     /* entries of `early` */
};

/* Changes a call's state (call.c); ENDED frees it. */
void call_change(struct call *, enum call_state to);
/* Gives a waiting call a runner, if a runner of the call's profile waits. The
 * call may be gone after this. false: no runner waits. */
bool call_start(struct call *);
/* Decides how the call ended; called once for each call. If body is NULL, the
 * body is made of message. The call may be gone after this. */
void call_finish(struct call *, enum outcome, enum failure, const char *message,
    const struct ipc_bytes *body);
/* Ends a call whose runner ended without a result. Called when all frames of
 * the runner were read. */
void call_crashed(struct call *);
/* Ends an answered call whose runner is gone. The record is sent now, or, if
 * egress has yet to report the connections, with the report. */
void call_gone(struct call *);
/* Starts the tool's code. If that fails, the call waits for another runner. */
void call_go(struct call *);
/* Sends an event to the client that waits for the call, unless too much waits
 * for that client already. kind as in CALL_EVENT. */
void call_event(struct call *, uint8_t kind, struct ipc_bytes json);
/* Returns how many waiting calls may have a slot (slot_is_due). */
unsigned calls_hungry(const struct calls *);
/* Notes how long a call ran, for calls_retry_ms. */
void calls_took(struct calls *, uint64_t ms);
/* Sends a runner the code and the limits. No code of the tool runs before
 * channel_start. 0, or -1 if they could not be sent. */
int call_tell(struct calls *, const struct held *, const struct runner *,
    struct channel *);
/* Returns the profile of a held context, referenced until runners_profile_done.
 * NULL: no memory. */
struct profile *calls_profile(
    struct calls *, const struct held *, uint64_t now_ms);
/* Returns the cgroup limits of a runner for a call's limits. */
struct pool_limits calls_limits(
    const struct calls *, const uint64_t limit[LIMIT_COUNT]);
/* Returns the number of processes and threads that a call gets. Its limits are
 * `processes`, and `memory` bytes for each process. */
uint32_t call_processes(
    const struct calls *, uint64_t processes, uint64_t memory);
/* Sets the call's next deadline, from now. */
void call_arm(struct call *, uint64_t ms);
/* slot.c. A slot counts against the share of the call's principal, from the
 * moment at which the call gets a runner until the runner's end. */
void slot_take(struct call *);
/* Counts a call that enters the queue (begins), or that leaves the queue. */
void slot_wait(struct call *, bool begins);
void slot_leave(struct call *);
/* Tells whether the call may have a slot if a slot is free. false: the call's
 * principal uses its whole part of the slots already. */
bool slot_is_due(const struct call *);
/* Takes the tool's question: parks the call, or sends the tool a refusal at
 * once. This is the `ask` of the channel's events (park.c). */
void park_ask(void *call, uint32_t number, struct ipc_bytes json);
/* These two do the work of entering and leaving PARKED, for call_change only.
 */
void park_enter(struct call *);
void park_leave(struct call *);
/* Tells the tool that no answer came in time; the tool goes on. */
void park_expired(struct call *);
/* Tells the tool that the client is gone, and the tool goes on. A task's call
 * stays PARKED, since admind may come back (park_again). */
void park_orphaned(struct call *);
/* Sends the open question of a task's call to the call's new peer. */
void park_again(struct call *);
/* Handles the end of a call's deadline (an event callback). */
void call_timer(evutil_socket_t, short, void *call);
/* Frees a call without its record and without touching the table. */
void call_free(struct call *);

#endif
