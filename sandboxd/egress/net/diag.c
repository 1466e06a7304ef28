#include "diag.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>

#include <errno.h>

#include <string.h>
#include <unistd.h>

enum {
	/* Bytes of messages on destroyed sockets that wait while we are busy.
	 * If the message on a socket does not fit, the counts that were read
	 * last are used for that socket. */
	GONE_BUFFER = 1024 * 1024
};

static int
netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    NETLINK_SOCK_DIAG);
}

void
diag_open(struct diag *d)
{
	const int groups[] = {SKNLGRP_INET_TCP_DESTROY,
	    SKNLGRP_INET6_TCP_DESTROY},
		  size = GONE_BUFFER;
	struct sockaddr_nl self = {.nl_family = AF_NETLINK};

	d->ask = netlink();
	if ((d->gone = netlink()) < 0)
		return;
	if (bind(d->gone, (struct sockaddr *)&self, sizeof(self)) != 0)
		goto none;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (setsockopt(d->gone, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP,
			&groups[i], sizeof(groups[i])) != 0)
			goto none;
	(void)setsockopt(d->gone, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	return;
none:
	close(d->gone);
	d->gone = -1;
}

void
diag_close(struct diag *d)
{
	if (d->ask >= 0)
		close(d->ask);
	if (d->gone >= 0)
		close(d->gone);
	d->ask = d->gone = -1;
}

static void
from_sockaddr(
    const struct sockaddr_storage *ss, struct address *a, uint16_t *port)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;

	*a = (struct address){.family = ss->ss_family};
	if (ss->ss_family == AF_INET) {
		memcpy(a->b, &in->sin_addr, 4);
		*port = ntohs(in->sin_port);
	} else {
		memcpy(a->b, &in6->sin6_addr, 16);
		*port = ntohs(in6->sin6_port);
	}
}

int
diag_socket(int sock, struct diag_socket *out)
{
	struct sockaddr_storage ss = {0};
	socklen_t n = sizeof(out->cookie);

	if (getsockopt(sock, SOL_SOCKET, SO_COOKIE, &out->cookie, &n) != 0)
		return -1;
	n = sizeof(ss);
	if (getsockname(sock, (struct sockaddr *)&ss, &n) != 0)
		return -1;
	from_sockaddr(&ss, &out->local, &out->local_port);
	return 0;
}

/* Reads tcp_info. bytes_acked counts the SYN, so it tells whether there was
 * ever a connection. bytes_sent counts retransmitted bytes again, so these are
 * subtracted. Newer kernels append fields to tcp_info. */
static void
counts(const struct inet_diag_msg *m, size_t n, struct diag_counts *out)
{
	const struct rtattr *a = (const struct rtattr *)(m + 1);
	struct tcp_info info = {0};

	n -= sizeof(*m);
	for (; RTA_OK(a, n); a = RTA_NEXT(a, n))
		if (a->rta_type == INET_DIAG_INFO) {
			size_t len = RTA_PAYLOAD(a);

			memcpy(&info, RTA_DATA(a),
			    len < sizeof(info) ? len : sizeof(info));
		}
	out->in = info.tcpi_bytes_received;
	out->out = info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
	out->established = info.tcpi_bytes_acked > 0;
}

/* Returns a packet's message, or NULL if it is not about a socket. *len is the
 * message's length without the header. */
static const struct inet_diag_msg *
message(const uint8_t *in, size_t got, size_t *len)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)in;

	if (!NLMSG_OK(h, got) || h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    h->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
		return NULL;
	*len = h->nlmsg_len - NLMSG_LENGTH(0);
	return NLMSG_DATA(h);
}

int
diag_ask(struct diag *d, const struct diag_socket *s, struct diag_counts *out)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q = {.h = {.nlmsg_len = sizeof(q),
		   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		   .nlmsg_flags = NLM_F_REQUEST},
	    .r = {.sdiag_family = (uint8_t)s->local.family,
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_ext = 1 << (INET_DIAG_INFO - 1),
		.idiag_states = UINT32_MAX,
		.id = {.idiag_sport = htons(s->local_port),
		    .idiag_dport = htons(s->remote_port),
		    .idiag_cookie = {
			(uint32_t)s->cookie, (uint32_t)(s->cookie >> 32)}}}};
	_Alignas(struct nlmsghdr) uint8_t in[4096];
	const struct inet_diag_msg *m;
	size_t len;
	ssize_t got;

	if (d->ask < 0)
		return -1;
	memcpy(q.r.id.idiag_src, s->local.b, sizeof(s->local.b));
	memcpy(q.r.id.idiag_dst, s->remote.b, sizeof(s->remote.b));
	while (recv(d->ask, in, sizeof(in), MSG_DONTWAIT) > 0)
		continue;
	if (send(d->ask, &q, sizeof(q), 0) < 0 ||
	    (got = recv(d->ask, in, sizeof(in), MSG_DONTWAIT)) < 0)
		return -1;
	if ((m = message(in, (size_t)got, &len)) == NULL)
		return 0; /* NLMSG_ERROR: ENOENT */
	counts(m, len, out);
	return 1;
}

int
diag_next_gone(struct diag *d, uint64_t *cookie, struct diag_counts *out)
{
	_Alignas(struct nlmsghdr) uint8_t in[4096];
	const struct inet_diag_msg *m;
	size_t len;
	ssize_t got;

	if (d->gone < 0)
		return 0;
	/* ENOBUFS says that some messages were lost. The others are still
	 * there. */
	while ((got = recv(d->gone, in, sizeof(in), MSG_DONTWAIT)) >= 0 ||
	    errno == ENOBUFS) {
		if (got < 0 || (m = message(in, (size_t)got, &len)) == NULL)
			continue;
		*cookie = (uint64_t)m->id.idiag_cookie[1] << 32 |
		    m->id.idiag_cookie[0];
		counts(m, len, out);
		return 1;
	}
	return 0;
}
