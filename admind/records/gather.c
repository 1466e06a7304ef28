/*
 * Takes sandboxd's records, which tell how calls ended.
 *
 * The OK to a RECORD follows the commit and never precedes it. sandboxd keeps
 * every record that is not acknowledged and sends it again. So PostgreSQL may
 * die at any point and no record is lost. A repetition is harmless, since a row
 * closes once.
 */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "activity.h"
#include "context.h"
#include "ending.h"
#include "ids.h"
#include "limits.h"
#include "log.h"
#include "outcome.h"
#include "records.h"
#include "sources.h"

enum {
	/* Records wait this long for others, so that one transaction, with one
	 * flush to the disk, takes them all. No client waits for a record. */
	GATHER_MS = 20,
	GATHER_MAX = 64,                /* records of one transaction */
	GATHER_BYTES_MAX = 1024 * 1024, /* bytes of their texts, about */
};

static const struct db_stmt close_many = {"records_close_many",
    "SELECT mcpbox.executions_close($1::uuid, $2::uuid[], $3::text[],"
    " $4::text[], $5::bool[], $6::timestamptz[], $7::timestamptz[],"
    " $8::int8[], $9::text[], $10::text[], $11::text[])",
    DB_SURE};

/* Finds whether an epoch is that of an earlier sandboxd of this node. Epochs of
 * other nodes' sandboxes and of any admind don't count. */
static const struct db_stmt predecessor = {"records_predecessor",
    "SELECT 1 FROM mcpbox.epochs WHERE epoch = $1::uuid AND node = $2::text"
    " AND kind = 'sandboxd'",
    DB_SURE};

/*
 * A record on its way into the database. Records are gathered for a moment, and
 * one statement closes their rows. A record whose row that statement did not
 * close is sent alone, which shows the reason: the row was closed before, the
 * row is missing because its intent was lost or never came, or the record's
 * text made the whole statement fail. Each record is acknowledged only after
 * its commit.
 */
struct record {
	STAILQ_ENTRY(record) entry;
	struct op *op;
	struct ipc_id epoch;
	enum outcome outcome;
	enum failure failure;
	bool delivered, closed;
	uint64_t started_us, ended_us, cpu_us;
	struct buf out, result, intent;
	/* JSON as egress wrote it: the database checks it */
	struct buf network;
	bool task;
	struct buf whole, meta; /* of a task */
};
STAILQ_HEAD(record_list, record);

struct gather {
	struct admind *a;
	struct event *timer;
	struct record_list waiting, sent;
	unsigned nwaiting;
	size_t bytes;
	bool under_way; /* the database works on `sent` */
};

static void
record_free(struct record *r)
{
	buf_free(&r->out);
	buf_free(&r->result);
	buf_free(&r->intent);
	buf_free(&r->network);
	buf_free(&r->whole);
	buf_free(&r->meta);
	free(r);
}

/* Acknowledges a committed record. `how` is the database's word for the
 * result. */
static void
record_done(struct record *r, const char *how)
{
	struct op *op = r->op;
	char id[UUID_TEXT_LEN + 1];

	uuid_text(&op->id, id);
	log_call(strcmp(how, "closed") == 0 ? LOG_LV_DEBUG : LOG_LV_INFO,
	    "record", id, NULL, "%s (%s)", outcome_name(r->outcome), how);
	idset_del(&op->a->live, &op->id);
	op_ok(op);
	record_free(r);
}

static void
record_failed(struct record *r, const struct err *err)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_text(&r->op->id, id);
	log_call(LOG_LV_WARN, "record_refused", id, NULL, "%s", err->text);
	op_refuse_err(r->op, err);
	record_free(r);
}

static void
closed_alone(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct record *r = arg;
	char how[16] = "";

	if (err != NULL) {
		record_failed(r, err);
		return;
	}
	(void)db_text(rows, 0, 0, how, sizeof(how));
	upkeep_closed(r->op->a, 1);
	record_done(r, how);
}

static void
close_alone(struct record *r)
{
	struct db_params p;
	struct buf clean;

	buf_init(&clean, 2 * ARGUMENTS_KEPT);
	db_params_init(&p);
	db_p_id(&p, &r->op->id);
	db_p_id(&p, &r->epoch);
	db_p_str(&p, outcome_name(r->outcome));
	db_p_str(&p,
	    r->failure != FAILURE_NONE ? failure_info(r->failure)->name : NULL);
	db_p_bool(&p, r->delivered);
	db_p_time_us(&p, r->started_us);
	db_p_time_us(&p, r->ended_us);
	if (r->cpu_us == RECORD_CPU_UNKNOWN)
		db_p_null(&p);
	else
		db_p_i64(&p, (int64_t)r->cpu_us);
	db_p_bytes(&p, r->out.p, r->out.len);
	db_p_bytes(&p, r->result.p, r->result.len);
	ending_intent_params(
	    &p, ipc_bytes(r->intent.p, r->intent.len), CONTEXT_TEST, &clean);
	if (r->task)
		ending_task_params(&p, r->failure,
		    ipc_bytes(r->whole.p, r->whole.len),
		    ipc_bytes(r->meta.p, r->meta.len));
	db_p_bytes(&p, r->network.p, r->network.len);
	db_query(r->op->a->db, r->task ? &ending_task_row : &ending_row, &p,
	    closed_alone, r);
	buf_free(&clean);
}

static void flush_gathered(struct gather *);

static void
closed_many(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct gather *g = arg;
	struct record *r;
	struct ipc_id id;

	g->under_way = false;
	/* The rows come in the order of the records, but PostgreSQL does not
	 * promise that. So the record of each row is looked up by its id. */
	for (int i = 0; err == NULL && i < db_nrows(rows); i++) {
		id = db_id(rows, i, 0);
		STAILQ_FOREACH(r, &g->sent, entry)
			if (!r->closed &&
			    memcmp(&r->op->id, &id, sizeof(id)) == 0) {
				r->closed = true;
				upkeep_closed(g->a, 1);
				break;
			}
	}
	while ((r = STAILQ_FIRST(&g->sent)) != NULL) {
		STAILQ_REMOVE_HEAD(&g->sent, entry);
		if (r->closed)
			record_done(r, "closed");
		else if (err != NULL &&
		    (err->failure == FAILURE_STORAGE_UNAVAILABLE ||
			err->failure == FAILURE_BUSY))
			record_failed(r, err); /* sandboxd sends it again */
		else
			close_alone(r);
	}
	if (g->nwaiting > 0)
		flush_gathered(g);
}

enum { CLOSE_COLUMNS = 10 };

static void
put_record(struct db_array col[CLOSE_COLUMNS], const struct record *r)
{
	db_a_bytes(&col[0], r->op->id.b, sizeof(r->op->id.b));
	db_a_str(&col[1], outcome_name(r->outcome));
	db_a_str(&col[2],
	    r->failure != FAILURE_NONE ? failure_info(r->failure)->name : NULL);
	db_a_bool(&col[3], r->delivered);
	db_a_time_us(&col[4], r->started_us);
	db_a_time_us(&col[5], r->ended_us);
	if (r->cpu_us == RECORD_CPU_UNKNOWN)
		db_a_null(&col[6]);
	else
		db_a_i64(&col[6], (int64_t)r->cpu_us);
	db_a_bytes(&col[7], r->out.p, r->out.len);
	db_a_bytes(&col[8], r->result.p, r->result.len);
	db_a_bytes(&col[9], r->network.p, r->network.len);
}

/* Sends one statement for the epoch of the first waiting record; there is
 * hardly ever another epoch. Only one statement is under way, so later records
 * gather. */
static void
flush_gathered(struct gather *g)
{
	static const enum db_type types[CLOSE_COLUMNS] = {DB_UUID, DB_TEXT,
	    DB_TEXT, DB_BOOL, DB_TIME, DB_TIME, DB_INT8, DB_TEXT, DB_TEXT,
	    DB_TEXT};
	struct record_list rest = STAILQ_HEAD_INITIALIZER(rest);
	struct db_array col[CLOSE_COLUMNS];
	struct ipc_id epoch;
	struct db_params p;
	struct record *r;

	(void)evtimer_del(g->timer);
	if (g->under_way || (r = STAILQ_FIRST(&g->waiting)) == NULL)
		return;
	epoch = r->epoch;
	for (int i = 0; i < CLOSE_COLUMNS; i++)
		db_array_init(&col[i], types[i],
		    GATHER_MAX * (STORED_RESULT_MAX + sizeof(uint32_t)) + 20);
	while ((r = STAILQ_FIRST(&g->waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&g->waiting, entry);
		if (col[0].n == GATHER_MAX ||
		    memcmp(&r->epoch, &epoch, sizeof(epoch)) != 0) {
			STAILQ_INSERT_TAIL(&rest, r, entry);
			continue;
		}
		g->nwaiting--;
		put_record(col, r);
		STAILQ_INSERT_TAIL(&g->sent, r, entry);
	}
	STAILQ_CONCAT(&g->waiting, &rest);
	g->bytes = 0;
	g->under_way = true;
	db_params_init(&p);
	db_p_id(&p, &epoch);
	for (int i = 0; i < CLOSE_COLUMNS; i++)
		db_p_array(&p, &col[i]);
	db_query(g->a->db, &close_many, &p, closed_many, g);
	for (int i = 0; i < CLOSE_COLUMNS; i++)
		db_array_free(&col[i]);
}

static void
on_gathered(evutil_socket_t fd, short what, void *arg)
{
	flush_gathered(arg);
}

/*
 * Returns whether the record of every call that is under way, here or at the
 * sandbox, is waiting already. Then there is no other record to wait for. So if
 * a client calls only now and then, its record is committed in the pause after
 * the call, not during its next call.
 */
static bool
all_there(const struct gather *g)
{
	return g->a->njobs == 0 && g->a->live.count <= g->nwaiting;
}

static void
gather(struct gather *g, struct record *r)
{
	static const struct timeval tv = {.tv_usec = GATHER_MS * 1000};

	STAILQ_INSERT_TAIL(&g->waiting, r, entry);
	g->bytes += r->out.len + r->result.len + r->network.len;
	if (++g->nwaiting >= GATHER_MAX || g->bytes >= GATHER_BYTES_MAX ||
	    all_there(g))
		flush_gathered(g);
	else if (g->nwaiting == 1 && !g->under_way &&
	    evtimer_add(g->timer, &tv) == -1)
		flush_gathered(g);
}

/*
 * Takes a record of an earlier epoch. A sandbox sends the records of its own
 * epoch, and those that an earlier sandboxd left in the ledger. Both processes
 * are the same user on the same node. So a sandbox in an attacker's hands can
 * say here only what it could have said as the earlier process. The record
 * comes before the sandbox names its own epoch, so the record's row is still
 * open. A record of any other epoch changes nothing. It is acknowledged,
 * because otherwise it would come again for ever.
 */
static void
got_predecessor(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct record *r = arg;

	if (err != NULL)
		record_failed(r, err);
	else if (db_nrows(rows) == 0) {
		log_event(LOG_LV_WARN, "record", "of another epoch: ignored");
		op_ok(r->op);
		record_free(r);
	} else
		close_alone(r);
}

static void
inherit(struct record *r)
{
	struct db_params p;

	db_params_init(&p);
	db_p_id(&p, &r->epoch);
	db_p_str(&p, r->op->a->node);
	db_query(r->op->a->db, &predecessor, &p, got_predecessor, r);
}

int
gather_start(struct admind *a, struct err *err)
{
	struct gather *g = calloc(1, sizeof(*g));

	if (g == NULL ||
	    (g->timer = evtimer_new(a->proc.base, on_gathered, g)) == NULL) {
		free(g);
		return err_set(err, FAILURE_INTERNAL, "out of memory");
	}
	g->a = a;
	STAILQ_INIT(&g->waiting);
	STAILQ_INIT(&g->sent);
	a->gather = g;
	return 0;
}

/* Starts the quarantine of the version that ran. The intent, which we made and
 * sandboxd returned, names the version. */
static void
upstream_changed(struct admind *a, struct ipc_bytes intent)
{
	struct tlv f;

	if (tlv_find(intent.p, intent.n, INTENT_VERSION_ID, &f) == 1 &&
	    f.n == sizeof(struct ipc_id))
		quarantine_changed(a, (const struct ipc_id *)f.p);
}

/*
 * Tells circuit breakers, quarantine, metrics and followers of the activity log
 * (activity.h) that a call ended. Called only for the sandbox's present epoch:
 * a record of an earlier epoch may belong to no call that is known here, and
 * would count twice if the record is sent again.
 */
static void
ended(struct admind *a, const struct record *r, const struct ipc_record *m,
    uint64_t cpu_us)
{
	limits_record(a, &m->execution, r->failure);
	if (r->failure == FAILURE_UPSTREAM_CHANGED)
		upstream_changed(a, m->intent);
	metrics_ended(
	    a, r->outcome, r->failure, r->started_us, r->ended_us, cpu_us);
	metrics_network(a, m->connections, m->net_refused, m->net_bytes);
	if (follow_calls(a))
		follow_record(a, m->intent,
		    &(struct follow_call){.id = m->execution,
			.outcome = r->outcome,
			.failure = r->failure,
			.started_us = r->started_us,
			.ended_us = r->ended_us,
			.cpu_us = cpu_us,
			.connections = m->connections,
			.net_refused = m->net_refused,
			.net_bytes = m->net_bytes});
}

int
gather_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_record m;
	struct ipc_bytes body, kept;
	enum outcome outcome;
	struct record *r;
	uint64_t now, cpu_us;
	bool ours;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	ours = memcmp(&m.epoch, &l->a->sandbox_epoch, sizeof(m.epoch)) == 0;
	outcome = (enum outcome)m.outcome;
	if (outcome_name(outcome) == NULL || m.stdout_len > m.stdout_result.n ||
	    m.meta_len > m.stdout_result.n - m.stdout_len ||
	    m.kept_len > m.stdout_result.n - m.stdout_len - m.meta_len)
		return -1;
	body = ipc_bytes(m.stdout_result.p + m.stdout_len + m.kept_len,
	    m.stdout_result.n - m.stdout_len - m.kept_len - m.meta_len);
	kept = m.kept_len == 0
	    ? body
	    : ipc_bytes(m.stdout_result.p + m.stdout_len, m.kept_len);
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		link_refuse(l, m.request, FAILURE_BUSY, "out of memory");
		return 0;
	}
	r->op = op_new(l, m.request);
	if (r->op == NULL) {
		free(r);
		return 0;
	}
	r->op->id = m.execution;
	r->epoch = m.epoch;
	r->outcome = outcome;
	r->failure = m.failure < FAILURE_COUNT ? (enum failure)m.failure
					       : FAILURE_INTERNAL;
	/* The tables demand this: done has no failure, any other outcome has
	 * one. */
	if (outcome == OUTCOME_DONE)
		r->failure = FAILURE_NONE;
	else if (r->failure == FAILURE_NONE)
		r->failure = FAILURE_INTERNAL;
	r->delivered = m.delivered != 0;
	/* Both times are cut to now, because a record that ended next year
	 * would be at the top of all lists until then. */
	now = now_us();
	r->started_us = m.started_us < now ? m.started_us : now;
	r->ended_us = m.ended_us != 0 && m.ended_us < now ? m.ended_us : now;
	r->cpu_us = m.cpu_us <= INT64_MAX ? m.cpu_us : RECORD_CPU_UNKNOWN;
	cpu_us = r->cpu_us == RECORD_CPU_UNKNOWN ? 0 : r->cpu_us;
	if (ours)
		ended(l->a, r, &m, cpu_us);
	buf_init(&r->out, STDOUT_SHOWN_MAX);
	buf_init(&r->result, STORED_RESULT_MAX);
	buf_init(&r->intent, IPC_FRAME_MAX);
	buf_init(&r->network, NET_REPORT_MAX);
	db_text_clean(
	    &r->out, m.stdout_result.p, m.stdout_len, STDOUT_SHOWN_MAX);
	db_text_clean(&r->result, kept.p, kept.n, STORED_RESULT_MAX);
	db_text_clean(&r->network, m.network.p, m.network.n, NET_REPORT_MAX);
	buf_put(&r->intent, m.intent.p, m.intent.n);
	buf_init(&r->whole, IPC_BLOB_MAX);
	buf_init(&r->meta, IPC_BLOB_MAX);
	r->task = ending_of_task(m.intent);
	if (r->task) {
		db_text_clean(&r->whole, body.p, body.n, IPC_BLOB_MAX);
		db_text_clean(
		    &r->meta, body.p + body.n, m.meta_len, IPC_BLOB_MAX);
	}
	if (!ours)
		inherit(r);
	else if (r->task)
		/* A task's client waits for the record, so the record is not
		 * gathered. There are never many tasks. */
		close_alone(r);
	else
		gather(l->a->gather, r);
	return 0;
}
