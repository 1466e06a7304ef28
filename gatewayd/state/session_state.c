#include <sys/queue.h>

#include <stdlib.h>
#include <string.h>

#include "session_state.h"

enum { CHAINS = 256 };

/* One principal's sessions. When room is needed, the principal with the most
 * sessions loses one, so that a client with very many sessions makes room with
 * its own sessions only. */
struct owner {
	LIST_ENTRY(owner) link;
	struct ipc_hash principal;
	TAILQ_HEAD(, state) used; /* the one used longest ago first */
	unsigned count;
	size_t bytes; /* of URIs */
};

struct state {
	SLIST_ENTRY(state) chain;
	TAILQ_ENTRY(state) used;
	struct owner *who;
	struct ipc_id id;
	int level;
	struct session_watch *watch; /* room for a power of two */
	unsigned n;
};

struct session_states {
	SLIST_HEAD(, state) chains[CHAINS]; /* by the random id's first byte */
	LIST_HEAD(, owner) owners;
	unsigned count;
	size_t bytes; /* of URIs */
};

struct session_states *
session_state_new(void)
{
	struct session_states *t = calloc(1, sizeof(*t));
	int i;

	if (t == NULL)
		return NULL;
	for (i = 0; i < CHAINS; i++)
		SLIST_INIT(&t->chains[i]);
	LIST_INIT(&t->owners);
	return t;
}

static void
drop_uri(struct session_states *t, struct state *s, unsigned i)
{
	t->bytes -= strlen(s->watch[i].uri);
	s->who->bytes -= strlen(s->watch[i].uri);
	free(s->watch[i].uri);
	s->watch[i] = s->watch[--s->n];
}

static void
drop(struct session_states *t, struct state *s)
{
	struct owner *o = s->who;

	while (s->n > 0)
		drop_uri(t, s, s->n - 1);
	SLIST_REMOVE(&t->chains[s->id.b[0]], s, state, chain);
	TAILQ_REMOVE(&o->used, s, used);
	t->count--;
	if (--o->count == 0) {
		LIST_REMOVE(o, link);
		free(o);
	}
	free(s->watch);
	free(s);
}

void
session_state_free(struct session_states *t)
{
	if (t == NULL)
		return;
	while (!LIST_EMPTY(&t->owners))
		drop(t, TAILQ_FIRST(&LIST_FIRST(&t->owners)->used));
	free(t);
}

static struct state *
find(const struct session_states *t, const struct ipc_id *id)
{
	struct state *s;

	SLIST_FOREACH(s, &t->chains[id->b[0]], chain)
		if (memcmp(s->id.b, id->b, sizeof(id->b)) == 0)
			return s;
	return NULL;
}

static struct owner *
owner_of(struct session_states *t, const struct ipc_hash *principal)
{
	struct owner *o;

	LIST_FOREACH(o, &t->owners, link)
		if (memcmp(&o->principal, principal, sizeof(*principal)) == 0)
			return o;
	if ((o = calloc(1, sizeof(*o))) == NULL)
		return NULL;
	o->principal = *principal;
	TAILQ_INIT(&o->used);
	LIST_INSERT_HEAD(&t->owners, o, link);
	return o;
}

/* Returns the owner with the most bytes of URIs, or with the most sessions. */
static struct owner *
heaviest(struct session_states *t, bool bytes)
{
	struct owner *o, *most = LIST_FIRST(&t->owners);

	LIST_FOREACH(o, &t->owners, link)
		if (bytes ? o->bytes > most->bytes : o->count > most->count)
			most = o;
	return most;
}

/* Finds or makes a session's state, and marks it as the one used last. */
static struct state *
take(struct session_states *t, const struct session *session)
{
	struct state *s = find(t, &session->id);
	struct owner *o;

	if (s != NULL) {
		TAILQ_REMOVE(&s->who->used, s, used);
		TAILQ_INSERT_TAIL(&s->who->used, s, used);
		return s;
	}
	if (t->count == SESSION_STATES_MAX)
		drop(t, TAILQ_FIRST(&heaviest(t, false)->used));
	s = calloc(1, sizeof(*s));
	o = s != NULL ? owner_of(t, &session->principal) : NULL;
	if (o == NULL) {
		free(s);
		return NULL;
	}
	s->who = o;
	o->count++;
	s->id = session->id;
	s->level = SESSION_LEVEL_DEFAULT;
	SLIST_INSERT_HEAD(&t->chains[s->id.b[0]], s, chain);
	TAILQ_INSERT_TAIL(&o->used, s, used);
	t->count++;
	return s;
}

int
session_state_set_level(
    struct session_states *t, const struct session *session, int level)
{
	struct state *s = take(t, session);

	if (s == NULL)
		return -1;
	s->level = level;
	return 0;
}

int
session_state_level(const struct session_states *t, const struct ipc_id *id)
{
	const struct state *s = find(t, id);

	return s != NULL ? s->level : SESSION_LEVEL_DEFAULT;
}

static int
place(const struct state *s, const char *uri)
{
	unsigned i;

	for (i = 0; i < s->n; i++)
		if (strcmp(s->watch[i].uri, uri) == 0)
			return (int)i;
	return -1;
}

/* Makes room for len bytes of URIs: drops sessions of the principal that has
 * the most bytes. false: no room, because with len more bytes s's own principal
 * would have at least as many bytes as that principal. */
static bool
make_room(struct session_states *t, const struct state *s, size_t len)
{
	struct owner *o;
	struct state *v;

	while (t->bytes + len > SESSION_SUBSCRIPTION_BYTES) {
		o = heaviest(t, true);
		if (o == s->who || o->bytes <= s->who->bytes + len)
			return false;
		TAILQ_FOREACH(v, &o->used, used)
			if (v->n > 0)
				break;
		drop(t, v);
	}
	return true;
}

int
session_state_subscribe(struct session_states *t, const struct session *session,
    const char *uri, const struct ipc_hash *version)
{
	struct state *s = take(t, session);
	struct session_watch *w;
	size_t len = strlen(uri);

	if (s == NULL)
		return -1;
	if (place(s, uri) >= 0)
		return 0;
	if (s->n == SESSION_SUBSCRIPTIONS_MAX || !make_room(t, s, len))
		return -1;
	if ((s->n & (s->n - 1)) == 0) { /* 0 or a power of two */
		w = realloc(s->watch, (s->n > 0 ? s->n * 2 : 1) * sizeof(*w));
		if (w == NULL)
			return -1;
		s->watch = w;
	}
	w = &s->watch[s->n];
	w->uri = strdup(uri);
	if (w->uri == NULL)
		return -1;
	w->version = *version;
	w->due = false;
	s->n++;
	t->bytes += len;
	s->who->bytes += len;
	return 0;
}

void
session_state_unsubscribe(
    struct session_states *t, const struct session *session, const char *uri)
{
	struct state *s = find(t, &session->id);
	int i = s != NULL ? place(s, uri) : -1;

	if (i >= 0)
		drop_uri(t, s, (unsigned)i);
}

bool
session_state_subscribed(
    const struct session_states *t, const struct ipc_id *id, const char *uri)
{
	const struct state *s = find(t, id);

	return s != NULL && place(s, uri) >= 0;
}

struct session_watch *
session_state_watches(
    struct session_states *t, const struct ipc_id *id, unsigned *n)
{
	struct state *s = find(t, id);

	*n = s != NULL ? s->n : 0;
	return s != NULL ? s->watch : NULL;
}

void
session_state_forget(struct session_states *t, const struct ipc_id *id)
{
	struct state *s = find(t, id);

	if (s != NULL)
		drop(t, s);
}
