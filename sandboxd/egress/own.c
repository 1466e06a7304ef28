#include "own.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OWN_USERS_MAX = 64,
	OWN_NAME_MAX = 64,
	OWN_TABLE_MAX = 4 * 1024 * 1024, /* some 25000 sockets */
	ST_LISTEN = 0x0a,                /* include/net/tcp_states.h */
	ST_UNCONNECTED = 7               /* of UDP */
};

/*
 * The tables of this network namespace, opened before confinement; a read from
 * the start makes the table anew. In this order.
 */
static const struct {
	const char *path;
	enum netgrant_proto proto;
	sa_family_t family;
} tables[] = {
    {"/proc/net/tcp", NETGRANT_TCP, AF_INET},
    {"/proc/net/tcp6", NETGRANT_TCP, AF_INET6},
    {"/proc/net/udp", NETGRANT_UDP, AF_INET},
    {"/proc/net/udp6", NETGRANT_UDP, AF_INET6},
};
enum { TABLES = sizeof(tables) / sizeof(tables[0]) };

struct own {
	uid_t users[OWN_USERS_MAX];
	size_t nusers;
	int table[TABLES];
	int route; /* NETLINK_ROUTE */
	struct buf text;
};

static int
take_user(struct own *o, const char *name, size_t n, struct err *e)
{
	char s[OWN_NAME_MAX], *end;
	struct passwd *pw;
	unsigned long v;

	if (n == 0 || n >= sizeof(s) || o->nusers == OWN_USERS_MAX)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "own_users: an empty or too long name, or too many");
	memcpy(s, name, n);
	s[n] = '\0';
	v = strtoul(s, &end, 10);
	if (*end == '\0' && s[0] >= '0' && s[0] <= '9')
		o->users[o->nusers++] = (uid_t)v;
	else if ((pw = getpwnam(s)) != NULL)
		o->users[o->nusers++] = pw->pw_uid;
	return 0;
}

struct own *
own_open(const char *users, struct err *e)
{
	struct own *o = calloc(1, sizeof(*o));
	size_t len;

	if (o == NULL) {
		err_set(e, FAILURE_BUSY, "no memory");
		return NULL;
	}
	buf_init(&o->text, OWN_TABLE_MAX);
	/* Whatever the setting says, this process's own are ours. */
	o->users[o->nusers++] = geteuid();
	for (; *users != '\0'; users += len + (users[len] == ',')) {
		users += strspn(users, " ");
		len = strcspn(users, ",");
		if (take_user(o, users, len, e) < 0) {
			free(o);
			return NULL;
		}
	}
	for (size_t i = 0; i < TABLES; i++)
		o->table[i] = open(tables[i].path, O_RDONLY | O_CLOEXEC);
	o->route = socket(
	    AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	return o;
}

void
own_close(struct own *o)
{
	if (o == NULL)
		return;
	for (size_t i = 0; i < TABLES; i++)
		if (o->table[i] >= 0)
			close(o->table[i]);
	if (o->route >= 0)
		close(o->route);
	buf_free(&o->text);
	free(o);
}

bool
own_works(const struct own *o)
{
	/* Without IPv6 there is no table of it, and nothing to reach. */
	return o->route >= 0 && o->table[0] >= 0 && o->table[2] >= 0;
}

/*
 * Asks the kernel how it would route to an address (rtnetlink(7),
 * RTM_GETROUTE; no capability needed). 1: to this machine itself, 0: elsewhere
 * or nowhere, -1: it did not say. The answer is there when sendto returns.
 */
static int
is_local(struct own *o, const struct address *a)
{
	const size_t n = a->family == AF_INET ? 4 : 16;
	struct {
		struct nlmsghdr h;
		struct rtmsg r;
		uint8_t attr[RTA_LENGTH(16)];
	} q = {.h = {.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST},
	    .r = {.rtm_family = (unsigned char)a->family,
		.rtm_dst_len = (unsigned char)(n * 8)}};
	const struct rtattr rta = {
	    .rta_len = (unsigned short)RTA_LENGTH(n), .rta_type = RTA_DST};
	_Alignas(struct nlmsghdr) uint8_t in[4096];
	const struct nlmsghdr *h = (const struct nlmsghdr *)in;
	ssize_t got;

	while (recv(o->route, in, sizeof(in), MSG_DONTWAIT) > 0)
		continue; /* what an earlier question left */
	memcpy(q.attr, &rta, sizeof(rta));
	memcpy(q.attr + RTA_LENGTH(0), a->b, n);
	q.h.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(q.r)) + RTA_LENGTH(n));
	if (send(o->route, &q, q.h.nlmsg_len, 0) < 0)
		return -1;
	got = recv(o->route, in, sizeof(in), MSG_DONTWAIT);
	if (got < 0 || !NLMSG_OK(h, (size_t)got))
		return -1;
	if (h->nlmsg_type == NLMSG_ERROR)
		return 0; /* no route: connect will say so */
	if (h->nlmsg_type != RTM_NEWROUTE ||
	    h->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
		return -1;
	switch (((const struct rtmsg *)NLMSG_DATA(h))->rtm_type) {
	case RTN_LOCAL:
	case RTN_ANYCAST:
		return 1;
	default:
		return 0;
	}
}

/* A whole table as text, NUL at its end. 0 or -1. */
static int
read_table(struct own *o, int fd)
{
	ssize_t n;

	buf_clear(&o->text);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	for (;;) {
		buf_reserve(&o->text, 16384);
		if (o->text.failed)
			return -1;
		if ((n = read(fd, o->text.p + o->text.len, 16384)) < 0)
			return -1;
		if (n == 0)
			break;
		o->text.len += (size_t)n;
	}
	buf_putc(&o->text, '\0');
	return o->text.failed ? -1 : 0;
}

/* Addresses stand there as words of 32 bits in the machine's order. */
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

/* Does a socket bound to `bound` take what is sent to `a`? The any address of
 * either family takes both. */
static bool
takes(const struct address *bound, const struct address *a)
{
	static const uint8_t zero[16], mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (bound->family == AF_INET)
		return memcmp(bound->b, zero, 4) == 0 ||
		    address_equal(bound, a);
	if (memcmp(bound->b, zero, 16) == 0)
		return true;
	if (a->family == AF_INET)
		return memcmp(bound->b, mapped, 12) == 0 &&
		    (memcmp(bound->b + 12, a->b, 4) == 0 ||
			memcmp(bound->b + 12, zero, 4) == 0);
	return address_equal(bound, a);
}

/*
 * One line: "sl local:port remote:port st queues timer retrnsmt uid ...".
 * Sockets of UDP without a peer are what listeners are to TCP; connected ones
 * take datagrams from their peer alone, so they are no way in.
 */
static bool
line_is_ours(const struct own *o, const char *line, size_t i,
    const struct address *a, uint16_t port)
{
	char local[33], remote[33];
	unsigned p, rp, state, uid;
	struct address bound;

	if (sscanf(line,
		" %*u: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*s %*s %*s %u",
		local, &p, remote, &rp, &state, &uid) != 6)
		return false;
	if (p != port ||
	    strlen(local) != (tables[i].family == AF_INET ? 8 : 32) ||
	    state !=
		(tables[i].proto == NETGRANT_TCP ? ST_LISTEN : ST_UNCONNECTED))
		return false;
	table_address(local, tables[i].family, &bound);
	if (!takes(&bound, a))
		return false;
	for (size_t u = 0; u < o->nusers; u++)
		if (o->users[u] == uid)
			return true;
	return false;
}

bool
own_serves(struct own *o, enum netgrant_proto proto, const struct address *a,
    uint16_t port)
{
	char *line, *end;
	int local = is_local(o, a);

	if (local == 0)
		return false;
	if (local < 0)
		return true;
	for (size_t i = 0; i < TABLES; i++) {
		if (tables[i].proto != proto)
			continue;
		if (o->table[i] < 0) {
			if (tables[i].family == AF_INET)
				return true;
			continue;
		}
		if (read_table(o, o->table[i]) < 0)
			return true;
		for (line = (char *)o->text.p; line != NULL; line = end) {
			if ((end = strchr(line, '\n')) != NULL)
				*end++ = '\0';
			if (line_is_ours(o, line, i, a, port))
				return true;
		}
	}
	return false;
}
