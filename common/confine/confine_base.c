#include <sys/mman.h>
#include <sys/socket.h>

#include <errno.h>
#include <seccomp.h>

#include "confine_base.h"

/* Fallbacks for Debian 12's headers. */
#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif

#define ANY(name)                       {SCMP_SYS(name), 0, -1, 0, 0}
#define ERROR(name, e)                  {SCMP_SYS(name), e, -1, 0, 0}
#define MASKED(name, arg, mask, equals) {SCMP_SYS(name), 0, arg, mask, equals}

/*
 * The system calls that an event-driven daemon over libevent (epoll), OpenSSL
 * and glibc 2.36 to 2.41 needs after start. Every other call ends the process:
 * no exec, fork or thread, no socket of its own (connect_unix adds AF_UNIX
 * ones), no bind or listen, no mount, ptrace, bpf, io_uring, key or namespace
 * call.
 *
 * A call that a library makes by habit, and can do without, fails with an errno
 * instead of killing the daemon: opening files (locale, time zone, NSS, /proc
 * and /sys look-ups in malloc and get_nprocs), asking whether an fd is a
 * terminal, naming mappings by prctl. So a library's new habit of these kinds
 * can't kill a daemon, and still reaches nothing: the refusal is the filter's
 * own and doesn't depend on Landlock.
 *
 * newfstatat is allowed with any path, since glibc before 2.39 implements fstat
 * by it and filters can't read the path. The call reveals nothing in a
 * directory that the user may not search, so state directories have mode 0700.
 */
static const struct confine_base_rule rules[] = {
    /* Calls that act on open descriptors. MSG_FASTOPEN is forbidden,
     * because it would connect (tcp(7)). */
    ANY(read),
    ANY(readv),
    ANY(pread64),
    ANY(write),
    ANY(writev),
    ANY(pwrite64),
    ANY(recvmsg),
    ANY(recvfrom),
    MASKED(sendmsg, 2, MSG_FASTOPEN, 0),
    MASKED(sendto, 3, MSG_FASTOPEN, 0),
    ANY(lseek),
    ANY(close),
    ANY(shutdown),
    ANY(accept4),
    ANY(getsockopt),
    /* Levels 0 to 7, for IP, SOCKET and TCP, but not crypto. Netfilter's
     * options of level IP need CAP_NET_ADMIN. */
    MASKED(setsockopt, 1, 0xfffffff8, 0),
    ANY(getsockname),
    ANY(getpeername),
    ANY(fcntl),
    ANY(fstat),
    ANY(newfstatat),
    /* Sealed memfds carry large fields. */
    ANY(memfd_create),
    ANY(ftruncate),

    /* The loop. */
    ANY(epoll_create1),
    ANY(epoll_ctl),
    ANY(epoll_wait),
    ANY(epoll_pwait),
    ANY(epoll_pwait2),
    ANY(poll),
    ANY(ppoll),
    ANY(select),
    ANY(pselect6),
    ANY(timerfd_create),
    ANY(timerfd_settime),
    ANY(timerfd_gettime),
    ANY(eventfd2),

    /* Memory, never executable. */
    ANY(brk),
    MASKED(mmap, 2, PROT_EXEC, 0),
    MASKED(mprotect, 2, PROT_EXEC, 0),
    ANY(munmap),
    ANY(mremap),
    ANY(madvise),

    /* Time, where the vDSO falls back to the kernel. */
    ANY(clock_gettime),
    ANY(clock_getres),
    ANY(clock_nanosleep),
    ANY(nanosleep),
    ANY(gettimeofday),
    ANY(time),

    /* Information about the process itself, and actions on itself. */
    ANY(futex),
    ANY(rseq),
    ANY(getpid),
    ANY(getppid),
    ANY(gettid),
    ANY(getuid),
    ANY(geteuid),
    ANY(getgid),
    ANY(getegid),
    ANY(getresuid),
    ANY(getresgid),
    ANY(getrandom),
    ANY(getrusage),
    ANY(getrlimit),
    ANY(times),
    ANY(uname),
    ANY(sysinfo),
    ANY(getcpu),
    ANY(sched_yield),
    MASKED(prlimit64, 0, UINT64_MAX, 0), /* pid 0: this process */
    ANY(sched_getaffinity),
    ANY(rt_sigaction),
    ANY(rt_sigprocmask),
    ANY(rt_sigreturn),
    ANY(sigaltstack),
    /* abort(3) and raise(3). */
    {SCMP_SYS(tgkill), 0, CONFINE_ARG0_SELF, 0, 0},
    ANY(restart_syscall),
    ANY(exit),
    ANY(exit_group),

    /* Libraries' habits. */
    ERROR(open, EACCES),
    ERROR(openat, EACCES),
    ERROR(openat2, ENOSYS),
    ERROR(stat, EACCES),
    ERROR(lstat, EACCES),
    ERROR(statx, ENOSYS),
    ERROR(statfs, EACCES),
    ERROR(access, EACCES),
    ERROR(faccessat, EACCES),
    ERROR(faccessat2, EACCES),
    ERROR(readlink, EACCES),
    ERROR(readlinkat, EACCES),
    ERROR(getcwd, EACCES),
    ERROR(ioctl, ENOTTY),
    ERROR(prctl, EINVAL),
};

const struct confine_base_rule *
confine_base_rules(size_t *n)
{
	*n = sizeof(rules) / sizeof(rules[0]);
	return rules;
}
