/* trace.h: W3C traceparent, 3.2 of the Recommendation. */
#include "unit.h"

#include "trace.h"

#define ID   "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"

static int
parse(const char *text, struct trace *t)
{
	return trace_parse(text, strlen(text), t);
}

static void
good(void **state)
{
	struct trace t;

	(void)state;
	assert_int_equal(parse("00-" ID "-" SPAN "-01", &t), 0);
	assert_int_equal(t.id.b[0], 0x4b);
	assert_int_equal(t.id.b[15], 0x36);
	assert_int_equal(t.span[1], 0xf0);
	assert_int_equal(t.span[7], 0xb7);
	assert_int_equal(parse("00-" ID "-" SPAN "-ff", &t), 0);
	/* 4.3: a later version may have more */
	assert_int_equal(parse("01-" ID "-" SPAN "-01", &t), 0);
	assert_int_equal(parse("fe-" ID "-" SPAN "-01-more", &t), 0);
}

static void
bad(void **state)
{
	static const char *const texts[] = {"", "00", "00-" ID "-" SPAN,
	    "00-" ID "-" SPAN "-0", "00-" ID "-" SPAN "-01-",
	    "00-" ID "-" SPAN "-01 ", "01-" ID "-" SPAN "-01more",
	    "ff-" ID "-" SPAN "-01", "0g-" ID "-" SPAN "-01",
	    "00_" ID "-" SPAN "-01", "00-" ID "_" SPAN "-01",
	    "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
	    "00-00000000000000000000000000000000-" SPAN "-01",
	    "00-" ID "-0000000000000000-01", "00-" ID "-00f067aa0ba902bg-01"};
	static const struct trace none;
	char text[TRACE_PARENT_MAX + 2];
	struct trace t;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		memset(&t, 1, sizeof(t));
		if (parse(texts[i], &t) != -1)
			fail_msg("%s is taken", texts[i]);
		assert_memory_equal(&t, &none, sizeof(t));
	}
	memset(text, 'x', sizeof(text));
	memcpy(text, "01-" ID "-" SPAN "-01-", TRACE_PARENT_LEN + 1);
	assert_int_equal(trace_parse(text, TRACE_PARENT_MAX, &t), 0);
	assert_int_equal(trace_parse(text, TRACE_PARENT_MAX + 1, &t), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good),
	    cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
