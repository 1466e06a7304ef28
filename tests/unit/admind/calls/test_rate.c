/*
 * Rates (rate.c) with a fake database: the calls that need a statement, the
 * text of a refusal, tokens that go back to the bucket, and the bound on
 * subjects in memory.
 */
#include "rate_rig.h"

/* ---- tests ---- */

static void
no_limit_asks_nobody(void **unused)
{
	struct job j;

	take(&j, "local", "s__t", LISTENER_LOCAL, RATE_TOOL, RATE_SCOPES);
	assert_int_equal(admitted, 1);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
one_lease_serves_many_calls(void **unused)
{
	struct job j[40];

	call(&j[0], "ann");
	assert_int_equal(admitted, 0);
	fake_db_is("rate_lease", 0, "principal");
	fake_db_is("rate_lease", 1, "ann");
	assert_int_equal(fake_db_int("rate_lease", 2), 1);
	grant(1, 0, 600, 800);
	assert_int_equal(admitted, 1);
	/* The next lease is a twentieth of a minute's worth, which is less than
	 * an eighth of the burst. */
	call(&j[1], "ann");
	assert_int_equal(fake_db_int("rate_lease", 2), 30);
	grant(30, 0, 600, 800);
	assert_int_equal(admitted, 2);
	/* Fifteen are left when the next lease is asked for, beside the calls.
	 */
	for (int i = 2; i < 16; i++)
		call(&j[i], "ann");
	assert_int_equal(admitted, 16);
	assert_int_equal(fake_db_sent("rate_lease"), 2);
	call(&j[16], "ann");
	assert_int_equal(admitted, 17);
	assert_int_equal(fake_db_sent("rate_lease"), 3);
	for (int i = 17; i < 31; i++)
		call(&j[i], "ann");
	assert_int_equal(admitted, 31);
	assert_int_equal(fake_db_sent("rate_lease"), 3);
	/* None is left: the call waits for the lease that is under way. */
	call(&j[31], "ann");
	assert_int_equal(admitted, 31);
	assert_int_equal(fake_db_sent("rate_lease"), 3);
	grant(30, 0, 600, 800);
	assert_int_equal(admitted, 32);
	assert_int_equal(refused, 0);
}

static void
burst_bounds_a_lease(void **unused)
{
	struct job j[2];

	call(&j[0], "ann");
	grant(1, 0, 600, 40);
	call(&j[1], "ann");
	assert_int_equal(fake_db_int("rate_lease", 2), 5);
	grant(5, 0, 600, 1);
	assert_int_equal(admitted, 2);
}

static void
waiters_share_a_lease(void **unused)
{
	struct job j[5];

	for (int i = 0; i < 5; i++)
		call(&j[i], "ann");
	assert_int_equal(fake_db_waits("rate_lease"), 1);
	/* Two tokens, then none for 50 ms: the first come are admitted. */
	grant(2, 50, 600, 800);
	assert_int_equal(admitted, 2);
	assert_int_equal(refused, 3);
	assert_ptr_equal(last.job, &j[4]);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
waiters_outlast_a_small_lease(void **unused)
{
	struct job j[9];

	call(&j[0], "ann");
	for (int i = 1; i < 9; i++)
		call(&j[i], "ann");
	/* One was granted; eight wait for the next. */
	grant(1, 0, 60, 80);
	assert_int_equal(admitted, 1);
	assert_int_equal(fake_db_waits("rate_lease"), 1);
	grant(1, 0, 60, 80);
	assert_int_equal(admitted, 2);
	call(&j[0], "ann");
	assert_int_equal(fake_db_waits("rate_lease"), 1);
	grant(8, 0, 60, 80);
	assert_int_equal(admitted, 10);
	assert_int_equal(refused, 0);
}

static void
refuses_until_the_next_token(void **unused)
{
	struct job j[3];

	call(&j[0], "ann");
	grant(0, 250, 60, 8);
	assert_int_equal(refused, 1);
	assert_int_equal(last.failure, FAILURE_RATE_LIMITED);
	assert_int_equal(last.retry_ms, 250);
	assert_string_equal(last.message, "you call too often");
	assert_string_equal(last.data,
	    "\"limited\":\"principal\",\"subject\":\"ann\",\"per_minute\":60");
	/* Until then no process is asked again. */
	clock_ms += 249;
	call(&j[1], "ann");
	assert_int_equal(refused, 2);
	assert_int_equal(last.retry_ms, 1);
	assert_int_equal(fake_db_sent("rate_lease"), 1);
	clock_ms += 1;
	call(&j[2], "ann");
	assert_int_equal(refused, 2);
	assert_int_equal(fake_db_sent("rate_lease"), 2);
	grant(1, 0, 60, 8);
	assert_int_equal(admitted, 1);
}

static void
another_has_its_own(void **unused)
{
	struct job j[2];

	call(&j[0], "ann");
	grant(0, 250, 60, 8);
	call(&j[1], "bob");
	fake_db_is("rate_lease", 1, "bob");
	grant(1, 0, 60, 8);
	assert_int_equal(refused, 1);
	assert_int_equal(admitted, 1);
}

static void
scopes_in_their_order(void **unused)
{
	struct job j;

	setting("rate_principal_per_minute", 600);
	setting("rate_tool_per_minute", 60);
	setting("rate_tunnel_per_minute", 60);
	set_limits();
	take(&j, "ann", "s__t", LISTENER_TUNNEL, RATE_PRINCIPAL, RATE_SCOPES);
	fake_db_is("rate_lease", 0, "principal");
	fake_db_is("rate_lease", 1, "ann");
	grant(1, 0, 600, 8);
	fake_db_is("rate_lease", 0, "tool");
	fake_db_is("rate_lease", 1, "s__t");
	grant(1, 0, 60, 8);
	assert_int_equal(admitted, 0);
	fake_db_is("rate_lease", 0, "listener");
	fake_db_is("rate_lease", 1, "tunnel");
	grant(0, 40, 60, 8);
	assert_int_equal(admitted, 0);
	assert_string_equal(
	    last.message, "too many calls come by this listener");
	/* The local listener has no limit, the tool has. */
	take(&j, "ann", "s__u", LISTENER_LOCAL, RATE_TOOL, RATE_SCOPES);
	grant(0, 40, 60, 8);
	assert_string_equal(last.message, "this tool is called too often");
	take(&j, "ann", "s__v", LISTENER_LOCAL, RATE_TOOL, RATE_SCOPES);
	grant(1, 0, 60, 8);
	assert_int_equal(admitted, 1);
	assert_int_equal(refused, 2);
}

static void
own_limits_come_first(void **unused)
{
	struct job j;

	setting("rate_principal_per_minute", 0);
	setting("rate_token_per_minute", 60);
	own_limit("tool", "s__few", 6);
	own_limit("principal", "token:free", 0);
	set_limits();
	/* The limit of tokens is for tokens alone. */
	call(&j, "local");
	call(&j, "token:free");
	take(&j, "local", "s__any", LISTENER_LOCAL, RATE_TOOL, RATE_SCOPES);
	assert_int_equal(admitted, 3);
	assert_int_equal(fake_db_waits(NULL), 0);
	call(&j, "token:other");
	fake_db_is("rate_lease", 1, "token:other");
	grant(1, 0, 60, 8);
	take(&j, "local", "s__few", LISTENER_LOCAL, RATE_TOOL, RATE_SCOPES);
	fake_db_is("rate_lease", 1, "s__few");
	grant(1, 0, 6, 8);
	assert_int_equal(admitted, 5);
}

static void
no_limit_there_is_believed(void **unused)
{
	struct job j[4];

	call(&j[0], "ann");
	fake_db_row("iini", INT64_C(0), INT64_C(0), INT64_C(0));
	fake_db_answer("rate_lease");
	assert_int_equal(admitted, 1);
	clock_ms += 4999;
	call(&j[1], "ann");
	assert_int_equal(admitted, 2);
	assert_int_equal(fake_db_sent("rate_lease"), 1);
	clock_ms += 1;
	call(&j[2], "ann");
	assert_int_equal(fake_db_waits("rate_lease"), 1);
	grant(1, 0, 60, 8);
	assert_int_equal(admitted, 3);
}

static void
idle_tokens_go_back(void **unused)
{
	struct job j;

	call(&j, "ann");
	grant(30, 0, 600, 800);
	clock_ms += 10000;
	rates_tick(rates);
	assert_int_equal(fake_db_waits(NULL), 0);
	clock_ms += 1;
	rates_tick(rates);
	/* All but one of the 29 that were left. */
	fake_db_is("rate_return", 0, "principal");
	fake_db_is("rate_return", 1, "ann");
	assert_int_equal(fake_db_int("rate_return", 2), 28);
	fake_db_row("n");
	fake_db_answer("rate_return");
	rates_tick(rates);
	assert_int_equal(fake_db_waits(NULL), 0);
	/* The one that stayed serves, and the next lease is asked for. */
	call(&j, "ann");
	assert_int_equal(admitted, 2);
	assert_int_equal(fake_db_waits("rate_lease"), 1);
}

static void
nothing_goes_back_without_a_database(void **unused)
{
	struct job j;

	call(&j, "ann");
	grant(30, 0, 600, 800);
	clock_ms += 10001;
	fake_db_up(false);
	rates_tick(rates);
	fake_db_up(true);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
change_returns_leases(void **unused)
{
	struct job j[3];

	call(&j[0], "ann");
	grant(30, 0, 600, 800);
	call(&j[1], "bob");
	grant(0, 60000, 60, 8);
	assert_int_equal(refused, 1);
	setting("rate_principal_per_minute", 1200);
	set_limits();
	assert_int_equal(fake_db_waits("rate_return"), 1);
	fake_db_is("rate_return", 1, "ann");
	assert_int_equal(fake_db_int("rate_return", 2), 29);
	/* The refusal of the former limit is over, and a lease begins with
	 * one. */
	call(&j[2], "bob");
	assert_int_equal(refused, 1);
	assert_int_equal(fake_db_int("rate_lease", 2), 1);
	fake_db_is("rate_lease", 1, "bob");
	grant(1, 0, 1200, 8);
	call(&j[0], "ann");
	fake_db_is("rate_lease", 1, "ann");
	assert_int_equal(fake_db_int("rate_lease", 2), 1);
}

static void
failed_lease_refuses_who_waits(void **unused)
{
	struct job j[3];

	call(&j[0], "ann");
	call(&j[1], "ann");
	fake_db_fail("rate_lease", FAILURE_STORAGE_UNAVAILABLE, "gone");
	assert_int_equal(refused, 2);
	assert_int_equal(last.failure, FAILURE_STORAGE_UNAVAILABLE);
	assert_string_equal(last.message, "gone");
	call(&j[2], "ann");
	grant(1, 0, 600, 800);
	assert_int_equal(admitted, 1);
}

static void
unknown_limits_are_asked_for(void **unused)
{
	struct job j;

	make_rates();
	/* Without a database nothing is counted, and nothing is limited. */
	fake_db_up(false);
	call(&j, "ann");
	assert_int_equal(admitted, 1);
	fake_db_up(true);
	call(&j, "ann");
	assert_int_equal(fake_db_waits("rate_lease"), 1);
	grant(1, 0, 600, 800);
	assert_int_equal(admitted, 2);
}

static void
name_of(char name[16], int i)
{
	(void)snprintf(name, 16, "p%d", i);
}

/* All have a lease of two tokens, and one is left of each. */
static void
fill(struct job *j)
{
	char name[16];

	for (int i = 0; i < RATES_MAX; i++) {
		name_of(name, i);
		call(j, name);
		grant(2, 0, 60, 8);
	}
	assert_int_equal(admitted, RATES_MAX);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
longest_unused_lease_goes(void **unused)
{
	struct job j;

	fill(&j);
	/* The oldest is used again, so the second is the one that goes. */
	call(&j, "p0");
	assert_int_equal(admitted, RATES_MAX + 1);
	assert_int_equal(fake_db_waits("rate_lease"), 0);
	call(&j, "new");
	assert_int_equal(fake_db_waits("rate_return"), 1);
	fake_db_is("rate_return", 1, "p1");
	assert_int_equal(fake_db_int("rate_return", 2), 1);
	grant(2, 0, 60, 8);
	/* p2 and its token are still there; p1 asks again, in the place of
	 * p3. */
	call(&j, "p2");
	assert_int_equal(admitted, RATES_MAX + 3);
	assert_int_equal(fake_db_waits("rate_lease"), 0);
	call(&j, "p1");
	fake_db_is("rate_lease", 1, "p1");
	assert_int_equal(fake_db_waits("rate_return"), 2);
	grant(1, 0, 60, 8);
	assert_int_equal(refused, 0);
}

static void
lease_that_calls_wait_for_stays(void **unused)
{
	struct job *j = calloc(RATES_MAX + 1, sizeof(*j));
	char name[16];

	assert_non_null(j);
	for (int i = 0; i < RATES_MAX; i++) {
		name_of(name, i);
		call(&j[i], name);
	}
	assert_int_equal(fake_db_waits("rate_lease"), RATES_MAX);
	call(&j[RATES_MAX], "new");
	assert_int_equal(refused, 1);
	assert_int_equal(last.failure, FAILURE_BUSY);
	/* With the first answer there is room for one. */
	grant(1, 0, 60, 8);
	assert_int_equal(admitted, 1);
	call(&j[RATES_MAX], "new");
	assert_int_equal(refused, 1);
	assert_int_equal(fake_db_waits("rate_lease"), RATES_MAX);
	free(j);
}

static void
full_buckets_are_swept(void **unused)
{
	for (int i = 0; i < 599; i++)
		rates_tick(rates);
	assert_int_equal(fake_db_waits(NULL), 0);
	rates_tick(rates);
	assert_int_equal(fake_db_waits("rate_sweep"), 1);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {T(no_limit_asks_nobody),
	    T(one_lease_serves_many_calls), T(burst_bounds_a_lease),
	    T(waiters_share_a_lease), T(waiters_outlast_a_small_lease),
	    T(refuses_until_the_next_token), T(another_has_its_own),
	    T(scopes_in_their_order), T(own_limits_come_first),
	    T(no_limit_there_is_believed), T(idle_tokens_go_back),
	    T(nothing_goes_back_without_a_database), T(change_returns_leases),
	    T(failed_lease_refuses_who_waits), T(unknown_limits_are_asked_for),
	    T(longest_unused_lease_goes), T(lease_that_calls_wait_for_stays),
	    T(full_buckets_are_swept)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
