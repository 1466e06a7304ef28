/* All calls: what gateways, admind and the clock ask of them. See call.h. */
#include <stdio.h>
#include <stdlib.h>

#include "answer.h"
#include "call_internal.h"
#include "ids.h"

struct search {
	uint64_t now_ms;
	struct ipc_peer *peer;
	struct call *found;
};

static void
find_overdue(struct table_node *n, void *arg)
{
	struct search *s = arg;

	if (s->found == NULL &&
	    ((struct call *)n)->deadline_ms + 10 < s->now_ms)
		s->found = (struct call *)n;
}

void
calls_sweep(struct calls *cs, uint64_t now_ms)
{
	struct search s = {.now_ms = now_ms};

	/* Firing one may free others, so each search starts anew. */
	do {
		s.found = NULL;
		table_each(&cs->by_id, find_overdue, &s);
		if (s.found != NULL) {
			call_timer(-1, 0, s.found);
		}
	} while (s.found != NULL);
}

struct calls *
calls_new(struct event_base *base, const struct calls_conf *conf,
    struct records *records)
{
	struct calls *cs;

	if ((cs = calloc(1, sizeof(*cs))) == NULL)
		return NULL;
	cs->base = base;
	cs->conf = *conf;
	cs->records = records;
	TAILQ_INIT(&cs->queue);
	if (table_init(&cs->by_id, conf->queue + POOL_SLOTS_MAX) != 0) {
		free(cs);
		return NULL;
	}
	return cs;
}

void
calls_pool(struct calls *cs, struct pool *pool)
{
	cs->pool = pool;
}

static void
free_node(struct table_node *n, void *arg)
{
	struct calls *cs = arg;

	table_del(&cs->by_id, n);
	call_free((struct call *)n);
}

void
calls_free(struct calls *cs)
{
	if (cs == NULL)
		return;
	table_each(&cs->by_id, free_node, cs);
	table_free(&cs->by_id);
	free(cs);
}

int
calls_run(struct calls *cs, struct ipc_peer *peer, uint64_t request,
    struct held *h, struct ipc_bytes arguments)
{
	struct call *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		return -1;
	c->all = cs;
	buf_init(&c->arguments, arguments.n);
	buf_put(&c->arguments, arguments.p, arguments.n);
	c->timer = evtimer_new(cs->base, call_timer, c);
	if (c->arguments.failed || c->timer == NULL) {
		call_free(c);
		return -1;
	}
	c->node.id = h->node.id;
	c->held = h;
	c->peer = peer;
	c->request = request;
	c->run_us = now_us();
	c->run_ms = now_boot_ms();
	table_add(&cs->by_id, &c->node);
	call_change(c, CALL_WAITING_SLOT);
	calls_pool_events.available(cs);
	/* Still waiting behind a full queue: the newest goes. c itself may be
	 * gone by now, the queue's tail is not. */
	if (cs->queued > cs->conf.queue)
		call_finish(TAILQ_LAST(&cs->queue, call_queue), OUTCOME_REFUSED,
		    FAILURE_BUSY, "too many calls wait for a slot", NULL);
	return 0;
}

bool
calls_cancel(struct calls *cs, const struct ipc_id *id, struct ipc_peer *by,
    enum failure failure)
{
	struct call *c = (struct call *)table_find(&cs->by_id, id);

	if (c == NULL || c->state == CALL_ENDING ||
	    (by != NULL && c->peer != by))
		return false;
	call_finish(c, OUTCOME_KILLED, failure, answer_reason(failure), NULL);
	return true;
}

static void
forget_peer(struct table_node *n, void *arg)
{
	struct call *c = (struct call *)n;

	if (c->peer == arg)
		c->peer = NULL;
}

void
calls_peer_gone(struct calls *cs, struct ipc_peer *peer)
{
	table_each(&cs->by_id, forget_peer, peer);
}

void
calls_memory_layer(const struct calls *cs, char *out, size_t len)
{
	const struct calls_conf *c = &cs->conf;
	uint32_t n = call_processes(
	    cs, c->limit[LIMIT_PROCESSES], c->limit[LIMIT_MEMORY_BYTES]);

	if (pool_memory_bound(cs->pool)) {
		(void)snprintf(out, len, "call_memory=enforced");
		return;
	}
	(void)snprintf(out, len,
	    "call_memory=degraded each process is held to memory, not their "
	    "sum: memory_budget leaves a call %u of %llu processes of %llu MiB",
	    (unsigned)n, (unsigned long long)c->limit[LIMIT_PROCESSES],
	    (unsigned long long)c->limit[LIMIT_MEMORY_BYTES] >> 20);
}

size_t
calls_count(const struct calls *cs)
{
	return cs->by_id.count;
}

bool
calls_has(const struct calls *cs, const struct ipc_id *id)
{
	return table_find(&cs->by_id, id) != NULL;
}

void
calls_each(struct calls *cs, void (*f)(struct table_node *, void *), void *arg)
{
	table_each(&cs->by_id, f, arg);
}
