/* What one principal may hold of the sandbox, and all that are not local. */
#include "share.h"
#include "unit.h"

static void
parts(void **state)
{
	struct shares *all = share_new();
	struct share *a = share_get(all, ipc_str("token:a"));
	struct share *b = share_get(all, ipc_str("token:b"));
	struct share *l = share_get(all, ipc_str("local"));
	int n;

	assert_int_equal(share_part(a, SHARE_SLOTS, 32), 16);
	assert_int_equal(share_part(a, SHARE_PARKED, 16), 4);
	assert_int_equal(share_part(l, SHARE_SLOTS, 32), 32);
	for (n = 0; share_fits(a, SHARE_SLOTS, 1, 32); n++)
		share_take(a, SHARE_SLOTS, 1);
	assert_int_equal(n, 16);
	/* a second gets what is left of three quarters */
	for (n = 0; share_fits(b, SHARE_SLOTS, 1, 32); n++)
		share_take(b, SHARE_SLOTS, 1);
	assert_int_equal(n, 8);
	/* and a local client the rest: nothing is counted against it */
	assert_true(share_fits(l, SHARE_SLOTS, 32, 32));
	share_take(l, SHARE_SLOTS, 32);
	share_leave(a, SHARE_SLOTS, 16);
	assert_true(share_fits(b, SHARE_SLOTS, 8, 32));
	assert_false(share_fits(b, SHARE_SLOTS, 9, 32));
	/* one thing is not another */
	assert_true(share_fits(a, SHARE_PARKED, 4, 16));
	assert_false(share_fits(a, SHARE_PARKED, 5, 16));
	share_put(a);
	share_put(b);
	share_put(l);
	share_free(all);
}

/* A part of few is one; of nothing, nothing. */
static void
few(void **state)
{
	struct shares *all = share_new();
	struct share *a = share_get(all, ipc_str("token:a"));

	for (size_t n = 1; n < 4; n++)
		assert_int_equal(share_part(a, SHARE_QUEUE, n), 1);
	assert_int_equal(share_part(a, SHARE_QUEUE, 0), 0);
	assert_false(share_fits(a, SHARE_QUEUE, 1, 0));
	share_put(a);
	share_free(all);
}

/* Whoever is not named is somebody, and not `local`. */
static void
nameless(void **state)
{
	struct shares *all = share_new();
	struct share *a = share_get(all, ipc_bytes(NULL, 0));
	struct share *b = share_get(all, ipc_bytes("locals", 6));

	assert_ptr_not_equal(a, b);
	assert_ptr_equal(share_get(all, ipc_bytes("", 0)), a);
	share_put(a);
	assert_int_equal(share_part(a, SHARE_SLOTS, 32), 16);
	assert_int_equal(share_part(b, SHARE_SLOTS, 32), 16);
	share_put(a);
	share_put(b);
	share_free(all);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(parts),
	    cmocka_unit_test(few), cmocka_unit_test(nameless)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
