/*
 * httpd_drain.c over real loopback sockets: the end of a server, and what each
 * of its clients sees of it.
 */
#include <netinet/in.h>

#include "httpd_rig.h"
#include "unit.h"

static unsigned late, done, streams;
static bool answer_late;
static struct httpd_req *stream; /* the long one; NULL: none */

static void
on_late(void *arg)
{
	(void)arg;
	late++;
	if (answer_late && waiting != NULL)
		httpd_reply(waiting, 503, "text/plain", "late", 4);
}

static void
on_done(void *arg)
{
	(void)arg;
	done++;
}

static void
on_streams(void *arg)
{
	(void)arg;
	assert_int_equal(late, 0);
	streams++;
	if (stream != NULL)
		httpd_stream_end(stream);
	stream = NULL;
}

static void
drain(uint64_t ms)
{
	struct httpd_draining d = {
	    .ms = ms, .streams = on_streams, .late = on_late, .done = on_done};

	late = done = streams = 0;
	httpd_drain(server, &d);
}

/* A server whose connections may be idle for long; fd: an inherited listener,
 * or -1. */
static void
start_patient(int fd)
{
	static const struct httpd_handlers h = {on_request, on_gone, NULL};
	struct httpd_limits l = {.connections = 100,
	    .connections_per_source = 100,
	    .header_ms = 60000,
	    .body_ms = 60000,
	    .idle_ms = 60000,
	    .head_max = 8192,
	    .body_max = 1024 * 1024};
	struct err err;

	served = gone = drained = 0;
	waiting = NULL;
	answer_late = false;
	base = event_base_new();
	assert_non_null(base);
	server = fd < 0 ? httpd_new(base, "127.0.0.1", 0, NULL, &l, &h, NULL,
			      address, sizeof(address), &err)
			: httpd_new_inherited(base, fd, &l, &h, NULL, address,
			      sizeof(address), &err);
	if (server == NULL)
		fail_msg("%s", err.text);
}

static void
on_timer(evutil_socket_t fd, short what, void *fired)
{
	(void)fd;
	(void)what;
	*(bool *)fired = true;
}

/* Turns the loop until it is done: in how many ms, and before a timer of so
 * many that the loop has beside it. A slow machine holds up both. */
static long
until_done_before(long ms)
{
	static bool fired;
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	long begun = lc_ms();

	fired = false;
	assert_int_equal(
	    event_base_once(base, -1, EV_TIMEOUT, on_timer, &fired, &tv), 0);
	while (done == 0 && !fired)
		lc_turn(NULL, base);
	assert_int_equal(done, 1);
	return lc_ms() - begun;
}

static bool
refused(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool no;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port =
	    htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
	no = connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0;
	close(fd);
	return no;
}

static void
test_nothing_left(void **state)
{
	(void)state;
	start_patient(-1);
	drain(60000);
	until_done_before(500);
	assert_int_equal(late, 0);
	assert_true(refused());
	lc_run(base, 20);
	assert_int_equal(done, 1);
	stop();
}

/* What is in flight is answered, and its connection ends with that. */
static void
test_in_flight(void **state)
{
	struct lc c;

	(void)state;
	start_patient(-1);
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait"));
	lc_run(base, 20);
	assert_non_null(waiting);
	drain(60000);
	lc_run(base, 50);
	assert_int_equal(done, 0);
	httpd_reply(waiting, 200, "text/plain", "at last", 7);
	lc_until_eof(&c, base);
	assert_non_null(strstr(c.p, "HTTP/1.1 200 "));
	assert_non_null(strstr(c.p, "Connection: close\r\n"));
	assert_non_null(strstr(c.p, "\r\n\r\nat last"));
	assert_int_equal(done, 0);
	lc_close(&c);
	until_done_before(500);
	assert_int_equal(gone, 0);
	stop();
}

/* One that was used a moment ago may come once more; one that is idle for long
 * is closed, in order and at once. */
static void
test_kept_alive(void **state)
{
	struct lc old, busy, quiet;
	long begun;

	(void)state;
	start_patient(-1);
	old = lc_open(address);
	lc_sends(&old, base, GET("/old"));
	assert_int_equal(lc_answer(&old, base), 200);
	lc_next(&old);
	lc_run(base, 2100); /* HTTPD_DRAIN_IDLE_MS */
	busy = lc_open(address);
	quiet = lc_open(address);
	lc_sends(&busy, base, GET("/busy"));
	lc_sends(&quiet, base, GET("/quiet"));
	assert_int_equal(lc_answer(&busy, base), 200);
	assert_null(strstr(busy.p, "Connection: close"));
	lc_next(&busy);
	assert_int_equal(lc_answer(&quiet, base), 200);
	lc_next(&quiet);

	drain(60000);
	begun = lc_ms();
	lc_until_eof(&old, base);
	assert_int_equal(old.n, 0);
	/* Not by HTTPD_DRAIN_IDLE_MS, which ends this one too. */
	lc_turn(&quiet, base);
	assert_true(!quiet.eof || lc_ms() - begun >= 2000);
	lc_run(base, 500);
	lc_sends(&busy, base, GET("/more"));
	lc_until_eof(&busy, base);
	assert_non_null(strstr(busy.p, "Connection: close\r\n"));
	assert_non_null(strstr(busy.p, "\r\n\r\n/more"));
	lc_close(&busy);
	assert_int_equal(done, 0);
	lc_until_eof(&quiet, base);
	assert_int_equal(quiet.n, 0);
	assert_true(lc_ms() - begun >= 1500);
	until_done_before(500);
	assert_int_equal(late, 0);
	assert_int_equal(served, 4);
	lc_close(&old);
	lc_close(&quiet);
	stop();
}

/* A request that has arrived, though nobody has read it, is no idleness. */
static void
test_sent_in_that_moment(void **state)
{
	struct lc c;

	(void)state;
	start_patient(-1);
	c = lc_open(address);
	lc_sends(&c, base, GET("/one"));
	assert_int_equal(lc_answer(&c, base), 200);
	lc_next(&c);
	lc_run(base, 2100);
	assert_int_equal(send(c.fd, GET("/two"), strlen(GET("/two")), 0),
	    strlen(GET("/two")));
	drain(0); /* its time is over already */
	lc_until_eof(&c, base);
	assert_non_null(strstr(c.p, "HTTP/1.1 200 "));
	assert_non_null(strstr(c.p, "Connection: close\r\n"));
	assert_int_equal(served, 2);
	lc_close(&c);
	until_done_before(LC_DEADLINE_MS);
	stop();
}

static void
test_half_a_request(void **state)
{
	struct lc whole, half;

	(void)state;
	start_patient(-1);
	whole = lc_open(address);
	half = lc_open(address);
	lc_sends(&whole, base, "POST /a HTTP/1.1\r\nHost: localhost\r\n");
	lc_sends(&half, base,
	    "POST /b HTTP/1.1\r\nHost: localhost\r\n"
	    "Content-Length: 5\r\n\r\nab");
	lc_run(base, 20);
	drain(400);
	lc_run(base, 100);
	lc_sends(&whole, base, "Content-Length: 2\r\n\r\nhi");
	lc_until_eof(&whole, base);
	assert_non_null(strstr(whole.p, "HTTP/1.1 200 "));
	assert_non_null(strstr(whole.p, "Connection: close\r\n"));
	assert_string_equal(last_body, "hi");
	lc_close(&whole);
	/* Its client knows that nothing was done. */
	lc_until_eof(&half, base);
	assert_non_null(strstr(half.p, "HTTP/1.1 503 "));
	assert_non_null(strstr(half.p, "Connection: close\r\n"));
	assert_int_equal(late, 1);
	assert_int_equal(served, 1);
	lc_close(&half);
	until_done_before(500);
	stop();
}

/* Behind an answer that says "close" nothing is served, and nothing is reset:
 * the client reads it and sends the rest elsewhere (RFC 9112 section 9.6). */
static void
test_pipelined(void **state)
{
	struct lc c;

	(void)state;
	start_patient(-1);
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait") GET("/second") GET("/third"));
	lc_run(base, 20);
	drain(60000);
	httpd_reply(waiting, 200, "text/plain", "first", 5);
	lc_until_eof(&c, base);
	assert_non_null(strstr(c.p, "Connection: close\r\n"));
	assert_null(strstr(c.p, "second"));
	assert_int_equal(served, 1);
	lc_close(&c);
	until_done_before(500);
	stop();
}

static void
on_stream_gone(struct httpd_req *r, void *arg)
{
	(void)arg;
	if (r == stream)
		stream = NULL;
}

/* A client whose request is with the owner. */
static struct lc
waits(void)
{
	struct lc c = lc_open(address);

	lc_sends(&c, base, GET("/wait"));
	lc_run(base, 20);
	assert_non_null(waiting);
	return c;
}

/* That request's answer becomes a stream. */
static void
become_stream(void)
{
	assert_non_null(waiting);
	stream = waiting;
	waiting = NULL;
	httpd_last(stream);
	httpd_stream_begin(stream, 200, "text/event-stream");
	httpd_sse_event(stream, NULL, "told", 4);
	httpd_stream_lean(stream, on_stream_gone);
}

/* A stream goes on until nothing else is left, and ends in order. */
static void
test_streams_last(void **state)
{
	struct lc told, c;

	(void)state;
	start_patient(-1);
	told = waits();
	become_stream();
	c = waits();
	assert_non_null(waiting);
	drain(60000);
	lc_run(base, 100);
	assert_int_equal(streams, 0);
	httpd_sse_event(stream, NULL, "more", 4);
	httpd_reply(waiting, 200, "text/plain", "at last", 7);
	lc_until_eof(&c, base);
	lc_close(&c);
	lc_until_eof(&told, base);
	assert_non_null(strstr(told.p, "data: more\n"));
	assert_int_equal(streams, 1);
	lc_close(&told);
	until_done_before(500);
	assert_int_equal(late, 0);
	assert_int_equal(streams, 1);
	stop();

	/* One that is the last to come of those, while all others wait. */
	start_patient(-1);
	told = waits();
	drain(60000);
	lc_run(base, 50);
	assert_int_equal(streams, 0);
	become_stream();
	lc_until_eof(&told, base);
	lc_close(&told);
	until_done_before(500);
	assert_int_equal(streams, 1);
	assert_int_equal(late, 0);
	stop();

	/* Time is over: both kinds, and the owner that does nothing loses them
	 * a second later. */
	start_patient(-1);
	told = waits();
	become_stream();
	c = waits();
	drain(200);
	assert_true(until_done_before(LC_DEADLINE_MS) >= 1100);
	assert_int_equal(streams, 1);
	assert_int_equal(late, 1);
	stop();
	lc_close(&told);
	lc_close(&c);
}

/* The owner answers in the last moment; one that doesn't loses the client a
 * second later. */
static void
test_late(void **state)
{
	struct lc c;

	(void)state;
	start_patient(-1);
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait"));
	lc_run(base, 20);
	answer_late = true;
	drain(200);
	lc_until_eof(&c, base);
	assert_non_null(strstr(c.p, "HTTP/1.1 503 "));
	assert_non_null(strstr(c.p, "\r\n\r\nlate"));
	assert_int_equal(late, 1);
	lc_close(&c);
	until_done_before(500);
	stop();

	start_patient(-1);
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait"));
	lc_run(base, 20);
	drain(200);
	assert_true(until_done_before(LC_DEADLINE_MS) >= 1100);
	assert_int_equal(late, 1);
	assert_int_equal(gone, 0);
	stop();
	assert_int_equal(gone, 1);
	lc_close(&c);
}

/* Nobody accepts after us at a listener of our own: what the kernel took is
 * served. */
static void
test_backlog_of_our_own(void **state)
{
	struct lc c[3];
	int i;

	(void)state;
	start_patient(-1);
	for (i = 0; i < 3; i++) {
		c[i] = lc_open(address); /* no turn of the loop between */
		assert_true(send(c[i].fd, GET("/x"), strlen(GET("/x")), 0) > 0);
	}
	drain(60000);
	assert_true(refused());
	for (i = 0; i < 3; i++) {
		lc_until_eof(&c[i], base);
		assert_non_null(strstr(c[i].p, "HTTP/1.1 200 "));
		assert_non_null(strstr(c[i].p, "Connection: close\r\n"));
		lc_close(&c[i]);
	}
	until_done_before(500);
	stop();
}

/* At the manager's it waits for the next process, with all it has sent. */
static void
test_backlog_inherited(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	char buf[256] = "";
	struct lc waits, here;
	int manager, fd;

	(void)state;
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	manager = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(manager, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(manager, 16), 0);
	start_patient(dup(manager));
	here = lc_open(address);
	lc_sends(&here, base, GET("/wait"));
	lc_run(base, 20);
	waits = lc_open(address);
	assert_true(
	    send(waits.fd, GET("/later"), strlen(GET("/later")), 0) > 0);
	drain(60000);
	assert_false(refused()); /* its socket listens on */
	lc_run(base, 100);
	httpd_reply(waiting, 200, "text/plain", "x", 1);
	lc_until_eof(&here, base);
	lc_close(&here);
	until_done_before(500);
	assert_int_equal(served, 1);
	stop();
	/* The next process. */
	fcntl(manager, F_SETFL, 0);
	fd = accept(manager, NULL, NULL);
	assert_true(fd >= 0);
	assert_int_equal(
	    recv(fd, buf, sizeof(buf) - 1, 0), strlen(GET("/later")));
	assert_string_equal(buf, GET("/later"));
	close(fd);
	close(manager);
	lc_close(&waits);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nothing_left),
	    cmocka_unit_test(test_in_flight),
	    cmocka_unit_test(test_kept_alive),
	    cmocka_unit_test(test_sent_in_that_moment),
	    cmocka_unit_test(test_half_a_request),
	    cmocka_unit_test(test_pipelined),
	    cmocka_unit_test(test_streams_last),
	    cmocka_unit_test(test_late),
	    cmocka_unit_test(test_backlog_of_our_own),
	    cmocka_unit_test(test_backlog_inherited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
