/* Shared by call.c and calls.c only. */
#ifndef CALL_INTERNAL_H
#define CALL_INTERNAL_H

#include <event2/event.h>

#include "call.h"
#include "channel.h"

struct call {
	struct table_node node; /* first: execution id */
	TAILQ_ENTRY(call) link; /* while WAITING_SLOT */
	struct calls *all;
	enum call_state state;
	struct held *held;
	struct buf arguments;
	struct ipc_peer *peer; /* who waits, or NULL */
	uint64_t request;
	struct event *timer;
	uint64_t run_us; /* CLOCK_REALTIME at RUN, for the record */
	uint64_t run_ms, deadline_ms; /* CLOCK_BOOTTIME */
	struct pool_slot slot;
	bool has_slot; /* until it was reaped */
	struct channel *channel;
	bool hungup; /* the channel ended without a result */
	bool reaped; /* the runner ended, its last frames may come */
	uint32_t status;
	uint64_t peak_kib;
};

struct calls {
	struct event_base *base;
	struct calls_conf conf;
	struct pool *pool;
	struct records *records;
	struct table by_id;
	TAILQ_HEAD(call_queue, call) queue;
	unsigned queued;
};

/* call.c: moves a call; ENDED frees it. */
void call_change(struct call *, enum call_state to);
/* How the call ended, said once. body NULL: made of message. c may be gone
 * after this. */
void call_finish(struct call *, enum outcome, enum failure, const char *message,
    const struct ipc_bytes *body);
/* How many processes and threads a call gets that may have `processes`, each
 * of them `memory` bytes. */
uint32_t call_processes(
    const struct calls *, uint64_t processes, uint64_t memory);
/* The call's deadline passed (an event callback). */
void call_timer(evutil_socket_t, short, void *call);
/* Without a record and without touching the table. */
void call_free(struct call *);

#endif
