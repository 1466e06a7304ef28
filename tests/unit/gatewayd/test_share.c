/* What one principal holds of gatewayd: a quarter, `local` all of it. */
#include "share.h"
#include "unit.h"

static void
quarters(void **state)
{
	struct shares *all = share_new();
	struct share *a = share_get(all, "token:a"), *b, *l;
	int n;

	assert_non_null(a);
	for (n = 0; share_enter(a, 1, 100, 1000); n++)
		;
	assert_int_equal(n, 25);
	/* others are not touched by it */
	b = share_get(all, "token:b");
	assert_true(share_enter(b, 250, 100, 1000));
	assert_false(share_enter(b, 1, 100, 1000));
	share_leave(b, 250);
	assert_false(share_enter(b, 251, 100, 1000));
	l = share_get(all, "local");
	for (n = 0; share_enter(l, 1, 100, 1000); n++)
		;
	assert_int_equal(n, 100);
	share_leave(a, 1);
	assert_true(share_enter(a, 1, 100, 1000));
	for (n = 0; n < 25; n++)
		share_leave(a, 1);
	for (n = 0; n < 100; n++)
		share_leave(l, 1);
	share_put(a);
	share_put(b);
	share_put(l);
	share_free(all);
}

static void
kept(void **state)
{
	struct shares *all = share_new();
	struct share *a = share_get(all, "x");

	assert_ptr_equal(share_get(all, "x"), a); /* the same one */
	assert_true(share_keep(a, 25, 100));
	assert_false(share_keep(a, 1, 100));
	share_drop(a, 25);
	assert_true(share_keep(a, 1, 100));
	share_drop(a, 1);
	share_put(a);
	share_put(a);
	share_put(NULL);
	share_free(all);
}

/* Of three places a quarter would be none. */
static void
few(void **state)
{
	struct shares *all = share_new();
	struct share *a = share_get(all, "x");

	assert_true(share_enter(a, 0, 3, 0));
	assert_true(share_enter(a, 0, 3, 0));
	share_leave(a, 0);
	share_leave(a, 0);
	share_put(a);
	share_free(all);
}

/* However many they are, they leave `local` a quarter. */
static void
together(void **state)
{
	struct shares *all = share_new();
	struct share *s[5], *l = share_get(all, "local");
	char name[] = "token:0";
	int n = 0, k = 0;

	for (int i = 0; i < 5; i++, name[6]++) {
		s[i] = share_get(all, name);
		while (share_enter(s[i], 1, 100, 100))
			n++;
		k += share_keep(s[i], 25, 100);
	}
	assert_int_equal(n, 75);
	assert_int_equal(k, 3);
	assert_true(share_enter(l, 25, 100, 100));
	assert_true(share_keep(l, 100, 100));
	share_leave(l, 25);
	share_drop(l, 100);
	share_leave(s[0], 1);
	assert_true(share_enter(s[4], 1, 100, 100));
	assert_false(share_enter(s[3], 1, 100, 100));
	share_leave(s[4], 1);
	for (int i = 0; i < 74; i++)
		share_leave(s[i < 24 ? 0 : i < 49 ? 1 : 2], 1);
	for (int i = 0; i < 3; i++)
		share_drop(s[i], 25);
	assert_true(share_keep(s[4], 25, 100));
	share_drop(s[4], 25);
	for (int i = 0; i < 5; i++)
		share_put(s[i]);
	share_put(l);
	share_free(all);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(quarters),
	    cmocka_unit_test(kept), cmocka_unit_test(few),
	    cmocka_unit_test(together)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
