/*
 * gatewayd whole, between a false admind and a false sandboxd, over real
 * sockets in one loop: what each era answers, what each failure of a
 * neighbour becomes, and that RUN is sent once.
 */
#include "gateway_rig.h"
#include "unit.h"

#define ENV                                     \
	"\"_meta\":{\"io.modelcontextprotocol/" \
	"protocolVersion\":\"2026-07-28\","     \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

#define CALL(tool, more)                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"" tool "\"" more "}}"
#define LEGACY "MCP-Protocol-Version: 2025-11-25\r\n"
#define MODERN_CALL(tool)                                                \
	"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n" \
	"Mcp-Name: " tool "\r\n"

/* ---- tests ---- */

static void
test_front(void **state)
{
	static const struct {
		const char *request;
		int status;
	} t[] = {
	    {"GET /health HTTP/1.1\r\nHost: localhost:1\r\n\r\n", 200},
	    {"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 200},
	    {"GET /health HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200},
	    {"GET /health HTTP/1.1\r\nHost: LOCALHOST\r\n\r\n", 200},
	    {"POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
		403},
	    {"POST /health HTTP/1.1\r\nHost: localhost\r\n"
	     "Content-Length: 0\r\n\r\n",
		405},
	    {"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
	    {"GET /health HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n",
		403},
	    {"GET /health HTTP/1.1\r\nHost: 127.0.0.1.nip.io\r\n\r\n", 403},
	    {"GET /health HTTP/1.1\r\nHost: 127.1\r\n\r\n", 403},
	    {"GET /health HTTP/1.1\r\nHost: 127.0..1\r\n\r\n", 403},
	    {"GET /health HTTP/1.1\r\nHost: 128.0.0.1\r\n\r\n", 403},
	    {"GET /health HTTP/1.1\r\nHost: [::2]\r\n\r\n", 403},
	    {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
	    {"GET /mcp/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
	    {"GET /.well-known/oauth-protected-resource/mcp HTTP/1.1\r\n"
	     "Host: localhost\r\n\r\n",
		404},
	    {"GET /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "Accept: text/event-stream\r\n\r\n",
		405},
	    {"PUT /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
	     "0\r\n\r\n",
		405},
	    {"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
	    {"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "Mcp-Session-Id: x\r\n\r\n",
		404},
	    {"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "MCP-Protocol-Version: 2026-07-28\r\n\r\n",
		405},
	    {"GET /health HTTP/1.1\r\nHost: localhost:8\r\n"
	     "Origin: http://localhost:8\r\n\r\n",
		200},
	    {"GET /health HTTP/1.1\r\nHost: localhost:8\r\n"
	     "Origin: http://localhost:9\r\n\r\n",
		403},
	    {"GET /health HTTP/1.1\r\nHost: localhost\r\n"
	     "Origin: http://evil.example\r\n\r\n",
		403},
	    {"GET /health HTTP/1.1\r\nHost: localhost\r\n"
	     "Origin: null\r\n\r\n",
		403},
	    {"GET /health HTTP/1.1\r\nHost: localhost\r\n"
	     "Origin: http://good.example\r\n\r\n",
		200},
	    {"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "Origin: http://good.example\r\n\r\n",
		204},
	    {"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}",
		415},
	    {"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
	     "Content-Length: 9999999\r\n\r\n",
		413},
	    {"BREW /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", 501},
	};
	const char *body;
	struct lc c;
	size_t i;
	int status;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		c = lc_open(address);
		lc_sends(&c, base, t[i].request);
		status = lc_answer(&c, base);
		if (status != t[i].status)
			fail_msg("%s: %d", t[i].request, status);
		/* Whatever was wrong, the body is JSON. */
		body = strstr(c.p, "\r\n\r\n") + 4;
		if (status != 204)
			assert_int_equal(json_scan((const uint8_t *)body,
					     strlen(body), NULL),
			    0);
		lc_close(&c);
	}
}

/* A page at an allowed origin may mirror a tool's parameters in fields. */
static void
test_preflight(void **state)
{
	struct lc c = lc_open(address);

	(void)state;
	lc_sends(&c, base,
	    "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n"
	    "Origin: http://good.example\r\n"
	    "Access-Control-Request-Headers: content-type,mcp-param-region,"
	    " Mcp-Param-X\t,x-evil,mcp-param-,mcp-param-a;b\r\n\r\n");
	assert_int_equal(lc_answer(&c, base), 204);
	assert_non_null(
	    strstr(c.p, "Last-Event-ID, mcp-param-region, Mcp-Param-X\r\n"));
	lc_close(&c);
}

static void
test_legacy(void **state)
{
	char token[512], fields[1024];
	const char *p;

	(void)state;
	assert_int_equal(post("",
			     "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":"
			     "\"initialize\",\"params\":{\"protocolVersion\":"
			     "\"2025-06-18\",\"capabilities\":{},"
			     "\"clientInfo\":{\"name\":\"c\",\"version\":"
			     "\"1\"}}}"),
	    200);
	assert_true(has("\"protocolVersion\":\"2025-06-18\""));
	assert_true(has("\"id\":\"i\""));
	p = strstr(answer, "Mcp-Session-Id: ");
	assert_non_null(p);
	snprintf(
	    token, sizeof(token), "%.*s", (int)strcspn(p + 16, "\r"), p + 16);
	/* A version nobody has: our newest. */
	assert_int_equal(post("",
			     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
			     "\"initialize\",\"params\":{\"protocolVersion\":"
			     "\"1999-01-01\"}}"),
	    200);
	assert_true(has("\"protocolVersion\":\"2025-11-25\""));

	snprintf(fields, sizeof(fields),
	    "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-06-18\r\n",
	    token);
	assert_int_equal(post(fields,
			     "{\"jsonrpc\":\"2.0\",\"method\":"
			     "\"notifications/initialized\"}"),
	    202);
	assert_true(has("Content-Length: 0\r\n"));
	assert_int_equal(
	    post(fields, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"),
	    200);
	assert_true(has("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}"));
	assert_int_equal(post(fields,
			     "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":"
			     "\"tools/list\"}"),
	    200);
	/* Byte for byte, and without the broken one. */
	assert_true(has("\"result\":{\"tools\":[{\"name\":\"a__one\","
			"\"inputSchema\":{ \"x\" : 1.0 }},{\"name\":"
			"\"a__two\""));
	assert_false(has("resultType"));
	assert_int_equal(lists, 1);
	post(
	    fields, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}");
	assert_int_equal(lists, 1); /* cached */
	/* Another principal's session is unknown. */
	snprintf(fields, sizeof(fields),
	    "Mcp-Session-Id: %s\r\nAuthorization: Bearer bob\r\n", token);
	assert_int_equal(
	    post(fields, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"),
	    404);
	assert_true(has("session_unknown") && has("\"id\":2"));
	/* An array under a session of a later revision. */
	snprintf(fields, sizeof(fields), "Mcp-Session-Id: %s\r\n", token);
	assert_int_equal(post(fields,
			     "[{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
			     "\"ping\"}]"),
	    400);
	assert_true(has("-32600"));
	/* DELETE, then 404. */
	{
		struct lc c = lc_open(address);
		char text[2048];

		snprintf(text, sizeof(text),
		    "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
		    fields);
		lc_sends(&c, base, text);
		assert_int_equal(lc_answer(&c, base), 204);
		lc_close(&c);
		assert_int_equal(ends, 1);
	}
	assert_int_equal(
	    post(fields, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"),
	    404);
	/* Without a session: served. */
	assert_int_equal(
	    post(LEGACY, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}"),
	    200);
}

static void
test_array(void **state)
{
	(void)state;
	assert_int_equal(
	    post("",
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
		"\"ping\"}," CALL(
		    "t_ok", "") ","
				"{\"jsonrpc\":\"2.0\",\"method\":"
				"\"notifications/initialized\"},"
				"{\"jsonrpc\":\"2.0\",\"id\":\"z\",\"method\":"
				"\"nope\"},7]"),
	    200);
	assert_true(has("[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},"));
	assert_true(has("\"text\":\"\\u0041\""));
	assert_true(has("\"id\":\"z\",\"error\":{\"code\":-32601"));
	assert_true(has("\"id\":null,\"error\":{\"code\":-32600"));
	assert_int_equal(runs, 1);
	assert_int_equal(post("",
			     "[{\"jsonrpc\":\"2.0\",\"method\":"
			     "\"notifications/initialized\"}]"),
	    202);
	/* One bad credential answers for all. */
	assert_int_equal(post("Authorization: Bearer bad\r\n",
			     "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
			     "\"ping\"}]"),
	    401);
	assert_true(has("WWW-Authenticate: Bearer"));
}

static void
test_modern(void **state)
{
	(void)state;
	assert_int_equal(post("MCP-Protocol-Version: 2026-07-28\r\n"
			      "Mcp-Method: server/discover\r\n"
			      "Mcp-Session-Id: ignored\r\n",
			     "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":"
			     "\"server/discover\",\"params\":{" ENV "}}"),
	    200);
	assert_true(has("\"resultType\":\"complete\"") &&
	    has("\"supportedVersions\":[\"2026-07-28\"]") &&
	    has("\"ttlMs\":") && has("\"cacheScope\":\"private\"") &&
	    has("io.modelcontextprotocol/serverInfo"));
	assert_int_equal(post("MCP-Protocol-Version: 2026-07-28\r\n"
			      "Mcp-Method: tools/list\r\n",
			     "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":"
			     "\"tools/list\",\"params\":{" ENV "}}"),
	    200);
	assert_true(has("\"tools\":[{\"name\":\"a__one\"") &&
	    has("\"ttlMs\":0,\"cacheScope\":\"private\""));
	assert_int_equal(post(MODERN_CALL("t_ok"),
			     CALL("t_ok", ",\"arguments\":{ \"k\":1 }," ENV)),
	    200);
	assert_true(has("\"resultType\":\"complete\",\"content\":[{\"type\":"
			"\"text\",\"text\":\"\\u0041\"}],\"_meta\":{\"io."
			"modelcontextprotocol/serverInfo\""));
	assert_true(has("\"mcpbox/execution\":{\"duration_ms\":1}"));
	assert_string_equal(last_args, "{ \"k\":1 }");
	assert_string_equal(last_protocol, "2026-07-28");
	/* Steps 10 and 11. */
	assert_int_equal(
	    post(MODERN_CALL("capability"), CALL("capability", "," ENV)), 400);
	assert_true(has("-32021"));
	assert_int_equal(
	    post(MODERN_CALL("a__two"),
		CALL("a__two", ",\"arguments\":{\"r\":\"x\"}," ENV)),
	    400);
	assert_true(has("-32020"));
	assert_int_equal(runs, 1);
	assert_int_equal(
	    post(MODERN_CALL("a__two") "Mcp-Param-R: x\r\n",
		CALL("a__two", ",\"arguments\":{\"r\":\"x\"}," ENV)),
	    200);
	assert_int_equal(runs, 2);
	/* A tool in no list: nothing to compare the field with. */
	assert_int_equal(post(MODERN_CALL("t_ok"), CALL("t_ok", "," ENV)), 200);
	assert_int_equal(runs, 3);
	assert_int_equal(post(MODERN_CALL("t_ok") "Mcp-Param-R: x\r\n",
			     CALL("t_ok", ",\"arguments\":{\"r\":\"y\"}," ENV)),
	    400);
	assert_true(has("-32020"));
	assert_true(has("mcp-param-r"));
	assert_int_equal(runs, 3);
	/* Removed methods are 404 there. */
	assert_int_equal(post("MCP-Protocol-Version: 2026-07-28\r\n"
			      "Mcp-Method: ping\r\n",
			     "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":"
			     "\"ping\",\"params\":{" ENV "}}"),
	    404);
	assert_true(has("-32601") && has("\"id\":\"q\""));
}

static void
test_results(void **state)
{
	(void)state;
	assert_int_equal(post(LEGACY "User-Agent: ua/1\r\n",
			     CALL("t_ok", ",\"arguments\":{}")),
	    200);
	assert_true(has("Content-Type: application/json\r\n"));
	assert_true(has("\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
			"\"\\u0041\"}],\"_meta\":{\"mcpbox/execution\""));
	assert_string_equal(last_client, "ua/1");
	assert_string_equal(last_protocol, "2025-11-25");
	assert_int_equal(post(LEGACY, CALL("t_timeout", "")), 200);
	assert_true(
	    has("\"isError\":true") && has("\"failure_mode\":\"timeout\""));
	assert_int_equal(post(LEGACY, CALL("t_bad", "")), 200);
	assert_true(has("-32603") && has("\"internal\""));
	assert_int_equal(post(LEGACY, CALL("t_revoked", "")), 200);
	assert_true(has("-32603") && has("\"revoked\""));
	assert_int_equal(post(LEGACY, CALL("mcpbox_ok", "")), 200);
	assert_true(has("\"result\":{\"content\":[]}"));
	assert_int_equal(post(LEGACY, CALL("mcpbox_error", "")), 200);
	assert_true(has("\"isError\":true") &&
	    has("\"mcpbox/failure\":{\"failure_mode\":\"invalid_arguments\""));
	assert_int_equal(post(LEGACY, CALL("nope", "")), 200);
	assert_true(has("-32602") && has("unknown_tool"));
	assert_int_equal(post(LEGACY, CALL("busy", "")), 200);
	assert_true(has("-32603") && has("\"retry_after_ms\":123"));
	assert_int_equal(post(LEGACY, CALL("arguments", "")), 200);
	assert_true(has("\"isError\":true") && has("bad \\\"x\\\""));
	assert_int_equal(post(LEGACY, CALL("forbidden", "")), 403);
	assert_true(has("\"forbidden\"") && has("\"id\":1"));
	assert_int_equal(
	    post(LEGACY "Authorization: Bearer bad\r\n", CALL("t_ok", "")),
	    401);
	assert_true(has("WWW-Authenticate: Bearer") && has("\"id\":1"));
	/* 401 comes before what is wrong with the body. */
	assert_int_equal(post("Authorization: Bearer bad\r\n", "{"), 401);
	assert_int_equal(post("", "{"), 400);
	assert_true(has("-32700"));
}

static void
test_events(void **state)
{
	(void)state;
	/* Without a token: plain JSON, events dropped. */
	assert_int_equal(post(LEGACY, CALL("t_progress", "")), 200);
	assert_true(has("application/json") && !has("notifications"));
	/* With one: a stream. The forged token and the bad JSON are dropped. */
	assert_int_equal(
	    post(LEGACY,
		CALL("t_progress", ",\"_meta\":{\"progressToken\":\"T\"}")),
	    200);
	assert_true(has("Content-Type: text/event-stream\r\n") &&
	    has("X-Accel-Buffering: no\r\n"));
	assert_true(has("data: {\"jsonrpc\":\"2.0\",\"method\":"
			"\"notifications/progress\",\"params\":{"
			"\"progressToken\":\"T\",\"progress\":1,\"total\":2}}"
			"\n\n"));
	assert_true(has("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":"));
	assert_false(has("forged"));
	assert_false(has("notifications/message")); /* not offered there */
	/* A client that takes no stream gets JSON all the same. */
	{
		struct lc c = lc_open(address);
		static const char body[] =
		    CALL("t_progress", ",\"_meta\":{\"progressToken\":1}");
		char text[2048];

		snprintf(text, sizeof(text),
		    "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
		    "Accept: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		    strlen(body), body);
		lc_sends(&c, base, text);
		assert_int_equal(lc_answer(&c, base), 200);
		assert_non_null(strstr(c.p, "application/json"));
		lc_close(&c);
	}
	/* Modern: log lines from the level asked for. */
	assert_int_equal(
	    post(MODERN_CALL("t_progress"),
		CALL("t_progress",
		    ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
		    "\"2026-07-28\",\"io.modelcontextprotocol/"
		    "clientCapabilities\":{},\"io.modelcontextprotocol/"
		    "logLevel\":\"warning\"}")),
	    200);
	assert_true(has("text/event-stream") &&
	    has("\"method\":\"notifications/message\"") && has("loud"));
	assert_false(has("quiet") || has("notifications/progress"));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(test_front),
	    T(test_preflight),
	    T(test_legacy),
	    T(test_array),
	    T(test_modern),
	    T(test_results),
	    T(test_events),
	};

	log_init("gatewayd", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
