#include "own.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "listeners.h"

enum { OWN_USERS_MAX = 64, OWN_NAME_MAX = 64 };

struct own {
	uid_t users[OWN_USERS_MAX];
	size_t nusers;
	int route; /* NETLINK_ROUTE */
	struct listeners listeners;
};

static int
take_user(struct own *o, const char *name, size_t n, struct err *e)
{
	char s[OWN_NAME_MAX], *end;
	struct passwd *pw;
	unsigned long v;

	while (n > 0 && name[n - 1] == ' ')
		n--;
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
	/* This process's own listeners always count as the suite's, whatever
	 * the setting says. */
	o->users[o->nusers++] = geteuid();
	for (; *users != '\0'; users += len + (users[len] == ',')) {
		users += strspn(users, " ");
		len = strcspn(users, ",");
		if (take_user(o, users, len, e) < 0) {
			free(o);
			return NULL;
		}
	}
	listeners_open(&o->listeners);
	o->route = socket(
	    AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	return o;
}

void
own_close(struct own *o)
{
	if (o == NULL)
		return;
	listeners_close(&o->listeners);
	if (o->route >= 0)
		close(o->route);
	free(o);
}

bool
own_works(const struct own *o)
{
	return o->route >= 0 && listeners_work(&o->listeners);
}

/*
 * Asks the kernel how it would route to an address (rtnetlink(7), RTM_GETROUTE;
 * no capability needed). The answer is there when send returns. 1: the route
 * leads to this machine itself, 0: elsewhere or nowhere, -1: the kernel did not
 * say.
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
		continue; /* drop the rest of an earlier answer */
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

/* Tells whether a socket bound to `bound` takes packets for `a`. 0.0.0.0 and ::
 * count for both families. */
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

/* The arg of is_ours, which looks for a listener of the suite that takes
 * packets for this address. */
struct question {
	const struct own *own;
	const struct address *address;
};

static bool
is_ours(void *arg, const struct address *bound, uid_t user)
{
	const struct question *q = arg;

	if (!takes(bound, q->address))
		return false;
	for (size_t i = 0; i < q->own->nusers; i++)
		if (q->own->users[i] == user)
			return true;
	return false;
}

bool
own_serves(struct own *o, enum netgrant_proto proto, const struct address *a,
    uint16_t port)
{
	struct question q = {.own = o, .address = a};

	switch (is_local(o, a)) {
	case 0:
		return false;
	case 1:
		return listeners_find(
			   &o->listeners, proto, port, is_ours, &q) != 0;
	default:
		return true;
	}
}
