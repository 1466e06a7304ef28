#include "listeners.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TABLE_MAX = 4 * 1024 * 1024, /* some 25000 sockets */
	ST_LISTEN = 10,              /* include/net/tcp_states.h */
	ST_UNCONNECTED = 7           /* of UDP */
};

/*
 * The tables of this network namespace, opened before confinement. Each read
 * from the start gets the table of that moment. Paths in /proc/self exist even
 * if the unit hides all of /proc but the processes (ProcSubset=pid).
 */
static const struct {
	const char *path;
	enum netgrant_proto proto;
	sa_family_t family;
} tables[LISTENERS_TABLES] = {
    {"/proc/self/net/tcp", NETGRANT_TCP, AF_INET},
    {"/proc/self/net/tcp6", NETGRANT_TCP, AF_INET6},
    {"/proc/self/net/udp", NETGRANT_UDP, AF_INET},
    {"/proc/self/net/udp6", NETGRANT_UDP, AF_INET6},
};
void
listeners_open(struct listeners *l)
{
	l->diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
	    NETLINK_SOCK_DIAG);
	for (size_t i = 0; i < LISTENERS_TABLES; i++)
		l->table[i] = open(tables[i].path, O_RDONLY | O_CLOEXEC);
	buf_init(&l->text, TABLE_MAX);
}

void
listeners_close(struct listeners *l)
{
	for (size_t i = 0; i < LISTENERS_TABLES; i++)
		if (l->table[i] >= 0)
			close(l->table[i]);
	if (l->diag >= 0)
		close(l->diag);
	buf_free(&l->text);
}

/* Returns the state in which a socket can be reached by anybody. Connected UDP
 * sockets take datagrams from their peer alone, so they are no way in. */
static unsigned
state_of(enum netgrant_proto proto)
{
	return proto == NETGRANT_TCP ? ST_LISTEN : ST_UNCONNECTED;
}

/*
 * Lists one family by sock_diag: the kernel goes through listeners, not through
 * all connections, and filters by port. An answer is ready when send or recv
 * returns, so nothing waits. A packet has several messages. Returns the same
 * values as listeners_find.
 */
static int
find_diag(struct listeners *l, enum netgrant_proto proto, sa_family_t family,
    uint16_t port, listeners_cb *cb, void *arg)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q = {.h = {.nlmsg_len = sizeof(q),
		   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
	    .r = {.sdiag_family = (uint8_t)family,
		.sdiag_protocol = (uint8_t)proto,
		.idiag_states = 1U << state_of(proto),
		.id.idiag_sport = htons(port)}};
	_Alignas(struct nlmsghdr) static uint8_t in[32768];
	const struct inet_diag_msg *m;
	const struct nlmsghdr *h;
	struct address bound;
	bool found = false;
	ssize_t n;

	if (l->diag < 0)
		return -1;
	while (recv(l->diag, in, sizeof(in), MSG_DONTWAIT) > 0)
		continue; /* drop the rest of an earlier answer */
	if (send(l->diag, &q, sizeof(q), 0) < 0)
		return -1;
	while ((n = recv(l->diag, in, sizeof(in), MSG_DONTWAIT)) > 0)
		for (h = (const struct nlmsghdr *)in; NLMSG_OK(h, (size_t)n);
		    h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return found;
			if (h->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
			    h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
				return -1;
			m = NLMSG_DATA(h);
			if (ntohs(m->id.idiag_sport) != port)
				continue;
			bound = (struct address){.family = family};
			memcpy(bound.b, m->id.idiag_src, sizeof(bound.b));
			found |= cb(arg, &bound, m->idiag_uid);
		}
	return -1; /* NLMSG_DONE did not come */
}

/* Reads a whole table as text, with NUL at its end. 0 or -1. */
static int
read_table(struct listeners *l, int fd)
{
	ssize_t n;

	buf_clear(&l->text);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	for (;;) {
		buf_reserve(&l->text, 16384);
		if (l->text.failed)
			return -1;
		if ((n = read(fd, l->text.p + l->text.len, 16384)) < 0)
			return -1;
		if (n == 0)
			break;
		l->text.len += (size_t)n;
	}
	buf_putc(&l->text, '\0');
	return l->text.failed ? -1 : 0;
}

/* Reads an address: words of 32 bits in the machine's order. */
static void
table_address(const char *hex, sa_family_t family, struct address *a)
{
	a->family = family;
	for (size_t w = 0; w < (family == AF_INET ? 1 : 4); w++) {
		char word[9];
		uint32_t v;

		memcpy(word, hex + 8 * w, 8);
		word[8] = '\0';
		v = (uint32_t)strtoul(word, NULL, 16);
		memcpy(a->b + 4 * w, &v, 4);
	}
}

/*
 * Reads one line: "sl local:port remote:port st queues timer retrnsmt uid ...".
 */
static bool
read_line(const char *line, size_t i, struct address *bound, uint16_t *port,
    unsigned *state, uid_t *user)
{
	char local[33], remote[33];
	unsigned p, rp, uid;

	if (sscanf(line,
		" %*u: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*s %*s %*s %u",
		local, &p, remote, &rp, state, &uid) != 6 ||
	    strlen(local) != (tables[i].family == AF_INET ? 8 : 32))
		return false;
	table_address(local, tables[i].family, bound);
	*port = (uint16_t)p;
	*user = uid;
	return true;
}

int
listeners_find_proc(struct listeners *l, enum netgrant_proto proto,
    uint16_t port, listeners_cb *cb, void *arg)
{
	char *line, *end;
	struct address bound;
	unsigned state;
	uint16_t p;
	uid_t user;

	for (size_t i = 0; i < LISTENERS_TABLES; i++) {
		if (tables[i].proto != proto)
			continue;
		if (l->table[i] < 0) {
			/* A kernel without IPv6 has no table for IPv6, and no
			 * IPv6 socket. */
			if (tables[i].family == AF_INET)
				return -1;
			continue;
		}
		if (read_table(l, l->table[i]) < 0)
			return -1;
		for (line = (char *)l->text.p; line != NULL; line = end) {
			if ((end = strchr(line, '\n')) != NULL)
				*end++ = '\0';
			if (read_line(line, i, &bound, &p, &state, &user) &&
			    p == port && state == state_of(proto) &&
			    cb(arg, &bound, user))
				return 1;
		}
	}
	return 0;
}

int
listeners_find(struct listeners *l, enum netgrant_proto proto, uint16_t port,
    listeners_cb *cb, void *arg)
{
	int four = find_diag(l, proto, AF_INET, port, cb, arg), six;

	if (four == 1)
		return 1;
	six = four < 0 ? -1 : find_diag(l, proto, AF_INET6, port, cb, arg);
	return six >= 0 ? six : listeners_find_proc(l, proto, port, cb, arg);
}

bool
listeners_work(const struct listeners *l)
{
	return l->diag >= 0 || (l->table[0] >= 0 && l->table[2] >= 0);
}
