#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "stream_store.h"

enum {
	CHAINS = 1024,
	/* Bytes that an event takes in addition to its data. */
	OVERHEAD = sizeof(struct stream_event) + 16
};

TAILQ_HEAD(session_list, stream_session);

struct stream_whose {
	LIST_ENTRY(stream_whose) link;
	struct ipc_hash principal;
	struct session_list used; /* droppable ones, longest unused first */
	struct stream_event_list events;
	unsigned sessions, droppable;
	size_t bytes;
};

struct stream_store {
	struct session_list chains[CHAINS];
	LIST_HEAD(, stream_whose) whose;
	struct stream_event_list events;
	unsigned sessions, droppable;
	size_t bytes;
};

struct stream_store *
stream_store_new(void)
{
	struct stream_store *t = calloc(1, sizeof(*t));
	int i;

	if (t == NULL)
		return NULL;
	for (i = 0; i < CHAINS; i++)
		TAILQ_INIT(&t->chains[i]);
	LIST_INIT(&t->whose);
	TAILQ_INIT(&t->events);
	return t;
}

size_t
stream_store_bytes(const struct stream_store *t)
{
	return t->bytes;
}

unsigned
stream_store_sessions(const struct stream_store *t)
{
	return t->sessions;
}

/* Returns the chain of an id. Ids are random, so two bytes spread them
 * evenly. */
static struct session_list *
chain_of(struct stream_store *t, const struct ipc_id *id)
{
	return &t->chains[(id->b[0] << 8 | id->b[1]) % CHAINS];
}

static void
session_drop(struct stream_session *s)
{
	struct stream_store *t = s->store;
	struct stream_whose *w = s->whose;

	if (s->droppable) {
		TAILQ_REMOVE(&w->used, s, used);
		w->droppable--;
		t->droppable--;
	}
	TAILQ_REMOVE(chain_of(t, &s->id), s, chain);
	t->sessions--;
	free(s);
	if (--w->sessions == 0) {
		LIST_REMOVE(w, link);
		free(w);
	}
}

/* Returns the principal with most droppable records, or most bytes. */
static struct stream_whose *
heaviest(struct stream_store *t, bool bytes)
{
	struct stream_whose *w, *most = LIST_FIRST(&t->whose);

	LIST_FOREACH(w, &t->whose, link)
		if (bytes ? w->bytes > most->bytes
			  : w->droppable > most->droppable)
			most = w;
	return most;
}

/* Decides whether a record may be dropped; no other function does. If `keep`, s
 * itself stays. If not, s may be gone when this returns. */
static void
settle(struct stream_session *s, bool keep)
{
	struct stream_store *t = s->store;
	struct stream_whose *w = s->whose;
	struct stream_session *oldest;
	bool idle = s->get == NULL && TAILQ_EMPTY(&s->posts);

	if (s->droppable) {
		TAILQ_REMOVE(&w->used, s, used);
		w->droppable--;
		t->droppable--;
		s->droppable = false;
	}
	if (!idle)
		return;
	/* Only the record of a session that had a stream of its own is kept,
	 * because it remembers missed messages. */
	if (!s->had && !keep) {
		session_drop(s);
		return;
	}
	TAILQ_INSERT_TAIL(&w->used, s, used);
	s->droppable = true;
	w->droppable++;
	t->droppable++;
	while (t->droppable > STREAM_STORE_SESSIONS_MAX) {
		oldest = TAILQ_FIRST(&heaviest(t, false)->used);
		/* s is the oldest itself: there are more principals than
		 * places, and no principal has two droppable records. */
		if (oldest == s && keep)
			break;
		session_drop(oldest);
	}
}

static void
post_free(struct stream_post *p)
{
	TAILQ_REMOVE(&p->session->posts, p, mine);
	free(p);
}

/* Frees the event. Frees its stream_post, too, if no event is left and the
 * writer has closed the stream_post. The session's record stays: callers pass
 * the record to settle(). */
static void
event_drop(struct stream_event *e)
{
	struct stream_post *p = e->post;
	struct stream_session *s = p->session;

	TAILQ_REMOVE(&s->store->events, e, all);
	TAILQ_REMOVE(&s->events, e, mine);
	TAILQ_REMOVE(&s->whose->events, e, whose);
	s->whose->bytes -= e->n + OVERHEAD;
	s->store->bytes -= e->n + OVERHEAD;
	s->bytes -= e->n + OVERHEAD;
	s->nevents--;
	p->events--;
	free(e);
	if (p->events == 0 && p->owner == NULL)
		post_free(p);
}

void
stream_store_free(struct stream_store *t)
{
	struct stream_session *s;
	int i;

	if (t == NULL)
		return;
	for (i = 0; i < CHAINS; i++)
		while ((s = TAILQ_FIRST(&t->chains[i])) != NULL) {
			while (!TAILQ_EMPTY(&s->events))
				event_drop(TAILQ_FIRST(&s->events));
			while (!TAILQ_EMPTY(&s->posts))
				post_free(TAILQ_FIRST(&s->posts));
			session_drop(s);
		}
	free(t);
}

struct stream_session *
stream_store_find(struct stream_store *t, const struct ipc_id *id)
{
	struct stream_session *s;

	TAILQ_FOREACH(s, chain_of(t, id), chain)
		if (memcmp(s->id.b, id->b, sizeof(id->b)) == 0)
			return s;
	return NULL;
}

static struct stream_whose *
whose_of(struct stream_store *t, const struct ipc_hash *principal)
{
	struct stream_whose *w;

	LIST_FOREACH(w, &t->whose, link)
		if (memcmp(&w->principal, principal, sizeof(*principal)) == 0)
			return w;
	if ((w = calloc(1, sizeof(*w))) == NULL)
		return NULL;
	w->principal = *principal;
	TAILQ_INIT(&w->used);
	TAILQ_INIT(&w->events);
	LIST_INSERT_HEAD(&t->whose, w, link);
	return w;
}

struct stream_session *
stream_store_take(struct stream_store *t, const struct ipc_id *id,
    const struct ipc_hash *principal)
{
	struct stream_session *s = stream_store_find(t, id);
	struct stream_whose *w;

	if (s != NULL)
		return s;
	s = calloc(1, sizeof(*s));
	w = s != NULL ? whose_of(t, principal) : NULL;
	if (w == NULL) {
		free(s);
		return NULL;
	}
	s->whose = w;
	w->sessions++;
	s->store = t;
	s->id = *id;
	random_bytes((uint8_t *)&s->epoch, sizeof(s->epoch));
	TAILQ_INIT(&s->posts);
	TAILQ_INIT(&s->events);
	TAILQ_INSERT_HEAD(chain_of(t, id), s, chain);
	t->sessions++;
	settle(s, true);
	return s;
}

void
stream_store_each(struct stream_store *t,
    void (*f)(struct stream_session *, void *), void *arg)
{
	struct stream_session *s, *next;
	int i;

	for (i = 0; i < CHAINS; i++)
		for (s = TAILQ_FIRST(&t->chains[i]); s != NULL; s = next) {
			next = TAILQ_NEXT(s, chain);
			if (s->had)
				f(s, arg);
		}
}

void
stream_store_set_get(struct stream_session *s, void *who)
{
	s->get = who;
	s->had = true;
	settle(s, true);
}

void
stream_store_forget(struct stream_session *s)
{
	struct stream_post *p, *next;

	while (!TAILQ_EMPTY(&s->events))
		event_drop(TAILQ_FIRST(&s->events));
	for (p = TAILQ_FIRST(&s->posts); p != NULL; p = next) {
		next = TAILQ_NEXT(p, mine);
		if (p->owner == NULL)
			post_free(p);
	}
	s->had = s->get != NULL;
	s->due = 0;
	settle(s, false);
}

/* ---- answers ---- */

void
stream_store_id(const struct stream_session *s, uint32_t post, uint32_t number,
    char id[STREAM_STORE_ID_MAX])
{
	snprintf(id, STREAM_STORE_ID_MAX, "%08x-%x-%x", s->epoch, post, number);
}

struct stream_post *
stream_store_open(struct stream_session *s, void *owner)
{
	struct stream_post *p = calloc(1, sizeof(*p));

	if (p == NULL) {
		settle(s, false);
		return NULL;
	}
	p->session = s;
	p->number = ++s->posts_made;
	p->owner = owner;
	TAILQ_INSERT_TAIL(&s->posts, p, mine);
	settle(s, true);
	return p;
}

/* Makes room for n more bytes: drops the oldest events of the session, then of
 * the principal with the most bytes. The record s itself stays. */
static void
make_room(struct stream_session *s, size_t n)
{
	struct stream_store *t = s->store;
	struct stream_session *victim;
	struct stream_whose *w;

	while (!TAILQ_EMPTY(&s->events) &&
	    (s->nevents >= STREAM_STORE_EVENTS_MAX ||
		s->bytes + n > STREAM_STORE_BYTES_MAX))
		event_drop(TAILQ_FIRST(&s->events));
	while (
	    !TAILQ_EMPTY(&t->events) && t->bytes + n > STREAM_STORE_ALL_MAX) {
		w = heaviest(t, true);
		victim = TAILQ_FIRST(&w->events)->post->session;
		event_drop(TAILQ_FIRST(&w->events));
		if (victim != s)
			settle(victim, false);
	}
}

int
stream_store_add(struct stream_post *p, const void *data, size_t n, bool last,
    uint64_t now_ms, char id[STREAM_STORE_ID_MAX])
{
	struct stream_session *s = p->session;
	struct stream_event *e;

	stream_store_id(s, p->number, ++p->last, id);
	if (last)
		p->done = true;
	if (n + OVERHEAD > STREAM_STORE_BYTES_MAX)
		return -1;
	make_room(s, n + OVERHEAD);
	e = malloc(sizeof(*e) + n);
	if (e == NULL)
		return -1;
	e->post = p;
	e->at_ms = now_ms;
	e->number = p->last;
	e->n = n;
	memcpy(e->data, data, n);
	TAILQ_INSERT_TAIL(&s->store->events, e, all);
	TAILQ_INSERT_TAIL(&s->events, e, mine);
	TAILQ_INSERT_TAIL(&s->whose->events, e, whose);
	s->whose->bytes += n + OVERHEAD;
	s->store->bytes += n + OVERHEAD;
	s->bytes += n + OVERHEAD;
	s->nevents++;
	p->events++;
	return 0;
}

void
stream_store_close(struct stream_post *p)
{
	struct stream_session *s = p->session;

	p->owner = NULL;
	if (p->events == 0)
		post_free(p);
	settle(s, false);
}

/* Reads hexadecimal digits, lower case, no more than eight, and `end`. 0 or
 * -1. */
static int
hex(const char **s, char end, uint32_t *v)
{
	int n = 0, d;

	for (*v = 0; **s != end; (*s)++, n++) {
		if (**s >= '0' && **s <= '9')
			d = **s - '0';
		else if (**s >= 'a' && **s <= 'f')
			d = **s - 'a' + 10;
		else
			return -1;
		if (n == 8)
			return -1;
		*v = *v << 4 | (uint32_t)d;
	}
	if (end != '\0')
		(*s)++;
	return n > 0 ? 0 : -1;
}

int
stream_store_parse(
    const char *id, uint32_t *epoch, uint32_t *post, uint32_t *number)
{
	return hex(&id, '-', epoch) < 0 || hex(&id, '-', post) < 0 ||
		hex(&id, '\0', number) < 0
	    ? -1
	    : 0;
}

struct stream_post *
stream_store_post(struct stream_session *s, uint32_t number)
{
	struct stream_post *p;

	TAILQ_FOREACH(p, &s->posts, mine)
		if (p->number == number)
			return p;
	return NULL;
}

const struct stream_event *
stream_store_next(const struct stream_post *p, uint32_t after)
{
	const struct stream_event *e;

	TAILQ_FOREACH(e, &p->session->events, mine)
		if (e->post == p && e->number > after)
			return e;
	return NULL;
}

void
stream_store_tidy(struct stream_store *t, uint64_t now_ms)
{
	struct stream_session *s;
	struct stream_event *e;

	while ((e = TAILQ_FIRST(&t->events)) != NULL &&
	    e->at_ms + STREAM_STORE_KEEP_MS <= now_ms) {
		s = e->post->session;
		event_drop(e);
		settle(s, false);
	}
}
