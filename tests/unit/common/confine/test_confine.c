/*
 * Children that confine themselves, work as a daemon does, and then try to get
 * out.
 */
#include "unit.h"

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
#include <time.h>
#include <unistd.h>

#include "confine_specs.h"
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

enum { X32 = 0x40000000 };

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

/* ---- one server elsewhere ---- */

static struct sockaddr_in server_at, other_at;
static const char *certificate;
static int abi; /* of Landlock; confined it can't be asked for */

/* Its certificate and its port; then everything beside them. */
static int
reach(void)
{
	char text[8];
	int fd, s;

	if ((fd = open(certificate, O_RDONLY | O_CLOEXEC)) < 0)
		return 10;
	if (read(fd, text, sizeof(text)) != 6)
		return 11;
	close(fd);
	if ((s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 ||
	    connect(s, (struct sockaddr *)&server_at, sizeof(server_at)) != 0)
		return 12;
	close(s);
	return 0;
}

static int
reach_nothing_else(void)
{
	static const int flags[] = {
	    O_WRONLY, O_RDWR, O_PATH, O_RDONLY | O_TRUNC, O_RDONLY | O_CREAT};
	int s;

	for (int i = 0; i < 2; i++)
		if (open(i == 0 ? canary : "/etc/passwd", O_RDONLY) >= 0 ||
		    errno != EACCES)
			return 20;
	if (open("/etc", O_RDONLY | O_DIRECTORY) >= 0 || errno != EACCES)
		return 21;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (open(certificate, flags[i], 0600) >= 0 || errno != EACCES)
			return 22;
	if ((s = socket(AF_INET, SOCK_STREAM, 0)) < 0)
		return 23;
	if (abi >= 4 &&
	    (connect(s, (struct sockaddr *)&other_at, sizeof(other_at)) == 0 ||
		errno != EACCES))
		return 24;
	close(s);
	return 0;
}

static int
do_udp(void)
{
	return socket(AF_INET, SOCK_DGRAM, 0) >= 0 ? 1 : 2;
}

static int
do_sctp(void)
{
	return socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP) >= 0 ? 1 : 2;
}

static int
do_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW, 0) >= 0 ? 1 : 2;
}

static int
listener(struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	int s = socket(AF_INET, SOCK_STREAM, 0);

	*at = (struct sockaddr_in){
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(s, (struct sockaddr *)at, len), 0);
	assert_int_equal(listen(s, 5), 0);
	assert_int_equal(getsockname(s, (struct sockaddr *)at, &len), 0);
	return s;
}

/* As a kernel without it answers. */
static int
without_landlock(const struct confine_spec *s)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	struct buf layers;
	struct err e;

	if (f == NULL ||
	    seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), 444, 0) != 0 ||
	    seccomp_load(f) != 0)
		return 30;
	buf_init(&layers, 4096);
	if (confine_self(s, &layers, &e) == 0)
		return 31;
	return strstr(e.text, "needs Landlock") != NULL ? 0 : 32;
}

static void
one_server(void **state)
{
	static int (*const deadly[])(void) = {
	    do_udp, do_sctp, do_netlink, do_exec, do_exec_memory};
	static char path[] = "/tmp/mcpbox-root-XXXXXX",
		    beside[] = "/tmp/mcpbox-canary-XXXXXX";
	struct confine_spec s = elsewhere;
	int fd, a, b, status;
	pid_t pid;

	assert_true((fd = mkstemp(path)) >= 0);
	assert_int_equal(write(fd, "secret", 6), 6);
	close(fd);
	assert_true((fd = mkstemp(beside)) >= 0);
	close(fd);
	canary = beside;
	certificate = path;
	abi = landlock();
	s.read_file = path;
	a = listener(&server_at);
	b = listener(&other_at);
	elsewhere_ports[0] = ntohs(server_at.sin_port);
	status = in_child(&s, reach);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	if (landlock() > 0) {
		/* The canary is there for who is not confined. */
		assert_true((fd = open(canary, O_RDONLY)) >= 0);
		close(fd);
		status = in_child(&s, reach_nothing_else);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	for (size_t i = 0; !SANITIZED && i < sizeof(deadly) / sizeof(deadly[0]);
	    i++) {
		status = in_child(&s, deadly[i]);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
			fail_msg("attempt %zu ended with status %x", i, status);
	}
	if (!SANITIZED) {
		fflush(NULL);
		assert_true((pid = fork()) >= 0);
		if (pid == 0)
			_exit(without_landlock(&s));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		/* The others may be without. */
		fflush(NULL);
		assert_true((pid = fork()) >= 0);
		if (pid == 0)
			_exit(without_landlock(&plain));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 31);
	}
	close(a);
	close(b);
	unlink(path);
	unlink(beside);
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
	    cmocka_unit_test(works),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(one_server),
	    cmocka_unit_test(kept_capability),
	    cmocka_unit_test(report),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
