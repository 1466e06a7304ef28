/*
 * httpd.c over real loopback sockets: what an ordinary client asks of it, and
 * one that leaves.
 */
#include "httpd_rig.h"
#include "unit.h"

static void
test_keep_alive(void **state)
{
	struct lc c;
	int i;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	for (i = 0; i < 3; i++) {
		lc_sends(&c, base, GET("/a"));
		assert_int_equal(lc_answer(&c, base), 200);
		assert_non_null(strstr(c.p, "\r\nDate: "));
		assert_null(strstr(c.p, "Connection: close"));
		assert_string_equal(strstr(c.p, "\r\n\r\n") + 4, "/a");
		lc_next(&c);
	}
	/* HEAD: the length, not the body. */
	lc_sends(&c, base,
	    "HEAD /abc HTTP/1.1\r\nHost: localhost\r\n"
	    "Connection: close\r\n\r\n");
	lc_until_eof(&c, base);
	assert_non_null(strstr(c.p, "Content-Length: 4\r\n"));
	assert_non_null(strstr(c.p, "Connection: close\r\n"));
	assert_string_equal(strstr(c.p, "\r\n\r\n"), "\r\n\r\n");
	assert_int_equal(served, 4);
	lc_close(&c);
	stop();
}

/* A second request on the connection isn't begun before the first is done. */
static void
test_pipelined(void **state)
{
	struct lc c;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait") GET("/second") GET("/third"));
	lc_run(base, 100);
	assert_int_equal(served, 1);
	assert_non_null(waiting);
	httpd_reply(waiting, 200, "text/plain", "first", 5);
	assert_int_equal(lc_answer(&c, base), 200);
	assert_memory_equal(strstr(c.p, "\r\n\r\n") + 4, "first", 5);
	lc_next(&c);
	lc_answer(&c, base);
	assert_memory_equal(strstr(c.p, "\r\n\r\n") + 4, "/second", 7);
	lc_next(&c);
	lc_answer(&c, base);
	assert_memory_equal(strstr(c.p, "\r\n\r\n") + 4, "/third", 6);
	assert_int_equal(served, 3);
	lc_close(&c);
	stop();
}

/* The client leaves while its answer is made, also with bytes unread. */
static void
test_gone(void **state)
{
	struct lc c;
	long end;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait") GET("/second"));
	lc_run(base, 50);
	assert_non_null(waiting);
	lc_close(&c);
	for (end = lc_ms() + LC_DEADLINE_MS; gone == 0 && lc_ms() < end;)
		lc_turn(NULL, base);
	assert_int_equal(gone, 1);
	assert_null(waiting);
	assert_int_equal(served, 1);
	/* And while a stream is being written. */
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait"));
	lc_run(base, 50);
	assert_non_null(waiting);
	httpd_stream_begin(waiting, 200, "text/event-stream");
	httpd_sse_comment(waiting);
	lc_run(base, 20);
	lc_close(&c);
	for (end = lc_ms() + LC_DEADLINE_MS; gone == 1 && lc_ms() < end;)
		lc_turn(NULL, base);
	assert_int_equal(gone, 2);
	stop();
}

static void
test_big_answer(void **state)
{
	struct lc c;
	size_t body;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base, GET("/big") GET("/after"));
	assert_int_equal(lc_answer(&c, base), 200);
	assert_true(lc_whole(&c) > 3 * 1024 * 1024);
	body = lc_whole(&c) - 3 * 1024 * 1024;
	for (size_t i = 0; i < 3 * 1024 * 1024; i++)
		if (c.p[body + i] != (char)('a' + i % 23))
			fail_msg("byte %zu is another", i);
	lc_next(&c);
	assert_int_equal(lc_answer(&c, base), 200);
	lc_close(&c);
	stop();
}

/* Bytes that stay: each of two clients gets all of them, also the one that
 * reads only after the other. */
static void
test_kept_answer(void **state)
{
	struct lc a, b;
	size_t body;

	(void)state;
	for (size_t i = 0; i < sizeof(kept); i++)
		kept[i] = (char)('a' + i % 23);
	start(10, 10);
	a = lc_open(address);
	b = lc_open(address);
	lc_sends(&a, base, GET("/kept") GET("/after"));
	lc_sends(&b, base, GET("/kept"));
	assert_int_equal(lc_answer(&b, base), 200);
	assert_int_equal(lc_answer(&a, base), 200);
	assert_true(lc_whole(&a) > sizeof(kept));
	body = lc_whole(&a) - sizeof(kept);
	assert_memory_equal(a.p + body, kept, sizeof(kept));
	assert_int_equal(lc_whole(&a), lc_whole(&b));
	assert_memory_equal(b.p + body, kept, sizeof(kept));
	lc_next(&a);
	assert_int_equal(lc_answer(&a, base), 200);
	lc_close(&a);
	lc_close(&b);
	stop();
}

/* An answer 304 has no length, and the next answer follows its head. */
static void
test_not_modified(void **state)
{
	struct lc c;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base,
	    GET("/known") "GET /end HTTP/1.1\r\nHost: localhost\r\n"
			  "Connection: close\r\n\r\n");
	lc_until_eof(&c, base);
	assert_memory_equal(c.p, "HTTP/1.1 304 Not Modified\r\n", 27);
	assert_null(strstr(c.p, "Content-Length: 0"));
	assert_non_null(strstr(c.p, "\r\n\r\nHTTP/1.1 200 OK\r\n"));
	lc_close(&c);
	stop();
}

static void
test_bodies(void **state)
{
	struct lc c;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base,
	    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
	    "Content-Length: 2\r\n\r\n");
	assert_int_equal(lc_answer(&c, base), 100);
	lc_next(&c);
	lc_sends(&c, base, "hi");
	assert_int_equal(lc_answer(&c, base), 200);
	assert_string_equal(last_body, "hi");
	lc_next(&c);
	lc_sends(&c, base,
	    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "2\r\nho\r\n1\r\n!\r\n0\r\n\r\n");
	assert_int_equal(lc_answer(&c, base), 200);
	assert_string_equal(last_body, "ho!");
	lc_next(&c);
	/* Malformed: told, then closed, though more was sent. */
	lc_sends(&c, base, "GET / HTTP/1.1\r\n\r\n" GET("/smuggled"));
	lc_until_eof(&c, base);
	assert_int_equal(strncmp(c.p, "HTTP/1.1 400 ", 13), 0);
	assert_null(strstr(c.p + 1, "HTTP/1.1"));
	assert_int_equal(served, 2);
	lc_close(&c);
	/* Above the limit: told without reading it. */
	c = lc_open(address);
	lc_sends(&c, base,
	    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
	assert_int_equal(lc_answer(&c, base), 413);
	lc_close(&c);
	stop();
}

static void
test_sse(void **state)
{
	struct lc c;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base, GET("/sse"));
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "X-A: b\r\n"));
	assert_non_null(strstr(c.p, "Content-Type: text/event-stream\r\n"));
	/* Each kind of line end begins a new data line. */
	assert_non_null(
	    strstr(c.p, "id: 7\ndata: a\ndata: b\ndata: c\ndata: d\n\n"));
	assert_non_null(strstr(c.p, ": keep-alive\n\n"));
	assert_non_null(strstr(c.p, "\r\ndata: \n\n\r\n0\r\n\r\n"));
	lc_close(&c);
	stop();
}

/* The server ends while clients are connected and being answered. */
static void
test_free_busy(void **state)
{
	struct lc a, b;

	(void)state;
	start(10, 10);
	a = lc_open(address);
	b = lc_open(address);
	lc_sends(&a, base, GET("/wait"));
	lc_sends(&b, base, "GET / HT");
	lc_run(base, 50);
	stop();
	assert_int_equal(gone, 1);
	lc_close(&a);
	lc_close(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_keep_alive),
	    cmocka_unit_test(test_pipelined),
	    cmocka_unit_test(test_gone),
	    cmocka_unit_test(test_big_answer),
	    cmocka_unit_test(test_kept_answer),
	    cmocka_unit_test(test_not_modified),
	    cmocka_unit_test(test_bodies),
	    cmocka_unit_test(test_sse),
	    cmocka_unit_test(test_free_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
