/* Which fix a failure is told with: fix.def's of its case, else its own. */
#include "failure.h"
#include "unit.h"

static void
has(enum failure f, const char *message, const char *fix)
{
	/* of these very bytes, not of a string that ends somewhere */
	size_t n = strlen(message);
	char *text = malloc(n + 1);

	assert_non_null(text);
	memcpy(text, message, n);
	text[n] = '!';
	assert_string_equal(failure_fix(f, text, n), fix);
	free(text);
}

static void
test_cases(void **unused)
{
	has(FAILURE_CONFLICT,
	    "you have approved this: another person must, too",
	    "Ask another administrator to approve it; yours is the first of "
	    "two.");
	has(FAILURE_NOT_FOUND, "Error: there is no such server",
	    "List the servers and use one of them.");
	/* The call may have run, so the answer does not say "call again". */
	has(FAILURE_BUSY,
	    "no answer in time; what was asked for may still happen",
	    "Look whether it was done before you ask again; /api/executions "
	    "has each call.");
	has(FAILURE_EXCEPTION, "The command ended with exit code 1.\\n",
	    "Read stderr and correct the arguments; if this code is a normal "
	    "end, its author lists it in ok_exit_codes.");
	has(FAILURE_EXCEPTION, "ValueError: no\\nat line 3\\n> 3 | x",
	    "Mend the tool's code; the error shows the line.");
	has(FAILURE_STOPPED,
	    "the server a was stopped by the administrator bob at 2026, "
	    "reason: \"x\"; only an administrator can start it",
	    "Ask an administrator to start the server; no management tool does "
	    "it.");
	has(FAILURE_STOPPED, "the tool a__b was disabled by a client at 2026",
	    "Enable it with the tool that the message names, if it is to be "
	    "used.");
}

/* The failure's own, where no row fits or its message is another failure's. */
static void
test_no_case(void **unused)
{
	static const char message[] = "there is no such server";

	assert_ptr_equal(failure_fix(FAILURE_NOT_FOUND, NULL, 0),
	    failure_info(FAILURE_NOT_FOUND)->fix);
	assert_ptr_equal(failure_fix(FAILURE_BUSY, message, strlen(message)),
	    failure_info(FAILURE_BUSY)->fix);
	assert_ptr_equal(
	    failure_fix(FAILURE_NOT_FOUND, message, strlen(message) - 1),
	    failure_info(FAILURE_NOT_FOUND)->fix);
	assert_ptr_equal(failure_fix(FAILURE_NOT_FOUND, "", 0),
	    failure_info(FAILURE_NOT_FOUND)->fix);
	assert_ptr_equal(failure_fix(FAILURE_COUNT, "x", 1),
	    failure_info(FAILURE_INTERNAL)->fix);
}

/* Somebody else's text does not make it long: what would take a matcher that
 * tries all places of all stars for ever ends. */
static void
test_hostile_text(void **unused)
{
	enum { N = 100000 };
	char *text = malloc(N);

	assert_non_null(text);
	memset(text, ' ', N);
	for (size_t i = 0; i + 12 < N; i += 12)
		memcpy(text + i, "was stopped ", 12);
	for (int f = 0; f < FAILURE_COUNT; f++)
		assert_non_null(failure_fix((enum failure)f, text, N));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_no_case),
	    cmocka_unit_test(test_hostile_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
