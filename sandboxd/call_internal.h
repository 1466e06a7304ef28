/* Shared by call.c and calls.c only. */
#ifndef CALL_INTERNAL_H
#define CALL_INTERNAL_H

#include <event2/event.h>

#include "call.h"
#include "channel.h"
#include "codecache.h"

struct call {
	struct table_node node; /* first: execution id */
	TAILQ_ENTRY(call) link; /* while WAITING */
	struct calls *all;
	enum call_state state;
	struct held *held;
	struct buf arguments;
	struct ipc_peer *peer; /* who waits, or NULL */
	uint64_t request;
	struct event *timer;
	uint64_t run_us; /* CLOCK_REALTIME at RUN, for the record */
	uint64_t run_ms, deadline_ms; /* CLOCK_BOOTTIME */
	uint64_t started_ms;          /* likewise, in RUNNING */
	struct profile *profile;
	struct runner *runner; /* until it was reaped */
	struct channel *channel;
	bool hungup; /* the channel ended without a result */
	bool reaped; /* the runner ended, its last frames may come */
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
	struct table by_id;
	TAILQ_HEAD(call_queue, call) queue;
	unsigned queued;
	uint64_t took_us; /* a call's usual time in RUNNING */
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
/* A call ran for so long. */
void calls_took(struct calls *, uint64_t ms);
/* What a runner's cgroup is held to by a call's limits. */
struct pool_limits calls_limits(
    const struct calls *, const uint64_t limit[LIMIT_COUNT]);
/* How many processes and threads a call gets that may have `processes`, each
 * of them `memory` bytes. */
uint32_t call_processes(
    const struct calls *, uint64_t processes, uint64_t memory);
/* The call's deadline passed (an event callback). */
void call_timer(evutil_socket_t, short, void *call);
/* Without a record and without touching the table. */
void call_free(struct call *);

#endif
