/* pool-init has one zygote that forks and at most one other. */
#include <sys/socket.h>

#include <unistd.h>

#include "starter.h"
#include "unit.h"
#include "zygotes.h"

static struct zygotes zs;
static int theirs[8]; /* the zygotes' ends, by serial */
static unsigned started;
static bool fails;

/* In place of starter.c. */
int
starter_zygote(int *sock, pid_t *pid, struct err *e)
{
	int sv[2];

	if (fails)
		return err_set(e, FAILURE_INTERNAL, "as told");
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	*sock = sv[0];
	theirs[++started] = sv[1];
	/* No process has this: whoever is killed here was not there. */
	*pid = 0x7ffffff0;
	return 0;
}

/* Has the pool let go of this zygote's socket? */
static bool
closed(unsigned serial)
{
	char c;

	return recv(theirs[serial], &c, 1, MSG_DONTWAIT) == 0;
}

static int
setup(void **state)
{
	started = 0;
	fails = false;
	zygotes_init(&zs);
	assert_int_equal(zygotes_start(&zs, NULL), 0);
	assert_int_equal(zygotes_reported(&zs, &zs.coming), 0);
	assert_int_equal(zs.current.serial, 1);
	return 0;
}

static int
teardown(void **state)
{
	for (unsigned i = 1; i <= started; i++)
		close(theirs[i]);
	if (zs.current.sock >= 0)
		close(zs.current.sock);
	if (zs.coming.sock >= 0)
		close(zs.coming.sock);
	if (zs.leaving.sock >= 0)
		close(zs.leaving.sock);
	return 0;
}

static void
test_replaced_at_once_when_it_owes_nothing(void **state)
{
	assert_int_equal(zygotes_start(&zs, NULL), 0);
	assert_int_equal(zs.current.serial, 1); /* until the other reports */
	assert_int_equal(zygotes_reported(&zs, &zs.coming), 0);
	assert_int_equal(zs.current.serial, 2);
	assert_int_equal(zs.leaving.sock, -1);
	assert_true(closed(1));
	assert_false(closed(2));
	/* It has reported. */
	assert_int_equal(zygotes_reported(&zs, &zs.current), -1);
}

static void
test_what_it_owes_is_waited_for(void **state)
{
	zygotes_asked(&zs, 3);
	zygotes_asked(&zs, 4);
	assert_int_equal(zygotes_start(&zs, NULL), 0);
	assert_int_equal(zygotes_reported(&zs, &zs.coming), 0);
	zygotes_asked(&zs, 5); /* of the new one */
	assert_false(closed(1));
	/* Two at most. */
	assert_int_equal(zygotes_start(&zs, NULL), -1);
	/* Neither answers for the other. */
	assert_int_equal(zygotes_answered(&zs, &zs.current, 3), -1);
	assert_int_equal(zygotes_answered(&zs, &zs.leaving, 5), -1);
	assert_int_equal(zygotes_answered(&zs, &zs.leaving, 3), 0);
	assert_int_equal(zygotes_answered(&zs, &zs.leaving, 3), -1);
	assert_false(closed(1));
	assert_int_equal(zygotes_answered(&zs, &zs.leaving, 4), 0);
	assert_true(closed(1));
	assert_int_equal(zygotes_answered(&zs, &zs.current, 5), 0);
	assert_int_equal(zygotes_answered(&zs, &zs.current, SLOTS_MAX), -1);
	assert_int_equal(zygotes_start(&zs, NULL), 0);
}

static void
test_one_that_fails_to_come(void **state)
{
	assert_int_equal(zygotes_start(&zs, NULL), 0);
	assert_int_equal(zygotes_gone(&zs, &zs.coming, "it died"), 0);
	assert_true(closed(2));
	assert_int_equal(zs.current.serial, 1);
	/* One that says nothing is given up for the next. */
	assert_int_equal(zygotes_start(&zs, NULL), 0);
	assert_int_equal(zygotes_start(&zs, NULL), 0);
	assert_true(closed(3));
	assert_false(closed(4));
	fails = true;
	assert_int_equal(zygotes_gone(&zs, &zs.coming, "it died"), 0);
	assert_int_equal(zygotes_start(&zs, NULL), -1);
	assert_false(closed(1));
	/* Without the one that forks there is no pool. */
	assert_int_equal(zygotes_gone(&zs, &zs.current, "it died"), -1);
}

static void
test_the_first_must_come(void **state)
{
	teardown(state);
	zygotes_init(&zs);
	started = 0;
	assert_int_equal(zygotes_start(&zs, NULL), 0);
	assert_int_equal(zygotes_gone(&zs, &zs.coming, "it died"), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	    T(test_replaced_at_once_when_it_owes_nothing),
	    T(test_what_it_owes_is_waited_for), T(test_one_that_fails_to_come),
	    T(test_the_first_must_come)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
