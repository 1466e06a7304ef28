/* The set of execution ids against a plain array. */
#include "admind.h"
#include "unit.h"

enum { IDS = 3000, STEPS = 60000 };

static uint64_t state = 88172645463325252ULL;

/* xorshift64: the same sequence every time. */
static uint64_t
next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void
test_against_an_array(void **unused)
{
	static struct ipc_id id[IDS];
	static bool in[IDS];
	struct idset s = {0};
	size_t count = 0;

	for (size_t i = 0; i < IDS; i++) {
		uint64_t a = next(), b = next();

		/* Every fifth collides with others in its first bytes. */
		memcpy(id[i].b, &a, 8);
		if (i % 5 == 0)
			memset(id[i].b, 7, 8);
		memcpy(id[i].b + 8, &b, 8);
	}
	for (int n = 0; n < STEPS; n++) {
		size_t i = next() % IDS;

		if (next() % 2 == 0) {
			assert_int_equal(idset_add(&s, &id[i]), 0);
			count += !in[i];
			in[i] = true;
		} else {
			idset_del(&s, &id[i]);
			count -= in[i];
			in[i] = false;
		}
		assert_int_equal(s.count, count);
		i = next() % IDS;
		assert_int_equal(idset_has(&s, &id[i]), in[i]);
	}
	for (size_t i = 0; i < IDS; i++)
		assert_int_equal(idset_has(&s, &id[i]), in[i]);
	idset_clear(&s);
	assert_int_equal(s.count, 0);
	assert_false(idset_has(&s, &id[0]));
}

/* Adding and deleting for ever neither grows the table nor stops a search. */
static void
test_deleted_slots_are_reclaimed(void **unused)
{
	struct idset s = {0};
	struct ipc_id id;

	for (int n = 0; n < 200000; n++) {
		uint64_t a = next();

		memcpy(id.b, &a, 8);
		memset(id.b + 8, 0, 8);
		assert_int_equal(idset_add(&s, &id), 0);
		assert_int_equal(idset_add(&s, &id), 0);
		assert_int_equal(s.count, 1);
		idset_del(&s, &id);
		assert_false(idset_has(&s, &id));
	}
	assert_true(s.size <= 1024);
	idset_clear(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_against_an_array),
	    cmocka_unit_test(test_deleted_slots_are_reclaimed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
