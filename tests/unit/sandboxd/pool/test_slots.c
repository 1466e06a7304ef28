/* pool-init's slots take only the steps that slots.h draws. */
#include <fcntl.h>
#include <unistd.h>

#include "slots.h"
#include "unit.h"

static void
test_every_step(void **state)
{
	/* allowed[from][to] */
	static const bool allowed[3][3] = {
	    [SLOT_FREE] = {[SLOT_FORKING] = true},
	    [SLOT_FORKING] = {[SLOT_FREE] = true, [SLOT_LIVE] = true},
	    [SLOT_LIVE] = {[SLOT_FREE] = true},
	};
	static struct slots t;

	for (int from = 0; from < 3; from++)
		for (int to = 0; to < 3; to++) {
			int fd = open("/dev/null", O_RDONLY), rc;

			slots_init(&t);
			if (from != SLOT_FREE)
				assert_int_equal(
				    slots_set(&t, 3, SLOT_FORKING, 7, -1), 0);
			if (from == SLOT_LIVE)
				assert_int_equal(
				    slots_set(&t, 3, SLOT_LIVE, 7, dup(fd)), 0);
			rc = slots_set(&t, 3, (enum slot_state)to, 7, fd);
			assert_int_equal(rc, allowed[from][to] ? 0 : -1);
			assert_int_equal(t.s[3].state, rc == 0 ? to : from);
			assert_int_equal(
			    t.forking, t.s[3].state == SLOT_FORKING);
			if (rc != 0 || to != SLOT_LIVE)
				close(fd);
			if (t.s[3].pidfd >= 0)
				close(t.s[3].pidfd);
		}
}

static void
test_generation_and_bounds(void **state)
{
	static struct slots t;

	slots_init(&t);
	assert_int_equal(slots_set(&t, SLOTS_MAX, SLOT_FORKING, 1, -1), -1);
	assert_int_equal(slots_set(&t, 0, SLOT_FORKING, 1, -1), 0);
	assert_int_equal(slots_set(&t, 0, SLOT_LIVE, 2, 0), -1);
	assert_int_equal(slots_set(&t, 0, SLOT_LIVE, 1, -1), -1);
	assert_int_equal(slots_set(&t, 0, SLOT_FREE, 2, -1), -1);
	assert_null(slots_get(&t, 0, 2, SLOT_FORKING));
	assert_null(slots_get(&t, 0, 1, SLOT_LIVE));
	assert_null(slots_get(&t, SLOTS_MAX, 1, SLOT_FORKING));
	assert_ptr_equal(slots_get(&t, 0, 1, SLOT_FORKING), &t.s[0]);
	/* A new use forgets the KILL of the one before. */
	t.s[0].killed = true;
	assert_int_equal(slots_set(&t, 0, SLOT_FREE, 1, -1), 0);
	assert_int_equal(slots_set(&t, 0, SLOT_FORKING, 2, -1), 0);
	assert_false(t.s[0].killed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_step),
	    cmocka_unit_test(test_generation_and_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
