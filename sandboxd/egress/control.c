#include "control.h"

#include <event2/event.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attempt.h"
#include "bounds.h"
#include "ipc_peer.h"
#include "log.h"
#include "meter.h"
#include "net.h"
#include "relay.h"
#include "resolver.h"

/* The wait, after peek's connection ended, before sandboxd is told. A
 * connection that replaces the ended one is there within some ms. */
enum { CONTROL_LINK_MS = 100 };

struct control {
	struct egress *egress;
	struct ipc_server *sandboxd, *peek;
	struct event *lost; /* peek's connection ended */
};

/* Lets the net connect no more, answers the waiting attempts, and ends the
 * net's name servers and relays. */
static void
quiet(struct net *n)
{
	n->over = true;
	attempts_cancel(n, NULL);
	resolvers_end(n);
	relays_end(n);
}

static void
close_now(struct net *n)
{
	quiet(n);
	meter_forget(n);
	net_free(n);
}

/* Answers NET_CLOSE with the report. Called when the last counts came in, or
 * did not come in time. */
static void
report(struct net *n)
{
	struct ipc_net_report m = {.net = n->id,
	    .bytes = n->bytes,
	    .connections = n->connections,
	    .refused = n->refused};
	struct buf json;

	/* A report of NET_REPORT_MAX bytes fits into an answer of
	 * IPC_FRAME_MAX. */
	buf_init(&json, NET_REPORT_MAX);
	if (records_json(&n->records, &json) == 0)
		m.json = ipc_bytes(json.p, json.len);
	else
		m.json = ipc_str("[]");
	(void)ipc_answer(n->owner, n->close_request, IPC_NET_REPORT, &m);
	buf_free(&json);
	close_now(n);
}

static int
take_open(struct egress *g, struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_net_open m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	if (net_open(g, p, &m, &e) == NULL)
		return ipc_refuse(p, m.request, e.failure, e.text, 0);
	return ipc_answer_ok(p, m.request);
}

/* Returns the net if this connection opened it: no other connection may change
 * or close it. */
static struct net *
own_net(struct egress *g, struct ipc_peer *p, uint64_t id)
{
	struct net *n = net_find(g, id);

	return n != NULL && n->owner == p && !n->closing ? n : NULL;
}

static int
take_grants(struct egress *g, struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_net_grants m;
	struct net *n;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	/* The call may have ended. */
	if ((n = own_net(g, p, m.net)) == NULL)
		return 0;
	/* The list that was not taken may withdraw a host, so the net connects
	 * no more. */
	if (net_grants(n, m.grants, &e) < 0) {
		log_event(LOG_LV_ERR, "net_grants", "%s", e.text);
		n->over = true;
	}
	return 0;
}

static int
take_close(struct egress *g, struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_net_close m;
	struct net *n;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	if ((n = own_net(g, p, m.net)) == NULL)
		return ipc_refuse(p, m.request, FAILURE_INVALID_PARAMS,
		    "no such net is open", 0);
	n->closing = true;
	n->close_request = m.request;
	quiet(n);
	meter_finish(n, report);
	return 0;
}

static int
sandboxd_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct control *c = arg;

	switch (f->type) {
	case IPC_NET_OPEN:
		return take_open(c->egress, p, f);
	case IPC_NET_GRANTS:
		return take_grants(c->egress, p, f);
	case IPC_NET_CLOSE:
		return take_close(c->egress, p, f);
	default:
		return -1;
	}
}

static void
count(struct ipc_peer *p, void *arg)
{
	++*(unsigned *)arg;
}

static void
hang_up(struct ipc_peer *p, void *arg)
{
	ipc_peer_close(p);
}

/* Ends the nets that the ended connection p opened, because no other connection
 * may end them. sandboxd opens the nets again when it connects again. p NULL:
 * all nets. */
static void
sandboxd_down(struct ipc_peer *p, void *arg)
{
	struct control *c = arg;
	struct net *n, *next;
	unsigned links = 0;

	for (size_t i = 0; i < EGRESS_CHAINS; i++)
		for (n = TAILQ_FIRST(&c->egress->chains[i]); n != NULL;
		    n = next) {
			next = TAILQ_NEXT(n, link);
			if (p == NULL || n->owner == p)
				close_now(n);
		}
	/*
	 * Closes peek's link with sandboxd's last connection (p is closing and
	 * not counted). Each process of sandboxd numbers its nets from 1. So if
	 * the link stayed, a runner of an earlier process, whose pool has not
	 * ended yet, could be judged by the grants of a new process' net. If
	 * only sandboxd's connection was lost, sandboxd connects again and
	 * makes a new link.
	 */
	ipc_server_each(c->sandboxd, count, &links);
	if (p != NULL && links == 0)
		ipc_server_each(c->peek, hang_up, NULL);
}

/*
 * Takes a request of peek. peek may name any net: only peek knows by which
 * listener a notification came, and peek holds the listeners of all nets. An
 * attacker who takes over peek can connect to the hosts of the running calls,
 * no more.
 */
static int
peek_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct control *c = arg;
	struct ipc_net_connect m;
	struct err e;

	if (f->type != IPC_NET_CONNECT || ipc_decode(f, &m, &e) != 0)
		return -1;
	attempt_start(c->egress, p, &m);
	return 0;
}

static void
tell_lost(struct ipc_peer *p, void *arg)
{
	const struct ipc_net_event m = {.kind = NET_EVENT_LINK,
	    .text = ipc_str("peek has no connection to egress")};

	(void)ipc_send(p, IPC_NET_EVENT, &m);
}

/* Tells sandboxd if peek has no connection. sandboxd makes peek's connections,
 * but would not notice that one ended. */
static void
on_lost(evutil_socket_t fd, short what, void *arg)
{
	struct control *c = arg;
	unsigned links = 0;

	ipc_server_each(c->peek, count, &links);
	if (links == 0)
		ipc_server_each(c->sandboxd, tell_lost, NULL);
}

static void
peek_down(struct ipc_peer *p, void *arg)
{
	static const struct timeval tv = {.tv_usec = CONTROL_LINK_MS * 1000};
	struct control *c = arg;
	struct net *n;

	(void)evtimer_add(c->lost, &tv);

	for (size_t i = 0; i < EGRESS_CHAINS; i++)
		TAILQ_FOREACH(n, &c->egress->chains[i], link)
			attempts_cancel(n, p);
}

struct control *
control_open(struct egress *g, uid_t user, struct err *e)
{
	static const struct ipc_handlers of_sandboxd = {
	    .message = sandboxd_message, .down = sandboxd_down};
	static const struct ipc_handlers of_peek = {
	    .message = peek_message, .down = peek_down};
	struct control *c = calloc(1, sizeof(*c));
	char path[128];

	if (c == NULL) {
		err_set(e, FAILURE_BUSY, "no memory for listeners");
		return NULL;
	}
	c->egress = g;
	if ((c->lost = evtimer_new(g->proc.base, on_lost, c)) == NULL) {
		err_set(e, FAILURE_BUSY, "no memory for listeners");
		goto fail;
	}
	if (proc_socket_path(
		&g->proc, "egress", "sandboxd", path, sizeof(path), e) < 0 ||
	    (c->sandboxd = ipc_server_new(g->proc.base, path, "sandboxd",
		 IPC_ROLE_EGRESS, IPC_ROLE_SANDBOXD, &user, 1, &of_sandboxd, c,
		 e)) == NULL)
		goto fail;
	/* sandboxd makes peek's connection, too, and hands it on to the pool.
	 * Only peek sends on it. */
	if (proc_socket_path(
		&g->proc, "egress", "peek", path, sizeof(path), e) < 0 ||
	    (c->peek = ipc_server_new(g->proc.base, path, "peek",
		 IPC_ROLE_EGRESS, IPC_ROLE_PEEK, &user, 1, &of_peek, c, e)) ==
		NULL)
		goto fail;
	return c;
fail:
	control_close(c);
	return NULL;
}

void
control_close(struct control *c)
{
	if (c == NULL)
		return;
	if (c->egress->meter != NULL)
		sandboxd_down(NULL, c);
	ipc_server_free(c->sandboxd);
	ipc_server_free(c->peek);
	if (c->lost != NULL)
		event_free(c->lost);
	free(c);
}
