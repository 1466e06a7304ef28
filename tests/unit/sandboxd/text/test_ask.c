/* What a question must be to reach a client (ask.h). */
#include "ask.h"
#include "json_scan.h"
#include "unit.h"

/* What ask_take says of one question with these params. */
static int
elicit(const char *params)
{
	struct redact *r = redact_new(NULL, 0);
	struct buf text, out;
	struct err e;
	int rc;

	buf_init(&text, 4096);
	buf_init(&out, 4096);
	buf_putf(&text,
	    "{\"q\":{\"method\":\"elicitation/create\",\"params\":{"
	    "\"message\":\"m\",%s}}}",
	    params);
	assert_int_equal(json_scan(text.p, text.len, &e), 0);
	rc = ask_take(ipc_bytes(text.p, text.len), r, &out, &e);
	if (rc == 1)
		assert_int_equal(e.failure, FAILURE_NO_ANSWER);
	buf_free(&text);
	buf_free(&out);
	redact_free(r);
	return rc;
}

/* A client that declared forms only must get no other mode, however the tool
 * writes it: gatewayd compares bytes, the client reads what they mean. */
static void
the_mode_is_one_of_two_words(void **state)
{
	assert_int_equal(elicit("\"requestedSchema\":{}"), 0);
	assert_int_equal(elicit("\"mode\":\"form\",\"requestedSchema\":{}"), 0);
	assert_int_equal(elicit("\"mode\":\"url\",\"url\":\"https://a/\""), 0);
	assert_int_equal(
	    elicit("\"mode\":\"\\u0075rl\",\"requestedSchema\":{}"), 1);
	assert_int_equal(elicit("\"mode\":\"URL\",\"requestedSchema\":{}"), 1);
	assert_int_equal(elicit("\"mode\":1,\"requestedSchema\":{}"), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_mode_is_one_of_two_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
