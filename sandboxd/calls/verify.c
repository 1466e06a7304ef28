/* See verify.h. */
#include <event2/event.h>

#include <stdlib.h>

#include "call_internal.h"
#include "ids.h"
#include "json_scan.h"
#include "log.h"
#include "verify.h"

/* One result under check. If its call ends before admind has answered, the
 * result is kept until the answer comes. */
struct verify {
	TAILQ_ENTRY(verify) link;
	struct verifies *all;
	struct call *call;   /* NULL: the call has ended */
	struct share *share; /* of the call's principal; referenced */
	struct buf body, printed;
	struct ipc_bytes value; /* the structured content, inside body */
	size_t bytes;           /* body, printed and the call's context */
	struct result_dropped dropped;
	enum { VERIFY_IDLE, VERIFY_QUEUED, VERIFY_ASKED } place;
};

TAILQ_HEAD(verify_list, verify);

struct verifies {
	struct ipc_peer *admind;
	struct event *retry;
	struct verify_list queue; /* oldest first */
	struct verify_list asked;
	unsigned open; /* entries of asked */
	size_t bytes;  /* of all results */
};

static void ask(struct verifies *);

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	ask(arg);
}

struct verifies *
verify_new(struct event_base *base)
{
	struct verifies *vs = calloc(1, sizeof(*vs));

	if (vs == NULL)
		return NULL;
	TAILQ_INIT(&vs->queue);
	TAILQ_INIT(&vs->asked);
	if ((vs->retry = evtimer_new(base, on_retry, vs)) == NULL) {
		free(vs);
		return NULL;
	}
	return vs;
}

/* Moves a result to another place (VERIFY_*), and to the list of that place. */
static void
place(struct verify *v, int to)
{
	struct verifies *vs = v->all;

	if (v->place == VERIFY_QUEUED)
		TAILQ_REMOVE(&vs->queue, v, link);
	if (v->place == VERIFY_ASKED) {
		TAILQ_REMOVE(&vs->asked, v, link);
		vs->open--;
	}
	/* A result that comes back unjudged goes before later results. */
	if (to == VERIFY_QUEUED)
		TAILQ_INSERT_HEAD(&vs->queue, v, link);
	if (to == VERIFY_ASKED) {
		TAILQ_INSERT_TAIL(&vs->asked, v, link);
		vs->open++;
	}
	v->place = to;
}

static void
release(struct verify *v)
{
	place(v, VERIFY_IDLE);
	v->all->bytes -= v->bytes;
	share_leave(v->share, SHARE_VERIFY, v->bytes);
	share_put(v->share);
	buf_free(&v->body);
	buf_free(&v->printed);
	free(v);
}

void
verify_forget(struct call *c)
{
	struct verify *v = c->verify;

	c->verify = NULL;
	if (v == NULL)
		return;
	v->call = NULL;
	/* A result that was asked about keeps its place until the answer has
	 * come: admind is still busy with it. */
	if (v->place != VERIFY_ASKED)
		release(v);
}

/* Frees everything. Call this after the calls are freed and the loop has ended.
 * Then only results in `asked` are left, and no answer about them can come. */
void
verify_free(struct verifies *vs)
{
	struct verify *v;

	if (vs == NULL)
		return;
	while ((v = TAILQ_FIRST(&vs->asked)) != NULL)
		release(v);
	event_free(vs->retry);
	free(vs);
}

void
verify_peer(struct verifies *vs, struct ipc_peer *admind)
{
	vs->admind = admind;
	if (admind != NULL)
		ask(vs);
}

/* --- The verdict. ------------------------------------------------------ */

/* Ends the call with the list of all errors, for the tool's author. The client
 * gets no part of the result. */
static void
bad_result(struct call *c, const char *summary, struct ipc_bytes list)
{
	struct buf text, body;
	struct ipc_bytes b;

	buf_init(&text, RESULT_MAX / 2);
	buf_init(&body, RESULT_MAX);
	buf_puts(&text, summary);
	if (list.n > 2) { /* not [] */
		buf_putc(&text, '\n');
		buf_put(&text, list.p, list.n);
	}
	buf_putc(&text, '\0');
	result_error(&body, text.failed ? summary : (const char *)text.p);
	b = ipc_bytes(body.p, body.len);
	call_finish(c, OUTCOME_FAILED, FAILURE_BAD_RESULT, summary,
	    body.failed ? NULL : &b);
	buf_free(&text);
	buf_free(&body);
}

static void
not_judged(struct call *c, const char *why)
{
	struct err e;

	(void)err_set(&e, FAILURE_LOST,
	    "The tool ran to its end, but its result could not be checked "
	    "against its output schema (%s), so nobody gets it.",
	    why);
	call_finish(c, OUTCOME_LOST, FAILURE_LOST, e.text, NULL);
}

static void
judged(struct verify *v, struct ipc_frame *f)
{
	struct call *c = v->call;
	struct ipc_result_errors bad;
	struct ipc_refused no;
	struct ipc_bytes body = ipc_bytes(v->body.p, v->body.len);
	static const struct timeval tv = {.tv_usec = VERIFY_RETRY_MS * 1000};
	char *summary;

	if (f != NULL && f->type == IPC_OK) {
		call_finish(c, OUTCOME_DONE, FAILURE_NONE, NULL, &body);
		return;
	}
	if (f != NULL && f->type == IPC_RESULT_ERRORS &&
	    ipc_decode(f, &bad, NULL) == 0) {
		summary = ipc_strdup(bad.summary);
		bad_result(c,
		    summary != NULL ? summary
				    : "The result is not what the output "
				      "schema promises.",
		    bad.json);
		free(summary);
		return;
	}
	if (f != NULL && f->type == IPC_REFUSED &&
	    ipc_decode(f, &no, NULL) == 0 && no.failure == FAILURE_INTERNAL) {
		not_judged(c, "the schema cannot be used");
		return;
	}
	/* admind is away, busy or restarting: this result is asked about again,
	 * before later ones. */
	place(v, VERIFY_QUEUED);
	(void)evtimer_add(v->all->retry, &tv);
}

static void
on_answer(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct verify *v = arg;
	struct verifies *vs = v->all;

	place(v, VERIFY_IDLE);
	if (v->call == NULL)
		release(v);
	else
		judged(v, f); /* v may be gone */
	ask(vs);
}

/* --- The question. ----------------------------------------------------- */

static int
send_one(struct verifies *vs, struct verify *v)
{
	struct ipc_bytes schema = v->call->held->output_schema;
	struct ipc_result_check m = {
	    .execution = v->call->id,
	    .schema_len = (uint32_t)schema.n,
	};
	struct buf both;
	uint64_t id;
	int rc = -1;

	buf_init(&both, IPC_BLOB_MAX);
	buf_put(&both, schema.p, schema.n);
	buf_put(&both, v->value.p, v->value.n);
	m.schema_value = ipc_bytes(both.p, both.len);
	if (!both.failed)
		rc = ipc_request(vs->admind, IPC_RESULT_CHECK, &m,
		    VERIFY_ASK_MS, on_answer, v, &id);
	buf_free(&both);
	return rc;
}

/* Returns the oldest result of a principal that has none in `asked`. If there
 * is no such principal, returns the oldest result. So a client with many
 * results or slow schemas does not keep other clients waiting. */
static struct verify *
next(const struct verifies *vs)
{
	struct verify *v, *a;

	TAILQ_FOREACH(v, &vs->queue, link) {
		TAILQ_FOREACH(a, &vs->asked, link)
			if (a->share == v->share)
				break;
		if (a == NULL)
			return v;
	}
	return TAILQ_FIRST(&vs->queue);
}

static void
ask(struct verifies *vs)
{
	static const struct timeval tv = {.tv_usec = VERIFY_RETRY_MS * 1000};
	struct verify *v;

	while (vs->admind != NULL && vs->open < VERIFY_OPEN_MAX &&
	    !evtimer_pending(vs->retry, NULL) && (v = next(vs)) != NULL) {
		if (send_one(vs, v) != 0) {
			(void)evtimer_add(vs->retry, &tv);
			return;
		}
		place(v, VERIFY_ASKED);
	}
}

/* --- From a call. ------------------------------------------------------ */

static bool
is_error(struct ipc_bytes body)
{
	static const char *const path[] = {"isError", NULL};
	const uint8_t *p;
	size_t n;

	return json_slice(body.p, body.n, path, &p, &n) == 1 && *p == 't';
}

/* Keeps a result with all that it needs. NULL: no memory, or the results that
 * wait have as many bytes as they may, this one included. */
static struct verify *
make(struct call *c, struct ipc_bytes body)
{
	static const char *const path[] = {"structuredContent", NULL};
	struct verifies *vs = c->all->verifies;
	struct verify *v = calloc(1, sizeof(*v));
	const uint8_t *p;
	size_t n;

	if (v == NULL)
		return NULL;
	v->all = vs;
	v->call = c;
	buf_init(&v->body, body.n);
	buf_init(&v->printed, STDOUT_SHOWN_MAX + IPC_FRAME_MAX);
	channel_stdout(c->channel, &v->printed);
	/* The call's context is kept, too, because it holds the schema. So the
	 * bytes of the context count. */
	v->bytes = body.n + v->printed.len + c->held->plain.len;
	if (vs->bytes + v->bytes <= VERIFY_BYTES_MAX &&
	    share_fits(c->share, SHARE_VERIFY, v->bytes, VERIFY_BYTES_MAX))
		buf_put(&v->body, body.p, body.n);
	if (v->body.failed || v->body.len == 0) {
		buf_free(&v->body);
		buf_free(&v->printed);
		free(v);
		return NULL;
	}
	/* Can't fail: verify_begin has found the member. */
	(void)json_slice(v->body.p, v->body.len, path, &p, &n);
	v->value = ipc_bytes(p, n);
	/* Tells the client, so this comes only once the result is kept. */
	channel_notice(c->channel, &v->dropped);
	v->share = share_get(c->all->shares, c->held->principal); /* is there */
	return v;
}

bool
verify_begin(struct call *c, struct ipc_bytes body)
{
	static const char *const path[] = {"structuredContent", NULL};
	struct verifies *vs = c->all->verifies;
	const uint8_t *p;
	size_t n;

	if (c->held->output_schema.n == 0 || c->held->method != CALL_TOOL ||
	    c->held->kind == CONTEXT_INSPECT || is_error(body))
		return false;
	if (json_slice(body.p, body.n, path, &p, &n) != 1) {
		bad_result(c,
		    "The tool has an output schema, so its result needs "
		    "structured content: return a value, or "
		    "mcpbox.Result(value, content).",
		    ipc_bytes(NULL, 0));
		return true;
	}
	if ((c->verify = make(c, body)) == NULL) {
		not_judged(c, "too many results wait for it");
		return true;
	}
	vs->bytes += c->verify->bytes;
	share_take(c->share, SHARE_VERIFY, c->verify->bytes);
	c->verify->place = VERIFY_QUEUED;
	TAILQ_INSERT_TAIL(&vs->queue, c->verify, link);
	channel_close(c->channel);
	c->channel = NULL;
	calls_took(c->all, now_boot_ms() - c->started_ms - c->park.total_ms);
	if (c->runner != NULL)
		runners_end(c->runner);
	call_change(c, CALL_CHECKING);
	ask(vs);
	return true;
}

void
verify_printed(
    const struct call *c, struct result_dropped *dropped, struct buf *out)
{
	if (c->verify == NULL)
		return;
	*dropped = c->verify->dropped;
	buf_put(out, c->verify->printed.p, c->verify->printed.len);
}

void
verify_expired(struct call *c)
{
	not_judged(c, "who checks it did not answer in time");
}
