/*
 * Self-confinement: the filter's verdicts over a table of calls, and children
 * that confine themselves, work as a daemon does, and then try to get out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bpf_eval.h"
#include "confine.h"
#include "ids.h"
#include "log.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum {
	ALLOW = (int)SECCOMP_RET_ALLOW,
	X32 = 0x40000000,
	FASTOPEN = 0x20000000
};
#define KILL    SECCOMP_RET_KILL_PROCESS
#define FAIL(e) (SECCOMP_RET_ERRNO | (e))

static const struct confine_spec plain = {
    .process = "test",
    .landlock = true,
    .landlock_signal_scope = true,
    .seccomp = true,
};

/* A program with rules of its own, one of which replaces a base rule. */
static const struct confine_rule own_rules[] = {
    {SCMP_SYS(openat), -1, 0, 0},
    {SCMP_SYS(kill), 1, UINT64_MAX, 0},
    {SCMP_SYS(capget), -1, 0, 0},
};
static const struct confine_spec with_rules = {
    .process = "test",
    .rules = own_rules,
    .nrules = sizeof(own_rules) / sizeof(own_rules[0]),
    .connect_unix = true,
    .landlock = true,
    .seccomp = true,
};

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

/* A daemon makes its loop before it confines itself (proc_start). */
static struct event_base *loop_base;

/* Runs f in a child that has confined itself; returns the wait status. */
static int
in_child(const struct confine_spec *s, int (*f)(void))
{
	struct buf layers;
	struct err e;
	int status;
	pid_t pid;

	fflush(NULL);
	assert_true((pid = fork()) >= 0);
	if (pid == 0) {
		loop_base = event_base_new();
		buf_init(&layers, 4096);
		if (confine_self(s, &layers, &e) < 0) {
			fprintf(stderr, "confine: %s\n", e.text);
			_exit(99);
		}
		_exit(f());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	int *left = arg;

	(void)fd;
	(void)what;
	(*left)--;
}

/*
 * What a daemon does: timers, buffered sockets, memfds that cross a socket, a
 * connection to a unix socket refused and retried, large allocations, digests,
 * randomness, log lines, fstat.
 */
static int
daemon_work(void)
{
	struct event_base *base = loop_base;
	struct timeval ms = {0, 1000};
	struct sockaddr_un to = {
	    .sun_family = AF_UNIX, .sun_path = "/nonexistent/socket"};
	struct event *tick;
	struct ipc_id id;
	struct stat st;
	unsigned char md[32], *big, *more;
	char text[TIME_TEXT_LEN + 1];
	unsigned mdlen = 0;
	int left = 50, fd, s;

	if (base == NULL)
		return 10;
	tick = event_new(base, -1, EV_PERSIST, on_timer, &left);
	event_add(tick, &ms);
	while (left > 0)
		if (event_base_loop(base, EVLOOP_ONCE) < 0)
			return 11;
	event_free(tick);
	event_base_free(base);
	for (size_t n = 1; n <= 64 << 20; n *= 4) {
		if ((big = malloc(n)) == NULL)
			return 12;
		memset(big, 7, n);
		more = realloc(big, 2 * n);
		if (more == NULL)
			return 13;
		free(more);
	}
	if ((fd = memfd_create("m", MFD_CLOEXEC | MFD_ALLOW_SEALING)) < 0 ||
	    ftruncate(fd, 1 << 20) < 0 || pwrite(fd, "x", 1, 9) != 1 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0 || fstat(fd, &st) < 0 ||
	    st.st_size != 1 << 20)
		return 14;
	close(fd);
	if (EVP_Digest("abc", 3, md, &mdlen, EVP_sha256(), NULL) != 1 ||
	    md[0] != 0xba || RAND_bytes(md, sizeof(md)) != 1)
		return 15;
	if ((s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) < 0 ||
	    connect(s, (struct sockaddr *)&to, sizeof(to)) == 0 ||
	    errno != ENOENT)
		return 16;
	close(s);
	id_random(&id);
	time_text(now_us(), text);
	log_event(LOG_LV_DEBUG, "test", "%s %s", text, strerror(ENOENT));
	/* The C library's own look-ups, which must fail and not kill. */
	if ((fd = open("/etc/passwd", O_RDONLY)) >= 0) {
		close(fd);
		if (!SANITIZED)
			return 17;
	}
	tzset();
	(void)sysconf(_SC_NPROCESSORS_ONLN);
	return isatty(2) > 1;
}

static void
works(void **state)
{
	struct confine_spec s = plain;
	int status;

	(void)state;
	s.connect_unix = true;
	status = in_child(&s, daemon_work);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* The ABI that confine_self uses: none in sanitizer builds. */
static int
landlock(void)
{
	return SANITIZED ? 0 : confine_landlock_abi();
}

static const char *canary;

/* Refused by Landlock even where a rule lets the call itself through. */
static int
open_canary(void)
{
	if (open(canary, O_RDONLY) >= 0)
		return 1;
	return errno == EACCES ? 0 : 2;
}

static int
signal_parent(void)
{
	return kill(getppid(), 0) == 0 ? 1 : errno == EPERM ? 0 : 2;
}

static int
capabilities(void)
{
	/* No file can be opened, so by capget. */
	struct {
		uint32_t version;
		int pid;
	} h = {0x20080522, 0};
	uint32_t d[6] = {1, 1, 1, 1, 1, 1};

	if (syscall(SYS_capget, &h, d) != 0)
		return 2;
	for (int i = 0; i < 6; i++)
		if (d[i] != 0)
			return 3;
	return 0;
}

/* Only CAP_SETUID (7) is permitted and effective, and nothing inheritable. */
static int
one_capability(void)
{
	struct {
		uint32_t version;
		int pid;
	} h = {0x20080522, 0};
	uint32_t d[6]; /* effective, permitted, inheritable: low, then high */

	if (syscall(SYS_capget, &h, d) != 0)
		return 2;
	return d[0] == 1u << 7 && d[1] == 1u << 7 && d[2] == 0 && d[3] == 0 &&
		d[4] == 0 && d[5] == 0
	    ? 0
	    : 3;
}

/* Who has the kept capability keeps it alone; who hasn't, can't start. */
static void
kept_capability(void **state)
{
	static const int caps[] = {7, -1};
	struct confine_spec s = with_rules;
	int status;

	(void)state;
	s.keep_caps = caps;
	status = in_child(&s, one_capability);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), geteuid() == 0 ? 0 : 99);
}

static int
do_exec(void)
{
	execl("/bin/true", "true", (char *)NULL);
	return 1;
}

static int
do_fork(void)
{
	return fork() >= 0 ? 1 : 2;
}

static int
do_inet(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) >= 0 ? 1 : 2;
}

static int
do_exec_memory(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
	    ? 2
	    : 1;
}

static int
do_int80(void)
{
	long rc = 20; /* getpid in the 32-bit table */

	__asm__ volatile("int $0x80" : "+a"(rc) : : "memory");
	return rc > 0 ? 1 : 2;
}

static int
do_x32(void)
{
	return syscall(X32 | SYS_getpid) > 0 ? 1 : 2;
}

/* abort must still end the process by SIGABRT, or errors would hide. */
static int
do_abort(void)
{
	abort();
}

static void
refusals(void **state)
{
	static int (*const deadly[])(void) = {
	    do_exec, do_fork, do_inet, do_exec_memory, do_int80, do_x32};
	struct confine_spec s = with_rules;
	char path[] = "/tmp/mcpbox-canary-XXXXXX";
	int fd, status;

	(void)state;
	assert_true((fd = mkstemp(path)) >= 0);
	assert_int_equal(write(fd, "canary", 6), 6);
	close(fd);
	canary = path;

	if (landlock() > 0) {
		status = in_child(&s, open_canary);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	unlink(path);
	if (landlock() >= 6) {
		s.landlock_signal_scope = true;
		status = in_child(&s, signal_parent);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	status = in_child(&s, capabilities);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	status = in_child(&plain, do_abort);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	if (SANITIZED)
		return; /* the filter isn't loaded there; confine.c says so */
	for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++) {
		status = in_child(&plain, deadly[i]);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("attempt %zu ended with status %x", i, status);
	}
}

static int layers_pipe[2];

/* The report names each layer once, as name=state lines. */
static void
report(void **state)
{
	struct buf layers;
	struct err e;
	char text[4096];
	ssize_t n;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(layers_pipe), 0);
	fflush(NULL);
	assert_true((pid = fork()) >= 0);
	if (pid == 0) {
		buf_init(&layers, 4096);
		if (confine_self(&plain, &layers, &e) < 0)
			_exit(1);
		_exit(write(layers_pipe[1], layers.p, layers.len) ==
			    (ssize_t)layers.len
			? 0
			: 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	n = read(layers_pipe[0], text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "no_new_privs=enforced\n"));
	assert_non_null(strstr(text, "capabilities=enforced\n"));
	/* root may do both; others report what their starter left */
	assert_non_null(strstr(text,
	    geteuid() == 0 ? "bounding_set=enforced\n" : "bounding_set="));
	assert_non_null(strstr(
	    text, geteuid() == 0 ? "securebits=enforced\n" : "securebits="));
	assert_non_null(strstr(text,
	    SANITIZED ? "not_dumpable=missing\n" : "not_dumpable=enforced\n"));
	assert_non_null(strstr(
	    text, SANITIZED ? "seccomp=missing\n" : "seccomp=enforced\n"));
	if (landlock() > 0)
		assert_non_null(strstr(text, "landlock_files=enforced\n"));
	else
		assert_non_null(strstr(text, "landlock_files=missing\n"));
	close(layers_pipe[0]);
	close(layers_pipe[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(verdicts),
	    cmocka_unit_test(nothing_else),
	    cmocka_unit_test(works),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(kept_capability),
	    cmocka_unit_test(report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
