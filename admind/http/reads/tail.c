/*
 * GET /api/activity/stream: the live tail as server-sent events.
 *
 * admind sends activity in PARTs of lines, each a JSON object; each line
 * becomes one event. After a minute admind ends its answer, and is asked again
 * with the same login. A client that reads too slowly is dropped: it can read
 * the missed lines from the lists.
 *
 * A stream ends with its login. A thief of both halves of a login would read
 * activity for as long as a stream outlives the login: after a logout, an
 * expiry, a new password or role, a deletion. The vault alone knows of all of
 * these, so it is asked about the login of every stream every TAIL_LOGIN_MS. If
 * the vault does not answer, the login counts as ended, since the vault's
 * logins end with the vault. The last event says why. A stream of a script's
 * key ends with the key likewise, about which admind is asked.
 *
 * admind looks up a bound number of keys at once (admind/core/login.c) and
 * refuses more as BUSY. Any program of this machine can bring that about with
 * guesses, so BUSY says nothing about this key. It is asked about again,
 * TAIL_BUSY_MAX times. Only then does the stream end. So a revoked key may
 * hold its stream some seconds longer under such a load.
 */
#include <sys/queue.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "httpd_stream.h"
#include "json_grammar.h"
#include "jsonw.h"
#include "log.h"
#include "problem.h"
#include "reads.h"
#include "web.h"

enum {
	/* admind ends its answer after 60 s. If it takes longer than this, it
	 * hangs. */
	TAIL_WAIT_MS = 90 * 1000,
	/* How long a stream may outlive its login: as long as a page takes to
	 * load. 16 streams (ACTIVITY_FOLLOWERS_MAX) then cost the vault eight
	 * table look-ups per second. */
	TAIL_LOGIN_MS = 2000,
	TAIL_LOGIN_WAIT_MS = 10 * 1000, /* after this time, the vault hangs */
	/* So many times in a row admind may be too busy to judge a stream's
	 * key: 12 s with TAIL_LOGIN_MS. Guesses hold a place for milliseconds.
	 */
	TAIL_BUSY_MAX = 5
};

struct tail {
	LIST_ENTRY(tail) all;
	struct call *call;
	uint64_t stream, request;
	struct ipc_peer *asked; /* admind while an answer is awaited, or NULL */
	struct event *timer;    /* until the next look at the login */
	struct ipc_peer *looking; /* the vault or admind while asked, or NULL */
	uint64_t look;
	unsigned looks_busy; /* looks in a row that found admind busy */
	unsigned asks_busy;  /* likewise of questions for activity */
	bool calls;
	bool begun;
};

static LIST_HEAD(, tail) tails = LIST_HEAD_INITIALIZER(tails);

static void ask_again(struct tail *);
static bool look_later(struct tail *);

/* Frees a tail, but not its call, which was freed when it was answered. */
static void
forget(struct tail *t)
{
	LIST_REMOVE(t, all);
	if (t->looking != NULL)
		ipc_forget(t->looking, t->look);
	if (t->timer != NULL)
		event_free(t->timer);
	free(t);
}

static void
tail_free(struct tail *t)
{
	call_free(t->call);
	forget(t);
}

/* Tells admind that no client reads any more. */
static void
leave(struct tail *t)
{
	struct ipc_peer *peer = ipc_client_peer(t->call->web->admind);
	struct ipc_activity_leave m = {.stream = t->stream};

	if (t->asked == NULL)
		return;
	ipc_forget(t->asked, t->request);
	t->asked = NULL;
	if (peer != NULL)
		(void)ipc_send(peer, IPC_ACTIVITY_LEAVE, &m);
}

static void
gone(struct call *c)
{
	struct tail *t = c->data;

	leave(t);
	tail_free(t);
}

/* Ends the answer. The client gets the bytes sent so far, and may connect
 * again. */
static void
end(struct tail *t)
{
	leave(t);
	httpd_stream_end(t->call->req);
	tail_free(t);
}

/* Sends the reason as the last event and ends the answer. The client should not
 * come again before it has mended the cause. */
static void
end_told(struct tail *t, enum failure why, const char *message)
{
	struct jsonw w;
	struct buf b;

	buf_init(&b, ERR_TEXT_MAX * 2);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "type", "end");
	jsonw_kv_str(&w, "failure_mode", failure_info(why)->name);
	jsonw_kv_str(&w, "message", message);
	jsonw_obj_end(&w);
	if (!b.failed)
		(void)httpd_sse_event(t->call->req, NULL, b.p, b.len);
	buf_free(&b);
	end(t);
}

/* ---- the login of a stream ---- */

/* Tells whether admind was too busy to judge the key of this stream. */
static bool
busy(const struct tail *t, struct ipc_frame *f)
{
	struct ipc_refused r;

	return t->call->by_key && f != NULL && f->type == IPC_REFUSED &&
	    ipc_decode(f, &r, NULL) == 0 && r.failure == FAILURE_BUSY;
}

/* Goes on with a stream whose login or key is good. If admind was too busy to
 * tell it of activity, it is asked again, and the client hears of the gap. */
static void
good(struct tail *t)
{
	static const char gap[] = "{\"type\":\"dropped\",\"count\":0}";

	t->looks_busy = 0;
	if (!look_later(t) || t->asked != NULL)
		return;
	if (httpd_sse_event(t->call->req, NULL, gap, sizeof(gap) - 1))
		ask_again(t);
	else
		end(t);
}

static void
looked(void *arg, struct ipc_frame *f, enum failure gone_why)
{
	struct tail *t = arg;

	t->looking = NULL;
	if (busy(t, f) && t->looks_busy++ < TAIL_BUSY_MAX)
		(void)look_later(t);
	else if (busy(t, f))
		end_told(t, FAILURE_BUSY,
		    "admind was too busy to look at the key of this stream: "
		    "open the stream again");
	else if (t->call->by_key && (f == NULL || f->type != IPC_OK))
		end_told(t, f == NULL ? gone_why : FAILURE_UNAUTHENTICATED,
		    "the key of this stream has ended, or admind did not "
		    "answer: open the stream again with a live key");
	else if (t->call->by_key)
		good(t);
	else if (f == NULL)
		end_told(t, gone_why,
		    "the vault did not answer, so the login has ended: log in "
		    "and open the stream again");
	else if (f->type != IPC_SESSION_INFO)
		end_told(t, FAILURE_UNAUTHENTICATED,
		    "the login of this stream has ended: log in and open the "
		    "stream again");
	else
		good(t);
}

static void
look(evutil_socket_t fd, short what, void *arg)
{
	struct tail *t = arg;
	struct call *c = t->call;
	struct ipc_peer *peer =
	    ipc_client_peer(c->by_key ? c->web->admind : c->web->vault);
	struct ipc_whoami m = {.token = ipc_str(c->token)};
	struct ipc_script_key_check key = {.token = ipc_str(c->token_hash),
	    .scope = ipc_str(script_scope_name(c->route->scope))};

	if (peer == NULL ||
	    ipc_request(peer, c->by_key ? IPC_SCRIPT_KEY_CHECK : IPC_WHOAMI,
		c->by_key ? (const void *)&key : &m, TAIL_LOGIN_WAIT_MS, looked,
		t, &t->look) == -1)
		looked(t, NULL,
		    c->by_key ? FAILURE_STORAGE_UNAVAILABLE
			      : FAILURE_VAULT_UNAVAILABLE);
	else
		t->looking = peer;
}

/* Plans the next look at the login. false: without memory for the timer the
 * stream was ended and freed, since the end of its login would not be seen. */
static bool
look_later(struct tail *t)
{
	static const struct timeval tv = {.tv_sec = TAIL_LOGIN_MS / 1000,
	    .tv_usec = TAIL_LOGIN_MS % 1000 * 1000};

	if (evtimer_add(t->timer, &tv) == 0)
		return true;
	end_told(t, FAILURE_BUSY, "out of memory: open the stream again");
	return false;
}

/* ---- events ---- */

/* Sends an event for each line. false: the client is slow, or admind's text is
 * not JSON. */
static bool
put_lines(struct tail *t, const struct ipc_activity_lines *m)
{
	const uint8_t *p = m->lines.p, *stop = p + m->lines.n, *e;
	char text[64];
	int n;

	if (m->dropped > 0) {
		n = snprintf(text, sizeof(text),
		    "{\"type\":\"dropped\",\"count\":%llu}",
		    (unsigned long long)m->dropped);
		if (!httpd_sse_event(t->call->req, NULL, text, (size_t)n))
			return false;
	}
	for (; p < stop; p = e + 1) {
		e = memchr(p, '\n', (size_t)(stop - p));
		if (e == NULL || !utf8_valid(p, (size_t)(e - p)) ||
		    !json_grammar_valid(p, (size_t)(e - p))) {
			log_event(LOG_LV_WARN, "peer_broke_rule",
			    "admind's activity is no JSON");
			return false;
		}
		if (!httpd_sse_event(t->call->req, NULL, p, (size_t)(e - p)))
			return false;
	}
	return true;
}

static void
told(void *arg, struct ipc_frame *f, enum failure why)
{
	struct tail *t = arg;
	struct ipc_activity_lines m;
	struct call *c = t->call;
	struct ipc_refused r;
	char *message;

	if (f != NULL && f->type == IPC_ACTIVITY_LINES &&
	    ipc_decode(f, &m, NULL) == 0) {
		if (!t->begun) {
			t->begun = true;
			httpd_header(c->req, "X-Accel-Buffering", "no");
			httpd_stream_begin(c->req, 200, "text/event-stream");
			if (httpd_request(c->req)->method == HTTP1_HEAD) {
				end(t);
				return;
			}
			(void)httpd_sse_comment(c->req);
			/* admind has just judged the login, so the vault is
			 * asked about it only after TAIL_LOGIN_MS */
			if (!look_later(t))
				return;
		}
		t->asks_busy = 0;
		if (!put_lines(t, &m))
			end(t);
		return;
	}
	t->asked = NULL;
	/* The next good look at the key asks again. */
	if (t->begun && busy(t, f) && t->asks_busy++ < TAIL_BUSY_MAX)
		return;
	if (f != NULL && f->type == IPC_OK) {
		ask_again(t);
		return;
	}
	if (f != NULL && f->type == IPC_REFUSED &&
	    ipc_decode(f, &r, NULL) == 0 &&
	    (message = ipc_strdup(r.message)) != NULL) {
		if (t->begun) {
			end_told(t, (enum failure)r.failure, message);
			free(message);
			return;
		}
		problem_send(c, (enum failure)r.failure, message, NULL);
		free(message);
	} else if (t->begun) {
		end(t);
		return;
	} else {
		problem_away(c, false, "admind is not reachable");
	}
	forget(t); /* the answer freed the call */
}

static void
ask_again(struct tail *t)
{
	static uint64_t streams;
	struct ipc_peer *peer = ipc_client_peer(t->call->web->admind);
	struct ipc_activity_follow m = {
	    .token = ipc_str(t->call->token_hash), .calls = t->calls};

	m.stream = t->stream = ++streams;
	if (peer != NULL &&
	    ipc_request(peer, IPC_ACTIVITY_FOLLOW, &m, TAIL_WAIT_MS, told, t,
		&t->request) == 0) {
		t->asked = peer;
		return;
	}
	if (t->begun) {
		end(t);
		return;
	}
	problem_away(t->call, false, "admind is not reachable");
	forget(t);
}

void
tail_get(struct call *c)
{
	struct tail *t;

	if (c->web->draining) {
		problem_retry(c, FAILURE_UPGRADING,
		    "the server is being restarted", 1000);
		return;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL ||
	    (t->timer = evtimer_new(c->web->base, look, t)) == NULL) {
		free(t);
		problem_retry(c, FAILURE_BUSY, "out of memory", 1000);
		return;
	}
	t->call = c;
	t->calls = c->params.filter[ADMIN_FILTER_KIND][0] == '\0';
	c->data = t;
	c->gone = gone;
	LIST_INSERT_HEAD(&tails, t, all);
	ask_again(t);
}

void
tail_end_all(void)
{
	struct tail *t;

	while ((t = LIST_FIRST(&tails)) != NULL) {
		if (t->begun) {
			end(t);
			continue;
		}
		leave(t);
		problem_retry(t->call, FAILURE_UPGRADING,
		    "the server is being restarted", 1000);
		forget(t);
	}
}
