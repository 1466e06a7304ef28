/*
 * Copies bytes between a socket inside and one outside, which have no common
 * namespace. Bytes are passed on unread. Each direction has one buffer; a full
 * buffer stops its reading, so a slow reader slows its sender and costs no
 * further memory. A direction that has ended is ended at the other side
 * (shutdown); an error ends both.
 */
#include <sys/socket.h>

#include <event2/event.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net.h"

enum {
	RELAY_BYTES = 64 * 1024,
	/* A connection to our listener was made before it is expected, so it
	 * comes at once, or never. */
	EXPECT_MS = 10 * 1000,
};

struct flow {
	struct event *readable, *writable;
	size_t at, n; /* bytes at data + at that wait to be written */
	bool ended;   /* the source has ended and that was passed on */
	bool over;    /* the source has ended */
	uint8_t data[RELAY_BYTES];
};

struct relay {
	TAILQ_ENTRY(relay) link;
	struct net *net;
	int fd[2];           /* owned: inside, outside */
	struct flow flow[2]; /* [i]: from fd[i] to the other */
};

/* A socket outside that waits for its connection inside. */
struct expected {
	TAILQ_ENTRY(expected) link;
	struct net *net;
	sa_family_t family;
	uint16_t port;
	int outside; /* owned */
	struct event *late;
};

static TAILQ_HEAD(, expected) expectations = TAILQ_HEAD_INITIALIZER(
    expectations);

static void
relay_end(struct relay *r)
{
	for (int i = 0; i < 2; i++) {
		if (r->flow[i].readable != NULL)
			event_free(r->flow[i].readable);
		if (r->flow[i].writable != NULL)
			event_free(r->flow[i].writable);
	}
	close(r->fd[0]);
	close(r->fd[1]);
	TAILQ_REMOVE(&r->net->relays, r, link);
	r->net->nrelays--;
	free(r);
}

/* Resets both connections: an end that was an error must not look like a whole
 * stream. */
static void
relay_break(struct relay *r)
{
	static const struct linger now = {1, 0};

	for (int i = 0; i < 2; i++)
		(void)setsockopt(
		    r->fd[i], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	relay_end(r);
}

/* Writes the waiting bytes of a flow. false: the relay is gone. */
static bool
push(struct relay *r, int i)
{
	struct flow *f = &r->flow[i];
	ssize_t n;

	while (f->n > 0) {
		n = send(r->fd[1 - i], f->data + f->at, f->n,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			event_add(f->writable, NULL);
			return true;
		}
		if (n < 0) {
			relay_break(r);
			return false;
		}
		f->at += (size_t)n;
		f->n -= (size_t)n;
	}
	if (f->over && !f->ended) {
		(void)shutdown(r->fd[1 - i], SHUT_WR);
		f->ended = true;
	}
	if (r->flow[0].ended && r->flow[1].ended) {
		relay_end(r);
		return false;
	}
	if (!f->over)
		event_add(f->readable, NULL);
	return true;
}

static void
pull(struct relay *r, int i)
{
	struct flow *f = &r->flow[i];
	ssize_t n = recv(r->fd[i], f->data, sizeof(f->data), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		event_add(f->readable, NULL);
		return;
	}
	if (n < 0) {
		relay_break(r);
		return;
	}
	f->at = 0;
	f->n = (size_t)n;
	f->over = n == 0;
	(void)push(r, i);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct relay *r = arg;

	(void)what;
	pull(r, fd == r->fd[0] ? 0 : 1);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct relay *r = arg;

	(void)what;
	(void)push(r, fd == r->fd[1] ? 0 : 1);
}

int
relay_start(struct net *n, int inside, int outside)
{
	struct relay *r =
	    n->nrelays < NET_RELAYS_MAX ? calloc(1, sizeof(*r)) : NULL;

	if (r == NULL) {
		close(inside);
		close(outside);
		return -1;
	}
	r->net = n;
	r->fd[0] = inside;
	r->fd[1] = outside;
	TAILQ_INSERT_TAIL(&n->relays, r, link);
	n->nrelays++;
	for (int i = 0; i < 2; i++) {
		r->flow[i].readable =
		    event_new(n->base, r->fd[i], EV_READ, on_readable, r);
		r->flow[i].writable =
		    event_new(n->base, r->fd[1 - i], EV_WRITE, on_writable, r);
		if (r->flow[i].readable == NULL ||
		    r->flow[i].writable == NULL ||
		    event_add(r->flow[i].readable, NULL) != 0) {
			relay_break(r);
			return -1;
		}
	}
	return 0;
}

static void
expected_end(struct expected *x)
{
	TAILQ_REMOVE(&expectations, x, link);
	if (x->late != NULL)
		event_free(x->late);
	free(x);
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	struct expected *x = arg;

	(void)fd;
	(void)what;
	close(x->outside);
	expected_end(x);
}

int
relay_expect(struct net *n, sa_family_t family, uint16_t port, int outside)
{
	static const struct timeval late = {.tv_sec = EXPECT_MS / 1000};
	struct expected *x = calloc(1, sizeof(*x));

	if (x == NULL) {
		close(outside);
		return -1;
	}
	*x = (struct expected){
	    .net = n, .family = family, .port = port, .outside = outside};
	TAILQ_INSERT_TAIL(&expectations, x, link);
	x->late = evtimer_new(n->base, on_late, x);
	if (x->late == NULL || evtimer_add(x->late, &late) != 0) {
		close(outside);
		expected_end(x);
		return -1;
	}
	return 0;
}

/*
 * Takes a connection inside. The program can connect to the listener itself;
 * nothing is expected from that port, so it is closed. It can't take another
 * port that is expected, since a socket of its own has that port: all ways that
 * are expected are its own anyway.
 */
static void
on_connection(evutil_socket_t listener, short what, void *arg)
{
	struct sockaddr_storage from = {0};
	socklen_t len = sizeof(from);
	struct net *n = arg;
	struct expected *x;
	uint16_t port;
	int fd, outside;

	(void)what;
	fd = accept4(listener, (struct sockaddr *)&from, &len,
	    SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd == -1)
		return;
	port = ntohs(from.ss_family == AF_INET
		? ((struct sockaddr_in *)&from)->sin_port
		: ((struct sockaddr_in6 *)&from)->sin6_port);
	TAILQ_FOREACH(x, &expectations, link)
		if (x->family == from.ss_family && x->port == port) {
			outside = x->outside;
			expected_end(x);
			(void)relay_start(n, fd, outside);
			return;
		}
	close(fd);
}

int
relay_listen(struct net *n)
{
	struct event *e;

	for (int i = 0; i < 2; i++) {
		if (n->setup->relay[i] == -1)
			continue;
		e = event_new(n->base, n->setup->relay[i], EV_READ | EV_PERSIST,
		    on_connection, n);
		if (e == NULL || event_add(e, NULL) != 0)
			return -1;
	}
	return 0;
}
