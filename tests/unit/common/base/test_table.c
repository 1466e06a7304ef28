/* table.h: the hash, and objects that are found, taken out and gone through. */
#include "unit.h"

#include "ids.h"
#include "fnv.h"
#include "table.h"

struct thing {
	unsigned seen;
	struct table_node node;
	char name[32];
};

static struct thing *
find(const struct table *t, const char *name)
{
	return TABLE_OBJECT(
	    struct thing, node, table_find(t, name, strlen(name)));
}

static void
fnv(void **state)
{
	/* RFC 9923, appendix C */
	assert_int_equal(fnv_bytes(FNV_START, "", 0), 0x811c9dc5);
	assert_int_equal(fnv_bytes(FNV_START, "a", 1), 0xe40c292c);
	assert_int_equal(fnv_bytes(FNV_START, "foobar", 6), 0xbf9cf968);
	assert_int_equal(fnv_bytes(fnv_bytes(FNV_START, "foo", 3), "bar", 3),
	    fnv_bytes(FNV_START, "foobar", 6));
	assert_int_equal(fnv_add(FNV_START, 'a'), 0xe40c292c);
}

/* Many more objects than buckets. */
static void
found_until_taken_out(void **state)
{
	enum { N = 5000 };
	struct thing *all = calloc(N, sizeof(*all));
	struct table t;

	assert_non_null(all);
	assert_int_equal(table_init(&t, 100), 0);
	assert_int_equal(t.nbuckets, 128);
	for (int i = 0; i < N; i++) {
		snprintf(all[i].name, sizeof(all[i].name), "thing %d", i);
		assert_null(find(&t, all[i].name));
		table_add(&t, &all[i].node, all[i].name, strlen(all[i].name));
	}
	assert_int_equal(t.count, N);
	for (int i = 0; i < N; i++)
		assert_ptr_equal(find(&t, all[i].name), &all[i]);
	for (int i = 0; i < N; i += 2)
		table_del(&t, &all[i].node);
	assert_int_equal(t.count, N / 2);
	for (int i = 0; i < N; i++)
		assert_ptr_equal(
		    find(&t, all[i].name), i % 2 == 0 ? NULL : &all[i]);
	table_free(&t);
	table_free(&t);
	free(all);
}

/* A key is its bytes and their number: with a NUL, or none at all. */
static void
keys_are_bytes(void **state)
{
	static const char *const keys[] = {"", "a", "a\0", "a\0b", "ab"};
	static const size_t len[] = {0, 1, 2, 3, 2};
	struct thing all[5] = {{0}};
	struct table t;

	assert_int_equal(table_init(&t, 5), 0);
	for (int i = 0; i < 5; i++)
		table_add(&t, &all[i].node, keys[i], len[i]);
	for (int i = 0; i < 5; i++)
		assert_ptr_equal(table_find(&t, keys[i], len[i]), &all[i].node);
	assert_ptr_equal(table_find(&t, NULL, 0), &all[0].node);
	assert_null(table_find(&t, "a\0c", 3));
	assert_null(TABLE_OBJECT(struct thing, node, NULL));
	table_free(&t);
}

static struct table each;

static void
see(struct table_node *n, void *arg)
{
	struct thing *x = TABLE_OBJECT(struct thing, node, n);

	x->seen++;
	if (x->seen == 2)
		table_del(&each, n);
	(*(unsigned *)arg)++;
}

static void
each_may_take_itself_out(void **state)
{
	enum { N = 1000 };
	struct thing all[N] = {{0}};
	unsigned calls = 0;

	assert_int_equal(table_init(&each, 1), 0);
	for (int i = 0; i < N; i++) {
		snprintf(all[i].name, sizeof(all[i].name), "%d", i);
		table_add(
		    &each, &all[i].node, all[i].name, strlen(all[i].name));
	}
	for (int i = 0; i < 3; i++)
		table_each(&each, see, &calls);
	assert_int_equal(calls, 2 * N);
	assert_int_equal(each.count, 0);
	for (int i = 0; i < N; i++)
		assert_int_equal(all[i].seen, 2);
	table_free(&each);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fnv),
	    cmocka_unit_test(found_until_taken_out),
	    cmocka_unit_test(keys_are_bytes),
	    cmocka_unit_test(each_may_take_itself_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
