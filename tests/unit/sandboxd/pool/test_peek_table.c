/* What peek keeps of runners and their connects: bounded, by listener. */
#include <fcntl.h>
#include <unistd.h>

#include "peek_table.h"
#include "unit.h"

static struct peek_table table;

static int
setup(void **state)
{
	(void)state;
	peek_table_init(&table);
	return 0;
}

static int
any_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int
teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < table.end; i++)
		if (table.listener[i].fd >= 0)
			peek_table_remove(&table, &table.listener[i]);
	assert_int_equal(table.end, 0);
	return 0;
}

/* One net, one listener: a second one would be judged by the first's grants. */
static void
test_a_net_is_used_once(void **state)
{
	struct peek_listener *l;
	int again = any_fd();

	(void)state;
	l = peek_table_add(&table, 7, any_fd(), 0);
	assert_non_null(l);
	assert_null(peek_table_add(&table, 7, again, 0));
	assert_int_equal(fcntl(again, F_GETFD), FD_CLOEXEC);
	peek_table_remove(&table, l);
	assert_non_null(peek_table_add(&table, 7, again, 0));
}

static void
test_listeners_are_bounded(void **state)
{
	int more = any_fd();

	(void)state;
	for (unsigned i = 0; i < PEEK_LISTENERS_MAX; i++)
		assert_non_null(peek_table_add(&table, i + 1, any_fd(), 0));
	assert_int_equal(table.end, PEEK_LISTENERS_MAX);
	assert_null(peek_table_add(&table, 9999, more, 0));
	peek_table_remove(&table, &table.listener[3]);
	assert_ptr_equal(
	    peek_table_add(&table, 9999, more, 0), &table.listener[3]);
}

static void
test_waits_are_bounded_by_listener(void **state)
{
	struct peek_listener *a = peek_table_add(&table, 1, any_fd(), 0);
	struct peek_listener *b = peek_table_add(&table, 2, any_fd(), 0);
	int wait_ms = -1;

	(void)state;
	for (unsigned i = 0; i < PEEK_WAITS_MAX; i++)
		assert_non_null(peek_table_wait(a, 1));
	assert_null(peek_table_wait(a, 1));
	assert_false(peek_table_may_read(a, 0, &wait_ms));
	assert_int_equal(wait_ms, -1); /* time alone helps nothing */
	assert_true(peek_table_may_read(b, 0, &wait_ms));
	assert_non_null(peek_table_wait(b, 1));
	peek_table_done(a, &a->wait[5]);
	assert_true(peek_table_may_read(a, 0, &wait_ms));
	assert_ptr_equal(peek_table_wait(a, 1), &a->wait[5]);
}

/* An answer finds what it was asked for, once, and nothing that came later. */
static void
test_answers_find_their_question(void **state)
{
	struct peek_listener *a = peek_table_add(&table, 1, any_fd(), 0);
	struct peek_listener *found;
	struct peek_wait *w = peek_table_wait(a, 1);
	uint64_t first, second;

	(void)state;
	first = peek_table_request(&table, a, w);
	assert_null(peek_table_asked(&table, first, &found));
	w->state = PEEK_ASKED;
	w->request = first;
	assert_ptr_equal(peek_table_asked(&table, first, &found), w);
	assert_ptr_equal(found, a);
	/* Asked again after egress' restart: the first number is void. */
	second = peek_table_request(&table, a, w);
	assert_int_not_equal(first, second);
	w->request = second;
	assert_null(peek_table_asked(&table, first, &found));
	assert_ptr_equal(peek_table_asked(&table, second, &found), w);
	peek_table_done(a, w);
	assert_null(peek_table_asked(&table, second, &found));
	/* Another in the same place. */
	assert_ptr_equal(peek_table_wait(a, 1), w);
	w->state = PEEK_ASKED;
	w->request = peek_table_request(&table, a, w);
	assert_null(peek_table_asked(&table, second, &found));
	for (uint64_t i = 0; i < 1 << 16; i++)
		if (i != (w->request & 0xffff))
			assert_null(peek_table_asked(
			    &table, (w->request & ~0xffffULL) | i, &found));
	peek_table_remove(&table, a);
	assert_null(peek_table_asked(&table, w->request, &found));
}

/* The socket that waits for its runner is closed with it. */
static void
test_sockets_are_closed(void **state)
{
	struct peek_listener *a = peek_table_add(&table, 1, any_fd(), 0);
	struct peek_wait *one = peek_table_wait(a, 1);
	struct peek_wait *two = peek_table_wait(a, 1);
	int fds[2] = {any_fd(), any_fd()};

	(void)state;
	one->state = two->state = PEEK_PUTTING;
	one->socket = fds[0];
	two->socket = fds[1];
	peek_table_done(a, one);
	assert_int_equal(fcntl(fds[0], F_GETFD), -1);
	assert_int_equal(fcntl(fds[1], F_GETFD), FD_CLOEXEC);
	peek_table_remove(&table, a);
	assert_int_equal(fcntl(fds[1], F_GETFD), -1);
}

/* A burst, then a rate. Time that a call lets pass gives it a burst again and
 * no more. */
static void
test_rate(void **state)
{
	struct peek_listener *a = peek_table_add(&table, 1, any_fd(), 1000);
	int wait_ms = -1;
	unsigned n;

	(void)state;
	for (n = 0; peek_table_may_read(a, 1000, &wait_ms); n++)
		peek_table_spend(a);
	assert_int_equal(n, PEEK_BURST);
	assert_int_equal(wait_ms, 1);
	for (n = 0; peek_table_may_read(a, 1010, &wait_ms); n++)
		peek_table_spend(a);
	assert_int_equal(n, 10 * PEEK_PER_SECOND / 1000);
	for (n = 0; peek_table_may_read(a, 10000000, &wait_ms); n++)
		peek_table_spend(a);
	assert_int_equal(n, PEEK_BURST);
}

/* A look that took long is paid for by who made it so, and by nobody else. */
static void
test_slow_looks(void **state)
{
	struct peek_listener *slow, *other;
	int wait = -1;

	(void)state;
	slow = peek_table_add(&table, 1, any_fd(), 0);
	other = peek_table_add(&table, 2, any_fd(), 0);
	peek_table_took(slow, 1000, 1000 + PEEK_SLOW_MS - 1);
	assert_true(peek_table_may_read(slow, 1000 + PEEK_SLOW_MS, &wait));
	peek_table_took(slow, 2000, 2500);
	assert_false(peek_table_may_read(slow, 2500, &wait));
	assert_int_equal(wait, 500 * PEEK_SLOW_PAUSE);
	assert_true(peek_table_may_read(other, 2500, &wait));
	wait = -1;
	assert_false(
	    peek_table_may_read(slow, 2500 + 500 * PEEK_SLOW_PAUSE - 1, &wait));
	assert_int_equal(wait, 1);
	assert_true(
	    peek_table_may_read(slow, 2500 + 500 * PEEK_SLOW_PAUSE, &wait));
	/* poll(2) takes an int. */
	wait = -1;
	peek_table_took(slow, 3000, (uint64_t)1 << 40);
	assert_false(peek_table_may_read(slow, (uint64_t)1 << 40, &wait));
	assert_in_range(wait, 1, 3600 * 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		test_a_net_is_used_once, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_listeners_are_bounded, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_waits_are_bounded_by_listener, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_answers_find_their_question, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		test_sockets_are_closed, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_rate, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_slow_looks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
