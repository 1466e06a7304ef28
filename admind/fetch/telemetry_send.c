/*
 * Sends spans and metrics to the collector of the access document:
 *
 *  telemetry_take -> run (own_run.h) -> CHECK_SENT -> telemetry_end
 *
 * A call leaves the queue when the collector took its span, or can't read it.
 * In any other case it goes back, also if this process dies, when its claim is
 * void. So a span is sent at least once. Its ids follow from the record, so a
 * second one is the same span.
 *
 * A hostile admind that starts such a run can send all that it knows to the
 * collector that an administrator named, and to no other host: the vault makes
 * the list (fetch.c there). The run's answer goes unread to admind-check.
 *
 * Nothing waits for this. The queue is in the database and has a bound; this
 * process has one batch in memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "context.h"
#include "ids.h"
#include "log.h"
#include "own_run.h"
#include "said.h"
#include "telemetry_batch.h"
#include "telemetry_fields.h"
#include "telemetry_send.h"

enum {
	/* The run itself ends its requests after 20 s. */
	TIMEOUT_MS = 30 * 1000,
	WAIT_MS = QUEUE_MS + TIMEOUT_MS + 10 * 1000,
	RESULT_BYTES = 64 * 1024,
	/* After a run that did not send all: the first wait, and the longest.
	 * Each doubles the one before. */
	AGAIN_MIN_MS = 60 * 1000,
	AGAIN_MAX_MS = 15 * 60 * 1000,
	HTTP_BAD_REQUEST = 400,
	HTTP_TOO_LARGE = 413,
	HTTP_UNPROCESSABLE = 422,
	HTTP_TOO_MANY = 429,
	HTTP_BAD_GATEWAY = 502,
	HTTP_GATEWAY_TIMEOUT = 504
};

static const struct db_stmt take_rows = {"telemetry_take",
    "SELECT * FROM mcpbox.telemetry_take($1::uuid, $2::int8)", DB_SURE};
static const struct db_stmt end_rows = {"telemetry_end",
    "SELECT mcpbox.telemetry_end($1::uuid, $2::text)", DB_SURE};

/* A run, from the calls that it takes on. */
struct sending {
	struct admind *a;
	struct ipc_id claim;
	struct pg_result *rows;
	unsigned document; /* otlp_state.documents at its beginning */
	int posts;
	bool spans; /* the first post has spans */
};

static db_cb took, ended;
static own_cb ran;
static ipc_answer_cb checked;

/* ---- the end of a run ---- */

static void
ended(void *arg, const struct pg_result *rows, const struct err *err)
{
	/* The claim of a failed statement is void in five minutes. */
}

/* Ends the claim, and the run. how: text of telemetry_end(). */
static void
end(struct sending *x, const char *how)
{
	struct db_params p;

	db_params_init(&p);
	db_p_id(&p, &x->claim);
	db_p_str(&p, how);
	if (x->rows != NULL && telemetry_batch_calls(x->rows) > 0)
		db_query(x->a->db, &end_rows, &p, ended, x->a);
	x->a->access->telemetry->running = false;
	db_keep_free(x->rows);
	free(x);
}

/* Sets the time of the next run after a fault. ms 0: as failures say.
 * Collectors that come back are not to meet all senders in one moment. */
static void
again(struct otlp_state *s, uint64_t ms)
{
	struct ipc_id random;

	if (ms == 0) {
		ms = AGAIN_MIN_MS;
		for (unsigned i = 1; i < s->failures && ms < AGAIN_MAX_MS; i++)
			ms *= 2;
	}
	if (ms > AGAIN_MAX_MS)
		ms = AGAIN_MAX_MS;
	id_random(&random);
	s->next_ms = now_boot_ms() + ms + ms * random.b[0] / 2048;
}

/* Notes a fault of a run; of one for another document's collector it says
 * nothing about this one's. */
static void
fault(const struct sending *x, struct ipc_bytes why, uint64_t ms)
{
	struct otlp_state *s = x->a->access->telemetry;
	size_t n = why.n < sizeof(s->why) - 1 ? why.n : sizeof(s->why) - 1;
	bool news = s->why[0] == '\0';

	if (x->document != s->documents)
		return;
	s->failures++;
	memcpy(s->why, why.p, n);
	s->why[n] = '\0';
	if (news)
		log_event(LOG_LV_WARN, "telemetry", "%s", s->why);
	again(s, ms);
}

/* Ends a run that no collector said a word to. */
static void
failed(struct sending *x, struct ipc_bytes why)
{
	fault(x, why, 0);
	end(x, "back");
}

static bool
is_full(const struct sending *x)
{
	return telemetry_batch_calls(x->rows) == OTLP_SPANS_MAX;
}

static void
sent(struct sending *x, const struct said *said, uint64_t every_s)
{
	struct otlp_state *s = x->a->access->telemetry;

	if (said->rejected > 0)
		log_event(LOG_LV_WARN, "telemetry",
		    "the collector left out %llu spans or points",
		    (unsigned long long)said->rejected);
	if (x->document == s->documents) {
		if (s->why[0] != '\0')
			log_event(LOG_LV_INFO, "telemetry", "is sent again");
		s->why[0] = '\0';
		s->failures = 0;
		s->sent_us = now_us();
		s->next_ms = now_boot_ms() + (is_full(x) ? 0 : every_s * 1000);
	}
	end(x, "sent");
}

/* Tells whether the collector read the spans and can't use them. It never will,
 * and calls after them would wait for ever. Other refusals are of the way to it
 * (a token, an address, a proxy) and end when somebody mends it. */
static bool
is_useless(uint64_t status)
{
	return status == HTTP_BAD_REQUEST || status == HTTP_TOO_LARGE ||
	    status == HTTP_UNPROCESSABLE;
}

static bool
may_retry(uint64_t status)
{
	return status == HTTP_TOO_MANY ||
	    (status >= HTTP_BAD_GATEWAY && status <= HTTP_GATEWAY_TIMEOUT);
}

static void
judge(struct sending *x, const struct said *said)
{
	struct otlp_state *s = x->a->access->telemetry;
	const struct compiled *now = x->a->access->now;
	bool went = !x->spans || said->sent > 0;

	if (x->spans && went)
		s->spans += (uint64_t)telemetry_batch_calls(x->rows);
	s->rejected += said->rejected;
	if (went || is_useless(said->status))
		telemetry_batch_count(s, x->rows);
	if (said->sent >= (uint64_t)x->posts) {
		sent(x, said,
		    now != NULL && now->telemetry.url.n > 0
			? now->telemetry.every_s
			: TELEMETRY_EVERY_USUAL_S);
		return;
	}
	fault(x, said->why.n > 0 ? said->why : ipc_str("nothing was sent"),
	    may_retry(said->status) ? said->retry_s * 1000 : 0);
	end(x, went ? "sent" : is_useless(said->status) ? "dropped" : "back");
}

/* ---- its answer ---- */

static void
checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct ipc_check_errors bad;
	struct sending *x = arg;
	struct ipc_check_ok ok;
	struct said said;
	struct err err;

	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &bad, &err) == 0)
		failed(x, bad.summary);
	else if (f == NULL || f->type != IPC_CHECK_OK ||
	    ipc_decode(f, &ok, &err) == -1) {
		answer_err(f, gone, &err);
		failed(x, ipc_str(err.text));
	} else if (said_read(ok.fields, &said) == -1)
		failed(x,
		    ipc_str("admind-check answered with a malformed status"));
	else
		judge(x, &said);
}

/* Takes the end of a run. A run that failed says why in its answer, too. */
static void
ran(void *arg, const struct own_end *e)
{
	struct ipc_check_sent q = {.result = e->body};
	struct sending *x = arg;
	struct err err;

	if (e->how != OWN_RAN || e->body.n == 0)
		failed(x, ipc_str(e->text));
	else if (ask(x->a->check, IPC_CHECK_SENT, &q, checked, x, &err) == -1)
		failed(x, ipc_str(err.text));
}

/* ---- its beginning ---- */

static void
run(struct sending *x, const struct telemetry *to, const struct buf *args)
{
	struct access *access = x->a->access;
	struct own_what own = {.kind = CONTEXT_TELEMETRY,
	    .noun = "sending of telemetry",
	    .tool = "telemetry",
	    .principal = "telemetry",
	    .client = "mcpbox",
	    .protocol = "",
	    .arguments = ipc_bytes(args->p, args->len),
	    .timeout_ms = TIMEOUT_MS,
	    .wait_ms = WAIT_MS};
	struct buf material;
	struct tlv_reader r;
	char kept[48];
	struct tlv t;

	/* The record says how many; their records say the rest. */
	snprintf(kept, sizeof(kept), "{\"spans\":%d}",
	    x->spans ? telemetry_batch_calls(x->rows) : 0);
	own.kept = ipc_str(kept);
	buf_init(&material, IPC_BLOB_MAX);
	tlv_put(&material, CTX_ACCESS_SEAL, access->seal.p, access->seal.len);
	tlv_put(&material, CTX_ACCESS_DOCUMENT, access->document.p,
	    access->document.len);
	tlv_put_u64(&material, CTX_RESULT, RESULT_BYTES);
	tlv_put(&material, CTX_KEYS_URL, to->url.p, to->url.n);
	tlv_open(&r, to->record.p, to->record.n);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == TELEMETRY_HOST)
			tlv_put(&material, CTX_KEYS_HOST, t.p, t.n);
	own.material = &material;
	own_run(x->a, &own, ran, x);
	buf_free(&material);
}

static void
took(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct sending *x = arg;
	struct access *access = x->a->access;
	struct otlp_state *s = access->telemetry;
	const struct telemetry *to;
	struct buf args;

	if (err != NULL) {
		failed(x, ipc_str(err->text));
		return;
	}
	telemetry_batch_figures(s, rows);
	x->rows = db_keep(rows);
	to = access->now != NULL ? &access->now->telemetry : NULL;
	if (x->rows == NULL || to == NULL || to->url.n == 0) {
		end(x, "back");
		return;
	}
	buf_init(&args, ARGUMENTS_MAX);
	x->spans = to->spans && telemetry_batch_calls(rows) > 0;
	x->posts = telemetry_batch_put(x->a, to, rows, &args);
	if (args.failed)
		failed(x, ipc_str("out of memory"));
	else if (x->posts > 0)
		run(x, to, &args);
	else {
		s->next_ms = now_boot_ms() + to->every_s * 1000;
		end(x, "back");
	}
	buf_free(&args);
}

/* Begins again with the collector of another document. */
static void
follow(struct otlp_state *s, const struct telemetry *to, uint64_t start_us)
{
	if (s->source.max == 0)
		buf_init(&s->source, IPC_FRAME_MAX);
	if (s->source.len == to->record.n &&
	    (to->record.n == 0 ||
		memcmp(s->source.p, to->record.p, to->record.n) == 0))
		return;
	buf_clear(&s->source);
	buf_put(&s->source, to->record.p, to->record.n);
	if (s->counts.start_us == 0)
		s->counts.start_us = start_us;
	s->documents++;
	s->failures = 0;
	s->next_ms = 0;
	s->sent_us = 0;
	s->why[0] = '\0';
}

void
telemetry_send_tick(struct admind *a)
{
	static const struct telemetry none;
	struct access *x = a->access;
	struct otlp_state *s;
	struct sending *sending;
	struct db_params p;

	/* Nothing leaves while it is not certain which document holds. */
	if (x == NULL || !x->ready || (s = x->telemetry) == NULL)
		return;
	follow(s, x->now != NULL ? &x->now->telemetry : &none, a->started_us);
	if (s->source.len == 0 || s->running || !a->sandbox_ready ||
	    now_boot_ms() < s->next_ms)
		return;
	if ((sending = calloc(1, sizeof(*sending))) == NULL)
		return;
	s->running = true;
	sending->a = a;
	sending->document = s->documents;
	id_random(&sending->claim);
	db_params_init(&p);
	db_p_id(&p, &sending->claim);
	db_p_i64(&p, OTLP_SPANS_MAX);
	db_query(a->db, &take_rows, &p, took, sending);
}
