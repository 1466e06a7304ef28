/*
 * The last step: egress' connected socket takes the number of the runner's own
 * socket. egress' socket also gets the properties of the runner's socket:
 * blocking or not, close-on-exec, time limits, keep-alive and the rest of
 * peek_look.c's list.
 *
 * The thread that waits in connect(2) takes the descriptor itself, and ADDFD
 * waits until that thread gets a processor. A tool can keep its threads from
 * running, by using up its limited share of processor time. So a timer ends the
 * wait after PUT_MS, and peek.c tries again later, after a longer pause each
 * time.
 *
 * peek holds a second reference to the socket, which peek.c closes after
 * peek_put. That close must not wait for anything that a tool decides:
 * filter_net.c says how SO_LINGER would make it wait.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>

#include "peek_look.h"
#include "peek_put.h"

enum {
	/* A waiting thread takes the socket within some us. */
	PUT_MS = 5
};

static void
on_alarm(int sig)
{
	(void)sig; /* it only interrupts */
}

int
peek_put_start(void)
{
	struct sigaction a;

	memset(&a, 0, sizeof(a));
	a.sa_handler = on_alarm; /* no SA_RESTART */
	return sigaction(SIGALRM, &a, NULL);
}

/* Starts the timer. It repeats, because an alarm that came before the wait
 * began would not end the wait. */
static void
timer(int ms)
{
	const struct timeval tv = {.tv_usec = ms * 1000};
	const struct itimerval it = {.it_interval = tv, .it_value = tv};

	(void)setitimer(ITIMER_REAL, &it, NULL);
}

static int
int_option(int sock, int option)
{
	socklen_t n = sizeof(int);
	int value = -1;

	return getsockopt(sock, SOL_SOCKET, option, &value, &n) == 0 ? value
								     : -1;
}

/*
 * Tells whether egress' socket may be put into a runner. Allowed are a TCP
 * socket, and an end of a socketpair of type stream (the resolver) or packets
 * (a UDP relay). A datagram socket is never allowed: each datagram can name a
 * receiver, so the runner would reach the host's other UDP ports, or the host's
 * abstract unix sockets, without being judged.
 */
static bool
fit(int sock)
{
	const int domain = int_option(sock, SO_DOMAIN);
	const int type = int_option(sock, SO_TYPE);

	if (domain == AF_INET || domain == AF_INET6)
		return type == SOCK_STREAM &&
		    int_option(sock, SO_PROTOCOL) == IPPROTO_TCP;
	return domain == AF_UNIX &&
	    (type == SOCK_STREAM || type == SOCK_SEQPACKET);
}

/* Copies the options that this kind of socket has. */
static void
carry_over(int sock, const struct peek_connect *c)
{
	const struct peek_option *o;
	unsigned char now[PEEK_OPTION_BYTES];
	socklen_t n;

	for (unsigned i = 0; i < c->noptions; i++) {
		o = &c->option[i];
		n = sizeof(now);
		if (getsockopt(sock, o->level, o->option, now, &n) == 0 &&
		    (n != o->n || memcmp(now, o->value, n) != 0))
			(void)setsockopt(
			    sock, o->level, o->option, o->value, o->n);
	}
}

static int
set_blocking(int sock, bool nonblocking)
{
	const int flags = fcntl(sock, F_GETFL);

	if (flags < 0)
		return -1;
	return fcntl(sock, F_SETFL,
	    nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

enum peek_put_result
peek_put(int listener, const struct peek_wait *w)
{
	const struct peek_connect *c = &w->connect;
	struct seccomp_notif_addfd add = {
	    .id = c->id,
	    .flags = SECCOMP_ADDFD_FLAG_SETFD,
	    .srcfd = (uint32_t)w->socket,
	    .newfd = (uint32_t)c->fd,
	    .newfd_flags = c->cloexec ? O_CLOEXEC : 0,
	};
	int rc, error;

	if (!fit(w->socket) || set_blocking(w->socket, c->nonblocking) != 0) {
		peek_look_answer(listener, c->id, EIO);
		return PEEK_PUT_BAD;
	}
	carry_over(w->socket, c);
	timer(PUT_MS);
	rc = ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	error = errno;
	timer(0);
	if (rc < 0 && error == EINTR)
		return PEEK_PUT_LATER;
	/* ENOENT: the caller is gone. Other errors are about the caller's
	 * descriptor table, so its connect(2) fails with them. */
	if (rc >= 0 || error != ENOENT)
		peek_look_answer(listener, c->id, rc >= 0 ? w->error : error);
	return PEEK_PUT_DONE;
}
