/* service.h: the descriptors that a manager passes, and those it only seems to.
 */
#include "service_rig.h"
#include "unit.h"

#include <sys/socket.h>

/* What the manager says of descriptors to the process that calls this. */
static void
passed(int n, const char *names, pid_t pid)
{
	set("LISTEN_PID", pid);
	set("LISTEN_FDS", n);
	setenv("LISTEN_FDNAMES", names, 1);
}

/* A listening socket as descriptor `fd`, without close-on-exec, as execve
 * leaves it. */
static void
put_listener(int fd)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);

	if (s < 0 || listen(s, 1) != 0 || (s != fd && dup2(s, fd) != fd))
		_exit(99);
	if (s != fd)
		close(s);
}

static void
close_all(void)
{
	for (int fd = 3; fd < 20; fd++)
		close(fd);
}

static void
inherits_daemon(void)
{
	struct event_base *base;
	int fd;

	close_all();
	put_listener(3);
	put_listener(4);
	passed(2, "other:http", getpid());
	service_start();
	for (fd = 3; fd <= 4; fd++)
		if (fcntl(fd, F_GETFD) != FD_CLOEXEC)
			_exit(2);
	if (service_listener("http") != 4 || service_listener("other") != 3)
		_exit(3);
	if (getenv("LISTEN_FDS") != NULL || getenv("LISTEN_PID") != NULL ||
	    getenv("LISTEN_FDNAMES") != NULL)
		_exit(4);
	base = event_base_new();
	service_ready(base, "");
	event_base_free(base);
}

static void
inherits(void **state)
{
	(void)state;
	assert_int_equal(run(inherits_daemon), 0);
	assert_string_equal(said, "");
}

/* A parent's variables: its descriptors are not ours, nor touched. */
static void
anothers_daemon(void)
{
	close_all();
	put_listener(3);
	passed(1, "http", getppid());
	service_start();
	if (service_listener("http") != -1 || fcntl(3, F_GETFD) != 0 ||
	    getenv("LISTEN_FDS") != NULL || getenv("LISTEN_PID") != NULL)
		_exit(2);
}

static void
bad_pid_daemon(void)
{
	char text[32];

	close_all();
	put_listener(3);
	passed(1, "http", getpid());
	/* The kernel's number with something behind it. */
	snprintf(text, sizeof(text), "%ldx", (long)getpid());
	setenv("LISTEN_PID", text, 1);
	service_start();
	if (service_listener("http") != -1)
		_exit(2);
}

static void
anothers(void **state)
{
	(void)state;
	assert_int_equal(run(anothers_daemon), 0);
	assert_int_equal(run(bad_pid_daemon), 0);
}

static void
unnamed_daemon(void)
{
	close_all();
	put_listener(3);
	passed(1, "mcpbox.socket", getpid());
	service_start();
	(void)service_listener("http");
}

static void
nameless_daemon(void)
{
	close_all();
	put_listener(3);
	passed(1, "", getpid());
	service_start();
	(void)service_listener("http");
}

static void
twice_daemon(void)
{
	close_all();
	put_listener(3);
	put_listener(4);
	passed(2, "http:http", getpid());
	service_start();
	(void)service_listener("http");
}

static void
promised_daemon(void)
{
	close_all();
	put_listener(3);
	passed(2, "http:more", getpid());
	service_start();
}

static void
many_daemon(void)
{
	passed(1000, "http", getpid());
	service_start();
}

static struct event_base *kept;

static void
unused_daemon(void)
{
	close_all();
	put_listener(3);
	passed(1, "http", getpid());
	service_start();
	kept = event_base_new();
	service_ready(kept, "");
}

/* Units that would start a server nobody reaches: each ends with the reason. */
static void
wrong_units(void **state)
{
	(void)state;
	assert_int_equal(run(unnamed_daemon), 1);
	assert_non_null(strstr(said,
	    "<3>unit: service_manager: of 1 descriptors passed none is named "
	    "\"http\"; set FileDescriptorName=http"));
	assert_int_equal(run(nameless_daemon), 1);
	assert_non_null(strstr(said, "none is named"));
	assert_int_equal(run(twice_daemon), 1);
	assert_non_null(strstr(said, "more than one descriptor is named"));
	assert_int_equal(run(promised_daemon), 1);
	assert_non_null(strstr(
	    said, "LISTEN_FDS promises descriptor 4: Bad file descriptor"));
	assert_int_equal(run(many_daemon), 1);
	assert_non_null(strstr(said, "1000 descriptors were passed"));
	assert_int_equal(run(unused_daemon), 1);
	assert_non_null(strstr(said, "descriptor 3 (\"http\") was passed"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(inherits),
	    cmocka_unit_test(anothers),
	    cmocka_unit_test(wrong_units),
	};

	unsetenv("NOTIFY_SOCKET");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
