#include "attempt.h"

#include <event2/event.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attempt_internal.h"
#include "resolver.h"

enum { DNS_PORT = 53 };

static void pump(struct egress *);

static void
answer_error(struct ipc_peer *p, uint64_t request, int error)
{
	struct ipc_net_failed m = {.error = (uint32_t)error};

	(void)ipc_answer(p, request, IPC_NET_FAILED, &m);
}

/* ---- the end of an attempt ---- */

/* Puts a net into the queue of turns if it has a waiting attempt and may run
 * one more. */
static void
want_turn(struct net *n)
{
	if (n->in_turn || TAILQ_EMPTY(&n->waiting) ||
	    n->nrunning >= EGRESS_RUNNING_NET)
		return;
	n->in_turn = true;
	TAILQ_INSERT_TAIL(&n->egress->ready, n, turn);
}

static void
attempt_free(struct attempt *a)
{
	struct net *n = a->net;

	if (a->running) {
		TAILQ_REMOVE(&n->running, a, link);
		n->nrunning--;
		n->egress->running--;
	} else
		TAILQ_REMOVE(&n->waiting, a, link);
	dial_end(a);
	if (a->deadline != NULL)
		event_free(a->deadline);
	record_drop(a->record);
	free(a);
	want_turn(n);
}

void
attempt_finish(struct attempt *a)
{
	struct egress *g = a->net->egress;

	attempt_free(a);
	pump(g);
}

void
attempt_refuse(struct attempt *a, enum policy p, const char *reason)
{
	struct net *n = a->net;

	n->refused++;
	records_add(&n->records, a->record, RECORD_REFUSED, reason);
	net_tell(n, p == POLICY_NEVER ? NET_EVENT_NEVER : NET_EVENT_REFUSED,
	    a->host, a->port, reason);
	answer_error(a->peek, a->request, EACCES);
	attempt_finish(a);
}

void
attempt_fail(struct attempt *a, int error, const char *reason)
{
	struct net *n = a->net;

	records_add(&n->records, a->record, RECORD_FAILED, reason);
	net_tell(n, NET_EVENT_FAILED, a->host, a->port, reason);
	answer_error(a->peek, a->request, error);
	attempt_finish(a);
}

void
attempt_fail_errno(struct attempt *a, int error)
{
	char text[RECORD_REASON];

	snprintf(text, sizeof(text), "%.100s:%u: %s", a->host, a->port,
	    strerror(error));
	attempt_fail(a, error, text);
}

/* ---- turns ---- */

static void
run(struct attempt *a)
{
	char why[RECORD_REASON];

	/* Grants may have changed during the wait. */
	if (policy_granted(a->net, dial_proto(a), a->host, !a->by_name, a->port,
		why, sizeof(why)) != POLICY_OPEN) {
		attempt_refuse(a, POLICY_MISSING, why);
		return;
	}
	dial_start(a);
}

/* Starts waiting attempts, one of each net in turn. If an attempt ends at once,
 * pump is called again. That inner call does nothing, and the loop of the outer
 * call goes on. */
static void
pump(struct egress *g)
{
	struct attempt *a;
	struct net *n;

	if (g->pumping)
		return;
	g->pumping = true;
	while (g->running < EGRESS_RUNNING_MAX &&
	    (n = TAILQ_FIRST(&g->ready)) != NULL) {
		TAILQ_REMOVE(&g->ready, n, turn);
		n->in_turn = false;
		if ((a = TAILQ_FIRST(&n->waiting)) == NULL)
			continue;
		TAILQ_REMOVE(&n->waiting, a, link);
		TAILQ_INSERT_TAIL(&n->running, a, link);
		a->running = true;
		n->nrunning++;
		g->running++;
		want_turn(n);
		run(a);
	}
	g->pumping = false;
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct attempt *a = arg;

	if (!dial_late(a))
		attempt_fail_errno(a, ETIMEDOUT);
}

void
attempts_cancel(struct net *n, struct ipc_peer *of)
{
	struct egress *g = n->egress;
	struct attempts *lists[] = {&n->waiting, &n->running};
	const bool pumping = g->pumping;
	struct attempt *a, *next;

	g->pumping = true;
	for (size_t i = 0; i < 2; i++)
		for (a = TAILQ_FIRST(lists[i]); a != NULL; a = next) {
			next = TAILQ_NEXT(a, link);
			if (of != NULL && a->peek != of)
				continue;
			if (of == NULL)
				answer_error(a->peek, a->request, ENETUNREACH);
			attempt_free(a);
		}
	g->pumping = pumping;
	pump(g);
}

/* ---- the request ---- */

/* Connects the runner to its name server: see resolver.h. */
static void
to_resolver(struct net *n, struct ipc_peer *p, const struct ipc_net_connect *m)
{
	struct ipc_net_connected answer = {0};

	if (ipc_peer_queued(p) > ATTEMPT_UNREAD_BYTES ||
	    (answer.socket = resolver_open(n, m->type == SOCK_DGRAM)) < 0) {
		answer_error(p, m->request, EAGAIN);
		return;
	}
	(void)ipc_answer(p, m->request, IPC_NET_CONNECTED, &answer);
	close(answer.socket);
}

static struct attempt *
attempt_new(struct net *n, struct ipc_peer *p, const struct ipc_net_connect *m,
    const struct address *to, uint16_t port)
{
	const uint64_t us = n->egress->connect_us;
	const struct timeval tv = {
	    .tv_sec = (time_t)(us / 1000000), .tv_usec = (long)(us % 1000000)};
	const char *name = names_of(&n->names, to);
	struct attempt *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->net = n;
	a->peek = p;
	a->request = m->request;
	a->udp = m->type == SOCK_DGRAM;
	a->nonblocking = m->nonblocking != 0;
	a->port = port;
	a->ready = -1;
	a->error = ENETUNREACH;
	a->by_name = name != NULL;
	if (name != NULL)
		snprintf(a->host, sizeof(a->host), "%s", name);
	else {
		address_text(to, a->host);
		a->address[0] = *to;
		a->n = 1;
	}
	a->record = record_new(a->host, port, a->udp);
	a->deadline = evtimer_new(n->egress->proc.base, on_deadline, a);
	TAILQ_INSERT_TAIL(&n->waiting, a, link);
	if (a->record == NULL || a->deadline == NULL ||
	    evtimer_add(a->deadline, &tv) != 0) {
		attempt_free(a);
		return NULL;
	}
	return a;
}

/* Tells whether the call has used up a bound that no grant extends. */
static bool
used_up(const struct attempt *a, char *why, size_t size)
{
	const struct net *n = a->net;

	if (n->connections >= n->connections_max)
		snprintf(why, size, "the call has made its %u connections",
		    n->connections_max);
	else if (a->udp && n->nrelays >= NET_RELAYS_MAX)
		snprintf(
		    why, size, "the call has %d UDP sockets", NET_RELAYS_MAX);
	else
		return false;
	return true;
}

void
attempt_start(
    struct egress *g, struct ipc_peer *p, const struct ipc_net_connect *m)
{
	struct net *n = net_find(g, m->net);
	char why[RECORD_REASON];
	enum policy policy;
	struct attempt *a;
	struct address to;
	uint16_t port;
	int error;

	if (n == NULL || n->over) {
		answer_error(p, m->request, ENETUNREACH);
		return;
	}
	if ((error = address_foreign(m->address.p, m->address.n,
		 (sa_family_t)m->family, &to, &port)) != 0 ||
	    (m->type != SOCK_STREAM && m->type != SOCK_DGRAM)) {
		answer_error(
		    p, m->request, error != 0 ? error : EPROTONOSUPPORT);
		return;
	}
	if (to.family == AF_INET && get_be32(to.b) == INADDR_LOOPBACK &&
	    port == DNS_PORT) {
		to_resolver(n, p, m);
		return;
	}
	/* getaddrinfo(3) connects UDP sockets to port 0 to sort addresses, and
	 * sends nothing. So such a connect is neither reported to sandboxd nor
	 * recorded. */
	if (port == 0) {
		answer_error(p, m->request, ENETUNREACH);
		return;
	}
	if ((a = attempt_new(n, p, m, &to, port)) == NULL) {
		answer_error(p, m->request, ENOMEM);
		return;
	}
	if (a->by_name)
		policy = policy_granted(
		    n, dial_proto(a), a->host, false, port, why, sizeof(why));
	else if (names_synthetic(&to)) {
		policy = POLICY_NEVER;
		snprintf(
		    why, sizeof(why), "no name was resolved to %.60s", a->host);
	} else
		policy = policy_literal(
		    n, dial_proto(a), &to, port, why, sizeof(why));
	if (policy == POLICY_OPEN && used_up(a, why, sizeof(why)))
		policy = POLICY_NEVER;
	if (policy != POLICY_OPEN) {
		attempt_refuse(a, policy, why);
		return;
	}
	n->connections++;
	want_turn(n);
	pump(g);
}
