/*
 * The inbound ladder as a table: (body, headers) -> (HTTP status, JSON-RPC
 * code), every rung of it that needs no tool, both eras; then what is read
 * out of good messages.
 */
#include "mcp_era.h"
#include "mcp_rows.h"
#include "unit.h"

static const struct row rows[] = {
    /* 4: shape */
    {"empty", "", {0}, 400, -32700, X, NULL},
    {"white space", " \r\n", {0}, 400, -32700, X, NULL},
    {"not JSON", "{\"id\":1,", {0}, 400, -32700, X, NULL},
    {"trailing", REQ("ping", "") "x", {0}, 400, -32700, X, NULL},
    {"duplicate id",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", {0}, 400,
	-32700, X, NULL},
    {"duplicate hidden by an escape",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"\\u0069d\":2,\"method\":\"ping\"}",
	{0}, 400, -32700, X, NULL},
    {"bad UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}", {0}, 400, -32700, X,
	NULL},
    {"string", "\"ping\"", {0}, 400, -32600, X, NULL},
    {"number", "1", {0}, 400, -32600, X, NULL},
    {"empty object", "{}", {0}, 400, -32600, X, NULL},
    {"no jsonrpc", "{\"id\":7,\"method\":\"ping\"}", {0}, 400, -32600, X, "7"},
    {"jsonrpc 1.0", "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}", {0},
	400, -32600, X, "7"},
    {"jsonrpc number", "{\"jsonrpc\":2.0,\"id\":7,\"method\":\"ping\"}", {0},
	400, -32600, X, "7"},
    {"no method", "{\"jsonrpc\":\"2.0\",\"id\":7}", {0}, 400, -32600, X, "7"},
    {"method number", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":1}", {0}, 400,
	-32600, X, "7"},
    {"id null", "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", {0},
	400, -32600, X, NULL},
    {"id true", "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", {0},
	400, -32600, X, NULL},
    {"id fraction", "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", {0},
	400, -32600, X, NULL},
    {"id exponent", "{\"jsonrpc\":\"2.0\",\"id\":1e2,\"method\":\"ping\"}", {0},
	400, -32600, X, NULL},
    {"id object", "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", {0},
	400, -32600, X, NULL},
    {"params array",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", {0},
	400, -32600, X, "1"},
    {"params null",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":null}",
	{0}, 0, 0, L, "1"},
    {"params a string",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":\"\"}",
	{0}, 400, -32600, X, "1"},
    {"header that is no revision, initialize",
	REQ("initialize", "\"protocolVersion\":\"2025-06-18\""),
	{.version = "latest"}, 0, 0, L, "1"},
    {"header that is no revision", REQ("ping", ""), {.version = "latest"}, 400,
	-32600, L, "1"},
    {"result and error",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", {0}, 400,
	-32600, X, "1"},
    {"method and result",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}", {0},
	400, -32600, X, "1"},
    {"method and error",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"error\":{}}", {0},
	400, -32600, X, "1"},
    {"method and result, no id",
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\","
	"\"result\":{}}",
	{0}, 400, -32600, X, NULL},
    {"unknown member",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"Params\":{}}", {0},
	400, -32600, X, "1"},
    {"unknown member of a modern request",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\","
	"\"_meta\":{},\"params\":{" ENV "}}",
	{.version = V26, .method = "server/discover"}, 400, -32600, X, "1"},
    {"unknown member of a response",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"x\":1}", {0}, 400,
	-32600, X, "1"},
    {"response with params",
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"params\":{}}", {0}, 400,
	-32600, X, "1"},
    {"response without id", "{\"jsonrpc\":\"2.0\",\"result\":{}}", {0}, 400,
	-32600, X, NULL},
    {"id empty", "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"ping\"}", {0},
	0, 0, L, "\"\""},
    {"response", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", {0}, 0, 0, L,
	"1"},
    {"array, header 2025-11-25", "[" REQ("ping", "") "]", {.version = V25}, 400,
	-32600, X, NULL},
    {"array, header 2025-06-18", "[" REQ("ping", "") "]",
	{.version = "2025-06-18"}, 400, -32600, X, NULL},
    {"array, modern header", "[" REQ("ping", "") "]", {.version = V26}, 400,
	-32600, X, NULL},
    {"array, modern element", "[" REQ("tools/list", ENV) "]", {0}, 400, -32600,
	X, NULL},
    {"array, empty", "[ ]", {0}, 400, -32600, X, NULL},
    {"array, header 2025-03-26", "[" REQ("ping", "") "]",
	{.version = "2025-03-26"}, 0, 0, L, "1"},
    {"array, no header", "[" REQ("ping", "") "]", {0}, 0, 0, L, "1"},
    {"array, initialize",
	"[" REQ("initialize", "\"protocolVersion\":\"2025-03-26\"") "]", {0},
	400, -32600, X, "1"},
    {"array, bad member", "[1]", {0}, 400, -32600, X, NULL},

    /* 5: era */
    {"initialize", REQ("initialize", "\"protocolVersion\":\"2025-11-25\""), {0},
	0, 0, L, "1"},
    {"initialize, legacy header",
	REQ("initialize", "\"protocolVersion\":\"2025-11-25\""),
	{.version = V25}, 0, 0, L, "1"},
    {"initialize, unknown old header",
	REQ("initialize", "\"protocolVersion\":\"2024-11-05\""),
	{.version = "2024-11-05"}, 0, 0, L, "1"},
    {"initialize, modern header",
	REQ("initialize", "\"protocolVersion\":\"2025-11-25\""),
	{.version = V26, .method = "initialize"}, 400, -32020, X, "1"},
    {"initialize, modern envelope",
	REQ("initialize", "\"protocolVersion\":\"2025-11-25\"," ENV),
	{.version = V26, .method = "initialize"}, 404, -32601, M, "1"},
    {"initialize, broken envelope, no header",
	REQ("initialize",
	    "\"protocolVersion\":\"2025-11-25\",\"_meta\":{"
	    "\"io.modelcontextprotocol/protocolVersion\":\"" V26 "\"}"),
	{0}, 0, 0, L, "1"},
    {"initialize, legacy claim",
	REQ("initialize",
	    "\"protocolVersion\":\"2025-11-25\"," ENV_V("\"2025-11-25\"")),
	{0}, 0, 0, L, "1"},
    {"legacy with Mcp-Method (mcp-remote)", REQ("tools/list", ""),
	{.version = V25, .method = "tools/list"}, 0, 0, L, "1"},
    {"legacy with a wrong Mcp-Method", REQ("tools/list", ""),
	{.version = V25, .method = "ping", .name = "x"}, 0, 0, L, "1"},
    {"modern header, no claim", REQ("tools/list", ""),
	{.version = V26, .method = "tools/list"}, 400, -32602, X, "1"},
    {"modern header, _meta without claim",
	REQ("tools/list", "\"_meta\":{\"progressToken\":1}"),
	{.version = V26, .method = "tools/list"}, 400, -32602, X, "1"},
    {"future header, no claim", REQ("tools/list", ""),
	{.version = "2027-01-01"}, 400, -32602, X, "1"},
    {"modern header, notification",
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}",
	{.version = V26}, 0, 0, M, NULL},
    {"modern header, notification, other Mcp-Method",
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}",
	{.version = V26, .method = "x"}, 400, -32020, X, NULL},

    /* 6: envelope types, then headers */
    {"version is a number", REQ("tools/list", ENV_V("1")),
	{.version = V26, .method = "tools/list"}, 400, -32602, X, "1"},
    {"no capabilities",
	REQ("tools/list",
	    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
	    "\"" V26 "\"}"),
	{.version = V26, .method = "tools/list"}, 400, -32602, X, "1"},
    {"capabilities an array",
	REQ("tools/list",
	    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
	    "\"" V26 "\",\"io.modelcontextprotocol/clientCapabilities\":[]}"),
	{.version = V26, .method = "tools/list"}, 400, -32602, X, "1"},
    {"clientInfo a string",
	REQ("tools/list",
	    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
	    "\"" V26 "\",\"io.modelcontextprotocol/clientCapabilities\":{},"
	    "\"io.modelcontextprotocol/clientInfo\":\"x\"}"),
	{.version = V26, .method = "tools/list"}, 400, -32602, X, "1"},
    {"clientInfo without version",
	REQ("tools/list",
	    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
	    "\"" V26 "\",\"io.modelcontextprotocol/clientCapabilities\":{},"
	    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"x\"}}"),
	{.version = V26, .method = "tools/list"}, 400, -32602, X, "1"},
    {"log level unknown",
	REQ("tools/list",
	    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
	    "\"" V26 "\",\"io.modelcontextprotocol/clientCapabilities\":{},"
	    "\"io.modelcontextprotocol/logLevel\":\"loud\"}"),
	{.version = V26, .method = "tools/list"}, 400, -32602, X, "1"},
    {"envelope before headers",
	REQ("tools/list",
	    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"
	    "\"" V26 "\"}"),
	{.version = V25}, 400, -32602, X, "1"},
    {"header missing", REQ("tools/list", ENV), {.method = "tools/list"}, 400,
	-32020, X, "1"},
    {"header of another version (claude.ai)", REQ("tools/list", ENV),
	{.version = V25, .method = "tools/list"}, 400, -32020, X, "1"},
    {"header differs from an unknown claim",
	REQ("tools/list", ENV_V("\"2027-01-01\"")),
	{.version = V26, .method = "tools/list"}, 400, -32020, X, "1"},
    {"Mcp-Method missing", REQ("tools/list", ENV), {.version = V26}, 400,
	-32020, X, "1"},
    {"Mcp-Method differs", REQ("tools/list", ENV),
	{.version = V26, .method = "tools/call"}, 400, -32020, X, "1"},
    {"Mcp-Method in other case", REQ("tools/list", ENV),
	{.version = V26, .method = "Tools/List"}, 400, -32020, X, "1"},

    /* 7: version */
    {"future version", REQ("tools/list", ENV_V("\"2027-01-01\"")),
	{.version = "2027-01-01", .method = "tools/list"}, 400, -32022, X, "1"},
    {"legacy version claimed", REQ("tools/list", ENV_V("\"" V25 "\"")),
	{.version = V25, .method = "tools/list"}, 400, -32022, X, "1"},
    {"version before method", REQ("nope", ENV_V("\"2027-01-01\"")),
	{.version = "2027-01-01", .method = "nope"}, 400, -32022, X, "1"},

    /* 8: method */
    {"ping was removed", REQ("ping", ENV), {.version = V26, .method = "ping"},
	404, -32601, M, "1"},
    {"logging/setLevel was removed", REQ("logging/setLevel", ENV),
	{.version = V26, .method = "logging/setLevel"}, 404, -32601, M, "1"},
    {"unknown method", REQ("nope", ENV), {.version = V26, .method = "nope"},
	404, -32601, M, "1"},
    {"method before name", REQ("prompts/nope", "\"name\":\"a\"," ENV),
	{.version = V26, .method = "prompts/nope"}, 404, -32601, M, "1"},

    /* 9: Mcp-Name */
    {"Mcp-Name missing", REQ("tools/call", "\"name\":\"a\"," ENV),
	{.version = V26, .method = "tools/call"}, 400, -32020, M, "1"},
    {"Mcp-Name differs", REQ("tools/call", "\"name\":\"a\"," ENV),
	{.version = V26, .method = "tools/call", .name = "b"}, 400, -32020, M,
	"1"},
    {"Mcp-Name in other case", REQ("tools/call", "\"name\":\"a\"," ENV),
	{.version = V26, .method = "tools/call", .name = "A"}, 400, -32020, M,
	"1"},
    {"Mcp-Name base64", REQ("tools/call", "\"name\":\"abc\"," ENV),
	{.version = V26, .method = "tools/call", .name = "=?base64?YWJj?="}, 0,
	0, M, "1"},
    {"Mcp-Name base64 differs", REQ("tools/call", "\"name\":\"abd\"," ENV),
	{.version = V26, .method = "tools/call", .name = "=?base64?YWJj?="},
	400, -32020, M, "1"},
    {"Mcp-Name bad base64", REQ("tools/call", "\"name\":\"abc\"," ENV),
	{.version = V26, .method = "tools/call", .name = "=?base64?YWJj=?="},
	400, -32020, M, "1"},
    {"Mcp-Name with an escaped name",
	REQ("tools/call", "\"name\":\"\\u0061bc\"," ENV),
	{.version = V26, .method = "tools/call", .name = "abc"}, 0, 0, M, "1"},
    {"name before params",
	REQ("tools/call", "\"name\":\"a\",\"arguments\":[]," ENV),
	{.version = V26, .method = "tools/call", .name = "b"}, 400, -32020, M,
	"1"},

    /* 12: params, in band */
    {"modern, no name", REQ("tools/call", ENV),
	{.version = V26, .method = "tools/call"}, 200, -32602, M, "1"},
    {"modern, arguments an array",
	REQ("tools/call", "\"name\":\"a\",\"arguments\":[]," ENV),
	{.version = V26, .method = "tools/call", .name = "a"}, 200, -32602, M,
	"1"},
    {"modern, cursor a number", REQ("tools/list", "\"cursor\":1," ENV),
	{.version = V26, .method = "tools/list"}, 200, -32602, M, "1"},
    {"modern, any cursor", REQ("tools/list", "\"cursor\":\"x\"," ENV),
	{.version = V26, .method = "tools/list"}, 0, 0, M, "1"},
    {"modern, good", REQ("server/discover", ENV),
	{.version = V26, .method = "server/discover"}, 0, 0, M, "1"},
    {"legacy, any cursor", REQ("tools/list", "\"cursor\":\"x\""),
	{.version = V25}, 0, 0, L, "1"},
    {"legacy, cursor a number", REQ("tools/list", "\"cursor\":1"),
	{.version = V25}, 200, -32602, L, "1"},
    {"legacy, no name", REQ("tools/call", "\"arguments\":{}"), {.version = V25},
	200, -32602, L, "1"},
    {"legacy, name a number", REQ("tools/call", "\"name\":1"), {.version = V25},
	200, -32602, L, "1"},
    {"legacy, arguments null",
	REQ("tools/call", "\"name\":\"a\",\"arguments\":null"),
	{.version = V25}, 0, 0, L, "1"},
    {"legacy, null for all that may be left out",
	REQ("tools/list", "\"cursor\":null,\"_meta\":null"), {.version = V25},
	0, 0, L, "1"},
    {"legacy, arguments an array",
	REQ("tools/call", "\"name\":\"a\",\"arguments\":[]"), {.version = V25},
	200, -32602, L, "1"},
    {"legacy, _meta a string",
	REQ("tools/call", "\"name\":\"a\",\"_meta\":\"x\""), {.version = V25},
	200, -32602, L, "1"},
    {"legacy, progressToken an object",
	REQ("tools/call", "\"name\":\"a\",\"_meta\":{\"progressToken\":{}}"),
	{.version = V25}, 200, -32602, L, "1"},
    {"legacy, name with NUL", REQ("tools/call", "\"name\":\"a\\u0000b\""),
	{.version = V25}, 200, -32602, L, "1"},
    {"initialize without a version", REQ("initialize", ""), {0}, 200, -32602, L,
	"1"},

    /* legacy: the rest */
    {"legacy, unknown method", REQ("nope", ""), {.version = V25}, 200, -32601,
	L, "1"},
    {"legacy, server/discover", REQ("server/discover", ""), {0}, 200, -32601, L,
	"1"},
    {"legacy, unsupported header", REQ("ping", ""), {.version = "2024-11-05"},
	400, -32600, X, "1"},
    {"legacy, nonsense header", REQ("ping", ""), {.version = "1"}, 400, -32600,
	X, "1"},
    {"legacy, no header", REQ("ping", ""), {0}, 0, 0, L, "1"},
    {"legacy notification, unknown",
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/whatever\"}",
	{.version = V25}, 0, 0, L, NULL},

    /* the id, byte for byte */
    {"id with an escape",
	"{\"jsonrpc\":\"2.0\",\"id\":\"\\u0041\\/\",\"method\":\"x\"}",
	{.version = V25}, 200, -32601, L, "\"\\u0041\\/\""},
    {"id large",
	"{\"jsonrpc\":\"2.0\",\"id\":-12345678901234567890,"
	"\"method\":\"x\"}",
	{.version = V25}, 200, -32601, L, "-12345678901234567890"},
    {"id last", "{\"method\":\"x\",\"jsonrpc\":\"2.0\", \"id\" : 0 }",
	{.version = V25}, 200, -32601, L, "0"},
};

static void
test_ladder(void **state)
{
	(void)state;
	check_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

static void
test_fields(void **state)
{
	static const struct mcp_headers none;
	static const struct mcp_headers modern = {
	    .version = V26, .method = "tools/call", .name = "a_b"};
	struct mcp_message m;

	(void)state;
	m = read_one(REQ("initialize",
			 "\"protocolVersion\":\"2025-06-18\",\"capabilities\":"
			 "{\"x\":{}},\"clientInfo\":{\"name\":\"c\","
			 "\"version\":\"1\"}"),
	    &none);
	assert_string_equal(m.offered, "2025-06-18");
	assert_true(ipc_streq(m.capabilities, "{\"x\":{}}"));
	assert_string_equal(m.client, "c 1");

	m = read_one(
	    " {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"a_b\",\"arguments\": {\"k\" : [1, 2]} ,"
	    "\"_meta\":{\"progressToken\":\"t\\u0031\","
	    "\"io.modelcontextprotocol/protocolVersion\":\"" V26 "\","
	    "\"io.modelcontextprotocol/clientCapabilities\":{\"s\":1},"
	    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"n\","
	    "\"version\":\"v\"},"
	    "\"io.modelcontextprotocol/logLevel\":\"warning\"}}} ",
	    &modern);
	assert_int_equal(m.error.failure, FAILURE_NONE);
	assert_true(m.modern);
	assert_int_equal(m.rev, MCP_REV_2026_07_28);
	assert_int_equal(m.method, MCP_TOOLS_CALL);
	assert_string_equal(m.tool, "a_b");
	assert_true(ipc_streq(m.arguments, "{\"k\" : [1, 2]}"));
	assert_true(ipc_streq(m.progress_token, "\"t\\u0031\""));
	assert_true(ipc_streq(m.capabilities, "{\"s\":1}"));
	assert_string_equal(m.client, "n v");
	assert_int_equal(m.log_level, 3);

	m = read_one(REQ("tools/call", "\"name\":\"a\""), &none);
	assert_true(ipc_streq(m.arguments, "{}"));
	assert_int_equal(m.progress_token.n, 0);
	assert_int_equal(m.log_level, -1);
	assert_int_equal(m.rev, MCP_REV_2025_03_26);
	assert_false(m.rev_named);

	m = read_one(
	    "{\"jsonrpc\":\"2.0\",\"method\":"
	    "\"notifications/cancelled\",\"params\":{\"requestId\":7}}",
	    &none);
	assert_int_equal(m.kind, MCP_NOTIFICATION);
	assert_int_equal(m.method, MCP_CANCELLED);
	assert_true(ipc_streq(m.cancel_id, "7"));
}

static void
test_unsupported_data(void **state)
{
	static const struct mcp_headers h = {
	    .version = "2099-01-01", .method = "tools/list"};
	struct mcp_message m;

	(void)state;
	m = read_one(REQ("tools/list", ENV_V("\"2099-01-01\"")), &h);
	assert_string_equal(m.error.data,
	    "\"supported\":[\"2026-07-28\"],\"requested\":\"2099-01-01\"");
}

static void
test_arrays(void **state)
{
	static const struct mcp_headers none;
	struct mcp_body b;
	struct mcp_error e;
	struct ipc_bytes id;
	char text[4096];
	int i, n;

	(void)state;
	for (n = 1; n <= 17; n++) {
		snprintf(text, sizeof(text), "[");
		for (i = 0; i < n; i++)
			snprintf(text + strlen(text),
			    sizeof(text) - strlen(text),
			    "%s {\"a\":[\"],[\\\"\",%d]} ", i > 0 ? "," : "",
			    i);
		strncat(text, "]", sizeof(text) - strlen(text) - 1);
		assert_int_equal(mcp_request_split((uint8_t *)text,
				     strlen(text), &none, -1, &b, &id, &e),
		    n <= 16 ? 0 : -1);
		if (n <= 16) {
			assert_int_equal(b.n, n);
			assert_int_equal(b.member[n - 1].p[0], '{');
			assert_int_equal(
			    b.member[n - 1].p[b.member[n - 1].n - 1], '}');
		} else {
			assert_int_equal(e.failure, FAILURE_INVALID_REQUEST);
		}
	}
	/* The session's revision forbids it when no header speaks. */
	assert_int_equal(mcp_request_split((const uint8_t *)"[{}]", 4, &none,
			     MCP_REV_2025_11_25, &b, &id, &e),
	    -1);
	assert_int_equal(mcp_request_split((const uint8_t *)"[{}]", 4, &none,
			     MCP_REV_2025_03_26, &b, &id, &e),
	    0);
}

static void
test_header_decode(void **state)
{
	static const struct {
		const char *in, *out;
	} t[] = {{"plain", "plain"}, {"", ""},
	    {"=?base64?"
	     "?=",
		""},
	    {"=?base64?YQ==?=", "a"}, {"=?base64?YWI=?=", "ab"},
	    {"=?base64?w6k=?=", "\xc3\xa9"},
	    {"=?Base64?YQ==?=", "=?Base64?YQ==?="}, {"=?base64?YQ?=", NULL},
	    {"=?base64?YR==?=", NULL}, {"=?base64?Y===?=", NULL},
	    {"=?base64?YQ==YQ==?=", NULL}, {"=?base64?Y Q=?=", NULL},
	    {"=?base64?/w==?=", NULL}, {"=?base64?AA==?=", NULL},
	    {"=?base64?_w==?=", NULL}};
	char out[64], small[3];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		int rc = mcp_header_decode(t[i].in, out, sizeof(out));

		if ((rc == 0) != (t[i].out != NULL))
			fail_msg("%s", t[i].in);
		if (rc == 0)
			assert_string_equal(out, t[i].out);
	}
	assert_int_equal(mcp_header_decode("abc", small, sizeof(small)), -1);
	assert_int_equal(
	    mcp_header_decode("=?base64?YWJj?=", small, sizeof(small)), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ladder),
	    cmocka_unit_test(test_fields),
	    cmocka_unit_test(test_unsupported_data),
	    cmocka_unit_test(test_arrays),
	    cmocka_unit_test(test_header_decode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
