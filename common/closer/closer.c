#include "closer.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "rights.h"

enum {
	SOCKET = 3, /* the only descriptor besides standard error */
	/* The lowest priority, so that work caused by a hostile tool takes time
	 * only from work of the same kind. */
	NICE = 19
};

/* Returns the descriptor that came with a packet; -1: none. */
static int
received(struct msghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd;

	if (c == NULL || c->cmsg_level != SOL_SOCKET ||
	    c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/*
 * Holds each descriptor until the next packet. The sender sends that packet
 * after it has closed its own copy of the descriptor. So the last close, and
 * all its work, happens here.
 */
static void
serve(void)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr m;
	int held = -1;
	ssize_t n;

	for (;;) {
		m = (struct msghdr){.msg_iov = &iov,
		    .msg_iovlen = 1,
		    .msg_control = control.buf,
		    .msg_controllen = sizeof(control.buf)};
		n = recvmsg(SOCKET, &m, MSG_CMSG_CLOEXEC);
		if (n == -1 && errno == EINTR)
			continue;
		if (held != -1)
			(void)close(held);
		if (n <= 0)
			return;
		held = received(&m);
	}
}

/*
 * Runs the closer. Its memory is a copy of its parent's, made before the parent
 * knew a secret. Every signal stays blocked, for two reasons. Signals that end
 * the parent are for the parent alone; the closer ends after the parent has
 * ended. And the inherited handlers would write into the parent's loop.
 */
static _Noreturn void
closer(int sock)
{
	static const struct confine_spec spec = {.process = "closer",
	    .landlock = true,
	    .landlock_signal_scope = true,
	    .seccomp = true};
	struct err e;

	(void)prctl(PR_SET_NAME, "mcpbox-closer");
	/* The service's system-call filter may refuse this call. The closer
	 * then works at normal priority. */
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	if (sock != SOCKET && dup2(sock, SOCKET) == -1)
		_exit(1);
	(void)close(0);
	(void)close(1);
	if (close_range(SOCKET + 1, ~0U, 0) != 0)
		_exit(1);
	if (confine_self(&spec, NULL, &e) != 0) {
		log_event(LOG_LV_ERR, "closer", "%s", e.text);
		_exit(1);
	}
	serve();
	_exit(0);
}

int
closer_start(struct err *e)
{
	sigset_t all, before;
	int pair[2];
	pid_t pid;

	if (rights_refusable())
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return err_sys(e, FAILURE_INTERNAL, "socketpair");
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	if ((pid = fork()) == 0)
		closer(pair[1]);
	if (pid == -1)
		(void)err_sys(e, FAILURE_INTERNAL, "fork");
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)close(pair[1]);
	if (pid == -1) {
		(void)close(pair[0]);
		return -1;
	}
	rights_closer(pair[0]);
	return 1;
}
