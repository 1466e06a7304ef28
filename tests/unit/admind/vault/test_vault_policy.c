/* policy.h: what was sealed, what is older, what has ended, what it covers. */
#include "policy.h"
#include "unit.h"

static struct keys keys, other;

#define DAY (UINT64_C(86400) * 1000 * 1000)

static struct policy
made(const struct policy *newest, uint8_t tool, uint64_t now, struct buf *seal)
{
	const uint8_t mode[REVIEW_QUEUES] = {
	    tool, REVIEW_REQUIRE, REVIEW_REQUIRE};
	struct policy p;
	struct err e;

	assert_int_equal(policy_make(&keys, newest, 0, mode, 2, ipc_str("anna"),
			     now, seal, &p, &e),
	    0);
	return p;
}

static void
take(struct policy *p, const struct buf *seal)
{
	policy_take(&keys, ipc_bytes(seal->p, seal->len), p);
}

static void
newest_holds(void **state)
{
	struct policy p, a, b;
	struct buf first, second;

	buf_init(&first, POLICY_SEAL_MAX);
	buf_init(&second, POLICY_SEAL_MAX);
	policy_default(&p);
	for (unsigned q = 0; q < REVIEW_QUEUES; q++)
		assert_int_equal(
		    policy_mode(&p, (enum review_queue)q, 1), REVIEW_REQUIRE);
	a = made(&p, REVIEW_AUTOMATIC, 1000, &first);
	assert_int_equal(p.serial, 0); /* making one doesn't make it hold */
	take(&p, &first);
	assert_int_equal(p.serial, a.serial);
	assert_string_equal(p.actor, "anna");
	assert_memory_equal(&p.seal, &a.seal, sizeof(p.seal));
	/* a clock that was set back makes none that is older */
	b = made(&p, REVIEW_SECOND, 10, &second);
	assert_true(b.serial > a.serial);
	take(&p, &second);
	assert_int_equal(policy_mode(&p, REVIEW_TOOL, 2000), REVIEW_SECOND);
	take(&p, &first);
	assert_int_equal(p.serial, b.serial);
	/* nothing, too much, another key's, one bit */
	policy_take(&keys, ipc_bytes(NULL, 0), &p);
	policy_take(&other, ipc_bytes(first.p, first.len), &a);
	for (size_t bit = 0; bit < second.len * 8; bit++) {
		struct policy q;

		policy_default(&q);
		second.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		take(&q, &second);
		assert_int_equal(q.serial, 0);
		second.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	assert_int_equal(p.serial, b.serial);
	buf_free(&first);
	buf_free(&second);
}

static void
automatic_ends(void **state)
{
	struct policy p, a;
	struct buf seal;

	buf_init(&seal, POLICY_SEAL_MAX);
	policy_default(&p);
	a = made(&p, REVIEW_AUTOMATIC, DAY, &seal);
	assert_int_equal(a.until_us, 3 * DAY);
	assert_int_equal(
	    policy_mode(&a, REVIEW_TOOL, 3 * DAY - 1), REVIEW_AUTOMATIC);
	assert_int_equal(policy_mode(&a, REVIEW_TOOL, 3 * DAY), REVIEW_REQUIRE);
	a = made(&p, REVIEW_SECOND, DAY, &seal); /* this one doesn't */
	assert_int_equal(a.until_us, 0);
	assert_int_equal(
	    policy_mode(&a, REVIEW_TOOL, 900 * DAY), REVIEW_SECOND);
	buf_free(&seal);
}

static void
refusals(void **state)
{
	const uint8_t none[REVIEW_QUEUES] = {1, 0, 1},
		      more[REVIEW_QUEUES] = {1, 4, 1};
	const uint8_t good[REVIEW_QUEUES] = {1, 1, 1};
	struct policy p, q;
	struct buf seal;
	struct err e;
	char name[POLICY_ACTOR_MAX + 2];

	memset(name, 'a', sizeof(name));
	policy_default(&p);
	buf_init(&seal, POLICY_SEAL_MAX);
	assert_int_equal(
	    policy_make(&keys, &p, 0, none, 1, ipc_str("a"), 1, &seal, &q, &e),
	    -1);
	assert_int_equal(
	    policy_make(&keys, &p, 0, more, 1, ipc_str("a"), 1, &seal, &q, &e),
	    -1);
	assert_int_equal(
	    policy_make(&keys, &p, 0, good, 0, ipc_str("a"), 1, &seal, &q, &e),
	    -1);
	assert_int_equal(policy_make(&keys, &p, 0, good, REVIEW_DAYS_MAX + 1,
			     ipc_str("a"), 1, &seal, &q, &e),
	    -1);
	assert_int_equal(
	    policy_make(&keys, &p, 0, good, 1, ipc_str(""), 1, &seal, &q, &e),
	    -1);
	assert_int_equal(policy_make(&keys, &p, 0, good, 1,
			     ipc_bytes(name, sizeof(name)), 1, &seal, &q, &e),
	    -1);
	assert_int_equal(seal.len, 0);
	/* the longest name fits */
	assert_int_equal(
	    policy_make(&keys, &p, 0, good, 1,
		ipc_bytes(name, POLICY_ACTOR_MAX), 1, &seal, &q, &e),
	    0);
	take(&p, &seal);
	assert_int_equal(strlen(p.actor), POLICY_ACTOR_MAX);
	buf_free(&seal);
}

static void
profiles(void **state)
{
	uint8_t mode[REVIEW_QUEUES];

	assert_int_equal(review_profile(ipc_str("strict"), mode), 0);
	assert_string_equal(review_profile_name(mode), "strict");
	assert_int_equal(mode[REVIEW_TOOL], REVIEW_SECOND);
	assert_int_equal(review_profile(ipc_str("balanced"), mode), 0);
	assert_int_equal(mode[REVIEW_MODULE], REVIEW_AUTOMATIC);
	assert_int_equal(mode[REVIEW_NETWORK], REVIEW_REQUIRE);
	assert_int_equal(review_profile(ipc_str("permissive"), mode), 0);
	assert_int_equal(mode[REVIEW_NETWORK], REVIEW_AUTOMATIC);
	assert_int_equal(review_profile(ipc_str("lax"), mode), -1);
	assert_null(review_mode_name(0));
	assert_null(review_mode_name(4));
	assert_int_equal(review_mode_find(ipc_str("second"), mode), 0);
	assert_int_equal(mode[0], REVIEW_SECOND);
	assert_int_equal(review_mode_find(ipc_str("Second"), mode), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(newest_holds),
	    cmocka_unit_test(automatic_ends),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(profiles),
	};

	memset(&keys, 1, sizeof(keys));
	memset(&other, 2, sizeof(other));
	keys.also = NULL;
	other.also = NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
