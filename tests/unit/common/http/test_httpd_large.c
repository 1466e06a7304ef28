/*
 * httpd.c over real loopback sockets: bodies over body_max, which the owner
 * lets in or refuses by their heads.
 */
#include "httpd_rig.h"
#include "unit.h"

/* More than the server keeps unparsed for a connection (HTTPD_READ_MAX): if the
 * body were read before it is let in, the connection would end. */
enum { SMALL = 1000, LENGTH = 100 * 1024 };

static char body[LENGTH];

#define HEAD(path, more, length)                                               \
	"POST " path " HTTP/1.1\r\nHost: a\r\n" more "Content-Length: " length \
	"\r\n\r\n"

static void
begin(int how)
{
	body_max = SMALL;
	large_max = LENGTH;
	first_ms = idle_ms = 5000;
	large_how = how;
	memset(body, 'b', sizeof(body));
	start(10, 10);
}

static void
until_asked(struct lc *c, unsigned n)
{
	while (asked < n)
		lc_turn(c, base);
}

/* The answer leaves the body unread, so it ends the connection. */
static void
test_refused(void **state)
{
	struct lc c;

	(void)state;
	begin(LARGE_REFUSE);
	c = lc_open(address);
	lc_sends(&c, base, HEAD("/", "", "102400"));
	lc_send(&c, base, body, LENGTH);
	assert_int_equal(lc_answer(&c, base), 401);
	assert_non_null(strstr(c.p, "\r\nConnection: close\r\n"));
	lc_until_eof(&c, base);
	lc_close(&c);
	assert_int_equal(served, 0);
	assert_int_equal(asked, 1);
	assert_int_equal(gone, 0);
	stop();
}

/* Bodies up to body_max are not asked about, and the connection goes on. */
static void
test_taken(void **state)
{
	struct lc c;

	(void)state;
	begin(LARGE_TAKE);
	c = lc_open(address);
	for (unsigned i = 1; i <= 3; i++) {
		lc_sends(&c, base, HEAD("/", "", "102400"));
		lc_send(&c, base, body, LENGTH);
		assert_int_equal(lc_answer(&c, base), 200);
		lc_next(&c);
		assert_int_equal(last_body[0], 'b');
		lc_sends(&c, base, HEAD("/", "", "1000"));
		lc_send(&c, base, body, SMALL);
		assert_int_equal(lc_answer(&c, base), 200);
		lc_next(&c);
		assert_int_equal(served, 2 * i);
		assert_int_equal(asked, i);
	}
	lc_close(&c);
	stop();
}

/* Until it is let in, nothing of the body is read. */
static void
test_taken_later(void **state)
{
	struct httpd_req *r;
	struct lc c;

	(void)state;
	begin(LARGE_LATER);
	c = lc_open(address);
	lc_sends(&c, base, HEAD("/", "", "102400"));
	until_asked(&c, 1);
	lc_send(&c, base, body, LENGTH);
	for (int i = 0; i < 20; i++)
		lc_turn(&c, base);
	assert_int_equal(served, 0);
	assert_int_equal(gone, 0);
	r = waiting;
	assert_non_null(r);
	httpd_set_data(r, body);
	waiting = NULL;
	httpd_take_body(r);
	assert_int_equal(lc_answer(&c, base), 200);
	assert_int_equal(served, 1);
	lc_close(&c);
	stop();
}

static void
test_refused_later(void **state)
{
	struct lc c;

	(void)state;
	begin(LARGE_LATER);
	c = lc_open(address);
	lc_sends(&c, base, HEAD("/", "", "102400"));
	lc_send(&c, base, body, LENGTH);
	until_asked(&c, 1);
	httpd_reply(waiting, 403, "text/plain", "no", 2);
	assert_int_equal(lc_answer(&c, base), 403);
	lc_until_eof(&c, base);
	lc_close(&c);
	assert_int_equal(served, 0);
	stop();
}

/* The owner is not asked about a body that can't be let in. */
static void
test_too_large(void **state)
{
	static const char *const heads[] = {HEAD("/", "", "102401"),
	    HEAD("/", "", "9999999"), HEAD("/", "", "99999999"),
	    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "3e9\r\n"};
	struct lc c;

	(void)state;
	begin(LARGE_TAKE);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		c = lc_open(address);
		lc_sends(&c, base, heads[i]);
		assert_int_equal(lc_answer(&c, base), 413);
		lc_close(&c);
	}
	assert_int_equal(asked, 0);
	stop();
}

/* Two at once: from being let in to the end of the answer. */
static void
test_at_once(void **state)
{
	struct lc c[2], over;

	(void)state;
	begin(LARGE_TAKE);
	for (unsigned i = 0; i < 2; i++) {
		c[i] = lc_open(address);
		lc_sends(&c[i], base, HEAD("/wait", "", "102400"));
		lc_send(&c[i], base, body, i == 0 ? LENGTH : LENGTH / 2);
		until_asked(&c[i], i + 1);
	}
	while (served == 0)
		lc_turn(&c[0], base);
	over = lc_open(address);
	lc_sends(&over, base, HEAD("/", "", "102400"));
	assert_int_equal(lc_answer(&over, base), 503);
	assert_non_null(strstr(over.p, "\r\nRetry-After: 1\r\n"));
	lc_close(&over);
	/* All other requests are served. */
	over = lc_open(address);
	lc_sends(&over, base, HEAD("/", "", "1000"));
	lc_send(&over, base, body, SMALL);
	assert_int_equal(lc_answer(&over, base), 200);
	lc_close(&over);
	/* The first ends, so there is room; so it is when the second leaves in
	 * the midst of its body. */
	httpd_reply(waiting, 200, "text/plain", "ok", 2);
	assert_int_equal(lc_answer(&c[0], base), 200);
	lc_next(&c[0]);
	lc_close(&c[1]);
	while (httpd_connections(server) > 1)
		lc_turn(&c[0], base);
	for (unsigned i = 0; i < 4; i++) {
		over = lc_open(address);
		lc_sends(&over, base, HEAD("/", "", "102400"));
		lc_send(&over, base, body, LENGTH);
		assert_int_equal(lc_answer(&over, base), 200);
		lc_close(&over);
	}
	lc_close(&c[0]);
	stop();
}

/* A client that waits for 100 (Continue) gets it when the body may come. */
static void
test_continue(void **state)
{
	struct httpd_req *r;
	struct lc c;

	(void)state;
	begin(LARGE_LATER);
	c = lc_open(address);
	lc_sends(&c, base, HEAD("/", "Expect: 100-continue\r\n", "102400"));
	until_asked(&c, 1);
	for (int i = 0; i < 20; i++)
		lc_turn(&c, base);
	assert_int_equal(c.n, 0);
	r = waiting;
	waiting = NULL;
	httpd_take_body(r);
	while (c.n < 25)
		lc_turn(&c, base);
	assert_memory_equal(c.p, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	lc_send(&c, base, body, LENGTH);
	while (served == 0)
		lc_turn(&c, base);
	lc_close(&c);
	stop();
}

/* The body has body_ms from being let in; a client that left is found then. */
static void
test_slow_and_gone(void **state)
{
	struct httpd_req *r;
	struct lc c;

	(void)state;
	begin(LARGE_TAKE);
	c = lc_open(address);
	lc_sends(&c, base, HEAD("/", "", "102400"));
	assert_int_equal(lc_answer(&c, base), 408);
	lc_close(&c);
	stop();

	begin(LARGE_LATER);
	c = lc_open(address);
	lc_sends(&c, base, HEAD("/", "", "102400"));
	until_asked(&c, 1);
	lc_close(&c);
	r = waiting;
	httpd_take_body(r);
	while (httpd_connections(server) > 0)
		lc_turn(NULL, base);
	assert_int_equal(served, 0);
	assert_int_equal(gone, 0); /* the owner had given it back */
	stop();

	/* The server ends while the owner still decides. */
	begin(LARGE_LATER);
	c = lc_open(address);
	lc_sends(&c, base, HEAD("/", "", "102400"));
	until_asked(&c, 1);
	stop();
	assert_int_equal(gone, 1);
	lc_close(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_taken),
	    cmocka_unit_test(test_taken_later),
	    cmocka_unit_test(test_refused_later),
	    cmocka_unit_test(test_too_large),
	    cmocka_unit_test(test_at_once),
	    cmocka_unit_test(test_continue),
	    cmocka_unit_test(test_slow_and_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
