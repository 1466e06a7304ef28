/*
 * Calls that wait for their clients (ask.h has the questions).
 *
 * A parked call keeps its slot, its memory and its processes, bounded by its
 * limits. So the number of parked calls is bounded, at most by half of the
 * slots: clients that do not answer must not take all slots. Each question has
 * a time limit, and all questions of a call together have PARK_TOTAL_MS. The
 * call's wall clock is stopped while it is parked, but its CPU time counts. So
 * a tool that computes while it is parked gains PARK_TOTAL_MS at most. In that
 * time each of its processes is bound by the CPU limit (RLIMIT_CPU is for one
 * process), and all together by the slot's share of the processors.
 *
 * Only the connection that runs the call may answer. The answer is passed to
 * the tool as text, and nowhere else. So a client that is asked can do nothing
 * but give the tool a text.
 */
#include <string.h>

#include "ask.h"
#include "call_internal.h"
#include "ids.h"
#include "json_scan.h"
#include "log.h"

/* Sends the tool a refusal instead of an answer. */
static void
refuse(struct call *c, struct ipc_bytes questions, const char *text)
{
	struct buf b;

	buf_init(&b, ARGUMENTS_MAX);
	ask_refuse(questions, ASK_CODE_NO_ANSWER, text, &b);
	/* If the refusal can't be sent, the channel is going down, which ends
	 * the call. If memory runs out, no refusal is sent, and the tool waits
	 * until the wall clock ends the call. */
	if (!b.failed)
		(void)channel_answer(c->channel, ipc_bytes(b.p, b.len));
	buf_free(&b);
}

static uint64_t
time_left(const struct call *c)
{
	uint64_t used = c->park.total_ms;
	uint64_t left = used < PARK_TOTAL_MS ? PARK_TOTAL_MS - used : 0;

	return left < c->all->conf.ask_timeout_ms ? left
						  : c->all->conf.ask_timeout_ms;
}

/* Returns the number of calls that may be parked. Half of the slots are left
 * for calls that do not wait for a client. */
static unsigned
most(const struct calls *cs)
{
	unsigned half = (pool_counts(cs->pool).slots + 1) / 2;

	return cs->conf.parked_max < half ? cs->conf.parked_max : half;
}

void
park_ask(void *arg, uint32_t number, struct ipc_bytes json)
{
	struct call *c = arg;
	struct ipc_call_event m = {.execution = c->id,
	    .kind = CALL_EVENT_ASK,
	    .number = number,
	    .json = json};
	char text[160];
	struct err e;

	if (c->held->kind != CONTEXT_TOOL) {
		refuse(c, json, "Nobody can be asked in a test run.");
		return;
	}
	if (c->all->parked >= most(c->all)) {
		(void)err_set(&e, FAILURE_BUSY,
		    "Too many calls wait for their clients: the limit "
		    "parked_max is %u.",
		    most(c->all));
		refuse(c, json, e.text);
		return;
	}
	if (!share_fits(c->share, SHARE_PARKED, 1, most(c->all))) {
		refuse(c, json,
		    "Too many calls of this client wait for its answers.");
		return;
	}
	if (time_left(c) == 0) {
		refuse(c, json,
		    "The call has waited for its client for 10 minutes in "
		    "all; it may not ask any more.");
		return;
	}
	buf_init(&c->park.question, json.n);
	buf_put(&c->park.question, json.p, json.n);
	if (c->park.question.failed) {
		refuse(c, json, "There is no memory to wait.");
		buf_free(&c->park.question);
		return;
	}
	/* A task's question waits even if admind is not connected: when admind
	 * comes back, calls_attach sends the question again. */
	if ((c->peer == NULL ||
		ipc_answer(c->peer, c->request, IPC_CALL_EVENT, &m) != 0) &&
	    !c->held->task) {
		refuse(c, json, "Nobody is there who could be asked.");
		buf_free(&c->park.question);
		return;
	}
	uuid_text(&c->id, text);
	log_call(LOG_LV_DEBUG, "call_parked", text, NULL, "question %u",
	    (unsigned)number);
	c->park.number = number;
	call_change(c, CALL_PARKED);
}

void
park_enter(struct call *c)
{
	uint64_t now = now_boot_ms();

	c->all->parked++;
	share_take(c->share, SHARE_PARKED, 1);
	c->park.since_ms = now;
	c->park.left_ms = c->deadline_ms > now ? c->deadline_ms - now : 0;
	call_arm(c, time_left(c));
}

void
park_leave(struct call *c)
{
	c->all->parked--;
	share_leave(c->share, SHARE_PARKED, 1);
	c->park.total_ms += now_boot_ms() - c->park.since_ms;
	buf_free(&c->park.question);
}

static void
resume(struct call *c, const char *why)
{
	refuse(c, ipc_bytes(c->park.question.p, c->park.question.len), why);
	call_change(c, CALL_RUNNING);
}

void
park_expired(struct call *c)
{
	struct err e;

	(void)err_set(&e, FAILURE_NO_ANSWER,
	    "The client did not answer in time: the limit ask_timeout is %llu "
	    "ms, and 10 minutes for all questions of a call.",
	    (unsigned long long)c->all->conf.ask_timeout_ms);
	resume(c, e.text);
}

void
park_again(struct call *c)
{
	struct ipc_call_event m = {.execution = c->id,
	    .kind = CALL_EVENT_ASK,
	    .number = c->park.number,
	    .json = ipc_bytes(c->park.question.p, c->park.question.len)};

	(void)ipc_answer(c->peer, c->request, IPC_CALL_EVENT, &m);
}

void
park_orphaned(struct call *c)
{
	if (!c->held->task)
		resume(c, "Whoever could answer is gone.");
}

void
park_answer(struct calls *cs, const struct ipc_id *id, struct ipc_peer *by,
    uint32_t number, struct ipc_bytes json)
{
	struct call *c = TABLE_OBJECT(struct call, node,
	    table_find(&cs->by_id, id, sizeof(struct ipc_id)));
	struct buf b;

	/* An answer is ignored if it is for another peer's call, for an older
	 * question, or for a call that waits for no answer. An honest gateway
	 * sends the last two kinds, too, if the timer ended the wait while the
	 * answer was on its way. */
	if (c == NULL || c->peer != by || c->state != CALL_PARKED ||
	    c->park.number != number)
		return;
	buf_init(&b, ARGUMENTS_MAX);
	if (json_scan(json.p, json.n, NULL) == 0)
		ask_answers(ipc_bytes(c->park.question.p, c->park.question.len),
		    json, &b);
	if (b.failed || b.len == 0) {
		resume(c, "What the client answered can't be used.");
	} else {
		(void)channel_answer(c->channel, ipc_bytes(b.p, b.len));
		call_change(c, CALL_RUNNING);
	}
	buf_free(&b);
}
