/* How many runners wait follows what was asked for, between its bounds. */
#include "demand.h"
#include "unit.h"

/* A period in which n were taken one by one of `waiting`, then all are there
 * again. */
static void
period(struct demand *d, unsigned waiting, unsigned n, uint64_t *now)
{
	while (n-- > 0)
		demand_taken(d, waiting > n ? waiting - n - 1 : 0);
	*now += DEMAND_PERIOD_MS;
	demand_tick(d, waiting, *now);
}

static void
test_grows_with_each_miss_and_no_further(void **state)
{
	struct demand d;

	demand_init(&d, 2, 5, 0);
	assert_int_equal(d.target, 2);
	for (unsigned i = 0; i < 10; i++)
		demand_missed(&d);
	assert_int_equal(d.target, 5);
}

static void
test_gives_back_what_was_not_used(void **state)
{
	struct demand d;
	uint64_t now = 0;

	demand_init(&d, 2, 16, now);
	for (unsigned i = 0; i < 14; i++)
		demand_missed(&d);
	assert_int_equal(d.target, 16);
	/* A period with a miss gives nothing back. */
	period(&d, 16, 0, &now);
	assert_int_equal(d.target, 16);
	/* At its worst moment 10 still waited: half of them go. */
	period(&d, 16, 6, &now);
	assert_int_equal(d.target, 11);
	/* All of them were needed at once. */
	period(&d, 11, 11, &now);
	assert_int_equal(d.target, 11);
	/* Nobody calls. */
	for (unsigned i = 0; i < 6; i++)
		period(&d, d.target, 0, &now);
	assert_int_equal(d.target, 2);
}

static void
test_time_alone_decides_when(void **state)
{
	struct demand d;

	demand_init(&d, 0, 8, 1000);
	for (unsigned i = 0; i < 8; i++)
		demand_missed(&d);
	demand_tick(&d, 8, 1000 + DEMAND_PERIOD_MS);
	demand_tick(&d, 8, 1000 + DEMAND_PERIOD_MS * 2 - 1);
	assert_int_equal(d.target, 8);
	demand_tick(&d, 8, 1000 + DEMAND_PERIOD_MS * 2);
	assert_int_equal(d.target, 4);
}

static void
test_bounds(void **state)
{
	struct demand d;

	demand_init(&d, 6, 3, 0); /* max below min is min */
	demand_missed(&d);
	assert_int_equal(d.target, 6);
	demand_init(&d, 0, 0, 0);
	demand_missed(&d);
	assert_int_equal(d.target, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_grows_with_each_miss_and_no_further),
	    cmocka_unit_test(test_gives_back_what_was_not_used),
	    cmocka_unit_test(test_time_alone_decides_when),
	    cmocka_unit_test(test_bounds)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
