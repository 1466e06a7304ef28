/*
 * Decides which streams are told of a change, and when.
 *
 * A change only sets bits in each stream. So a hundred changes in a row make
 * one message, and a client that does not read costs nothing more until it
 * reads. Marked streams wait in a queue, and each turn of the loop serves a
 * slice of the queue. All other clients are served between two slices, so ten
 * thousand streams delay no other client by more than a slice takes.
 *
 * Before a stream is told anything its credential is checked again (identity.c
 * remembers the answer for other streams with the same credential). The change
 * may be the revocation of this very client. Then its stream ends.
 */
#include <stdlib.h>
#include <string.h>

#include "catalogue.h"
#include "ids.h"
#include "json.h"
#include "jsonw.h"
#include "stream_internal.h"

#define META_ID "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":"

enum { EVENT_MAX = IPC_FRAME_MAX * 16 };

static void
schedule(struct streams *t)
{
	static const struct timeval now = {0, 0};

	/* Not event_active, because the event would run again in the same turn
	 * of the loop, for ever. */
	if (!TAILQ_EMPTY(&t->due) && t->asking < STREAMS_ASKING_MAX &&
	    !evtimer_pending(t->turn, NULL))
		evtimer_add(t->turn, &now);
}

void
stream_tell_queue(struct stream *s)
{
	struct streams *t = s->gw->streams;

	if (s->queued || s->req == NULL)
		return;
	s->queued = true;
	TAILQ_INSERT_TAIL(&t->due, s, turn);
	schedule(t);
}

/* ---- writing ---- */

/* Writes one event. params: members of params after _meta, or "". */
static bool
write_event(struct stream *s, int kind, const char *method, const void *params,
    size_t n)
{
	struct stream_session *r = s->session;
	char id[STREAM_STORE_ID_MAX];
	struct buf b;
	bool ok;

	buf_init(&b, EVENT_MAX);
	buf_putf(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\"", method);
	if (r == NULL) {
		buf_puts(&b, ",\"params\":{" META_ID);
		buf_puts(&b, s->id);
		buf_puts(&b, n > 0 ? "}," : "}");
	} else if (n > 0) {
		buf_puts(&b, ",\"params\":{");
	}
	buf_put(&b, params, n);
	buf_puts(&b, r == NULL || n > 0 ? "}}" : "}");
	if (r != NULL && kind >= 0) {
		r->said[kind] = ++r->last;
		stream_store_id(r, 0, r->last, id);
	}
	ok = !b.failed &&
	    httpd_sse_event(
		s->req, r != NULL && kind >= 0 ? id : NULL, b.p, b.len);
	buf_free(&b);
	return ok;
}

bool
stream_tell_event(
    struct stream *s, int kind, const char *method, const char *params)
{
	return write_event(s, kind, method, params, strlen(params));
}

static void
tell_lists(struct stream *s)
{
	static const char *const methods[] = {
	    "notifications/tools/list_changed",
	    "notifications/prompts/list_changed",
	    "notifications/resources/list_changed"};
	unsigned due = s->due & s->want;
	int i;

	s->due &= ~(unsigned)(DUE_TOOLS | DUE_PROMPTS | DUE_RESOURCES);
	for (i = 0; i < 3; i++)
		if (due & 1u << i)
			stream_tell_event(s, i, methods[i], "");
}

static void
tell_updates(struct stream *s)
{
	struct session_watch *watch;
	unsigned i, n;
	bool all = (s->due & DUE_ALL) != 0;
	struct jsonw w;
	struct buf b;

	s->due &= ~(unsigned)(DUE_UPDATES | DUE_ALL);
	watch = stream_watches(s, &n);
	for (i = 0; i < n; i++) {
		if (!watch[i].due && !all)
			continue;
		watch[i].due = false;
		buf_init(&b, URI_MAX * 6 + 64);
		buf_puts(&b, "\"uri\":");
		jsonw_open(&w, &b);
		jsonw_str(&w, watch[i].uri);
		if (!b.failed)
			write_event(s, KIND_UPDATES,
			    "notifications/resources/updated", b.p, b.len);
		buf_free(&b);
	}
}

/* ---- asking first ---- */

static void
ask(struct stream *s)
{
	s->asking = true;
	s->gw->streams->asking++;
}

/* Notes that admind answered a question for the stream. false: the stream had
 * ended, and is freed now. */
static bool
asked(struct stream *s)
{
	s->asking = false;
	s->gw->streams->asking--;
	schedule(s->gw->streams);
	if (s->req != NULL)
		return true;
	stream_release(s);
	return false;
}

/* Compares the versions of the watched resources with the present catalogue. A
 * resource is due if another version serves it since the last look. */
static void
looked(void *arg, const struct catalogue *c, const struct refusal *no)
{
	struct uri_value values[URI_VARIABLES_MAX];
	const struct catalogue_item *item;
	struct session_watch *watch;
	struct ipc_hash version;
	struct stream *s = arg;
	unsigned i, n;

	(void)no;
	if (!asked(s) || c == NULL) /* still due: told when admind is back */
		return;
	s->due &= ~(unsigned)DUE_LOOK;
	watch = stream_watches(s, &n);
	for (i = 0; i < n; i++) {
		memset(&version, 0, sizeof(version));
		item = catalogue_item_for(c, watch[i].uri, values);
		if (item != NULL)
			version = item->version;
		if (memcmp(&version, &watch[i].version, sizeof(version)) == 0)
			continue;
		watch[i].version = version;
		watch[i].due = true;
	}
	tell_updates(s);
	if (s->due != 0) /* marked during the look */
		stream_tell_queue(s);
}

static void
identified(void *arg, const struct identity *who, const struct refusal *no)
{
	struct stream *s = arg;
	unsigned n;

	if (!asked(s))
		return;
	if (who == NULL) {
		if (no->failure == FAILURE_UNAUTHENTICATED ||
		    no->failure == FAILURE_FORBIDDEN)
			stream_close(s, true);
		return; /* still due: told when admind is back */
	}
	if (strcmp(who->principal, s->owner->name) != 0) {
		stream_close(s, true);
		return;
	}
	stream_until(s, who->until_ms);
	s->due &= ~(unsigned)DUE_CHECK;
	tell_lists(s);
	stream_watches(s, &n);
	if (n == 0) {
		s->due = 0;
	} else if (s->due & DUE_LOOK) {
		ask(s);
		catalogue_ask(s->gw, who->permission_set, looked, s);
	} else if (s->due != 0) {
		tell_updates(s);
	}
}

static void
serve(struct stream *s)
{
	struct gateway *gw = s->gw;

	/* A slow stream is queued again by drained(). A stream that is asking
	 * tells all that is due when the answer comes. tidy_cb() finds streams
	 * that are still due. */
	if (httpd_stream_slow(s->req) || s->asking)
		return;
	if (s->session != NULL &&
	    (now_us() / 1000 >= s->expires_ms ||
		session_ended_has(gw->ended, &s->session->id))) {
		stream_close(s, false);
		return;
	}
	ask(s);
	identity_ask(gw, &s->credential, NULL, identified, s);
}

void
stream_tell_turn(evutil_socket_t fd, short what, void *arg)
{
	struct streams *t = arg;
	struct stream *s;
	int n;

	(void)fd;
	(void)what;
	for (n = 0; n < STREAM_SLICE && t->asking < STREAMS_ASKING_MAX &&
	    (s = TAILQ_FIRST(&t->due)) != NULL;
	    n++) {
		TAILQ_REMOVE(&t->due, s, turn);
		s->queued = false;
		serve(s);
	}
	schedule(t);
}

/* ---- changes ---- */

static void
mark(struct stream *s, unsigned due)
{
	unsigned n;

	due &= s->want;
	if (due & DUE_LOOK) {
		stream_watches(s, &n);
		if (n == 0)
			due &= ~(unsigned)DUE_LOOK;
	}
	if (due == 0)
		return;
	s->due |= due;
	stream_tell_queue(s);
}

static void
miss(struct stream_session *r, void *arg)
{
	if (r->get == NULL)
		r->due |= *(unsigned *)arg;
}

void
stream_notify_lists(struct gateway *gw, unsigned lists)
{
	struct stream *s;
	unsigned due = 0;

	if (lists & 1u << MCP_LIST_TOOLS)
		due |= DUE_TOOLS;
	if (lists & 1u << MCP_LIST_PROMPTS)
		due |= DUE_PROMPTS;
	if (lists & (1u << MCP_LIST_RESOURCES | 1u << MCP_LIST_TEMPLATES))
		due |= DUE_RESOURCES | DUE_LOOK;
	if (due == 0)
		return;
	TAILQ_FOREACH(s, &gw->streams->all, all)
		mark(s, due);
	stream_store_each(gw->streams->store, miss, &due);
}

/* Marks the watched resource with this URI as due. false: no watch has the
 * URI. */
static bool
mark_watch(struct session_watch *watch, unsigned n, const char *uri)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (strcmp(watch[i].uri, uri) == 0) {
			watch[i].due = true;
			return true;
		}
	return false;
}

struct changed {
	struct gateway *gw;
	const char *uri;
};

static void
miss_resource(struct stream_session *r, void *arg)
{
	struct changed *x = arg;
	struct session_watch *watch;
	unsigned n;

	if (r->get != NULL)
		return;
	watch = session_state_watches(x->gw->states, &r->id, &n);
	if (mark_watch(watch, n, x->uri))
		r->due |= DUE_UPDATES;
}

void
stream_notify_resource(struct gateway *gw, const char *uri)
{
	struct changed x = {gw, uri};
	struct session_watch *watch;
	struct stream *s;
	unsigned n;

	TAILQ_FOREACH(s, &gw->streams->all, all) {
		watch = stream_watches(s, &n);
		if (mark_watch(watch, n, uri))
			mark(s, DUE_UPDATES);
	}
	stream_store_each(gw->streams->store, miss_resource, &x);
}

void
stream_admind_up(struct gateway *gw)
{
	struct stream *s;

	TAILQ_FOREACH(s, &gw->streams->all, all)
		if (s->due != 0)
			stream_tell_queue(s);
}

void
stream_check_all(struct gateway *gw)
{
	struct stream *s;

	TAILQ_FOREACH(s, &gw->streams->all, all) {
		s->due |= DUE_CHECK;
		stream_tell_queue(s);
	}
}

void
stream_endpoint_changed(struct gateway *gw, const char *endpoint)
{
	struct stream *s;

	TAILQ_FOREACH(s, &gw->streams->all, all) {
		if (strcmp(s->credential.endpoint, endpoint) != 0)
			continue;
		mark(s, DUE_TOOLS | DUE_PROMPTS | DUE_RESOURCES | DUE_LOOK);
		s->due |= DUE_CHECK;
		stream_tell_queue(s);
	}
}

/* ---- tasks ---- */

static bool
watches_task(const struct stream *s, const char *principal, const char *task)
{
	const char *t = s->tasks;
	unsigned i;

	if (s->ntasks == 0 || strcmp(s->owner->name, principal) != 0)
		return false;
	for (i = 0; i < s->ntasks; i++, t += strlen(t) + 1)
		if (strcmp(t, task) == 0)
			return true;
	return false;
}

static bool
has_credential(const struct stream *s, const struct credential *c)
{
	return memcmp(&s->credential.hash, &c->hash, sizeof(c->hash)) == 0 &&
	    strcmp(s->credential.endpoint, c->endpoint) == 0;
}

/* True if an earlier stream of the list has the same credential and watches the
 * task, too. */
static bool
asked_before(const struct streams *t, const struct stream *s,
    const char *principal, const char *task)
{
	const struct stream *e;

	TAILQ_FOREACH(e, &t->all, all) {
		if (e == s)
			return false;
		if (e->owner == s->owner && has_credential(e, &s->credential) &&
		    watches_task(e, principal, task))
			return true;
	}
	return false;
}

/*
 * Calls f once with each credential, because a stream is told a task's outcome
 * only by the right of its own credential. If one of a principal's two
 * credentials was withdrawn, the streams of that credential are told nothing,
 * and the streams of the other credential are still told.
 */
void
stream_task_each(struct gateway *gw, const char *principal, const char *task,
    void (*f)(void *, const struct credential *), void *arg)
{
	const struct stream *s;

	TAILQ_FOREACH(s, &gw->streams->all, all)
		if (watches_task(s, principal, task) &&
		    !asked_before(gw->streams, s, principal, task))
			f(arg, &s->credential);
}

/* Tells the streams. A client that does not read misses some messages. That
 * does no harm, since the client asks for a task's outcome by tasks/get
 * anyway. */
void
stream_notify_task(struct gateway *gw, const char *principal, const char *task,
    const struct credential *credential, struct ipc_bytes params)
{
	struct stream *s;

	if (params.n < 3 || params.p[0] != '{' ||
	    json_scan(params.p, params.n, NULL) < 0 ||
	    params.p[params.n - 1] != '}')
		return;
	TAILQ_FOREACH(s, &gw->streams->all, all)
		if (watches_task(s, principal, task) &&
		    has_credential(s, credential) && !httpd_stream_slow(s->req))
			write_event(s, -1, "notifications/tasks", params.p + 1,
			    params.n - 2);
}

void
stream_task_refused(struct gateway *gw, const char *principal, const char *task,
    const struct credential *credential)
{
	struct stream *s, *next;

	for (s = TAILQ_FIRST(&gw->streams->all); s != NULL; s = next) {
		next = TAILQ_NEXT(s, all);
		if (watches_task(s, principal, task) &&
		    has_credential(s, credential))
			stream_close(s, true);
	}
}
