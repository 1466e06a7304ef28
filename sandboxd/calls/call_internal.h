/* Shared by call.c and calls.c only. */
#ifndef CALL_INTERNAL_H
#define CALL_INTERNAL_H

#include <event2/event.h>

#include "call.h"
#include "channel.h"
#include "codecache.h"
#include "share.h"

/* What a call asked its client (park.c). */
struct park {
	struct buf question; /* PARKED: what is open, as it was sent */
	uint32_t number;     /* of it */
	uint64_t since_ms;   /* PARKED: CLOCK_BOOTTIME */
	uint64_t total_ms;   /* in PARKED, all earlier questions */
	uint64_t left_ms;    /* PARKED: of the wall clock */
};

struct call {
	struct table_node node; /* first: execution id */
	TAILQ_ENTRY(call) link; /* while WAITING */
	struct calls *all;
	enum call_state state;
	struct held *held;
	struct share *share; /* of whose call it is */
	bool slotted;        /* a slot counts there */
	struct buf arguments;
	struct ipc_peer *peer; /* who waits, or NULL */
	uint64_t request;
	struct event *timer;
	uint64_t run_us; /* CLOCK_REALTIME at RUN, for the record */
	uint64_t run_ms, deadline_ms; /* CLOCK_BOOTTIME */
	uint64_t started_ms;          /* likewise, in RUNNING */
	struct park park;
	struct verify *verify;   /* CHECKING: the result (verify.c) */
	struct callnet *callnet; /* NULL: it connects to nothing */
	struct install *install; /* NULL: it stores no module */
	struct profile *profile;
	struct runner *runner; /* until it was reaped */
	struct channel *channel;
	bool answered; /* with a result: the runner has nothing to say */
	bool hungup;   /* the channel ended without a result */
	bool reaped;   /* the runner ended, its last frames may come */
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
	uint64_t took_us; /* a call's usual time in RUNNING */
	TAILQ_HEAD(early_list, early) early; /* early.c: oldest first */
	unsigned nearly;                     /* how many */
};

/* call.c: moves a call; ENDED frees it. */
void call_change(struct call *, enum call_state to);
/* Gives a waiting call a runner, if one of its profile waits. false: none
 * does. The call may be gone after this. */
bool call_start(struct call *);
/* How the call ended, said once. body NULL: made of message. c may be gone
 * after this. */
void call_finish(struct call *, enum outcome, enum failure, const char *message,
    const struct ipc_bytes *body);
/* Its runner ended without a result, and all it ever sent was read. */
void call_crashed(struct call *);
/* Its runner is gone and it was answered: the record leaves, unless egress has
 * yet to say what it connected to. */
void call_gone(struct call *);
/* Behind this the tool's code runs. The call may begin anew. */
void call_go(struct call *);
/* kind as in CALL_EVENT: to whoever waits, if it reads. */
void call_event(struct call *, uint8_t kind, struct ipc_bytes json);
/* How many calls wait that could have a slot. */
unsigned calls_hungry(const struct calls *);
/* A call ran for so long. */
void calls_took(struct calls *, uint64_t ms);
/* Sends a runner what to run and within which limits; nothing runs before
 * channel_start. -1: it could not be sent. */
int call_tell(struct calls *, const struct held *, const struct runner *,
    struct channel *);
/* The profile of what is held, referenced. NULL: no memory. */
struct profile *calls_profile(
    struct calls *, const struct held *, uint64_t now_ms);
/* What a runner's cgroup is held to by a call's limits. */
struct pool_limits calls_limits(
    const struct calls *, const uint64_t limit[LIMIT_COUNT]);
/* How many processes and threads a call gets that may have `processes`, each
 * of them `memory` bytes. */
uint32_t call_processes(
    const struct calls *, uint64_t processes, uint64_t memory);
/* Time from now to the call's next deadline. */
void call_arm(struct call *, uint64_t ms);
/* slot.c. A slot counts against its principal's share from the runner it is
 * given to the runner's end. Could it have one if there were one? No: its
 * principal has its part. */
void slot_take(struct call *);
/* It is in the queue, or was taken out of it. */
void slot_wait(struct call *, bool begins);
void slot_leave(struct call *);
bool slot_is_due(const struct call *);
/* park.c. The channel's `ask`: parks the call, or answers at once. */
void park_ask(void *call, uint32_t number, struct ipc_bytes json);
/* Of call_change: entering and leaving PARKED. */
void park_enter(struct call *);
void park_leave(struct call *);
/* Nobody answered in time, or nobody is there who could: the tool hears it and
 * goes on. */
void park_expired(struct call *);
void park_orphaned(struct call *);
/* A task's call has a new peer: it is asked what is open. */
void park_again(struct call *);
/* The call's deadline passed (an event callback). */
void call_timer(evutil_socket_t, short, void *call);
/* Without a record and without touching the table. */
void call_free(struct call *);

#endif
