/* See nspool.h. */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nspool.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* pool-init's fixed descriptors. They are first copied to PARK_FD or above, so
 * that no dup2() below overwrites a descriptor that is still needed. */
enum { BROKER_FD = 3, LIVENESS_FD = 4, CGROUP_FD = 5, PARK_FD = 64 };

/* The child's data, prepared before the clone: the child allocates nothing. */
struct child {
	const char *path;
	const struct nspool_paths *paths;
	int broker, liveness, sync, cgroup;
};

/* Writes the failed step to standard error (the journal), and ends the
 * child. */
static _Noreturn void
child_die(const char *step)
{
	char text[128];
	int n;

	n = snprintf(
	    text, sizeof(text), "<3>pool child: %s: errno %d\n", step, errno);
	if (n > 0 && write(2, text, (size_t)n) < 0)
		_exit(126);
	_exit(126);
}

/*
 * Runs the child. The child is in its namespaces already, has every capability
 * in them and none outside. It waits until the parent has written the id maps,
 * becomes uid and gid 0 inside, and drops every supplementary group (a host
 * group would give access to host files). It keeps four descriptors: standard
 * error for the log, the socket to sandboxd (broker), the liveness socket, and
 * the directory of the pool's cgroup if there is one.
 */
static _Noreturn void
child_main(const struct child *c)
{
	char *argv[] = {(char *)(uintptr_t)c->path,
	    (char *)(uintptr_t)c->paths->libexec,
	    (char *)(uintptr_t)c->paths->modules,
	    (char *)(uintptr_t)c->paths->commands, NULL};
	char *envp[] = {NULL};
	struct sigaction dfl;
	sigset_t none;
	char go;
	int a, b, group = -1, null;

	/*
	 * spawn isn't dumpable, and so its child isn't. The files in /proc/PID
	 * of a process that isn't dumpable belong to root, so spawn could not
	 * write the id maps. This process holds no secret. Only a process of
	 * its own uid could look at it, and spawn alone has that uid.
	 */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0)
		child_die("dumpable");
	go = 'r';
	if (write(c->sync, &go, 1) != 1 || read(c->sync, &go, 1) != 1)
		child_die("id maps");
	/*
	 * clone3 does not make this namespace, because spawn's cgroup would
	 * then be the namespace's root. The root is a boundary: under
	 * nsdelegate no process in the pool can move a process out of the root,
	 * or change the root's limits.
	 */
	if (unshare(CLONE_NEWCGROUP) != 0)
		child_die("cgroup namespace");
	if (setgroups(0, NULL) != 0)
		child_die("setgroups");
	if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
		child_die("setresuid");
	a = fcntl(c->broker, F_DUPFD, PARK_FD);
	b = fcntl(c->liveness, F_DUPFD, PARK_FD);
	if (c->cgroup >= 0)
		group = fcntl(c->cgroup, F_DUPFD, PARK_FD);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (a < 0 || b < 0 || null < 0 || (c->cgroup >= 0 && group < 0))
		child_die("descriptors");
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(a, BROKER_FD) < 0 ||
	    dup2(b, LIVENESS_FD) < 0 ||
	    (group >= 0 && dup2(group, CGROUP_FD) < 0) ||
	    syscall(SYS_close_range,
		group >= 0 ? CGROUP_FD + 1 : LIVENESS_FD + 1, ~0U, 0) != 0)
		child_die("descriptors");
	memset(&dfl, 0, sizeof(dfl));
	dfl.sa_handler = SIG_DFL;
	for (int i = 1; i < 32; i++)
		(void)sigaction(i, &dfl, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* The pool builds the runners' root, and other uids must read it. The
	 * daemons' umask of 077 would forbid that. */
	(void)umask(022);
	if (chdir("/") != 0)
		child_die("chdir");
	execve(c->path, argv, envp);
	child_die(c->path);
}

/* Writes a map in one write, because the kernel takes a map only once and
 * whole. */
static int
put_map(pid_t pid, const char *which, uint32_t own, const struct nspool_map *m,
    struct err *e)
{
	char path[64], text[96];
	int fd, n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, which);
	n = snprintf(
	    text, sizeof(text), "0 %u 1\n1 %u %u\n", own, m->base, m->count);
	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "open %s", path);
	if (write(fd, text, (size_t)n) != n) {
		(void)err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "write %s", path);
		close(fd);
		return -1;
	}
	close(fd);
	return 0;
}

/* Waits for the child's byte, writes the maps, lets the child go on. gid_map
 * comes first. spawn has CAP_SETGID, so setgroups(2), which the child needs,
 * stays allowed in the namespace. */
static int
admit(pid_t pid, int sync, const struct nspool_map *m, struct err *e)
{
	char byte;

	if (read(sync, &byte, 1) != 1)
		return err_set(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "the pool's child ended early");
	if (put_map(pid, "gid_map", (uint32_t)m->gid, m, e) != 0 ||
	    put_map(pid, "uid_map", (uint32_t)m->uid, m, e) != 0)
		return -1;
	if (write(sync, "g", 1) != 1)
		return err_sys(
		    e, FAILURE_SANDBOX_UNAVAILABLE, "the pool's child");
	return 0;
}

static void
close_pair(int sv[2])
{
	for (int i = 0; i < 2; i++) {
		if (sv[i] >= 0)
			close(sv[i]);
		sv[i] = -1;
	}
}

int
nspool_start(struct nspool *p, const struct nspool_map *m,
    const struct nspool_paths *paths, int cgroup, int *broker, struct err *e)
{
	int b[2] = {-1, -1}, l[2] = {-1, -1}, s[2] = {-1, -1};
	int pidfd = -1, rc = -1;
	struct clone_args ca = {
	    .flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
		CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD,
	    .pidfd = (uint64_t)(uintptr_t)&pidfd,
	    .exit_signal = SIGCHLD,
	};
	char path[256];
	struct child c;
	pid_t pid;
	int n;

	n = snprintf(path, sizeof(path), "%s/mcpbox-pool-init", paths->libexec);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(
		    e, FAILURE_SANDBOX_UNAVAILABLE, "libexec_dir is too long");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, b) != 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, l) != 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) != 0) {
		(void)err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "socketpair");
		goto out;
	}
	c.path = path;
	c.paths = paths;
	c.broker = b[1];
	c.liveness = l[1];
	c.sync = s[1];
	c.cgroup = cgroup;
	if (cgroup >= 0) {
		ca.flags |= CLONE_INTO_CGROUP;
		ca.cgroup = (uint64_t)cgroup;
	}
	pid = (pid_t)syscall(SYS_clone3, &ca, sizeof(ca));
	if (pid < 0) {
		(void)err_sys(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "clone3 with the pool's namespaces");
		goto out;
	}
	if (pid == 0) {
		/* If the child kept a copy of spawn's end, the child would wait
		 * for ever after spawn was killed. */
		close(s[0]);
		child_main(&c);
	}
	close(s[1]);
	s[1] = -1;
	p->pid = pid;
	p->pidfd = pidfd;
	p->liveness = l[0];
	l[0] = -1;
	if (admit(pid, s[0], m, e) != 0) {
		nspool_kill(p);
		nspool_reap(p);
		goto out;
	}
	*broker = b[0];
	b[0] = -1;
	rc = 0;
out:
	close_pair(b);
	close_pair(l);
	close_pair(s);
	return rc;
}

void
nspool_kill(struct nspool *p)
{
	if (p->pid != 0)
		(void)syscall(
		    SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
	if (p->liveness >= 0)
		close(p->liveness);
	p->liveness = -1;
}

void
nspool_reap(struct nspool *p)
{
	siginfo_t si;

	if (p->pid == 0)
		return;
	while (waitid(P_PIDFD, (id_t)p->pidfd, &si, WEXITED) != 0 &&
	    errno == EINTR)
		;
	close(p->pidfd);
	if (p->liveness >= 0)
		close(p->liveness);
	p->pid = 0;
	p->pidfd = p->liveness = -1;
}
