/* See call.h. */
#include <event2/event.h>

#include <stdlib.h>
#include <string.h>

#include "call_internal.h"
#include "callnet.h"
#include "channel.h"
#include "depot.h"
#include "early.h"
#include "ids.h"
#include "log.h"
#include "result.h"
#include "verify.h"

static void call_exited(void *, const struct ipc_exited *);
static void call_lost(void *);
static void call_limited(void *, int);
static const struct channel_events channel_events;

/* Sets the timer to the deadline. */
static void
rearm(struct call *c)
{
	uint64_t now = now_boot_ms();
	uint64_t ms = now < c->deadline_ms ? c->deadline_ms - now : 0;
	struct timeval tv = {
	    (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

	/* libevent counts a timer's time from the start of this round of the
	 * loop. Without the update the limit would be too short by the time
	 * that the round has taken so far. */
	(void)event_base_update_cache_time(c->all->base);
	(void)evtimer_add(c->timer, &tv);
}

void
call_arm(struct call *c, uint64_t ms)
{
	c->deadline_ms = now_boot_ms() + ms;
	rearm(c);
}

/*
 * Kills the runner's process tree. If the call was answered with a result and
 * no call waits, the kill is delayed until the answer has arrived. A tool gains
 * nothing by the delay: its runner's messages are not read any more, and the
 * CPU time up to its end is in the record.
 */
static void
linger(struct call *c)
{
	static const struct timeval tv = {.tv_usec = CALL_LINGER_US};

	/* Without a runner the call waits only for egress' report. */
	if (c->runner == NULL)
		return;
	if (!c->answered || c->all->queued > 0 ||
	    evtimer_add(c->timer, &tv) != 0)
		runners_end(c->runner);
}

void
call_free(struct call *c)
{
	channel_close(c->channel);
	if (c->profile != NULL)
		runners_profile_done(c->all->runners, c->profile);
	verify_forget(c);
	callnet_forget(c);
	depot_forget(c);
	slot_leave(c);
	share_put(c->share);
	held_free(c->held);
	buf_free(&c->arguments);
	buf_free(&c->park.question);
	if (c->timer != NULL)
		event_free(c->timer);
	free(c);
}

/* Sends the record to the store and frees the call. */
static void
end_call(struct call *c)
{
	struct calls *cs = c->all;
	struct record *r = c->held->record;

	c->held->record = NULL;
	table_del(&cs->by_id, &c->node);
	cs->ended++;
	call_free(c);
	records_add(cs->records, r);
}

/* Returns the time in ms that a call may still wait in the queue. */
static uint64_t
queue_left(const struct call *c)
{
	uint64_t waited = now_boot_ms() - c->run_ms;

	return waited >= c->all->conf.queue_wait_ms
	    ? 0
	    : c->all->conf.queue_wait_ms - waited;
}

/*
 * Changes a call's state; no other function does that. Also does the work of
 * leaving the old state and of entering the new state, and sets the timer.
 * ENDED frees the call.
 */
void
call_change(struct call *c, enum call_state to)
{
	enum call_state from = c->state;

	if (from == CALL_WAITING) {
		TAILQ_REMOVE(&c->all->queue, c, link);
		slot_wait(c, false);
	} else if (from == CALL_PARKED) {
		park_leave(c);
	}
	c->state = to;
	switch (to) {
	case CALL_NEW:
		break;
	case CALL_WAITING:
		/* A call that had a runner and lost it goes first. */
		if (from == CALL_STARTING)
			TAILQ_INSERT_HEAD(&c->all->queue, c, link);
		else
			TAILQ_INSERT_TAIL(&c->all->queue, c, link);
		slot_wait(c, true);
		call_arm(c, queue_left(c));
		break;
	case CALL_STARTING:
		call_arm(c, CALL_LIMIT_MS);
		break;
	case CALL_RUNNING:
		if (from == CALL_PARKED) {
			call_arm(c, c->park.left_ms);
			break;
		}
		/* The runner has the arguments. They are not needed again,
		 * since the call can't go back to another runner now. */
		buf_free(&c->arguments);
		c->started_ms = now_boot_ms();
		call_arm(c, c->held->timeout_ms);
		break;
	case CALL_PARKED:
		park_enter(c);
		break;
	case CALL_CHECKING:
		call_arm(c, VERIFY_MS);
		break;
	case CALL_REPORTING:
		call_arm(c, CALL_REPORT_MS);
		break;
	case CALL_ENDING:
		/* The runner has a deadline of its own, so the call needs none.
		 */
		(void)evtimer_del(c->timer);
		c->deadline_ms = UINT64_MAX;
		linger(c);
		break;
	case CALL_ENDED:
		end_call(c);
		break;
	}
}

/* --- The limits of a call. ---------------------------------------------- */

/*
 * Returns the number of processes that a call gets. RLIMIT_AS limits each
 * process of a call alone. Without a memory controller the processes of a call
 * together could use `processes` times `memory` bytes, so the call gets only as
 * many processes as the memory budget has room for. With fewer than
 * CALL_PROCESSES_MIN a runner could do nothing, so the budget leaves at least
 * that many.
 */
uint32_t
call_processes(const struct calls *cs, uint64_t processes, uint64_t memory)
{
	uint64_t n;

	if (!pool_memory_bound(cs->pool)) {
		n = cs->conf.memory_budget / memory;
		if (n < CALL_PROCESSES_MIN)
			n = CALL_PROCESSES_MIN;
		if (processes > n)
			processes = n;
	}
	return (uint32_t)processes;
}

/* --- Into a runner. --------------------------------------------------- */

/* Puts the call at the head of the queue, where it waits for another runner:
 * the present runner failed before any code of the tool ran. */
static void
again(struct call *c)
{
	channel_close(c->channel);
	c->channel = NULL;
	c->hungup = false;
	if (c->runner != NULL)
		runners_discard(c->runner);
	c->runner = NULL;
	callnet_forget(c);
	depot_forget(c);
	slot_leave(c);
	call_change(c, CALL_WAITING);
}

int
call_tell(struct calls *cs, const struct held *h, const struct runner *r,
    struct channel *channel)
{
	struct ipc_bytes code = codecache_find(cs->cache, h, r);
	struct ipc_execute x = {
	    .kind = h->kind,
	    .form = (uint8_t)held_form(h),
	    .driver = (uint8_t)h->driver,
	    .network = h->requires.len > 0,
	    .name = h->name,
	    .memory_bytes = h->limit[LIMIT_MEMORY_BYTES],
	    .cpu_ms = h->limit[LIMIT_CPU_MS],
	    .processes = call_processes(
		cs, h->limit[LIMIT_PROCESSES], h->limit[LIMIT_MEMORY_BYTES]),
	    .files = (uint32_t)h->limit[LIMIT_FILES],
	    .file_bytes = h->limit[LIMIT_FILE_BYTES],
	    .executable = h->executable,
	    .executable_digest = h->executable_digest,
	    .source_len = (uint32_t)h->code.n,
	    .code = code,
	};

	if (channel_execute(channel, &x) != 0)
		return -1;
	if (code.n == h->code.n)
		codecache_want(cs->cache, h);
	return 0;
}

/* Starts the tool's code. Only this function calls channel_start. */
void
call_go(struct call *c)
{
	if (channel_start(
		c->channel, ipc_bytes(c->arguments.p, c->arguments.len)) != 0)
		again(c);
	else
		call_change(c, CALL_RUNNING);
}

/* Starts a call whose runner has the code: at once, or, if the call may
 * connect, when egress has opened the call's net. */
static void
told(struct call *c)
{
	if (!callnet_begin(c))
		call_go(c);
}

static void
execute(struct call *c)
{
	if (call_tell(c->all, c->held, c->runner, c->channel) != 0)
		again(c);
	else
		told(c);
}

bool
call_start(struct call *c)
{
	static const struct runner_owner owner = {
	    .exited = call_exited, .lost = call_lost, .limited = call_limited};
	const struct held *h = c->held;
	struct pool_limits limits = calls_limits(c->all, h->limit);
	struct ipc_peer *peer;
	struct err e;
	bool ready;
	int rc;

	if (early_take(c->all, h, &c->runner, &c->channel, &ready)) {
		slot_take(c);
		runners_owner(c->runner, &owner, c);
		channel_owner(c->channel, &channel_events, c);
		call_change(c, CALL_STARTING);
		if (ready)
			told(c);
		return true;
	}
	c->runner = runners_take(c->all->runners, c->profile, &owner, c, &peer);
	if (c->runner == NULL)
		return false;
	slot_take(c);
	call_change(c, CALL_STARTING);
	c->channel = channel_new(c->all->base, peer, h, &channel_events, c, &e);
	if (c->channel == NULL)
		call_finish(c, OUTCOME_REFUSED, FAILURE_BUSY, e.text, NULL);
	else if ((rc = runners_limit(c->runner, &limits)) == 0)
		execute(c);
	else if (rc == -1)
		call_finish(c, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE,
		    "the call's limits could not be set", NULL);
	return true;
}

/* --- Events of the channel. ------------------------------------------- */

void
call_event(struct call *c, uint8_t kind, struct ipc_bytes json)
{
	struct ipc_call_event m = {
	    .execution = c->id,
	    .kind = kind,
	    .json = json,
	};

	/* A client that does not read loses events, but gets its result. */
	if (c->peer != NULL && ipc_peer_queued(c->peer) < CALL_EVENT_QUEUE_MAX)
		(void)ipc_answer(c->peer, c->request, IPC_CALL_EVENT, &m);
}

static void
on_event(void *arg, uint8_t kind, struct ipc_bytes json)
{
	call_event(arg, kind, json);
}

static void
on_result(void *arg, enum failure failure, struct ipc_bytes body)
{
	if (failure != FAILURE_NONE && callnet_failed(arg, failure, body))
		return;
	if (failure == FAILURE_NONE && verify_begin(arg, body))
		return;
	call_finish(arg,
	    failure == FAILURE_NONE ? OUTCOME_DONE : OUTCOME_FAILED, failure,
	    NULL, &body);
}

static void
on_violation(void *arg, enum failure failure, const char *text)
{
	struct call *c = arg;

	log_event(LOG_LV_WARN, "runner_violation", "%s", text);
	if (c->state == CALL_STARTING)
		again(c);
	else
		call_finish(c,
		    failure == FAILURE_LIMIT ? OUTCOME_FAILED : OUTCOME_KILLED,
		    failure, text, NULL);
}

/*
 * Handles the channel's end. Usually the process died, and pool-init will soon
 * report how (call_exited). If no report comes, the process still lives: it
 * closed its channel or broke a rule of the IPC table, so the timer kills it.
 */
static void
on_hangup(void *arg)
{
	struct call *c = arg;

	if (c->state == CALL_STARTING) {
		again(c);
		return;
	}
	if (c->reaped) {
		call_crashed(c);
		return;
	}
	if (c->state == CALL_PARKED)
		call_change(c, CALL_RUNNING); /* the wait has ended */
	c->hungup = true;
	/* The deadline never becomes later: a tool must not gain time by
	 * closing the channel. */
	if (c->deadline_ms > now_boot_ms() + CALL_HANGUP_MS)
		call_arm(c, CALL_HANGUP_MS);
}

static void
on_part(void *arg, bool last, struct ipc_bytes data)
{
	depot_part(arg, last, data);
}

static const struct channel_events channel_events = {
    .event = on_event,
    .part = on_part,
    .ask = park_ask,
    .result = on_result,
    .violation = on_violation,
    .down = on_hangup,
};

/* --- Events of the runner. --------------------------------------------- */

/*
 * Handles the reaped runner. The runner's last frames, perhaps its result among
 * them, may still be unread. After the last frame the channel ends, and
 * on_hangup is called.
 */
static void
call_exited(void *owner, const struct ipc_exited *m)
{
	struct call *c = owner;

	c->runner = NULL;
	slot_leave(c);
	if (c->state == CALL_PARKED)
		call_change(c, CALL_RUNNING);
	switch (c->state) {
	case CALL_STARTING:
		again(c);
		return;
	case CALL_CHECKING:
	case CALL_REPORTING:
		c->held->record->cpu_us = m->cpu_us;
		return;
	case CALL_ENDING:
		c->held->record->cpu_us = m->cpu_us;
		call_gone(c);
		return;
	default:
		break;
	}
	c->held->record->cpu_us = m->cpu_us;
	c->reaped = true;
	c->status = m->status;
	c->peak_kib = m->peak_kib;
	c->oom_kills = m->oom_kills;
	if (c->hungup)
		call_crashed(c);
	else
		call_arm(c, CALL_REAP_MS);
}

static void
call_lost(void *owner)
{
	struct call *c = owner;

	c->runner = NULL;
	slot_leave(c);
	switch (c->state) {
	case CALL_STARTING:
		/* No code of the tool ran, so the call may start again. */
		again(c);
		break;
	case CALL_RUNNING:
	case CALL_PARKED:
		call_finish(c, OUTCOME_LOST, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox ended while the tool ran; it may have had "
		    "effects",
		    NULL);
		break;
	case CALL_CHECKING:
	case CALL_REPORTING:
		break; /* the tool's result is already here */
	default:
		call_gone(c);
	}
}

static void
call_limited(void *owner, int error)
{
	struct call *c = owner;

	if (c->state != CALL_STARTING)
		return;
	if (error == 0) {
		execute(c);
		return;
	}
	log_event(
	    LOG_LV_ERR, "limits", "a runner's cgroup: %s", strerror(error));
	call_finish(c, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE,
	    "the call's limits could not be set", NULL);
}

/* --- Time. ------------------------------------------------------------- */

void
call_timer(evutil_socket_t fd, short what, void *arg)
{
	struct call *c = arg;
	struct err e;

	(void)evtimer_del(c->timer);
	if (c->state == CALL_ENDING) {
		if (c->runner != NULL)
			runners_end(c->runner);
		return;
	}
	/* libevent's clock is coarse, so the timer may fire some ms early. A
	 * limit must not end early, so the rest of the time is waited for. */
	if (now_boot_ms() < c->deadline_ms) {
		rearm(c);
		return;
	}
	if (c->state == CALL_RUNNING && c->reaped) {
		call_crashed(c);
		return;
	}
	switch (c->state) {
	case CALL_WAITING:
		if (pool_ready(c->all->pool))
			call_finish(c, OUTCOME_REFUSED, FAILURE_BUSY,
			    "no slot became free in time", NULL);
		else
			call_finish(c, OUTCOME_REFUSED,
			    FAILURE_SANDBOX_UNAVAILABLE,
			    "the sandbox is not up", NULL);
		break;
	case CALL_STARTING:
		call_finish(c, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE,
		    c->callnet != NULL
			? "sandboxd-egress did not answer in time"
			: "the call's limits were not set in time",
		    NULL);
		break;
	case CALL_RUNNING:
		if (c->hungup) {
			call_finish(c, OUTCOME_KILLED, FAILURE_KILLED,
			    "The tool was ended: it broke or closed the "
			    "channel to its sandbox.",
			    NULL);
			break;
		}
		result_limit("The tool did not finish in time and was ended",
		    LIMIT_TIMEOUT_MS, c->held->timeout_ms, &e);
		call_finish(c, OUTCOME_FAILED, FAILURE_TIMEOUT, e.text, NULL);
		break;
	case CALL_PARKED:
		park_expired(c);
		break;
	case CALL_CHECKING:
		verify_expired(c);
		break;
	case CALL_REPORTING:
		callnet_expired(c);
		break;
	default:
		break;
	}
}
