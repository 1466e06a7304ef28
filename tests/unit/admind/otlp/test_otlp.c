/* Spans and metrics as text: ids, names, bounds. That a collector can read them
 * is judged in tests/egress/test_telemetry.py. */
#include "bounds.h"
#include "otlp.h"
#include "unit.h"

static const struct otlp_who who = {.node = "node1"};
static struct otlp_counts counts;

static struct otlp_call
call(const char *tool, const char *failure, uint64_t us)
{
	return (struct otlp_call){.id = {{1, 2, 3}},
	    .tool = ipc_str(tool),
	    .outcome = ipc_str(*failure == '\0' ? "done" : "failed"),
	    .failure = ipc_str(failure),
	    .listener = ipc_str("local"),
	    .principal = ipc_str("token:ann"),
	    .begin_us = 1700000000000000,
	    .end_us = 1700000000000000 + us};
}

/* The text of a span, to be freed. */
static char *
span(const struct otlp_who *w, const struct otlp_call *c)
{
	struct jsonw j;
	struct buf b;

	buf_init(&b, 64 * 1024);
	jsonw_open(&j, &b);
	otlp_span(&j, w, c);
	buf_putc(&b, '\0');
	assert_false(b.failed);
	return (char *)b.p;
}

static void
has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("no %s in %s", part, text);
}

static void
lacks(const char *text, const char *part)
{
	if (strstr(text, part) != NULL)
		fail_msg("%s in %s", part, text);
}

static void
a_span(void **state)
{
	struct otlp_call c = call("demo__add", "", 1500);
	char *s = span(&who, &c), *again = span(&who, &c);

	has(s, "\"traceId\":\"01020300000000000000000000000000\"");
	lacks(s, "parentSpanId");
	has(s, "\"name\":\"tools/call demo__add\",\"kind\":2");
	has(s, "\"startTimeUnixNano\":\"1700000000000000000\"");
	has(s, "\"endTimeUnixNano\":\"1700000000001500000\"");
	has(s,
	    "{\"key\":\"gen_ai.tool.name\",\"value\":{\"stringValue\":"
	    "\"demo__add\"}}");
	has(s, "\"status\":{}");
	lacks(s, "error.type");
	lacks(s, "ann");
	assert_string_equal(s, again); /* a second one is the same span */
	free(again);
	c.id.b[15] = 1;
	again = span(&who, &c);
	assert_string_not_equal(
	    strstr(s, "\"spanId\""), strstr(again, "\"spanId\""));
	free(again);
	free(s);
}

static void
a_child(void **state)
{
	struct otlp_call c = call("demo__add", "timeout", 0);
	const struct otlp_who open = {.node = "n", .principals = true};
	char *s;

	memset(c.trace.id.b, 0xab, sizeof(c.trace.id.b));
	memset(c.trace.span, 0xcd, sizeof(c.trace.span));
	c.end_us = c.begin_us - 1; /* a clock that was set back */
	s = span(&open, &c);
	has(s, "\"traceId\":\"abababababababababababababababab\"");
	has(s, "\"parentSpanId\":\"cdcdcdcdcdcdcdcd\"");
	has(s, "\"endTimeUnixNano\":\"1700000000000000000\"");
	has(s, "\"key\":\"error.type\",\"value\":{\"stringValue\":\"timeout\"");
	has(s, "\"status\":{\"code\":2}");
	has(s, "token:ann");
	free(s);
}

static void
other_objects(void **state)
{
	struct otlp_call c = call("demo__greet", "", 1);
	char *s;

	c.method = OTLP_PROMPT;
	s = span(&who, &c);
	has(s, "\"name\":\"prompts/get demo__greet\"");
	has(s, "gen_ai.prompt.name");
	lacks(s, "execute_tool");
	free(s);
	/* A resource's URI may have arguments in it. */
	c.method = OTLP_RESOURCE;
	c.tool = ipc_str("secret://in-a-uri");
	s = span(&who, &c);
	has(s, "\"name\":\"resources/read\"");
	lacks(s, "in-a-uri");
	free(s);
}

/* A client says its protocol itself. */
static void
protocols(void **state)
{
	static const char *const bad[] = {"", "2025-11-2", "2025-11-255",
	    "2025-11_25", "x025-11-25", "password12"};
	struct otlp_call c = call("t", "", 1);
	char *s;

	c.protocol = ipc_str("2025-11-25");
	s = span(&who, &c);
	has(s, "mcp.protocol.version");
	free(s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		c.protocol = ipc_str(bad[i]);
		s = span(&who, &c);
		lacks(s, "mcp.protocol.version");
		free(s);
	}
}

static char *
durations(void)
{
	struct jsonw j;
	struct buf b;

	buf_init(&b, ARGUMENTS_MAX);
	jsonw_open(&j, &b);
	jsonw_arr(&j);
	otlp_durations(&j, &counts, 1700000100000000);
	jsonw_arr_end(&j);
	buf_putc(&b, '\0');
	assert_false(b.failed);
	return (char *)b.p;
}

static void
a_histogram(void **state)
{
	static const uint64_t us[] = {0, 10000, 10001, 300000000, 300000001};
	struct otlp_call c;
	char *s;

	memset(&counts, 0, sizeof(counts));
	s = durations();
	assert_string_equal(s, "[]");
	free(s);
	for (size_t i = 0; i < sizeof(us) / sizeof(us[0]); i++) {
		c = call("demo__add", "", us[i]);
		otlp_count(&counts, &c);
	}
	c = call("demo__add", "timeout", 1);
	otlp_count(&counts, &c);
	assert_int_equal(counts.n, 2);
	s = durations();
	has(s, "\"name\":\"mcp.server.operation.duration\",\"unit\":\"s\"");
	has(s,
	    "\"count\":\"5\",\"sum\":600.020002,\"bucketCounts\":[\"2\","
	    "\"1\",\"0\",\"0\",\"0\",\"0\",\"0\",\"0\",\"0\",\"0\",\"0\","
	    "\"0\",\"0\",\"1\",\"1\"],\"explicitBounds\":[0.01,0.02,0.05,"
	    "0.1,0.2,0.5,1,2,5,10,30,60,120,300]");
	free(s);
}

/* The number of series has a bound, and no call is lost or counted as another's
 * end. */
static void
many_tools(void **state)
{
	char tool[64], failure[64];
	uint64_t all = 0, failed = 0;
	struct otlp_call c;
	bool other = false;

	memset(&counts, 0, sizeof(counts));
	for (int i = 0; i < 1000; i++)
		for (int k = 0; k < 40; k++) {
			snprintf(tool, sizeof(tool), "tool_%d", i);
			snprintf(failure, sizeof(failure), "failure_%d", k);
			c = call(tool, k == 0 ? "" : failure, 1);
			otlp_count(&counts, &c);
		}
	assert_true(counts.n <= OTLP_SERIES_MAX);
	for (unsigned i = 0; i < counts.n; i++) {
		all += counts.series[i].count;
		if (counts.series[i].failure[0] != '\0')
			failed += counts.series[i].count;
		other = other || strcmp(counts.series[i].tool, "other") == 0;
	}
	assert_true(other);
	assert_int_equal(all, 40000);
	assert_int_equal(failed, 39000);
}

/* The largest batch, written as a text inside of the arguments, fits them. */
static void
the_largest(void **state)
{
	char tool[65], principal[1017];
	struct buf body, args;
	struct otlp_call c;
	struct jsonw j;
	const struct otlp_who open = {.node = "node1", .principals = true};

	memset(tool, 'x', 64);
	tool[64] = '\0';
	memset(principal, '\\', 254);
	principal[254] = '\0';
	c = call(tool, tool, 1);
	c.server = ipc_str(tool);
	c.protocol = ipc_str("2025-11-25");
	c.principal = ipc_str(principal);
	c.version = ipc_bytes(principal, 32);
	memset(&c.trace, 0xff, sizeof(c.trace));
	c.begin_us = UINT64_C(9999999999999999);
	c.end_us = c.begin_us;
	buf_init(&body, ARGUMENTS_MAX);
	buf_init(&args, ARGUMENTS_MAX);
	jsonw_open(&j, &body);
	otlp_begin(&j, &open, true);
	for (int i = 0; i < OTLP_SPANS_MAX; i++)
		otlp_span(&j, &open, &c);
	otlp_end(&j);
	jsonw_open(&j, &args);
	jsonw_obj(&j);
	jsonw_kv_strn(&j, "body", body.p, body.len);
	memset(&counts, 0, sizeof(counts));
	counts.n = OTLP_SERIES_MAX;
	for (int i = 0; i < OTLP_SERIES_MAX; i++) {
		memcpy(counts.series[i].tool, tool, sizeof(tool));
		memcpy(counts.series[i].failure, tool, sizeof(tool));
		counts.series[i].count = 1000000000;
		for (int k = 0; k < OTLP_BUCKETS; k++)
			counts.series[i].bucket[k] = 100000000;
	}
	buf_clear(&body);
	jsonw_open(&j, &body);
	otlp_begin(&j, &open, false);
	otlp_durations(&j, &counts, c.begin_us);
	otlp_end(&j);
	jsonw_open(&j, &args);
	j.depth = 1;
	jsonw_kv_strn(&j, "body", body.p, body.len);
	assert_false(body.failed);
	assert_false(args.failed);
	assert_true(args.len < ARGUMENTS_MAX - 64 * 1024);
	buf_free(&body);
	buf_free(&args);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_span),
	    cmocka_unit_test(a_child),
	    cmocka_unit_test(other_objects),
	    cmocka_unit_test(protocols),
	    cmocka_unit_test(a_histogram),
	    cmocka_unit_test(many_tools),
	    cmocka_unit_test(the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
