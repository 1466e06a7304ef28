/*
 * Forking a runner.
 *
 * glibc's fork() cannot make namespaces, so the call is clone3(2) itself, and
 * the three things that glibc's wrapper does in a child are done here:
 *
 *  - The thread id in the thread's control block. glibc compares it for mutex
 *    owners. The zygote is thread 2 of the pool; a runner is thread 1 of its
 *    own pid namespace and its first thread would be 2: with the stale id two
 *    threads would look like one. CLONE_CHILD_SETTID lets the kernel write the
 *    new id to the very place that the control block has it.
 *  - CLONE_CHILD_CLEARTID at the same address, as glibc's own fork.
 *  - The robust futex list, which the kernel forgets at fork.
 *
 * Locks of malloc and stdio need no care: the zygote has one thread.
 * pthread_atfork handlers do not run; the only one that matters is OpenSSL's
 * fork detection, which would be wrong anyway (reseed.c).
 */
#include <sys/types.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#include "runner.h"

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif

/*
 * Finds where glibc keeps the main thread's id: the kernel knows, since
 * glibc gave it that address for CLEARTID at start (prctl(2),
 * PR_GET_TID_ADDRESS; it needs CONFIG_CHECKPOINT_RESTORE, which Debian's
 * kernels have). That it really holds our id is checked before it is used.
 */
int
fork_setup(struct zygote *z, struct err *err)
{
	pid_t *address = NULL;

	if (prctl(PR_GET_TID_ADDRESS, &address) == -1)
		return err_sys(err, FAILURE_INTERNAL, "PR_GET_TID_ADDRESS");
	if (address == NULL || *address != (pid_t)syscall(SYS_gettid))
		return err_set(err, FAILURE_INTERNAL,
		    "the thread id is not where the kernel says it is");
	z->tid_address = address;
	return 0;
}

pid_t
fork_runner(const struct zygote *z, int *pidfd)
{
	struct clone_args args = {0};
	void *robust = NULL;
	size_t robust_len = 0;
	long pid;

	(void)syscall(SYS_get_robust_list, 0, &robust, &robust_len);
	/* CLONE_PARENT: the runner is pool-init's child, which reaps it. The
	 * exit signal must then be 0: the kernel takes the zygote's. */
	args.flags = CLONE_PARENT | CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS |
	    CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
	    CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
	args.pidfd = (uint64_t)(uintptr_t)pidfd;
	args.child_tid = (uint64_t)(uintptr_t)z->tid_address;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0 && robust != NULL)
		(void)syscall(SYS_set_robust_list, robust, robust_len);
	return (pid_t)pid;
}
