#include <netinet/tcp.h>

#include <event2/event.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attempt_internal.h"
#include "meter.h"
#include "relay.h"

enum {
	/* If an address is silent for so long, the next is tried in addition
	 * (RFC 8305, section 5: 250 ms). */
	DIAL_STAGGER_MS = 250,
	/* Addresses tried at a time. Before one more is tried, the address that
	 * has been silent longest (2 s by then) is given up. Otherwise a tool
	 * could take thousands of our descriptors at once, by a DNS name of its
	 * own with 32 silent addresses. */
	DIAL_TRYING_MAX = 8,
	/* The number of SYN retries: the kernel gives up after 1 + 2 + 4 + 8 s.
	 * If a socket is handed over while it connects, only the kernel can end
	 * the attempt. */
	DIAL_SYN_RETRIES = 3,
	DIAL_LATER_MS = 5 /* until peek's queue is looked at again */
};

enum netgrant_proto
dial_proto(const struct attempt *a)
{
	return a->udp ? NETGRANT_UDP : NETGRANT_TCP;
}

static void
one_end(struct dial *t)
{
	if (t->writable == NULL)
		return;
	event_free(t->writable);
	t->writable = NULL;
	if (t->fd >= 0)
		close(t->fd);
	t->attempt->trying--;
}

/* Keeps the most telling error of several addresses. ENETUNREACH and
 * EAFNOSUPPORT tell least: without IPv6 every IPv6 address has one of them. */
static void
failed(struct attempt *a, int error)
{
	if (a->error == ENETUNREACH ||
	    (error != ENETUNREACH && error != EAFNOSUPPORT))
		a->error = error;
}

/*
 * Hands the socket to the runner and closes our copy at once: while we hold a
 * copy, the remote peer does not see that the runner closed the socket. If peek
 * is slow to read, tries again after DIAL_LATER_MS.
 */
static void
hand_over(struct attempt *a)
{
	static const struct timeval later = {.tv_usec = DIAL_LATER_MS * 1000};
	struct ipc_net_connected m = {
	    .error = (uint32_t)a->ready_error, .socket = a->ready};

	if (ipc_peer_queued(a->peek) > ATTEMPT_UNREAD_BYTES) {
		evtimer_add(a->deadline, &later);
		return;
	}
	(void)ipc_answer(a->peek, a->request, IPC_NET_CONNECTED, &m);
	attempt_finish(a);
}

static void
connected(struct attempt *a, int fd, size_t i, int error)
{
	struct net *n = a->net;

	address_text(&a->address[i], a->record->address);
	if (a->udp && (fd = relay_open(n, fd, a->record)) < 0) {
		attempt_fail_errno(a, errno);
		return;
	}
	records_add(&n->records, a->record,
	    error == EINPROGRESS ? RECORD_PENDING : RECORD_CONNECTED, "");
	if (!a->udp)
		meter_add(n, fd, &a->address[i], a->port, a->record);
	for (size_t k = 0; k < a->n; k++)
		one_end(&a->dials[k]);
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
	struct dial *t = arg;
	struct attempt *a = t->attempt;
	const size_t i = t->address;
	socklen_t n = sizeof(int);
	int error = 0, sock = t->fd;

	if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &n) != 0)
		error = errno;
	if (error != 0) {
		one_end(t);
		failed(a, error);
		connect_next(a);
		return;
	}
	t->fd = -1;
	one_end(t);
	connected(a, sock, i, 0);
}

static void
on_stagger(evutil_socket_t fd, short what, void *arg)
{
	connect_next(arg);
}

/* Opens a socket and connects. Returns 0 if connected, EINPROGRESS, or another
 * errno. For 0 and EINPROGRESS, *out is the socket. */
static int
open_socket(const struct attempt *a, const struct address *addr, int *out)
{
	const int retries = DIAL_SYN_RETRIES;
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

static void
give_up_oldest(struct attempt *a)
{
	for (size_t i = 0; i < a->next; i++)
		if (a->dials[i].writable != NULL) {
			one_end(&a->dials[i]);
			failed(a, ETIMEDOUT);
			return;
		}
}

/*
 * Tries the next address now. A blocking connect(2) waits for the first address
 * that answers. A non-blocking one gets the first address to which a packet
 * could be sent.
 */
static void
connect_next(struct attempt *a)
{
	static const struct timeval stagger = {
	    .tv_usec = DIAL_STAGGER_MS * 1000};
	struct egress *g = a->net->egress;
	int fd = -1, error;

	while (a->next < a->n) {
		const size_t i = a->next++;
		struct dial *t = &a->dials[i];

		if (a->trying == DIAL_TRYING_MAX)
			give_up_oldest(a);
		address_text(&a->address[i], a->record->address);
		error = open_socket(a, &a->address[i], &fd);
		if (error == 0 || (error == EINPROGRESS && a->nonblocking)) {
			connected(a, fd, i, error);
			return;
		}
		if (error != EINPROGRESS) {
			failed(a, error);
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
			failed(a, ENOMEM);
			continue;
		}
		a->trying++;
		if (a->next < a->n && a->stagger == NULL)
			a->stagger = evtimer_new(g->proc.base, on_stagger, a);
		if (a->next < a->n && a->stagger != NULL)
			evtimer_add(a->stagger, &stagger);
		return;
	}
	if (a->trying == 0)
		attempt_fail_errno(a, a->error);
}

/* Sorts IPv4 first: IPv6 fails at more hosts than IPv4 does, and a non-blocking
 * connect gets one address only. */
static void
v4_first(struct attempt *a)
{
	struct address sorted[LOOKUP_ADDRESSES_MAX] = {0};
	size_t k = 0;

	for (size_t i = 0; i < a->n; i++)
		if (a->address[i].family == AF_INET)
			sorted[k++] = a->address[i];
	for (size_t i = 0; i < a->n; i++)
		if (a->address[i].family != AF_INET)
			sorted[k++] = a->address[i];
	memcpy(a->address, sorted, k * sizeof(*sorted));
}

/* Tells whether one of the addresses is IPv6 and so may have a NAT64 prefix. */
static bool
may_embed(const struct attempt *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->address[i].family == AF_INET6)
			return true;
	return false;
}

/*
 * Judges each address before any is connected to. One forbidden address spoils
 * the whole answer: a name that mixes public and private addresses is an attack
 * or a mistake.
 */
static void
judge_all(void *arg)
{
	struct attempt *a = arg;
	char why[RECORD_REASON];
	enum policy p;

	switch (may_embed(a)
		? nat64_wait(a->net->egress->nat64, &a->nat64, judge_all, a)
		: 0) {
	case 0:
		break;
	case 1:
		return;
	default:
		attempt_fail_errno(a, ENOMEM);
		return;
	}
	for (size_t i = 0; i < a->n; i++)
		if ((p = policy_address(a->net, dial_proto(a), &a->address[i],
			 a->port, why, sizeof(why))) != POLICY_OPEN) {
			address_text(&a->address[i], a->record->address);
			attempt_refuse(a, p, why);
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
		attempt_refuse(a, POLICY_NEVER, text);
		return;
	case LOOKUP_NO_NAME:
		snprintf(text, sizeof(text), "%.100s has no address", a->host);
		attempt_fail(a, EHOSTUNREACH, text);
		return;
	default:
		snprintf(text, sizeof(text),
		    "no name server answered for %.100s", a->host);
		attempt_fail(a, EHOSTUNREACH, text);
	}
}

void
dial_start(struct attempt *a)
{
	if (!a->by_name) {
		judge_all(a);
		return;
	}
	a->lookup = lookup_start(
	    a->net->egress->lookup, a->host, AF_UNSPEC, on_lookup, a);
	if (a->lookup == NULL)
		attempt_fail_errno(a, ENOMEM);
}

bool
dial_late(struct attempt *a)
{
	if (a->ready < 0)
		return false;
	hand_over(a);
	return true;
}

void
dial_end(struct attempt *a)
{
	lookup_cancel(a->lookup);
	nat64_leave(&a->nat64);
	for (size_t i = 0; i < a->n; i++)
		one_end(&a->dials[i]);
	if (a->stagger != NULL)
		event_free(a->stagger);
	if (a->ready >= 0)
		close(a->ready);
}
