/*
 * Tokens that were used (replay.h): once, until their time is over, bounded an
 * issuer, after a start, and with a clock that jumps. The clock is a number of
 * the test.
 */
#include "replay.h"
#include "unit.h"

enum { LEEWAY_S = 5, LIFE_S = 60 };
#define S UINT64_C(1000000) /* one second in us */

static struct replay *r;
static uint64_t now; /* Unix time in us */

static int
setup(void **unused)
{
	now = UINT64_C(1800000000) * S + S / 2;
	r = replay_new(now);
	assert_non_null(r);
	now += LEEWAY_S * S + S;
	return 0;
}

static int
teardown(void **unused)
{
	replay_free(r);
	return 0;
}

/* A token that its issuer made so many us after now. */
static struct replay_token
token(const char *issuer, const char *id, int64_t after)
{
	uint64_t iat = (now + (uint64_t)after) / S * S;

	return (struct replay_token){.issuer = ipc_str(issuer),
	    .id = ipc_str(id),
	    .iat_us = iat,
	    .leeway_us = LEEWAY_S * S,
	    .until_us = iat + (LIFE_S + LEEWAY_S) * S};
}

static enum replay_verdict
use(const char *issuer, const char *id)
{
	struct replay_token t = token(issuer, id, 0);

	return replay_use(r, &t, now);
}

static void
once(void **unused)
{
	assert_int_equal(use("w", "a"), REPLAY_NEW);
	assert_int_equal(use("w", "a"), REPLAY_USED);
	assert_int_equal(use("w", "b"), REPLAY_NEW);
	assert_int_equal(use("w", "b"), REPLAY_USED);
	assert_int_equal(use("w", ""), REPLAY_NEW);
	assert_int_equal(replay_count(r), 3);
}

/* Two issuers may choose the same id; none can choose an id that is another's
 * token. */
static void
of_its_issuer(void **unused)
{
	assert_int_equal(use("w", "xa"), REPLAY_NEW);
	assert_int_equal(use("v", "xa"), REPLAY_NEW);
	assert_int_equal(use("wx", "a"), REPLAY_NEW);
	assert_int_equal(use("wx", "a"), REPLAY_USED);
	assert_int_equal(replay_count(r), 3);
}

/* It is remembered to the last us at which somebody could accept it. */
static void
until_its_time_is_over(void **unused)
{
	struct replay_token t = token("w", "a", 0);

	assert_int_equal(replay_use(r, &t, now), REPLAY_NEW);
	now = t.until_us - 1;
	replay_tick(r, now);
	assert_int_equal(replay_count(r), 1);
	assert_int_equal(replay_use(r, &t, now), REPLAY_USED);
	now = t.until_us;
	replay_tick(r, now);
	assert_int_equal(replay_count(r), 0);
	assert_int_equal(replay_use(r, &t, now), REPLAY_PAST);
	/* the same id in a later token is another token */
	assert_int_equal(use("w", "a"), REPLAY_NEW);
}

/* Every second of some minutes, with a tick or without. */
static void
as_time_passes(void **unused)
{
	struct replay_token kept[256] = {0};
	unsigned most = 0;
	char id[256][16];

	for (int i = 0; i < 3000; i++) {
		struct replay_token *k = &kept[i % 256];

		/* the oldest that was kept, and the one of 170 steps ago */
		if (i >= 256)
			assert_int_equal(replay_use(r, k, now), REPLAY_PAST);
		if (i >= 170)
			assert_int_equal(
			    replay_use(r, &kept[(i - 170) % 256], now),
			    REPLAY_USED);
		snprintf(id[i % 256], sizeof(id[0]), "%d", i);
		*k = token("w", id[i % 256], 0);
		assert_int_equal(replay_use(r, k, now), REPLAY_NEW);
		assert_int_equal(replay_use(r, k, now), REPLAY_USED);
		if (replay_count(r) > most)
			most = replay_count(r);
		now += S / 3;
		if (i % 7 != 0)
			replay_tick(r, now);
	}
	/* three a second, for 64 to 65 s, and those of a missed tick */
	assert_in_range(
	    most, 3 * (LIFE_S + LEEWAY_S) - 5, 3 * (LIFE_S + LEEWAY_S) + 5);
	now += 2 * LIFE_S * S;
	replay_tick(r, now);
	assert_int_equal(replay_count(r), 0);
}

/* ---- bounds ---- */

static void
full(void **unused)
{
	struct replay_token last = token("w", "last", 0);
	char id[16];

	for (int i = 0; i < REPLAY_ISSUER_MAX; i++) {
		snprintf(id, sizeof(id), "%d", i);
		assert_int_equal(use("w", id), REPLAY_NEW);
	}
	/* No new token of this issuer; nothing is forgotten for it. */
	assert_int_equal(replay_use(r, &last, now), REPLAY_FULL);
	assert_int_equal(use("w", "0"), REPLAY_USED);
	assert_int_equal(use("w", "32767"), REPLAY_USED);
	/* Others are not disturbed. */
	assert_int_equal(use("v", "0"), REPLAY_NEW);
	assert_int_equal(replay_count(r), REPLAY_ISSUER_MAX + 1);
	/* A refusal used nothing up: later the token would be good. */
	now += (LIFE_S + LEEWAY_S) * S;
	replay_tick(r, now);
	assert_int_equal(replay_count(r), 0);
	assert_int_equal(use("w", "last"), REPLAY_NEW);
}

static void
issuers_have_a_bound(void **unused)
{
	char name[8];

	for (int i = 0; i < REPLAY_ISSUERS_MAX; i++) {
		snprintf(name, sizeof(name), "w%d", i);
		assert_int_equal(use(name, "a"), REPLAY_NEW);
	}
	assert_int_equal(use("more", "a"), REPLAY_FULL);
	assert_int_equal(use("w0", "b"), REPLAY_NEW);
	/* The room of an issuer without tokens is free again. */
	now += (LIFE_S + LEEWAY_S) * S;
	replay_tick(r, now);
	assert_int_equal(use("more", "a"), REPLAY_NEW);
	assert_int_equal(use("more", "a"), REPLAY_USED);
}

/* A token that no check lets through is not remembered for ever. */
static void
far_ahead(void **unused)
{
	struct replay_token t = token("w", "a", 0);

	t.until_us = now + 1024 * S;
	assert_int_equal(replay_use(r, &t, now), REPLAY_FULL);
	t.until_us = UINT64_MAX;
	assert_int_equal(replay_use(r, &t, now), REPLAY_FULL);
	t.until_us = now;
	assert_int_equal(replay_use(r, &t, now), REPLAY_PAST);
	assert_int_equal(replay_count(r), 0);
}

/* ---- starts ---- */

/* Uses a token, starts again in this many us, and returns the verdict on the
 * same token. ahead: by how much its issuer's clock is ahead, in us. */
static enum replay_verdict
again_after_a_start(uint64_t us, int64_t ahead)
{
	struct replay_token t = token("w", "a", ahead);
	enum replay_verdict v;

	assert_int_equal(replay_use(r, &t, now), REPLAY_NEW);
	replay_free(r);
	now += us;
	r = replay_new(now);
	assert_non_null(r);
	v = replay_use(r, &t, now);
	/* nor later */
	now += (LEEWAY_S + 1) * S;
	assert_int_equal(replay_use(r, &t, now), v);
	return v;
}

static void
used_before_a_start(void **unused)
{
	assert_int_equal(again_after_a_start(0, 0), REPLAY_EARLY);
	assert_int_equal(again_after_a_start(1, 0), REPLAY_EARLY);
	assert_int_equal(again_after_a_start(30 * S, 0), REPLAY_EARLY);
	/* The issuer's clock is ahead by all that the check lets through. */
	assert_int_equal(again_after_a_start(1, LEEWAY_S * S), REPLAY_EARLY);
	assert_int_equal(again_after_a_start(S, LEEWAY_S * S), REPLAY_EARLY);
}

/* People wait for the leeway, and no longer. */
static void
first_after_a_start(void **unused)
{
	uint64_t start = now;

	replay_free(r);
	r = replay_new(start);
	assert_non_null(r);
	assert_int_equal(use("w", "a"), REPLAY_EARLY);
	now = start + LEEWAY_S * S - 1;
	assert_int_equal(use("w", "a"), REPLAY_EARLY);
	now = start + LEEWAY_S * S + S;
	assert_int_equal(use("w", "a"), REPLAY_NEW);
}

/* ---- a clock that jumps ---- */

static void
clock_set_back(void **unused)
{
	struct replay_token t = token("w", "a", 0);

	assert_int_equal(replay_use(r, &t, now), REPLAY_NEW);
	/* back while it is remembered */
	now -= 3 * S;
	replay_tick(r, now);
	assert_int_equal(replay_use(r, &t, now), REPLAY_USED);
	/* back after it was forgotten: it would pass the check of its times */
	now = t.until_us + S;
	replay_tick(r, now);
	assert_int_equal(replay_count(r), 0);
	now = t.iat_us + 10 * S;
	replay_tick(r, now);
	assert_int_equal(replay_use(r, &t, now), REPLAY_PAST);
	/* A token that ends after the last forgotten one is new for sure. */
	assert_int_equal(use("w", "b"), REPLAY_NEW);
	now = t.iat_us;
	assert_int_equal(use("w", "c"), REPLAY_PAST);
}

/* Nothing that is forgotten late, and nothing that is kept for ever, after
 * jumps of any length. */
static void
clock_that_jumps(void **unused)
{
	static const int64_t jumps[] = {
	    1, 59, 64, 65, 66, 600, 1023, 1024, 1025, 5000, 86400};

	for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
		struct replay_token t = token("w", "a", 0);

		assert_int_equal(replay_use(r, &t, now), REPLAY_NEW);
		now += (uint64_t)jumps[i] * S;
		replay_tick(r, now);
		assert_int_equal(replay_count(r), t.until_us > now);
		assert_int_equal(replay_use(r, &t, now),
		    t.until_us > now ? REPLAY_USED : REPLAY_PAST);
		now += (LIFE_S + LEEWAY_S) * S;
		replay_tick(r, now);
		assert_int_equal(replay_count(r), 0);
		/* ahead by mistake, and back */
		replay_tick(r, now + (uint64_t)jumps[i] * S);
		replay_tick(r, now);
		t = token("w", "b", 0);
		assert_int_equal(replay_use(r, &t, now), REPLAY_NEW);
		assert_int_equal(replay_use(r, &t, now), REPLAY_USED);
		now += (LIFE_S + LEEWAY_S) * S;
		replay_tick(r, now);
		assert_int_equal(replay_count(r), 0);
	}
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(once),
	    TEST(of_its_issuer),
	    TEST(until_its_time_is_over),
	    TEST(as_time_passes),
	    TEST(full),
	    TEST(issuers_have_a_bound),
	    TEST(far_ahead),
	    TEST(used_before_a_start),
	    TEST(first_after_a_start),
	    TEST(clock_set_back),
	    TEST(clock_that_jumps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
