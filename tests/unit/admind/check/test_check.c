/*
 * admind-check's verdicts: what each error says and where, exact numbers,
 * budgets that end hostile input early, management fields, inspections.
 */
#include <time.h>

#include "check.h"
#include "check_said.h"
#include "forms.h"
#include "management_tools.h"
#include "num.h"
#include "tlv.h"
#include "unit.h"

static void
all_errors_together(void **state)
{
	const char *schema =
	    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":"
	    "\"string\",\"maxLength\":3},\"n\":{\"type\":\"integer\","
	    "\"minimum\":1},\"list\":{\"type\":\"array\",\"items\":{\"type\":"
	    "\"object\",\"properties\":{\"a/"
	    "b\":{\"enum\":[1,\"x\"]}}}},\"chat\":{}},"
	    "\"required\":[\"name\",\"chat\"],\"additionalProperties\":false}";

	assert_int_equal(
	    args(schema,
		"{\"name\":\"abcd\",\"n\":0.5,\"chat_id\":1,\"list\":[{},"
		"{\"a/b\":2}]}"),
	    FAILURE_INVALID_ARGUMENTS);
	assert_true(has("/name", "must have at most 3 characters, has 4"));
	assert_true(has("/n", "must be an integer, not a number"));
	assert_true(has("/chat", "is required"));
	assert_true(
	    has("/chat_id", "is unknown; known are name, n, list, chat"));
	assert_true(has("/list/1/a~1b", "must be one of [1,\\\"x\\\"]"));
	assert_int_equal(args(schema, "[]"), FAILURE_INVALID_ARGUMENTS);
	assert_true(has("", "must be an object, not an array"));
	assert_int_equal(args(schema,
			     "{\"name\":\"\xc3\xa9\xc3\xa9\xc3\xa9\","
			     "\"chat\":null,\"n\":1.0}"),
	    FAILURE_NONE);
	/* At most REPORT_MAX in the list. */
	{
		char many[2000] = "{\"name\":1";
		size_t n = strlen(many);
		unsigned count = 0;

		for (int i = 0; i < 100; i++)
			n += (size_t)snprintf(
			    many + n, sizeof(many) - n, ",\"x%d\":1", i);
		snprintf(many + n, sizeof(many) - n, "}");
		assert_int_equal(args(schema, many), FAILURE_INVALID_ARGUMENTS);
		for (const char *p = text; (p = strstr(p, "pointer")); p++)
			count++;
		assert_int_equal(count, REPORT_MAX);
	}
}

static void
numbers_are_exact(void **state)
{
	static const struct {
		const char *rule, *value;
		bool valid;
	} rows[] = {
	    {"\"type\":\"integer\"", "1.0", true},
	    {"\"type\":\"integer\"", "1e30", true},
	    {"\"type\":\"integer\"", "12.5e1", true},
	    {"\"type\":\"integer\"", "1e-1", false},
	    {"\"type\":\"integer\"", "0.0e-5", true},
	    {"\"type\":\"integer\"", "100000000000000000000000001", true},
	    {"\"maximum\":9007199254740992", "9007199254740993", false},
	    {"\"maximum\":9007199254740993", "9007199254740993.0", true},
	    {"\"exclusiveMinimum\":0.1", "0.1000000000000000000001", true},
	    {"\"exclusiveMinimum\":0.1", "1e-1", false},
	    {"\"minimum\":-1e2", "-100", true},
	    {"\"minimum\":-1e2", "-100.0000000000000000000001", false},
	    {"\"multipleOf\":0.1", "0.3", true},
	    {"\"multipleOf\":0.01", "19.99", true},
	    {"\"multipleOf\":0.01", "19.995", false},
	    {"\"multipleOf\":7", "70000000000000000000000000007", true},
	    {"\"multipleOf\":7", "70000000000000000000000000008", false},
	    {"\"multipleOf\":3", "3e300", true},
	    {"\"multipleOf\":7", "1e300", false},
	    {"\"const\":1", "1.00e0", true},
	    {"\"const\":0", "-0.0", true},
	    {"\"enum\":[100]", "1e2", true},
	    {"\"const\":{\"a\":[1,2],\"b\":\"x\"}",
		"{\"\\u0062\":\"\\u0078\",\"a\":[1.0,2e0]}", true},
	    {"\"const\":[1,2]", "[2,1]", false},
	    {"\"const\":true", "1", false},
	    {"\"uniqueItems\":true", "[1,2,10e-1]", false},
	    {"\"uniqueItems\":true", "[[1,2],[2,1],{\"a\":1},{\"b\":1}]", true},
	    {"\"maxLength\":1", "\"\\ud83d\\ude00\"", true},
	    {"\"minimum\":0", "\"text\"", true},
	};
	char schema[500], value[500];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(
		    schema, sizeof(schema), OBJ("\"v\":{%s}"), rows[i].rule);
		snprintf(value, sizeof(value), "{\"v\":%s}", rows[i].value);
		if ((args(schema, value) == FAILURE_NONE) != rows[i].valid)
			fail_msg(
			    "%s %s: %s", rows[i].rule, rows[i].value, text);
	}
}

/* Processor time of judging whether so many elements are unique, the least of
 * three turns. */
static clock_t
unique(char *big, size_t size, int elements)
{
	size_t n = (size_t)snprintf(big, size, "{\"v\":[0");
	clock_t least = 0, from;

	for (int i = 1; i < elements; i++)
		n += (size_t)snprintf(big + n, size - n, ",%d", i);
	snprintf(big + n, size - n, "]}");
	for (int turn = 0; turn < 3; turn++) {
		from = clock();
		assert_int_equal(args(OBJ("\"v\":{\"uniqueItems\":true}"), big),
		    FAILURE_NONE);
		from = clock() - from;
		if (turn == 0 || from < least)
			least = from;
	}
	return least;
}

/* Each of these would take seconds to for ever without its bound. */
static void
hostile_input_ends_early(void **state)
{
	static char big[300000];
	clock_t few, many;
	size_t n;

	/* References that go nowhere. */
	assert_int_equal(
	    args("{\"type\":\"object\",\"$ref\":\"#\"}", "{}"), FAILURE_LIMIT);
	assert_int_equal(
	    args("{\"type\":\"object\",\"$defs\":{\"a\":{\"anyOf\":"
		 "[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/"
		 "a\"}]}},\"allOf\":"
		 "[{\"$ref\":\"#/$defs/a\"}]}",
		"{}"),
	    FAILURE_LIMIT);
	/* Exponentially many alternatives. */
	assert_int_equal(
	    args("{\"type\":\"object\",\"$defs\":{\"t\":{"
		 "\"properties\":{\"a\":{\"oneOf\":[{\"$ref\":\"#/$defs/t\"},"
		 "{\"$ref\":\"#/$defs/t\"},{\"$ref\":\"#/$defs/t\"},"
		 "{\"$ref\":\"#/$defs/t\"}]}}}},\"$ref\":\"#/$defs/t\"}",
		"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{"
		"\"a\":"
		"{\"a\":{\"a\":{\"a\":{\"a\":1}}}}}}}}}}}}}"),
	    FAILURE_LIMIT);
	/* Backtracking, at one place and at every place. */
	n = (size_t)snprintf(big, sizeof(big), "{\"v\":\"");
	memset(big + n, 'a', 40);
	memcpy(big + n + 40, "!\"}", 4);
	assert_int_equal(
	    args(OBJ("\"v\":{\"pattern\":\"^(a|aa)+$\"}"), big), FAILURE_LIMIT);
	memset(big + n, 'a', 100000);
	memcpy(big + n + 100000, "!\"}", 4);
	assert_int_equal(
	    args(OBJ("\"v\":{\"pattern\":\"(a|aa)+$\"}"), big), FAILURE_LIMIT);
	/* The square of the text's length, without any backtracking. */
	assert_int_equal(args(OBJ("\"v\":{\"pattern\":\"[a-z]+[0-9]\"}"), big),
	    FAILURE_LIMIT);
	/* Long texts that do match, at the front and at the very end. */
	assert_int_equal(
	    args(OBJ("\"v\":{\"pattern\":\"^[a-z]+!$\"}"), big), FAILURE_NONE);
	memset(big + n + 3000, 'b', 1);
	memcpy(big + n + 3001, "\xc3\xa9\"}", 5);
	assert_int_equal(args(OBJ("\"v\":{\"pattern\":\"b\\\\u00e9$\"}"), big),
	    FAILURE_NONE);
	assert_int_equal(args(OBJ("\"v\":{\"pattern\":\"c$\"}"), big),
	    FAILURE_INVALID_ARGUMENTS);
	assert_int_equal(
	    args(OBJ("\"v\":{\"pattern\":\"$\"}"), big), FAILURE_NONE);
	/* Many equal hashes cannot be made cheaply, but many elements can. */
	few = unique(big, sizeof(big), 3000);
	many = unique(big, sizeof(big), 30000);
	printf("unique: %ld us, of ten times as many %ld us\n", (long)few,
	    (long)many);
	/* Each with each would be a hundred times as much. */
	assert_true(many < 40 * few);
}

static struct ipc_bytes
field(const struct check *c, uint8_t tag)
{
	struct tlv t;

	if (tlv_find(c->fields.p, c->fields.len, tag, &t) != 1)
		return ipc_bytes(NULL, 0);
	return ipc_bytes(t.p, t.n);
}

static void
management_fields(void **state)
{
	const char *good =
	    "{\"server_id\":\"0190A0b0-0000-7000-8000-0000000000ff\",\"name\":"
	    "\"greet\",\"python_code\":\"def main():\\n  return 1\","
	    "\"input_schema\":{ \"type\" : \"object\" },\"secrets\":[\"B_2\","
	    "\"A\",\"B\"],\"modules\":[],\"confirm\":true,\"limits\":{"
	    "\"timeout_ms\":1.5e3},\"meta\":{\"k\":[1]}}";
	struct check c;
	struct tlv_reader r;
	struct tlv t;
	uint64_t u;
	char seen[64] = "";

	check_management(&c, ipc_str("mcpbox_create_tool"), ipc_str(good));
	if (errors(&c))
		fail_msg("%s %s", c.summary, text);
	assert_int_equal(field(&c, MF_SERVER_ID).n, 16);
	assert_memory_equal(field(&c, MF_SERVER_ID).p, "\x01\x90\xa0\xb0", 4);
	assert_true(ipc_streq(field(&c, MF_CODE), "def main():\n  return 1"));
	assert_true(
	    ipc_streq(field(&c, MF_INPUT_SCHEMA), "{ \"type\" : \"object\" }"));
	assert_true(ipc_streq(field(&c, MF_META), "{\"k\":[1]}"));
	assert_int_equal(
	    tlv_find(c.fields.p, c.fields.len, MF_TIMEOUT_MS, &t), 1);
	assert_int_equal(tlv_u64(&t, &u), 0);
	assert_int_equal(u, 1500);
	assert_int_equal(tlv_find(c.fields.p, c.fields.len, MF_MODULE, &t), 1);
	assert_int_equal(t.n, 0);
	assert_int_equal(tlv_find(c.fields.p, c.fields.len, MF_TITLE, &t), 0);
	tlv_open(&r, c.fields.p, c.fields.len);
	while (tlv_next(&r, &t) == 1)
		if (t.tag == MF_SECRET) {
			strncat(seen, (const char *)t.p, t.n);
			strncat(seen, " ", 2);
		}
	assert_string_equal(seen, "A B B_2 ");
	check_free(&c);
}

/* A name where an id is taken is a field of its own; an id never is. */
static void
management_names(void **state)
{
	struct check c;

	check_management(&c, ipc_str("mcpbox_update_prompt"),
	    ipc_str("{\"prompt_id\":\"abcdefghijklmnop\",\"title\":\"t\"}"));
	assert_false(errors(&c));
	assert_int_equal(field(&c, MF_PROMPT_ID).n, 0);
	assert_true(
	    ipc_streq(field(&c, MF_PROMPT_ID + MF_NAMED), "abcdefghijklmnop"));
	check_free(&c);
	check_management(&c, ipc_str("mcpbox_get_tool"),
	    ipc_str("{\"tool_id\":\"DEADBEEF-0000-7000-8000-000000000001\"}"));
	assert_false(errors(&c));
	assert_int_equal(field(&c, MF_TOOL_ID).n, 16);
	assert_int_equal(field(&c, MF_TOOL_ID + MF_NAMED).n, 0);
	check_free(&c);
}

static void
management_refusals(void **state)
{
#define ID   "\"server_id\":\"0190a0b0-0000-7000-8000-000000000001\""
#define TOOL ID ",\"name\":\"n\",\"python_code\":\"x\""
	static const struct {
		const char *tool, *args, *pointer, *message;
	} rows[] = {
	    {"create_server", "{\"name\":\"a__b\"}", "/name",
		"must be of lower-case letters, digits and single underscores"},
	    {"create_server", "{\"name\":\"A\"}", "/name",
		"must be of lower-case letters"},
	    {"create_server", "{\"name\":\"a\\n\"}", "/name",
		"must be of lower-case letters"},
	    {"create_server", "{\"name\":\"abcdefghijklmnopqrstuvwxy\"}",
		"/name", "must have at most 24"},
	    {"create_server", "{}", "/name", "is required"},
	    {"create_server", "{\"name\":\"a\",\"status\":\"x\"}", "/status",
		"is unknown; known are name, description"},
	    {"create_server", "{\"name\":\"a\",\"description\":\"\\u0000\"}",
		"/description", "must not contain U+0000"},
	    {"list_servers", "{\"page\":0,\"page_size\":101}", "/page",
		"must be at least 1"},
	    {"list_servers", "{\"page\":0,\"page_size\":101}", "/page_size",
		"must be at most 100"},
	    {"start_server", "{\"server_id\":\"7\"}", "/server_id",
		"must be an id (a uuid) or a name"},
	    {"get_tool_logs", "{\"tool_id\":\"a\",\"execution_id\":\"a\"}",
		"/execution_id", "must be an id (a uuid) as"},
	    {"request_module",
		"{\"tool_id\":\"a\",\"module_name\":\"a b\","
		"\"justification\":\"x\"}",
		"/module_name", "must be a package's name on the index"},
	    {"create_tool",
		"{" TOOL ",\"input_schema\":{\"type\":"
		"\"object\",\"unevaluatedItems\":{}}}",
		"/input_schema/unevaluatedItems",
		"the keyword unevaluatedItems is not supported"},
	    {"create_tool",
		"{" TOOL ",\"input_schema\":{\"type\":\"object\",\"allOf\":[{"
		"\"properties\":{\"a\":{\"type\":\"string\","
		"\"x-mcp-header\":\"A\"}}}]}}",
		"/input_schema/allOf/0/properties/a/x-mcp-header",
		"is allowed on properties of the arguments only"},
	    {"create_tool", "{" TOOL ",\"output_schema\":true}",
		"/output_schema", "must be an object"},
	    {"create_tool", "{" TOOL ",\"output_schema\":{\"type\":7}}",
		"/output_schema/type", "must be null, boolean"},
	    {"create_tool", "{" TOOL ",\"input_schema\":{}}", "/input_schema",
		"the schema must have"},
	    {"create_tool", "{" TOOL ",\"secrets\":[\"a\"]}", "/secrets/0",
		"must be of upper-case letters"},
	    {"create_tool", "{" TOOL ",\"secrets\":[\"A\",\"A\"]}", "/secrets",
		"elements 0 and 1 are equal"},
	    {"create_tool",
		"{" TOOL ",\"limits\":{\"timeout_ms\":"
		"600001}}",
		"/limits/timeout_ms", "must be at most 600000"},
	    {"create_tool", "{" TOOL ",\"task\":\"maybe\"}", "/task",
		"must be one of"},
	    {"update_tool", "{\"enabled\":1}", "/enabled",
		"must be true or false"},
	    {"update_tool", "{\"enabled\":1}", "/tool_id", "is required"},
	    {"list_pending_requests", "{\"x\":1}", "/x",
		"is unknown: there are no arguments here"},
	};
	static char big[120000];
	char tool[64];
	struct check c;
	size_t n;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(tool, sizeof(tool), "mcpbox_%s", rows[i].tool);
		check_management(&c, ipc_str(tool), ipc_str(rows[i].args));
		if (!errors(&c) || !has(rows[i].pointer, rows[i].message))
			fail_msg("%s %s: %s", tool, rows[i].args, text);
		assert_int_equal(c.failure, FAILURE_INVALID_ARGUMENTS);
		check_free(&c);
	}
	/* 50,001 characters of two bytes: few characters, too many bytes. */
	n = (size_t)snprintf(big, sizeof(big),
	    "{" ID ",\"name\":\"n\","
	    "\"python_code\":\"");
	for (int i = 0; i < 50001; i++, n += 2)
		memcpy(big + n, "\xc3\xa9", 2);
	memcpy(big + n, "\"}", 3);
	check_management(&c, ipc_str("mcpbox_create_tool"), ipc_str(big));
	assert_true(errors(&c));
	assert_true(has("/python_code", "must have at most 100000 bytes"));
	check_free(&c);
	check_management(&c, ipc_str("mcpbox_nothing"), ipc_str("{}"));
	assert_false(c.ok);
	assert_int_equal(c.failure, FAILURE_UNKNOWN_TOOL);
	check_free(&c);
}

/* Every published schema is one that we would take from others. */
static void
published_schemas_compile(void **state)
{
	size_t n;
	const struct management_tool *t = management_tools(&n);
	struct check c;
	struct buf b;
	struct doc d;
	struct err e;

	assert_int_equal(n, 43);
	for (size_t i = 0; i < n; i++) {
		check_schema(&c, ipc_str(t[i].input_schema));
		if (errors(&c))
			fail_msg("%s: %s", t[i].name, text);
		check_free(&c);
		/* mcpbox_call_tool passes on what another tool says. */
		assert_int_equal(t[i].output_schema == NULL,
		    strcmp(t[i].name, "mcpbox_call_tool") == 0);
		if (t[i].output_schema != NULL) {
			check_schema(&c, ipc_str(t[i].output_schema));
			if (errors(&c))
				fail_msg("%s: output: %s", t[i].name, text);
			check_free(&c);
		}
		/* What only reads destroys nothing. */
		assert_false(
		    t[i].read_only && (t[i].destructive || !t[i].idempotent));
		buf_init(&b, 1 << 20);
		management_tool_json(&t[i], &b);
		assert_int_equal(doc_parse(&d, b.p, b.len, &e), 0);
		assert_non_null(doc_get(&d, &d.node[0], "inputSchema"));
		doc_free(&d);
		buf_free(&b);
		assert_ptr_equal(management_tool(ipc_str(t[i].name)), &t[i]);
	}
	assert_null(management_tool(ipc_str("mcpbox_")));
}

static void
inspections(void **state)
{
	struct check c;
	struct tlv_reader r;
	struct tlv t;
	unsigned lines = 0;

	check_inspection(&c,
	    ipc_str(
		"{\"ok\":true,\"input_schema\":{\"type\":"
		"\"object\",\"required\":[]},\"doc\":\" \\n Greets.\\u0000 \","
		"\"is_async\":false,\"more\":1}"));
	if (errors(&c))
		fail_msg("%s", text);
	assert_int_equal(field(&c, INSPECT_OK).p[7], 1);
	assert_true(ipc_streq(field(&c, INSPECT_INPUT_SCHEMA),
	    "{\"type\":\"object\",\"required\":[]}"));
	assert_true(ipc_streq(field(&c, INSPECT_DOC), "Greets. "));
	check_free(&c);

	check_inspection(&c,
	    ipc_str("{\"ok\":false,\"error\":{\"type\":"
		    "\"SyntaxError\",\"message\":\"bad\",\"line\":3,\"column\":"
		    "null,"
		    "\"code_context\":[\"a\",\"b\"]}}"));
	assert_true(c.ok);
	assert_int_equal(field(&c, INSPECT_OK).p[7], 0);
	assert_true(ipc_streq(field(&c, INSPECT_ERROR_TYPE), "SyntaxError"));
	assert_int_equal(field(&c, INSPECT_ERROR_LINE).p[7], 3);
	assert_null(field(&c, INSPECT_ERROR_COLUMN).p);
	tlv_open(&r, c.fields.p, c.fields.len);
	while (tlv_next(&r, &t) == 1)
		lines += t.tag == INSPECT_ERROR_CONTEXT;
	assert_int_equal(lines, 2);
	check_free(&c);

	{
		static const char *const bad[] = {"", "[]", "{}", "{\"ok\":1}",
		    "{\"ok\":true}",
		    "{\"ok\":true,\"input_schema\":{\"type\":\"string\"},"
		    "\"doc\":null,\"is_async\":false}",
		    "{\"ok\":true,\"input_schema\":{\"type\":\"object\","
		    "\"required\":null},\"doc\":null,\"is_async\":false}",
		    "{\"ok\":true,\"input_schema\":{\"type\":\"object\"},"
		    "\"doc\":1,\"is_async\":false}",
		    "{\"ok\":false}", "{\"ok\":false,\"error\":{}}",
		    "{\"ok\":false,\"error\":{\"type\":\"a\",\"message\":"
		    "\"b\",\"line\":-1}}",
		    "{\"ok\":false,\"error\":{\"type\":\"a\",\"message\":"
		    "\"b\",\"code_context\":[1]}}"};

		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			check_inspection(&c, ipc_str(bad[i]));
			if (c.ok)
				fail_msg("accepted %s", bad[i]);
			assert_int_equal(c.failure, FAILURE_BAD_CODE);
			check_free(&c);
		}
	}
}

static void
num_edges(void **state)
{
	static const struct {
		const char *a, *b;
		int cmp;
	} rows[] = {{"0", "-0.000e9", 0}, {"1", "-1", 1}, {"-2", "-1", -1},
	    {"0.001", "1e-3", 0}, {"10", "9.999", 1},
	    {"1e999999999999999", "1e9", 1}, {"-1e99", "-1e98", -1},
	    {"100.50", "100.5", 0}, {"1e-400", "0", 1}, {"0.0100e2", "1", 0}};
	struct num a, b;
	uint64_t u;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		a = num_read((const uint8_t *)rows[i].a, strlen(rows[i].a));
		b = num_read((const uint8_t *)rows[i].b, strlen(rows[i].b));
		assert_int_equal(num_cmp(&a, &b), rows[i].cmp);
		assert_int_equal(num_cmp(&b, &a), -rows[i].cmp);
		if (rows[i].cmp == 0)
			assert_int_equal(num_hash(&a), num_hash(&b));
	}
	a = num_read((const uint8_t *)"18446744073709551615", 20);
	assert_true(num_u64(&a, UINT64_MAX, &u));
	assert_true(u == UINT64_MAX);
	a = num_read((const uint8_t *)"18446744073709551616", 20);
	assert_false(num_u64(&a, UINT64_MAX, &u));
	a = num_read((const uint8_t *)"1e19", 4);
	assert_true(num_u64(&a, UINT64_MAX, &u));
	a = num_read((const uint8_t *)"1e20", 4);
	assert_false(num_u64(&a, UINT64_MAX, &u));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_errors_together),
	    cmocka_unit_test(numbers_are_exact),
	    cmocka_unit_test(hostile_input_ends_early),
	    cmocka_unit_test(management_fields),
	    cmocka_unit_test(management_names),
	    cmocka_unit_test(management_refusals),
	    cmocka_unit_test(published_schemas_compile),
	    cmocka_unit_test(inspections),
	    cmocka_unit_test(num_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
