/*
 * pid 1 of the run. It builds the root with the capabilities that a new user
 * namespace gives, drops them all, starts the program, and then only reaps and
 * passes signals on. When it ends, the kernel kills each process of the
 * namespace: so the end of the program, or of the process outside, ends all.
 *
 * The program has the same uid. It can't signal pid 1 (the kernel drops signals
 * to pid 1 from its namespace, since pid 1 has no handler), nor
 * trace it or read its memory, environment or descriptors: pid 1 is not
 * dumpable.
 */
#include <sys/ioctl.h>
#include <sys/poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caps.h"
#include "inside.h"

/* KEYCTL_JOIN_SESSION_KEYRING (linux/keyctl.h). */
enum { JOIN_SESSION_KEYRING = 1 };

static _Noreturn void
fail(const struct inside *in, const struct err *e)
{
	(void)inside_send(in->channel, INSIDE_FAILED, 0, e->text, -1);
	_exit(PLAN_FAILED);
}

static int
write_file(const char *path, const char *text, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd != -1) {
		n = write(fd, text, strlen(text));
		close(fd);
	}
	if (n != (ssize_t)strlen(text))
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "%s (allow user namespaces: sysctl "
		    "kernel.apparmor_restrict_unprivileged_userns=0)",
		    path);
	return 0;
}

/* Maps the caller's own uid and gid to themselves. The kernel lets an
 * unprivileged process map nothing else. */
static int
map_ids(const struct plan *p, struct err *e)
{
	char text[64];

	if (write_file("/proc/self/setgroups", "deny", e) == -1)
		return -1;
	(void)snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)p->uid,
	    (unsigned)p->uid);
	if (write_file("/proc/self/uid_map", text, e) == -1)
		return -1;
	(void)snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)p->gid,
	    (unsigned)p->gid);
	return write_file("/proc/self/gid_map", text, e);
}

/* Brings the loopback device up: servers of the program on localhost work. The
 * namespace has no other device. */
static int
loopback_up(struct err *e)
{
	struct ifreq r;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	memset(&r, 0, sizeof(r));
	(void)snprintf(r.ifr_name, sizeof(r.ifr_name), "lo");
	r.ifr_flags = IFF_UP;
	rc = fd == -1 ? -1 : ioctl(fd, SIOCSIFFLAGS, &r);
	if (fd != -1)
		close(fd);
	if (rc == -1)
		return err_sys(e, FAILURE_INTERNAL, "the loopback device");
	return 0;
}

/* Gives up everything that was needed to build the sandbox. */
static int
drop_rights(struct err *e)
{
	/* A new, empty session keyring: the caller's is the only keyring that
	 * the new user namespace inherits. A kernel without keys answers
	 * ENOSYS. */
	if (syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL, 0, 0, 0) == -1 &&
	    errno != ENOSYS)
		return err_sys(e, FAILURE_INTERNAL, "the session keyring");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    prctl(PR_SET_SECUREBITS,
		SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
		    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
		    SECBIT_NO_CAP_AMBIENT_RAISE |
		    SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		0, 0, 0) == -1)
		return err_sys(e, FAILURE_INTERNAL, "prctl");
	if (caps_bound(0) == -1 || caps_none() == -1)
		return err_sys(e, FAILURE_INTERNAL, "capabilities");
	return filter_load(e);
}

/* Makes a terminal in the new devpts, makes it that of this session, and sends
 * its master outside. */
static int
make_terminal(const struct inside *in, char *slave, size_t n, struct err *e)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int unlocked = 0, number, fd = -1, rc = 0;

	/* The slave stays open here: reading the master then never fails
	 * because the program has no copy open at the moment. */
	if (master == -1 || ioctl(master, TIOCSPTLCK, &unlocked) == -1 ||
	    ioctl(master, TIOCGPTN, &number) == -1)
		rc = err_sys(e, FAILURE_INTERNAL, "a terminal");
	else
		(void)snprintf(slave, n, "/dev/pts/%d", number);
	/* The receiver sets the window's size before the program can ask: it
	 * answers with a message. */
	if (rc == 0 &&
	    ((fd = open(slave, O_RDWR | O_NOCTTY | O_CLOEXEC)) == -1 ||
		ioctl(fd, TIOCSCTTY, 0) == -1))
		rc = err_sys(e, FAILURE_INTERNAL, "a terminal");
	if (rc == 0 &&
	    inside_send(in->channel, INSIDE_TERMINAL, 0, "", master) == -1)
		rc = err_sys(e, FAILURE_INTERNAL, "send the terminal");
	if (master != -1)
		close(master);
	return rc;
}

/* Waits until the outside has prepared the terminal. It answers INSIDE_SIGNAL
 * with signal 0. */
static void
await_go(const struct inside *in)
{
	struct inside_message m;
	int fd;

	if (inside_receive(in->channel, &m, &fd) != 1)
		_exit(PLAN_FAILED);
}

/* A result of the program's process before execve. */
struct start {
	int error;      /* of execve */
	struct err why; /* text[0] != 0: of a step before it */
};

static pid_t
start(const struct inside *in, const char *slave, int report[2])
{
	struct start s;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC) == -1)
		return -1;
	if ((pid = fork()) != 0) {
		close(report[1]);
		if (pid != -1)
			(void)setpgid(pid, pid); /* as the child does */
		return pid;
	}
	memset(&s, 0, sizeof(s));
	s.error = program_run(in, slave, &s.why);
	(void)!write(report[1], &s, sizeof(s));
	_exit(PLAN_NOT_FOUND);
}

/* Tells the outside how the start failed. Returns false if the program was
 * started: execve has closed the pipe. */
static bool
failed_start(const struct inside *in, int report)
{
	struct start s;

	if (read(report, &s, sizeof(s)) != (ssize_t)sizeof(s))
		return false;
	if (s.why.text[0] != '\0')
		fail(in, &s.why);
	(void)inside_send(in->channel, INSIDE_NOT_RUN, s.error, "", -1);
	return true;
}

/* Reaps. Ends pid 1 when the program has ended. */
static void
reap(const struct inside *in, pid_t program, int report)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != program)
			continue;
		if (WIFSTOPPED(status)) {
			(void)inside_send(in->channel, INSIDE_STOPPED,
			    WSTOPSIG(status), "", -1);
			continue;
		}
		if (!failed_start(in, report))
			(void)inside_send(
			    in->channel, INSIDE_ENDED, status, "", -1);
		_exit(0);
	}
}

static void
obey(const struct inside *in, pid_t program)
{
	struct inside_message m;
	int fd;

	if (inside_receive(in->channel, &m, &fd) != 1)
		_exit(PLAN_FAILED); /* the outside is gone: all ends */
	if (fd != -1)
		close(fd);
	if (m.kind == INSIDE_SIGNAL)
		(void)kill(program, m.value);
	else if (m.kind == INSIDE_GROUP)
		(void)kill(-program, m.value);
}

static _Noreturn void
serve(const struct inside *in, pid_t program, int report, int children)
{
	struct pollfd p[] = {{.fd = in->channel, .events = POLLIN},
	    {.fd = children, .events = POLLIN},
	    {.fd = in->dialer, .events = POLLIN}};
	struct signalfd_siginfo info;

	for (;;) {
		if (poll(p, 3, -1) == -1 && errno != EINTR)
			_exit(PLAN_FAILED);
		if (p[1].revents != 0 &&
		    read(children, &info, sizeof(info)) > 0)
			reap(in, program, report);
		if (p[0].revents != 0)
			obey(in, program);
		if (p[2].revents != 0 && !ways_dial(in->dialer))
			p[2].fd = -1;
	}
}

void
inside_main(const struct inside *in)
{
	static struct err e;
	struct pollfd gone = {.fd = in->channel};
	char slave[32];
	int report[2], children;
	sigset_t child;
	pid_t program;

	close(in->peer);
	if (in->dialer_peer != -1)
		close(in->dialer_peer);
	/* The outside may have ended before prctl: then the pair is closed. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    poll(&gone, 1, 0) != 0)
		_exit(PLAN_FAILED);
	(void)prctl(PR_SET_NAME, "mcpbox-run", 0, 0, 0);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (children == -1) {
		err_sys(&e, FAILURE_INTERNAL, "signalfd");
		fail(in, &e);
	}
	if (map_ids(in->plan, &e) == -1 || root_enter(in->plan, &e) == -1 ||
	    loopback_up(&e) == -1 ||
	    (in->plan->nhosts > 0 && ways_open(in, &e) == -1))
		fail(in, &e);
	if (sethostname("sandbox", 7) == -1 || setdomainname("", 0) == -1) {
		err_sys(&e, FAILURE_INTERNAL, "the host's name");
		fail(in, &e);
	}
	/* The program gets a group in this session, and no process outside is
	 * in the session: kill(0) and the terminal's signals stay inside. */
	if (setsid() == -1) {
		err_sys(&e, FAILURE_INTERNAL, "setsid");
		fail(in, &e);
	}
	if (in->terminal) {
		if (make_terminal(in, slave, sizeof(slave), &e) == -1)
			fail(in, &e);
		await_go(in);
	}
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1 || drop_rights(&e) == -1)
		fail(in, &e);
	program = start(in, in->terminal ? slave : NULL, report);
	if (program == -1) {
		err_sys(&e, FAILURE_INTERNAL, "fork");
		fail(in, &e);
	}
	/* The program has the only copies of the caller's input and output: a
	 * reader of a pipe sees its end when the program closes it. */
	for (int i = 0; i < 3; i++)
		close(i);
	serve(in, program, report[0], children);
}
