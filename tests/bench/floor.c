/*
 * bench-floor -n COUNT [-m BINDS]
 *
 * What this kernel charges for a process with namespaces of its own, and
 * nothing else: inside a user namespace, COUNT times, one after the other,
 * clone3 with the namespaces that a runner gets, the mounts that a runner
 * makes (proc, two tmpfs, pivot_root, the old root detached), exit, reaped.
 * No interpreter, no privileges dropped, no filter, no code, no answer.
 *
 * With -m the root that the process inherits has that many read-only binds,
 * as the root of a runner has: the kernel copies each of them at the clone.
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "times.h"

#define BASE "/tmp" /* in a mount namespace of our own */

enum {
	COUNT_MAX = 1000000,
	BINDS_MAX = 512,
	NAMESPACES = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC |
	    CLONE_NEWUTS | CLONE_NEWCGROUP
};

static void
put(const char *path, const char *text)
{
	const size_t n = strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd == -1 || write(fd, text, n) != (ssize_t)n)
		err(1, "%s", path);
	(void)close(fd);
}

/* The one process that is cloned: it has a user namespace, is not root's
 * outside any more, and may mount. */
static void
enter(void)
{
	char uid[64], gid[64];

	(void)snprintf(uid, sizeof(uid), "0 %u 1\n", (unsigned)getuid());
	(void)snprintf(gid, sizeof(gid), "0 %u 1\n", (unsigned)getgid());
	if (unshare(CLONE_NEWUSER | NAMESPACES) == -1)
		err(1, "unshare");
	put("/proc/self/setgroups", "deny");
	put("/proc/self/uid_map", uid);
	put("/proc/self/gid_map", gid);
}

static void template(unsigned long binds)
{
	static const char *const dirs[] = {
	    BASE "/proc", BASE "/tmp", BASE "/etc", BASE "/lib", NULL};
	char path[64];
	int i;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    mount("proc", "/proc", "proc", 0, NULL) == -1 ||
	    mount("root", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") ==
		-1)
		err(1, "mount");
	for (i = 0; dirs[i] != NULL; i++) {
		if (mkdir(dirs[i], 0755) == -1)
			err(1, "%s", dirs[i]);
	}
	while (binds-- > 0) {
		(void)snprintf(path, sizeof(path), BASE "/lib/%lu", binds);
		if (mkdir(path, 0755) == -1 ||
		    mount("/usr", path, NULL, MS_BIND, NULL) == -1)
			err(1, "%s", path);
	}
}

static _Noreturn void
child(void)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (mount("proc", BASE "/proc", "proc", flags,
		"hidepid=2,subset=pid") == -1 ||
	    mount("tmpfs", BASE "/tmp", "tmpfs", flags, "size=4k") == -1 ||
	    mount("tmpfs", BASE "/etc", "tmpfs", flags, "size=64k") == -1 ||
	    chdir(BASE) == -1 || syscall(SYS_pivot_root, ".", ".") == -1 ||
	    umount2(".", MNT_DETACH) == -1 || chdir("/") == -1)
		_exit(1);
	_exit(0);
}

static void
once(struct times *times)
{
	struct clone_args args = {.flags = NAMESPACES, .exit_signal = SIGCHLD};
	const uint64_t begin = times_now();
	int status;
	pid_t pid;

	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		child();
	if (pid == -1)
		err(1, "clone3");
	if (waitpid(pid, &status, 0) != pid)
		err(1, "waitpid");
	if (status != 0)
		errx(1, "a child could not mount: wait status %d", status);
	times_add(times, begin);
}

int
main(int argc, char **argv)
{
	struct times times = {0};
	unsigned long count = 0, binds = 0, i;
	uint64_t begin;
	int c, status;
	pid_t pid;

	while ((c = getopt(argc, argv, "n:m:")) != -1) {
		if (c == 'n')
			count = times_number(optarg, 1, COUNT_MAX);
		else if (c == 'm')
			binds = times_number(optarg, 0, BINDS_MAX);
		else
			return 2;
	}
	if (count == 0 || optind != argc)
		errx(2, "usage: bench-floor -n COUNT [-m BINDS]");
	enter();
	pid = fork(); /* the new pid namespace's first process */
	if (pid == -1)
		err(1, "fork");
	if (pid == 0) {
		template(binds);
		begin = times_now();
		for (i = 0; i < count; i++)
			once(&times);
		(void)printf("{");
		times_print(&times, (double)(times_now() - begin) / 1e9);
		(void)printf("}\n");
		return fflush(stdout) == 0 ? 0 : 1;
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		return 1;
	return 0;
}
