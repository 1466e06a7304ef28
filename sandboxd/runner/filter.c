/*
 * The runner's seccomp program: an allow-list, 64-bit only.
 *
 * What is not listed answers EPERM. Not a kill: these calls change nothing
 * when refused, so a kill would buy no safety, while libraries probe for
 * features and the author of an honest tool learns more from PermissionError
 * than from a vanished process. clone3 answers ENOSYS, because its flags are
 * in memory that a filter cannot read, and glibc then uses clone. A call by
 * another architecture's numbers (int 0x80, x32) is no probe and kills: no
 * program built for this machine makes one by accident.
 *
 * Left out on purpose, though Python has functions for some of them: execve
 * (nothing in the root is executable; a tool is Python), bind, listen and
 * accept (nobody may be reached here), connect (nobody is there to be
 * reached), memfd_create and System V shared memory (memory that no limit
 * counts), mlock, ptrace and process_vm_* and kcmp and pidfd_getfd (another
 * process's memory), io_uring (calls that pass no filter), bpf, userfaultfd,
 * perf_event_open, keyctl, inotify and fanotify (large kernel surfaces, some
 * count by user over all namespaces), unshare, setns and all of the mount
 * API, xattrs, name_to_handle_at and open_by_handle_at, personality.
 */
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "filter.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef MAP_HUGETLB
#define MAP_HUGETLB 0x40000
#endif

struct filter {
	size_t n;
	struct sock_filter *program;
};

/* Any arguments. */
static const int plain[] = {
    /* memory of its own */
    SCMP_SYS(brk),
    SCMP_SYS(mprotect),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(msync),
    SCMP_SYS(mincore),
    SCMP_SYS(membarrier),
    /* files */
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(preadv),
    SCMP_SYS(pwritev),
    SCMP_SYS(preadv2),
    SCMP_SYS(pwritev2),
    SCMP_SYS(open),
    SCMP_SYS(openat),
    SCMP_SYS(creat),
    SCMP_SYS(close),
    SCMP_SYS(close_range),
    SCMP_SYS(stat),
    SCMP_SYS(fstat),
    SCMP_SYS(lstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(statx),
    SCMP_SYS(statfs),
    SCMP_SYS(fstatfs),
    SCMP_SYS(lseek),
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2),
    SCMP_SYS(getdents),
    SCMP_SYS(getdents64),
    SCMP_SYS(readlink),
    SCMP_SYS(readlinkat),
    SCMP_SYS(mkdir),
    SCMP_SYS(mkdirat),
    SCMP_SYS(rmdir),
    SCMP_SYS(unlink),
    SCMP_SYS(unlinkat),
    SCMP_SYS(rename),
    SCMP_SYS(renameat),
    SCMP_SYS(renameat2),
    SCMP_SYS(link),
    SCMP_SYS(linkat),
    SCMP_SYS(symlink),
    SCMP_SYS(symlinkat),
    SCMP_SYS(chmod),
    SCMP_SYS(fchmod),
    SCMP_SYS(fchmodat),
    SCMP_SYS(umask),
    SCMP_SYS(utimensat),
    SCMP_SYS(truncate),
    SCMP_SYS(ftruncate),
    SCMP_SYS(fallocate),
    SCMP_SYS(fadvise64),
    SCMP_SYS(fsync),
    SCMP_SYS(fdatasync),
    SCMP_SYS(flock),
    SCMP_SYS(getcwd),
    SCMP_SYS(chdir),
    SCMP_SYS(fchdir),
    SCMP_SYS(sendfile),
    SCMP_SYS(copy_file_range),
    SCMP_SYS(dup),
    SCMP_SYS(dup2),
    SCMP_SYS(dup3),
    SCMP_SYS(pipe),
    SCMP_SYS(pipe2),
    /* waiting */
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(select),
    SCMP_SYS(pselect6),
    SCMP_SYS(epoll_create),
    SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_pwait2),
    SCMP_SYS(eventfd),
    SCMP_SYS(eventfd2),
    SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime),
    SCMP_SYS(timerfd_gettime),
    SCMP_SYS(signalfd4),
    SCMP_SYS(futex),
    /* time */
    SCMP_SYS(nanosleep),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(getitimer),
    SCMP_SYS(setitimer),
    SCMP_SYS(alarm),
    SCMP_SYS(pause),
    SCMP_SYS(times),
    /* processes and threads inside its own pid namespace */
    SCMP_SYS(fork),
    SCMP_SYS(vfork),
    SCMP_SYS(wait4),
    SCMP_SYS(waitid),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(kill),
    SCMP_SYS(tkill),
    SCMP_SYS(tgkill),
    SCMP_SYS(pidfd_open),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(getpid),
    SCMP_SYS(getppid),
    SCMP_SYS(gettid),
    SCMP_SYS(getpgid),
    SCMP_SYS(getpgrp),
    SCMP_SYS(setpgid),
    SCMP_SYS(getsid),
    SCMP_SYS(setsid),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(get_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_getscheduler),
    SCMP_SYS(sched_getparam),
    SCMP_SYS(sched_get_priority_max),
    SCMP_SYS(sched_get_priority_min),
    SCMP_SYS(getpriority),
    SCMP_SYS(getcpu),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigpending),
    SCMP_SYS(rt_sigsuspend),
    SCMP_SYS(rt_sigtimedwait),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall),
    /* who and what it is */
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    SCMP_SYS(getresuid),
    SCMP_SYS(getresgid),
    SCMP_SYS(getgroups),
    SCMP_SYS(capget),
    SCMP_SYS(uname),
    SCMP_SYS(sysinfo),
    SCMP_SYS(getrusage),
    SCMP_SYS(getrlimit),
    SCMP_SYS(setrlimit),
    SCMP_SYS(getrandom),
    /* sockets it already has */
    SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),
    SCMP_SYS(recvmmsg),
    SCMP_SYS(shutdown),
    SCMP_SYS(getsockopt),
    SCMP_SYS(getsockname),
    SCMP_SYS(getpeername),
};

/* One argument must satisfy (value & mask) == equals. Several rows of a call
 * are alternatives, and then all judge the same argument. */
struct rule {
	int syscall;
	unsigned arg;
	uint64_t mask, equals;
};

#define EQ(call, arg, value) \
	{SCMP_SYS(call), arg, UINT64_MAX, (uint64_t)(value)}
#define NONE_OF(call, arg, bits) {SCMP_SYS(call), arg, (uint64_t)(bits), 0}

/* Namespaces, being traced, and pids of the caller's choosing. CLONE_NEWTIME
 * shares its bit with the exit signal and is refused by clone(2) itself. */
#define CLONE_REFUSED                                                    \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |   \
	    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | \
	    CLONE_PARENT)

/* clang-format off */
static const struct rule judged[] = {
	NONE_OF(clone, 0, CLONE_REFUSED),
	/* Huge pages come from a pool of the whole machine. */
	NONE_OF(mmap, 3, MAP_HUGETLB),
	/* A socket that connects while it sends would go round connect(). */
	NONE_OF(sendto, 3, MSG_FASTOPEN),
	NONE_OF(sendmsg, 2, MSG_FASTOPEN),
	NONE_OF(sendmmsg, 3, MSG_FASTOPEN),
	/* asyncio wakes itself over a socketpair; no other family exists here. */
	EQ(socket, 0, AF_UNIX),
	EQ(socketpair, 0, AF_UNIX),
	/* Its own limits, which it can only lower. */
	EQ(prlimit64, 0, 0),
	/* No F_SETPIPE_SZ (memory no limit counts), F_SETOWN, F_SETSIG,
	 * F_SETLEASE or F_NOTIFY. F_GET_SEALS checks the call's own memfds. */
	EQ(fcntl, 1, F_DUPFD), EQ(fcntl, 1, F_DUPFD_CLOEXEC),
	EQ(fcntl, 1, F_GETFD), EQ(fcntl, 1, F_SETFD),
	EQ(fcntl, 1, F_GETFL), EQ(fcntl, 1, F_SETFL),
	EQ(fcntl, 1, F_GETLK), EQ(fcntl, 1, F_SETLK), EQ(fcntl, 1, F_SETLKW),
	EQ(fcntl, 1, F_OFD_GETLK), EQ(fcntl, 1, F_OFD_SETLK),
	EQ(fcntl, 1, F_OFD_SETLKW),
	EQ(fcntl, 1, F_GETPIPE_SZ), EQ(fcntl, 1, F_GET_SEALS),
	/* isatty, window size, bytes waiting, close-on-exec, non-blocking.
	 * TIOCSTI and all else is refused, whatever its upper 32 bits are. */
	EQ(ioctl, 1, TCGETS), EQ(ioctl, 1, TIOCGWINSZ), EQ(ioctl, 1, FIONREAD),
	EQ(ioctl, 1, FIONBIO), EQ(ioctl, 1, FIOCLEX), EQ(ioctl, 1, FIONCLEX),
	EQ(prctl, 0, PR_SET_NAME), EQ(prctl, 0, PR_GET_NAME),
	EQ(prctl, 0, PR_GET_DUMPABLE), EQ(prctl, 0, PR_GET_NO_NEW_PRIVS),
	EQ(prctl, 0, PR_GET_SECCOMP), EQ(prctl, 0, PR_CAPBSET_READ),
	EQ(prctl, 0, PR_SET_PDEATHSIG), EQ(prctl, 0, PR_SET_VMA),
};

/* setsockopt: level and option both; the dangerous ones attach programs.
 * Not SO_SNDBUF and SO_RCVBUF: what lies in a socket's buffers is kernel memory
 * that no limit of ours counts, and with those a few hundred pairs hold
 * gigabytes. */
static const int socket_options[] = {
	SO_SNDTIMEO, SO_RCVTIMEO, SO_KEEPALIVE,
	SO_REUSEADDR, SO_PASSCRED, SO_LINGER, SO_BROADCAST,
};
/* clang-format on */

static int
add_rules(scmp_filter_ctx ctx)
{
	const size_t nplain = sizeof(plain) / sizeof(plain[0]);
	const size_t njudged = sizeof(judged) / sizeof(judged[0]);
	const size_t nopts = sizeof(socket_options) / sizeof(socket_options[0]);
	const struct rule *r;
	size_t i;
	int rc = 0;

	for (i = 0; i < nplain && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, plain[i], 0);
	for (i = 0; i < njudged && rc == 0; i++) {
		r = &judged[i];
		if (r->mask == UINT64_MAX)
			rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, r->syscall,
			    1, SCMP_CMP(r->arg, SCMP_CMP_EQ, r->equals));
		else
			rc =
			    seccomp_rule_add(ctx, SCMP_ACT_ALLOW, r->syscall, 1,
				SCMP_CMP(r->arg, SCMP_CMP_MASKED_EQ, r->mask,
				    r->equals));
	}
	for (i = 0; i < nopts && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt),
		    2, SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET),
		    SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)socket_options[i]));
	if (rc == 0)
		rc = seccomp_rule_add(
		    ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return rc;
}

/* libseccomp 2.5 exports into a descriptor only: a memfd of a few KiB. */
static int export(scmp_filter_ctx ctx, struct filter *f)
{
	off_t size;
	int fd, rc = -1;

	fd = memfd_create("filter", MFD_CLOEXEC);
	if (fd == -1)
		return -1;
	if (seccomp_export_bpf(ctx, fd) != 0)
		goto out;
	size = lseek(fd, 0, SEEK_END);
	if (size <= 0 || size % (off_t)sizeof(struct sock_filter) != 0 ||
	    size / (off_t)sizeof(struct sock_filter) > BPF_MAXINSNS)
		goto out;
	f->n = (size_t)size;
	f->program = malloc(f->n);
	if (f->program == NULL)
		goto out;
	if (pread(fd, f->program, f->n, 0) != (ssize_t)f->n)
		goto out;
	rc = 0;
out:
	(void)close(fd);
	return rc;
}

struct filter *
filter_new(struct err *err)
{
	struct filter *f = NULL;
	scmp_filter_ctx ctx;
	int rc;

	ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (ctx == NULL) {
		(void)err_set(err, FAILURE_INTERNAL, "seccomp_init");
		return NULL;
	}
	rc = seccomp_attr_set(
	    ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* A binary tree: three comparisons fewer than a list of 200. */
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = add_rules(ctx);
	if (rc != 0) {
		errno = -rc;
		(void)err_sys(err, FAILURE_INTERNAL, "seccomp rules");
		goto out;
	}
	f = calloc(1, sizeof(*f));
	if (f == NULL || export(ctx, f) == -1) {
		(void)err_sys(err, FAILURE_INTERNAL, "seccomp program");
		filter_free(f);
		f = NULL;
	}
out:
	seccomp_release(ctx);
	return f;
}

void
filter_free(struct filter *f)
{
	if (f == NULL)
		return;
	free(f->program);
	free(f);
}

const void *
filter_program(const struct filter *f, size_t *n)
{
	*n = f->n;
	return f->program;
}

int
filter_load(const struct filter *f)
{
	struct sock_fprog prog = {
	    .len = (unsigned short)(f->n / sizeof(struct sock_filter)),
	    .filter = f->program,
	};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}
