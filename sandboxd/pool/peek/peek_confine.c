/*
 * peek may read every runner's memory, and do nothing else.
 *
 * It has no way out of the pool: no network (the pool's namespace is empty), no
 * socket(2), no file but proc's, no exec, no new process. Its one capability
 * counts in the pool's user namespace only. An attacker who takes over peek, by
 * a frame from egress or a runner's notification, controls the calls that run
 * now, and their connections; but not sandboxd, the vault or the host.
 *
 * peek does not use Landlock: a process in a Landlock domain may look into its
 * descendants only, and runners are not descendants of peek.
 */
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "peek_confine.h"
#include "peek_table.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* The place where the new root is put together: any directory that every host
 * has will do. */
#define ROOT "/tmp"

enum {
	/* More capabilities than any kernel has. PR_CAPBSET_DROP fails with
	 * EINVAL after the last. */
	CAPS_END = 64,
	/* Listeners, sockets that are being put into runners (at most two for
	 * each wait, in a few calls at a time), and some spare descriptors. The
	 * service manager's limit is never exceeded. */
	FILES = PEEK_LISTENERS_MAX + 2048
};

/* Enters a mount namespace whose root has proc and nothing else, read-only. */
static int
enter_root(struct err *e)
{
	if (unshare(CLONE_NEWNS) != 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("peek", ROOT, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		"mode=0555,size=4k,nr_inodes=8") != 0 ||
	    mkdir(ROOT "/proc", 0555) != 0 ||
	    mount("proc", ROOT "/proc", "proc",
		MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) != 0 ||
	    mount(NULL, ROOT, NULL,
		MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV |
		    MS_NOEXEC,
		NULL) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "peek's root");
	if (chdir(ROOT) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
	    umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "pivot_root");
	return 0;
}

static unsigned files_max;

static int
limit_resources(struct err *e)
{
	const struct rlimit none = {0, 0};
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "getrlimit");
	if (files.rlim_max > FILES)
		files.rlim_max = FILES;
	files.rlim_cur = files.rlim_max;
	files_max = (unsigned)files.rlim_cur;
	/* RLIMIT_FSIZE is not set: if the log is a file, writing a line would
	 * end peek. There is no other file here that could be written to. */
	if (setrlimit(RLIMIT_NOFILE, &files) != 0 ||
	    setrlimit(RLIMIT_CORE, &none) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "setrlimit");
	return 0;
}

/* Keeps CAP_SYS_PTRACE only, which is needed because runners have other uids
 * and are not dumpable. */
static int
drop_capabilities(struct err *e)
{
	struct __user_cap_header_struct h = {
	    .version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	for (int cap = 0; cap < CAPS_END; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) {
			if (errno == EINVAL && cap > 0)
				break;
			return err_sys(
			    e, FAILURE_SANDBOX_UNAVAILABLE, "bounding set");
		}
	if (prctl(PR_SET_SECUREBITS,
		SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
		    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
		    SECBIT_NO_CAP_AMBIENT_RAISE |
		    SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		0, 0, 0) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "securebits");
	d[0].effective = d[0].permitted = 1U << CAP_SYS_PTRACE;
	if (syscall(SYS_capset, &h, d) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "capset");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "prctl");
	return 0;
}

/* clang-format off */
static const int plain[] = {
	/* frames, and the things they carry */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg),
	SCMP_SYS(close), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
	/* runners: their memory, their descriptors, their files in proc */
	SCMP_SYS(process_vm_readv), SCMP_SYS(pidfd_open), SCMP_SYS(pidfd_getfd),
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(read),
	/* time, memory, the log, exit */
	SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(time),
	SCMP_SYS(setitimer), SCMP_SYS(rt_sigreturn), SCMP_SYS(restart_syscall),
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
	SCMP_SYS(futex), SCMP_SYS(getrandom), SCMP_SYS(getpid),
	SCMP_SYS(gettid), SCMP_SYS(rt_sigprocmask), SCMP_SYS(newfstatat),
	SCMP_SYS(fstat), SCMP_SYS(exit_group), SCMP_SYS(exit),
};

static const struct {
	int syscall;
	unsigned arg;
	uint64_t mask, equals;
} judged[] = {
	{SCMP_SYS(ioctl), 1, UINT64_MAX, SECCOMP_IOCTL_NOTIF_RECV},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, SECCOMP_IOCTL_NOTIF_SEND},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, SECCOMP_IOCTL_NOTIF_ID_VALID},
	{SCMP_SYS(ioctl), 1, UINT64_MAX, SECCOMP_IOCTL_NOTIF_ADDFD},
	{SCMP_SYS(fcntl), 1, UINT64_MAX, F_GETFL},
	{SCMP_SYS(fcntl), 1, UINT64_MAX, F_SETFL},
	{SCMP_SYS(fcntl), 1, UINT64_MAX, F_DUPFD_CLOEXEC},
	{SCMP_SYS(mmap), 2, PROT_EXEC, 0},
	{SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
	{SCMP_SYS(write), 0, UINT64_MAX, STDERR_FILENO},
	{SCMP_SYS(writev), 0, UINT64_MAX, STDERR_FILENO},
};
/* clang-format on */

/* Loads the filter. Any other system call ends peek, and so the pool. */
static int
load_filter(struct err *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int rc = ctx == NULL ? -ENOSYS : 0; /* NULL: no seccomp, or no memory,
					     * which is unlikely */

	for (size_t i = 0; i < LENGTH(plain) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, plain[i], 0);
	for (size_t i = 0; i < LENGTH(judged) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, judged[i].syscall, 1,
		    judged[i].mask == UINT64_MAX
			? SCMP_CMP(judged[i].arg, SCMP_CMP_EQ, judged[i].equals)
			: SCMP_CMP(judged[i].arg, SCMP_CMP_MASKED_EQ,
			      judged[i].mask, judged[i].equals));
	if (rc == 0)
		rc = seccomp_load(ctx);
	seccomp_release(ctx);
	if (rc == 0)
		return 0;
	errno = -rc;
	return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "seccomp");
}

static const struct {
	const char *name;
	int (*run)(struct err *);
} steps[] = {
    {"peek_root", enter_root},
    {"peek_limits", limit_resources},
    {"peek_capabilities", drop_capabilities},
    {"peek_seccomp", load_filter},
};

int
peek_confine(struct buf *layers, unsigned *files, struct err *e)
{
	for (size_t i = 0; i < LENGTH(steps); i++) {
		if (steps[i].run(e) != 0) {
			buf_putf(
			    layers, "%s=missing %s\n", steps[i].name, e->text);
			return -1;
		}
		buf_putf(layers, "%s=enforced\n", steps[i].name);
	}
	*files = files_max;
	return 0;
}
