/*
 * The ladder's rows of every method in each revision: which eras have it, what
 * Mcp-Name must repeat, what its parameters must be and become, and the
 * deviations that a setting lets pass.
 */
#include <time.h>

#include "buf.h"
#include "json.h"
#include "mcp_era.h"
#include "mcp_rows.h"
#include "unit.h"

static const struct row rows[] = {
    /* let pass by settings */
    {"quirk: header of an older revision", REQ("tools/list", ENV),
	{.version = V25, .method = "tools/list", .quirks = HEADER_QUIRK}, 0, 0,
	M, "1"},
    {"quirk: header of no revision", REQ("tools/list", ENV),
	{.version = "2025-11-26",
	    .method = "tools/list",
	    .quirks = HEADER_QUIRK},
	400, -32020, X, "1"},
    {"quirk: body of an older revision",
	REQ("tools/list", ENV_V("\"" V25 "\"")),
	{.version = V26, .method = "tools/list", .quirks = HEADER_QUIRK}, 400,
	-32020, X, "1"},
    {"quirk: header missing", REQ("tools/list", ENV),
	{.method = "tools/list", .quirks = HEADER_QUIRK}, 400, -32020, X, "1"},
    {"quirk: initialize with a modern header",
	REQ("initialize", "\"protocolVersion\":\"2025-11-25\""),
	{.version = V26, .quirks = INIT_QUIRK}, 0, 0, L, "1"},
    {"quirk: initialize with a modern envelope",
	REQ("initialize", "\"protocolVersion\":\"2025-11-25\"," ENV),
	{.version = V26, .method = "initialize", .quirks = INIT_QUIRK}, 404,
	-32601, M, "1"},

/* the methods of each era */
#define BOTH(what, params)                                                    \
	{"legacy " what, REQ(what, params), {.version = V25}, 0, 0, L, "1"},  \
	    {"oldest " what, REQ(what, params), {.version = "2025-03-26"}, 0, \
		0, L, "1"}
#define MODERN_ROW(what, params, header)        \
	{"modern " what, REQ(what, params ENV), \
	    {.version = V26, .method = what, .name = header}, 0, 0, M, "1"}
#define LEGACY_ONLY(what, params)                       \
	BOTH(what, params),                             \
	    {"modern " what, REQ(what, params "," ENV), \
		{.version = V26, .method = what}, 404, -32601, M, "1"}
#define MODERN_ONLY(what, params)                                             \
	{"legacy " what, REQ(what, params), {.version = V25}, 200, -32601, L, \
	    "1"}
    BOTH("tools/list", ""),
    BOTH("prompts/list", ""),
    BOTH("resources/list", ""),
    BOTH("resources/templates/list", "\"cursor\":\"x\""),
    MODERN_ROW("prompts/list", "", NULL),
    MODERN_ROW("resources/list", "", NULL),
    MODERN_ROW("resources/templates/list", "\"cursor\":\"x\",", NULL),
    BOTH("prompts/get", "\"name\":\"p\""),
    MODERN_ROW("prompts/get", "\"name\":\"p\",", "p"),
    BOTH("resources/read", "\"uri\":\"t:1\""),
    MODERN_ROW("resources/read", "\"uri\":\"t:1\",", "t:1"),
    MODERN_ROW("resources/read", "\"uri\":\"t:\\u0031\",", "t:1"),
    BOTH("completion/complete", COMPLETE("ref/prompt", "name")),
    MODERN_ROW(
	"completion/complete", COMPLETE("ref/resource", "uri") ",", NULL),
    LEGACY_ONLY("resources/subscribe", "\"uri\":\"t:1\""),
    LEGACY_ONLY("resources/unsubscribe", "\"uri\":\"t:1\""),
    LEGACY_ONLY("logging/setLevel", "\"level\":\"error\""),
    BOTH("ping", ""),
    BOTH("ping", "\"_meta\":{\"x/y\":1}"),
    MODERN_ONLY("server/discover", ""),
    MODERN_ROW("subscriptions/listen", "\"notifications\":{},", NULL),
    MODERN_ONLY("subscriptions/listen", "\"notifications\":{}"),
    MODERN_ROW("tasks/get", "\"taskId\":\"a\",", "a"),
    MODERN_ROW("tasks/cancel", "\"taskId\":\"a\",", "a"),
    MODERN_ROW("tasks/update", "\"taskId\":\"a\",\"inputResponses\":{},", "a"),
    MODERN_ONLY("tasks/get", "\"taskId\":\"a\""),
    MODERN_ONLY("tasks/update", "\"taskId\":\"a\""),
    MODERN_ONLY("tasks/cancel", "\"taskId\":\"a\""),
    {"a notification's name with an id", REQ("notifications/initialized", ""),
	{.version = V25}, 200, -32601, L, "1"},
    {"notifications/initialized",
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
	{.version = V25}, 0, 0, L, NULL},
    {"notifications/roots/list_changed",
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\"}",
	{.version = V25}, 0, 0, L, NULL},

    /* Mcp-Name of the others */
    {"prompts/get, Mcp-Name missing", REQ("prompts/get", "\"name\":\"p\"," ENV),
	{.version = V26, .method = "prompts/get"}, 400, -32020, M, "1"},
    {"resources/read, Mcp-Name differs",
	REQ("resources/read", "\"uri\":\"t:1\"," ENV),
	{.version = V26, .method = "resources/read", .name = "t:2"}, 400,
	-32020, M, "1"},
    {"tasks/get, Mcp-Name differs", REQ("tasks/get", "\"taskId\":\"a\"," ENV),
	{.version = V26, .method = "tasks/get", .name = "b"}, 400, -32020, M,
	"1"},
    {"tasks/get, Mcp-Name missing", REQ("tasks/get", "\"taskId\":\"a\"," ENV),
	{.version = V26, .method = "tasks/get"}, 400, -32020, M, "1"},

/* their parameters */
#define NOTE(what, params)                                      \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" what \
	"\",\"params\":"                                        \
	"{" params "}}"
#define BAD(what, params) \
	{"bad " what, REQ(what, params), {.version = V25}, 200, -32602, L, "1"}
#define BAD_MODERN(what, params, header)                                      \
	{"bad modern " what, REQ(what, params "," ENV),                       \
	    {.version = V26, .method = what, .name = header}, 200, -32602, M, \
	    "1"}
    BAD("prompts/list", "\"cursor\":{}"),
    BAD("prompts/get", ""),
    BAD("prompts/get", "\"name\":\"p\",\"arguments\":\"x\""),
    BAD("resources/read", ""),
    BAD("resources/read", "\"uri\":1"),
    BAD("resources/subscribe", "\"uri\":null"),
    BAD("logging/setLevel", ""),
    BAD("logging/setLevel", "\"level\":\"loud\""),
    BAD("logging/setLevel", "\"level\":3"),
    BAD("completion/complete", ""),
    BAD("completion/complete", "\"ref\":{\"type\":\"ref/prompt\"}"),
    BAD("completion/complete",
	"\"ref\":{\"type\":\"ref/tool\",\"name\":\"a\"},\"argument\":{\"name\":"
	"\"a\",\"value\":\"\"}"),
    BAD("completion/complete",
	"\"ref\":{\"type\":\"ref/prompt\",\"uri\":\"a\"},\"argument\":{"
	"\"name\":\"a\",\"value\":\"\"}"),
    BAD("completion/complete",
	"\"ref\":{\"type\":\"ref/prompt\",\"name\":\"a\"},\"argument\":{"
	"\"name\":\"a\",\"value\":1}"),
    BAD_MODERN("tools/call", "\"name\":\"a\",\"inputResponses\":[]", "a"),
    BAD_MODERN("tools/call", "\"name\":\"a\",\"requestState\":{}", "a"),
    BAD_MODERN("subscriptions/listen", "\"notifications\":[]", NULL),
    BAD_MODERN("subscriptions/listen",
	"\"notifications\":{\"resourceSubscriptions\":{}}", NULL),
    BAD_MODERN("tasks/get", "\"taskId\":1", NULL),
    BAD_MODERN("tasks/update", "\"taskId\":\"a\",\"inputResponses\":1", "a"),
    /* members that the revision's method does not have */
    BAD("ping", "\"x\":1"),
    BAD("initialize", "\"protocolVersion\":\"" V25 "\",\"title\":\"x\""),
    BAD("tools/list", "\"limit\":1"),
    BAD("tools/call", "\"name\":\"a\",\"argument\":{\"x\":1}"),
    BAD("tools/call", "\"name\":\"a\",\"Arguments\":{\"x\":1}"),
    BAD("tools/call", "\"name\":\"a\",\"arguments \":{}"),
    BAD("tools/call", "\"name\":\"a\",\"requestState\":\"s\""),
    BAD("tools/call", "\"name\":\"a\",\"inputResponses\":{}"),
    BAD("prompts/get", "\"name\":\"a\",\"task\":{}"),
    BAD("resources/read", "\"uri\":\"t:1\",\"range\":1"),
    BAD("logging/setLevel", "\"level\":\"info\",\"logger\":\"x\""),
    BAD("completion/complete",
	COMPLETE("ref/prompt", "name") ",\"context\":{\"argument\":{}}"),
    BAD("completion/complete",
	COMPLETE("ref/prompt", "name") ",\"context\":[]"),
    BAD("completion/complete",
	"\"ref\":{\"type\":\"ref/prompt\",\"name\":\"x\",\"uri\":\"y:\"},"
	"\"argument\":{\"name\":\"a\",\"value\":\"b\"}"),
    BAD("completion/complete",
	"\"ref\":{\"type\":\"ref/prompt\",\"name\":\"x\"},"
	"\"argument\":{\"name\":\"a\",\"value\":\"b\",\"values\":[]}"),
    MODERN_ROW("tools/call", "\"name\":\"a\",\"task\":{},", "a"),
    BAD_MODERN("prompts/get", "\"name\":\"a\",\"task\":{}", "a"),
    BAD_MODERN("tools/call", "\"name\":\"a\",\"argument\":{}", "a"),
    BAD_MODERN("server/discover", "\"x\":1", NULL),
    BAD_MODERN("tasks/get", "\"taskId\":\"a\",\"x\":1", "a"),
    BAD_MODERN("subscriptions/listen",
	"\"notifications\":{\"toolListChanged\":true}", NULL),
    BAD_MODERN("subscriptions/listen",
	"\"notifications\":{\"toolsListChanged\":1}", NULL),
    {"task is of 2025-11-25",
	REQ("tools/call", "\"name\":\"a\",\"task\":{\"ttl\":1}"),
	{.version = V25}, 0, 0, L, "1"},
    {"task is not of 2025-06-18",
	REQ("tools/call", "\"name\":\"a\",\"task\":{\"ttl\":1}"),
	{.version = "2025-06-18"}, 200, -32602, L, "1"},
    {"the session names the revision",
	REQ("tools/call", "\"name\":\"a\",\"task\":{\"ttl\":1}"),
	{.session = MCP_REV_2025_11_25}, 0, 0, L, "1"},
    {"nothing names the revision",
	REQ("tools/call", "\"name\":\"a\",\"task\":{\"ttl\":1}"), {0}, 200,
	-32602, L, "1"},
    {"context is of 2025-06-18",
	REQ("completion/complete",
	    COMPLETE("ref/prompt", "name") ",\"context\":{\"arguments\":{}}"),
	{.version = "2025-06-18"}, 0, 0, L, "1"},
    {"context is not of 2025-03-26",
	REQ("completion/complete",
	    COMPLETE("ref/prompt", "name") ",\"context\":{\"arguments\":{}}"),
	{.version = "2025-03-26"}, 200, -32602, L, "1"},
    {"a name written with an escape", REQ("tools/call", "\"n\\u0061me\":\"a\""),
	{.version = V25}, 0, 0, L, "1"},
    /* a notification can be refused by the status only */
    {"cancelled with an unknown member",
	NOTE("cancelled", "\"requestId\":1,\"id\":1"), {.version = V25}, 400,
	-32602, L, NULL},
    {"cancelled, requestId an object", NOTE("cancelled", "\"requestId\":{}"),
	{.version = V25}, 400, -32602, L, NULL},
    {"cancelled", NOTE("cancelled", "\"requestId\":1,\"reason\":\"x\""),
	{.version = V25}, 0, 0, L, NULL},
    {"progress",
	NOTE("progress",
	    "\"progressToken\":1,\"progress\":1,\"total\":2,\"message\":\"x\""),
	{.version = V25}, 0, 0, L, NULL},
    {"a notification nobody knows", NOTE("other", "\"x\":1"), {.version = V25},
	0, 0, L, NULL},
};

static void
test_methods(void **state)
{
	(void)state;
	check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

/* All faults come in one error, with pointers and what to write instead. */
static void
test_faults(void **state)
{
	static const struct mcp_headers old = {.version = V25};
	static const struct mcp_headers first = {.version = "2025-03-26"};
	static const struct {
		const char *body;
		const struct mcp_headers *h;
		const char *message, *data;
	} t[] = {
	    {REQ("tools/call", "\"name\":\"a\",\"argument\":{}"), &old,
		"/params/argument: Write arguments.",
		"\"faults\":[{\"pointer\":\"/params/argument\","
		"\"fix\":\"Write arguments.\"}]"},
	    {REQ("tools/call",
		 "\"Name\":\"a\",\"Arguments\":[],\"stream\":true"),
		&first, "/params/Name: Write name. 3 more: see data.faults.",
		"\"faults\":[{\"pointer\":\"/params/Name\","
		"\"fix\":\"Write name.\"},{\"pointer\":\"/params/Arguments\","
		"\"fix\":\"Write arguments.\"},{\"pointer\":\"/params/stream\","
		"\"fix\":\"Leave it out: tools/call of 2025-03-26 has name, "
		"arguments, _meta.\"},{\"pointer\":\"/params/name\","
		"\"fix\":\"Write a string; it may not be left out.\"}]"},
	    /* what was meant is there: then it is not what was meant */
	    {REQ("tools/call",
		 "\"name\":\"a\",\"arguments\":{},\"argument\":{}"),
		&first,
		"/params/argument: Leave it out: tools/call of 2025-03-26 has "
		"name, arguments, _meta.",
		"\"faults\":[{\"pointer\":\"/params/argument\",\"fix\":\"Leave "
		"it out: tools/call of 2025-03-26 has name, arguments, "
		"_meta.\"}]"},
	    {REQ("completion/complete",
		 "\"ref\":{\"type\":\"x\"},\"argument\":{\"value\":\"\"}"),
		&old, NULL,
		"\"faults\":[{\"pointer\":\"/params/ref/type\",\"fix\":\"Write "
		"ref/prompt or ref/resource.\"},{\"pointer\":\"/params/"
		"argument/name\",\"fix\":\"Write a string; it may not be left "
		"out.\"}]"},
	    /* a pointer's own characters, and what is not for a terminal */
	    {REQ("ping", "\"a/b~c\":1"), &old,
		"/params/a~1b~0c: Leave it out: ping of 2025-11-25 has _meta.",
		NULL},
	    {REQ("ping", "\"\\u001b[2J\":1"), &old,
		"/params: Leave it out: ping of 2025-11-25 has _meta.",
		"\"faults\":[{\"pointer\":\"/params/"
		"\\u001b[2J\",\"fix\":\"Leave "
		"it out: ping of 2025-11-25 has _meta.\"}]"},
	    {"{\"jsonrpc\":\"1\",\"id\":{},\"method\":1,\"result\":{},"
	     "\"params\":[],\"meta\":1}",
		&old, "/jsonrpc: Write \"2.0\". 5 more: see data.faults.",
		NULL},
	};
	struct mcp_message m;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		m = read_one(t[i].body, t[i].h);
		if (t[i].message != NULL)
			assert_string_equal(m.error.message, t[i].message);
		if (t[i].data != NULL)
			assert_string_equal(m.error.data, t[i].data);
	}
}

/* What does not fit is counted, and what is told stays whole. */
static void
test_many_faults(void **state)
{
	static const struct mcp_headers old = {.version = V25};
	struct mcp_message m;
	struct buf b;
	int i;

	(void)state;
	buf_init(&b, 64 * 1024);
	buf_puts(&b,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{");
	for (i = 0; i < 100; i++)
		buf_putf(&b, "\"x%d\":1,", i);
	buf_puts(&b, "\"");
	for (i = 0; i < 1000; i++)
		buf_puts(&b, "y");
	buf_puts(&b, "\":1}}");
	buf_putc(&b, '\0');
	m = read_one((const char *)b.p, &old);
	assert_int_equal(m.error.faults, 101);
	assert_non_null(strstr(m.error.message, " 100 more"));
	assert_non_null(strstr(m.error.data, "],\"left_out\":"));
	buf_clear(&b);
	buf_putc(&b, '{');
	buf_puts(&b, m.error.data);
	buf_putc(&b, '}');
	assert_int_equal(json_scan(b.p, b.len, NULL), 0);
	buf_free(&b);
}

/* The table has no method twice, and finds each by name and by number. */
static void
test_table(void **state)
{
	const struct mcp_method_info *row;
	int m;

	(void)state;
	assert_null(mcp_method_info(MCP_OTHER));
	assert_null(mcp_method_find(""));
	assert_null(mcp_method_find("tools/call2"));
	for (m = MCP_OTHER + 1; m <= MCP_CLIENT_PROGRESS; m++) {
		row = mcp_method_info((enum mcp_method)m);
		assert_non_null(row);
		assert_ptr_equal(mcp_method_find(row->name), row);
		assert_int_equal(row->notification,
		    strncmp(row->name, "notifications/", 14) == 0);
	}
}

/* What each method's parameters become. */
static void
test_parameters(void **state)
{
	static const struct mcp_headers old = {.version = V25};
	static const struct mcp_headers listen = {
	    .version = V26, .method = "subscriptions/listen"};
	static const struct mcp_headers retry = {
	    .version = V26, .method = "tools/call", .name = "a"};
	struct mcp_message m;

	(void)state;
	m = read_one(REQ("tools/list", "\"cursor\":\"c\""), &old);
	assert_true(ipc_streq(m.cursor, "\"c\""));
	m = read_one(REQ("resources/read", "\"uri\":\"t:1\""), &old);
	assert_true(ipc_streq(m.uri, "\"t:1\""));
	assert_true(ipc_streq(m.arguments, "{}"));
	m = read_one(REQ("logging/setLevel", "\"level\":\"warning\""), &old);
	assert_int_equal(m.level, 3);
	m = read_one(
	    REQ("completion/complete", COMPLETE("ref/prompt", "name")), &old);
	assert_true(m.complete.prompt);
	assert_true(ipc_streq(m.complete.ref, "\"x\""));
	assert_true(ipc_streq(m.complete.name, "\"a\""));
	assert_true(ipc_streq(m.complete.value, "\"b\""));
	m = read_one(REQ("subscriptions/listen",
			 "\"notifications\":{\"toolsListChanged\":true,"
			 "\"promptsListChanged\":false,"
			 "\"resourceSubscriptions\":[\"a:b\"]}," ENV),
	    &listen);
	assert_int_equal(m.error.failure, FAILURE_NONE);
	assert_true(m.listen.tools && !m.listen.prompts && !m.listen.resources);
	assert_true(ipc_streq(m.listen.uris, "[\"a:b\"]"));
	m = read_one(REQ("tools/call",
			 "\"name\":\"a\",\"inputResponses\":{\"k\":{}},"
			 "\"requestState\":\"s\"," ENV),
	    &retry);
	assert_true(ipc_streq(m.input_responses, "{\"k\":{}}"));
	assert_true(ipc_streq(m.request_state, "\"s\""));
	m = read_one(
	    "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"result\":{\"a\":1}}", &old);
	assert_int_equal(m.kind, MCP_RESPONSE);
	assert_true(ipc_streq(m.result, "{\"a\":1}"));
	assert_int_equal(m.response_error.n, 0);
	m = read_one(
	    "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"error\":{\"code\":1}}", &old);
	assert_true(ipc_streq(m.response_error, "{\"code\":1}"));
	assert_int_equal(m.result.n, 0);
}

/* Which capabilities an object declares. */
static void
test_declared(void **state)
{
	static const struct {
		const char *json;
		uint32_t declared;
	} t[] = {{"{}", 0}, {"", 0},
	    {"{\"elicitation\":{}}", CLIENT_ELICITATION},
	    {"{\"elicitation\":{\"form\":{}}}", CLIENT_ELICITATION},
	    {"{\"elicitation\":{\"url\":{}}}", CLIENT_ELICITATION_URL},
	    {"{\"elicitation\":{\"url\":{},\"form\":{}}}",
		CLIENT_ELICITATION | CLIENT_ELICITATION_URL},
	    {"{\"elicitation\":true}", 0},
	    {"{\"sampling\":{}}", CLIENT_SAMPLING},
	    {"{\"sampling\":{\"tools\":{}}}",
		CLIENT_SAMPLING | CLIENT_SAMPLING_TOOLS},
	    {"{\"roots\":{\"listChanged\":true}}", CLIENT_ROOTS},
	    {"{\"roots\":null}", 0},
	    {"{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}",
		CLIENT_TASKS},
	    {"{\"extensions\":{\"other\":{}}}", 0}};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (mcp_params_declared(ipc_str(t[i].json)) != t[i].declared)
			fail_msg("%s", t[i].json);
}

/* mcpbox_call_tool becomes the call it asks for, or stays what it is. */
static void
test_by_name(void **state)
{
#define CALL(arguments)   \
	REQ("tools/call", \
	    "\"name\":\"mcpbox_call_tool\",\"arguments\":" arguments)
	static const struct mcp_headers old = {.version = V25};
	static const struct mcp_headers modern = {
	    .version = V26, .method = "tools/call", .name = "mcpbox_call_tool"};
	static const char *const stays[] = {CALL("{}"), CALL("{\"name\":1}"),
	    CALL("{\"name\":\"\"}"),
	    CALL("{\"name\":\"a__b\",\"arguments\":[]}"),
	    CALL("{\"name\":\"a__b\",\"arguments\":null}"),
	    CALL("{\"name\":\"a__b\",\"more\":1}"),
	    CALL("{\"name\":\"mcpbox_list_servers\"}"),
	    CALL("{\"name\":\"mcpbox_call_tool\",\"arguments\":{\"name\":"
		 "\"a__b\"}}")};
	struct mcp_message m;

	(void)state;
	m = read_one(CALL("{\"arguments\":{\"n\":1},\"name\":\"a__b\"}"), &old);
	assert_int_equal(m.error.failure, FAILURE_NONE);
	assert_true(m.by_name);
	assert_string_equal(m.tool, "a__b");
	assert_true(ipc_streq(m.arguments, "{\"n\":1}"));
	m = read_one(CALL("{\"name\":\"a__b\"}"), &old);
	assert_true(m.by_name);
	assert_true(ipc_streq(m.arguments, "{}"));
	/* the header names what the client called */
	m = read_one(REQ("tools/call",
			 "\"name\":\"mcpbox_call_tool\",\"arguments\":{"
			 "\"name\":\"a__b\"},\"requestState\":\"s\"," ENV),
	    &modern);
	assert_int_equal(m.error.failure, FAILURE_NONE);
	assert_string_equal(m.tool, "a__b");
	assert_true(ipc_streq(m.request_state, "\"s\""));
	for (size_t i = 0; i < sizeof(stays) / sizeof(stays[0]); i++) {
		m = read_one(stays[i], &old);
		assert_int_equal(m.error.failure, FAILURE_NONE);
		if (m.by_name || strcmp(m.tool, "mcpbox_call_tool") != 0)
			fail_msg("%s", stays[i]);
	}
	m = read_one(REQ("tools/call",
			 "\"name\":\"other\",\"arguments\":{"
			 "\"name\":\"a__b\"}"),
	    &old);
	assert_false(m.by_name);
	assert_string_equal(m.tool, "other");
#undef CALL
}

/* Processor time to refuse a call with `n` members that it does not have, near
 * to `arguments` or far from all. */
static double
seconds_to_refuse(unsigned n, bool near)
{
	static const char letter[] = "bcdfhjklopqvwxyz0123456789";
	enum { LETTERS = sizeof(letter) - 1 };
	struct mcp_headers h = {.version = V25};
	struct mcp_message m;
	struct mcp_error e;
	struct mcp_body b;
	struct ipc_bytes id;
	struct buf body;
	char name[16];
	clock_t from;

	buf_init(&body, 1024 * 1024);
	buf_puts(&body,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"a\"");
	for (unsigned k = 0; k < n; k++) {
		/* two letters of it are others: the pair of places, and they */
		unsigned pair = k / (LETTERS * LETTERS), p = pair % 4,
			 q = 5 + pair / 4;

		if (near) {
			memcpy(name, "arguments", 10);
			name[p] = letter[k % LETTERS];
			name[q] = letter[k / LETTERS % LETTERS];
		} else {
			snprintf(name, sizeof(name), "zz%07u", k);
		}
		buf_putf(&body, ",\"%s\":0", name);
	}
	buf_puts(&body, "}}");
	assert_false(body.failed);
	from = clock();
	assert_int_equal(
	    mcp_request_split(body.p, body.len, &h, -1, &b, &id, &e), 0);
	mcp_request_read(b.member[0], &h, b.array, &m);
	from = clock() - from;
	assert_int_equal(m.error.failure, FAILURE_INVALID_PARAMS);
	assert_int_equal(m.error.faults, n);
	assert_true(m.error.left_out > 0);
	buf_free(&body);
	return (double)from / CLOCKS_PER_SEC;
}

/* Each name near to one that is not there was compared with all others: 10,000
 * of them held gatewayd up for seconds, before it knows who sends them. */
static void
a_flood_of_misspelt_members(void **state)
{
	double far = seconds_to_refuse(10000, false);
	double near = seconds_to_refuse(10000, true);

	if (near > 20 * far + 0.01)
		fail_msg("near %.3f s, far %.3f s", near, far);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_flood_of_misspelt_members),
	    cmocka_unit_test(test_methods),
	    cmocka_unit_test(test_faults),
	    cmocka_unit_test(test_many_faults),
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_parameters),
	    cmocka_unit_test(test_declared),
	    cmocka_unit_test(test_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
