#include "relay.h"

#include <event2/event.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rights.h"

enum {
	RELAY_BURST = 32,        /* datagrams before the loop's other work */
	RELAY_QUEUE = 256 * 1024 /* bytes that wait for a runner */
};

struct relay {
	TAILQ_ENTRY(relay) link;
	struct net *net;
	struct record *record;
	int pair, udp;
	struct event *from_runner, *from_net;
};

static void
relay_free(struct relay *r)
{
	TAILQ_REMOVE(&r->net->relays, r, link);
	r->net->nrelays--;
	if (r->from_runner != NULL)
		event_free(r->from_runner);
	if (r->from_net != NULL)
		event_free(r->from_net);
	if (r->record != NULL)
		record_end(r->record);
	record_drop(r->record);
	rights_close(r->pair);
	close(r->udp);
	free(r);
}

void
relays_end(struct net *n)
{
	struct relay *r;

	while ((r = TAILQ_FIRST(&n->relays)) != NULL)
		relay_free(r);
}

/*
 * Carries one datagram at a time, without a queue of our own: a datagram that
 * the other side does not take at once is lost, as datagrams may be. A sent
 * datagram counts if the UDP socket took it. A received datagram (on_net)
 * counts even if the runner does not fetch it.
 */
static void
on_runner(evutil_socket_t fd, short what, void *arg)
{
	static uint8_t datagram[RELAY_DATAGRAM_MAX];
	struct relay *r = arg;
	ssize_t n;

	event_base_loopcontinue(r->net->egress->proc.base);
	for (int i = 0; i < RELAY_BURST; i++) {
		n = rights_recv(r->pair, datagram, sizeof(datagram), 0);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) { /* the runner closed its end or sent descriptors
			       * or an empty datagram: the relay ends */
			relay_free(r);
			return;
		}
		if (r->net->over)
			continue;
		n = send(
		    r->udp, datagram, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0) {
			r->record->out += (uint64_t)n;
			net_count(r->net, (uint64_t)n);
		}
	}
}

static void
on_net(evutil_socket_t fd, short what, void *arg)
{
	static uint8_t datagram[RELAY_DATAGRAM_MAX];
	struct relay *r = arg;
	ssize_t n;

	event_base_loopcontinue(r->net->egress->proc.base);
	for (int i = 0; i < RELAY_BURST; i++) {
		n = recv(r->udp, datagram, sizeof(datagram), MSG_DONTWAIT);
		/* Any other error is about an earlier datagram (ICMP). The loop
		 * goes on, and the runner is not told. */
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			continue;
		r->record->in += (uint64_t)n;
		net_count(r->net, (uint64_t)n);
		if (send(r->pair, datagram, (size_t)n,
			MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
		    errno == EPIPE) {
			relay_free(r);
			return;
		}
	}
}

/*
 * Opens a relay. resolver_open says why the pair is SOCK_SEQPACKET. The UDP
 * socket is connected to the judged address, so datagrams from other addresses
 * never arrive.
 */
int
relay_open(struct net *n, int udp, struct record *record)
{
	const int size = RELAY_QUEUE;
	struct relay *r;
	int pair[2];

	/* used_up() checked this before, but several attempts may have been
	 * under way since. */
	if (n->nrelays >= NET_RELAYS_MAX) {
		close(udp);
		errno = EMFILE;
		return -1;
	}
	r = calloc(1, sizeof(*r));
	if (r == NULL ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		0, pair) != 0) {
		free(r);
		close(udp);
		return -1;
	}
	if (rights_guard(pair[0]) != 0) {
		close(pair[0]);
		close(pair[1]);
		close(udp);
		free(r);
		return -1;
	}
	(void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	r->net = n;
	r->record = record_hold(record);
	r->pair = pair[0];
	r->udp = udp;
	TAILQ_INSERT_TAIL(&n->relays, r, link);
	n->nrelays++;
	r->from_runner = event_new(
	    n->egress->proc.base, r->pair, EV_READ | EV_PERSIST, on_runner, r);
	r->from_net = event_new(
	    n->egress->proc.base, r->udp, EV_READ | EV_PERSIST, on_net, r);
	if (r->from_runner == NULL || r->from_net == NULL ||
	    event_priority_set(r->from_runner, EGRESS_LAST) != 0 ||
	    event_priority_set(r->from_net, EGRESS_LAST) != 0 ||
	    event_add(r->from_runner, NULL) != 0 ||
	    event_add(r->from_net, NULL) != 0) {
		close(pair[1]);
		relay_free(r);
		errno = ENOMEM;
		return -1;
	}
	return pair[1];
}
