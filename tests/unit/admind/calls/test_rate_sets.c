/* Rates of permission sets (rate.c, docs/decisions/0100). */
#include "rate_rig.h"

static struct token family = {.of = {.name = "family", .per_minute = 30}};

static void
call_of(struct job *j, struct token *t)
{
	memset(j, 0, sizeof(*j));
	(void)snprintf(j->principal, sizeof(j->principal), "oidc:pocket:ann");
	(void)snprintf(j->tool, sizeof(j->tool), "s__t");
	j->listener = LISTENER_LOCAL;
	j->token = t;
	rates_take(rates, j, RATE_PRINCIPAL, RATE_TOOL, then);
}

static void
set_has_a_limit(void **unused)
{
	struct job j[2];

	call_of(&j[0], &family);
	fake_db_is("rate_lease", 1, "oidc:pocket:ann");
	assert_int_equal(fake_db_int("rate_lease", 3), 30);
	grant(1, 1500, 30, 30);
	assert_int_equal(admitted, 1);
	call_of(&j[1], &family);
	assert_int_equal(refused, 1);
	assert_int_equal(last.failure, FAILURE_RATE_LIMITED);
	assert_string_equal(last.message,
	    "you call too often: the permission set family permits 30 calls a "
	    "minute");
	assert_string_equal(last.data,
	    "\"limited\":\"principal\",\"subject\":\"oidc:pocket:ann\","
	    "\"per_minute\":30,\"permission_set\":\"family\"");
	assert_int_equal(last.retry_ms, 1500);
	/* Also where the settings have no limit at all. */
	setting("rate_principal_per_minute", 0);
	set_limits();
	call_of(&j[1], &family);
	assert_int_equal(fake_db_int("rate_lease", 3), 30);
	grant(0, 700, 30, 30);
	assert_int_equal(refused, 2);
	assert_int_equal(last.retry_ms, 700);
}

/* A principal's own limit goes before that of the set. */
static void
own_limit_before_the_set(void **unused)
{
	struct job j[2];

	setting("rate_principal_per_minute", 600);
	own_limit("principal", "oidc:pocket:ann", 6);
	set_limits();
	call_of(&j[0], &family);
	assert_int_equal(fake_db_int("rate_lease", 3), 0);
	grant(1, 10000, 6, 6);
	call_of(&j[1], &family);
	assert_string_equal(last.message, "you call too often");
	assert_null(strstr(last.data, "permission_set"));
}

/* If another document holds, a refused caller is asked about again at once, and
 * leased tokens go back. */
static void
another_limit_of_the_set(void **unused)
{
	struct token more = family, usual = family;
	struct job j;

	more.of.per_minute = 600;
	usual.of.per_minute = 0;
	call_of(&j, &family);
	grant(1, 2000, 30, 30);
	call_of(&j, &family);
	assert_int_equal(refused, 1);
	call_of(&j, &more);
	assert_int_equal(refused, 1);
	assert_int_equal(fake_db_int("rate_lease", 3), 600);
	grant(20, 0, 600, 600);
	assert_int_equal(admitted, 2);
	/* Nineteen are left; without a limit of the set the settings hold. */
	call_of(&j, &usual);
	assert_int_equal(fake_db_int("rate_return", 2), 19);
	assert_int_equal(fake_db_int("rate_lease", 3), 0);
	grant(1, 0, 600, 800);
	assert_int_equal(admitted, 3);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {T(set_has_a_limit),
	    T(own_limit_before_the_set), T(another_limit_of_the_set)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
