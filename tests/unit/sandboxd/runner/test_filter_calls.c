/*
 * The runner's seccomp programs, call by call: the whole list of what passes,
 * written down a second time. Whoever lets one more call or argument through
 * has to do it here too; every other number, with any argument, is refused.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>

#include "bpf_eval.h"
#include "filter.h"
#include "unit.h"

#define ALLOW     SECCOMP_RET_ALLOW
#define DENY      (SECCOMP_RET_ERRNO | EPERM)
#define ANSWER(e) (SECCOMP_RET_ERRNO | (e))
#define N(array)  (sizeof(array) / sizeof((array)[0]))

enum {
	NR_END = 4096, /* far beyond the last number there is */
	VALUES_MAX = 32,
	FCHMODAT2 = 452, /* not in Debian 12's headers */
};

/* Pass with any arguments. */
static const int any[] = {SYS_brk, SYS_mprotect, SYS_munmap, SYS_mremap,
    SYS_mincore, SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64,
    SYS_pwrite64, SYS_preadv, SYS_pwritev, SYS_creat, SYS_close,
    SYS_close_range, SYS_stat, SYS_fstat, SYS_lstat, SYS_newfstatat, SYS_statx,
    SYS_statfs, SYS_fstatfs, SYS_lseek, SYS_access, SYS_faccessat,
    SYS_faccessat2, SYS_getdents, SYS_getdents64, SYS_readlink, SYS_readlinkat,
    SYS_mkdir, SYS_mkdirat, SYS_rmdir, SYS_unlink, SYS_unlinkat, SYS_rename,
    SYS_renameat, SYS_link, SYS_linkat, SYS_symlink, SYS_symlinkat, SYS_chmod,
    SYS_fchmod, SYS_fchmodat, SYS_umask, SYS_utimensat, SYS_truncate,
    SYS_ftruncate, SYS_fallocate, SYS_getcwd, SYS_chdir, SYS_fchdir,
    SYS_copy_file_range, SYS_dup, SYS_dup2, SYS_dup3, SYS_pipe, SYS_pipe2,
    SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_epoll_create,
    SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_wait, SYS_epoll_pwait,
    SYS_epoll_pwait2, SYS_eventfd, SYS_eventfd2, SYS_timerfd_create,
    SYS_timerfd_settime, SYS_timerfd_gettime, SYS_signalfd4, SYS_nanosleep,
    SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday,
    SYS_time, SYS_getitimer, SYS_setitimer, SYS_alarm, SYS_pause, SYS_times,
    SYS_fork, SYS_vfork, SYS_wait4, SYS_waitid, SYS_exit, SYS_exit_group,
    SYS_kill, SYS_tkill, SYS_tgkill, SYS_pidfd_open, SYS_pidfd_send_signal,
    SYS_getpid, SYS_getppid, SYS_gettid, SYS_getpgid, SYS_getpgrp, SYS_setpgid,
    SYS_getsid, SYS_set_tid_address, SYS_set_robust_list, SYS_get_robust_list,
    SYS_rseq, SYS_sched_yield, SYS_sched_getaffinity, SYS_sched_getscheduler,
    SYS_sched_getparam, SYS_sched_get_priority_max, SYS_sched_get_priority_min,
    SYS_getpriority, SYS_getcpu, SYS_rt_sigaction, SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_rt_sigpending, SYS_rt_sigsuspend, SYS_rt_sigtimedwait,
    SYS_sigaltstack, SYS_restart_syscall, SYS_getuid, SYS_geteuid, SYS_getgid,
    SYS_getegid, SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_capget,
    SYS_uname, SYS_sysinfo, SYS_getrusage, SYS_getrlimit, SYS_setrlimit,
    SYS_getrandom, SYS_shutdown, SYS_getsockname, SYS_getpeername};

/* Answered the same with any arguments. */
static const struct {
	int nr;
	uint32_t verdict;
} answered[] = {{SYS_fsync, ANSWER(0)}, {SYS_fdatasync, ANSWER(0)},
    {SYS_flock, ANSWER(ENOSYS)}, {SYS_clone3, ANSWER(ENOSYS)},
    {FCHMODAT2, ANSWER(ENOSYS)}, {SYS_getxattr, ANSWER(EOPNOTSUPP)},
    {SYS_lgetxattr, ANSWER(EOPNOTSUPP)}, {SYS_fgetxattr, ANSWER(EOPNOTSUPP)},
    {SYS_setxattr, ANSWER(EOPNOTSUPP)}, {SYS_lsetxattr, ANSWER(EOPNOTSUPP)},
    {SYS_fsetxattr, ANSWER(EOPNOTSUPP)}, {SYS_listxattr, ANSWER(EOPNOTSUPP)},
    {SYS_llistxattr, ANSWER(EOPNOTSUPP)}, {SYS_flistxattr, ANSWER(EOPNOTSUPP)}};

/* Judged by one argument: by one of n values, all 64 bits of it, or (n is 0)
 * by the absence of bits. `other` answers what else there is. */
struct judged {
	int nr;
	unsigned arg;
	uint32_t other;
	uint64_t absent;
	size_t n;
	uint64_t value[VALUES_MAX];
};

#define CLONE_BAD                                                        \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |   \
	    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | \
	    CLONE_PARENT)

/* clang-format off */
static const struct judged judged[] = {
	{SYS_clone, 0, DENY, CLONE_BAD, 0, {0}},
	{SYS_mmap, 3, DENY, MAP_HUGETLB, 0, {0}},
	{SYS_open, 1, DENY, O_DIRECT, 0, {0}},
	{SYS_renameat2, 4, DENY, ~0x3ULL, 0, {0}},
	{SYS_openat, 2, DENY, O_DIRECT, 0, {0}},
	{SYS_sendto, 3, DENY, MSG_FASTOPEN | MSG_OOB, 0, {0}},
	{SYS_sendmsg, 2, DENY, MSG_FASTOPEN | MSG_OOB, 0, {0}},
	{SYS_sendmmsg, 3, DENY, MSG_FASTOPEN | MSG_OOB, 0, {0}},
	{SYS_recvfrom, 3, DENY, MSG_OOB, 0, {0}},
	{SYS_recvmsg, 2, DENY, MSG_OOB, 0, {0}},
	{SYS_recvmmsg, 3, DENY, MSG_OOB, 0, {0}},
	{SYS_preadv2, 5, DENY, ~0x17ULL, 0, {0}},
	{SYS_pwritev2, 5, DENY, ~0x17ULL, 0, {0}},
	{SYS_msync, 2, ANSWER(0), MS_SYNC, 0, {0}},
	{SYS_socket, 0, DENY, 0, 1, {AF_UNIX}},
	{SYS_socketpair, 0, DENY, 0, 1, {AF_UNIX}},
	{SYS_prlimit64, 0, DENY, 0, 1, {0}},
	{SYS_fadvise64, 3, DENY, 0, 5, {0, 1, 2, 3, 5}},
	{SYS_membarrier, 0, DENY, 0, 3, {0, 8, 16}},
	{SYS_madvise, 2, DENY, 0, 19, {0, 1, 2, 3, 4, 8, 9, 10, 11, 14, 15, 16,
	    17, 18, 19, 22, 23, 102, 103}},
	{SYS_ioctl, 1, DENY, 0, 6, {TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO,
	    FIOCLEX, FIONCLEX}},
	{SYS_prctl, 0, DENY, 0, 8, {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE,
	    PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_CAPBSET_READ,
	    PR_SET_PDEATHSIG, 0x53564d41}},
};
/* clang-format on */

/* Judged by rules of their own, below. */
static const int special[] = {
    SYS_futex, SYS_fcntl, SYS_getsockopt, SYS_setsockopt};

static struct filter *programs[2]; /* of tools in Python, of commands */

static uint32_t
verdict(const struct filter *f, int nr, const uint64_t *args)
{
	struct seccomp_data d = {.nr = nr, .arch = AUDIT_ARCH_X86_64};
	size_t n;
	const void *p = filter_program(f, &n);

	for (int i = 0; i < 6; i++)
		d.args[i] = args[i];
	return bpf_eval(p, n / sizeof(struct sock_filter), &d);
}

static void
expect(size_t program, int nr, const uint64_t *args, uint32_t wanted)
{
	const uint32_t v = verdict(programs[program], nr, args);

	if (v != wanted)
		fail_msg("program %zu, call %d (%#llx, %#llx, %#llx, %#llx, "
			 "%#llx, %#llx): %#x, not %#x",
		    program, nr, (unsigned long long)args[0],
		    (unsigned long long)args[1], (unsigned long long)args[2],
		    (unsigned long long)args[3], (unsigned long long)args[4],
		    (unsigned long long)args[5], v, wanted);
}

/* Both programs, with arguments that say nothing, everything, and each of the
 * bits in each of the arguments alone. */
static void
expect_always(size_t program, int nr, uint32_t wanted)
{
	uint64_t args[6] = {0};

	expect(program, nr, args, wanted);
	for (int i = 0; i < 6; i++)
		args[i] = UINT64_MAX;
	expect(program, nr, args, wanted);
	for (int i = 0; i < 6; i++)
		args[i] = 0;
	for (int i = 0; i < 6; i++) {
		for (unsigned bit = 0; bit < 64; bit++) {
			args[i] = 1ULL << bit;
			expect(program, nr, args, wanted);
		}
		args[i] = 0;
	}
}

static bool
in(const int *list, size_t n, int nr)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == nr)
			return true;
	return false;
}

static bool
is_judged(int nr)
{
	for (size_t i = 0; i < N(judged); i++)
		if (judged[i].nr == nr)
			return true;
	return in(special, N(special), nr);
}

/* Every number there is, and many that there are not. */
static void
test_every_number(void **state)
{
	uint32_t wanted;

	(void)state;
	for (size_t p = 0; p < N(programs); p++)
		for (int nr = 0; nr < NR_END; nr++) {
			if (is_judged(nr) || (p == 1 && nr == SYS_arch_prctl))
				continue;
			wanted = in(any, N(any), nr) ? ALLOW : DENY;
			for (size_t i = 0; i < N(answered); i++)
				if (answered[i].nr == nr)
					wanted = answered[i].verdict;
			if (p == 1 && nr == SYS_execve)
				wanted = ALLOW;
			expect_always(p, nr, wanted);
		}
}

static uint32_t
wanted_of(const struct judged *j, uint64_t value)
{
	if (j->n == 0)
		return (value & j->absent) == 0 ? ALLOW : j->other;
	for (size_t i = 0; i < j->n; i++)
		if (j->value[i] == value)
			return ALLOW;
	return j->other;
}

static void
one_argument(size_t p, const struct judged *j, uint64_t value)
{
	uint64_t args[6];

	/* What the other arguments are changes nothing. */
	for (int fill = 0; fill < 2; fill++) {
		for (unsigned i = 0; i < 6; i++)
			args[i] = fill == 0 ? 0 : UINT64_MAX;
		args[j->arg] = value;
		expect(p, j->nr, args, wanted_of(j, value));
	}
}

/* All small values, each bit, each bit beside a good value (the kernel takes
 * 32 of 64 bits of most arguments), each bit from the top down. */
static void
test_judged_argument(void **state)
{
	const struct judged *j;

	(void)state;
	for (size_t p = 0; p < N(programs); p++)
		for (size_t i = 0; i < N(judged); i++) {
			j = &judged[i];
			for (uint64_t v = 0; v < 0x6000; v++)
				one_argument(p, j, v);
			for (unsigned bit = 0; bit < 64; bit++) {
				one_argument(p, j, 1ULL << bit);
				one_argument(p, j, ~(1ULL << bit));
				one_argument(p, j, UINT64_MAX << bit);
				for (size_t k = 0; k < j->n; k++) {
					one_argument(
					    p, j, j->value[k] ^ (1ULL << bit));
					one_argument(p, j, j->value[k]);
				}
			}
		}
}

static void
test_futex(void **state)
{
	uint64_t args[6] = {0};
	bool ok;

	(void)state;
	for (size_t p = 0; p < N(programs); p++)
		for (uint64_t op = 0; op < 0x1000; op++) {
			ok = (op & FUTEX_PRIVATE_FLAG) != 0 ||
			    op == FUTEX_WAIT || op == FUTEX_WAKE ||
			    op == FUTEX_WAIT_BITSET ||
			    op == (FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME);
			args[1] = op;
			expect(p, SYS_futex, args, ok ? ALLOW : DENY);
			args[1] = op | 1ULL << 32;
			expect(p, SYS_futex, args,
			    (op & FUTEX_PRIVATE_FLAG) != 0 ? ALLOW : DENY);
		}
}

static void
test_fcntl(void **state)
{
	static const int good[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD,
	    F_GETFL, F_GETLK, F_OFD_GETLK, F_GETPIPE_SZ, F_GET_SEALS};
	static const int granted[] = {
	    F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW};
	uint64_t args[6] = {0};
	uint32_t wanted;

	(void)state;
	for (size_t p = 0; p < N(programs); p++) {
		for (int op = 0; op < 4096; op++) {
			wanted = in(good, N(good), op)    ? ALLOW
			    : in(granted, N(granted), op) ? ANSWER(0)
			    : op == F_SETFL               ? ALLOW
							  : DENY;
			args[1] = (uint64_t)op;
			args[2] = 0;
			expect(p, SYS_fcntl, args, wanted);
			args[1] |= 1ULL << 32;
			expect(p, SYS_fcntl, args, DENY);
		}
		args[1] = F_SETFL;
		for (unsigned bit = 0; bit < 64; bit++) {
			args[2] = 1ULL << bit;
			wanted = args[2] == O_DIRECT || args[2] == O_ASYNC
			    ? DENY
			    : ALLOW;
			expect(p, SYS_fcntl, args, wanted);
		}
	}
}

static void
test_socket_options(void **state)
{
	static const int set[] = {SO_SNDTIMEO, SO_RCVTIMEO, SO_KEEPALIVE,
	    SO_REUSEADDR, SO_PASSCRED, SO_LINGER, SO_BROADCAST};
	static const int get[] = {SO_TYPE, SO_DOMAIN, SO_PROTOCOL, SO_ERROR,
	    SO_ACCEPTCONN, SO_SNDBUF, SO_RCVBUF, SO_SNDTIMEO, SO_RCVTIMEO,
	    SO_KEEPALIVE, SO_REUSEADDR, SO_REUSEPORT, SO_LINGER, SO_BROADCAST,
	    SO_PASSCRED, SO_PEERCRED};
	uint64_t args[6] = {0};
	bool ours;

	(void)state;
	for (size_t p = 0; p < N(programs); p++)
		for (uint64_t level = 0; level < 300; level++)
			for (int option = 0; option < 300; option++) {
				ours = level == SOL_SOCKET;
				args[1] = level;
				args[2] = (uint64_t)option;
				expect(p, SYS_setsockopt, args,
				    ours && in(set, N(set), option) ? ALLOW
								    : DENY);
				expect(p, SYS_getsockopt, args,
				    ours && in(get, N(get), option) ? ALLOW
								    : DENY);
				args[2] |= 1ULL << 32;
				expect(p, SYS_getsockopt, args, DENY);
				expect(p, SYS_setsockopt, args, DENY);
			}
}

/* Of its functions a command's loader gets one. */
static void
test_arch_prctl(void **state)
{
	uint64_t args[6] = {0};

	(void)state;
	for (args[0] = 0; args[0] < 0x6000; args[0]++) {
		expect(0, SYS_arch_prctl, args, DENY);
		expect(
		    1, SYS_arch_prctl, args, args[0] == 0x1002 ? ALLOW : DENY);
	}
	args[0] = 0x1002 | 1ULL << 32;
	expect(1, SYS_arch_prctl, args, DENY);
}

static int
set_up(void **state)
{
	(void)state;
	programs[0] = filter_new(0, NULL);
	programs[1] = filter_new(FILTER_COMMAND, NULL);
	return programs[0] == NULL || programs[1] == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
	(void)state;
	filter_free(programs[0]);
	filter_free(programs[1]);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_number),
	    cmocka_unit_test(test_judged_argument),
	    cmocka_unit_test(test_futex),
	    cmocka_unit_test(test_fcntl),
	    cmocka_unit_test(test_socket_options),
	    cmocka_unit_test(test_arch_prctl),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
