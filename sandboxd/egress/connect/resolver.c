#include "resolver.h"

#include <event2/event.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dns.h"
#include "relay.h"
#include "rights.h"

enum {
	RESOLVER_IN = 2 + DNS_MESSAGE_MAX,
	/* Room for answers that wait for the runner. While it is full, no
	 * question is answered. */
	RESOLVER_OUT = 16 * (2 + DNS_ANSWER_MAX),
	RESOLVER_BURST = 16, /* packets before the loop's other work */
	/* The number of questions of a call that are answered at once, and the
	 * time between two further answers: 500 a second. Each question is
	 * compared with the net's two lists of hosts, declared and granted,
	 * which may have a thousand lines. All calls share this process. */
	RESOLVER_AT_ONCE = 256,
	RESOLVER_EACH_US = 2000,
	RESOLVER_PAUSE_MS = 50
};

struct resolver {
	TAILQ_ENTRY(resolver) link;
	struct net *net;
	int fd;
	bool datagrams;
	struct event *readable, *writable;
	struct event *again; /* pending: the runner asked too fast */
	uint8_t in[RESOLVER_IN];
	size_t nin;
	uint8_t out[RESOLVER_OUT];
	size_t nout;
};

static void
resolver_free(struct resolver *r)
{
	TAILQ_REMOVE(&r->net->resolvers, r, link);
	r->net->nresolvers--;
	if (r->readable != NULL)
		event_free(r->readable);
	if (r->writable != NULL)
		event_free(r->writable);
	if (r->again != NULL)
		event_free(r->again);
	rights_close(r->fd);
	free(r);
}

void
resolvers_end(struct net *n)
{
	struct resolver *r;

	while ((r = TAILQ_FIRST(&n->resolvers)) != NULL)
		resolver_free(r);
}

/*
 * Tells whether the name exists for the call. A name to which the call has no
 * right does not exist, and the question is reported to sandboxd. Programs ask
 * for localhost and reverse names by habit, so these are not reported.
 */
static bool
exists(struct net *n, const struct dns_question *q)
{
	static const char arpa[] = ".arpa";
	const size_t len = strlen(q->name);
	const char *last = strrchr(q->name, '.');
	enum net_right right;
	char text[256];

	/* No domain has a last label that begins with a digit (grantreq.c), so
	 * such a name does not exist. Some resolvers take such a name for an
	 * address: c-ares 1.34 does so with 0177.0.0.1. */
	last = last != NULL ? last + 1 : q->name;
	if (*last >= '0' && *last <= '9')
		return false;
	if (len == 0 || (len > 5 && strcmp(q->name + len - 5, arpa) == 0) ||
	    strcmp(q->name, "localhost") == 0)
		return false;
	if ((right = net_resolves(n, q->name)) == NET_RIGHT)
		return true;
	/* A look-up asks for several types. It is reported once, for type A. */
	if (q->type != DNS_TYPE_A)
		return false;
	snprintf(text, sizeof(text), "the name does not resolve: it is %s",
	    net_missing(right));
	n->refused++;
	net_tell(n, NET_EVENT_REFUSED, q->name, 0, text);
	return false;
}

/* Writes the answer to one message and returns its length; 0: no answer. */
static size_t
answer(struct net *n, const uint8_t *m, size_t len, uint8_t *out)
{
	struct dns_question q;
	struct address a;
	int rc = dns_question(m, len, &q);

	if (rc < 0)
		return 0;
	if (rc > 0)
		return dns_answer(m, NULL, (enum dns_rcode)rc, NULL, out);
	if (!exists(n, &q))
		return dns_answer(m, &q, DNS_NXDOMAIN, NULL, out);
	if (q.type != DNS_TYPE_A)
		return dns_answer(m, &q, DNS_NOERROR, NULL, out);
	if (names_address(&n->names, q.name, &a) < 0)
		return dns_answer(m, &q, DNS_SERVFAIL, NULL, out);
	return dns_answer(m, &q, DNS_NOERROR, &a, out);
}

/* Tells whether one more question may be answered now. If so, counts it. */
static bool
may_answer(struct net *n)
{
	const uint64_t now = record_now_us();
	const uint64_t burst = RESOLVER_AT_ONCE * RESOLVER_EACH_US;

	if (n->questions_us + burst < now)
		n->questions_us = now - burst;
	if (n->questions_us + RESOLVER_EACH_US > now)
		return false;
	n->questions_us += RESOLVER_EACH_US;
	return true;
}

static void
pause_reading(struct resolver *r)
{
	static const struct timeval tv = {.tv_usec = RESOLVER_PAUSE_MS * 1000};

	event_del(r->readable);
	evtimer_add(r->again, &tv);
}

/* Sends the waiting bytes; false: the runner is gone. */
static bool
flush(struct resolver *r)
{
	ssize_t n;

	if (r->nout == 0)
		return true;
	n = send(r->fd, r->out, r->nout, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN)
		return false;
	if (n > 0) {
		r->nout -= (size_t)n;
		memmove(r->out, r->out + n, r->nout);
	}
	if (r->nout > 0)
		event_add(r->writable, NULL);
	return true;
}

/* Answers the whole messages of the input (RFC 1035, 4.2.2: two bytes of length
 * before each), as long as there is room for the answers. false: the resolver
 * must end. */
static bool
serve_stream(struct resolver *r)
{
	size_t len, n;

	while (r->nin >= 2) {
		len = get_be16(r->in);
		if (len > DNS_MESSAGE_MAX)
			return false;
		if (r->nin < 2 + len ||
		    RESOLVER_OUT - r->nout < 2 + DNS_ANSWER_MAX)
			break;
		if (!may_answer(r->net)) {
			pause_reading(r);
			break;
		}
		n = answer(r->net, r->in + 2, len, r->out + r->nout + 2);
		if (n == 0)
			return false;
		r->out[r->nout] = (uint8_t)(n >> 8);
		r->out[r->nout + 1] = (uint8_t)n;
		r->nout += 2 + n;
		r->nin -= 2 + len;
		memmove(r->in, r->in + 2 + len, r->nin);
	}
	return flush(r);
}

static void
on_stream(evutil_socket_t fd, short what, void *arg)
{
	struct resolver *r = arg;
	ssize_t n;

	event_base_loopcontinue(r->net->egress->proc.base);
	if (r->nin < sizeof(r->in)) {
		n = rights_recv(fd, r->in + r->nin, sizeof(r->in) - r->nin, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			resolver_free(r);
			return;
		}
		if (n > 0)
			r->nin += (size_t)n;
	}
	if (!serve_stream(r)) {
		resolver_free(r);
		return;
	}
	/* r->in is full, and no question can be answered until the runner
	 * reads. */
	if (r->nin == sizeof(r->in) && !evtimer_pending(r->again, NULL)) {
		event_del(r->readable);
		event_add(r->writable, NULL);
	}
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct resolver *r = arg;

	event_base_loopcontinue(r->net->egress->proc.base);
	if (!flush(r) || !serve_stream(r)) {
		resolver_free(r);
		return;
	}
	if (!evtimer_pending(r->again, NULL))
		event_add(r->readable, NULL);
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	struct resolver *r = arg;

	event_add(r->readable, NULL);
	if (!r->datagrams && !serve_stream(r))
		resolver_free(r);
}

static void
on_datagram(evutil_socket_t fd, short what, void *arg)
{
	struct resolver *r = arg;
	ssize_t n;

	event_base_loopcontinue(r->net->egress->proc.base);
	for (int i = 0; i < RESOLVER_BURST; i++) {
		n = rights_recv(fd, r->in, sizeof(r->in), MSG_TRUNC);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			resolver_free(r);
			return;
		}
		if ((size_t)n > sizeof(r->in))
			continue;
		if (!may_answer(r->net)) { /* lost; the runner repeats it */
			pause_reading(r);
			return;
		}
		n = (ssize_t)answer(r->net, r->in, (size_t)n, r->out);
		if (n > 0)
			(void)send(
			    fd, r->out, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

/*
 * Opens a resolver with an AF_UNIX socketpair. Datagrams use SOCK_SEQPACKET,
 * not SOCK_DGRAM: SOCK_SEQPACKET ignores an address given to sendto(2). With
 * SOCK_DGRAM the runner could send to any abstract socket of the host, because
 * the pair belongs to the host's network namespace.
 */
int
resolver_open(struct net *n, bool datagrams)
{
	const int type = datagrams ? SOCK_SEQPACKET : SOCK_STREAM;
	struct resolver *r;
	int pair[2];

	if (n->nresolvers == NET_RESOLVERS_MAX) {
		errno = EAGAIN;
		return -1;
	}
	if ((r = calloc(1, sizeof(*r))) == NULL)
		return -1;
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) !=
	    0) {
		free(r);
		return -1;
	}
	if (rights_guard(pair[0]) != 0) {
		close(pair[0]);
		close(pair[1]);
		free(r);
		return -1;
	}
	r->net = n;
	r->fd = pair[0];
	r->datagrams = datagrams;
	TAILQ_INSERT_TAIL(&n->resolvers, r, link);
	n->nresolvers++;
	r->readable = event_new(n->egress->proc.base, r->fd,
	    EV_READ | EV_PERSIST, datagrams ? on_datagram : on_stream, r);
	r->writable =
	    event_new(n->egress->proc.base, r->fd, EV_WRITE, on_writable, r);
	r->again = evtimer_new(n->egress->proc.base, on_again, r);
	if (r->readable == NULL || r->writable == NULL || r->again == NULL ||
	    event_priority_set(r->readable, EGRESS_LAST) != 0 ||
	    event_priority_set(r->writable, EGRESS_LAST) != 0 ||
	    event_priority_set(r->again, EGRESS_LAST) != 0 ||
	    event_add(r->readable, NULL) != 0) {
		close(pair[1]);
		resolver_free(r);
		errno = ENOMEM;
		return -1;
	}
	return pair[1];
}
