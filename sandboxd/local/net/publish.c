/*
 * Published ports: a connection to 127.0.0.1 of the host is copied to the same
 * port inside. pid 1 makes the connection inside, since only a process of the
 * namespace can; it sends the socket. Requests and answers are in order.
 *
 * The port of the host is open to all local users, as any development server on
 * localhost is.
 */
#include <sys/socket.h>

#include <event2/event.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

#include "inside.h"
#include "net.h"

/* A client outside that waits for its connection inside. */
struct client {
	TAILQ_ENTRY(client) link;
	struct net *net;
	uint16_t port;
	int family; /* that was asked for: IPv4 first, then IPv6 */
	int fd;     /* owned */
	int inside; /* owned, connecting; or -1 */
	struct event *writable;
};

static TAILQ_HEAD(clients, client) asked = TAILQ_HEAD_INITIALIZER(asked);

static void
client_end(struct client *c)
{
	static const struct linger now = {1, 0};

	if (c->writable != NULL)
		event_free(c->writable);
	if (c->inside != -1)
		close(c->inside);
	if (c->fd != -1) {
		/* The client hears of a reset, as nothing listens inside. */
		(void)setsockopt(
		    c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(c->fd);
	}
	free(c);
}

static void
ask(struct client *c)
{
	/* The port, and whether it is IPv6's. */
	const int value = c->port | (c->family == AF_INET6 ? 1 << 16 : 0);

	if (inside_send(c->net->setup->dialer, INSIDE_DIAL, value, "", -1) ==
	    -1)
		client_end(c);
	else
		TAILQ_INSERT_TAIL(&asked, c, link);
}

static void
refused(struct client *c)
{
	if (c->writable != NULL)
		event_free(c->writable);
	c->writable = NULL;
	if (c->inside != -1)
		close(c->inside);
	c->inside = -1;
	if (c->family == AF_INET6) {
		client_end(c);
		return;
	}
	c->family = AF_INET6; /* a server on localhost may have ::1 alone */
	ask(c);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	socklen_t n = sizeof(int);
	int error = 0, inside = c->inside, outside = c->fd;

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == -1)
		error = errno;
	if (error != 0) {
		refused(c);
		return;
	}
	c->inside = c->fd = -1;
	(void)relay_start(c->net, inside, outside);
	client_end(c);
}

/* Takes pid 1's answer to the first request. */
static void
on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct inside_message m;
	struct client *c;
	int inside;

	(void)what;
	(void)arg;
	if (inside_receive(fd, &m, &inside) != 1)
		_exit(0); /* the run has ended */
	if ((c = TAILQ_FIRST(&asked)) == NULL) {
		if (inside != -1)
			close(inside);
		return;
	}
	TAILQ_REMOVE(&asked, c, link);
	c->inside = inside;
	if (inside == -1) {
		refused(c);
		return;
	}
	c->writable = event_new(c->net->base, inside, EV_WRITE, on_writable, c);
	if (c->writable == NULL || event_add(c->writable, NULL) != 0)
		client_end(c);
}

static void
on_client(evutil_socket_t listener, short what, void *arg)
{
	struct net *n = arg;
	struct client *c;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)what;
	if (fd == -1)
		return;
	if ((c = calloc(1, sizeof(*c))) == NULL) {
		close(fd);
		return;
	}
	*c = (struct client){
	    .net = n, .family = AF_INET, .fd = fd, .inside = -1};
	for (size_t i = 0; i < n->setup->plan->nports; i++)
		if (n->setup->published[i] == listener)
			c->port = n->setup->plan->port[i];
	ask(c);
}

int
publish_start(struct net *n)
{
	struct event *e;

	if (n->setup->plan->nports == 0)
		return 0;
	e = event_new(
	    n->base, n->setup->dialer, EV_READ | EV_PERSIST, on_answer, n);
	if (e == NULL || event_add(e, NULL) != 0)
		return -1;
	for (size_t i = 0; i < n->setup->plan->nports; i++) {
		e = event_new(n->base, n->setup->published[i],
		    EV_READ | EV_PERSIST, on_client, n);
		if (e == NULL || event_add(e, NULL) != 0)
			return -1;
	}
	return 0;
}
