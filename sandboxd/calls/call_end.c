/* The end of calls. See call.h. */
#include "answer.h"
#include "call_internal.h"
#include "callnet.h"
#include "channel.h"
#include "ids.h"
#include "log.h"
#include "result.h"
#include "verify.h"

/* Records a task's result. The task's client gets its result from the record,
 * so the record keeps the whole result and the _meta that an answer would
 * have. */
static void
record_task(struct call *c, struct record *r, struct ipc_bytes out,
    struct ipc_bytes body, uint64_t took, const struct result_dropped *dropped,
    const char *message)
{
	struct buf meta;

	buf_init(&meta, IPC_BLOB_MAX / 2);
	result_meta(
	    &meta, &c->id, took, out, dropped, r->failure, message, body);
	record_whole(
	    r, out, body, ipc_bytes(meta.p, meta.failed ? 0 : meta.len));
	buf_free(&meta);
}

/* Ends a call whose runner is gone. The record is sent now, or, if egress has
 * yet to report the connections, with the report. */
void
call_gone(struct call *c)
{
	if (!callnet_close(c))
		call_change(c, CALL_ENDED);
}

/*
 * Decides how the call ended; called once for each call. Writes the record into
 * the ledger and sends the answer now. If the runner still exists, its process
 * tree is killed. Only when the runner was reaped, the record is sent and the
 * slot is free. If body is NULL, the body is made of message.
 */
void
call_finish(struct call *c, enum outcome outcome, enum failure failure,
    const char *message, const struct ipc_bytes *body)
{
	uint64_t now = now_us();
	struct record *r = c->held->record;
	struct result_dropped dropped = {0};
	struct ipc_bytes b, out;
	struct buf made, printed, room = {0};
	char id[UUID_TEXT_LEN + 1];
	uint64_t took;

	buf_init(&made, RECORD_BODY_MAX);
	buf_init(&printed, STDOUT_SHOWN_MAX + IPC_FRAME_MAX);
	if (c->channel != NULL) {
		channel_notice(c->channel, &dropped);
		channel_stdout(c->channel, &printed);
	}
	verify_printed(c, &dropped, &printed);
	callnet_printed(c, &dropped, &printed);
	out = ipc_bytes(printed.p, printed.failed ? 0 : printed.len);
	if (body == NULL) {
		result_error(&made, message);
		b = ipc_bytes(made.p, made.failed ? 0 : made.len);
	} else
		b = *body;
	if (outcome == OUTCOME_FAILED)
		b = callnet_words(c, b, &room);
	/* The duration is taken from the boot clock, because the system's time
	 * may have been set during the call. */
	took = (now_boot_ms() - c->run_ms) * 1000;
	r->outcome = outcome;
	r->failure = failure;
	r->started_us = outcome == OUTCOME_REFUSED ? 0 : c->run_us;
	r->ended_us = now;
	if (c->held->task)
		record_task(c, r, out, b, took, &dropped, message);
	else
		record_payload(r, out, b);
	/* The record is kept before the answer is sent. So the end of a call
	 * whose answer arrived is recorded, even if this process dies then. */
	r->delivered = c->peer != NULL;
	records_keep(c->all->records, r, c->runner != NULL, callnet_unknown(c));
	r->delivered = answer_call(c->peer, c->request,
	    &(struct answer){&c->id, outcome, failure, message, b, out, took,
		dropped,
		failure == FAILURE_BUSY       ? calls_retry_ms(c->all)
		    : failure == FAILURE_LOST ? 0
					      : CALL_RETRY_MS});
	c->peer = NULL;
	uuid_text(&c->id, id);
	buf_free(&made);
	buf_free(&room);
	buf_free(&printed);
	log_call(outcome == OUTCOME_DONE ? LOG_LV_DEBUG : LOG_LV_INFO,
	    "call_ended", id, NULL, "outcome %d, %s, %llu ms%s%s", (int)outcome,
	    failure_info(failure)->name, (unsigned long long)took / 1000,
	    message != NULL ? ": " : "", message != NULL ? message : "");
	channel_close(c->channel);
	c->channel = NULL;
	if (c->state == CALL_PARKED)
		call_change(c, CALL_RUNNING);
	if (c->state == CALL_RUNNING)
		calls_took(
		    c->all, now_boot_ms() - c->started_ms - c->park.total_ms);
	c->answered = outcome == OUTCOME_DONE;
	/* A verdict that comes while the runner is being reaped must not end
	 * the call a second time. verify_forget may free the memory of body, so
	 * body is not used below. */
	verify_forget(c);
	if (c->runner != NULL || callnet_close(c))
		call_change(c, CALL_ENDING);
	else
		call_change(c, CALL_ENDED);
}

/* Ends a call whose runner ended without a result. Called when all frames of
 * the runner were read. */
void
call_crashed(struct call *c)
{
	struct err e;

	result_crash(c->status, c->held->record->cpu_us, c->peak_kib,
	    c->oom_kills, c->held->limit, &e);
	call_finish(c,
	    e.failure == FAILURE_KILLED ? OUTCOME_KILLED : OUTCOME_FAILED,
	    e.failure, e.text, NULL);
}
