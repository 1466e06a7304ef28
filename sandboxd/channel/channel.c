/* See channel.h. */
#include <event2/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ask.h"
#include "channel.h"
#include "ids.h"
#include "json_scan.h"
#include "jsonw.h"
#include "log.h"
#include "redact.h"
#include "result.h"
#include "turn.h"

/* Kinds of CALL_EVENT, and the MCP level of our own log line. */
enum { EVENT_PROGRESS = 1, EVENT_LOG = 2, LEVEL_WARNING = 3 };

struct channel {
	struct ipc_peer *peer;
	const struct held *held;
	struct redact *redact;
	const struct channel_events *events;
	void *arg;
	bool closed;    /* we closed it: no more events */
	bool executing; /* SECRETS were sent */
	struct turn turn;
	uint32_t asked; /* number of the last question */
	bool asking;    /* that question is open */
	struct turn_rate log, progress;
	uint32_t result_max;
	uint32_t shown_max, stdout_max; /* of output: shown, captured */
	struct buf pieces;              /* CONTENT_PART */
	struct buf printed;             /* STDOUT */
};

static void
channel_free(struct channel *c)
{
	redact_free(c->redact);
	buf_free(&c->pieces);
	buf_free(&c->printed);
	if (c->turn.event != NULL)
		event_free(c->turn.event);
	free(c);
}

/* Reports a violation to the owner. Returns -1, which then closes the peer. */
static int
violation(struct channel *c, enum failure f, const char *text)
{
	c->closed = true;
	c->events->violation(c->arg, f, text);
	return -1;
}

static int
malformed(struct channel *c, const struct err *e)
{
	struct err v;

	(void)err_set(&v, FAILURE_KILLED,
	    "The tool was ended: it broke the protocol of its sandbox (%s).",
	    e->text);
	return violation(c, FAILURE_KILLED, v.text);
}

static int
on_stdout(struct channel *c, struct ipc_frame *f)
{
	struct ipc_stdout m;
	size_t room;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return malformed(c, &e);
	room = c->stdout_max - c->printed.len;
	buf_put(&c->printed, m.data.p, m.data.n < room ? m.data.n : room);
	return 0;
}

static int
on_log(struct channel *c, struct ipc_frame *f)
{
	struct ipc_log m;
	uint64_t began;
	struct buf b;
	struct err e;
	int rc;

	if (ipc_decode(f, &m, &e) != 0)
		return malformed(c, &e);
	if (!turn_rate_due(&c->log, now_boot_ms()))
		return 0;
	if (m.level > 7 || m.json.n > CHANNEL_EVENT_MAX ||
	    json_scan(m.json.p, m.json.n, &e) != 0)
		return violation(c, FAILURE_KILLED,
		    "The tool was ended: it sent a malformed log line.");
	buf_init(&b, CHANNEL_EVENT_MAX + 1024);
	began = turn_now_us();
	/* A line is dropped if it can't be shown or if there is no memory for
	 * it. */
	rc = result_log(m.level, c->held->name, m.json, c->redact, &b);
	turn_charge(&c->turn, c->peer, began);
	if (rc == 0 && !b.failed)
		c->events->event(c->arg, EVENT_LOG, ipc_bytes(b.p, b.len));
	buf_free(&b);
	return 0;
}

static int
on_progress(struct channel *c, struct ipc_frame *f)
{
	struct ipc_progress m;
	uint64_t began = turn_now_us();
	struct buf b;
	struct err e;
	int rc;

	if (ipc_decode(f, &m, &e) != 0)
		return malformed(c, &e);
	if (!turn_rate_due(&c->progress, now_boot_ms()))
		return 0;
	buf_init(&b, CHANNEL_EVENT_MAX + 1024);
	if (m.json.n > CHANNEL_EVENT_MAX ||
	    json_scan(m.json.p, m.json.n, &e) != 0 ||
	    (rc = result_progress(m.json, c->redact, &b, &e)) < 0)
		rc = violation(c, FAILURE_KILLED,
		    "The tool was ended: it sent a malformed progress report.");
	else if (turn_charge(&c->turn, c->peer, began), rc == 0 && !b.failed)
		c->events->event(c->arg, EVENT_PROGRESS, ipc_bytes(b.p, b.len));
	buf_free(&b);
	return rc < 0 ? -1 : 0;
}

/* Passes on a pause. Pauses count as progress reports, so a loop of pauses
 * costs no more than a loop of reports. */
static int
on_pause(struct channel *c, struct ipc_frame *f)
{
	struct ipc_pause m;
	char text[32];
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return malformed(c, &e);
	if (!turn_rate_due(&c->progress, now_boot_ms()))
		return 0;
	snprintf(text, sizeof(text), "{\"retry\":%u}", m.retry_ms);
	c->events->event(c->arg, CALL_EVENT_PAUSE, ipc_str(text));
	return 0;
}

/*
 * Passes on a question: one at a time, numbered without a gap, and at most
 * ASK_CALL_MAX. For each question a tool needs a round trip and its client's
 * patience, so a loop of questions costs little.
 */
static int
on_ask(struct channel *c, struct ipc_frame *f)
{
	struct ipc_ask m;
	struct buf b;
	struct err e;
	int rc;

	if (ipc_decode(f, &m, &e) != 0)
		return malformed(c, &e);
	if (c->asking || m.number != c->asked + 1 || c->events->ask == NULL)
		return violation(c, FAILURE_KILLED,
		    "The tool was ended: it asked out of turn.");
	if (m.number > ASK_CALL_MAX) {
		(void)err_set(&e, FAILURE_LIMIT,
		    "The tool was ended: it asked its client more than %d "
		    "times.",
		    (int)ASK_CALL_MAX);
		return violation(c, FAILURE_LIMIT, e.text);
	}
	c->asked = m.number;
	c->asking = true;
	buf_init(&b, CHANNEL_EVENT_MAX + 1024);
	if (m.json.n > CHANNEL_EVENT_MAX ||
	    json_scan(m.json.p, m.json.n, &e) != 0 ||
	    (rc = ask_take(m.json, c->redact, &b, &e)) < 0) {
		rc = violation(c, FAILURE_KILLED,
		    "The tool was ended: it sent a malformed question.");
	} else if (rc > 0) {
		buf_clear(&b);
		ask_refuse(m.json, ASK_CODE_PARAMS, e.text, &b);
		rc = channel_answer(c, ipc_bytes(b.p, b.len));
	} else {
		c->events->ask(c->arg, m.number, ipc_bytes(b.p, b.len));
	}
	buf_free(&b);
	return rc;
}

static int
too_large(struct channel *c)
{
	struct err e;

	(void)err_set(&e, FAILURE_LIMIT,
	    "The tool's result is too large: the limit result_bytes is %u "
	    "bytes. Return less: a summary, a page, or the part that is "
	    "needed.",
	    (unsigned)c->result_max);
	return violation(c, FAILURE_LIMIT, e.text);
}

static int
on_piece(struct channel *c, struct ipc_frame *f)
{
	struct ipc_content_part m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return malformed(c, &e);
	buf_put(&c->pieces, m.data.p, m.data.n);
	return c->pieces.failed ? too_large(c) : 0;
}

/* Ends the call with the error as its text, for the tool's author: the tool's
 * result has a form that no client takes. */
static void
refused(struct channel *c, const struct err *e, struct buf *body)
{
	buf_clear(body);
	result_error(body, e->text);
	c->closed = true;
	c->events->result(
	    c->arg, FAILURE_EXCEPTION, ipc_bytes(body->p, body->len));
}

/*
 * Ends the call when all pieces of the result are here. An inspection's body
 * passes as it is: the inspection had no secrets, and admind-check takes the
 * body apart. A call's body is put together again from its known members, with
 * secrets replaced.
 */
static int
finish(struct channel *c, uint32_t length, enum failure failure)
{
	struct ipc_bytes text = ipc_bytes(c->pieces.p, c->pieces.len);
	struct buf body;
	struct err e, v;
	int rc = -1;

	buf_init(&body, (size_t)c->result_max + 1024);
	if (length != text.n || json_scan(text.p, text.n, &e) != 0) {
		(void)err_set(&v, FAILURE_KILLED,
		    "The tool was ended: it sent a malformed result (%s).",
		    length != text.n ? "its length" : e.text);
		rc = violation(c, FAILURE_KILLED, v.text);
		goto out;
	}
	if (c->held->kind == CONTEXT_INSPECT)
		buf_put(&body, text.p, text.n);
	else if (result_take(text, held_form(c->held), failure != FAILURE_NONE,
		     c->redact, &body, &e) != 0) {
		if (e.failure == FAILURE_EXCEPTION)
			refused(c, &e, &body);
		else
			rc = violation(c, e.failure, e.text);
		goto out;
	}
	if (body.failed) {
		rc = too_large(c);
		goto out;
	}
	/* Frames after the result are not read any more. */
	c->closed = true;
	c->events->result(c->arg, failure, ipc_bytes(body.p, body.len));
out:
	buf_free(&body);
	return rc;
}

static int
on_part(struct channel *c, struct ipc_frame *f)
{
	struct ipc_module_part m;

	if (ipc_decode(f, &m, NULL) != 0 || c->events->part == NULL)
		return violation(c, FAILURE_KILLED, "The tool sent files.");
	c->events->part(c->arg, m.last != 0, m.data);
	return 0;
}

static int
on_result(struct channel *c, struct ipc_frame *f)
{
	struct ipc_run_result m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return malformed(c, &e);
	return finish(c, m.length, FAILURE_NONE);
}

static int
on_error(struct channel *c, struct ipc_frame *f)
{
	struct ipc_run_error m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return malformed(c, &e);
	switch (m.failure) {
	case FAILURE_EXCEPTION:
	case FAILURE_BAD_CODE:
	case FAILURE_INVALID_ARGUMENTS:
	case FAILURE_LIMIT:
	case FAILURE_NO_ANSWER:
	case FAILURE_TOOL_PROTOCOL:
	case FAILURE_TIMEOUT:
	case FAILURE_UPSTREAM:
	case FAILURE_UNKNOWN_RESOURCE: /* known to the tool alone */
		return finish(c, m.length, (enum failure)m.failure);
	case FAILURE_MISSING_GRANT:
	case FAILURE_UPSTREAM_CHANGED: /* only our own drivers can know it */
		if (c->held->driver != DRIVER_CODE)
			return finish(c, m.length, (enum failure)m.failure);
		break;
	}
	return violation(c, FAILURE_KILLED,
	    "The tool was ended: it claimed a failure it can't have.");
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct channel *c = arg;

	if (!c->closed)
		ipc_peer_resume(c->peer);
}

static int
on_message(struct ipc_peer *peer, struct ipc_frame *f, void *arg)
{
	struct channel *c = arg;

	if (c->closed)
		return -1;
	turn_frame(&c->turn, c->peer, f);
	/* The IPC table allows these frames from READY on, but an honest runner
	 * sends none before it was given a call. */
	if (!c->executing)
		return violation(c, FAILURE_KILLED,
		    "The runner spoke before it was given a call.");
	switch (f->type) {
	case IPC_STDOUT:
		return on_stdout(c, f);
	case IPC_LOG:
		return on_log(c, f);
	case IPC_PROGRESS:
		return on_progress(c, f);
	case IPC_PAUSE:
		return on_pause(c, f);
	case IPC_CONTENT_PART:
		return on_piece(c, f);
	case IPC_ASK:
		return on_ask(c, f);
	case IPC_MODULE_PART:
		return on_part(c, f);
	case IPC_RUN_RESULT:
		return on_result(c, f);
	case IPC_RUN_ERROR:
		return on_error(c, f);
	default:
		return -1;
	}
}

static void
on_down(struct ipc_peer *peer, void *arg)
{
	struct channel *c = arg;

	if (c->closed) {
		channel_free(c);
		return;
	}
	/* The owner calls channel_close, now or later, which frees the
	 * channel. */
	c->peer = NULL;
	c->events->down(c->arg);
}

struct channel *
channel_new(struct event_base *base, struct ipc_peer *peer,
    const struct held *h, const struct channel_events *events, void *arg,
    struct err *e)
{
	static const struct ipc_handlers handlers = {
	    .message = on_message, .down = on_down};
	static const struct ipc_handlers nobody;
	struct channel *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		goto nomem;
	c->held = h;
	c->events = events;
	c->arg = arg;
	c->result_max = (uint32_t)h->limit[LIMIT_RESULT_BYTES];
	c->log.most = (unsigned)h->limit[LIMIT_LOG_RATE];
	c->progress.most = (unsigned)h->limit[LIMIT_PROGRESS_RATE];
	c->shown_max = (uint32_t)h->limit[LIMIT_STDOUT_BYTES];
	c->turn.event = evtimer_new(base, on_turn, c);
	c->redact = redact_new(h->secrets.p, h->secrets.len);
	if (c->turn.event == NULL || c->redact == NULL)
		goto nomem;
	/* More is captured than shown: redact_cut needs the longest form of a
	 * secret (redact.h), and the runner keeps CHANNEL_NOTE_MAX bytes for
	 * its note. */
	c->stdout_max = c->shown_max + CHANNEL_NOTE_MAX +
	    (uint32_t)redact_longest(c->redact);
	buf_init(&c->pieces, c->result_max);
	buf_init(&c->printed, c->stdout_max);
	c->peer = peer;
	ipc_peer_handlers(peer, &handlers, c);
	return c;
nomem:
	ipc_peer_handlers(peer, &nobody, NULL);
	ipc_peer_close(peer);
	if (c != NULL)
		channel_free(c);
	(void)err_set(e, FAILURE_BUSY, "no memory for a channel");
	return NULL;
}

void
channel_close(struct channel *c)
{
	if (c == NULL)
		return;
	c->closed = true;
	if (c->peer != NULL)
		ipc_peer_close(c->peer); /* on_down frees */
	else
		channel_free(c);
}

void
channel_owner(struct channel *c, const struct channel_events *events, void *arg)
{
	c->events = events;
	c->arg = arg;
}

int
channel_execute(struct channel *c, const struct ipc_execute *what)
{
	struct ipc_execute x = *what;

	x.stdout_max = c->stdout_max;
	x.result_max = c->result_max;
	return c->peer != NULL && ipc_send(c->peer, IPC_EXECUTE, &x) == 0 ? 0
									  : -1;
}

int
channel_start(struct channel *c, struct ipc_bytes arguments)
{
	struct ipc_arguments a = {.json = arguments};
	struct ipc_secrets s = {
	    .tlv = ipc_bytes(c->held->secrets.p, c->held->secrets.len)};

	if (c->peer == NULL || ipc_send(c->peer, IPC_ARGUMENTS, &a) != 0 ||
	    ipc_send(c->peer, IPC_SECRETS, &s) != 0)
		return -1;
	c->executing = true;
	return 0;
}

int
channel_answer(struct channel *c, struct ipc_bytes json)
{
	struct ipc_answer m = {.number = c->asked, .json = json};

	c->asking = false;
	return c->peer != NULL && ipc_send(c->peer, IPC_ANSWER, &m) == 0 ? 0
									 : -1;
}

void
channel_next(struct channel *c, const struct ipc_module_next *m)
{
	(void)(c->peer != NULL && ipc_send(c->peer, IPC_MODULE_NEXT, m) == 0);
}

/*
 * Tells the client how many log lines and progress reports were dropped, and
 * which limit they exceeded. Called once, before the answer.
 */
void
channel_notice(struct channel *c, struct result_dropped *d)
{
	struct buf text, json, b;
	struct jsonw w;

	d->log_lines = c->log.dropped;
	d->progress_reports = c->progress.dropped;
	if (c->log.dropped == 0 && c->progress.dropped == 0)
		return;
	buf_init(&text, 512);
	buf_init(&json, 1024);
	buf_init(&b, CHANNEL_EVENT_MAX);
	if (c->log.dropped > 0)
		buf_putf(&text,
		    "%llu log lines were dropped: the limit log_rate is %u "
		    "lines a second. ",
		    (unsigned long long)c->log.dropped, c->log.most);
	if (c->progress.dropped > 0)
		buf_putf(&text,
		    "%llu progress reports were dropped: the limit "
		    "progress_rate is %u reports a second. ",
		    (unsigned long long)c->progress.dropped, c->progress.most);
	jsonw_open(&w, &json);
	jsonw_strn(&w, text.p, text.len - 1);
	(void)result_log(LEVEL_WARNING, c->held->name,
	    ipc_bytes(json.p, json.len), c->redact, &b);
	if (!text.failed && !json.failed && !b.failed)
		c->events->event(c->arg, EVENT_LOG, ipc_bytes(b.p, b.len));
	c->log.dropped = c->progress.dropped = 0;
	buf_free(&text);
	buf_free(&json);
	buf_free(&b);
}

/*
 * Cuts first where no secret lies across the cut, then redacts. A secret may be
 * torn at the end of the capture. If redaction came first, it would shorten the
 * text and could move that end into the part that is shown. The redacted text
 * is cut once more, so that no UTF-8 sequence is torn.
 */
void
channel_stdout(struct channel *c, struct buf *out)
{
	char note[128];
	struct ipc_bytes text = ipc_bytes(c->printed.p, c->printed.len);
	bool cut = text.n > c->shown_max;
	size_t most;

	(void)snprintf(note, sizeof(note),
	    "\n[more was printed: the limit stdout_bytes is %u bytes]\n",
	    (unsigned)c->shown_max);
	most = c->shown_max > strlen(note) ? c->shown_max - strlen(note) : 0;
	if (cut)
		text.n = redact_cut(c->redact, text, most);
	(void)redact_bytes(c->redact, text, out);
	if (!cut)
		return;
	if (out->len > most) {
		out->len = most;
		while (out->len > 0 && (out->p[out->len] & 0xc0) == 0x80)
			out->len--;
	}
	buf_puts(out, note);
}
