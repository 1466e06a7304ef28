/*
 * Catalogues. A catalogue is asked for by the first request that needs it, and
 * kept until admind says that something changed.
 *
 * Requests that come before the catalogue is complete wait for that catalogue.
 * CATALOGUE_CHANGED unlinks every catalogue, complete or not. A catalogue that
 * was asked for before the change still answers the requests that wait for it,
 * but no later ones.
 */
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "catalogue.h"
#include "gateway.h"
#include "identity.h"
#include "json.h"
#include "log.h"
#include "refusal.h"

enum {
	/* Permission sets kept. The one with the oldest last use is dropped.
	 * So a client with many sets, such as those of endpoints, does not push
	 * out a set in use. */
	SETS_MAX = 64,
	ITEMS_MAX = 10000, /* in each list */
	LIST_MS = 15 * 1000
};

struct catalogue_waiter {
	STAILQ_ENTRY(catalogue_waiter) next;
	catalogue_cb *cb;
	void *arg;
};

static void
catalogue_free(struct catalogue *c)
{
	struct catalogue_waiter *w;
	int i;

	while ((w = STAILQ_FIRST(&c->waiters)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->waiters, next);
		free(w);
	}
	for (i = 0; i < CATALOGUE_LISTS; i++)
		catalogue_item_free_all(&c->part[i]);
	free(c->set);
	free(c);
}

static void
unlink_one(struct catalogue *c)
{
	if (!c->linked)
		return;
	TAILQ_REMOVE(&c->gw->catalogues, c, all);
	c->linked = false;
	/* An incomplete catalogue is freed when its answer has come. */
	if (c->ready)
		catalogue_free(c);
}

void
catalogue_drop(struct gateway *gw)
{
	struct catalogue *c;

	while ((c = TAILQ_FIRST(&gw->catalogues)) != NULL)
		unlink_one(c);
}

/* Adds one more object. A text that is no JSON object, or a name too long for a
 * request, is left out and logged, because one broken row must not break every
 * client's list. 0, or -1: out of room. */
static int
add_item(struct catalogue *c, const struct ipc_catalogue_item *m)
{
	if (m->list >= CATALOGUE_LISTS || m->name.n > MCP_NAME_MAX ||
	    m->json.n == 0 || m->json.p[0] != '{' ||
	    json_scan(m->json.p, m->json.n, NULL) < 0) {
		log_event(LOG_LV_WARN, "catalogue_item",
		    "an object of the catalogue is no JSON object or its name "
		    "is too "
		    "long: %.*s",
		    (int)(m->name.n < 64 ? m->name.n : 64),
		    (const char *)m->name.p);
		return 0;
	}
	if (c->part[m->list].n == ITEMS_MAX)
		return -1;
	return catalogue_item_add(&c->part[m->list], (enum mcp_list)m->list, m);
}

/* Tells all waiters, then keeps the catalogue unless it failed or was unlinked.
 * `ready` is not set while the callbacks run, so a callback that drops the
 * catalogue does not free it. */
static void
settle(struct catalogue *c, const struct refusal *no)
{
	struct catalogue_waiter *w;

	if (no != NULL)
		unlink_one(c);
	while ((w = STAILQ_FIRST(&c->waiters)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->waiters, next);
		w->cb(w->arg, no == NULL ? c : NULL, no);
		free(w);
	}
	if (c->linked)
		c->ready = true;
	else
		catalogue_free(c);
}

static void
answered(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct catalogue *c = arg;
	struct ipc_catalogue_item item;
	struct refusal no;
	int i;

	if (f != NULL && f->type == IPC_CATALOGUE_ITEM) {
		if (ipc_decode(f, &item, NULL) < 0 || add_item(c, &item) < 0)
			c->failed = true;
		return;
	}
	if (f == NULL || f->type != IPC_CATALOGUE_END) {
		refusal_from(&no, f, gone, "admind");
		/* admind does not know the permission set any more. The next
		 * request of its clients asks again about its credential. */
		if (no.failure == FAILURE_BUSY ||
		    no.failure == FAILURE_FORBIDDEN)
			identity_cache_forget(c->gw->identities, c->set);
		settle(c, &no);
		return;
	}
	for (i = 0; i < CATALOGUE_LISTS; i++)
		if (catalogue_item_index(&c->part[i]) < 0)
			c->failed = true;
	if (c->failed) {
		refusal_set(&no, FAILURE_BUSY, RETRY_MS,
		    "The list does not fit in memory.");
		settle(c, &no);
		return;
	}
	settle(c, NULL);
}

static struct catalogue *
begin(struct gateway *gw, const char *set)
{
	struct ipc_catalogue_get m = {.permission_set = ipc_str(set)};
	struct ipc_peer *admind = ipc_client_peer(gw->admind);
	struct catalogue *c, *old;
	unsigned n = 0;
	uint64_t id;
	int i;

	if (admind == NULL || (c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->gw = gw;
	STAILQ_INIT(&c->waiters);
	for (i = 0; i < CATALOGUE_LISTS; i++)
		buf_init(&c->part[i].json, ANSWER_MAX - 64 * 1024);
	c->set = strdup(set);
	if (c->set == NULL ||
	    ipc_request(
		admind, IPC_CATALOGUE_GET, &m, LIST_MS, answered, c, &id) < 0) {
		catalogue_free(c);
		return NULL;
	}
	TAILQ_FOREACH(old, &gw->catalogues, all)
		n++;
	if (n >= SETS_MAX)
		unlink_one(TAILQ_FIRST(&gw->catalogues));
	TAILQ_INSERT_TAIL(&gw->catalogues, c, all);
	c->linked = true;
	return c;
}

void
catalogue_ask(struct gateway *gw, const char *set, catalogue_cb *cb, void *arg)
{
	struct catalogue *c;
	struct catalogue_waiter *w;
	struct refusal no;

	TAILQ_FOREACH(c, &gw->catalogues, all)
		if (strcmp(c->set, set) == 0)
			break;
	if (c != NULL) { /* the last one is the last asked for */
		TAILQ_REMOVE(&gw->catalogues, c, all);
		TAILQ_INSERT_TAIL(&gw->catalogues, c, all);
	}
	if (c != NULL && c->ready) {
		cb(arg, c, NULL);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (w != NULL && (c != NULL || (c = begin(gw, set)) != NULL)) {
		w->cb = cb;
		w->arg = arg;
		STAILQ_INSERT_TAIL(&c->waiters, w, next);
		return;
	}
	free(w);
	refusal_away(&no, gw, false);
	cb(arg, NULL, &no);
}
