/*
 * GET /api/activity/stream: the live tail as server-sent events.
 *
 * admind tells what happens in PARTs of lines, each an object of JSON; each
 * becomes one event. After a minute it ends the asking, and it is asked again
 * with the same login: so who is logged out is out within that minute. Who
 * reads too slowly is dropped: it can read what it missed from the lists.
 */
#include <sys/queue.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_grammar.h"
#include "log.h"
#include "web.h"

enum {
	/* admind ends it after 60 s; later than this it has hung. */
	TAIL_WAIT_MS = 90 * 1000
};

struct tail {
	LIST_ENTRY(tail) all;
	struct call *call;
	uint64_t stream, request;
	struct ipc_peer
	    *asked; /* while it waits for admind's word, else NULL */
	bool calls;
	bool begun;
};

static LIST_HEAD(, tail) tails = LIST_HEAD_INITIALIZER(tails);

static void ask_again(struct tail *);

/* Its call was answered, which freed that. */
static void
forget(struct tail *t)
{
	LIST_REMOVE(t, all);
	free(t);
}

static void
tail_free(struct tail *t)
{
	call_free(t->call);
	forget(t);
}

/* Nobody reads any more: admind need not say more. */
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

/* Ends the answer; the client reads the rest and comes again if it likes. */
static void
end(struct tail *t)
{
	leave(t);
	httpd_stream_end(t->call->req);
	tail_free(t);
}

/* One event a line; false: the client is slow, or admind's text no JSON. */
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
		}
		if (!put_lines(t, &m))
			end(t);
		return;
	}
	t->asked = NULL;
	if (f != NULL && f->type == IPC_OK) {
		ask_again(t);
		return;
	}
	if (t->begun) {
		end(t);
		return;
	}
	if (f != NULL && f->type == IPC_REFUSED &&
	    ipc_decode(f, &r, NULL) == 0 &&
	    (message = ipc_strdup(r.message)) != NULL) {
		problem_send(c, (enum failure)r.failure, message, NULL);
		free(message);
	} else {
		problem_retry(c, FAILURE_STORAGE_UNAVAILABLE,
		    "admind is not reachable", 1000);
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
	problem_retry(t->call, FAILURE_STORAGE_UNAVAILABLE,
	    "admind is not reachable", 1000);
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
	if (t == NULL) {
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
