/*
 * Forking a runner.
 *
 * glibc's fork() cannot make namespaces, so the call is clone3(2) itself, and
 * the three things that glibc's wrapper does in a child are done here:
 *
 *  - The thread id in the thread's control block. glibc compares this id to
 *    find the owner of a mutex. The zygote is thread 2 of the pool. A runner is
 *    thread 1 of its own pid namespace, and the first thread that it makes is
 *    thread 2. With the zygote's stale id these two threads would look like
 *    one. CLONE_CHILD_SETTID lets the kernel write the new id to its place in
 *    the control block.
 *  - CLONE_CHILD_CLEARTID at the same address, as in glibc's own fork.
 *  - The robust futex list, which the kernel forgets at fork.
 *
 * If pool-init gave a cgroup for the slot, the runner is born in that cgroup
 * (CLONE_INTO_CGROUP). So the cgroup's limits hold from the first moment, and
 * none of the runner's memory is ever charged to the zygote's cgroup. The
 * runner then makes its cgroup namespace itself, because clone3 would root the
 * namespace at the zygote's cgroup.
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

#include "confinement.h"
#include "runner.h"

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif

/*
 * Finds where glibc keeps the main thread's id. The kernel knows the address,
 * because glibc registered it for CLEARTID at start. PR_GET_TID_ADDRESS
 * (prctl(2)) needs CONFIG_CHECKPOINT_RESTORE, which Debian's kernels have. The
 * address is taken only if it really holds our id.
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

/* Descriptors of the slots' cgroup directories; pool-init has LEAVES_MAX slots.
 * 0 means none: no cgroup's directory can be descriptor 0 (standard_fds() in
 * zygote.c). */
enum { LEAVES_MAX = 256 };
static int leaves[LEAVES_MAX];
static bool have_leaves;

int
fork_leaf(uint32_t slot, int directory)
{
	if (slot >= LEAVES_MAX || directory <= 0) {
		errno = EINVAL;
		return -1;
	}
	if (leaves[slot] != 0)
		(void)close(leaves[slot]);
	leaves[slot] = directory;
	have_leaves = true;
	return 0;
}

int
fork_cgroup(struct runner *r)
{
	(void)r;
	return have_leaves ? unshare(CLONE_NEWCGROUP) : 0;
}

pid_t
fork_runner(const struct zygote *z, uint32_t slot, int *pidfd)
{
	struct clone_args args = {0};
	void *robust = NULL;
	size_t robust_len = 0;
	long pid;

	(void)syscall(SYS_get_robust_list, 0, &robust, &robust_len);
	/* CLONE_PARENT makes the runner a child of pool-init, which reaps it.
	 * exit_signal must then be 0: the kernel takes the zygote's signal. */
	args.flags = CLONE_PARENT | CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS |
	    CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_CHILD_SETTID |
	    CLONE_CHILD_CLEARTID;
	if (!have_leaves)
		args.flags |= CLONE_NEWCGROUP;
	else if (slot < LEAVES_MAX && leaves[slot] != 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)leaves[slot];
	} else {
		/* If there are cgroups, no runner is forked outside them: it
		 * would have no limits. */
		errno = ENOENT;
		return -1;
	}
	args.pidfd = (uint64_t)(uintptr_t)pidfd;
	args.child_tid = (uint64_t)(uintptr_t)z->tid_address;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0 && robust != NULL)
		(void)syscall(SYS_set_robust_list, robust, robust_len);
	return (pid_t)pid;
}
