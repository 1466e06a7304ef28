/* service.h against a manager that is played here: a real datagram socket, real
 * descriptors, a child that is told of them by its environment. */
#include "service_rig.h"
#include "unit.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <poll.h>

#define LONG_MS unit_patience(3000)

enum { NOTHING_MS = 1200, WATCHDOG_US = 1000000 };

static char dir[] = "/tmp/mcpbox-service-XXXXXX";
static char path[64];

/* The manager's socket at `name`; a leading '@' is an abstract name. */
static int
listen_at(const char *name)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	socklen_t len =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(sun.sun_path, name, strlen(name));
	if (*name == '@')
		sun.sun_path[0] = '\0';
	else
		unlink(name);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, len), 0);
	return fd;
}

/* The next message; "" if none comes within ms. */
static const char *
heard(int ms)
{
	static char text[4096];
	struct pollfd p = {.fd = manager, .events = POLLIN};
	ssize_t n = 0;

	if (poll(&p, 1, ms) == 1)
		n = recv(manager, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* ---- without a manager ---- */

static void
alone(void)
{
	struct event_base *base = event_base_new();

	service_start();
	if (service_listener("http") != -1)
		_exit(2);
	service_ready(base, "serving");
	service_status("%d", 1);
	service_stopping();
	/* No timer of ours: the loop has nothing to wait for. */
	if (event_base_loop(base, 0) != 1)
		_exit(3);
	event_base_free(base);
}

static void
no_manager(void **state)
{
	(void)state;
	assert_int_equal(run(alone), 0);
	assert_string_equal(said, "");
}

static void
gone_manager_daemon(void)
{
	setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
	alone();
}

static void
relative_manager_daemon(void)
{
	setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
	alone();
}

/* A variable of some parent's: a warning, and it serves. */
static void
gone_manager(void **state)
{
	(void)state;
	assert_int_equal(run(gone_manager_daemon), 0);
	assert_non_null(strstr(said,
	    "<4>unit: service_manager: NOTIFY_SOCKET "
	    "/nonexistent/notify: No such file"));
	assert_int_equal(run(relative_manager_daemon), 0);
	assert_non_null(strstr(said, "neither a path nor"));
}

/* ---- notifications ---- */

static void
notifier(void)
{
	struct event_base *base = event_base_new();

	service_start();
	if (getenv("NOTIFY_SOCKET") != NULL || getenv("LISTEN_FDS") != NULL ||
	    getenv("LISTEN_PID") != NULL || getenv("LISTEN_FDNAMES") != NULL ||
	    getenv("WATCHDOG_USEC") != NULL || getenv("WATCHDOG_PID") != NULL)
		_exit(2);
	service_ready(base, "listener on 127.0.0.1:1");
	service_status("%d connections", 3);
	service_status("%d connections", 3);
	service_status("FATAL:  %s\xff\xc3\xa4", "no role\nMAINPID=1\nREADY=1");
	service_stopping();
	service_stopping();
	event_base_free(base);
}

static void
notifies(const char *name)
{
	manager = listen_at(name);
	setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(run(notifier), 0);
	unsetenv("NOTIFY_SOCKET");
	assert_string_equal(
	    heard(LONG_MS), "READY=1\nSTATUS=listener on 127.0.0.1:1\n");
	assert_string_equal(heard(LONG_MS), "STATUS=3 connections\n");
	/* What others wrote makes no assignment. */
	assert_string_equal(heard(LONG_MS),
	    "STATUS=FATAL:  no role\\x0aMAINPID=1\\x0aREADY=1\\xff\xc3\xa4\n");
	assert_string_equal(heard(LONG_MS), "STOPPING=1\nSTATUS=stopping\n");
	assert_string_equal(heard(50), "");
	close(manager);
}

static void
notify_path(void **state)
{
	(void)state;
	notifies(path);
}

static void
notify_abstract(void **state)
{
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "@mcpbox-test-%ld", (long)getpid());
	notifies(name);
}

/* Far longer than a line may be: cut, and whole characters. */
static void
long_status_daemon(void)
{
	struct event_base *base = event_base_new();
	char big[5000];

	memset(big, '\n', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	service_start();
	service_ready(base, "");
	service_status("%s", big);
	event_base_free(base);
}

static void
long_status(void **state)
{
	const char *text;

	(void)state;
	manager = listen_at(path);
	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(run(long_status_daemon), 0);
	assert_string_equal(heard(LONG_MS), "READY=1\nSTATUS=\n");
	text = heard(LONG_MS);
	assert_memory_equal(text, "STATUS=\\x0a", 11);
	assert_true(strlen(text) < 1100);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	close(manager);
}

/* A manager started anew has another socket under the same name. */
static int go[2];

static void
renewed_daemon(void)
{
	struct event_base *base = event_base_new();
	char c;

	service_start();
	service_ready(base, "one");
	(void)!read(go[0], &c, 1);
	service_status("two");
	service_status("three");
	(void)!read(go[0], &c, 1);
	service_status("four"); /* to nobody */
	event_base_free(base);
}

static void
renewed_manager(void **state)
{
	pid_t pid;
	int err;

	(void)state;
	manager = listen_at(path);
	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = begin(renewed_daemon, &err);
	assert_string_equal(heard(LONG_MS), "READY=1\nSTATUS=one\n");
	close(manager);
	manager = listen_at(path);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_string_equal(heard(LONG_MS), "STATUS=two\n");
	assert_string_equal(heard(LONG_MS), "STATUS=three\n");
	close(manager);
	unlink(path);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(end(pid, err), 0);
	close(go[0]);
	close(go[1]);
}

/* A manager that reads nothing: READY=1 would wait for it, nothing else does.
 */
static void
stuck_daemon(void)
{
	struct event_base *base = event_base_new();

	service_start();
	service_ready(base, "");
	alarm((unsigned)unit_patience(30000) / 1000); /* it hangs */
	for (int i = 0; i < 100000; i++)
		service_status("%d", i);
	service_stopping();
	event_base_free(base);
}

static void
stuck_manager(void **state)
{
	(void)state;
	manager = listen_at(path);
	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(run(stuck_daemon), 0);
	assert_string_equal(heard(LONG_MS), "READY=1\nSTATUS=\n");
	assert_string_equal(heard(LONG_MS), "STATUS=0\n");
	close(manager);
}

/* ---- watchdog and the line that is asked for ---- */

static unsigned asked;

static void
say(char *buf, size_t len, void *arg)
{
	snprintf(buf, len, "asked %u, %s", ++asked, (const char *)arg);
}

static void
looping_daemon(void)
{
	struct event_base *base = event_base_new();
	struct timeval tv = {.tv_sec = 8};

	event_base_priority_init(base, 3);
	service_start();
	service_status_from(say, (void *)(uintptr_t)"now and then");
	service_ready(base, "serving");
	event_base_loopexit(base, &tv);
	event_base_dispatch(base);
}

/* Twice in the time; none from a loop that is stuck; and again when it goes on.
 * Then the line, which is asked for every five seconds. */
static void
watchdog(void **state)
{
	const char *text;
	pid_t pid;
	int err, status;

	(void)state;
	manager = listen_at(path);
	setenv("NOTIFY_SOCKET", path, 1);
	set("WATCHDOG_USEC", WATCHDOG_US);
	pid = begin(looping_daemon, &err);
	unsetenv("WATCHDOG_USEC");
	assert_string_equal(heard(LONG_MS), "READY=1\nSTATUS=serving\n");
	for (int i = 0; i < 4; i++)
		assert_string_equal(heard(WATCHDOG_US / 1000), "WATCHDOG=1\n");
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	while (heard(0)[0] != '\0')
		;
	assert_string_equal(heard(NOTHING_MS), "");
	assert_int_equal(kill(pid, SIGCONT), 0);
	do
		text = heard(WATCHDOG_US / 1000);
	while (strcmp(text, "WATCHDOG=1\n") == 0);
	assert_string_equal(text, "STATUS=asked 1, now and then\n");
	assert_int_equal(kill(pid, SIGKILL), 0);
	(void)end(pid, err);
	close(manager);
}

/* WATCHDOG_PID is another's: not for us. */
static void
others_watchdog(void **state)
{
	pid_t pid;
	int err;

	(void)state;
	manager = listen_at(path);
	setenv("NOTIFY_SOCKET", path, 1);
	set("WATCHDOG_USEC", WATCHDOG_US);
	set("WATCHDOG_PID", getpid());
	pid = begin(looping_daemon, &err);
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	assert_string_equal(heard(LONG_MS), "READY=1\nSTATUS=serving\n");
	assert_string_equal(heard(NOTHING_MS), "");
	assert_int_equal(kill(pid, SIGKILL), 0);
	(void)end(pid, err);
	close(manager);
}

static int
make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/notify", dir);
	return 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_manager),
	    cmocka_unit_test(gone_manager),
	    cmocka_unit_test(notify_path),
	    cmocka_unit_test(notify_abstract),
	    cmocka_unit_test(long_status),
	    cmocka_unit_test(renewed_manager),
	    cmocka_unit_test(stuck_manager),
	    cmocka_unit_test(watchdog),
	    cmocka_unit_test(others_watchdog),
	};

	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
