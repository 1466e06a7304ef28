/*
 * The runner's seccomp program: an allow-list, 64-bit only.
 *
 * A call that is not listed fails with EPERM. It does not kill the process: a
 * refused call changes nothing, so a kill would add no safety. Libraries probe
 * for features, and the author of an honest tool learns more from
 * PermissionError than from a vanished process. clone3 fails with ENOSYS,
 * because its flags are in memory that a filter cannot read; glibc then uses
 * clone. A call by another architecture's numbers (int 0x80, x32) kills: no
 * program built for this machine makes one by accident or as a probe.
 *
 * Left out on purpose, though Python has functions for some of them: execve
 * (nothing in the root is executable; a tool is Python), bind, listen and
 * accept (no client may reach a tool), connect (a tool has no peer to reach; if
 * hosts are granted, filter_net.c has it), sendfile, splice, tee and vmsplice
 * (pages of host files, passed on by reference), memfd_create and System V
 * shared memory (memory that no limit counts), mlock, ptrace and process_vm_*
 * and kcmp and pidfd_getfd (another process's memory), io_uring (calls that
 * pass no filter), bpf, userfaultfd, perf_event_open, keyctl, inotify and
 * fanotify (large kernel surfaces; some count per user over all namespaces),
 * setsid and all calls that set a nice value, a policy or a processor (they
 * change the share of the processors: steps.c), unshare, setns and all of the
 * mount API, xattrs, name_to_handle_at and open_by_handle_at, personality.
 */
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "denied.h"
#include "filter.h"
#include "filter_net.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef MAP_HUGETLB
#define MAP_HUGETLB 0x40000
#endif

/* Newer than Debian 12's headers. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

/* RWF_HIPRI, DSYNC, SYNC and APPEND (linux/fs.h). Left out: NOWAIT tells what
 * the page cache has, DONTCACHE drops pages from the cache. */
#define RWF_KNOWN 0x17

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Flags of seccomp(2): return a descriptor for the notifications; only a fatal
 * signal interrupts a call whose notification was received (Linux 5.19). */
enum { FILTER_LISTEN = 1 << 3, FILTER_WAIT_KILLABLE = 1 << 5 };

struct filter {
	size_t n;
	struct sock_filter *program;
};

/* Allowed with any arguments. */
static const int plain[] = {
    /* the runner's own memory */
    SCMP_SYS(brk),
    SCMP_SYS(mprotect),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(mincore),
    /* files */
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(readv),
    SCMP_SYS(writev),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(preadv),
    SCMP_SYS(pwritev),
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
    SCMP_SYS(getcwd),
    SCMP_SYS(chdir),
    SCMP_SYS(fchdir),
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
    /* processes and threads inside the runner's pid namespace */
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
    /* the runner's identity and limits */
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
    /* sockets that the runner already has */
    SCMP_SYS(shutdown),
    SCMP_SYS(getsockname),
    SCMP_SYS(getpeername),
};

/*
 * Calls that are answered with success and not done. A runner writes files only
 * on its /tmp, a tmpfs, where fsync does nothing. On a file of the interpreter
 * each fsync would flush the host's disk, and hold up other processes that wait
 * for that disk.
 */
static const int done_already[] = {SCMP_SYS(fsync), SCMP_SYS(fdatasync)};

/* These calls are answered as by a file system without extended attributes.
 * Programs and libraries (shutil.copy2) accept that answer, but not EPERM. */
static const int unsupported[] = {SCMP_SYS(getxattr), SCMP_SYS(lgetxattr),
    SCMP_SYS(fgetxattr), SCMP_SYS(listxattr), SCMP_SYS(llistxattr),
    SCMP_SYS(flistxattr), SCMP_SYS(setxattr), SCMP_SYS(lsetxattr),
    SCMP_SYS(fsetxattr)};

/* Argument number arg must satisfy (value & mask) == equals. Several rows of
 * one call are alternatives, and all judge the same argument. */
struct rule {
	int syscall;
	unsigned arg;
	uint64_t mask, equals;
};

#define EQ(call, arg, value) \
	{SCMP_SYS(call), arg, UINT64_MAX, (uint64_t)(value)}
#define NONE_OF(call, arg, bits) {SCMP_SYS(call), arg, (uint64_t)(bits), 0}

/* Flags for new namespaces, a traced child, or the caller's parent as
 * parent. */
#define CLONE_REFUSED (DENIED_NAMESPACES | CLONE_PTRACE | CLONE_PARENT)

/* clang-format off */
static const struct rule judged[] = {
	NONE_OF(clone, 0, CLONE_REFUSED),
	/* Huge pages come from one pool for the whole machine. */
	NONE_OF(mmap, 3, MAP_HUGETLB),
	/* RENAME_WHITEOUT makes a device node without asking for a right. */
	NONE_OF(renameat2, 4, ~(RENAME_NOREPLACE | RENAME_EXCHANGE)),
	/* No MSG_FASTOPEN: it connects while it sends, past connect(). No
	 * urgent data (MSG_OOB): on unix sockets only attackers use it, to
	 * break out (CVE-2025-38236). */
	NONE_OF(sendto, 3, MSG_FASTOPEN | MSG_OOB),
	NONE_OF(sendmsg, 2, MSG_FASTOPEN | MSG_OOB),
	NONE_OF(sendmmsg, 3, MSG_FASTOPEN | MSG_OOB),
	NONE_OF(recvfrom, 3, MSG_OOB),
	NONE_OF(recvmsg, 2, MSG_OOB), NONE_OF(recvmmsg, 3, MSG_OOB),
	/* The page cache belongs to the whole host: a runner must not read past
	 * it, drop pages from it or ask for its contents. */
	NONE_OF(open, 1, O_DIRECT),
	NONE_OF(openat, 2, O_DIRECT),
	NONE_OF(preadv2, 5, ~RWF_KNOWN),
	NONE_OF(pwritev2, 5, ~RWF_KNOWN),
	EQ(fadvise64, 3, POSIX_FADV_NORMAL),
	EQ(fadvise64, 3, POSIX_FADV_RANDOM),
	EQ(fadvise64, 3, POSIX_FADV_SEQUENTIAL),
	EQ(fadvise64, 3, POSIX_FADV_WILLNEED),
	EQ(fadvise64, 3, POSIX_FADV_NOREUSE),
	/* With MS_SYNC msync does what fsync does: see done_already. */
	NONE_OF(msync, 2, MS_SYNC),
	/* No MADV_MERGEABLE (the time of a write tells whether another process
	 * has this page), no PAGEOUT (work for the host's disk), no
	 * HWPOISON. */
	EQ(madvise, 2, MADV_NORMAL), EQ(madvise, 2, MADV_RANDOM),
	EQ(madvise, 2, MADV_SEQUENTIAL), EQ(madvise, 2, MADV_WILLNEED),
	EQ(madvise, 2, MADV_DONTNEED), EQ(madvise, 2, MADV_FREE),
	EQ(madvise, 2, MADV_REMOVE), EQ(madvise, 2, MADV_DONTFORK),
	EQ(madvise, 2, MADV_DOFORK), EQ(madvise, 2, MADV_HUGEPAGE),
	EQ(madvise, 2, MADV_NOHUGEPAGE), EQ(madvise, 2, MADV_DONTDUMP),
	EQ(madvise, 2, MADV_DODUMP), EQ(madvise, 2, MADV_WIPEONFORK),
	EQ(madvise, 2, MADV_KEEPONFORK), EQ(madvise, 2, MADV_POPULATE_READ),
	EQ(madvise, 2, MADV_POPULATE_WRITE),
	EQ(madvise, 2, MADV_GUARD_INSTALL), EQ(madvise, 2, MADV_GUARD_REMOVE),
	/* The kernel finds a futex without FUTEX_PRIVATE_FLAG by file and
	 * place. So two willing runners can wake each other over a library that
	 * both have mapped. Waiting and waking are allowed all the same,
	 * because multiprocessing's semaphores need them. Moving waiters and
	 * lending priority, where futexes had holes, need FUTEX_PRIVATE_FLAG
	 * here. */
	{SCMP_SYS(futex), 1, FUTEX_PRIVATE_FLAG, FUTEX_PRIVATE_FLAG},
	EQ(futex, 1, FUTEX_WAIT), EQ(futex, 1, FUTEX_WAKE),
	EQ(futex, 1, FUTEX_WAIT_BITSET),
	EQ(futex, 1, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME),
	/* Barriers for the caller's threads. Global ones disturb every CPU. */
	EQ(membarrier, 0, MEMBARRIER_CMD_QUERY),
	EQ(membarrier, 0, MEMBARRIER_CMD_PRIVATE_EXPEDITED),
	EQ(membarrier, 0, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED),
	/* asyncio wakes itself over a socketpair. */
	EQ(socket, 0, AF_UNIX), EQ(socketpair, 0, AF_UNIX),
	/* The caller's own limits, which it can only lower. */
	EQ(prlimit64, 0, 0),
	/* No F_SETPIPE_SZ (memory no limit counts), F_SETOWN, F_SETSIG,
	 * F_SETLEASE or F_NOTIFY. F_GET_SEALS only reads. */
	EQ(fcntl, 1, F_DUPFD), EQ(fcntl, 1, F_DUPFD_CLOEXEC),
	EQ(fcntl, 1, F_GETFD), EQ(fcntl, 1, F_SETFD),
	EQ(fcntl, 1, F_GETFL), EQ(fcntl, 1, F_GETLK), EQ(fcntl, 1, F_OFD_GETLK),
	EQ(fcntl, 1, F_GETPIPE_SZ), EQ(fcntl, 1, F_GET_SEALS),
	/* For isatty, window size, bytes waiting, close-on-exec, non-blocking.
	 * Other requests (TIOCSTI) are refused, whatever the upper 32 bits. */
	EQ(ioctl, 1, TCGETS), EQ(ioctl, 1, TIOCGWINSZ), EQ(ioctl, 1, FIONREAD),
	EQ(ioctl, 1, FIONBIO), EQ(ioctl, 1, FIOCLEX), EQ(ioctl, 1, FIONCLEX),
	EQ(prctl, 0, PR_SET_NAME), EQ(prctl, 0, PR_GET_NAME),
	EQ(prctl, 0, PR_GET_DUMPABLE), EQ(prctl, 0, PR_GET_NO_NEW_PRIVS),
	EQ(prctl, 0, PR_GET_SECCOMP), EQ(prctl, 0, PR_CAPBSET_READ),
	EQ(prctl, 0, PR_SET_PDEATHSIG), EQ(prctl, 0, PR_SET_VMA),
};

/*
 * Locks on ranges of a file are answered with success and not made. The
 * kernel's record of a lock is memory that no limit counts (RLIMIT_LOCKS is
 * dead, cgroups leave it out). A call could make millions of locks, on the
 * interpreter's files too, where other processes would see them. No process
 * outside the call opens files of its /tmp, so a single process, even with
 * SQLite, loses nothing. Several processes of a call must agree by other means.
 *
 * flock() is refused, as by a file system without it. It works on files that
 * are only open for reading, so a runner could hold up a process that locks a
 * file of the interpreter, and two runners could send each other messages.
 */
static const int lock_commands[] = {
	F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW,
};

/* getsockopt. No SO_PEERPIDFD: a runner would get a pidfd of sandboxd. */
static const int socket_facts[] = {
	SO_TYPE, SO_DOMAIN, SO_PROTOCOL, SO_ERROR, SO_ACCEPTCONN, SO_SNDBUF,
	SO_RCVBUF, SO_SNDTIMEO, SO_RCVTIMEO, SO_KEEPALIVE, SO_REUSEADDR,
	SO_REUSEPORT, SO_LINGER, SO_BROADCAST, SO_PASSCRED, SO_PEERCRED,
};

/* setsockopt. The dangerous options attach programs to a socket. No SO_SNDBUF
 * and SO_RCVBUF: data in a socket's buffers is kernel memory that no limit of
 * ours counts, and with large buffers a few hundred pairs hold gigabytes. */
static const int socket_options[] = {
	SO_SNDTIMEO, SO_RCVTIMEO, SO_KEEPALIVE,
	SO_REUSEADDR, SO_PASSCRED, SO_BROADCAST,
	SO_LINGER, /* last: not for the network profile (filter_net.c) */
};
/* clang-format on */

/* The loader sets the thread pointer. No other arch_prctl code is allowed. */
#ifdef SYS_arch_prctl
enum { ARCH_SET_FS_CODE = 0x1002 }; /* asm/prctl.h */
#endif

/* Adds the same verdict for each of n calls, whatever their arguments. */
static int
add_calls(scmp_filter_ctx ctx, uint32_t action, const int *call, size_t n)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++)
		rc = seccomp_rule_add(ctx, action, call[i], 0);
	return rc;
}

/*
 * Adds the calls that a program needs to start and run. execve is allowed for
 * any path, because Landlock and the mounts judge the file (fsrules.c).
 * execveat is not allowed, because it can run files without a name.
 */
static int
add_command_rules(scmp_filter_ctx ctx)
{
	int rc;

	rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(execve), 0);
#ifdef SYS_arch_prctl
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(arch_prctl),
		    1, SCMP_A0(SCMP_CMP_EQ, ARCH_SET_FS_CODE));
#endif
	return rc;
}

/* Adds one rule for each row of `judged`. */
static int
add_judged(scmp_filter_ctx ctx)
{
	const struct rule *r;
	struct scmp_arg_cmp cmp;
	size_t i;
	int rc = 0;

	for (i = 0; i < LENGTH(judged) && rc == 0; i++) {
		r = &judged[i];
		cmp = r->mask == UINT64_MAX
		    ? SCMP_CMP(r->arg, SCMP_CMP_EQ, r->equals)
		    : SCMP_CMP(r->arg, SCMP_CMP_MASKED_EQ, r->mask, r->equals);
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, r->syscall, 1, cmp);
	}
	return rc;
}

static int
add_sockets(scmp_filter_ctx ctx, bool network)
{
	const size_t n = LENGTH(socket_options) - (network ? 1 : 0);
	size_t i;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt),
		    2, SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET),
		    SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)socket_options[i]));
	for (i = 0; i < LENGTH(socket_facts) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(getsockopt),
		    2, SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET),
		    SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)socket_facts[i]));
	return rc;
}

/* fchmodat2(2), Linux 6.6. Only ENOSYS makes the C library do without it. */
enum { FCHMODAT2 = 452 };

/* Adds calls that are answered and not done. Each list's comment says why. */
static int
add_answers(scmp_filter_ctx ctx)
{
	size_t i;
	int rc;

	rc = add_calls(
	    ctx, SCMP_ACT_ERRNO(0), done_already, LENGTH(done_already));
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(0), SCMP_SYS(msync),
		    1, SCMP_A2(SCMP_CMP_MASKED_EQ, MS_SYNC, MS_SYNC));
	for (i = 0; i < LENGTH(lock_commands) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(0), SCMP_SYS(fcntl),
		    1, SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)lock_commands[i]));
	if (rc == 0)
		rc = add_calls(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), unsupported,
		    LENGTH(unsupported));
	if (rc == 0)
		rc = seccomp_rule_add(
		    ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(flock), 0);
	if (rc == 0)
		rc = seccomp_rule_add(
		    ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (rc == 0)
		rc =
		    seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), FCHMODAT2, 0);
	return rc;
}

static int
add_rules(scmp_filter_ctx ctx, bool network)
{
	int rc;

	rc = add_calls(ctx, SCMP_ACT_ALLOW, plain, LENGTH(plain));
	if (rc == 0)
		rc = add_judged(ctx);
	if (rc == 0)
		rc = add_sockets(ctx, network);
	/* F_SETFL may not set O_DIRECT, which reads past the page cache, nor
	 * O_ASYNC, which makes the kernel send signals. */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 2,
		    SCMP_A1(SCMP_CMP_EQ, F_SETFL),
		    SCMP_A2(SCMP_CMP_MASKED_EQ, O_DIRECT | O_ASYNC, 0));
	if (rc == 0)
		rc = add_answers(ctx);
	return rc;
}

/* Exports the program by a memfd, because libseccomp 2.5 needs a descriptor. */
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
filter_new(unsigned forms, struct err *err)
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
	/* Sorts the calls into a binary tree, not into a list of 200. */
	if (rc == 0)
		rc = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = add_rules(ctx, (forms & FILTER_NETWORK) != 0);
	if (rc == 0 && (forms & FILTER_COMMAND) != 0)
		rc = add_command_rules(ctx);
	if (rc == 0 && (forms & FILTER_NETWORK) != 0)
		rc = filter_net_rules(ctx);
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

static int
load(const struct filter *f, unsigned flags)
{
	struct sock_fprog prog = {
	    .len = (unsigned short)(f->n / sizeof(struct sock_filter)),
	    .filter = f->program,
	};

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
}

int
filter_load(const struct filter *f)
{
	return load(f, 0);
}

int
filter_listen(const struct filter *f)
{
	int fd = load(f, FILTER_LISTEN | FILTER_WAIT_KILLABLE);

	return fd == -1 && errno == EINVAL ? load(f, FILTER_LISTEN) : fd;
}
