/* httpd_new_inherited: sockets that somebody else listens on. */
#include "httpd_rig.h"
#include "unit.h"

#include <sys/un.h>

static char dir[] = "/tmp/mcpbox-inherited-XXXXXX";

static struct err why;

/* 0 or -1, as httpd_new_inherited does. */
static int
adopt(int fd)
{
	static const struct httpd_handlers h = {on_request, on_gone, NULL};
	struct httpd_limits l = {.connections = 8,
	    .connections_per_source = 2,
	    .header_ms = 2000,
	    .body_ms = 2000,
	    .idle_ms = 2000,
	    .head_max = 8192,
	    .body_max = 1024};

	served = 0;
	base = event_base_new();
	assert_non_null(base);
	server = httpd_new_inherited(
	    base, fd, &l, &h, NULL, address, sizeof(address), &why);
	if (server == NULL)
		event_base_free(base);
	return server != NULL ? 0 : -1;
}

static int
tcp(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {
	    .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	assert_int_equal(family == AF_INET
		? bind(fd, (struct sockaddr *)&in, sizeof(in))
		: bind(fd, (struct sockaddr *)&in6, sizeof(in6)),
	    0);
	return fd;
}

/* Blocking, as systemd passes it; and the manager's copy outlives the server:
 * a client that comes in between waits there and is answered by the next. */
static void
test_tcp(void **state)
{
	int fd = tcp(AF_INET), copy;
	struct lc c;

	(void)state;
	assert_int_equal(listen(fd, 8), 0);
	assert_true((copy = dup(fd)) >= 0);
	assert_int_equal(adopt(fd), 0);
	assert_memory_equal(address, "127.0.0.1:", 10);
	assert_true(strtoul(address + 10, NULL, 10) > 0);
	assert_int_equal(httpd_connections(server), 0);
	c = lc_open(address);
	lc_sends(&c, base, GET("/one"));
	assert_int_equal(lc_answer(&c, base), 200);
	assert_int_equal(httpd_connections(server), 1);
	lc_close(&c);
	stop();

	c = lc_open(address);
	assert_int_equal(adopt(dup(copy)), 0);
	lc_sends(&c, base, GET("/two"));
	assert_int_equal(lc_answer(&c, base), 200);
	assert_int_equal(served, 1);
	lc_close(&c);
	stop();
	close(copy);
}

static void
test_tcp6(void **state)
{
	int fd = tcp(AF_INET6);

	(void)state;
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(adopt(fd), 0);
	assert_memory_equal(address, "[::1]:", 6);
	stop();
}

/* Clients of a unix socket are one proxy: no limit a source. */
static void
unix_socket(const char *name, const char *shown)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	socklen_t len =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct lc c[4];

	memcpy(sun.sun_path, name, strlen(name));
	if (*name == '@')
		sun.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(adopt(fd), 0);
	assert_string_equal(address, shown);
	for (int i = 0; i < 4; i++) {
		c[i] = (struct lc){
		    .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
		    .p = calloc(1, LC_MAX + 1)};
		assert_int_equal(
		    connect(c[i].fd, (struct sockaddr *)&sun, len), 0);
		fcntl(c[i].fd, F_SETFL, O_NONBLOCK);
		lc_sends(&c[i], base, GET("/"));
		assert_int_equal(lc_answer(&c[i], base), 200);
	}
	assert_int_equal(httpd_connections(server), 4);
	for (int i = 0; i < 4; i++)
		lc_close(&c[i]);
	stop();
}

static void
test_unix(void **state)
{
	char path[64], name[64];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/http", dir);
	unix_socket(path, path);
	/* The path is the manager's: the server leaves it. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	snprintf(name, sizeof(name), "@mcpbox-http-%ld", (long)getpid());
	unix_socket(name, name);
}

static void
refused(int fd, const char *because)
{
	assert_true(fd >= 0);
	assert_int_equal(adopt(fd), -1);
	if (strstr(why.text, because) == NULL)
		fail_msg("%s", why.text);
	assert_int_equal(why.failure, FAILURE_INTERNAL);
	/* It was ours, and is closed. */
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* What a wrong unit passes, and what must not look like a quiet server. */
static void
test_no_listener(void **state)
{
	int pipes[2], pair[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	refused(pipes[0], "is no socket");
	close(pipes[1]);
	refused(tcp(AF_INET), "is no listening stream socket");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	refused(pair[0], "is no listening stream socket");
	close(pair[1]);
	refused(socket(AF_UNIX, SOCK_DGRAM, 0), "is no listening stream");
	refused(socket(AF_INET, SOCK_DGRAM, 0), "is no listening stream");
	refused(socket(AF_NETLINK, SOCK_RAW, 0), "of family 16, neither");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tcp),
	    cmocka_unit_test(test_tcp6),
	    cmocka_unit_test(test_unix),
	    cmocka_unit_test(test_no_listener),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
