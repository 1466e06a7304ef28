/* See helper.h. */
#include "helper.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void
shut(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

static void
shut_setup(struct net_setup *s)
{
	shut(&s->listener);
	shut(&s->dns);
	shut(&s->relay[0]);
	shut(&s->relay[1]);
	shut(&s->dialer);
	shut(&s->report);
	for (size_t i = 0; i < PLAN_PORTS_MAX; i++)
		shut(&s->published[i]);
}

int
helper_open(struct helper *h, const struct plan *p, struct err *e)
{
	struct sockaddr_in in = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int on = 1;
	int fd;

	*h = (struct helper){.report = -1,
	    .setup = {.plan = p,
		.listener = -1,
		.dns = -1,
		.relay = {-1, -1},
		.dialer = -1,
		.report = -1}};
	for (size_t i = 0; i < PLAN_PORTS_MAX; i++)
		h->setup.published[i] = -1;
	for (size_t i = 0; i < p->nports; i++) {
		fd = socket(
		    AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		h->setup.published[i] = fd;
		in.sin_port = htons(p->port[i]);
		/* A connection of an earlier run may linger. */
		if (fd == -1 ||
		    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ==
			-1 ||
		    bind(fd, (struct sockaddr *)&in, sizeof(in)) == -1 ||
		    listen(fd, SOMAXCONN) == -1)
			return err_sys(e, FAILURE_INVALID_PARAMS,
			    "--publish %u (choose a free port, above 1023)",
			    p->port[i]);
	}
	return 0;
}

/* The child keeps the descriptors of its setup, and standard error. */
static _Noreturn void
become(struct net_setup *s)
{
	const int kept[] = {s->listener, s->dns, s->relay[0], s->relay[1],
	    s->dialer, s->report};
	const size_t n = sizeof(kept) / sizeof(kept[0]);
	bool keep;

	/* The highest descriptor that this program can have by now is far below
	 * this bound: it began with three. */
	for (int fd = 3; fd < 256; fd++) {
		keep = false;
		for (size_t i = 0; i < n; i++)
			keep |= kept[i] == fd;
		for (size_t i = 0; i < PLAN_PORTS_MAX; i++)
			keep |= s->published[i] == fd;
		if (!keep)
			close(fd);
	}
	net_main(s);
}

int
helper_start(struct helper *h, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
		return err_sys(e, FAILURE_INTERNAL, "socketpair");
	h->report = pair[0];
	h->setup.report = pair[1];
	if ((h->pid = fork()) == -1)
		return err_sys(e, FAILURE_INTERNAL, "fork");
	if (h->pid == 0)
		become(&h->setup);
	shut_setup(&h->setup);
	return 0;
}

/* Receives one record. 1; 0: none now; -1: the process is gone. */
static int
receive(struct helper *h)
{
	struct plan_denied d;
	ssize_t n = recv(h->report, &d, sizeof(d), MSG_DONTWAIT);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	/* Another size is the greeting. The process may be taken over: the
	 * texts are ended here. */
	if (n == (ssize_t)sizeof(d) && h->ndenied < NET_DENIED_MAX) {
		d.host[sizeof(d.host) - 1] = '\0';
		d.why[sizeof(d.why) - 1] = '\0';
		h->denied[h->ndenied++] = d;
	}
	return 1;
}

void
helper_report(struct helper *h)
{
	if (receive(h) == -1)
		shut(&h->report);
}

void
helper_close(struct helper *h)
{
	while (h->report != -1 && receive(h) == 1)
		continue;
	if (h->pid > 0) {
		(void)kill(h->pid, SIGKILL);
		while (waitpid(h->pid, NULL, 0) == -1 && errno == EINTR)
			continue;
	}
	h->pid = 0;
	shut(&h->report);
	shut_setup(&h->setup);
}
