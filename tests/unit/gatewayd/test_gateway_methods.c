/*
 * gatewayd whole, the methods beside tools: lists and their pages, prompts,
 * resources, completion, what sessions remember, settings that let deviations
 * pass, error data of admind.
 */
#include "gateway_rig.h"
#include "unit.h"

#define LEGACY "MCP-Protocol-Version: 2025-11-25\r\n"
#define MODERN(method, name) \
	"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " method "\r\n" name
#define ENV                                     \
	"\"_meta\":{\"io.modelcontextprotocol/" \
	"protocolVersion\":\"2026-07-28\","     \
	"\"io.modelcontextprotocol/clientCapabilities\":{\"roots\":{}}}"
#define REQ(method, params)                                        \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\"," \
	"\"params\":{" params "}}"

/* The session that initialize gave, as a header field. */
static char session[256];

static void
begin_session(void)
{
	struct lc c = lc_open(address);
	char *s;

	send_post(&c, "",
	    REQ("initialize",
		"\"protocolVersion\":\"2025-11-25\",\"capabilities\":{"
		"\"sampling\":{}},\"clientInfo\":{\"name\":\"t\",\"version\":"
		"\"1\"}"));
	assert_int_equal(lc_answer(&c, base), 200);
	s = strstr(c.p, "Mcp-Session-Id: ");
	assert_non_null(s);
	snprintf(session, sizeof(session), "%.*s\r\n" LEGACY,
	    (int)strcspn(s, "\r"), s);
	lc_close(&c);
}

static void
test_lists(void **state)
{
	(void)state;
	assert_int_equal(post(LEGACY, REQ("tools/list", "")), 200);
	assert_true(has("\"tools\":[{\"name\":\"a__one\",\"inputSchema\":{ "
			"\"x\" : 1.0 }},{\"name\":\"a__two\""));
	assert_false(has("broken"));
	/* The values of arguments are for completion; all other bytes stay. */
	assert_int_equal(post(LEGACY, REQ("prompts/list", "")), 200);
	assert_true(has("\"prompts\":[{\"name\":\"p_plain\"},{\"name\":"
			"\"p_values\",\"arguments\":[{\"name\":\"city\","
			"\"required\":true},{\"name\":\"b\"}],\"title\":"
			"\"\\u0054\"}]"));
	assert_int_equal(
	    post(MODERN("resources/list", ""), REQ("resources/list", ENV)),
	    200);
	assert_true(has("\"resources\":[{\"uri\":\"test://text\""));
	assert_true(has("\"ttlMs\":0") && has("\"resultType\":\"complete\""));
	assert_int_equal(post(MODERN("resources/templates/list", ""),
			     REQ("resources/templates/list", ENV)),
	    200);
	assert_true(has("\"resourceTemplates\":[{\"uriTemplate\":"));
	/* One catalogue for all of them. */
	assert_int_equal(lists, 1);
}

/* Takes "nextCursor" out of the last answer; false: none. */
static bool
next_cursor(char *out, size_t size)
{
	char *s = strstr(answer, "\"nextCursor\":\"");

	if (s == NULL)
		return false;
	s += 14;
	snprintf(out, size, "%.*s", (int)strcspn(s, "\""), s);
	return true;
}

static void
test_pages(void **state)
{
	char cursor[300], body[600], again[300];

	(void)state;
	gw.page_size = 1;
	assert_int_equal(post(LEGACY, REQ("tools/list", "")), 200);
	assert_true(has("a__one") && !has("a__two"));
	assert_true(next_cursor(cursor, sizeof(cursor)));
	snprintf(
	    body, sizeof(body), REQ("tools/list", "\"cursor\":\"%s\""), cursor);
	assert_int_equal(post(LEGACY, body), 200);
	assert_true(has("a__two") && !has("a__one"));
	assert_false(next_cursor(again, sizeof(again)));
	/* Of another list, changed, empty, nonsense. */
	snprintf(body, sizeof(body), REQ("prompts/list", "\"cursor\":\"%s\""),
	    cursor);
	assert_int_equal(post(LEGACY, body), 200);
	assert_true(has("-32602") && has("bad_cursor"));
	cursor[5] = cursor[5] == 'A' ? 'B' : 'A';
	snprintf(
	    body, sizeof(body), REQ("tools/list", "\"cursor\":\"%s\""), cursor);
	assert_int_equal(post(LEGACY, body), 200);
	assert_true(has("bad_cursor"));
	assert_int_equal(
	    post(LEGACY, REQ("tools/list", "\"cursor\":\"\"")), 200);
	assert_true(has("bad_cursor"));
	assert_int_equal(post(MODERN("tools/list", ""),
			     REQ("tools/list", "\"cursor\":\"x y\"," ENV)),
	    200);
	assert_true(has("bad_cursor"));
}

static void
test_prompts(void **state)
{
	(void)state;
	assert_int_equal(
	    post(LEGACY,
		REQ("prompts/get",
		    "\"name\":\"p_plain\",\"arguments\":{\"k\":\"v\"}")),
	    200);
	assert_true(has("\"result\":{\"messages\":[]}"));
	assert_int_equal(last_method, CALL_PROMPT);
	assert_string_equal(last_tool, "p_plain");
	assert_string_equal(last_args, "{\"k\":\"v\"}");
	/* No isError here: an error with the text. */
	assert_int_equal(post(MODERN("prompts/get", "Mcp-Name: p_values\r\n"),
			     REQ("prompts/get", "\"name\":\"p_values\"," ENV)),
	    200);
	assert_true(has("\"code\":-32602") && has("city is missing"));
	assert_int_equal(last_declared, CLIENT_ROOTS);
	assert_int_equal(
	    post(LEGACY, REQ("prompts/get", "\"name\":\"nope\"")), 200);
	assert_true(has("\"code\":-32602") && has("unknown_prompt"));
}

static void
test_resources(void **state)
{
	(void)state;
	assert_int_equal(
	    post(
		LEGACY, REQ("resources/read", "\"uri\":\"test://\\u0074ext\"")),
	    200);
	assert_true(has("\"contents\":[{\"uri\":\"test://\\u0074ext\",\"text\":"
			"\"hello\"}]"));
	assert_int_equal(last_method, CALL_RESOURCE);
	assert_string_equal(last_tool, "r_text");
	assert_string_equal(last_args, "{}");
	assert_int_equal(
	    post(MODERN("resources/read", "Mcp-Name: test://text\r\n"),
		REQ("resources/read", "\"uri\":\"test://text\"," ENV)),
	    200);
	assert_true(has("\"ttlMs\":7000,\"cacheScope\":\"private\""));
	/* A template's variable, decoded. */
	assert_int_equal(
	    post(LEGACY,
		REQ("resources/read", "\"uri\":\"test://item/a%20%22b/data\"")),
	    200);
	assert_string_equal(last_tool, "r_item");
	assert_string_equal(last_args, "{\"id\":\"a \\\"b\"}");
	assert_true(has("{\"uri\":\"test://item/a%20%22b/data\",\"blob\":"));
	/* One that fails: no isError here either. */
	assert_int_equal(
	    post(LEGACY, REQ("resources/read", "\"uri\":\"fail://a/b\"")), 200);
	assert_true(has("\"code\":-32603") && has("\"limit\""));
	assert_string_equal(last_args, "{\"path\":\"a/b\"}");
}

/* No template answers for a resource that somebody stopped: admind is asked for
 * that resource, and says who. No list shows it. */
static void
test_stopped(void **state)
{
	(void)state;
	assert_int_equal(
	    post(LEGACY,
		REQ("resources/read", "\"uri\":\"test://item/off/data\"")),
	    200);
	assert_true(has("\"failure_mode\":\"stopped\""));
	assert_string_equal(last_tool, "r_off");
	assert_string_equal(last_args, "{}");
	assert_int_equal(
	    post(MODERN("resources/read", "Mcp-Name: test://item/off/data\r\n"),
		REQ("resources/read", "\"uri\":\"test://item/off/data\"," ENV)),
	    200);
	assert_true(has("\"failure_mode\":\"stopped\""));
	assert_int_equal(post(LEGACY, REQ("resources/list", "")), 200);
	assert_true(has("r_text") && !has("r_off"));
	assert_int_equal(
	    post(LEGACY, REQ("resources/templates/list", "")), 200);
	assert_true(has("r_item") && !has("r_off"));
	/* The control: another URI of that template. */
	assert_int_equal(
	    post(LEGACY,
		REQ("resources/read", "\"uri\":\"test://item/on/data\"")),
	    200);
	assert_string_equal(last_tool, "r_item");
}

static void
test_not_found(void **state)
{
	static const char *const uris[] = {"test://other", "test://item//data",
	    "test://item/a/b/data", "", "not a uri", "test://item/%ff/data",
	    "test://item/%00/data"};
	char body[400];
	size_t i;

	(void)state;
	authorises = 0;
	for (i = 0; i < sizeof(uris) / sizeof(uris[0]); i++) {
		snprintf(body, sizeof(body),
		    REQ("resources/read", "\"uri\":\"%s\""), uris[i]);
		assert_int_equal(post(LEGACY, body), 200);
		if (!has("\"code\":-32002"))
			fail_msg("%s: %s", uris[i], answer);
	}
	assert_int_equal(authorises, 0);
	assert_int_equal(post(MODERN("resources/read", "Mcp-Name: a:b\r\n"),
			     REQ("resources/read", "\"uri\":\"a:b\"," ENV)),
	    200);
	assert_true(has("\"code\":-32602") && has("\"uri\":\"a:b\""));
	assert_int_equal(authorises, 0);
}

static void
test_completion(void **state)
{
#define COMPLETE(ref, name, value)                             \
	REQ("completion/complete",                             \
	    "\"ref\":{" ref "},\"argument\":{\"name\":\"" name \
	    "\",\"value\":\"" value "\"}")
#define PROMPT(name) "\"type\":\"ref/prompt\",\"name\":\"" name "\""
	static const struct {
		const char *body, *want;
	} t[] = {
	    {COMPLETE(PROMPT("p_values"), "city", "pa"),
		"{\"completion\":{\"values\":[\"Paris\",\"Parma\"],\"total\":2,"
		"\"hasMore\":false}}"},
	    {COMPLETE(PROMPT("p_values"), "city", ""), "\"total\":3"},
	    {COMPLETE(PROMPT("p_values"), "city", "x"), "\"values\":[]"},
	    {COMPLETE(PROMPT("p_values"), "other", "p"), "\"values\":[]"},
	    {COMPLETE(PROMPT("p_plain"), "city", "p"), "\"values\":[]"},
	    {COMPLETE(PROMPT("nope"), "city", "p"), "\"code\":-32602"},
	    {COMPLETE("\"type\":\"ref/resource\",\"uri\":\"test://item/{id}/"
		      "data\"",
		 "id", "1"),
		"\"values\":[]"},
	    {COMPLETE(
		 "\"type\":\"ref/resource\",\"uri\":\"test://item/1/data\"",
		 "id", "1"),
		"\"code\":-32602"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_int_equal(post(LEGACY, t[i].body), 200);
		if (!has(t[i].want))
			fail_msg("%s: %s", t[i].body, answer);
	}
}

/* Log levels and subscriptions are of a session. */
static void
test_session_state(void **state)
{
	static const char *const needs[] = {
	    REQ("logging/setLevel", "\"level\":\"error\""),
	    REQ("resources/subscribe", "\"uri\":\"test://text\""),
	    REQ("resources/unsubscribe", "\"uri\":\"test://text\"")};
	size_t i;

	(void)state;
	begin_session();
	for (i = 0; i < 3; i++) {
		assert_int_equal(post(LEGACY, needs[i]), 200);
		assert_true(has("\"code\":-32600"));
		assert_int_equal(post(session, needs[i]), 200);
		assert_true(has("\"result\":{}"));
	}
	assert_int_equal(
	    post(session,
		REQ("resources/subscribe", "\"uri\":\"test://other\"")),
	    200);
	assert_true(has("\"code\":-32002"));
	/* What the session's client declared goes with each call. */
	assert_int_equal(
	    post(session, REQ("tools/call", "\"name\":\"t_o\"")), 200);
	assert_int_equal(last_declared, CLIENT_SAMPLING);
	/* A tool's log lines: from `error` on after setLevel, ... */
	assert_int_equal(post(session, needs[0]), 200);
	assert_int_equal(
	    post(session, REQ("tools/call", "\"name\":\"t_p\"")), 200);
	assert_true(has("loud") && !has("quiet"));
	/* ... all of them at `debug`, none without a session. */
	assert_int_equal(
	    post(session, REQ("logging/setLevel", "\"level\":\"debug\"")), 200);
	assert_int_equal(
	    post(session, REQ("tools/call", "\"name\":\"t_p\"")), 200);
	assert_true(has("loud") && has("quiet"));
	assert_int_equal(
	    post(LEGACY, REQ("tools/call", "\"name\":\"t_p\"")), 200);
	assert_false(has("loud") || has("quiet"));
}

/* A capability the client lacks: 400, and which one. What admind says beside
 * that can't leave its place. */
static void
test_error_data(void **state)
{
	(void)state;
	assert_int_equal(post(MODERN("tools/call", "Mcp-Name: capability\r\n"),
			     REQ("tools/call", "\"name\":\"capability\"," ENV)),
	    400);
	assert_true(has("\"code\":-32021") &&
	    has("\"requiredCapabilities\":{\"sampling\":{}}"));
	assert_int_equal(
	    post(LEGACY, REQ("tools/call", "\"name\":\"forger\"")), 200);
	assert_true(has("\"failure_mode\":\"busy\"") && !has("\"id\":5"));
}

/* An array of 2025-03-26: each request is answered in its turn, whatever it
 * took to answer it; two URIs of templates don't share their variables. */
static void
test_array(void **state)
{
#define ITEM(id, method, params)                                  \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method \
	"\",\"params\":{" params "}}"
	static const char body[] = "[" ITEM("1", "prompts/list", "") "," ITEM(
	    "2", "resources/read",
	    "\"uri\":\"test://item/a/data\"") "," ITEM("3", "resources/read",
	    "\"uri\":\"test://item/b/data\"") "," ITEM("4", "resources/read",
	    "\"uri\":\"test://none\"") ","
				       "{\"jsonrpc\":\"2.0\",\"method\":"
				       "\"notifications/initialized\"}," ITEM(
					   "5", "prompts/get",
					   "\"name\":\"p_plain\"") "," ITEM("6",
					   "tools/list",
					   "\"cursor\":\"x\"") "," ITEM("7",
					   "subscriptions/listen",
					   "\"notifications\":{}") "]";
	static const char *const want[] = {"[{\"jsonrpc\":\"2.0\",\"id\":1,",
	    "\"prompts\":[{", "\"id\":2,", "{\"uri\":\"test://item/a/data\",",
	    "\"id\":3,", "{\"uri\":\"test://item/b/data\",", "\"id\":4,",
	    "-32002", "\"id\":5,", "\"messages\":[]", "\"id\":6,", "bad_cursor",
	    "\"id\":7,", "-32601"};
	const char *at = answer;
	size_t i;

	(void)state;
	assert_int_equal(
	    post("MCP-Protocol-Version: 2025-03-26\r\n", body), 200);
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		at = strstr(at, want[i]);
		if (at == NULL) {
			fail_msg("%s is not in its place: %s", want[i], answer);
			return;
		}
	}
	assert_string_equal(answer + strlen(answer) - 1, "]");
	assert_int_equal(post(LEGACY, body), 400);
}

static void
test_quirks(void **state)
{
	static const char accept[] =
	    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
	    "application/json\r\nAccept: application/json\r\n" LEGACY
	    "Content-Length: %zu\r\n\r\n%s";
	static const char list[] = REQ("tools/list", "");
	static const char init[] =
	    REQ("initialize", "\"protocolVersion\":\"2025-11-25\"");
	static const char v26[] = "MCP-Protocol-Version: 2026-07-28\r\n";
	char text[400];
	struct lc c;
	int i;

	(void)state;
	assert_int_equal(
	    gw.quirks, 1 << MCP_QUIRK_INITIALIZE | 1 << MCP_QUIRK_ACCEPT);
	assert_int_equal(post(v26, init), 200);
	assert_true(has("\"protocolVersion\":\"2025-11-25\""));
	gw.quirks = 0;
	assert_int_equal(post(v26, init), 400);
	assert_true(has("-32020"));
	for (i = 0; i < 2; i++) {
		gw.quirks = i == 0 ? 0 : 1 << MCP_QUIRK_ACCEPT;
		snprintf(text, sizeof(text), accept, strlen(list), list);
		c = lc_open(address);
		lc_sends(&c, base, text);
		assert_int_equal(lc_answer(&c, base), i == 0 ? 406 : 200);
		lc_close(&c);
	}
	gw.quirks = 1 << MCP_QUIRK_HEADER_VERSION;
	assert_int_equal(
	    post(LEGACY "Mcp-Method: tools/list\r\n", REQ("tools/list", ENV)),
	    200);
	assert_true(has("\"resultType\""));
	/* Each was logged once; the second time it only counts. */
	assert_true(gw.quirk[MCP_QUIRK_HEADER_VERSION].logged != 0);
	post(LEGACY "Mcp-Method: tools/list\r\n", REQ("tools/list", ENV));
	assert_int_equal(gw.quirk[MCP_QUIRK_HEADER_VERSION].more, 1);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(test_lists),
	    T(test_pages),
	    T(test_prompts),
	    T(test_resources),
	    T(test_stopped),
	    T(test_not_found),
	    T(test_completion),
	    T(test_session_state),
	    T(test_error_data),
	    T(test_array),
	    T(test_quirks),
	};

	log_init("gatewayd", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
