/*
 * See outside.h. This process has the user's rights and faces the program by
 * three ways: the bytes of its terminal, which are passed on unread; messages
 * of pid 1, which is our code; and its end. If this process dies, pid 1 gets
 * SIGKILL (PR_SET_PDEATHSIG), and with pid 1 all processes of the run end.
 */
#include "outside.h"

#include <sys/poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"
#include "helper.h"
#include "inside.h"
#include "terminal.h"

struct outside {
	const struct plan *plan;
	int channel, signals, pidfd;
	pid_t pid;
	sigset_t mask; /* as the caller had it */
	struct helper *helper;
	struct terminal terminal;
	struct cgroup cgroup;
	bool ended;
	int status; /* of mcpbox-run */
	int signal;
};

/* Blocks all signals but those that stop, or report a fault of, this process.
 * They are read from a descriptor. A signal that the caller ignores stays
 * ignored. */
static int
take_signals(struct outside *o, struct err *e)
{
	static const int left[] = {SIGTTIN, SIGTTOU, SIGSEGV, SIGBUS, SIGFPE,
	    SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	sigset_t taken;

	(void)sigfillset(&taken);
	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		(void)sigdelset(&taken, left[i]);
	if (sigprocmask(SIG_BLOCK, &taken, &o->mask) == -1 ||
	    (o->signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)) ==
		-1)
		return err_sys(e, FAILURE_INTERNAL, "signals");
	return 0;
}

static int
refused(struct err *e)
{
	switch (errno) {
	case EPERM:
	case EACCES:
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "user namespaces are not allowed (sysctl "
		    "kernel.unprivileged_userns_clone=1, or "
		    "kernel.apparmor_restrict_unprivileged_userns=0)");
	case ENOSPC:
	case EUSERS:
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "no more user namespaces (raise sysctl "
		    "user.max_user_namespaces)");
	default:
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "new namespaces (the kernel needs CONFIG_USER_NS and "
		    "all other namespaces)");
	}
}

static int
start(struct outside *o, struct inside *in, struct err *e)
{
	struct clone_args args = {
	    .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
		CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_PIDFD,
	    .pidfd = (uint64_t)(uintptr_t)&o->pidfd,
	    .exit_signal = SIGCHLD,
	};
	int pair[2];
	long pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
		return err_sys(e, FAILURE_INTERNAL, "socketpair");
	in->channel = pair[1];
	in->peer = o->channel = pair[0];
	in->dialer = in->dialer_peer = -1;
	if (o->plan->nports > 0) {
		if (socketpair(
			AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == -1)
			return err_sys(e, FAILURE_INTERNAL, "socketpair");
		in->dialer = pair[1];
		in->dialer_peer = o->helper->setup.dialer = pair[0];
	}
	if (o->cgroup.fd != -1) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)o->cgroup.fd;
	}
	in->cgroup = o->cgroup.fd != -1;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == -1 && in->cgroup) {
		/* Not the user's to move processes into. */
		args.flags &= ~(uint64_t)CLONE_INTO_CGROUP;
		in->cgroup = false;
		pid = syscall(SYS_clone3, &args, sizeof(args));
	}
	if (pid == 0)
		inside_main(in);
	if (pid == -1)
		return refused(e);
	close(in->channel);
	if (in->dialer != -1)
		close(in->dialer);
	o->pid = (pid_t)pid;
	/* With hosts it starts when the program's listener has come. */
	return o->plan->nports > 0 && o->plan->nhosts == 0
	    ? helper_start(o->helper, e)
	    : 0;
}

/*
 * Gives the caller's input and output to the program alone, so that the reader
 * of a pipe hears when the program closes it. Messages to the user need
 * standard error, and a terminal needs all three.
 */
static int
let_go(const struct inside *in, struct err *e)
{
	int null;

	if (in->terminal)
		return 0;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null == -1 || dup2(null, STDIN_FILENO) == -1 ||
	    dup2(null, STDOUT_FILENO) == -1)
		return err_sys(e, FAILURE_INTERNAL, "/dev/null");
	close(null);
	return 0;
}

/* Stops this process, and the rest of its job, as the shell expects when the
 * program was stopped; goes on when the shell says so. */
static void
stop(struct outside *o)
{
	terminal_restore(&o->terminal);
	(void)kill(0, SIGSTOP);
	terminal_raw(&o->terminal);
	terminal_size(&o->terminal);
	(void)inside_send(o->channel, INSIDE_GROUP, SIGCONT, "", -1);
}

/* Takes a message of pid 1. 0; -1: the run has failed. */
static int
on_message(struct outside *o, struct err *e)
{
	struct inside_message m;
	int fd;

	if (inside_receive(o->channel, &m, &fd) != 1) {
		o->ended = true; /* killed, by the kernel or the user */
		o->signal = SIGKILL;
		o->status = PLAN_SIGNALLED + SIGKILL;
		return 0;
	}
	switch (m.kind) {
	case INSIDE_FAILED:
		return err_set(e, FAILURE_SANDBOX_UNAVAILABLE, "%s", m.text);
	case INSIDE_TERMINAL:
		terminal_open(&o->terminal, fd);
		return inside_send(o->channel, INSIDE_SIGNAL, 0, "", -1);
	case INSIDE_DNS:
		o->helper->setup.dns = fd;
		return 0;
	case INSIDE_RELAY:
		o->helper->setup.relay[m.value != 0] = fd;
		return 0;
	case INSIDE_LISTENER:
		o->helper->setup.listener = fd;
		return helper_start(o->helper, e);
	case INSIDE_NOT_RUN:
		o->ended = true;
		o->status = m.value == ENOENT ? PLAN_NOT_FOUND : PLAN_NOT_RUN;
		terminal_restore(&o->terminal);
		if (m.value == ENOENT)
			(void)fprintf(stderr,
			    "mcpbox-run: %.256s is not in /usr nor in a "
			    "folder that the program sees: add --ro DIR\n",
			    o->plan->argv[0]);
		else
			(void)fprintf(stderr,
			    "mcpbox-run: %.256s can't be executed: %s\n",
			    o->plan->argv[0], strerror(m.value));
		return 0;
	case INSIDE_STOPPED:
		stop(o);
		return 0;
	case INSIDE_ENDED:
		o->ended = true;
		o->signal = WIFSIGNALED(m.value) ? WTERMSIG(m.value) : 0;
		o->status = o->signal != 0 ? PLAN_SIGNALLED + o->signal
					   : WEXITSTATUS(m.value);
		return 0;
	default:
		return 0;
	}
}

static void
on_signal(struct outside *o)
{
	struct signalfd_siginfo s;

	if (read(o->signals, &s, sizeof(s)) != (ssize_t)sizeof(s))
		return;
	switch (s.ssi_signo) {
	case SIGCHLD:
	case SIGPIPE:
		break;
	case SIGWINCH:
		if (o->terminal.master != -1)
			terminal_size(&o->terminal);
		else
			(void)inside_send(
			    o->channel, INSIDE_GROUP, SIGWINCH, "", -1);
		break;
	case SIGTSTP:
	case SIGCONT:
		(void)inside_send(
		    o->channel, INSIDE_GROUP, (int)s.ssi_signo, "", -1);
		break;
	default:
		/* The terminal's signals are for the whole group, those of a
		 * process for the program. */
		(void)inside_send(o->channel,
		    s.ssi_code > 0 ? INSIDE_GROUP : INSIDE_SIGNAL,
		    (int)s.ssi_signo, "", -1);
		break;
	}
}

enum { AT_CHANNEL, AT_SIGNALS, AT_MASTER, AT_INPUT, AT_REPORT, AT_END };

static int
serve(struct outside *o, struct err *e)
{
	struct terminal *t = &o->terminal;
	struct pollfd p[AT_END];

	while (!o->ended) {
		p[AT_CHANNEL] =
		    (struct pollfd){.fd = o->channel, .events = POLLIN};
		p[AT_SIGNALS] =
		    (struct pollfd){.fd = o->signals, .events = POLLIN};
		p[AT_MASTER] = (struct pollfd){.fd = t->master,
		    .events = (short)(POLLIN | (t->ninput ? POLLOUT : 0))};
		p[AT_INPUT] = (struct pollfd){
		    .fd = t->master != -1 && t->ninput == 0 && !t->hung_up
			? STDIN_FILENO
			: -1,
		    .events = POLLIN};
		p[AT_REPORT] =
		    (struct pollfd){.fd = o->helper->report, .events = POLLIN};
		if (poll(p, AT_END, -1) == -1) {
			if (errno == EINTR)
				continue;
			return err_sys(e, FAILURE_INTERNAL, "poll");
		}
		if (p[AT_SIGNALS].revents != 0)
			on_signal(o);
		if (p[AT_REPORT].revents != 0)
			helper_report(o->helper);
		if ((p[AT_MASTER].revents & POLLOUT) != 0)
			terminal_flush(t);
		if ((p[AT_MASTER].revents & POLLIN) != 0)
			(void)terminal_output(t);
		if (p[AT_INPUT].revents != 0) {
			terminal_input(t);
			if (t->hung_up)
				(void)inside_send(
				    o->channel, INSIDE_GROUP, SIGHUP, "", -1);
		}
		if (p[AT_CHANNEL].revents != 0 && on_message(o, e) == -1)
			return -1;
	}
	return 0;
}

/* Waits until the last process of the run has ended. */
static void
finish(struct outside *o)
{
	siginfo_t info;

	if (o->pid > 0) {
		(void)kill(o->pid, SIGKILL);
		while (waitid(P_PID, (id_t)o->pid, &info, WEXITED) == -1 &&
		    errno == EINTR)
			continue;
	}
	helper_close(o->helper);
	terminal_close(&o->terminal);
	cgroup_remove(&o->cgroup);
}

/*
 * Refuses a caller's descriptor that is a socket of the host's network. The
 * program could connect it
 * again (AF_UNSPEC undoes a connection), and would reach
 * each host that this machine reaches. A unix socket is allowed if it is
 * connected and sends to its peer alone: Node.js starts its children with such.
 */
static int
judge_descriptors(struct err *e)
{
	struct sockaddr_storage peer;
	socklen_t n;
	int domain, type;

	for (int fd = 0; fd < 3; fd++) {
		n = sizeof(domain);
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == -1)
			continue;
		n = sizeof(type);
		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == -1)
			type = -1;
		n = sizeof(peer);
		if (domain == AF_UNIX && type != SOCK_DGRAM &&
		    getpeername(fd, (struct sockaddr *)&peer, &n) == 0)
			continue;
		return err_set(e, FAILURE_FORBIDDEN,
		    "descriptor %d is a socket of this machine's network: put "
		    "a pipe in between (cat)",
		    fd);
	}
	return 0;
}

/*
 * Decides on the program's terminal. It gets one of its own if it is run in the
 * foreground of a terminal, with input and output there. In the background a
 * terminal can't be read, so input is empty.
 */
static int
choose_terminal(struct inside *in, struct err *e)
{
	const bool front = tcgetpgrp(STDIN_FILENO) == getpgrp();
	int null;

	for (int i = 0; i < 3; i++)
		in->tty[i] = isatty(i) == 1;
	in->terminal = in->tty[0] && in->tty[1] && front;
	if (!in->tty[0] || front)
		return 0;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null == -1 || dup2(null, STDIN_FILENO) == -1)
		return err_sys(e, FAILURE_INTERNAL, "/dev/null");
	close(null);
	return 0;
}

int
outside_run(const struct plan *p, struct helper *h, struct plan_report *r,
    struct err *e)
{
	struct outside o = {.plan = p,
	    .helper = h,
	    .channel = -1,
	    .signals = -1,
	    .pidfd = -1,
	    .terminal = {.master = -1},
	    .cgroup = {.fd = -1}};
	struct inside in = {.plan = p, .sigmask = &o.mask};
	int rc = -1;

	(void)cgroup_make(&o.cgroup, p);
	if (judge_descriptors(e) == -1 || choose_terminal(&in, e) == -1 ||
	    take_signals(&o, e) == -1 || start(&o, &in, e) == -1 ||
	    let_go(&in, e) == -1)
		goto out;
	rc = serve(&o, e);
out:
	finish(&o);
	r->status = o.status;
	r->signal = o.signal;
	return rc;
}
