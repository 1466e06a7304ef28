/*
 * The tools of a permission set, as admind streamed them: one buffer that is
 * the JSON array of tools/list, and where each tool lies in it.
 *
 * Requests that come while a list is on its way share it. CATALOGUE_CHANGED
 * unlinks every list, finished or not: a list that was asked for before the
 * change still answers those who asked before it, and nobody else.
 */
#include <stdlib.h>
#include <string.h>

#include "gateway.h"
#include "json.h"
#include "log.h"

enum {
	SETS_MAX = 64, /* permission sets kept; the oldest goes first */
	TOOLS_MAX = 10000,
	LIST_MS = 15 * 1000
};

struct waiter {
	STAILQ_ENTRY(waiter) next;
	catalogue_cb *cb;
	void *arg;
};

struct catalogue {
	TAILQ_ENTRY(catalogue) all;
	struct gateway *gw;
	char *set;
	bool linked; /* in gw->catalogues */
	bool ready;
	struct buf json; /* "[{...},{...}]" */
	struct catalogue_tool *tools;
	size_t ntools;
	STAILQ_HEAD(, waiter) waiters;
};

static void
catalogue_free(struct catalogue *c)
{
	struct waiter *w;
	size_t i;

	while ((w = STAILQ_FIRST(&c->waiters)) != NULL) {
		STAILQ_REMOVE_HEAD(&c->waiters, next);
		free(w);
	}
	for (i = 0; i < c->ntools; i++)
		free(c->tools[i].name);
	free(c->tools);
	free(c->set);
	buf_free(&c->json);
	free(c);
}

static void
unlink_one(struct catalogue *c)
{
	if (!c->linked)
		return;
	TAILQ_REMOVE(&c->gw->catalogues, c, all);
	c->linked = false;
	/* One still on its way is freed by its answer. */
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

/* One more tool. A text that is no JSON object is left out and logged: one
 * broken row must not break every client's tools/list. -1: out of room. */
static int
add_item(struct catalogue *c, const struct ipc_catalogue_item *m)
{
	struct catalogue_tool *t;

	if (m->json.n == 0 || m->json.p[0] != '{' ||
	    json_scan(m->json.p, m->json.n, NULL) < 0) {
		log_event(LOG_LV_WARN, "catalogue_item",
		    "a tool of the catalogue is not a JSON object: %.*s",
		    (int)(m->name.n < 64 ? m->name.n : 64),
		    (const char *)m->name.p);
		return 0;
	}
	if (c->ntools == TOOLS_MAX)
		return -1;
	if ((c->ntools & (c->ntools - 1)) == 0) { /* 0 or a power of two */
		t = realloc(
		    c->tools, (c->ntools ? c->ntools * 2 : 1) * sizeof(*t));
		if (t == NULL)
			return -1;
		c->tools = t;
	}
	if (c->ntools > 0)
		buf_putc(&c->json, ',');
	t = &c->tools[c->ntools];
	t->at = c->json.len;
	t->n = m->json.n;
	t->name = ipc_strdup(m->name);
	if (t->name == NULL)
		return -1;
	c->ntools++;
	buf_put(&c->json, m->json.p, m->json.n);
	return c->json.failed ? -1 : 0;
}

/* Tells all who wait, then keeps it, unless it failed or was unlinked. It is
 * not ready while the callbacks run, so one that drops it does not free it
 * under our feet. */
static void
settle(struct catalogue *c, const struct refusal *no)
{
	struct waiter *w;

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

	if (f != NULL && f->type == IPC_CATALOGUE_ITEM) {
		if (ipc_decode(f, &item, NULL) < 0 || add_item(c, &item) < 0)
			c->json.failed = true; /* told at the end */
		return;
	}
	if (f == NULL || f->type != IPC_CATALOGUE_END) {
		refusal_from(&no, f, gone, "admind");
		settle(c, &no);
		return;
	}
	buf_putc(&c->json, ']');
	if (c->json.failed) {
		refusal_set(&no, FAILURE_BUSY, RETRY_MS,
		    "The list of tools does not fit in memory.");
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

	if (admind == NULL || (c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	c->gw = gw;
	STAILQ_INIT(&c->waiters);
	buf_init(&c->json, ANSWER_MAX - 64 * 1024);
	buf_putc(&c->json, '[');
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
	struct waiter *w;
	struct refusal no;

	TAILQ_FOREACH(c, &gw->catalogues, all)
	if (strcmp(c->set, set) == 0)
		break;
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

struct ipc_bytes
catalogue_json(const struct catalogue *c)
{
	return ipc_bytes(c->json.p, c->json.len);
}

struct ipc_bytes
catalogue_find(const struct catalogue *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->ntools; i++)
		if (strcmp(c->tools[i].name, name) == 0)
			return ipc_bytes(
			    c->json.p + c->tools[i].at, c->tools[i].n);
	return ipc_bytes(NULL, 0);
}
