#include "attempt.h"

#include <netinet/tcp.h>

#include <event2/event.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lookup.h"
#include "meter.h"
#include "policy.h"
#include "relay.h"
#include "resolver.h"

enum {
	DNS_PORT = 53,
	/* The next address is tried beside one that is silent for so long (RFC
	 * 8305, 5: 250 ms). */
	ATTEMPT_STAGGER_MS = 250,
	/* Of a socket that was handed over while it was connecting: 1 + 2 + 4 +
	 * 8 s, as nobody but the kernel can end it then. */
	ATTEMPT_SYN_RETRIES = 3,
	/* Answers with descriptors that peek has not read; the peer's own bound
	 * (IPC_QUEUE_FDS_MAX) would close the connection. */
	ATTEMPT_UNREAD_BYTES = 64 * 20,
	ATTEMPT_LATER_MS = 5
};

/* One socket that connects. */
struct
try {
	struct attempt *attempt;
	struct event *writable; /* NULL: none */
	int fd;
	size_t address;
};

struct attempt {
	TAILQ_ENTRY(attempt) link;
	struct net *net;
	struct ipc_peer *peek;
	uint64_t request;
	bool udp, nonblocking, running, by_name;
	char host[NAMES_NAME_MAX + 1];
	uint16_t port;
	struct record *record;
	struct lookup_request *lookup;
	struct address address[LOOKUP_ADDRESSES_MAX];
	size_t n, next;
	struct try tries[LOOKUP_ADDRESSES_MAX];
	unsigned trying;
	int error; /* of the try that failed last */
	struct event *deadline, *stagger;
	int ready, ready_error; /* a socket that could not be handed over yet */
};

static void pump(struct egress *);

static enum netgrant_proto
proto(const struct attempt *a)
{
	return a->udp ? NETGRANT_UDP : NETGRANT_TCP;
}

static void
answer_error(struct ipc_peer *p, uint64_t request, int error)
{
	struct ipc_net_failed m = {.error = (uint32_t)error};

	(void)ipc_answer(p, request, IPC_NET_FAILED, &m);
}

/* ---- the end of an attempt ---- */

static void
try_end(struct try *t)
{
	if (t->writable == NULL)
		return;
	event_free(t->writable);
	t->writable = NULL;
	if (t->fd >= 0)
		close(t->fd);
	t->attempt->trying--;
}

/* A net takes its turn while it has something to start and may. */
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
	lookup_cancel(a->lookup);
	for (size_t i = 0; i < a->n; i++)
		try_end(&a->tries[i]);
	if (a->deadline != NULL)
		event_free(a->deadline);
	if (a->stagger != NULL)
		event_free(a->stagger);
	if (a->ready >= 0)
		close(a->ready);
	record_drop(a->record);
	free(a);
	want_turn(n);
}

static void
finish(struct attempt *a)
{
	struct egress *g = a->net->egress;

	attempt_free(a);
	pump(g);
}

/* By policy: told, recorded, and EACCES. */
static void
refuse(struct attempt *a, enum net_event kind, const char *reason)
{
	struct net *n = a->net;

	n->refused++;
	records_add(&n->records, a->record, RECORD_REFUSED, reason);
	net_tell(n, kind, a->host, a->port, reason);
	answer_error(a->peek, a->request, EACCES);
	finish(a);
}

static void
fail(struct attempt *a, int error, const char *reason)
{
	struct net *n = a->net;

	records_add(&n->records, a->record, RECORD_FAILED, reason);
	net_tell(n, NET_EVENT_FAILED, a->host, a->port, reason);
	answer_error(a->peek, a->request, error);
	finish(a);
}

static void
fail_errno(struct attempt *a, int error)
{
	char text[RECORD_REASON];

	snprintf(text, sizeof(text), "%.100s:%u: %s", a->host, a->port,
	    strerror(error));
	fail(a, error, text);
}

/* ---- connecting ---- */

/*
 * The socket goes to the runner, and our copy is closed at once: the peer would
 * not see the runner's close otherwise. If peek is slow, later.
 */
static void
hand_over(struct attempt *a)
{
	static const struct timeval later = {
	    .tv_usec = ATTEMPT_LATER_MS * 1000};
	struct ipc_net_connected m = {
	    .error = (uint32_t)a->ready_error, .socket = a->ready};

	if (ipc_peer_queued(a->peek) > ATTEMPT_UNREAD_BYTES) {
		evtimer_add(a->deadline, &later);
		return;
	}
	(void)ipc_answer(a->peek, a->request, IPC_NET_CONNECTED, &m);
	finish(a);
}

static void
connected(struct attempt *a, int fd, size_t i, int error)
{
	struct net *n = a->net;
	int pair;

	address_text(&a->address[i], a->record->address);
	records_add(&n->records, a->record,
	    error == EINPROGRESS ? RECORD_PENDING : RECORD_CONNECTED, "");
	if (a->udp) {
		if ((pair = relay_open(n, fd, a->record)) < 0) {
			a->record->verdict = RECORD_FAILED;
			answer_error(a->peek, a->request, errno);
			finish(a);
			return;
		}
		fd = pair;
	} else
		meter_add(n, fd, &a->address[i], a->port, a->record);
	for (size_t k = 0; k < a->n; k++)
		try_end(&a->tries[k]);
	if (a->stagger != NULL)
		event_del(a->stagger);
	a->ready = fd;
	a->ready_error = error;
	hand_over(a);
}

static void connect_next(struct attempt *);

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct try *t = arg;
	struct attempt *a = t->attempt;
	const size_t i = t->address;
	socklen_t n = sizeof(int);
	int error = 0, sock = t->fd;

	if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
		error = errno;
	if (error != 0) {
		try_end(t);
		a->error = error;
		connect_next(a);
		return;
	}
	t->fd = -1;
	try_end(t);
	connected(a, sock, i, 0);
}

static void
on_stagger(evutil_socket_t fd, short what, void *arg)
{
	connect_next(arg);
}

/* 0: connected, EINPROGRESS, or why not; *out is the socket of the first two.
 */
static int
open_socket(const struct attempt *a, const struct address *addr, int *out)
{
	const int retries = ATTEMPT_SYN_RETRIES;
	struct sockaddr_storage ss;
	socklen_t len = address_sockaddr(addr, a->port, &ss);
	int fd, error;

	fd = socket(addr->family,
	    (a->udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    a->udp ? IPPROTO_UDP : IPPROTO_TCP);
	if (fd < 0)
		return errno;
	if (!a->udp)
		(void)setsockopt(
		    fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof(retries));
	error = connect(fd, (const struct sockaddr *)&ss, len) == 0 ? 0 : errno;
	if (error == 0 || error == EINPROGRESS)
		*out = fd;
	else
		close(fd);
	return error;
}

/*
 * The next address, now. A blocking connect(2) waits for whichever answers
 * first; a non-blocking one gets the first that a packet could be sent to.
 */
static void
connect_next(struct attempt *a)
{
	static const struct timeval stagger = {
	    .tv_usec = ATTEMPT_STAGGER_MS * 1000};
	struct egress *g = a->net->egress;
	int fd = -1, error;

	while (a->next < a->n) {
		const size_t i = a->next++;
		struct try *t = &a->tries[i];

		address_text(&a->address[i], a->record->address);
		error = open_socket(a, &a->address[i], &fd);
		if (error == 0 || (error == EINPROGRESS && a->nonblocking)) {
			connected(a, fd, i, error);
			return;
		}
		if (error != EINPROGRESS) {
			a->error = error;
			continue;
		}
		t->attempt = a;
		t->fd = fd;
		t->address = i;
		t->writable =
		    event_new(g->proc.base, fd, EV_WRITE, on_writable, t);
		if (t->writable == NULL || event_add(t->writable, NULL) != 0) {
			if (t->writable != NULL)
				event_free(t->writable);
			t->writable = NULL;
			close(fd);
			a->error = ENOMEM;
			continue;
		}
		a->trying++;
		if (a->next < a->n && a->stagger != NULL)
			evtimer_add(a->stagger, &stagger);
		return;
	}
	if (a->trying == 0)
		fail_errno(a, a->error);
}

/* IPv4 first: a host whose IPv6 leads nowhere is more frequent than the
 * reverse, and a non-blocking connect has one address only. */
static void
v4_first(struct attempt *a)
{
	struct address sorted[LOOKUP_ADDRESSES_MAX];
	size_t k = 0;

	for (size_t i = 0; i < a->n; i++)
		if (a->address[i].family == AF_INET)
			sorted[k++] = a->address[i];
	for (size_t i = 0; i < a->n; i++)
		if (a->address[i].family != AF_INET)
			sorted[k++] = a->address[i];
	memcpy(a->address, sorted, k * sizeof(*sorted));
}

/*
 * Each address is judged before any is connected to, and one that may not be
 * connected to spoils the whole answer: a name that mixes public and private
 * addresses is an attack or a mistake.
 */
static void
judge_all(struct attempt *a)
{
	char why[RECORD_REASON];

	for (size_t i = 0; i < a->n; i++)
		if (!policy_address(a->net, proto(a), &a->address[i], a->port,
			why, sizeof(why))) {
			address_text(&a->address[i], a->record->address);
			refuse(a,
			    policy_closed(
				a->net, proto(a), &a->address[i], a->port)
				? NET_EVENT_NEVER
				: NET_EVENT_REFUSED,
			    why);
			return;
		}
	v4_first(a);
	connect_next(a);
}

static void
on_lookup(
    void *arg, enum lookup_status status, const struct address *list, size_t n)
{
	struct attempt *a = arg;
	char text[RECORD_REASON];

	a->lookup = NULL;
	switch (status) {
	case LOOKUP_OK:
		memcpy(a->address, list, n * sizeof(*list));
		a->n = n;
		judge_all(a);
		return;
	case LOOKUP_MANY:
		snprintf(text, sizeof(text),
		    "%.100s has more than %d addresses", a->host,
		    LOOKUP_ADDRESSES_MAX);
		refuse(a, NET_EVENT_NEVER, text);
		return;
	case LOOKUP_NO_NAME:
		snprintf(text, sizeof(text), "%.100s has no address", a->host);
		fail(a, EHOSTUNREACH, text);
		return;
	default:
		snprintf(text, sizeof(text),
		    "no name server answered for %.100s", a->host);
		fail(a, EHOSTUNREACH, text);
	}
}

/* ---- turns ---- */

static void
run(struct attempt *a)
{
	char why[RECORD_REASON];

	/* Grants may have changed while it waited. */
	if (!policy_granted(a->net, proto(a), a->host, !a->by_name, a->port,
		why, sizeof(why))) {
		refuse(a, NET_EVENT_REFUSED, why);
		return;
	}
	if (!a->by_name) {
		judge_all(a);
		return;
	}
	a->lookup = lookup_start(a->net->egress->lookup, a->host, on_lookup, a);
	if (a->lookup == NULL)
		fail_errno(a, ENOMEM);
}

/* Starts what waits, a net after the other. Not from inside itself: what ends
 * at once leaves its turn to the loop here. */
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

	if (a->ready >= 0)
		hand_over(a);
	else
		fail_errno(a, ETIMEDOUT);
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

/* The runner's own resolver: see resolver.h. */
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
	a->stagger = evtimer_new(n->egress->proc.base, on_stagger, a);
	TAILQ_INSERT_TAIL(&n->waiting, a, link);
	if (a->record == NULL || a->deadline == NULL || a->stagger == NULL ||
	    evtimer_add(a->deadline, &tv) != 0) {
		attempt_free(a);
		return NULL;
	}
	return a;
}

void
attempt_start(
    struct egress *g, struct ipc_peer *p, const struct ipc_net_connect *m)
{
	struct net *n = net_find(g, m->net);
	char why[RECORD_REASON];
	enum net_event kind;
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
	 * sends nothing. */
	if (port == 0) {
		answer_error(p, m->request, ENETUNREACH);
		return;
	}
	if ((a = attempt_new(n, p, m, &to, port)) == NULL) {
		answer_error(p, m->request, ENOMEM);
		return;
	}
	/* What a grant would not open, unless it turns out that one would. */
	kind = NET_EVENT_NEVER;
	if (!a->by_name && names_synthetic(&to))
		snprintf(
		    why, sizeof(why), "no name was resolved to %.60s", a->host);
	else if (!a->by_name && policy_never(g, &to, port, why, sizeof(why)))
		;
	else if (!policy_granted(
		     n, proto(a), a->host, !a->by_name, port, why, sizeof(why)))
		kind = NET_EVENT_REFUSED;
	else if (!a->by_name &&
	    !policy_address(n, proto(a), &to, port, why, sizeof(why)))
		kind = policy_closed(n, proto(a), &to, port)
		    ? NET_EVENT_NEVER
		    : NET_EVENT_REFUSED;
	else if (n->connections >= n->connections_max)
		snprintf(why, sizeof(why),
		    "the call has made its %u connections", n->connections_max);
	else if (a->udp && n->nrelays >= NET_RELAYS_MAX)
		snprintf(why, sizeof(why), "the call has %d UDP sockets",
		    NET_RELAYS_MAX);
	else {
		n->connections++;
		want_turn(n);
		pump(g);
		return;
	}
	refuse(a, kind, why);
}
