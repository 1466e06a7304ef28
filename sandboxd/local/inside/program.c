/*
 * The program's process, from the fork to execve. pid 1 has already given up
 * all capabilities and loaded the list of system calls, and this process
 * inherited both. It takes its terminal, its limits and its Landlock domain,
 * and becomes the program.
 */
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "rules.h"

/*
 * Becomes a process group of its own in pid 1's session: then SIGTSTP can
 * stop it. The kernel does not stop an orphan (POSIX, "orphaned process
 * group"). With a terminal: puts it in place of the caller's terminals, in the
 * foreground.
 */
static int
take_terminal(const struct inside *in, const char *slave, struct err *e)
{
	sigset_t background;
	int fd;

	if (setpgid(0, 0) == -1)
		return err_sys(e, FAILURE_INTERNAL, "setpgid");
	if (slave == NULL)
		return 0;
	/* A group in the background would be stopped by its tcsetpgrp. The mask
	 * is restored before execve. */
	(void)sigemptyset(&background);
	(void)sigaddset(&background, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &background, NULL);
	fd = open(slave, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (fd == -1 || tcsetpgrp(fd, getpid()) == -1)
		return err_sys(e, FAILURE_INTERNAL, "the terminal");
	for (int i = 0; i < 3; i++)
		if (in->tty[i] && dup2(fd, i) == -1)
			return err_sys(e, FAILURE_INTERNAL, "the terminal");
	close(fd);
	return 0;
}

/*
 * Landlock repeats the mounts' verdict: read and execute everywhere, write in
 * the writable folders. So one mistake opens no file. From ABI 6 on it also
 * cuts off signals and abstract unix sockets outside. TCP is left alone: the
 * network namespace bounds it.
 */
static int
enter_rules(const struct plan *p, struct err *e)
{
	static const char *const own[] = {"/dev", "/proc", "/tmp", "/var/tmp"};
	const int abi = rules_abi();
	const uint64_t known = rules_known(abi);
	int ruleset, rc = -1;

	if (abi == 0)
		return 0; /* --explain and the report name it as missing */
	if ((ruleset = rules_new(abi, false)) == -1)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "Landlock");
	if (rules_allow(ruleset, "/",
		LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
		    LANDLOCK_ACCESS_FS_EXECUTE) == -1)
		goto out;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (rules_allow(ruleset, own[i], known) == -1)
			goto out;
	if (rules_allow(ruleset, p->home, known) == -1)
		goto out;
	for (size_t i = 0; i < p->nfolders; i++)
		if (p->folder[i].writable &&
		    rules_allow(ruleset, p->folder[i].path, known) == -1)
			goto out;
	rc = rules_enter(ruleset);
out:
	if (rc == -1)
		err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "Landlock");
	close(ruleset);
	return rc;
}

int
program_run(const struct inside *in, const char *slave, struct err *e)
{
	const struct plan *p = in->plan;

	if (take_terminal(in, slave, e) == -1)
		return 0;
	if (limits_set(p, in->cgroup, e) == -1)
		return 0;
	if (chdir(p->folder[0].path) == -1) {
		err_sys(e, FAILURE_INTERNAL, "the current folder");
		return 0;
	}
	if (enter_rules(p, e) == -1)
		return 0;
	if (p->nhosts > 0 && ways_listen(in, e) == -1)
		return 0;
	/* Nothing but 0, 1 and 2 survives execve. */
	if (syscall(SYS_close_range, 3, ~0U, 1U << 2 /* CLOEXEC */) == -1) {
		err_sys(e, FAILURE_INTERNAL, "close_range");
		return 0;
	}
	(void)sigprocmask(SIG_SETMASK, in->sigmask, NULL);
	/* execvp looks for the program in the PATH of `environ`, and the new
	 * one decides. */
	environ = (char **)p->env;
	(void)execvp(p->argv[0], p->argv);
	return errno;
}
