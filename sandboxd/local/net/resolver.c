/*
 * The program's name server: UDP at 127.0.0.1:53 inside. A name that the user
 * named has a synthetic address (egress/address/names.h), and each other name
 * does not exist. No question leaves the machine: a name is looked up when the
 * program connects. So names carry no data out.
 */
#include <sys/socket.h>

#include <event2/event.h>

#include <string.h>

#include "dns.h"
#include "net.h"

/* Questions that are answered before other work of the loop. */
enum { RESOLVER_BURST = 16 };

static bool
exists(struct net *n, const struct dns_question *q)
{
	static const char arpa[] = ".arpa";
	const size_t len = strlen(q->name);
	const char *last = strrchr(q->name, '.');

	/* c-ares takes 0177.0.0.1 for an address; no domain ends in a digit. */
	last = last != NULL ? last + 1 : q->name;
	if (len == 0 || (*last >= '0' && *last <= '9') ||
	    (len > 5 && strcmp(q->name + len - 5, arpa) == 0))
		return false;
	if (verdict_name(n->setup->plan, q->name))
		return true;
	/* Asked for several types at once; told once. */
	if (q->type == DNS_TYPE_A)
		net_deny(n, q->name, 0, "not named: add --net with this name");
	return false;
}

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

static void
on_question(evutil_socket_t fd, short what, void *arg)
{
	struct sockaddr_storage from;
	uint8_t in[DNS_MESSAGE_MAX + 1], out[DNS_ANSWER_MAX];
	socklen_t len;
	ssize_t got;
	size_t n;

	(void)what;
	for (int i = 0; i < RESOLVER_BURST; i++) {
		len = sizeof(from);
		got = recvfrom(fd, in, sizeof(in), MSG_DONTWAIT | MSG_TRUNC,
		    (struct sockaddr *)&from, &len);
		if (got < 0)
			return;
		if ((size_t)got > sizeof(in))
			continue;
		n = answer(arg, in, (size_t)got, out);
		if (n > 0)
			(void)sendto(fd, out, n, MSG_DONTWAIT | MSG_NOSIGNAL,
			    (const struct sockaddr *)&from, len);
	}
}

int
resolver_start(struct net *n)
{
	struct event *e = event_new(
	    n->base, n->setup->dns, EV_READ | EV_PERSIST, on_question, n);

	return e != NULL && event_add(e, NULL) == 0 ? 0 : -1;
}
