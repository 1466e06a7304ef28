/*
 * Opening and ending streams.
 *
 * Clients can make this process hold max_streams streams in all, and
 * max_streams_per_principal of one principal. A stream takes a few KiB and its
 * socket. Nothing is queued for a client that does not read, since a stream
 * keeps only bits for the messages that are due. A stream is never a way around
 * authority. It is opened by an authenticated request, and says only that
 * something changed (or a task's state: tasks.c). Before it says anything, its
 * credential is checked again, so a revoked client's stream ends and tells no
 * changes. When its credential's time is over the stream ends by a timer here:
 * admind does not remember every token (docs/decisions/0090).
 */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "log.h"
#include "stream_internal.h"

/* ---- ends of credentials ---- */

/* Lets the timer run at this time at the latest. Without memory for it the
 * tidying does its work. */
static void
look_at(struct streams *t, uint64_t until_ms, uint64_t least_ms)
{
	uint64_t now = now_boot_ms();
	uint64_t ms = until_ms > now ? until_ms - now : 0;
	struct timeval tv;

	if (until_ms == 0 || (t->look_ms != 0 && t->look_ms <= until_ms))
		return;
	if (ms < least_ms)
		ms = least_ms;
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	if (evtimer_add(t->ends, &tv) == 0)
		t->look_ms = until_ms;
}

static void
end_all(struct streams *t)
{
	uint64_t now = now_boot_ms(), next = 0;
	struct stream *s, *after;

	for (s = TAILQ_FIRST(&t->all); s != NULL; s = after) {
		after = TAILQ_NEXT(s, all);
		if (s->until_ms == 0)
			continue;
		if (s->until_ms <= now)
			stream_close(s, true);
		else if (next == 0 || s->until_ms < next)
			next = s->until_ms;
	}
	t->look_ms = 0;
	look_at(t, next, STREAMS_ENDS_MS);
}

static void
ends_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	end_all(arg);
}

void
stream_until(struct stream *s, uint64_t until_ms)
{
	s->until_ms = until_ms;
	look_at(s->gw->streams, until_ms, 0);
}

/* ---- all streams ---- */

static void
tidy_cb(evutil_socket_t fd, short what, void *arg)
{
	struct streams *t = arg;

	(void)fd;
	(void)what;
	stream_store_tidy(t->store, now_boot_ms());
	end_all(t);
	stream_admind_up(t->gw); /* tells streams that are still due */
}

int
stream_init(struct gateway *gw)
{
	static const struct timeval tidy = {STREAM_TIDY_MS / 1000, 0};
	struct streams *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -1;
	gw->streams = t;
	t->gw = gw;
	TAILQ_INIT(&t->all);
	TAILQ_INIT(&t->due);
	t->max = (unsigned)conf_int(gw->proc.conf, "max_streams");
	t->principal_max =
	    (unsigned)conf_int(gw->proc.conf, "max_streams_per_principal");
	t->store = stream_store_new();
	t->turn = evtimer_new(gw->proc.base, stream_tell_turn, t);
	t->ends = evtimer_new(gw->proc.base, ends_cb, t);
	t->tidy = event_new(gw->proc.base, -1, EV_PERSIST, tidy_cb, t);
	return table_init(&t->owners, STREAM_OWNERS) < 0 || t->store == NULL ||
		t->turn == NULL || t->tidy == NULL || t->ends == NULL ||
		event_add(t->tidy, &tidy) < 0
	    ? -1
	    : 0;
}

void
stream_free(struct gateway *gw)
{
	struct streams *t = gw->streams;

	if (t == NULL)
		return;
	if (t->turn != NULL)
		event_free(t->turn);
	if (t->tidy != NULL)
		event_free(t->tidy);
	if (t->ends != NULL)
		event_free(t->ends);
	stream_store_free(t->store);
	table_free(&t->owners);
	free(t);
	gw->streams = NULL;
}

/* ---- counting ---- */

static struct stream_owner *
owner_of(struct streams *t, const char *principal, bool make)
{
	size_t n = strlen(principal);
	struct stream_owner *o = TABLE_OBJECT(
	    struct stream_owner, node, table_find(&t->owners, principal, n));

	if (o != NULL || !make || (o = calloc(1, sizeof(*o) + n + 1)) == NULL)
		return o;
	memcpy(o->name, principal, n + 1);
	table_add(&t->owners, &o->node, o->name, n);
	return o;
}

/* Frees the owner if it has no stream any more. */
static void
owner_settle(struct streams *t, struct stream_owner *o)
{
	if (o->streams > 0)
		return;
	table_del(&t->owners, &o->node);
	free(o);
}

bool
stream_room(struct gateway *gw, const char *principal, struct refusal *no)
{
	struct streams *t = gw->streams;
	const struct stream_owner *o = owner_of(t, principal, false);

	if (gw->draining) {
		refusal_set(no, FAILURE_UPGRADING, STREAM_RETRY_MS,
		    "The server is being restarted.");
		return false;
	}
	if (t->count < t->max && (o == NULL || o->streams < t->principal_max))
		return true;
	refusal_set(no, FAILURE_BUSY, STREAM_RETRY_MS * 10,
	    "Too many event streams are open.");
	return false;
}

/* ---- one stream ---- */

struct session_watch *
stream_watches(struct stream *s, unsigned *n)
{
	if (s->session != NULL)
		return session_state_watches(s->gw->states, &s->session->id, n);
	*n = s->nwatches;
	return s->watches;
}

void
stream_release(struct stream *s)
{
	unsigned i;

	for (i = 0; i < s->nwatches; i++)
		free(s->watches[i].uri);
	free(s->watches);
	explicit_bzero(s->credential.text, strlen(s->credential.text));
	free(s);
}

void
stream_unlink(struct stream *s)
{
	struct streams *t = s->gw->streams;

	s->req = NULL;
	TAILQ_REMOVE(&t->all, s, all);
	if (s->queued)
		TAILQ_REMOVE(&t->due, s, turn);
	s->queued = false;
	t->count--;
	s->owner->streams--;
	owner_settle(t, s->owner);
	s->owner = NULL;
	if (s->session != NULL && s->session->get == s) {
		/* The session's next stream will be told. */
		s->session->due |= s->due & ~(unsigned)DUE_CHECK;
		stream_store_set_get(s->session, NULL);
	}
	s->session = NULL;
	if (!s->asking)
		stream_release(s);
}

void
stream_gone(struct httpd_req *req, void *arg)
{
	struct stream *s = httpd_data(req);

	(void)arg;
	if (s != NULL)
		stream_unlink(s);
}

/* Sends the response of a listen request that ends well (MCP 2026-07-28,
 * SubscriptionsListenResult): the client then knows that it lost nothing. */
static void
say_complete(struct stream *s)
{
	struct answer_to to = {ipc_str(s->id), true};
	struct buf meta, b;

	buf_init(&meta, MCP_ID_MAX + 128);
	buf_init(&b, MCP_ID_MAX * 2 + 1024);
	buf_putf(
	    &meta, "{\"io.modelcontextprotocol/subscriptionId\":%s}", s->id);
	if (!meta.failed &&
	    answer_call(&b, &to, ipc_str("{}"), ipc_bytes(meta.p, meta.len)) ==
		0)
		httpd_sse_event(s->req, NULL, b.p, b.len);
	buf_free(&meta);
	buf_free(&b);
}

void
stream_close(struct stream *s, bool final)
{
	struct httpd_req *req = s->req;

	if (req == NULL)
		return;
	httpd_set_data(req, NULL);
	if (final && s->session == NULL)
		say_complete(s);
	httpd_stream_end(req);
	stream_unlink(s);
}

void
stream_shutdown(struct gateway *gw)
{
	struct stream *s;

	if (gw->streams == NULL)
		return;
	while ((s = TAILQ_FIRST(&gw->streams->all)) != NULL)
		stream_close(s, true);
}

struct stream *
stream_new(const struct exchange *ex, struct ipc_bytes id, const char *tasks,
    size_t tasks_len)
{
	size_t cred = strlen(ex->credential.text) + 1;
	struct streams *t = ex->gw->streams;
	struct stream_owner *o = owner_of(t, ex->who.principal, true);
	struct stream *s;
	char *at;

	s = o != NULL ? calloc(1, sizeof(*s) + cred + id.n + 1 + tasks_len)
		      : NULL;
	if (s == NULL) {
		if (o != NULL)
			owner_settle(t, o);
		return NULL;
	}
	s->gw = ex->gw;
	s->owner = o;
	s->credential = ex->credential;
	s->credential.text = at = s->texts;
	memcpy(at, ex->credential.text, cred);
	at += cred;
	if (id.n > 0)
		memcpy(at, id.p, id.n);
	s->id = at;
	at += id.n + 1;
	if (tasks_len > 0)
		memcpy(at, tasks, tasks_len);
	s->tasks = at;
	o->streams++;
	t->count++;
	TAILQ_INSERT_TAIL(&t->all, s, all);
	stream_until(s, ex->who.until_ms);
	return s;
}

static void
drained(struct httpd_req *req, void *arg)
{
	struct stream *s = httpd_data(req);

	(void)arg;
	if (s != NULL && s->due != 0)
		stream_tell_queue(s);
}

void
stream_begin(struct stream *s, struct httpd_req *req)
{
	s->req = req;
	httpd_set_data(req, s);
	httpd_last(req); /* demanded by httpd_stream_lean, which each caller
			  * calls later */
	exchange_stream_head(req);
	httpd_on_drained(req, drained, NULL);
}

void
stream_refuse_memory(struct exchange *ex)
{
	struct refusal no;

	refusal_set(&no, FAILURE_BUSY, RETRY_MS, "Out of memory.");
	exchange_refuse(ex, &no);
}

/* ---- GET ---- */

/* Returns the messages (mask of DUE_*) that a client may have missed after the
 * event with this number. known: the number is of an event of r. false: any
 * message may have been missed. */
static unsigned
missed(const struct stream_session *r, bool known, uint32_t number)
{
	unsigned due = r->due;
	int i;

	if (!known)
		return DUE_TOOLS | DUE_PROMPTS | DUE_RESOURCES | DUE_ALL;
	for (i = 0; i < STREAM_STORE_KINDS; i++)
		if (r->said[i] > number)
			due |= i == KIND_UPDATES ? DUE_ALL : 1u << i;
	return due;
}

/*
 * Opens the session's own stream. A session has only one: a second one replaces
 * the first, which ends. Only the client knows that a connection is dead. To
 * refuse the new stream with 409, as some servers do, would leave the client
 * without messages for minutes, until the kernel gives up the old connection.
 */
static void
get_own(struct exchange *ex, bool named, bool known, uint32_t number)
{
	struct gateway *gw = ex->gw;
	struct stream_session *r = stream_store_take(
	    gw->streams->store, &ex->session.id, &ex->session.principal);
	struct ipc_bytes none = {NULL, 0};
	char id[STREAM_STORE_ID_MAX];
	enum mcp_rev rev = ex->session.rev;
	struct refusal no;
	struct stream *s = NULL;
	uint64_t expires = ex->session.expires_ms;

	if (r != NULL && r->get != NULL)
		stream_close(r->get, false);
	if (!stream_room(gw, ex->who.principal, &no)) {
		exchange_refuse(ex, &no);
		return;
	}
	if (r != NULL)
		s = stream_new(ex, none, NULL, 0);
	if (s == NULL) {
		stream_refuse_memory(ex);
		return;
	}
	s->session = r;
	s->expires_ms = expires;
	s->want = DUE_TOOLS | DUE_PROMPTS | DUE_RESOURCES | DUE_UPDATES |
	    DUE_LOOK | DUE_ALL;
	stream_store_set_get(r, s);
	stream_begin(s, exchange_release(ex));
	/* Send an id at once, so that a client that is cut off before the first
	 * event has an id for Last-Event-ID. Clients of older revisions take an
	 * event without data for a broken message. */
	stream_store_id(r, 0, r->last, id);
	if (rev >= MCP_REV_2025_11_25)
		httpd_sse_prime(s->req, id, STREAM_RETRY_MS);
	else
		httpd_sse_comment(s->req);
	s->due = named ? missed(r, known, number) : r->due;
	r->due = 0;
	httpd_stream_lean(s->req, stream_gone);
	if (s->due != 0)
		stream_tell_queue(s);
}

void
stream_get(struct exchange *ex)
{
	uint32_t epoch = 0, post = 0, number = 0;
	struct stream_session *r;
	struct stream_post *p;
	bool named, known;

	if (!ex->has_session || !ex->accepts_sse) {
		/* "or else 405, indicating that the server does not offer an
		 * SSE stream" (MCP 2025-11-25, listening): every client takes
		 * it as "go on without a stream". */
		if (ex->req != NULL)
			httpd_header(ex->req, "Allow", "POST, DELETE, OPTIONS");
		exchange_error(ex, 405, FAILURE_INVALID_REQUEST,
		    ex->has_session
			? "Accept must list text/event-stream."
			: "An event stream belongs to a session: name one in "
			  "Mcp-Session-Id.",
		    NULL);
		return;
	}
	r = stream_store_find(ex->gw->streams->store, &ex->session.id);
	named = ex->last_event != NULL;
	known = named &&
	    stream_store_parse(ex->last_event, &epoch, &post, &number) == 0 &&
	    r != NULL && r->epoch == epoch;
	if (ex->req == NULL || post == 0) {
		if (ex->req != NULL)
			get_own(ex, named, known, number);
		else
			exchange_error(ex, 503, FAILURE_BUSY, "", NULL);
		return;
	}
	p = known ? stream_store_post(r, post) : NULL;
	if (p != NULL)
		stream_post_resume(ex, p, number);
	else
		/* Not 404: that would end the session. */
		exchange_error(ex, 400, FAILURE_INVALID_REQUEST,
		    "Nothing is kept behind this Last-Event-ID.", NULL);
}

void
stream_credential_ended(struct gateway *gw, const struct ipc_hash *credential,
    const char *principal)
{
	struct stream *s, *next;

	for (s = TAILQ_FIRST(&gw->streams->all); s != NULL; s = next) {
		next = TAILQ_NEXT(s, all);
		if (credential != NULL ? ct_equal(&s->credential.hash,
					     credential, sizeof(*credential))
				       : strcmp(s->owner->name, principal) == 0)
			stream_close(s, true);
	}
}

void
stream_session_ended(struct gateway *gw, const struct ipc_id *id)
{
	struct stream_session *r = stream_store_find(gw->streams->store, id);

	if (r == NULL)
		return;
	if (r->get != NULL)
		stream_close(r->get, false);
	stream_store_forget(r);
}
