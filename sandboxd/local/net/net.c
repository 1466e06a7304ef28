/*
 * See net.h. This process has the user's uid and faces hostile bytes: calls of
 * the program, its DNS questions, and the bytes of its connections. So it
 * confines itself before it reads the first: it can open no file, run nothing,
 * and make only TCP and UDP sockets. It has no Landlock domain, since a process
 * in one may not look into the program.
 */
#include "net.h"

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <event2/event.h>

#include <linux/seccomp.h>
#include <netdb.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "lookup.h"
#include "nat64.h"
#include "notify.h"

static const struct confine_rule rules[] = {
    {SCMP_SYS(socket), 0, UINT64_MAX, AF_INET},
    {SCMP_SYS(socket), 0, UINT64_MAX, AF_INET6},
    {SCMP_SYS(connect), -1, 0, 0},
    {SCMP_SYS(pidfd_open), -1, 0, 0},
    {SCMP_SYS(pidfd_getfd), -1, 0, 0},
    {SCMP_SYS(process_vm_readv), -1, 0, 0},
    {SCMP_SYS(ioctl), 1, UINT64_MAX, SECCOMP_IOCTL_NOTIF_RECV},
    {SCMP_SYS(ioctl), 1, UINT64_MAX, SECCOMP_IOCTL_NOTIF_SEND},
    {SCMP_SYS(ioctl), 1, UINT64_MAX, SECCOMP_IOCTL_NOTIF_ID_VALID},
};

void
net_deny(struct net *n, const char *host, uint16_t port, const char *why)
{
	static struct plan_denied seen[NET_DENIED_MAX];
	struct plan_denied *d;

	for (unsigned i = 0; i < n->told; i++)
		if (seen[i].port == port && strcmp(seen[i].host, host) == 0)
			return;
	if (n->told == NET_DENIED_MAX)
		return;
	d = &seen[n->told++];
	d->port = port;
	(void)snprintf(d->host, sizeof(d->host), "%s", host);
	(void)snprintf(d->why, sizeof(d->why), "%s", why);
	(void)send(
	    n->setup->report, d, sizeof(*d), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void
net_resume(struct net *n)
{
	if (n->readable != NULL && n->nattempts < NET_ATTEMPTS_MAX &&
	    !event_pending(n->readable, EV_READ, NULL))
		(void)event_add(n->readable, NULL);
}

static void
on_call(evutil_socket_t fd, short what, void *arg)
{
	struct net *n = arg;

	(void)fd;
	(void)what;
	attempt_take(n);
	net_resume(n);
}

static int
start(struct net *n)
{
	const struct net_setup *s = n->setup;
	struct err e;

	if ((n->base = event_base_new()) == NULL || publish_start(n) == -1)
		return -1;
	if (s->listener == -1)
		return 0;
	if (notify_start(&e) == -1 ||
	    (n->lookup = lookup_open(n->base, "", &e)) == NULL ||
	    (n->nat64 = nat64_open(n->lookup)) == NULL ||
	    resolver_start(n) == -1 || relay_listen(n) == -1)
		return -1;
	n->readable = event_new(n->base, s->listener, EV_READ, on_call, n);
	return n->readable != NULL && event_add(n->readable, NULL) == 0 ? 0
									: -1;
}

void
net_main(const struct net_setup *s)
{
	static const struct confine_spec spec = {
	    .process = "mcpbox-run",
	    .rules = rules,
	    .nrules = sizeof(rules) / sizeof(rules[0]),
	    .seccomp = true,
	};
	static struct net n;
	struct err e;

	/* Set before the parent is asked: it may have ended already. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    send(s->report, "", 1, MSG_NOSIGNAL) == -1)
		_exit(1);
	(void)prctl(PR_SET_NAME, "mcpbox-run-net", 0, 0, 0);
	log_init("mcpbox-run", LOG_TEXT, LOG_LV_ERR);
	n.setup = s;
	TAILQ_INIT(&n.relays);
	TAILQ_INIT(&n.attempts);
	if (start(&n) == -1)
		log_fatal("network", "the network of the run can't start");
	if (confine_self(&spec, NULL, &e) == -1)
		log_fatal("network", "%s", e.text);
	(void)event_base_dispatch(n.base);
	_exit(1);
}
