/*
 * Endings of executions that this process closes itself, and the columns that
 * all endings have in common. gather.c closes executions from the sandbox's
 * records.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activity.h"
#include "context.h"
#include "ending.h"
#include "ids.h"
#include "log.h"
#include "tlv.h"
#include "outcome.h"

enum {
	/* The most endings of this process that wait for the database. With
	 * more, new calls are refused, since their endings could not be kept
	 * either. */
	CLOSES_MAX = 4096,
	/* The most seconds by which an intent's time may be later than now,
	 * since a clock may have been set back. An intent with a later time is
	 * forged and not accepted: its row would be the first in all lists for
	 * ever. */
	AHEAD_S = 24 * 3600
};

const struct db_stmt ending_row = {"records_close",
    "SELECT mcpbox.execution_close($1::uuid, $2::uuid, $3::text, $4::text,"
    " $5::bool, $6::timestamptz, $7::timestamptz, $8::int8, $9::text,"
    " $10::text, $11::text, $12::uuid, $13::bytea, $14::text, $15::text,"
    " $16::text, $17::bytea, $18::text, $19::timestamptz, $20::timestamptz,"
    " $21::text)",
    DB_SURE};

const struct db_stmt ending_task_row = {"task_close",
    "SELECT mcpbox.task_close($1::uuid, $2::uuid, $3::text, $4::text,"
    " $5::bool, $6::timestamptz, $7::timestamptz, $8::int8, $9::text,"
    " $10::text, $11::text, $12::uuid, $13::bytea, $14::text, $15::text,"
    " $16::text, $17::bytea, $18::text, $19::timestamptz, $20::timestamptz,"
    " $21::text, $22::text, $23::text, $24::text)",
    DB_SURE};

/* ---- intents as columns ---- */

/* Adds an intent TLV as columns. sandboxd gives the TLV back as admind made it.
 * It is still read as foreign bytes, since a taken-over sandbox may send
 * anything. Because of kind_max, such a sandbox can't make up management calls
 * either. */
void
ending_intent_params(struct db_params *p, struct ipc_bytes intent,
    uint64_t kind_max, struct buf *clean)
{
	static const char *const kinds[] = {
	    NULL, "tool", "inspect", "test", "management"};
	struct tlv t[INTENT_TAG_MAX + 1] = {{0}}, f;
	struct tlv_reader r;
	uint64_t kind = 0, listener = 0, created = 0, deadline = 0;
	size_t at[3];

	tlv_open(&r, intent.p, intent.n);
	while (tlv_next(&r, &f) == 1)
		if (f.tag <= INTENT_TAG_MAX)
			t[f.tag] = f;
	if (tlv_u64(&t[INTENT_KIND], &kind) == -1 || kind < 1 ||
	    kind > kind_max || tlv_u64(&t[INTENT_LISTENER], &listener) == -1 ||
	    listener < LISTENER_LOCAL || listener > LISTENER_ADMIND ||
	    tlv_u64(&t[INTENT_CREATED_US], &created) == -1 || created == 0 ||
	    created > now_us() + AHEAD_S * UINT64_C(1000000) ||
	    tlv_u64(&t[INTENT_DEADLINE_US], &deadline) == -1 || deadline == 0 ||
	    t[INTENT_ARGS_SHA256].n != 32) {
		/* The TLV is not enough for a whole row, so only an existing
		 * open row can be closed. */
		while (p->n < 20)
			db_p_null(p);
		return;
	}
	db_text_clean(
	    clean, t[INTENT_PRINCIPAL].p, t[INTENT_PRINCIPAL].n, PRINCIPAL_MAX);
	at[0] = clean->len;
	db_text_clean(
	    clean, t[INTENT_TOOL].p, t[INTENT_TOOL].n, EXPOSED_NAME_MAX);
	at[1] = clean->len;
	db_text_clean(clean, t[INTENT_ARGUMENTS].p, t[INTENT_ARGUMENTS].n,
	    ARGUMENTS_KEPT);
	at[2] = clean->len;
	db_p_str(p, kinds[kind]);
	if (t[INTENT_VERSION_ID].n == 16)
		db_p_id(p, (const struct ipc_id *)t[INTENT_VERSION_ID].p);
	else
		db_p_null(p);
	if (t[INTENT_VERSION_HASH].n == 32)
		db_p_bytes(p, t[INTENT_VERSION_HASH].p, 32);
	else
		db_p_null(p);
	db_p_bytes(p, clean->p, at[0]);
	db_p_str(p, listener_name((unsigned)listener));
	db_p_bytes(p, clean->p + at[0], at[1] - at[0]);
	db_p_bytes(p, t[INTENT_ARGS_SHA256].p, 32);
	db_p_bytes(p, clean->p + at[1], at[2] - at[1]);
	db_p_time_us(p, created);
	db_p_time_us(p, deadline);
}

bool
ending_of_task(struct ipc_bytes intent)
{
	struct tlv t;

	return tlv_find(intent.p, intent.n, INTENT_TASK, &t) == 1;
}

/*
 * Adds the state and the result of a task. The state follows from the answer
 * that a plain call would get. A result completes the task, even an isError
 * result. A JSON-RPC error lets the task fail.
 */
void
ending_task_params(struct db_params *p, enum failure failure,
    struct ipc_bytes whole, struct ipc_bytes meta)
{
	bool result = failure == FAILURE_NONE ||
	    failure_info(failure)->side == FAILURE_TOOL;

	db_p_str(p, result ? "completed" : "failed");
	db_p_bytes(p, whole.p, whole.n);
	db_p_bytes(p, meta.p, meta.n);
}

/* ---- endings of our own ---- */

struct close_item {
	TAILQ_ENTRY(close_item) entry;
	struct admind *a;
	struct ending e;
	struct buf result, intent;
	struct ledger_note note;
	bool sent, inherited;
};

static void send_close(struct close_item *);

static void
drop_close(struct close_item *c)
{
	struct admind *a = c->a;
	bool last = c->inherited && --a->inherited == 0;

	TAILQ_REMOVE(&a->closes, c, entry);
	a->ncloses--;
	if (a->ledger != NULL)
		ledger_drop(a->ledger, &c->note);
	buf_free(&c->result);
	buf_free(&c->intent);
	free(c);
	if (last)
		a->inherited_closed(a);
}

static void
closed(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct close_item *c = arg;

	c->sent = false;
	if (err == NULL) {
		upkeep_closed(c->a, 1);
		drop_close(c);
		return;
	}
	if (err->failure == FAILURE_STORAGE_UNAVAILABLE ||
	    err->failure == FAILURE_BUSY)
		return; /* the tick sends it again */
	log_event(LOG_LV_ERR, "close", "%s", err->text);
	if (c->result.len > 0) {
		/* The database refused the row, perhaps because of the result's
		 * text. The ending matters more than the text, so it is sent
		 * again without the text. */
		buf_clear(&c->result);
		send_close(c);
		return;
	}
	drop_close(c);
}

static void
send_close(struct close_item *c)
{
	struct db_params p;
	const struct ending *e = &c->e;
	struct buf clean;

	buf_init(&clean, 2 * ARGUMENTS_KEPT);
	db_params_init(&p);
	db_p_id(&p, &e->id);
	db_p_id(&p, &e->epoch);
	db_p_str(&p, outcome_name(e->outcome));
	db_p_str(&p,
	    e->failure != FAILURE_NONE ? failure_info(e->failure)->name : NULL);
	db_p_bool(&p, e->delivered);
	db_p_time_us(&p, e->started_us);
	db_p_time_us(&p, e->ended_us);
	db_p_null(&p);
	db_p_null(&p);
	if (c->result.len > 0)
		db_p_bytes(&p, c->result.p, c->result.len);
	else
		db_p_null(&p);
	ending_intent_params(&p, ipc_bytes(c->intent.p, c->intent.len),
	    INTENT_KIND_MANAGEMENT, &clean);
	c->sent = true;
	if (ending_of_task(ipc_bytes(c->intent.p, c->intent.len))) {
		ending_task_params(
		    &p, e->failure, ipc_bytes(NULL, 0), ipc_bytes(NULL, 0));
		db_p_null(&p);
		db_query(c->a->db, &ending_task_row, &p, closed, c);
	} else {
		db_p_null(&p);
		db_query(c->a->db, &ending_row, &p, closed, c);
	}
	buf_free(&clean);
}

/*
 * Notes the ending in the ledger, before the job that ended is answered
 * (job_close). So a client that has the answer finds the ending in the record,
 * even if any process dies. An ending with the outcome "lost" is not noted,
 * because no client was told about it. If the ledger has no room, only this
 * process has the ending until the commit.
 */
static void
keep(struct close_item *c)
{
	const struct ending *e = &c->e;
	struct ipc_record m = {
	    .execution = e->id,
	    .epoch = e->epoch,
	    .outcome = (uint8_t)e->outcome,
	    .failure = (uint16_t)e->failure,
	    .delivered = e->delivered,
	    .started_us = e->started_us,
	    .ended_us = e->ended_us,
	    .intent = ipc_bytes(c->intent.p, c->intent.len),
	    .stdout_result = ipc_bytes(c->result.p, c->result.len),
	};

	if (e->outcome == OUTCOME_LOST ||
	    ledger_put(c->a->ledger, &c->note, &m) == 0)
		return;
	m.stdout_result = ipc_bytes(NULL, 0);
	if (ledger_put(c->a->ledger, &c->note, &m) != 0)
		log_event(LOG_LV_WARN, "ledger_full",
		    "an ending is in no ledger until it is committed: the "
		    "database takes none, or run_dir has no room");
}

bool
ending_full(const struct admind *a)
{
	return a->ncloses >= CLOSES_MAX;
}

void
ending_close(struct admind *a, const struct ending *e)
{
	struct close_item *c = calloc(1, sizeof(*c));

	/* If memory runs out, the row stays open. The sweep closes it as
	 * lost. */
	if (c == NULL) {
		log_event(LOG_LV_ERR, "memory", "an ending was not kept");
		return;
	}
	metrics_ended(a, e->outcome, e->failure, e->started_us, e->ended_us, 0);
	if (follow_calls(a))
		follow_record(a, e->intent,
		    &(struct follow_call){.id = e->id,
			.outcome = e->outcome,
			.failure = e->failure,
			.started_us = e->started_us,
			.ended_us = e->ended_us});
	c->a = a;
	c->e = *e;
	buf_init(&c->result, STORED_RESULT_MAX);
	db_text_clean(&c->result, e->result.p, e->result.n, STORED_RESULT_MAX);
	/* An intent that was cut to the buffer's size is not a valid TLV, but
	 * the row is closed even so. */
	buf_init(&c->intent, IPC_FRAME_MAX);
	buf_put(&c->intent, e->intent.p, e->intent.n);
	c->e.result = c->e.intent = ipc_bytes(NULL, 0);
	TAILQ_INSERT_TAIL(&a->closes, c, entry);
	a->ncloses++;
	keep(c);
	send_close(c);
}

/*
 * Takes over an ending that an earlier process of admind left uncommitted. The
 * ending's row is closed under the epoch of that process, before our own epoch
 * is stored. The order matters: storing our epoch ends the earlier epoch, and
 * open rows of an ended epoch become lost.
 */
static struct ledger_note *
inherit(void *arg, const struct ipc_record *m)
{
	struct admind *a = arg;
	struct close_item *c;

	if (m->outcome < OUTCOME_DONE || m->outcome > OUTCOME_LOST ||
	    m->failure >= FAILURE_COUNT || (c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->a = a;
	c->e = (struct ending){.id = m->execution,
	    .epoch = m->epoch,
	    .outcome = (enum outcome)m->outcome,
	    .failure = (enum failure)m->failure,
	    .delivered = m->delivered != 0,
	    .started_us = m->started_us,
	    .ended_us = m->ended_us};
	buf_init(&c->result, STORED_RESULT_MAX);
	buf_init(&c->intent, IPC_FRAME_MAX);
	buf_put(&c->result, m->stdout_result.p, m->stdout_result.n);
	buf_put(&c->intent, m->intent.p, m->intent.n);
	c->inherited = true;
	a->inherited++;
	TAILQ_INSERT_TAIL(&a->closes, c, entry);
	a->ncloses++;
	return &c->note;
}

int
ending_ledger(struct admind *a, void (*done)(struct admind *), struct err *err)
{
	size_t unreadable;
	char path[128];

	a->inherited_closed = done;
	(void)snprintf(path, sizeof(path), "%s/admind/ledger",
	    conf_str(a->proc.conf, "run_dir"));
	if (ledger_open(&a->ledger, path, LEDGER_AREA, inherit, a, &unreadable,
		err) != 0)
		return -1;
	if (unreadable > 0)
		log_event(LOG_LV_WARN, "ledger_unreadable",
		    "%zu bytes that another build left were given up: what the "
		    "database has not got is recorded as lost",
		    unreadable);
	if (a->inherited > 0)
		log_event(LOG_LV_INFO, "records_inherited",
		    "%u calls that ended before this process began",
		    a->inherited);
	return 0;
}

void
ending_retry(struct admind *a)
{
	struct close_item *c;

	if (!db_is_up(a->db))
		return;
	TAILQ_FOREACH(c, &a->closes, entry)
		if (!c->sent)
			send_close(c);
}
