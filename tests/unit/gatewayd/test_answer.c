/*
 * Answers: bytes spliced in are the bytes that come out, and foreign text can
 * neither end a result early nor bring members that only gatewayd may add.
 * Also step 11, Mcp-Param-*.
 */
#include "answer.h"
#include "json.h"
#include "narrow.h"
#include "mcp_param.h"
#include "unit.h"

#define INFO                                                           \
	"\"io.modelcontextprotocol/serverInfo\":{\"name\":\"mcpbox\"," \
	"\"title\":\"mcpbox\",\"version\":\"" MCPBOX_VERSION "\"}"

static const struct answer_to legacy = {
    {(const uint8_t *)"\"\\u0041\"", 8}, false};
static const struct answer_to modern = {{(const uint8_t *)"7", 1}, true};
static const struct answer_to nobody = {{NULL, 0}, false, false};
static const struct answer_to old_nobody = {{NULL, 0}, false, true};

static struct buf b;

static void
is(const char *want)
{
	assert_false(b.failed);
	buf_putc(&b, '\0');
	assert_string_equal((const char *)b.p, want);
	b.len--;
	assert_int_equal(json_scan(b.p, b.len, NULL), 0);
	buf_clear(&b);
}

static void
test_call(void **state)
{
	static const char body[] = " {\"content\" : [ ],\"x\":1e0} ";
	static const char meta[] = "{\"mcpbox/execution\":{\"a\":1}}";

	(void)state;
	assert_int_equal(
	    answer_call(&b, &legacy, ipc_str(body), ipc_str(meta)), 0);
	is("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\",\"result\":{\"content\" : "
	   "[ ],\"x\":1e0,\"_meta\":{\"mcpbox/execution\":{\"a\":1}}}}");
	assert_int_equal(
	    answer_call(&b, &modern, ipc_str(body), ipc_str(meta)), 0);
	is("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"resultType\":"
	   "\"complete\",\"content\" : [ ],\"x\":1e0,\"_meta\":{" INFO
	   ",\"mcpbox/execution\":{\"a\":1}}}}");
	assert_int_equal(
	    answer_call(&b, &legacy, ipc_str("{}"), ipc_str("{}")), 0);
	is("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\",\"result\":{}}");
	assert_int_equal(
	    answer_call(&b, &modern, ipc_str("{ }"), ipc_str("")), 0);
	is("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"resultType\":"
	   "\"complete\",\"_meta\":{" INFO "}}}");
	assert_int_equal(
	    answer_call(&b, &legacy, ipc_str("{\"a\":1}"), ipc_str("")), 0);
	is("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\",\"result\":{\"a\":1}}");
}

static void
test_call_refused(void **state)
{
	static const char *const bodies[] = {"", "[]", "1", "{", "{}{}",
	    "{\"a\":1,\"a\":2}", "{\"a\":1}},\"x\":{{\"b\":1}",
	    "{\"_meta\":{}}", "{\"\\u005fmeta\":{}}", "{\"resultType\":\"x\"}",
	    "{\"a\":\"\xff\"}", "{a:1}"};
	static const char *const metas[] = {"[]", "{", "{}}",
	    "{\"a\":1,\"a\":2}", "{\"io.modelcontextprotocol/serverInfo\":{}}"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		if (answer_call(&b, &modern, ipc_str(bodies[i]), ipc_str("")) !=
		    -1)
			fail_msg("%s", bodies[i]);
	for (i = 0; i < sizeof(metas) / sizeof(metas[0]); i++)
		if (answer_call(
			&b, &modern, ipc_str("{}"), ipc_str(metas[i])) != -1)
			fail_msg("%s", metas[i]);
	/* Deep nesting that the pre-scan allows still fits. */
	{
		char deep[256] = "{\"a\":";

		for (i = 0; i < JSON_DEPTH_MAX - 1; i++)
			deep[5 + i] = '[';
		for (i = 0; i < JSON_DEPTH_MAX - 1; i++)
			deep[5 + JSON_DEPTH_MAX - 1 + i] = ']';
		deep[5 + 2 * (JSON_DEPTH_MAX - 1)] = '}';
		buf_clear(&b);
		assert_int_equal(
		    answer_call(&b, &modern, ipc_str(deep), ipc_str("")), 0);
		buf_clear(&b);
	}
}

static void
test_errors(void **state)
{
	(void)state;
	answer_error(&b, &nobody, FAILURE_PARSE, "a\"b\n\xff", 0, NULL);
	is("{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,"
	   "\"message\":\"a\\\"b\\n\xef\xbf\xbd\",\"data\":{\"failure_mode\":"
	   "\"parse_error\",\"fix\":\"Send one JSON-RPC object as strict UTF-8 "
	   "JSON.\"}}}");
	answer_error(&b, &old_nobody, FAILURE_BAD_CURSOR, "m", 0, NULL);
	is("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32602,"
	   "\"message\":\"m\",\"data\":{\"failure_mode\":\"bad_cursor\","
	   "\"fix\":\"List again without a cursor.\"}}}");
	answer_error(&b, &modern, FAILURE_BUSY, "m", 250, "\"x\":[1]");
	is("{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,"
	   "\"message\":\"m\",\"data\":{\"failure_mode\":\"busy\",\"fix\":"
	   "\"Call again in a moment, or after retry_after_ms where it is "
	   "given.\",\"retry_after_ms\":250,"
	   "\"x\":[1]}}}");
	answer_tool_failure(&b, &modern, FAILURE_LIMIT, "too big");
	is("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"resultType\":"
	   "\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"too big\"}"
	   "],\"isError\":true,\"_meta\":{" INFO
	   ",\"mcpbox/failure\":{\"failure_mode\":\"limit\",\"fix\":\"Stay "
	   "under the limit the message names.\"}}}}");
}

/* Legacy clients get no structured content but objects. */
static void
test_narrow(void **state)
{
	static const struct {
		const char *body, *legacy;
	} rows[] = {
	    {"{\"content\":[],\"structuredContent\":[\"a,}\"],\"isError\":"
	     "false}",
		"{\"content\":[],\"isError\":false}"},
	    {"{ \"structuredContent\" : null , \"content\" : [ ] }",
		"{ \"content\" : [ ]}"},
	    {"{\"content\":[] , \"structuredContent\": 1 }",
		"{\"content\":[] }"},
	    {"{\"structuredContent\":true}", "{}"},
	    {"{\"structuredContent\":{\"structuredContent\":1},\"a\":1}",
		"{\"structuredContent\":{\"structuredContent\":1},\"a\":1}"},
	};
	static const struct {
		const char *tool;
		bool hidden;
	} tools[] = {
	    {"{\"name\":\"a\",\"outputSchema\":{\"type\":\"object\"}}", false},
	    {"{\"name\":\"a\"}", false},
	    {"{\"name\":\"a\",\"outputSchema\":{\"type\":\"array\"}}", true},
	    {"{\"name\":\"a\",\"outputSchema\":{\"type\":[\"object\"]}}", true},
	    {"{\"name\":\"a\",\"outputSchema\":{}}", true},
	};
	struct narrow cut;
	char want[500];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(answer_call(&b, &legacy, ipc_str(rows[i].body),
				     ipc_str("")),
		    0);
		(void)snprintf(want, sizeof(want),
		    "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\",\"result\":%s}",
		    rows[i].legacy);
		buf_putc(&b, '\0');
		for (char *p = want, *q = want;; p++) /* blanks don't count */
			if (*p != ' ' && (*q++ = *p) == '\0')
				break;
		for (char *p = (char *)b.p, *q = p;; p++)
			if (*p != ' ' && (*q++ = *p) == '\0')
				break;
		assert_string_equal((char *)b.p, want);
		buf_clear(&b);
		/* whole for others */
		assert_int_equal(answer_call(&b, &modern, ipc_str(rows[i].body),
				     ipc_str("")),
		    0);
		assert_non_null(memmem(b.p, b.len, "structuredContent", 17));
		assert_int_equal(json_scan(b.p, b.len, NULL), 0);
		buf_clear(&b);
	}
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		cut = narrow_tool(ipc_str(tools[i].tool));
		assert_int_equal(cut.n > 0, tools[i].hidden);
		if (!tools[i].hidden)
			continue;
		(void)snprintf(want, sizeof(want), "%.*s%s", (int)cut.at,
		    tools[i].tool, tools[i].tool + cut.at + cut.n);
		assert_string_equal(want, "{\"name\":\"a\"}");
	}
}

/* Where a method has no isError: an error, with the result's text. */
static void
test_failed_calls(void **state)
{
	static const char body[] =
	    "{\"content\": [ {\"type\":\"text\",\"text\":\"a\\n\\u00e9]\"},"
	    "{\"type\":\"text\",\"text\":\"b\"}],\"isError\":true}";
	static const char meta[] =
	    "{\"mcpbox/execution\":{\"a\":1},\"mcpbox/failure\":{}}";

	(void)state;
	assert_int_equal(answer_failed_call(&b, &modern, FAILURE_EXCEPTION,
			     ipc_str(body), ipc_str(meta), ipc_bytes(NULL, 0)),
	    0);
	is("{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,"
	   "\"message\":\"a\\n\\u00e9]\",\"data\":{\"failure_mode\":"
	   "\"exception\",\"fix\":\"Do what the error says; if the code is "
	   "at fault, its author mends it.\",\"execution\":{\"a\":1}}}}");
	/* The sandbox knows the case. */
	assert_int_equal(
	    answer_failed_call(&b, &modern, FAILURE_EXCEPTION, ipc_str(body),
		ipc_str("{\"mcpbox/failure\":{\"fix\":\"Mend it.\"}}"),
		ipc_bytes(NULL, 0)),
	    0);
	is("{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,"
	   "\"message\":\"a\\n\\u00e9]\",\"data\":{\"failure_mode\":"
	   "\"exception\",\"fix\":\"Mend it.\"}}}");
	assert_int_equal(
	    answer_failed_call(&b, &modern, FAILURE_INVALID_ARGUMENTS,
		ipc_str("{\"content\":[]}"), ipc_str(""), ipc_str("\"a:b\"")),
	    0);
	is("{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32602,"
	   "\"message\":\"Correct the arguments; every error is listed.\","
	   "\"data\":{\"failure_mode\":\"invalid_arguments\",\"fix\":"
	   "\"Correct the arguments; every error is listed.\",\"uri\":"
	   "\"a:b\"}}}");
	/* A text that is none, and what is no JSON. */
	assert_int_equal(answer_failed_call(&b, &modern, FAILURE_LIMIT,
			     ipc_str("{\"content\":[{\"text\":1}]}"),
			     ipc_str("{}"), ipc_bytes(NULL, 0)),
	    0);
	assert_int_equal(json_scan(b.p, b.len, NULL), 0);
	buf_clear(&b);
	assert_int_equal(answer_failed_call(&b, &modern, FAILURE_LIMIT,
			     ipc_str("{}{"), ipc_str(""), ipc_bytes(NULL, 0)),
	    -1);
	buf_clear(&b);
	assert_int_equal(answer_failed_call(&b, &modern, FAILURE_LIMIT,
			     ipc_str("{}"), ipc_str("{"), ipc_bytes(NULL, 0)),
	    -1);
	buf_clear(&b);
}

static void
test_lists(void **state)
{
	static const char tools[] =
	    "{\"name\":\"a\",\"inputSchema\":{ \"$schema\":\"x\"}}";

	(void)state;
	answer_list_head(&b, &legacy, "tools");
	buf_puts(&b, tools);
	answer_list_tail(&b, &legacy, "");
	is("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\",\"result\":{\"tools\":[{"
	   "\"name\":\"a\",\"inputSchema\":{ \"$schema\":\"x\"}}]}}");
	answer_list_head(&b, &modern, "prompts");
	answer_list_tail(&b, &modern, "abc");
	is("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"resultType\":"
	   "\"complete\",\"prompts\":[],\"nextCursor\":\"abc\",\"ttlMs\":0,"
	   "\"cacheScope\":\"private\",\"_meta\":{" INFO "}}}");
	answer_empty(&b, &legacy);
	is("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\",\"result\":{}}");
	answer_initialize(&b, &legacy, MCP_REV_2025_03_26, NULL);
	assert_int_equal(json_scan(b.p, b.len, NULL), 0);
	buf_putc(&b, '\0');
	assert_non_null(
	    strstr((char *)b.p, "\"protocolVersion\":\"2025-03-26\""));
	assert_null(strstr((char *)b.p, "resultType"));
	buf_clear(&b);
	answer_discover(&b, &modern, NULL);
	assert_int_equal(json_scan(b.p, b.len, NULL), 0);
	buf_putc(&b, '\0');
	assert_non_null(
	    strstr((char *)b.p, "\"supportedVersions\":[\"2026-07-28\"]"));
	assert_non_null(strstr((char *)b.p, "\"cacheScope\":\"private\""));
	buf_clear(&b);
	assert_int_equal(
	    answer_notification(&b, "notifications/x", ipc_str("{\"a\":1}")),
	    0);
	is("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{"
	   "\"a\":1}}");
	assert_int_equal(
	    answer_notification(&b, "notifications/x", ipc_str("[1]")), -1);
	assert_int_equal(
	    answer_notification(&b, "notifications/x", ipc_str("{}{}")), -1);
}

/* resources/read: each of the contents says which URI it is of. */
static void
test_resources(void **state)
{
	static const char body[] =
	    "{\"contents\": [ {\"text\":\"a],[\"} , {\"uri\":\"x:y\","
	    "\"blob\":\"\"},{}],\"other\":1}";
	static const char *const bad[] = {"{\"contents\":{}}", "{}",
	    "{\"contents\":[1]}", "{\"contents\":[{}],\"_meta\":{}}",
	    "{\"contents\":[{}],\"ttlMs\":1}",
	    "{\"contents\":[{}],\"cacheScope\":\"public\"}",
	    "{\"contents\":[{}],\"resultType\":\"x\"}", "{\"contents\":[{}]}{}",
	    "[]"};
	struct ipc_bytes none = ipc_bytes(NULL, 0),
			 uri = ipc_str("\"t:\\u0031\"");
	size_t i;

	(void)state;
	assert_int_equal(
	    answer_resource(&b, &legacy, ipc_str(body), none, uri, none, 5), 0);
	is("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\",\"result\":{\"contents\":["
	   "{\"uri\":\"t:\\u0031\",\"text\":\"a],[\"},{\"uri\":\"x:y\","
	   "\"blob\":\"\"},{\"uri\":\"t:\\u0031\"}]}}");
	/* The declared type is that of what was asked for, if it says none. */
	assert_int_equal(
	    answer_resource(&b, &legacy,
		ipc_str("{\"contents\":[{\"text\":\"a\"},{\"mimeType\":\"c/d\","
			"\"text\":\"b\"},{\"uri\":\"x:y\",\"blob\":\"\"}]}"),
		none, uri, ipc_str("\"a/b\""), 5),
	    0);
	is("{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\",\"result\":{\"contents\":["
	   "{\"uri\":\"t:\\u0031\",\"mimeType\":\"a/b\",\"text\":\"a\"},"
	   "{\"uri\":\"t:\\u0031\",\"mimeType\":\"c/d\",\"text\":\"b\"},"
	   "{\"uri\":\"x:y\",\"blob\":\"\"}]}}");
	assert_int_equal(
	    answer_resource(&b, &modern, ipc_str("{\"contents\":[]}"),
		ipc_str("{\"k\":1}"), uri, none, 5),
	    0);
	is("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"resultType\":"
	   "\"complete\",\"contents\":[],\"ttlMs\":5,\"cacheScope\":"
	   "\"private\",\"_meta\":{" INFO ",\"k\":1}}}");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (answer_resource(
			&b, &modern, ipc_str(bad[i]), none, uri, none, 0) == 0)
			fail_msg("%s", bad[i]);
		buf_clear(&b);
	}
	assert_int_equal(
	    answer_failed_call(&b, &legacy, FAILURE_UNKNOWN_RESOURCE,
		ipc_str("{\"content\":[]}"), none, uri),
	    0);
	buf_putc(&b, '\0');
	assert_non_null(strstr((char *)b.p, "\"code\":-32002,"));
	buf_clear(&b);
	/* Not found had a code of its own before 2026-07-28. */
	answer_error(&b, &legacy, FAILURE_UNKNOWN_RESOURCE, "no", 0, NULL);
	buf_putc(&b, '\0');
	assert_non_null(strstr((char *)b.p, "\"code\":-32002,"));
	buf_clear(&b);
	answer_error(&b, &modern, FAILURE_UNKNOWN_RESOURCE, "no", 0, NULL);
	buf_putc(&b, '\0');
	assert_non_null(strstr((char *)b.p, "\"code\":-32602,"));
	buf_clear(&b);
}

/* The instructions: JSON, twenty lines, short enough for every client. */
static void
test_instructions(void **state)
{
	static const char *const path[] = {"result", "instructions", NULL};
	char text[4096];
	const uint8_t *p;
	size_t n, lines = 0;
	char *s;

	(void)state;
	answer_discover(&b, &modern, NULL);
	assert_int_equal(json_slice(b.p, b.len, path, &p, &n), 1);
	assert_int_equal(mcp_json_text(ipc_bytes(p, n), text, sizeof(text)), 0);
	assert_true(strlen(text) < 2048);
	for (s = text; s != NULL; s = strchr(s + 1, '\n'))
		lines++;
	assert_int_equal(lines, 21); /* a title and twenty */
	buf_clear(&b);
}

/* ---- Mcp-Param-* ---- */

static const char *
header(void *arg, const char *name)
{
	const char *const *h = arg;

	for (; h[0] != NULL; h += 2)
		if (strcmp(h[0], name) == 0)
			return h[1];
	return NULL;
}

static void
test_param(void **state)
{
#define TOOL(props)                                                            \
	"{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":" \
	"{" props "}}}"
#define REGION "\"region\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"}"
#define COUNT  "\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"Count\"}"
	static const struct {
		const char *tool, *args, *h[3];
		int rc;
	} t[] = {
	    {TOOL("\"a\":{}"), "{\"a\":1}", {NULL}, 0},
	    {TOOL(REGION), "{\"region\":\"eu\"}", {"mcp-param-region", "eu"},
		0},
	    {TOOL(REGION), "{\"region\":\"eu\"}", {NULL}, -1},
	    {TOOL(REGION), "{\"region\":\"eu\"}", {"mcp-param-region", "us"},
		-1},
	    {TOOL(REGION), "{\"region\":\"eu\"}",
		{"mcp-param-region", "=?base64?ZXU=?="}, 0},
	    {TOOL(REGION), "{\"region\":\"eu\"}",
		{"mcp-param-region", "=?base64?ZXU?="}, -1},
	    {TOOL(REGION), "{}", {NULL}, 0},
	    {TOOL(REGION), "{}", {"mcp-param-region", "eu"}, 0},
	    {TOOL(REGION), "{\"region\":null}", {NULL}, 0},
	    {TOOL(REGION), "{\"region\":\"e\\u0075\"}",
		{"mcp-param-region", "eu"}, 0},
	    {TOOL(COUNT), "{\"n\":42}", {"mcp-param-count", "42"}, 0},
	    {TOOL(COUNT), "{\"n\":42}", {"mcp-param-count", "42.0"}, 0},
	    {TOOL(COUNT), "{\"n\":42}", {"mcp-param-count", "43"}, -1},
	    {TOOL(COUNT), "{\"n\":42}", {"mcp-param-count", "4 2"}, -1},
	    {TOOL(COUNT), "{\"n\":42}", {"mcp-param-count", "0x2a"}, -1},
	    {TOOL(COUNT), "{\"n\":42}", {"mcp-param-count", ""}, -1},
	    {TOOL("\"f\":{\"type\":\"boolean\",\"x-mcp-header\":\"F\"}"),
		"{\"f\":true}", {"mcp-param-f", "true"}, 0},
	    {TOOL("\"f\":{\"type\":\"boolean\",\"x-mcp-header\":\"F\"}"),
		"{\"f\":true}", {"mcp-param-f", "1"}, -1},
	    {TOOL("\"o\":{\"type\":\"object\",\"properties\":{" REGION "}}"),
		"{\"o\":{\"region\":\"eu\"}}", {NULL}, -1},
	    {TOOL("\"o\":{\"type\":\"object\",\"properties\":{" REGION "}}"),
		"{\"o\":{\"region\":\"eu\"}}", {"mcp-param-region", "eu"}, 0},
	};
	struct mcp_error e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		memset(&e, 0, sizeof(e));
		if (mcp_param_check(ipc_str(t[i].tool), ipc_str(t[i].args),
			header, (void *)(uintptr_t)t[i].h, &e) != t[i].rc)
			fail_msg("row %zu: %s", i, e.message);
		if (t[i].rc < 0) {
			assert_int_equal(e.failure, FAILURE_HEADER_MISMATCH);
			assert_int_equal(e.status, 400);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_call),
	    cmocka_unit_test(test_call_refused),
	    cmocka_unit_test(test_errors),
	    cmocka_unit_test(test_narrow),
	    cmocka_unit_test(test_failed_calls),
	    cmocka_unit_test(test_lists),
	    cmocka_unit_test(test_resources),
	    cmocka_unit_test(test_instructions),
	    cmocka_unit_test(test_param),
	};
	int rc;

	buf_init(&b, ANSWER_MAX);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	buf_free(&b);
	return rc;
}
