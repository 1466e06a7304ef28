/* Circuit breakers by a clock of the test's own. */
#include "breaker.h"
#include "ids.h"
#include "unit.h"

static struct breakers *b;
static struct breaker_conf conf;
static struct breaker_trip trip;
static uint64_t now;

static int
setup(void **unused)
{
	static const struct breaker_conf standard = {
	    .of = {[BREAKER_SESSION] = {100, 10, 4},
		[BREAKER_PRINCIPAL] = {1000, 50, 20}},
	    .calls_ms = 60000,
	    .repeats_ms = 6000,
	    .reset_ms = 1000};

	conf = standard;
	now = 1000000;
	b = breakers_new();
	return b == NULL ? -1 : 0;
}

static int
teardown(void **unused)
{
	breakers_free(b);
	return 0;
}

static struct breaker_who
who(unsigned session, const char *principal)
{
	struct breaker_who w = {0};

	if (session != 0) {
		memset(w.key[BREAKER_SESSION].b, (int)session & 0xff, 16);
		w.key[BREAKER_SESSION].b[3] = (uint8_t)(session >> 8);
		w.key[BREAKER_SESSION].b[4] = 1;
	}
	breaker_principal(1, principal, &w.key[BREAKER_PRINCIPAL]);
	return w;
}

static int
call(const struct breaker_who *w, const char *name, unsigned args)
{
	struct ipc_id h = {{0}};

	memcpy(h.b, &args, sizeof(args));
	return breaker_call(b, &conf, w, 0, name, &h, now, &trip);
}

static void
assert_trip(const char *name, uint32_t limit)
{
	assert_string_equal(breaker_name(&trip), name);
	assert_int_equal(trip.limit, limit);
	assert_true(trip.wait_ms > 0 && trip.wait_ms <= conf.reset_ms);
}

static void
test_repeats(void **unused)
{
	struct breaker_who w = who(1, "p"), other = who(2, "p");

	/* A, B, A, B ... and a third now and then */
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(call(&w, "a", 1), 0);
		assert_int_equal(call(&w, "b", 1), 0);
		assert_int_equal(call(&w, "a", 100 + i), 0);
		now += 10;
	}
	assert_int_equal(call(&w, "a", 1), -1);
	assert_trip("session_repeats", 10);
	assert_true(trip.fresh);
	assert_int_equal(trip.window_ms, 6000);
	assert_int_equal(call(&w, "a", 1), -1);
	assert_false(trip.fresh);
	assert_int_equal(call(&w, "b", 1), -1);
	assert_int_equal(call(&w, "b", 2), 0);
	assert_int_equal(call(&other, "a", 1), 0);
	/* open for reset_ms, then from zero */
	now += 999;
	assert_int_equal(call(&w, "a", 1), -1);
	assert_int_equal(trip.wait_ms, 1);
	now += 1;
	for (int i = 0; i < 10; i++)
		assert_int_equal(call(&w, "a", 1), 0);
	assert_int_equal(call(&w, "a", 1), -1);
	/* another kind of object of that name is another call */
	assert_int_equal(breaker_call(b, &conf, &w, 1, "a",
			     &(struct ipc_id){{1}}, now, &trip),
	    0);
}

static void
test_the_window_slides(void **unused)
{
	struct breaker_who w = who(1, "p");

	/* nine within each window, for long */
	for (int i = 0; i < 100; i++) {
		assert_int_equal(call(&w, "a", 1), 0);
		now += 6000 / 8;
	}
	/* a burst over the border between two windows of a fixed kind */
	now += 60000;
	for (int i = 0; i < 10; i++)
		assert_int_equal(call(&w, "a", 1), 0);
	now += 4000;
	assert_int_equal(call(&w, "a", 1), -1);
	now += 60000;
	assert_int_equal(call(&w, "a", 1), 0);
}

static void
test_calls_in_all(void **unused)
{
	struct breaker_who w = who(1, "p");
	unsigned n = 0;

	while (call(&w, "a", n) == 0)
		n++;
	assert_int_equal(n, 100);
	assert_trip("session_calls", 100);
	/* whatever is called */
	assert_int_equal(call(&w, "z", 5000), -1);
	assert_trip("session_calls", 100);
}

static void
test_principals_bound_their_sessions(void **unused)
{
	struct breaker_who stateless = who(0, "p"), other = who(0, "q");
	unsigned n = 0;

	for (;; n++) {
		struct breaker_who w = who(1 + n % 200, "p");

		if (call(&w, "a", 1) == -1)
			break;
	}
	assert_int_equal(n, 50);
	assert_trip("principal_repeats", 50);
	assert_int_equal(call(&stateless, "a", 1), -1);
	assert_int_equal(call(&other, "a", 1), 0);
	for (n = 50; call(&stateless, "a", 100 + n) == 0; n++)
		;
	/* what the principal refused was counted of its session alone */
	assert_int_equal(n, 1000);
	assert_trip("principal_calls", 1000);
}

static bool
end(const struct breaker_who *w, enum failure f)
{
	return breaker_ended(b, &conf, w, f, now, &trip);
}

static void
test_errors_in_a_row(void **unused)
{
	static const enum failure not_the_callers[] = {FAILURE_BUSY,
	    FAILURE_STORAGE_UNAVAILABLE, FAILURE_LOST, FAILURE_KILLED,
	    FAILURE_RATE_LIMITED, FAILURE_CIRCUIT_OPEN,
	    FAILURE_CONFIRMATION_PENDING, FAILURE_INTERNAL,
	    FAILURE_SANDBOX_UNAVAILABLE, FAILURE_VAULT_UNAVAILABLE,
	    FAILURE_UPGRADING};
	static const enum failure the_callers[] = {FAILURE_EXCEPTION,
	    FAILURE_STOPPED, FAILURE_UNKNOWN_TOOL, FAILURE_TIMEOUT,
	    FAILURE_NOT_APPROVED, FAILURE_REVOKED, FAILURE_TOOL_PROTOCOL,
	    FAILURE_UPSTREAM};
	struct breaker_who w = who(1, "p");

	assert_int_equal(call(&w, "a", 0), 0);
	for (size_t i = 0; i < 100; i++)
		assert_false(end(&w, not_the_callers[i % 11]));
	for (size_t i = 0; i < 8; i++) {
		assert_false(end(&w, the_callers[i]));
		if (i % 3 == 2)
			assert_false(end(&w, FAILURE_NONE));
	}
	assert_false(end(&w, FAILURE_NONE));
	for (int i = 0; i < 3; i++)
		assert_false(end(&w, FAILURE_EXCEPTION));
	assert_true(end(&w, FAILURE_EXCEPTION));
	assert_trip("session_errors", 4);
	/* one that was under way then prolongs nothing */
	now += 500;
	assert_false(end(&w, FAILURE_EXCEPTION));
	assert_int_equal(call(&w, "b", 1), -1);
	assert_trip("session_errors", 4);
	assert_int_equal(trip.wait_ms, 500);
	assert_int_equal(trip.window_ms, 0);
	/* one try: an error opens it, a success closes it */
	now += 500;
	assert_int_equal(call(&w, "b", 1), 0);
	assert_true(end(&w, FAILURE_EXCEPTION));
	assert_int_equal(call(&w, "b", 1), -1);
	now += 1000;
	assert_int_equal(call(&w, "b", 1), 0);
	assert_false(end(&w, FAILURE_NONE));
	for (int i = 0; i < 3; i++)
		assert_false(end(&w, FAILURE_EXCEPTION));
	assert_int_equal(call(&w, "b", 1), 0);
}

static void
test_records_find_their_callers(void **unused)
{
	struct breaker_who w = who(1, "p");
	struct ipc_id id[5000], unknown;
	bool opened = false;

	assert_int_equal(call(&w, "a", 0), 0);
	for (int i = 0; i < 5000; i++) {
		id_random(&id[i]);
		breaker_under_way(b, &id[i], &w);
	}
	id_random(&unknown);
	assert_false(
	    breaker_record(b, &conf, &unknown, FAILURE_EXCEPTION, now, &trip));
	/* the first ones made room */
	for (int i = 0; i < 900; i++)
		assert_false(breaker_record(
		    b, &conf, &id[i], FAILURE_EXCEPTION, now, &trip));
	for (int i = 4990; i < 4994; i++) {
		assert_false(opened);
		opened = breaker_record(
		    b, &conf, &id[i], FAILURE_EXCEPTION, now, &trip);
		/* once only */
		assert_false(breaker_record(
		    b, &conf, &id[i], FAILURE_EXCEPTION, now, &trip));
	}
	assert_true(opened);
}

static void
test_zero_is_none(void **unused)
{
	struct breaker_who w = who(1, "p");

	memset(conf.of, 0, sizeof(conf.of));
	for (unsigned i = 0; i < 5000; i++) {
		assert_int_equal(call(&w, "a", 1), 0);
		assert_false(end(&w, FAILURE_EXCEPTION));
	}
}

/* Who fills the table of sessions loses counts of sessions, no principal's. */
static void
test_bounded(void **unused)
{
	struct breaker_who w = who(1, "p");

	conf.of[BREAKER_PRINCIPAL].repeats = 0;
	conf.of[BREAKER_PRINCIPAL].calls = 100000;
	for (unsigned i = 0; i < 20000; i++) {
		id_random(&w.key[BREAKER_SESSION]);
		assert_int_equal(call(&w, "a", i), 0);
	}
	/* a loop over more calls than are told apart is held by the total */
	w = who(2, "p");
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(call(&w, "a", i % 90), 0);
	assert_int_equal(call(&w, "a", 0), -1);
	assert_trip("session_calls", 100);
	conf.of[BREAKER_PRINCIPAL].calls = 20100;
	w = who(3, "p");
	assert_int_equal(call(&w, "a", 0), -1);
	assert_trip("principal_calls", 20100);
}

static void
count(void *arg, const struct ipc_id *key, const struct breaker_trip *t)
{
	++*(int *)arg;
	trip = *t;
}

static void
test_shown_and_reset(void **unused)
{
	struct breaker_who w = who(1, "p");
	int n = 0;

	breakers_each(b, &conf, now, count, &n);
	assert_int_equal(n, 0);
	for (int i = 0; i < 11; i++)
		(void)call(&w, "a", 1);
	for (int i = 0; i < 4; i++)
		(void)end(&w, FAILURE_EXCEPTION);
	breakers_each(b, &conf, now, count, &n);
	assert_int_equal(n, 2);
	assert_trip("session_repeats", 10);
	assert_int_equal(breakers_reset(b, now), 2);
	assert_int_equal(breakers_reset(b, now), 0);
	assert_int_equal(call(&w, "a", 1), 0);
}

static void
test_an_outage_is_no_repetition(void **unused)
{
	struct breaker_who w = who(1, "p");
	struct ipc_id h = {{1}};

	for (int i = 0; i < 200; i++) {
		assert_int_equal(call(&w, "a", 1), 0);
		breaker_untried(b, &conf, &w, 0, "a", &h,
		    i % 2 ? FAILURE_STORAGE_UNAVAILABLE
			  : FAILURE_SANDBOX_UNAVAILABLE,
		    now);
		now += 60;
		if (i % 50 == 0) /* or it is the calls in all */
			(void)breakers_reset(b, now);
	}
	(void)breakers_reset(b, now);
	/* what a loop brings about itself is one all the same */
	for (int i = 0; i < 10; i++) {
		assert_int_equal(call(&w, "a", 1), 0);
		breaker_untried(b, &conf, &w, 0, "a", &h, FAILURE_BUSY, now);
		breaker_untried(
		    b, &conf, &w, 0, "a", &h, FAILURE_EXCEPTION, now);
		/* nor is another call's outage */
		breaker_untried(b, &conf, &w, 0, "other", &h,
		    FAILURE_STORAGE_UNAVAILABLE, now);
	}
	assert_int_equal(call(&w, "a", 1), -1);
	assert_trip("session_repeats", 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	    T(test_repeats),
	    T(test_the_window_slides),
	    T(test_calls_in_all),
	    T(test_principals_bound_their_sessions),
	    T(test_errors_in_a_row),
	    T(test_records_find_their_callers),
	    T(test_zero_is_none),
	    T(test_bounded),
	    T(test_shown_and_reset),
	    T(test_an_outage_is_no_repetition),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
