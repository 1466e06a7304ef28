/* The digest of what JSON says: equal for what is the same, else not. */
#include "json.h"
#include "json_alike.h"
#include "unit.h"

static struct ipc_id
digest(const char *text)
{
	struct ipc_id id;

	if (json_scan((const uint8_t *)text, strlen(text), NULL) != 0)
		fail_msg("no JSON: %s", text);
	json_alike(ipc_bytes((const uint8_t *)text, strlen(text)), &id);
	return id;
}

static bool
alike(const char *a, const char *b)
{
	struct ipc_id x = digest(a), y = digest(b);

	return memcmp(&x, &y, sizeof(x)) == 0;
}

static void
test_the_same(void **unused)
{
	static const char *const rows[][2] = {
	    {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"},
	    {"{\"a\":1}", " {\t\"a\"\n:\r1 } "},
	    {"{\"a\":1}", "{\"\\u0061\":1}"},
	    {"\"\\u00e9\\/\\n\"", "\"\xc3\xa9/\\u000a\""},
	    {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
	    {"1", "1.0"},
	    {"1", "1e0"},
	    {"1", "10E-1"},
	    {"1", "0.1e+1"},
	    {"100", "1e2"},
	    {"1.5", "15e-1"},
	    {"1.5", "1.50000"},
	    {"0", "-0"},
	    {"0", "-0.0e7"},
	    {"[1,[2,{\"x\":[],\"y\":{}}]]",
		"[ 1.0 , [2e0,{\"y\":{ },\"x\":[ ]}] ]"},
	    {"{\"a\":{\"b\":{\"c\":null}},\"d\":true}",
		"{\"d\":true,\"a\":{\"b\":{\"c\":null}}}"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!alike(rows[i][0], rows[i][1]))
			fail_msg("%s is not %s", rows[i][0], rows[i][1]);
}

/* Each differs from each. */
static void
test_others(void **unused)
{
	static const char *const rows[] = {"{}", "[]", "\"\"", "0", "null",
	    "true", "false", "1", "-1", "10", "1e300", "1.5", "\"1\"",
	    "\"null\"", "[[]]", "[{}]", "{\"\":{}}", "{\"a\":1}", "{\"b\":1}",
	    "{\"a\":2}", "{\"a\":\"1\"}", "{\"a\":[1]}", "{\"a\":{\"a\":1}}",
	    "{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}", "{\"a\":1,\"b\":1}",
	    "{\"A\":1}", "{\"a \":1}", "[1,2]", "[2,1]", "[1,1]", "[1]",
	    "[1,[2]]", "[[1],2]", "[[1,2]]", "[\"a\",1]", "{\"a\":null}",
	    "[\"ab\",\"c\"]", "[\"a\",\"bc\"]", "[\"abc\"]", "[12]", "[1,0]",
	    "[10]", "[0]", "{\"a\":{\"b\":1},\"c\":{\"d\":2}}",
	    "{\"a\":{\"d\":2},\"c\":{\"b\":1}}",
	    "{\"a\":{\"b\":1,\"d\":2},\"c\":{}}"};
	enum { N = sizeof(rows) / sizeof(rows[0]) };

	for (size_t i = 0; i < N; i++)
		for (size_t k = 0; k < i; k++)
			if (alike(rows[i], rows[k]))
				fail_msg("%s is %s", rows[i], rows[k]);
}

static void
test_deep(void **unused)
{
	char a[200] = "", b[200] = "";
	int n = 0, m = 0;

	for (int i = 0; i < 60; i++) {
		n += snprintf(a + n, sizeof(a) - (size_t)n, "[");
		m += snprintf(b + m, sizeof(b) - (size_t)m, "[");
	}
	n += snprintf(a + n, sizeof(a) - (size_t)n, "1");
	m += snprintf(b + m, sizeof(b) - (size_t)m, "2");
	for (int i = 0; i < 60; i++) {
		n += snprintf(a + n, sizeof(a) - (size_t)n, "]");
		m += snprintf(b + m, sizeof(b) - (size_t)m, "]");
	}
	assert_true(alike(a, a));
	assert_false(alike(a, b));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_same),
	    cmocka_unit_test(test_others),
	    cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
