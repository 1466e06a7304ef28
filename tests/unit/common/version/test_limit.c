/* limit.h: the table against its neighbours, and the verdicts at its edges. */
#include "unit.h"

#include "context.h"
#include "limit.h"
#include "version.h"

static void
names_and_tags(void **state)
{
	static const unsigned context[] = {CTX_TIMEOUT_MS, CTX_MEMORY,
	    CTX_PROCESSES, CTX_TMP, CTX_RESULT, CTX_CPU_MS, CTX_FILES,
	    CTX_FILE_BYTES, CTX_STDOUT, 0, CTX_LOG_RATE, CTX_PROGRESS_RATE,
	    CTX_CONNECTIONS, CTX_NETWORK_BYTES, CTX_NETWORK_RATE, 0};
	enum version_kind kind;

	(void)state;
	assert_int_equal(sizeof(context) / sizeof(context[0]), LIMIT_COUNT);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_info *t = limit_info((enum limit)i);

		assert_int_equal(t->context, context[i]);
		assert_int_equal(limit_find(t->name, strlen(t->name)), i);
		if (t->context != 0)
			assert_int_equal(limit_of_context(t->context), i);
		if (t->version != 0) {
			assert_string_equal(
			    version_field(t->version, &kind), t->name);
			assert_int_equal(kind, VERSION_N);
		}
	}
	assert_int_equal(limit_find("timeout", 7), -1);
	assert_int_equal(limit_find("", 0), -1);
	assert_int_equal(limit_of_context(0), -1);
	assert_int_equal(limit_of_context(CTX_SECRET_VALUE), -1);
	assert_int_equal(limit_of_context(CTX_HOLD_UNTIL_MS), -1);
}

static void
edges(void **state)
{
	struct err e;

	(void)state;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_info *t = limit_info((enum limit)i);

		assert_int_equal(limit_check((enum limit)i, t->min, &e), 0);
		assert_int_equal(limit_check((enum limit)i, t->max, &e), 0);
		assert_int_equal(limit_check((enum limit)i, 0, &e), -1);
		assert_int_equal(
		    limit_check((enum limit)i, t->min - 1, &e), -1);
		assert_int_equal(
		    limit_check((enum limit)i, t->max + 1, &e), -1);
		assert_int_equal(
		    limit_check((enum limit)i, UINT64_MAX, &e), -1);
		assert_int_equal(e.failure, FAILURE_LIMIT);
		assert_non_null(strstr(e.text, t->name));
		assert_non_null(strstr(e.text, "18446744073709551615"));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_and_tags), cmocka_unit_test(edges)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
