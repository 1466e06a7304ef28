/* See narrow.h. */
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "endpoint.h"
#include "name.h"
#include "narrow.h"

struct entry {
	TAILQ_ENTRY(entry) entry; /* the last used is first */
	struct token *base;       /* with a reference; NULL: a local client */
	struct token *token;
};

struct run {
	struct ipc_id id;
	char endpoint[ENDPOINT_NAME_MAX + 1]; /* "": none */
};

struct narrowed {
	TAILQ_HEAD(entry_list, entry) all;
	unsigned n;
	unsigned next; /* of `run`, a ring */
	struct run run[NARROWED_RUNS_MAX];
};

struct narrowed *
narrow_init(void)
{
	struct narrowed *x = calloc(1, sizeof(*x));

	if (x != NULL)
		TAILQ_INIT(&x->all);
	return x;
}

static void
forget(struct narrowed *x, struct entry *e)
{
	TAILQ_REMOVE(&x->all, e, entry);
	x->n--;
	if (e->base != NULL)
		e->base->narrowed--;
	token_unref(e->base);
	token_unref(e->token);
	free(e);
}

void
narrow_drop(struct narrowed *x)
{
	while (x != NULL && !TAILQ_EMPTY(&x->all))
		forget(x, TAILQ_FIRST(&x->all));
}

void
narrow_tidy(struct narrowed *x)
{
	struct entry *e, *next;

	for (e = x != NULL ? TAILQ_FIRST(&x->all) : NULL; e != NULL; e = next) {
		next = TAILQ_NEXT(e, entry);
		if (e->base != NULL && e->base->refs == e->base->narrowed)
			forget(x, e);
	}
}

/* Makes the token. The endpoint narrows a local client, too, which has every
 * right elsewhere. */
static struct token *
make(struct token *base, struct endpoint *e, unsigned scopes, const char *allow,
    const char *deny)
{
	static const struct permit local = {
	    PERMIT_READ | PERMIT_CALL | PERMIT_MANAGE | PERMIT_EDIT, "*", "",
	    PERMIT_WHOLE};
	struct token *t = token_new(base != NULL ? base->share : NULL);

	if (t == NULL)
		return NULL;
	if (endpoint_narrow(e, base != NULL ? &base->permit : &local, scopes,
		allow, deny, &t->permit) == -1) {
		token_unref(t);
		return NULL;
	}
	t->endpoint = endpoint_ref(e);
	if (base == NULL) {
		memcpy(t->principal, NAME_LOCAL, sizeof(NAME_LOCAL));
		t->listeners = 1u << LISTENER_LOCAL;
		return t;
	}
	t->id = base->id;
	t->digest = base->digest;
	memcpy(t->principal, base->principal, sizeof(t->principal));
	t->listeners = base->listeners & e->listeners;
	t->expires_us = base->expires_us;
	t->of = base->of;
	if (allow != NULL)
		t->of.scopes &= scopes;
	return t;
}

struct token *
narrow_token(struct narrowed *x, struct token *base, struct endpoint *e,
    unsigned scopes, const char *allow, const char *deny, bool *made)
{
	struct entry *n;

	*made = false;
	TAILQ_FOREACH(n, &x->all, entry)
		if (n->base == base && n->token->endpoint == e) {
			TAILQ_REMOVE(&x->all, n, entry);
			TAILQ_INSERT_HEAD(&x->all, n, entry);
			return n->token;
		}
	n = calloc(1, sizeof(*n));
	if (n == NULL)
		return NULL;
	n->token = make(base, e, scopes, allow, deny);
	if (n->token == NULL) {
		free(n);
		return NULL;
	}
	n->base = token_ref(base);
	if (base != NULL)
		base->narrowed++;
	while (x->n >= NARROWED_MAX)
		forget(x, TAILQ_LAST(&x->all, entry_list));
	TAILQ_INSERT_HEAD(&x->all, n, entry);
	x->n++;
	*made = true;
	return n->token;
}

struct token *
narrow_of_set(const struct narrowed *x, unsigned listener, struct ipc_bytes set,
    struct token **base)
{
	struct entry *n;

	if (x == NULL || set.n != TOKEN_SET_LEN || listener > LISTENER_TUNNEL)
		return NULL;
	TAILQ_FOREACH(n, &x->all, entry)
		if ((n->token->listeners & 1u << listener) != 0 &&
		    ipc_streq(set, n->token->set[listener])) {
			*base = n->base;
			return n->token;
		}
	return NULL;
}

/* ---- runs ---- */

void
narrow_ran(
    struct narrowed *x, const struct ipc_id *id, const struct endpoint *e)
{
	struct run *r = &x->run[x->next];

	x->next = (x->next + 1) % NARROWED_RUNS_MAX;
	r->id = *id;
	memcpy(r->endpoint, e->name.p, e->name.n);
	r->endpoint[e->name.n] = '\0';
}

void
narrow_runs(struct narrowed *x, struct ipc_bytes endpoint,
    void (*f)(void *, const struct ipc_id *), void *arg)
{
	for (unsigned i = 0; x != NULL && i < NARROWED_RUNS_MAX; i++)
		if (x->run[i].endpoint[0] != '\0' &&
		    ipc_streq(endpoint, x->run[i].endpoint)) {
			x->run[i].endpoint[0] = '\0';
			f(arg, &x->run[i].id);
		}
}
