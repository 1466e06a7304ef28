/* See starter.h. */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "setup.h"
#include "starter.h"

/* A fork takes less than a ms; a starter that does not answer in this time is
 * broken. */
enum { ANSWER_S = 10 };

/* The programs that the starter can start, as the byte of a request. */
enum { ZYGOTE, PEEK, PROGRAMS };

static const char *const name[PROGRAMS] = {"mcpbox-runner", "mcpbox-peek"};
static char path[PROGRAMS][256];
static int to_starter = -1;

/* Executes a program, in the child. Descriptors 0 to 2 stay, 3 becomes the
 * socket, and all others are closed. */
static _Noreturn void
exec_program(
    int which, const struct cgroup *cg, char *const settings[3], int sock)
{
	char *argv[] = {path[which], settings[1], settings[2], NULL};
	/* The loader resolves all symbols at the start. Otherwise each runner
	 * would resolve a symbol again at its first use, by reading the tables
	 * of all libraries. */
	static char bind_now[] = "LD_BIND_NOW=1";
	char *envp[] = {bind_now, NULL};
	sigset_t none;

	if (which == PEEK)
		argv[1] = NULL; /* peek stays in our cgroup */
	else if (cgroup_enter_zygote(cg) != 0)
		_exit(126);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (sock == SETUP_ZYGOTE_FD) {
		if (fcntl(sock, F_SETFD, 0) != 0)
			_exit(126);
	} else if (dup2(sock, SETUP_ZYGOTE_FD) < 0)
		_exit(126);
	if (syscall(SYS_close_range, SETUP_ZYGOTE_FD + 1, ~0U, 0) != 0)
		_exit(126);
	execve(path[which], argv, envp);
	_exit(127);
}

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int))];
};

/* Sends one byte and a descriptor. -1 with errno. */
static int
send_fd(int sock, char byte, int fd)
{
	union control control = {0};
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.room,
	    .msg_controllen = sizeof(control.room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(sock, &m, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* Receives one byte and a descriptor. Returns the descriptor, or -1 if the
 * other side closed or sent something else. */
static int
receive_fd(int sock, char *byte)
{
	union control control = {0};
	struct iovec iov = {.iov_base = byte, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.room,
	    .msg_controllen = sizeof(control.room)};
	struct cmsghdr *c;
	int fd;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1 ||
	    (c = CMSG_FIRSTHDR(&m)) == NULL || c->cmsg_level != SOL_SOCKET ||
	    c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* Closes all descriptors from 3 on but a and b: the starter must hold neither
 * sandboxd's socket nor spawn's. */
static int
close_others(int a, int b)
{
	unsigned low = (unsigned)(a < b ? a : b);
	unsigned high = (unsigned)(a < b ? b : a);

	if (a < 0 || b < 0)
		low = high;
	if (low > 3 && syscall(SYS_close_range, 3, low - 1, 0) != 0)
		return -1;
	if (high > low + 1 &&
	    syscall(SYS_close_range, low + 1, high - 1, 0) != 0)
		return -1;
	return (int)syscall(SYS_close_range, high + 1, ~0U, 0);
}

/* Turns "/usr/libexec/mcpbox/mcpbox-pool-init" into ".../mcpbox-starter". */
static void
rename_process(char *argv0)
{
	static const char own[] = "mcpbox-starter";
	char *base = strrchr(argv0, '/');

	base = base != NULL ? base + 1 : argv0;
	if (strlen(base) >= strlen(own)) {
		memset(base, 0, strlen(base));
		memcpy(base, own, sizeof(own));
	}
	(void)prctl(PR_SET_NAME, own, 0, 0, 0);
}

static _Noreturn void
serve(const struct cgroup *cg, char *const argv[4], int sock)
{
	long pid;
	char which;
	int fd;

	rename_process(argv[0]);
	/* no_new_privs: no program gets a right that the starter lacks. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ||
	    close_others(sock, cg->zygote) != 0)
		_exit(126);
	while ((fd = receive_fd(sock, &which)) >= 0) {
		if (which < 0 || which >= PROGRAMS)
			break;
		pid = syscall(SYS_clone, CLONE_PARENT, 0, 0, 0, 0);
		if (pid == 0)
			exec_program(which, cg, argv + 1, fd);
		close(fd);
		if (send(sock, &pid, sizeof(pid), MSG_NOSIGNAL) !=
		    (ssize_t)sizeof(pid))
			break;
	}
	_exit(0);
}

pid_t
starter_start(const struct cgroup *cg, char *const argv[4], struct err *e)
{
	struct timeval tv = {.tv_sec = ANSWER_S};
	int sv[2], n;
	pid_t p;

	for (int i = 0; i < PROGRAMS; i++) {
		n = snprintf(
		    path[i], sizeof(path[i]), "%s/%s", argv[1], name[i]);
		if (n < 0 || (size_t)n >= sizeof(path[i]))
			return err_set(e, FAILURE_SANDBOX_UNAVAILABLE,
			    "libexec_dir is too long");
		if (access(path[i], X_OK) != 0)
			return err_sys(
			    e, FAILURE_SANDBOX_UNAVAILABLE, "%s", path[i]);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "socketpair");
	if (setsockopt(sv[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) != 0 ||
	    setsockopt(sv[0], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) != 0 ||
	    (p = fork()) < 0) {
		(void)err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "fork");
		close(sv[0]);
		close(sv[1]);
		return -1;
	}
	if (p == 0)
		serve(cg, argv, sv[1]);
	close(sv[1]);
	to_starter = sv[0];
	return p;
}

static int
start(int which, int *sock, pid_t *pid, struct err *e)
{
	int sv[2], sent;
	long p = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "socketpair");
	sent = send_fd(to_starter, (char)which, sv[1]);
	close(sv[1]);
	if (sent != 0 ||
	    recv(to_starter, &p, sizeof(p), 0) != (ssize_t)sizeof(p) ||
	    p <= 0) {
		close(sv[0]);
		return err_set(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "%s was not started", name[which]);
	}
	*sock = sv[0];
	*pid = (pid_t)p;
	return 0;
}

int
starter_zygote(int *sock, pid_t *pid, struct err *e)
{
	return start(ZYGOTE, sock, pid, e);
}

int
starter_peek(int *sock, pid_t *pid, struct err *e)
{
	return start(PEEK, sock, pid, e);
}
