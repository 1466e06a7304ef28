/*
 * Executions that admind runs itself (own_run.h):
 *
 *  intent row -> sealed -> held -> RUN -> how it ended
 *
 * A run takes the way of a client's call, with a row, a context and a record of
 * its own, but without a gateway. The context is sealed and held for admind's
 * own listener, so sandboxd accepts the RUN from admind alone.
 *
 * A hostile admind gains nothing by this. The vault decides what a context of
 * each kind may hold (contexts.c: no secret, no network, no approved version).
 * sandboxd decides what a run of each kind may reach. The files that start the
 * runs give the security arguments for each kind: inspect.c, trial_run.c,
 * installs.c.
 *
 * Until sandboxd holds the context, no other process knows of the run, so this
 * file closes the row. After that, sandboxd's record closes the row. sandboxd
 * repeats the record until it is committed, and also sends a record for a
 * context that got no RUN. So the row is closed once, and never while its run
 * may still begin.
 */
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "crypto.h"
#include "ending.h"
#include "hold.h"
#include "ids.h"
#include "op.h"
#include "own_run.h"
#include "tlv.h"
#include "waits.h"

/* Makes no row if the epoch of the sandbox has ended. */
static const struct db_stmt open_row = {"own_open",
    "SELECT mcpbox.execution_open($1::uuid, $2::text, $3::uuid, $4::bytea,"
    " $5::uuid, $6::text, 'admind', $7::text, $8::bytea, $9::text, $10::text,"
    " $11::text, $12::timestamptz, $13::timestamptz)",
    DB_FAST};

/* A run from its row until the sandbox holds its context. */
struct own {
	struct admind *a;
	enum context_kind kind;
	const char *noun;
	struct ipc_id execution, epoch;
	uint32_t wait_ms;
	struct buf arguments, intent, material;
	own_cb *cb;
	void *arg;
};

/* A run from RUN on. */
struct sent {
	struct admind *a;
	const char *noun;
	struct ipc_id execution;
	bool stored;
	struct ipc_module_stored what;
	own_cb *cb;
	void *arg;
};

static void opened(void *, const struct pg_result *, const struct err *);
static hold_cb held;
static ipc_answer_cb ran;

/* ---- the row ---- */

static void
own_free(struct own *o)
{
	buf_free(&o->arguments);
	buf_free(&o->intent);
	buf_free(&o->material);
	free(o);
}

/* Ends a run for which no RUN was sent. open: there is a row that only this
 * process can close. */
static void
refuse(struct own *o, bool open, enum failure failure, const char *text)
{
	struct own_end e = {.how = OWN_REFUSED,
	    .execution = o->execution,
	    .failure = failure,
	    .text = text};
	own_cb *cb = o->cb;
	void *arg = o->arg;

	if (open)
		ending_close(o->a,
		    &(struct ending){.id = o->execution,
			.epoch = o->epoch,
			.outcome = OUTCOME_REFUSED,
			.failure = failure,
			.ended_us = now_us(),
			.intent = ipc_bytes(o->intent.p, o->intent.len)});
	own_free(o);
	cb(arg, &e);
}

/* Puts the members of the row. sandboxd gives them back with the record, in
 * case the database has lost the row. */
static void
put_intent(struct buf *out, const struct own_what *w,
    const struct ipc_hash *digest, uint64_t created_us, uint64_t deadline_us)
{
	if (w->version != NULL) {
		tlv_put(out, INTENT_VERSION_ID, w->version->b, 16);
		tlv_put(out, INTENT_VERSION_HASH, w->version_hash->b, 32);
	}
	tlv_puts(out, INTENT_TOOL, w->tool);
	tlv_puts(out, INTENT_PRINCIPAL, w->principal);
	tlv_put_u64(out, INTENT_LISTENER, LISTENER_ADMIND);
	tlv_put(out, INTENT_ARGS_SHA256, digest->b, 32);
	tlv_put_u64(out, INTENT_CREATED_US, created_us);
	tlv_put_u64(out, INTENT_DEADLINE_US, deadline_us);
	tlv_put_u64(out, INTENT_KIND,
	    w->kind == CONTEXT_TEST ? CONTEXT_TEST : CONTEXT_INSPECT);
	tlv_put(out, INTENT_ARGUMENTS, w->kept.p, w->kept.n);
}

static void
put_material(
    struct own *o, const struct own_what *w, const struct ipc_hash *digest)
{
	struct buf *out = &o->material;

	if (w->material != NULL)
		buf_put(out, w->material->p, w->material->len);
	tlv_puts(out, CTX_NAME, w->tool);
	tlv_put(out, CTX_ARGS_SHA256, digest->b, 32);
	tlv_put_u64(out, CTX_TIMEOUT_MS, w->timeout_ms);
	tlv_put_u64(out, CTX_HOLD_UNTIL_MS, HOLD_MS);
	tlv_put(out, CTX_INTENT, o->intent.p, o->intent.len);
}

void
own_run(struct admind *a, const struct own_what *w, own_cb *cb, void *arg)
{
	uint64_t created_us = now_us();
	uint64_t deadline_us =
	    created_us + (uint64_t)wait_ms((int)w->wait_ms) * 1000;
	struct own *o = calloc(1, sizeof(*o));
	struct ipc_hash digest;
	struct db_params p;

	if (o == NULL) {
		cb(arg,
		    &(struct own_end){.how = OWN_REFUSED,
			.failure = FAILURE_BUSY,
			.text = "out of memory"});
		return;
	}
	o->a = a;
	o->kind = w->kind;
	o->noun = w->noun;
	o->epoch = a->sandbox_epoch;
	o->wait_ms = w->wait_ms;
	o->cb = cb;
	o->arg = arg;
	if (w->execution != NULL)
		o->execution = *w->execution;
	else
		id_random(&o->execution);
	buf_init(&o->arguments, ARGUMENTS_MAX);
	buf_init(&o->intent, IPC_FRAME_MAX);
	buf_init(&o->material, IPC_BLOB_MAX);
	buf_put(&o->arguments, w->arguments.p, w->arguments.n);
	sha256(w->arguments.p, w->arguments.n, &digest);
	put_intent(&o->intent, w, &digest, created_us, deadline_us);
	put_material(o, w, &digest);
	if (!a->sandbox_ready) {
		refuse(o, false, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is not reachable");
		return;
	}
	if (o->arguments.failed || o->intent.failed || o->material.failed ||
	    (w->material != NULL && w->material->failed)) {
		refuse(o, false, FAILURE_BUSY, "out of memory");
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &o->execution);
	db_p_str(&p, w->kind == CONTEXT_TEST ? "test" : "inspect");
	if (w->version != NULL) {
		db_p_id(&p, w->version);
		db_p_hash(&p, w->version_hash);
	} else {
		db_p_null(&p);
		db_p_null(&p);
	}
	db_p_id(&p, &o->epoch);
	db_p_str(&p, w->principal);
	db_p_str(&p, w->tool);
	db_p_hash(&p, &digest);
	db_p_bytes(&p, w->kept.p, w->kept.n);
	db_p_str(&p, w->client);
	db_p_str(&p, w->protocol);
	db_p_time_us(&p, created_us);
	db_p_time_us(&p, deadline_us);
	db_query(a->db, &open_row, &p, opened, o);
}

/* ---- sealed and held ---- */

static void
opened(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct own *o = arg;
	char why[32];

	/* After STORAGE_UNAVAILABLE the row may have been committed, so it must
	 * be closed. */
	if (err != NULL)
		refuse(o, err->failure == FAILURE_STORAGE_UNAVAILABLE,
		    err->failure, err->text);
	else if (!db_text(rows, 0, 0, why, sizeof(why)) ||
	    strcmp(why, "ok") != 0)
		refuse(o, false, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is restarting");
	else
		hold_start(o->a, &o->execution, &o->epoch, LISTENER_ADMIND,
		    o->kind, ipc_bytes(o->material.p, o->material.len), held,
		    o);
}

static void
held(void *arg, const struct err *err)
{
	struct own *o = arg;

	if (err != NULL)
		refuse(o, true, err->failure, err->text);
	else if (own_run_held(o->a, &o->execution,
		     ipc_bytes(o->arguments.p, o->arguments.len), o->noun,
		     o->wait_ms, o->cb, o->arg) == -1)
		refuse(o, false, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox is not reachable");
	else
		own_free(o);
}

/* ---- RUN ---- */

int
own_run_send(struct admind *a, const struct ipc_id *execution,
    struct ipc_bytes arguments, uint32_t wait_ms, ipc_answer_cb *heard,
    void *arg)
{
	struct ipc_peer *peer = ipc_client_peer(a->sandboxd);
	struct ipc_run m = {.execution = *execution, .arguments = arguments};
	uint64_t id;

	if (peer != NULL &&
	    ipc_request(peer, IPC_RUN, &m, (int)wait_ms, heard, arg, &id) == 0)
		return 0;
	hold_cancel(a, execution, FAILURE_KILLED);
	return -1;
}

int
own_run_held(struct admind *a, const struct ipc_id *execution,
    struct ipc_bytes arguments, const char *noun, uint32_t wait_ms, own_cb *cb,
    void *arg)
{
	struct sent *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		hold_cancel(a, execution, FAILURE_KILLED);
		return -1;
	}
	*s = (struct sent){.a = a,
	    .noun = noun,
	    .execution = *execution,
	    .cb = cb,
	    .arg = arg};
	if (own_run_send(a, execution, arguments, wait_ms, ran, s) == 0)
		return 0;
	free(s);
	return -1;
}

static void
end(struct sent *s, struct own_end *e)
{
	struct sent last = *s;

	free(s);
	e->execution = last.execution;
	e->stored = last.stored ? &last.what : NULL;
	last.cb(last.arg, e);
}

/* Ends a run that had no result. */
static void
no_answer(struct sent *s, struct ipc_frame *f, enum failure gone)
{
	struct own_end e = {.how = OWN_REFUSED};
	struct err err;

	answer_err(f, gone, &err);
	if (f == NULL) {
		hold_cancel(s->a, &s->execution, FAILURE_KILLED);
		err_set(&err, FAILURE_SANDBOX_UNAVAILABLE,
		    "the sandbox ended during the %s", s->noun);
	}
	e.failure = err.failure;
	e.text = err.text;
	end(s, &e);
}

/* Refuses the questions of a run to its client, because no client waits for the
 * run. Otherwise the run would wait for minutes, and would keep a place that
 * other waiting calls need. */
static void
refuse_questions(struct sent *s, const struct ipc_call_event *q)
{
	struct ipc_peer *peer = ipc_client_peer(s->a->sandboxd);
	struct ipc_call_answer m = {.execution = s->execution,
	    .number = q->number,
	    .json = ipc_bytes("{}", 2)}; /* no answers */

	if (peer != NULL)
		(void)ipc_send(peer, IPC_CALL_ANSWER, &m);
}

static void
ran(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct sent *s = arg;
	struct ipc_call_event event;
	struct ipc_call_result m;
	struct own_end e = {.how = OWN_MALFORMED,
	    .failure = FAILURE_INTERNAL,
	    .text = "malformed result"};

	if (f != NULL && f->type == IPC_CALL_EVENT) {
		/* No client listens to the log of this run. */
		if (ipc_decode(f, &event, NULL) == 0 &&
		    event.kind == CALL_EVENT_ASK)
			refuse_questions(s, &event);
		return;
	}
	if (f != NULL && f->type == IPC_MODULE_STORED) {
		if (ipc_decode(f, &s->what, NULL) == 0)
			s->stored = memcmp(&s->what.execution, &s->execution,
					sizeof(s->execution)) == 0;
		return;
	}
	if (f == NULL || f->type != IPC_CALL_RESULT) {
		no_answer(s, f, gone);
		return;
	}
	if (ipc_decode(f, &m, NULL) == 0 && m.body_len <= m.body_meta.n &&
	    m.failure < FAILURE_COUNT) {
		e.how = OWN_RAN;
		e.outcome = (enum outcome)m.outcome;
		e.failure = (enum failure)m.failure;
		if (e.outcome != OUTCOME_DONE && e.failure == FAILURE_NONE)
			e.failure = FAILURE_INTERNAL;
		e.text = failure_info(e.failure)->fix;
		e.body = ipc_bytes(m.body_meta.p, m.body_len);
		e.meta = ipc_bytes(
		    m.body_meta.p + m.body_len, m.body_meta.n - m.body_len);
		e.duration_us = m.duration_us;
	}
	end(s, &e);
}
