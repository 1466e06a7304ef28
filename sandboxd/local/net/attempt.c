/*
 * One connect(2) of the program, from its notification to its answer.
 *
 * Most calls do not concern us: unix sockets, netlink, the program's own
 * localhost. They are let through (CONTINUE). The kernel then reads the
 * arguments again, and the program may have changed them. That gains nothing:
 * the kernel carries the call out in the program's network namespace, which
 * leads nowhere, on sockets of that namespace, since no other socket is in the
 * program's reach (net.h; outside.c refuses a caller's).
 *
 * For all else the address is copied once and judged, and the program's socket
 * is held as a descriptor of ours. It is connected here, to our listener, at a
 * judged end: the program can exchange neither.
 */
#include <sys/socket.h>
#include <sys/time.h>

#include <event2/event.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "judge.h"
#include "lookup.h"
#include "nat64.h"
#include "net.h"
#include "notify.h"

/* An address of connect(2), at most (struct sockaddr_storage). */
enum { SOCKADDR_MAX = 128 };

struct attempt {
	TAILQ_ENTRY(attempt) link;
	struct net *net;
	uint64_t id;        /* of the notification */
	int socket;         /* owned: the program's own */
	sa_family_t family; /* of that socket */
	bool mapped;        /* IPv4 by an IPv6 socket */
	char host[NET_HOST_MAX];
	uint16_t port;
	struct lookup_request *lookup;
	struct nat64_wait nat64;
	struct address address[LOOKUP_ADDRESSES_MAX];
	size_t n, next;
	int dialled; /* owned: a socket outside that connects; or -1 */
	int error;   /* of the last address */
	struct event *writable, *late, *slow;
};

static void
attempt_free(struct attempt *a)
{
	struct net *n = a->net;

	lookup_cancel(a->lookup);
	nat64_leave(&a->nat64);
	if (a->writable != NULL)
		event_free(a->writable);
	if (a->late != NULL)
		event_free(a->late);
	if (a->slow != NULL)
		event_free(a->slow);
	if (a->dialled != -1)
		close(a->dialled);
	close(a->socket);
	TAILQ_REMOVE(&n->attempts, a, link);
	n->nattempts--;
	free(a);
	net_resume(n);
}

static void
finish(struct attempt *a, int error)
{
	notify_answer(a->net->setup->listener, a->id, error);
	attempt_free(a);
}

static void
refuse(struct attempt *a, const char *why)
{
	net_deny(a->net, a->host, a->port, why);
	finish(a, EACCES);
}

/* Fills in the address of our listener for the program's socket. */
static socklen_t
listener_address(const struct attempt *a, struct sockaddr_storage *ss)
{
	const bool six = a->family == AF_INET6 && !a->mapped;
	const int listener = a->net->setup->relay[six ? 1 : 0];
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in in;
	socklen_t n = sizeof(*ss);

	memset(ss, 0, sizeof(*ss));
	if (listener == -1 ||
	    getsockname(listener, (struct sockaddr *)ss, &n) == -1)
		return 0;
	if (!a->mapped)
		return n;
	memcpy(&in, ss, sizeof(in));
	memset(ss, 0, sizeof(*ss));
	in6->sin6_family = AF_INET6;
	in6->sin6_port = in.sin_port;
	in6->sin6_addr.s6_addr[10] = in6->sin6_addr.s6_addr[11] = 0xff;
	memcpy(&in6->sin6_addr.s6_addr[12], &in.sin_addr, 4);
	return sizeof(*in6);
}

/*
 * The way outside is open: connects the program's socket to our listener, and
 * expects it there. A blocking socket waits here for our own listener alone. If
 * the program fills that listener's queue, its own network waits.
 */
static void
join(struct attempt *a)
{
	struct sockaddr_storage ss;
	socklen_t len = listener_address(a, &ss);
	int error = 0, outside = a->dialled;
	uint16_t port;

	if (!notify_valid(a->net->setup->listener, a->id)) {
		attempt_free(a); /* the caller is gone */
		return;
	}
	if (len == 0)
		error = EAFNOSUPPORT;
	else if (connect(a->socket, (struct sockaddr *)&ss, len) == -1)
		error = errno;
	if (error != 0 && error != EINPROGRESS) {
		finish(a, error);
		return;
	}
	len = sizeof(ss);
	if (getsockname(a->socket, (struct sockaddr *)&ss, &len) == -1) {
		finish(a, errno);
		return;
	}
	port = ntohs(ss.ss_family == AF_INET
		? ((struct sockaddr_in *)&ss)->sin_port
		: ((struct sockaddr_in6 *)&ss)->sin6_port);
	a->dialled = -1;
	if (relay_expect(a->net,
		a->family == AF_INET6 && !a->mapped ? AF_INET6 : AF_INET, port,
		outside) == -1)
		error = ENOBUFS;
	finish(a, error);
}

static void dial(struct attempt *);

/* Notes the error of an address, and forgets its socket. Without IPv6 each IPv6
 * address is unreachable, so that error tells least. */
static void
failed(struct attempt *a, int error)
{
	if (a->writable != NULL)
		event_free(a->writable);
	a->writable = NULL;
	event_del(a->slow);
	if (a->dialled != -1)
		close(a->dialled);
	a->dialled = -1;
	if (a->error == 0 || error != ENETUNREACH)
		a->error = error;
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct attempt *a = arg;
	socklen_t n = sizeof(int);
	int error = 0;

	(void)what;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == -1)
		error = errno;
	if (error == 0) {
		join(a);
		return;
	}
	failed(a, error);
	dial(a);
}

static void
on_slow(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	failed(arg, ETIMEDOUT);
	dial(arg);
}

static void
on_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	finish(arg, ETIMEDOUT);
}

/* Connects to the next address that takes a packet; answers if none is left. */
static void
dial(struct attempt *a)
{
	static const struct timeval slow = {.tv_sec = NET_DIAL_MS / 1000};
	struct sockaddr_storage ss;
	const struct address *to;
	socklen_t len;

	while (a->next < a->n) {
		to = &a->address[a->next++];
		len = address_sockaddr(to, a->port, &ss);
		a->dialled = socket(to->family,
		    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
		if (a->dialled == -1 ||
		    (connect(a->dialled, (struct sockaddr *)&ss, len) == -1 &&
			errno != EINPROGRESS)) {
			failed(a, errno);
			continue;
		}
		a->writable = event_new(
		    a->net->base, a->dialled, EV_WRITE, on_writable, a);
		if (a->writable == NULL || event_add(a->writable, NULL) != 0 ||
		    evtimer_add(a->slow, &slow) != 0)
			finish(a, ENOMEM);
		return;
	}
	finish(a, a->error != 0 ? a->error : EHOSTUNREACH);
}

/* Judges all addresses before the first packet: a name that mixes open and
 * closed ones is an attack or a mistake. IPv4 is tried first. */
static void
judge_all(void *arg)
{
	struct attempt *a = arg;
	struct address sorted[LOOKUP_ADDRESSES_MAX];
	char why[NET_WHY_MAX];
	bool six = false;
	size_t n = 0;

	for (size_t i = 0; i < a->n; i++)
		six |= a->address[i].family == AF_INET6;
	switch (six ? nat64_wait(a->net->nat64, &a->nat64, judge_all, a) : 0) {
	case 0:
		break;
	case 1:
		return;
	default:
		finish(a, ENOMEM);
		return;
	}
	for (size_t i = 0; i < a->n; i++)
		if (verdict_address(a->net->setup->plan, a->host,
			&a->address[i], a->port, nat64_prefixes(a->net->nat64),
			why) == -1) {
			refuse(a, why);
			return;
		}
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < a->n; i++)
			if ((a->address[i].family == AF_INET6) == (pass == 1))
				sorted[n++] = a->address[i];
	memcpy(a->address, sorted, n * sizeof(sorted[0]));
	dial(a);
}

static void
on_lookup(
    void *arg, enum lookup_status status, const struct address *list, size_t n)
{
	struct attempt *a = arg;

	a->lookup = NULL;
	switch (status) {
	case LOOKUP_OK:
		memcpy(a->address, list, n * sizeof(*list));
		a->n = n;
		judge_all(a);
		return;
	case LOOKUP_MANY:
		refuse(a, "it has too many addresses");
		return;
	default:
		finish(a, EHOSTUNREACH);
	}
}

/* Begins with a target that the user named. */
static void
begin(struct attempt *a, const struct address *to, const char *name)
{
	char why[NET_WHY_MAX];

	if (verdict_host(a->net->setup->plan, a->host, name == NULL, a->port,
		why) == -1) {
		refuse(a, why);
		return;
	}
	if (name == NULL) {
		a->address[0] = *to;
		a->n = 1;
		judge_all(a);
		return;
	}
	a->lookup =
	    lookup_start(a->net->lookup, a->host, AF_UNSPEC, on_lookup, a);
	if (a->lookup == NULL)
		finish(a, ENOMEM);
}

static int
int_option(int fd, int option)
{
	socklen_t n = sizeof(int);
	int value = -1;

	return getsockopt(fd, SOL_SOCKET, option, &value, &n) == 0 ? value : -1;
}

/* Tells whether the address is the program's own machine inside. */
static bool
own(const struct address *a)
{
	static const uint8_t any[16], one[16] = {[15] = 1};

	if (a->family == AF_INET)
		return a->b[0] == 127 || memcmp(a->b, any, 4) == 0;
	return memcmp(a->b, any, 16) == 0 || memcmp(a->b, one, 16) == 0;
}

/*
 * Reads the call. Returns an errno to answer with, 0: it goes on with *to and
 * *port; -1: the
 * kernel carries the call out. *sock is the program's socket, or -1.
 */
static int
read_call(struct net *n, const struct seccomp_notif *call, int *sock,
    struct address *to, uint16_t *port)
{
	uint8_t text[SOCKADDR_MAX];
	const size_t len = (size_t)(uint32_t)call->data.args[2];
	sa_family_t family;
	int process, error;

	*sock = -1;
	if (len > sizeof(text) || len < sizeof(family))
		return -1; /* the kernel says EINVAL */
	if (notify_read(call->pid, call->data.args[1], text, len) != 0)
		return -1; /* EFAULT */
	memcpy(&family, text, sizeof(family));
	if (family != AF_INET && family != AF_INET6)
		return -1;
	if (address_foreign(text, len, family, to, port) != 0)
		return -1; /* the kernel says the same */
	if (own(to))
		return -1;
	if ((process = notify_process(call->pid)) == -1)
		return EPERM;
	*sock = notify_descriptor(process, (int)call->data.args[0]);
	error = errno;
	close(process);
	if (*sock == -1)
		return error == EBADF ? EBADF : EPERM;
	if (!notify_valid(n->setup->listener, call->id))
		return ESRCH; /* the caller is gone */
	/* UDP has no way out: the kernel says that the net is unreachable. */
	if (int_option(*sock, SO_TYPE) != SOCK_STREAM)
		return -1;
	if (int_option(*sock, SO_DOMAIN) != (int)family)
		return -1;
	return 0;
}

static bool
connected(int fd)
{
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);

	return getpeername(fd, (struct sockaddr *)&ss, &n) == 0;
}

void
attempt_take(struct net *n)
{
	static const struct timeval late = {.tv_sec = NET_ATTEMPT_MS / 1000};
	const struct seccomp_notif *call;
	const int listener = n->setup->listener;
	struct attempt *a;
	struct address to;
	const char *name;
	uint16_t port;
	uint64_t id;
	int sock, error;

	switch (notify_take(listener, &call)) {
	case 1:
		break;
	case 0:
		return;
	default:
		_exit(0); /* the program has ended */
	}
	id = call->id;
	error = read_call(n, call, &sock, &to, &port);
	if (error == 0 && connected(sock))
		error = EISCONN;
	if (error != 0 || (a = calloc(1, sizeof(*a))) == NULL) {
		if (sock != -1)
			close(sock);
		if (error == -1)
			notify_continue(listener, id);
		else
			notify_answer(listener, id, error ? error : ENOMEM);
		return;
	}
	a->net = n;
	a->id = id;
	a->socket = sock;
	a->family = (sa_family_t)int_option(sock, SO_DOMAIN);
	a->mapped = a->family == AF_INET6 && to.family == AF_INET;
	a->port = port;
	a->dialled = -1;
	TAILQ_INSERT_TAIL(&n->attempts, a, link);
	n->nattempts++;
	name = names_of(&n->names, &to);
	if (name != NULL)
		(void)snprintf(a->host, sizeof(a->host), "%s", name);
	else
		address_text(&to, a->host);
	a->late = evtimer_new(n->base, on_late, a);
	a->slow = evtimer_new(n->base, on_slow, a);
	if (a->late == NULL || a->slow == NULL ||
	    evtimer_add(a->late, &late) != 0)
		finish(a, ENOMEM);
	else
		begin(a, &to, name);
}
