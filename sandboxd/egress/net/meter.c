#include "meter.h"

#include <event2/event.h>

#include <stdlib.h>

#include "diag.h"
#include "log.h"

enum {
	/* The time between two looks at the counts. A fast network moves some
	 * 10 MB in it, so a call can exceed its limit by as much. */
	METER_TICK_MS = 100,
	/* Time that NET_CLOSE waits for the last counts of sockets that were
	 * just destroyed: the kernel sends the counts from a work queue. */
	METER_FINISH_MS = 50,
	METER_CHAINS = 1024,
	METER_BURST = 256 /* destroyed sockets before the loop's other work */
};

/* A TCP connection that a runner has. */
struct flow {
	TAILQ_ENTRY(flow) link;  /* of its net */
	TAILQ_ENTRY(flow) chain; /* by cookie */
	struct net *net;
	struct record *record;
	struct diag_socket socket;
	struct diag_counts counts;
	bool missing; /* the last look() did not find the socket */
};

/* A wait for the last counts of one net. */
struct finish {
	struct net *net;
	void (*done)(struct net *);
	struct event *timer;
};

struct meter {
	struct egress *egress;
	struct diag diag;
	struct event *tick, *gone;
	struct flows chains[METER_CHAINS];
	size_t flows;
};

static struct flows *
chain(struct meter *m, uint64_t cookie)
{
	return &m->chains[cookie % METER_CHAINS];
}

static void
flow_free(struct flow *f)
{
	struct meter *m = f->net->egress->meter;

	TAILQ_REMOVE(&f->net->flows, f, link);
	/* This was the last flow that meter_finish waits for. */
	if (f->net->finish != NULL && TAILQ_EMPTY(&f->net->flows))
		event_active(f->net->finish->timer, EV_TIMEOUT, 0);
	TAILQ_REMOVE(chain(m, f->socket.cookie), f, chain);
	m->flows--;
	record_drop(f->record);
	free(f);
}

/* Adds the new counts. Counts only grow: a late report of an earlier moment
 * takes nothing back. */
static void
update(struct flow *f, const struct diag_counts *c)
{
	uint64_t more = 0;

	if (c->in > f->counts.in) {
		more += c->in - f->counts.in;
		f->counts.in = c->in;
	}
	if (c->out > f->counts.out) {
		more += c->out - f->counts.out;
		f->counts.out = c->out;
	}
	f->counts.established |= c->established;
	f->record->in = f->counts.in;
	f->record->out = f->counts.out;
	if (f->counts.established && f->record->verdict == RECORD_PENDING)
		f->record->verdict = RECORD_CONNECTED;
	net_count(f->net, more);
}

/* Ends the flow of a socket that is gone. A socket that was handed over while
 * it was connecting, and never was connected, has failed. */
static void
end(struct flow *f)
{
	if (f->record->verdict == RECORD_PENDING)
		record_fail(f->record, "no connection came about");
	record_end(f->record);
	flow_free(f);
}

static void
on_gone(evutil_socket_t fd, short what, void *arg)
{
	struct meter *m = arg;
	struct diag_counts c;
	uint64_t cookie;
	struct flow *f;

	for (int i = 0;
	    i < METER_BURST && diag_next_gone(&m->diag, &cookie, &c) == 1; i++)
		TAILQ_FOREACH(f, chain(m, cookie), chain)
			if (f->socket.cookie == cookie) {
				update(f, &c);
				end(f);
				break;
			}
}

/* Asks for the counts of one flow. If two calls, METER_TICK_MS apart, find no
 * socket, the flow ends with its last counts. */
static void
look(struct meter *m, struct flow *f)
{
	struct diag_counts c;
	int rc = diag_ask(&m->diag, &f->socket, &c);

	if (rc == 1)
		update(f, &c);
	else if (rc == 0 && f->missing)
		end(f);
	else if (rc == 0)
		f->missing = true;
}

static void
set_tick(struct meter *m)
{
	static const struct timeval tv = {.tv_usec = METER_TICK_MS * 1000};

	if (m->flows > 0 && !evtimer_pending(m->tick, NULL))
		evtimer_add(m->tick, &tv);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct meter *m = arg;
	struct flow *f, *next;

	on_gone(-1, 0, m);
	for (size_t i = 0; i < METER_CHAINS && m->flows > 0; i++)
		for (f = TAILQ_FIRST(&m->chains[i]); f != NULL; f = next) {
			next = TAILQ_NEXT(f, chain);
			look(m, f);
		}
	set_tick(m);
}

struct meter *
meter_open(struct egress *g, struct err *e)
{
	struct meter *m = calloc(1, sizeof(*m));

	if (m == NULL) {
		err_set(e, FAILURE_BUSY, "no memory");
		return NULL;
	}
	m->egress = g;
	for (size_t i = 0; i < METER_CHAINS; i++)
		TAILQ_INIT(&m->chains[i]);
	diag_open(&m->diag);
	if ((m->tick = evtimer_new(g->proc.base, on_tick, m)) == NULL)
		goto nomem;
	if (m->diag.gone >= 0 &&
	    ((m->gone = event_new(g->proc.base, m->diag.gone,
		  EV_READ | EV_PERSIST, on_gone, m)) == NULL ||
		event_add(m->gone, NULL) != 0))
		goto nomem;
	return m;
nomem:
	err_set(e, FAILURE_BUSY, "no memory");
	meter_close(m);
	return NULL;
}

void
meter_close(struct meter *m)
{
	if (m == NULL)
		return;
	if (m->tick != NULL)
		event_free(m->tick);
	if (m->gone != NULL)
		event_free(m->gone);
	diag_close(&m->diag);
	free(m);
}

bool
meter_works(const struct meter *m)
{
	return m->diag.ask >= 0 && m->diag.gone >= 0;
}

void
meter_add(struct net *n, int sock, const struct address *remote, uint16_t port,
    struct record *record)
{
	struct meter *m = n->egress->meter;
	struct flow *f = calloc(1, sizeof(*f));

	if (f == NULL || diag_socket(sock, &f->socket) < 0) {
		log_event(LOG_LV_WARN, "meter", "a connection is not counted");
		free(f);
		return;
	}
	f->socket.remote = *remote;
	f->socket.remote_port = port;
	f->net = n;
	f->record = record_hold(record);
	TAILQ_INSERT_TAIL(&n->flows, f, link);
	TAILQ_INSERT_TAIL(chain(m, f->socket.cookie), f, chain);
	m->flows++;
	set_tick(m);
}

static void
on_finished(evutil_socket_t fd, short what, void *arg)
{
	struct finish *w = arg;
	struct net *n = w->net;
	void (*done)(struct net *) = w->done;
	struct flow *f, *next;

	on_gone(-1, 0, n->egress->meter);
	for (f = TAILQ_FIRST(&n->flows); f != NULL; f = next) {
		next = TAILQ_NEXT(f, link);
		look(n->egress->meter, f);
	}
	event_free(w->timer);
	n->finish = NULL;
	free(w);
	done(n);
}

void
meter_finish(struct net *n, void (*done)(struct net *))
{
	static const struct timeval tv = {.tv_usec = METER_FINISH_MS * 1000};
	struct finish *w;

	on_gone(-1, 0, n->egress->meter);
	if (TAILQ_EMPTY(&n->flows) || (w = calloc(1, sizeof(*w))) == NULL) {
		done(n);
		return;
	}
	w->net = n;
	w->done = done;
	w->timer = evtimer_new(n->egress->proc.base, on_finished, w);
	if (w->timer == NULL || evtimer_add(w->timer, &tv) != 0) {
		if (w->timer != NULL)
			event_free(w->timer);
		free(w);
		done(n);
		return;
	}
	n->finish = w;
}

void
meter_forget(struct net *n)
{
	struct finish *w = n->finish;
	struct flow *f;

	while ((f = TAILQ_FIRST(&n->flows)) != NULL)
		flow_free(f);
	if (w != NULL) {
		event_free(w->timer);
		free(w);
		n->finish = NULL;
	}
}
