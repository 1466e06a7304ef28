/*
 * The filter of confine.h, evaluated over a table of calls without loading it.
 */
#include "unit.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "bpf_eval.h"
#include "confine_specs.h"

enum {
	ALLOW = (int)SECCOMP_RET_ALLOW,
	X32 = 0x40000000,
	FASTOPEN = 0x20000000
};
#define KILL    SECCOMP_RET_KILL_PROCESS
#define FAIL(e) (SECCOMP_RET_ERRNO | (e))

struct verdict {
	uint32_t arch;
	int nr;
	uint64_t a[4];
	uint32_t plain, with_rules;
};

#define N(name) AUDIT_ARCH_X86_64, SCMP_SYS(name)

static const struct verdict table[] = {
    /* What daemons do all day. */
    {N(read), {0}, ALLOW, ALLOW},
    {N(write), {2}, ALLOW, ALLOW},
    {N(recvmsg), {3}, ALLOW, ALLOW},
    {N(sendmsg), {3, 0, MSG_NOSIGNAL}, ALLOW, ALLOW},
    {N(sendto), {3, 0, 1, MSG_NOSIGNAL}, ALLOW, ALLOW},
    {N(epoll_wait), {3}, ALLOW, ALLOW},
    {N(epoll_pwait2), {3}, ALLOW, ALLOW},
    {N(ppoll), {0}, ALLOW, ALLOW},
    {N(accept4), {3}, ALLOW, ALLOW},
    {N(close), {3}, ALLOW, ALLOW},
    {N(futex), {0}, ALLOW, ALLOW},
    {N(rseq), {0}, ALLOW, ALLOW},
    {N(getrandom), {0}, ALLOW, ALLOW},
    {N(clock_gettime), {0}, ALLOW, ALLOW},
    {N(memfd_create), {0}, ALLOW, ALLOW},
    {N(rt_sigreturn), {0}, ALLOW, ALLOW},
    {N(restart_syscall), {0}, ALLOW, ALLOW},
    {N(exit_group), {0}, ALLOW, ALLOW},
    {N(fstat), {3}, ALLOW, ALLOW},
    /* Memory may not become executable, whatever other bits are set. */
    {N(mmap), {0, 4096, PROT_READ | PROT_WRITE}, ALLOW, ALLOW},
    {N(mmap), {0, 4096, PROT_READ | PROT_EXEC}, KILL, KILL},
    {N(mmap), {0, 4096, 7}, KILL, KILL},
    {N(mmap), {0, 4096, 0x100000004}, KILL, KILL},
    {N(mprotect), {4096, 4096, PROT_READ}, ALLOW, ALLOW},
    {N(mprotect), {4096, 4096, PROT_EXEC}, KILL, KILL},
    {N(mprotect), {4096, 4096, PROT_EXEC | 0x01000000}, KILL, KILL},
    {N(pkey_mprotect), {4096, 4096, PROT_READ}, KILL, KILL},
    /* FASTOPEN is a connect in disguise. */
    {N(sendto), {3, 0, 1, FASTOPEN}, KILL, KILL},
    {N(sendto), {3, 0, 1, FASTOPEN | MSG_NOSIGNAL}, KILL, KILL},
    {N(sendmsg), {3, 0, FASTOPEN}, KILL, KILL},
    {N(sendmmsg), {3}, KILL, KILL},
    /* Socket options by level. */
    {N(setsockopt), {3, SOL_SOCKET}, ALLOW, ALLOW},
    {N(setsockopt), {3, IPPROTO_TCP}, ALLOW, ALLOW},
    {N(setsockopt), {3, 41}, KILL, KILL},
    {N(setsockopt), {3, 279}, KILL, KILL},
    /* Sockets: none, or unix ones. */
    {N(socket), {AF_UNIX, SOCK_SEQPACKET}, KILL, ALLOW},
    {N(connect), {3}, KILL, ALLOW},
    {N(socket), {AF_INET, SOCK_STREAM}, KILL, KILL},
    {N(socket), {AF_INET6, SOCK_STREAM}, KILL, KILL},
    {N(socket), {AF_NETLINK, SOCK_RAW}, KILL, KILL},
    {N(socket), {AF_VSOCK, SOCK_STREAM}, KILL, KILL},
    {N(socketpair), {AF_UNIX}, KILL, KILL},
    {N(bind), {3}, KILL, KILL},
    {N(listen), {3}, KILL, KILL},
    /* Habits that fail instead. */
    {N(open), {0}, FAIL(EACCES), FAIL(EACCES)},
    {N(openat), {0}, FAIL(EACCES), ALLOW},
    {N(openat2), {0}, FAIL(ENOSYS), FAIL(ENOSYS)},
    {N(ioctl), {1, 0x5401}, FAIL(ENOTTY), FAIL(ENOTTY)},
    {N(ioctl), {1, 0x5412}, FAIL(ENOTTY), FAIL(ENOTTY)},
    {N(prctl), {PR_SET_DUMPABLE, 1}, FAIL(EINVAL), FAIL(EINVAL)},
    {N(readlink), {0}, FAIL(EACCES), FAIL(EACCES)},
    /* Signals: to itself (pid 0 in the table is replaced), no others. */
    {N(tgkill), {1, 1, SIGKILL}, KILL, KILL},
    {N(tkill), {1, SIGKILL}, KILL, KILL},
    {N(kill), {1, SIGKILL}, KILL, KILL},
    {N(kill), {1, 0}, KILL, ALLOW},
    {N(kill), {1, 0x100000000}, KILL, KILL},
    {N(rt_sigqueueinfo), {1, SIGKILL}, KILL, KILL},
    {N(pidfd_send_signal), {3}, KILL, KILL},
    {N(pidfd_getfd), {3}, KILL, KILL},
    /* Limits of itself only. */
    {N(prlimit64), {0}, ALLOW, ALLOW},
    {N(prlimit64), {1}, KILL, KILL},
    /* Ways out. */
    {N(execve), {0}, KILL, KILL},
    {N(execveat), {0}, KILL, KILL},
    {N(fork), {0}, KILL, KILL},
    {N(vfork), {0}, KILL, KILL},
    {N(clone), {0}, KILL, KILL},
    {N(clone3), {0}, KILL, KILL},
    {N(unshare), {0}, KILL, KILL},
    {N(setns), {0}, KILL, KILL},
    {N(ptrace), {0}, KILL, KILL},
    {N(process_vm_readv), {0}, KILL, KILL},
    {N(process_vm_writev), {0}, KILL, KILL},
    {N(mount), {0}, KILL, KILL},
    {N(open_tree), {0}, KILL, KILL},
    {N(move_mount), {0}, KILL, KILL},
    {N(pivot_root), {0}, KILL, KILL},
    {N(chroot), {0}, KILL, KILL},
    {N(bpf), {0}, KILL, KILL},
    {N(perf_event_open), {0}, KILL, KILL},
    {N(userfaultfd), {0}, KILL, KILL},
    {N(io_uring_setup), {0}, KILL, KILL},
    {N(io_uring_enter), {0}, KILL, KILL},
    {N(keyctl), {0}, KILL, KILL},
    {N(add_key), {0}, KILL, KILL},
    {N(request_key), {0}, KILL, KILL},
    {N(init_module), {0}, KILL, KILL},
    {N(kexec_load), {0}, KILL, KILL},
    {N(setuid), {0}, KILL, KILL},
    {N(setresuid), {0}, KILL, KILL},
    {N(setgroups), {0}, KILL, KILL},
    {N(capset), {0}, KILL, KILL},
    {N(capget), {0}, KILL, ALLOW},
    {N(seccomp), {0}, KILL, KILL},
    {N(open_by_handle_at), {0}, KILL, KILL},
    {N(unlink), {0}, KILL, KILL},
    {N(rename), {0}, KILL, KILL},
    {N(chmod), {0}, KILL, KILL},
    {N(shmget), {0}, KILL, KILL},
    {N(inotify_init1), {0}, KILL, KILL},
    {AUDIT_ARCH_X86_64, 5000, {0}, KILL, KILL},
    {AUDIT_ARCH_X86_64, -1, {0}, KILL, KILL},
    /* Other entries to the kernel: x32 and int 0x80, also with numbers
     * that are harmless in the 64-bit table. */
    {AUDIT_ARCH_X86_64, X32 | 0, {0}, KILL, KILL},
    {AUDIT_ARCH_X86_64, X32 | 1, {0}, KILL, KILL},
    {AUDIT_ARCH_X86_64, X32 | 520, {0}, KILL, KILL},
    {AUDIT_ARCH_I386, 1, {0}, KILL, KILL},
    {AUDIT_ARCH_I386, 3, {0}, KILL, KILL},
    {AUDIT_ARCH_I386, 11, {0}, KILL, KILL},
    {AUDIT_ARCH_AARCH64, 64, {0}, KILL, KILL},
};

static uint32_t
judge(const struct buf *b, uint32_t arch, int nr, const uint64_t *a)
{
	struct seccomp_data d = {.nr = nr, .arch = arch};

	for (int i = 0; i < 4; i++)
		d.args[i] = a[i];
	return bpf_eval((const struct sock_filter *)(const void *)b->p,
	    b->len / sizeof(struct sock_filter), &d);
}

static void
verdicts(void **state)
{
	struct buf p, r;
	struct err e;
	uint64_t self[4] = {(uint64_t)getpid(), 1, SIGABRT};

	(void)state;
	buf_init(&p, 1 << 16);
	buf_init(&r, 1 << 16);
	assert_int_equal(confine_export(&plain, &p, &e), 0);
	assert_int_equal(confine_export(&with_rules, &r, &e), 0);
	assert_int_equal(p.len % sizeof(struct sock_filter), 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct verdict *v = &table[i];
		uint32_t got = judge(&p, v->arch, v->nr, v->a);

		if (got != v->plain)
			fail_msg("row %zu, call %d: %08x, not %08x", i, v->nr,
			    got, v->plain);
		got = judge(&r, v->arch, v->nr, v->a);
		if (got != v->with_rules)
			fail_msg("row %zu, call %d, own rules: %08x, not %08x",
			    i, v->nr, got, v->with_rules);
	}
	assert_int_equal(judge(&p, AUDIT_ARCH_X86_64, SYS_tgkill, self), ALLOW);
	buf_free(&p);
	buf_free(&r);
}

/* Nothing outside the base list and the errno habits may pass: every number
 * that is allowed with zero arguments must be in the list. */
static void
nothing_else(void **state)
{
	struct buf p;
	struct err e;
	const uint64_t zero[4] = {0};
	unsigned allowed = 0;

	(void)state;
	buf_init(&p, 1 << 16);
	assert_int_equal(confine_export(&plain, &p, &e), 0);
	for (int nr = 0; nr < 1024; nr++)
		if (judge(&p, AUDIT_ARCH_X86_64, nr, zero) != KILL)
			allowed++;
	/* A growing list is a decision: change this number with a reason. */
	assert_int_equal(allowed, 91);
	buf_free(&p);
}

/* One server elsewhere: TCP sockets, opening for reading, and nothing else
 * that the program without these two has not. */
static void
one_server_elsewhere(void **state)
{
	static const struct {
		int nr;
		uint64_t a[4];
		uint32_t want;
	} rows[] = {
	    {SCMP_SYS(socket), {AF_UNIX, SOCK_SEQPACKET}, ALLOW},
	    {SCMP_SYS(socket), {AF_INET, SOCK_STREAM}, ALLOW},
	    {SCMP_SYS(socket), {AF_INET6, SOCK_STREAM}, ALLOW},
	    {SCMP_SYS(socket),
		{AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK}, ALLOW},
	    {SCMP_SYS(socket), {AF_INET6, SOCK_STREAM | SOCK_CLOEXEC}, ALLOW},
	    {SCMP_SYS(socket), {AF_INET, SOCK_DGRAM}, KILL},
	    {SCMP_SYS(socket), {AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC}, KILL},
	    {SCMP_SYS(socket), {AF_INET, SOCK_RAW}, KILL},
	    {SCMP_SYS(socket), {AF_INET, SOCK_SEQPACKET}, KILL},
	    {SCMP_SYS(socket), {AF_INET, SOCK_STREAM, 6}, KILL},
	    {SCMP_SYS(socket), {AF_INET, SOCK_STREAM, 132}, KILL},
	    {SCMP_SYS(socket), {AF_INET6, SOCK_STREAM, 262}, KILL},
	    {SCMP_SYS(socket), {0x100000002, SOCK_STREAM}, KILL},
	    {SCMP_SYS(socket), {AF_NETLINK, SOCK_STREAM}, KILL},
	    {SCMP_SYS(socket), {AF_VSOCK, SOCK_STREAM}, KILL},
	    {SCMP_SYS(socket), {AF_PACKET, SOCK_RAW}, KILL},
	    {SCMP_SYS(connect), {3}, ALLOW},
	    {SCMP_SYS(bind), {3}, KILL},
	    {SCMP_SYS(listen), {3}, KILL},
	    {SCMP_SYS(sendto), {3, 0, 1, FASTOPEN}, KILL},
	    {SCMP_SYS(openat), {0, 0, O_RDONLY}, ALLOW},
	    {SCMP_SYS(openat), {0, 0, O_RDONLY | O_CLOEXEC}, ALLOW},
	    {SCMP_SYS(openat), {0, 0, O_DIRECTORY | O_NONBLOCK}, ALLOW},
	    {SCMP_SYS(openat), {0, 0, O_WRONLY}, FAIL(EACCES)},
	    {SCMP_SYS(openat), {0, 0, O_RDWR | O_CLOEXEC}, FAIL(EACCES)},
	    {SCMP_SYS(openat), {0, 0, O_ACCMODE}, FAIL(EACCES)},
	    {SCMP_SYS(openat), {0, 0, O_CREAT}, FAIL(EACCES)},
	    {SCMP_SYS(openat), {0, 0, O_TRUNC}, FAIL(EACCES)},
	    {SCMP_SYS(openat), {0, 0, O_CREAT | O_WRONLY | O_TRUNC},
		FAIL(EACCES)},
	    {SCMP_SYS(openat), {0, 0, O_TMPFILE | O_RDWR}, FAIL(EACCES)},
	    {SCMP_SYS(openat), {0, 0, O_PATH}, FAIL(EACCES)},
	    {SCMP_SYS(openat), {0, 0, O_PATH | O_DIRECTORY | O_CLOEXEC},
		FAIL(EACCES)},
	    {SCMP_SYS(open), {0}, FAIL(EACCES)},
	    {SCMP_SYS(openat2), {0}, FAIL(ENOSYS)},
	    {SCMP_SYS(open_by_handle_at), {0}, KILL},
	};
	const uint64_t zero[4] = {0};
	struct confine_spec near = elsewhere;
	struct buf far_off, b;
	struct err e;

	near.read_file = NULL;
	near.connect_ports = NULL;
	near.nports = 0;
	buf_init(&far_off, 1 << 16);
	buf_init(&b, 1 << 16);
	assert_int_equal(confine_export(&elsewhere, &far_off, &e), 0);
	assert_int_equal(confine_export(&near, &b, &e), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t got =
		    judge(&far_off, AUDIT_ARCH_X86_64, rows[i].nr, rows[i].a);

		if (got != rows[i].want)
			fail_msg("row %zu, call %d: %08x, not %08x", i,
			    rows[i].nr, got, rows[i].want);
		/* Without a server elsewhere none of it. */
		got = judge(&b, AUDIT_ARCH_X86_64, rows[i].nr, rows[i].a);
		if (rows[i].nr == SCMP_SYS(openat))
			assert_int_equal(got, FAIL(EACCES));
		else if (rows[i].nr == SCMP_SYS(socket))
			assert_true(
			    got == (rows[i].a[0] == AF_UNIX ? ALLOW : KILL));
	}
	for (int nr = 0; nr < 1024; nr++)
		if (nr != SCMP_SYS(openat) && nr != SCMP_SYS(socket))
			assert_int_equal(
			    judge(&far_off, AUDIT_ARCH_X86_64, nr, zero),
			    judge(&b, AUDIT_ARCH_X86_64, nr, zero));
	buf_free(&far_off);
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(verdicts),
	    cmocka_unit_test(nothing_else),
	    cmocka_unit_test(one_server_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
