/*
 * mcpbox-admind-check itself: starts it in a directory of its own, asks it
 * over its socket as admind would, and looks from outside at how it is
 * confined. argv[1] is the executable.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc_io.h"
#include "unit.h"

static const char *exe;

enum { CHECK_UID = 1900000002 }; /* INTERFACES: numbers for tests, nobody's */

static pid_t running; /* ended by cleanup() if its test failed */

struct daemon {
	char dir[64], sock[128], conf[128];
	pid_t pid;
};

static void
start(struct daemon *d, uid_t admind)
{
	char sub[96];
	FILE *f;

	snprintf(d->dir, sizeof(d->dir), "/tmp/mcpbox-check-XXXXXX");
	assert_non_null(mkdtemp(d->dir));
	assert_int_equal(chmod(d->dir, 0755), 0);
	snprintf(sub, sizeof(sub), "%s/admind-check", d->dir);
	assert_int_equal(mkdir(sub, 0755), 0);
	snprintf(d->sock, sizeof(d->sock), "%s/admind.sock", sub);
	snprintf(d->conf, sizeof(d->conf), "%s/check.conf", d->dir);
	assert_non_null(f = fopen(d->conf, "w"));
	fprintf(f, "run_dir %s\nadmind_user %u\n", d->dir, admind);
	assert_int_equal(fclose(f), 0);
	/* Daemons refuse uid 0: as root it gets a number that is nobody's. */
	if (geteuid() == 0)
		assert_int_equal(chown(sub, CHECK_UID, CHECK_UID), 0);
	assert_int_not_equal(d->pid = fork(), -1);
	if (d->pid == 0) {
		if (geteuid() == 0 &&
		    (setresgid(CHECK_UID, CHECK_UID, CHECK_UID) == -1 ||
			setresuid(CHECK_UID, CHECK_UID, CHECK_UID) == -1))
			_exit(98);
		/* Confined as it is, its leak checker cannot work. */
		setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
		execl(exe, exe, "-f", d->conf, (char *)NULL);
		_exit(99);
	}
	running = d->pid;
}

/* Ends it and removes what it left. Returns its wait status. */
static int
stop(struct daemon *d, int sig)
{
	char sub[96];
	int status;

	kill(d->pid, sig);
	assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
	running = 0;
	unlink(d->sock);
	unlink(d->conf);
	snprintf(sub, sizeof(sub), "%s/admind-check", d->dir);
	rmdir(sub);
	rmdir(d->dir);
	return status;
}

static int
cleanup(void **state)
{
	if (running != 0) {
		kill(running, SIGKILL);
		waitpid(running, NULL, 0);
		running = 0;
	}
	return 0;
}

static int
open_client(const struct daemon *d, struct err *e)
{
	int sock = -1;

	for (int i = 0; i < 500 && sock == -1; i++) {
		sock = ipc_client_open(
		    d->sock, IPC_ROLE_ADMIND, IPC_ROLE_CHECK, "test", e);
		if (sock == -1)
			usleep(10000);
	}
	return sock;
}

static enum ipc_type
arguments(int sock, const char *schema, const char *args, enum failure *why)
{
	struct ipc_check_arguments m = {0};
	struct ipc_check_errors bad;
	struct ipc_frame f;
	struct err e;
	char both[1024];
	enum ipc_type type;

	snprintf(both, sizeof(both), "%s%s", schema, args);
	m.schema_len = (uint32_t)strlen(schema);
	m.schema_arguments = ipc_str(both);
	if (ipc_client_call(sock, IPC_CHECK_ARGUMENTS, &m, 5000, &f, &e) == -1)
		fail_msg("%s", e.text);
	type = f.type;
	if (type == IPC_CHECK_ERRORS) {
		assert_int_equal(ipc_decode(&f, &bad, &e), 0);
		*why = bad.failure;
	}
	ipc_frame_free(&f);
	return type;
}

static void
answers_and_survives(void **state)
{
	struct daemon d;
	struct err e;
	enum failure why = FAILURE_NONE;
	int sock, status;

	start(&d, geteuid());
	sock = open_client(&d, &e);
	assert_int_not_equal(sock, -1);
	/* Often enough that a timer left running would have fired. */
	for (int i = 0; i < 300; i++) {
		assert_int_equal(
		    arguments(sock,
			"{\"type\":\"object\",\"required\":[\"a\"]}",
			"{\"a\":1}", &why),
		    IPC_CHECK_OK);
		assert_int_equal(
		    arguments(sock,
			"{\"type\":\"object\",\"required\":[\"a\"]}", "{}",
			&why),
		    IPC_CHECK_ERRORS);
		assert_int_equal(why, FAILURE_INVALID_ARGUMENTS);
	}
	assert_int_equal(
	    arguments(sock,
		"{\"type\":\"object\",\"properties\":{\"v\":{\"pattern\":"
		"\"^(a|aa)+$\"}}}",
		"{\"v\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"}",
		&why),
	    IPC_CHECK_ERRORS);
	assert_int_equal(why, FAILURE_LIMIT);
	close(sock);
	status = stop(&d, SIGTERM);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A message that admind may not send to this process ends the connection and
 * nothing else. */
static void
refuses_what_is_not_its(void **state)
{
	struct ipc_seal_context m = {0};
	struct daemon d;
	struct ipc_frame f;
	struct err e;
	enum failure why;
	int sock;

	start(&d, geteuid());
	sock = open_client(&d, &e);
	assert_int_not_equal(sock, -1);
	assert_int_equal(
	    ipc_client_call(sock, IPC_SEAL_CONTEXT, &m, 5000, &f, &e), -1);
	close(sock);
	sock = open_client(&d, &e);
	assert_int_not_equal(sock, -1);
	assert_int_equal(
	    arguments(sock, "{\"type\":\"object\"}", "{}", &why), IPC_CHECK_OK);
	close(sock);
	stop(&d, SIGTERM);
}

/* SO_PEERCRED: another uid than admind's gets no HELLO. */
static void
refuses_another_uid(void **state)
{
	struct daemon d;
	struct err e;
	int sock;

	start(&d, geteuid() + 1);
	for (int i = 0; i < 500 && access(d.sock, F_OK) != 0; i++)
		usleep(10000);
	sock = ipc_client_open(
	    d.sock, IPC_ROLE_ADMIND, IPC_ROLE_CHECK, "test", &e);
	assert_int_equal(sock, -1);
	stop(&d, SIGTERM);
}

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1 /* confine.c leaves out seccomp: the runtime needs more */
#else
#define SANITIZED 0
#endif

static void
is_confined(void **state)
{
	static const char *const want[] = {"NoNewPrivs:\t1\n",
	    "CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n",
	    "CapInh:\t0000000000000000\n", "CapAmb:\t0000000000000000\n",
	    "Seccomp:\t2\n"};
	char path[64], text[8192];
	struct daemon d;
	struct err e;
	int fd, sock, status;
	ssize_t n = -1;

	start(&d, geteuid());
	/* HELLO comes from the loop, and that runs after the confinement. */
	sock = open_client(&d, &e);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)d.pid);
	if ((fd = open(path, O_RDONLY)) != -1) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	close(sock);
	/* The backstop's signal must not be caught or blocked. */
	status = stop(&d, SIGPROF);
	assert_int_not_equal(sock, -1);
	assert_true(n > 0);
	text[n] = '\0';
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]) - SANITIZED; i++)
		if (strstr(text, want[i]) == NULL)
			fail_msg("no %s in %s", want[i], text);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGPROF);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(answers_and_survives, cleanup),
	    cmocka_unit_test_teardown(refuses_what_is_not_its, cleanup),
	    cmocka_unit_test_teardown(refuses_another_uid, cleanup),
	    cmocka_unit_test_teardown(is_confined, cleanup),
	};

	if (argc != 2)
		return 2;
	exe = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
