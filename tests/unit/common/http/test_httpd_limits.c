/*
 * httpd.c over real loopback sockets: the ways in which a client can be slow
 * or greedy, and what it can't take.
 */
#include "httpd_rig.h"
#include "unit.h"

static void
on_drained(struct httpd_req *r, void *arg)
{
	(void)arg;
	(void)r;
	drained++;
}

/* Byte by byte: neither head nor body may take longer than its limit. */
static void
test_slowloris(void **state)
{
	static const char head[] = "GET /slow HTTP/1.1\r\nHost: localhost\r\n";
	struct lc c;
	size_t i;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	for (i = 0; i < sizeof(head) - 1 && lc_whole(&c) == 0 && !c.eof; i++) {
		send(c.fd, head + i, 1, MSG_NOSIGNAL);
		lc_run(base, 20);
		lc_turn(&c, base);
	}
	lc_until_eof(&c, base);
	assert_int_equal(strncmp(c.p, "HTTP/1.1 408 ", 13), 0);
	assert_true(i < sizeof(head) - 1); /* 20 ms each, of 200 */
	lc_close(&c);

	c = lc_open(address);
	lc_sends(&c, base,
	    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n");
	for (i = 0; i < 5000 && lc_whole(&c) == 0 && !c.eof; i++) {
		send(c.fd, "x", 1, MSG_NOSIGNAL);
		lc_run(base, 20);
		lc_turn(&c, base);
	}
	assert_int_equal(lc_answer(&c, base), 408);
	assert_true(i < 100);
	lc_close(&c);

	/* One that says nothing at all, and one that idles after a request:
	 * closed without a word. */
	c = lc_open(address);
	lc_until_eof(&c, base);
	assert_int_equal(c.n, 0);
	lc_close(&c);
	c = lc_open(address);
	lc_sends(&c, base, GET("/"));
	assert_int_equal(lc_answer(&c, base), 200);
	lc_next(&c);
	lc_until_eof(&c, base);
	assert_int_equal(c.n, 0);
	lc_close(&c);
	assert_int_equal(served, 1);
	assert_int_equal(gone, 0);
	stop();
}

/* Connections whose requests are under way make no room. */
static void
test_limits(void **state)
{
	struct lc c[4], over;
	unsigned i;

	(void)state;
	start(4, 3);
	for (i = 0; i < 3; i++) {
		c[i] = lc_open(address);
		lc_sends(&c[i], base, GET("/wait"));
		while (served <= i)
			lc_turn(&c[i], base);
	}
	/* The fourth of this source. */
	over = lc_open(address);
	assert_int_equal(lc_answer(&over, base), 503);
	lc_until_eof(&over, base);
	assert_non_null(strstr(over.p, "\r\nRetry-After: 1\r\n"));
	assert_non_null(strstr(over.p,
	    "3 connections of your address have requests under way, which is "
	    "the limit max_connections_per_source\n"));
	lc_close(&over);
	/* Room again once one has left. */
	lc_close(&c[0]);
	while (gone == 0)
		lc_turn(NULL, base);
	c[0] = lc_open(address);
	lc_sends(&c[0], base, GET("/"));
	assert_int_equal(lc_answer(&c[0], base), 200);
	for (i = 0; i < 3; i++)
		lc_close(&c[i]);
	stop();

	start(2, 100);
	for (i = 0; i < 2; i++) {
		c[i] = lc_open(address);
		lc_sends(&c[i], base, GET("/wait"));
		while (served <= i)
			lc_turn(&c[i], base);
	}
	over = lc_open(address);
	assert_int_equal(lc_answer(&over, base), 503);
	lc_until_eof(&over, base);
	assert_non_null(strstr(over.p,
	    "2 connections have requests under way, which is the limit "
	    "max_connections\n"));
	lc_close(&over);
	for (i = 0; i < 2; i++)
		lc_close(&c[i]);
	assert_int_equal(served, 2);
	stop();
}

/* At a limit the connection that was idle for longest goes, and no other: not
 * one whose request is under way, has begun, or waits in the socket. */
static void
test_idle_makes_room(void **state)
{
	static const unsigned limits[][2] = {{10, 4}, {4, 10}};
	struct lc c[4], more[3];
	size_t i, k;

	(void)state;
	first_ms = idle_ms = LC_DEADLINE_MS * 10;
	for (k = 0; k < 2; k++) {
		start(limits[k][0], limits[k][1]);
		/* 0 waits for its answer, 1 has sent half a head, 2 and 3 are
		 * idle; 3, the older one, becomes the younger. */
		for (i = 0; i < 4; i++)
			c[i] = lc_open(address);
		lc_sends(&c[0], base, GET("/wait"));
		lc_sends(&c[1], base, "GET / HTTP/1.1\r\n");
		lc_sends(&c[3], base, GET("/"));
		assert_int_equal(lc_answer(&c[3], base), 200);
		lc_next(&c[3]);
		lc_sends(&c[2], base, GET("/"));
		assert_int_equal(lc_answer(&c[2], base), 200);
		lc_next(&c[2]);
		lc_sends(&c[3], base, GET("/"));
		assert_int_equal(lc_answer(&c[3], base), 200);
		lc_next(&c[3]);

		more[0] = lc_open(address);
		lc_until_eof(&c[2], base);
		assert_int_equal(c[2].n, 0);
		lc_sends(&more[0], base, GET("/"));
		assert_int_equal(lc_answer(&more[0], base), 200);
		lc_next(&more[0]);
		/* 3 is the oldest now, but has sent a request. */
		assert_int_equal(
		    send(c[3].fd, GET("/"), sizeof(GET("/")) - 1, MSG_NOSIGNAL),
		    sizeof(GET("/")) - 1);
		more[1] = lc_open(address);
		lc_sends(&more[1], base, GET("/"));
		assert_int_equal(lc_answer(&c[3], base), 200);
		lc_next(&c[3]);
		assert_int_equal(lc_answer(&more[1], base), 200);
		lc_next(&more[1]);
		/* Half a request is one. */
		lc_sends(&c[1], base, "Host: localhost\r\n\r\n");
		assert_int_equal(lc_answer(&c[1], base), 200);
		assert_non_null(waiting);
		httpd_reply(waiting, 200, "text/plain", "x", 1);
		assert_int_equal(lc_answer(&c[0], base), 200);
		assert_int_equal(gone, 0);
		for (i = 0; i < 4; i++)
			if (i != 2)
				lc_close(&c[i]);
		lc_close(&c[2]);
		lc_close(&more[0]);
		lc_close(&more[1]);
		stop();
	}

	/* One that may be the only one of its source, and so its last. */
	start(10, 1);
	c[0] = lc_open(address);
	lc_sends(&c[0], base, GET("/"));
	assert_int_equal(lc_answer(&c[0], base), 200);
	lc_next(&c[0]);
	c[1] = lc_open(address);
	lc_sends(&c[1], base, GET("/"));
	assert_int_equal(lc_answer(&c[1], base), 200);
	lc_until_eof(&c[0], base);
	lc_close(&c[0]);
	lc_close(&c[1]);
	stop();
	first_ms = 200;
	idle_ms = 250;
}

/* A client that does not read: the writer is told to stop, then to go on; one
 * that never reads loses the connection. */
static void
test_slow_reader(void **state)
{
	static char chunk[32 * 1024];
	struct lc c;
	unsigned i;
	long end;

	(void)state;
	start(10, 10);
	memset(chunk, 'y', sizeof(chunk));
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait"));
	lc_run(base, 50);
	assert_non_null(waiting);
	httpd_on_drained(waiting, on_drained, NULL);
	httpd_stream_begin(waiting, 200, "text/plain");
	for (i = 0; i < 1000; i++)
		if (!httpd_stream_write(waiting, chunk, sizeof(chunk)))
			break;
	/* Told to stop after a bounded number of bytes. */
	assert_true(i * sizeof(chunk) <= 512 * 1024);
	for (end = lc_ms() + LC_DEADLINE_MS; drained == 0 && lc_ms() < end;)
		lc_turn(&c, base);
	assert_int_equal(drained, 1);
	httpd_stream_end(waiting);
	assert_int_equal(lc_answer(&c, base), 200);
	lc_close(&c);

	/* Never reads: gone after body_ms without progress. */
	gone = 0;
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait"));
	lc_run(base, 50);
	assert_non_null(waiting);
	httpd_stream_begin(waiting, 200, "text/plain");
	for (i = 0; i < 500 && waiting != NULL; i++) {
		httpd_stream_write(waiting, chunk, sizeof(chunk));
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	for (end = lc_ms() + LC_DEADLINE_MS; gone == 0 && lc_ms() < end;)
		lc_turn(NULL, base);
	assert_int_equal(gone, 1);
	lc_close(&c);
	stop();
}

/* A body just too large, all of it sent at once, as HTTP libraries do before
 * they read: the client learns why, instead of a reset. */
static void
test_too_large_is_told(void **state)
{
	size_t n = 3 * 1024 * 1024;
	char *body = malloc(n);
	struct lc c;

	(void)state;
	assert_non_null(body);
	memset(body, 'x', n);
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base,
	    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3145728\r\n\r\n");
	lc_send(&c, base, body, n);
	assert_int_equal(lc_answer(&c, base), 413);
	lc_until_eof(&c, base);
	lc_close(&c);
	assert_int_equal(served, 0);
	stop();
	free(body);
}

/* Many bodies at once, none of them too large: those beyond what all may hold
 * together are refused, and the room comes back. */
static void
test_bodies_together(void **state)
{
	static const char head[] =
	    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n";
	char *body = calloc(1, 900000);
	struct lc c[4];
	int i;

	(void)state;
	assert_non_null(body);
	start(10, 10);
	for (i = 0; i < 2; i++) { /* all but one byte */
		c[i] = lc_open(address);
		lc_sends(&c[i], base, head);
		lc_send(&c[i], base, body, 899999);
	}
	lc_run(base, 30);
	c[2] = lc_open(address);
	lc_sends(&c[2], base, head);
	lc_send(&c[2], base, body, 900000);
	assert_int_equal(lc_answer(&c[2], base), 503);
	assert_int_equal(served, 0);
	lc_close(&c[2]);
	lc_run(base, 30);
	lc_send(&c[0], base, "x", 1);
	assert_int_equal(lc_answer(&c[0], base), 200);
	lc_close(&c[1]);
	lc_run(base, 30);
	for (i = 0; i < 3; i++) { /* answered, left: their room is free */
		c[3] = lc_open(address);
		lc_sends(&c[3], base, head);
		lc_send(&c[3], base, body, 900000);
		assert_int_equal(lc_answer(&c[3], base), 200);
		lc_close(&c[3]);
	}
	lc_close(&c[0]);
	stop();
	free(body);
}

static unsigned
comments(const struct lc *c)
{
	const char *p = c->p;
	unsigned n = 0;

	while ((p = strstr(p, ": keep-alive\n\n")) != NULL) {
		p++;
		n++;
	}
	return n;
}

/* A stream on which nothing happens is kept alive by comments, from the moment
 * of the last event; other answers and slow clients get none. */
static void
test_quiet_stream(void **state)
{
	struct lc c;
	long began, end;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait"));
	lc_run(base, 50);
	assert_non_null(waiting);
	began = lc_ms();
	httpd_stream_begin(waiting, 200, "text/event-stream");
	for (end = began + LC_DEADLINE_MS; comments(&c) < 3;) {
		if (lc_ms() > end)
			fail_msg("%u comments", comments(&c));
		lc_turn(&c, base);
	}
	/* No more than one each 60 ms (httpd_rig.h). */
	assert_true(comments(&c) <= (lc_ms() - began) / 60 + 1);
	httpd_stream_end(waiting);
	assert_int_equal(lc_answer(&c, base), 200);
	lc_close(&c);

	c = lc_open(address);
	lc_sends(&c, base, GET("/wait"));
	lc_run(base, 50);
	httpd_stream_begin(waiting, 200, "text/plain");
	for (end = lc_ms() + 200; lc_ms() < end;)
		lc_turn(&c, base);
	assert_null(strstr(c.p, "keep-alive\n"));
	httpd_stream_end(waiting);
	assert_int_equal(lc_answer(&c, base), 200);
	lc_close(&c);
	stop();
}

/* No descriptor left for a client that waits: the loop must not spin on the
 * listener, and the client is served once there is one. */
static void
test_out_of_files(void **state)
{
	struct rlimit old, none;
	struct lc c;
	unsigned turns = 0;
	long end;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base, GET("/"));
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (end = lc_ms() + 350; lc_ms() < end; turns++) {
		struct timeval tv = {0, 50 * 1000};

		event_base_loopexit(base, &tv);
		event_base_loop(base, EVLOOP_ONCE);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(served, 0);
	if (turns > 40)
		fail_msg("%u turns of the loop", turns);
	assert_int_equal(lc_answer(&c, base), 200);
	lc_close(&c);
	stop();
}

/* Fewer descriptors, fewer connections; the soft limit is raised first. */
static void
test_few_files(void **state)
{
	struct rlimit old, now;
	static const struct {
		rlim_t hard;
		unsigned connections, reserved, expected;
	} t[] = {{500, 100, 64, 100}, {164, 100, 64, 100}, {163, 100, 64, 99},
	    {128, 100, 64, 64}, {127, 100, 64, 63}, {100, 100, 64, 50}};
	size_t i;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(old.rlim_max >= 500);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		now.rlim_cur = 64;
		now.rlim_max = t[i].hard;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
		assert_int_equal(httpd_files(t[i].connections, t[i].reserved),
		    t[i].expected);
		assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
		assert_int_equal(
		    now.rlim_cur, t[i].hard < 164 ? t[i].hard : 164);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_slowloris), cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_idle_makes_room),
	    cmocka_unit_test(test_slow_reader),
	    cmocka_unit_test(test_too_large_is_told),
	    cmocka_unit_test(test_bodies_together),
	    cmocka_unit_test(test_quiet_stream),
	    cmocka_unit_test(test_out_of_files),
	    cmocka_unit_test(test_few_files), /* last: limits only sink */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
