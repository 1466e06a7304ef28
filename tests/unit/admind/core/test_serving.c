/* What is remembered of versions that serve: bounded, newest use first. */
#include "admind.h"
#include "unit.h"

/* Rows are numbers here; how many copies of them live is counted. */
struct pg_result {
	int n;
};
static int live;
static bool no_memory;

struct pg_result *
db_keep(const struct pg_result *r)
{
	struct pg_result *copy = no_memory ? NULL : malloc(sizeof(*copy));

	if (copy != NULL) {
		*copy = *r;
		live++;
	}
	return copy;
}

void
db_keep_free(struct pg_result *r)
{
	free(r);
	live--;
}

static struct serving_list list;

static int
setup(void **unused)
{
	memset(&list, 0, sizeof(list));
	TAILQ_INIT(&list.list);
	return 0;
}

static int
teardown(void **unused)
{
	serving_clear(&list);
	assert_int_equal(live, 0);
	assert_int_equal(list.n, 0);
	assert_int_equal(list.bytes, 0);
	return 0;
}

static void
add(int n, size_t bytes)
{
	struct pg_result r = {n};
	char name[32];

	snprintf(name, sizeof(name), "s__t%d", n);
	serving_add(&list, name, &r, bytes);
}

static bool
has(int n)
{
	const struct pg_result *r;
	char name[32];

	snprintf(name, sizeof(name), "s__t%d", n);
	r = serving_find(&list, name);
	assert_true(r == NULL || r->n == n);
	return r != NULL;
}

static void
remembers(void **unused)
{
	struct pg_result newer = {8};

	assert_false(has(7));
	add(7, 10);
	assert_true(has(7));
	serving_add(&list, "s__t8", &newer, 10);
	serving_add(&list, "s__t8", &newer, 20);
	assert_true(has(8));
	assert_int_equal(list.n, 2);
	assert_int_equal(list.bytes, 30);
	serving_drop(&list, "s__t7");
	serving_drop(&list, "s__t7");
	assert_false(has(7));
	assert_true(has(8));
	serving_clear(&list);
	assert_false(has(8));
}

static void
is_bounded(void **unused)
{
	for (int i = 0; i < 1000; i++) {
		add(i, 1);
		assert_true(has(0)); /* in use: stays */
	}
	assert_int_equal(list.n, 256);
	assert_int_equal(live, 256);
	assert_true(has(999));
	assert_false(has(1));
	/* by bytes */
	for (int i = 2000; i < 2100; i++)
		add(i, 256 * 1024);
	assert_true(list.bytes <= 16 * 1024 * 1024);
	assert_true(has(2099));
	assert_false(has(2000));
	/* too large alone: not kept, and what was kept of it is gone */
	add(5000, 1);
	add(5000, 256 * 1024 + 1);
	assert_false(has(5000));
}

static void
lives_without_memory(void **unused)
{
	add(1, 1);
	no_memory = true;
	add(1, 1); /* the old row must not stay in its place */
	add(2, 1);
	no_memory = false;
	assert_false(has(1));
	assert_false(has(2));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(remembers, setup, teardown),
	    cmocka_unit_test_setup_teardown(is_bounded, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		lives_without_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
