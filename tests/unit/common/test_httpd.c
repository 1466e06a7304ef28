/*
 * httpd.c over real loopback sockets: the ways in which a client can be slow,
 * greedy or gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/resource.h>

#include <cmocka.h>

#include "httpd.h"
#include "../loop_client.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

static struct event_base *base;
static struct httpd *server;
static char address[64];
static struct httpd_req *waiting; /* the request of /wait */
static unsigned served, gone, drained;
static char last_body[64];

static void
on_drained(struct httpd_req *r, void *arg)
{
	(void)arg;
	(void)r;
	drained++;
}

static void
on_request(struct httpd_req *r, void *arg)
{
	const struct http1_request *q = httpd_request(r);

	(void)arg;
	served++;
	snprintf(last_body, sizeof(last_body), "%.*s",
	    (int)(q->body_len < 60 ? q->body_len : 60), (const char *)q->body);
	if (strcmp(q->path, "/wait") == 0) {
		waiting = r;
		return;
	}
	if (strcmp(q->path, "/sse") == 0) {
		httpd_header(r, "X-A", "b");
		httpd_stream_begin(r, 200, "text/event-stream");
		httpd_sse_event(r, "7", "a\nb\r\nc\rd", 8);
		httpd_sse_comment(r);
		httpd_sse_event(r, NULL, "", 0);
		httpd_stream_end(r);
		return;
	}
	if (strcmp(q->path, "/big") == 0) {
		size_t n = 3 * 1024 * 1024;
		char *p = malloc(n);

		assert_non_null(p);
		memset(p, 'x', n);
		httpd_reply(r, 200, "text/plain", p, n);
		free(p);
		return;
	}
	httpd_reply(r, 200, "text/plain", q->path, strlen(q->path));
}

static void
on_gone(struct httpd_req *r, void *arg)
{
	(void)arg;
	gone++;
	if (r == waiting)
		waiting = NULL;
}

static void
start(unsigned connections, unsigned per_source)
{
	static const struct httpd_handlers h = {on_request, on_gone, NULL};
	struct httpd_limits l = {.connections = connections,
	    .connections_per_source = per_source,
	    .header_ms = 200,
	    .body_ms = 300,
	    .idle_ms = 250,
	    .head_max = 8192,
	    .body_max = 1024 * 1024,
	    .bodies_max = 2 * 1024 * 1024,
	    .quiet_ms = 60};
	struct err err;

	served = gone = drained = 0;
	waiting = NULL;
	base = event_base_new();
	assert_non_null(base);
	server = httpd_new(base, "127.0.0.1", 0, NULL, &l, &h, NULL, address,
	    sizeof(address), &err);
	if (server == NULL)
		fail_msg("%s", err.text);
}

static void
stop(void)
{
	httpd_free(server);
	event_base_free(base);
}

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

/* Byte by byte: neither head nor body may take longer than its limit. */
static void
test_slowloris(void **state)
{
	static const char head[] = "GET /slow HTTP/1.1\r\nHost: localhost\r\n";
	struct lc c;
	long begin;
	size_t i;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	begin = lc_ms();
	for (i = 0; i < sizeof(head) - 1 && lc_whole(&c) == 0 && !c.eof; i++) {
		send(c.fd, head + i, 1, MSG_NOSIGNAL);
		lc_run(base, 20);
		lc_turn(&c, base);
	}
	lc_until_eof(&c, base);
	assert_int_equal(strncmp(c.p, "HTTP/1.1 408 ", 13), 0);
	assert_true(lc_ms() - begin < 2500);
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

static void
test_limits(void **state)
{
	struct lc c[4], over;
	unsigned i;

	(void)state;
	start(4, 3);
	for (i = 0; i < 3; i++) {
		c[i] = lc_open(address);
		lc_sends(&c[i], base, GET("/"));
		assert_int_equal(lc_answer(&c[i], base), 200);
	}
	/* The fourth of this source. */
	over = lc_open(address);
	assert_int_equal(lc_answer(&over, base), 503);
	lc_until_eof(&over, base);
	lc_close(&over);
	/* Room again once one has left. */
	lc_close(&c[0]);
	lc_run(base, 20);
	c[0] = lc_open(address);
	lc_sends(&c[0], base, GET("/"));
	assert_int_equal(lc_answer(&c[0], base), 200);
	for (i = 0; i < 3; i++)
		lc_close(&c[i]);
	stop();

	start(2, 100);
	for (i = 0; i < 2; i++) {
		c[i] = lc_open(address);
		lc_sends(&c[i], base, GET("/"));
		assert_int_equal(lc_answer(&c[i], base), 200);
	}
	over = lc_open(address);
	lc_sends(&over, base, GET("/"));
	assert_int_equal(lc_answer(&over, base), 503);
	lc_close(&over);
	for (i = 0; i < 2; i++)
		lc_close(&c[i]);
	assert_int_equal(served, 2);
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

static void
test_big_answer(void **state)
{
	struct lc c;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base, GET("/big") GET("/after"));
	assert_int_equal(lc_answer(&c, base), 200);
	assert_true(lc_whole(&c) > 3 * 1024 * 1024);
	lc_next(&c);
	assert_int_equal(lc_answer(&c, base), 200);
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

/* A stream on which nothing happens is kept alive by comments, from the moment
 * of the last event; other answers and slow clients get none. */
static void
test_quiet_stream(void **state)
{
	struct lc c;
	unsigned n;
	long end;
	const char *p;

	(void)state;
	start(10, 10);
	c = lc_open(address);
	lc_sends(&c, base, GET("/wait"));
	lc_run(base, 50);
	assert_non_null(waiting);
	httpd_stream_begin(waiting, 200, "text/event-stream");
	for (end = lc_ms() + 260; lc_ms() < end;)
		lc_turn(&c, base);
	for (n = 0, p = c.p; (p = strstr(p, ": keep-alive\n\n")); p++)
		n++;
	if (n < 2 || n > 4)
		fail_msg("%u comments in 260 ms", n);
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
	    cmocka_unit_test(test_slowloris),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_pipelined),
	    cmocka_unit_test(test_gone),
	    cmocka_unit_test(test_slow_reader),
	    cmocka_unit_test(test_big_answer),
	    cmocka_unit_test(test_too_large_is_told),
	    cmocka_unit_test(test_bodies_together),
	    cmocka_unit_test(test_quiet_stream),
	    cmocka_unit_test(test_out_of_files),
	    cmocka_unit_test(test_bodies),
	    cmocka_unit_test(test_sse),
	    cmocka_unit_test(test_free_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
