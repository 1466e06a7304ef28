/* Tasks as JSON: each state's members, and what foreign bodies can't do. */
#include "failure.h"
#include "json.h"
#include "task_json.h"
#include "unit.h"

#define HEAD(status, message)                                             \
	"\"taskId\":\"00000000-0000-0000-0000-000000000001\",\"status\":" \
	"\"" status "\"," message                                         \
	"\"createdAt\":\"2026-11-22T05:24:00.123Z\","                     \
	"\"lastUpdatedAt\":\"2026-11-22T05:24:01.000Z\",\"ttlMs\":60000," \
	"\"pollIntervalMs\":1000"

static struct ipc_task_state
task(enum task_status status, const char *body, const char *meta)
{
	static uint8_t both[512];
	size_t n = strlen(body), m = strlen(meta);
	struct ipc_task_state t = {.task = {{[15] = 1}},
	    .status = (uint8_t)status,
	    .created_us = UINT64_C(1795325040123456),
	    .updated_us = UINT64_C(1795325041000000),
	    .ttl_ms = 60000,
	    .poll_ms = 1000};

	memcpy(both, body, n);
	memcpy(both + n, meta, m);
	t.body_len = (uint32_t)n;
	t.body_meta = ipc_bytes(both, n + m);
	return t;
}

static void
is(const struct ipc_task_state *t, bool detailed, const char *want)
{
	struct buf b;

	buf_init(&b, 4096);
	buf_putc(&b, '{');
	assert_int_equal(task_json_members(&b, t, detailed), 0);
	buf_putc(&b, '}');
	assert_int_equal(json_scan(b.p, b.len, NULL), 0);
	buf_putc(&b, '\0');
	assert_string_equal((const char *)b.p, want);
	buf_free(&b);
}

static void
refused(const struct ipc_task_state *t)
{
	struct buf b;

	buf_init(&b, 4096);
	assert_int_equal(task_json_members(&b, t, true), -1);
	/* Where the body is not shown it is not looked at. */
	buf_clear(&b);
	assert_int_equal(task_json_members(&b, t, false), 0);
	buf_free(&b);
}

static void
test_states(void **state)
{
	struct ipc_task_state t = task(TASK_WORKING, "", "");

	is(&t, true, "{" HEAD("working", "") "}");
	t = task(TASK_CANCELLED, "", "");
	is(&t, true, "{" HEAD("cancelled", "") "}");
	t = task(
	    TASK_INPUT_REQUIRED, "{\"1-a\":{\"method\":\"roots/list\"}}", "");
	is(&t, true,
	    "{" HEAD("input_required", "") ",\"inputRequests\":{\"1-a\":{"
					   "\"method\":\"roots/list\"}}}");
	is(&t, false, "{" HEAD("input_required", "") "}");
	t = task(TASK_COMPLETED, "{\"content\":[]}", "{\"a\":1}");
	is(&t, true,
	    "{" HEAD("completed", "") ",\"result\":{\"resultType\":"
				      "\"complete\",\"content\":[],\"_meta\":{"
				      "\"a\":1}}}");
	is(&t, false, "{" HEAD("completed", "") "}");
	t = task(TASK_COMPLETED, "{}", "");
	is(&t, true,
	    "{" HEAD(
		"completed", "") ",\"result\":{\"resultType\":\"complete\"}}");
}

static void
test_failures(void **state)
{
	struct ipc_task_state t = task(TASK_FAILED, "", "");

	t.failure = FAILURE_TOOL_PROTOCOL;
	t.message = ipc_str("a \"quoted\" end");
	is(&t, true,
	    "{" HEAD("failed",
		"\"statusMessage\":\"a \\\"quoted\\\" end\",") ",\"error\":{"
							       "\"code\":-"
							       "32603,"
							       "\"message\":"
							       "\"a "
							       "\\\"quoted\\\" "
							       "end\","
							       "\"data\":{"
							       "\"failure_"
							       "mode\":\"tool_"
							       "protocol_"
							       "error\","
							       "\"fix\":"
							       "\"The tool "
							       "itself ended "
							       "the request; "
							       "its message "
							       "says "
							       "why.\"}}}");
	/* A failure of the tool's side that came without its result, and one
	 * that there is not. */
	t.message = ipc_bytes(NULL, 0);
	t.failure = FAILURE_TIMEOUT;
	is(&t, true,
	    "{" HEAD("failed", "") ",\"error\":{\"code\":-32603,\"message\":"
				   "\"Do less per call or ask for a longer "
				   "limit.\",\"data\":{\"failure_mode\":"
				   "\"timeout\",\"fix\":\"Do less per call or "
				   "ask for a longer limit.\"}}}");
	t.failure = 60000;
	is(&t, false, "{" HEAD("failed", "") "}");
}

/* Neither a result nor questions can end the object they stand in, or bring
 * what only we may say. */
static void
test_foreign_bodies(void **state)
{
	static const char *const bad[] = {"", "{", "[]", "1", "{}}", "{},{}",
	    "{\"a\":1", "{\"a\":1,}", "{\"_meta\":{}}",
	    "{\"resultType\":\"task\"}", " {}", "{\"a\":1,\"a\":2}"};
	struct ipc_task_state t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		t = task(TASK_COMPLETED, bad[i], "");
		refused(&t);
	}
	t = task(TASK_COMPLETED, "{}", "[]");
	refused(&t);
	t = task(TASK_INPUT_REQUIRED, "[]", "");
	refused(&t);
	t = task(TASK_COMPLETED, "{}", "");
	t.body_len = 3;
	{
		struct buf b;

		buf_init(&b, 64);
		assert_int_equal(task_json_members(&b, &t, false), -1);
		t.body_len = 2;
		t.status = 0;
		assert_int_equal(task_json_members(&b, &t, false), -1);
		t.status = TASK_CANCELLED + 1;
		assert_int_equal(task_json_members(&b, &t, false), -1);
		/* No room: refused, not cut. */
		t.status = TASK_WORKING;
		assert_int_equal(task_json_members(&b, &t, false), -1);
		buf_free(&b);
	}
}

static void
test_times(void **state)
{
	char text[TASK_JSON_TIME_LEN + 1];

	task_json_time(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000Z");
	task_json_time(UINT64_C(951827696789999), text);
	assert_string_equal(text, "2000-02-29T12:34:56.789Z");
	/* Years of five digits have no such form. */
	task_json_time(UINT64_MAX, text);
	assert_int_equal(strlen(text), TASK_JSON_TIME_LEN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_states),
	    cmocka_unit_test(test_failures),
	    cmocka_unit_test(test_foreign_bodies),
	    cmocka_unit_test(test_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
