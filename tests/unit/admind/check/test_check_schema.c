/*
 * The subset of JSON Schema: what is refused and where, what each keyword
 * says, x-mcp-header, results.
 */
#include "check_said.h"
#include "unit.h"

static void
schemas_outside_the_subset(void **state)
{
	static const struct {
		const char *schema, *pointer, *message;
	} rows[] = {
	    {"{\"type\":\"string\"}", "", "the schema must have"},
	    {"{\"type\":[\"object\"]}", "", "the schema must have"},
	    {"true", "", "the schema must have"},
	    {"{\"type\":\"object\",\"required\":null}", "/required",
		"must be an array of names (never null)"},
	    {"{\"type\":\"object\",\"required\":[\"a\",\"a\"]}", "/required/1",
		"is listed twice"},
	    {OBJ("\"a\":{\"unevaluatedProperties\":{}}"),
		"/properties/a/unevaluatedProperties",
		"the keyword unevaluatedProperties is not supported: use"},
	    {OBJ("\"a\":{\"dependencies\":{}}"), "/properties/a/dependencies",
		"the keyword dependencies is not supported: write"},
	    {OBJ("\"a\":{\"$dynamicRef\":\"#a\"}"), "/properties/a/$dynamicRef",
		"the keyword $dynamicRef is not"},
	    {OBJ("\"a\":{\"patternProperties\":{\"(\":{}}}"),
		"/properties/a/patternProperties/(",
		"is no regular expression we take: missing closing"},
	    {OBJ("\"a\":{\"patternProperties\":[]}"),
		"/properties/a/patternProperties", "must be an object of"},
	    {OBJ("\"a\":{\"dependentRequired\":[]}"),
		"/properties/a/dependentRequired", "must be an object of arr"},
	    {OBJ("\"a\":{\"dependentRequired\":{\"x/y\":[\"a\",1]}}"),
		"/properties/a/dependentRequired/x~1y/1",
		"must be a property's name"},
	    {OBJ("\"a\":{\"if\":[]}"), "/properties/a/if", "must be a schema"},
	    {OBJ("\"a\":{\"minContains\":\"1\"}"), "/properties/a/minContains",
		"must be an integer from 0"},
	    {OBJ("\"a\":{\"$id\":\"b\",\"not\":{\"$ref\":\"#\"}}"),
		"/properties/a/not/$ref", "is below an $id that is not"},
	    {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#x\"}},"
	     "\"$defs\":{\"p\":{\"$anchor\":\"x\"},\"q\":{\"$anchor\":\"x\"}}}",
		"/properties/a/$ref", "\\\"#x\\\" names no schema"},
	    {OBJ("\"a\":{\"tpye\":\"string\"}"), "/properties/a/tpye",
		"the keyword tpye is not supported"},
	    {"{\"type\":\"object\",\"definitions\":{}}", "/definitions",
		"the keyword definitions is not supported: write $defs"},
	    {OBJ("\"a\":{\"items\":[{}]}"), "/properties/a/items",
		"must be a schema; for a schema each write prefixItems"},
	    {OBJ("\"a\":{\"type\":\"int\"}"), "/properties/a/type",
		"must be null, boolean"},
	    {OBJ("\"a\":{\"pattern\":\"(\"}"), "/properties/a/pattern",
		"is no regular expression we take: missing closing"},
	    {OBJ("\"a\":{\"pattern\":\"(*LIMIT_MATCH=1)a\"}"),
		"/properties/a/pattern", "is no regular expression"},
	    {OBJ("\"a\":{\"pattern\":\"\\\\C\"}"), "/properties/a/pattern",
		"is no regular expression"},
	    {OBJ("\"a\":{\"$ref\":\"http://x/y\"}"), "/properties/a/$ref",
		"\\\"http://x/y\\\" names no schema"},
	    {OBJ("\"a\":{\"allOf\":[{},{\"$ref\":\"#/$defs/none\"},{}]}"),
		"/properties/a/allOf/1/$ref", "\\\"#/$defs/none"},
	    {OBJ("\"a\":{\"$ref\":\"#/type\"}"), "/properties/a/$ref",
		"\\\"#/type"},
	    {OBJ("\"a\":{\"$ref\":\"#/properties/a/x~2\"}"),
		"/properties/a/$ref", "\\\"#/prop"},
	    {OBJ("\"a\":{\"multipleOf\":0}"), "/properties/a/multipleOf",
		"must be a number above 0"},
	    {OBJ("\"a\":{\"minLength\":-1}"), "/properties/a/minLength",
		"must be an integer from 0"},
	    {OBJ("\"a\":{\"anyOf\":[]}"), "/properties/a/anyOf",
		"must be an array of schemas"},
	    {OBJ("\"a\":{\"enum\":[]}"), "/properties/a/enum",
		"must be an array of values"},
	    {OBJ("\"a\":7"), "/properties/a", "must be a schema"},
	    {"{\"type\":\"object\",\"type\":\"object\"}", "",
		"is not strict JSON: byte 18: duplicate name"},
	};
	struct check c;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_schema(&c, ipc_str(rows[i].schema));
		if (!errors(&c) || !has(rows[i].pointer, rows[i].message))
			fail_msg("%s: %s", rows[i].schema, text);
		check_free(&c);
	}
	/* Annotations are kept and not judged. */
	assert_int_equal(
	    args(
		"{\"type\":\"object\",\"$schema\":1,\"$id\":2,"
		"\"$anchor\":3,\"$comment\":4,\"title\":5,\"description\":6,"
		"\"default\":7,\"examples\":8,\"deprecated\":9,\"readOnly\":10,"
		"\"writeOnly\":11,\"x-y\":12,\"format\":13,\"$defs\":{}}",
		"{}"),
	    FAILURE_NONE);
}

/* What the value's members and elements bring with them. */
static void
conditions(void **state)
{
	const char *schema =
	    "{\"type\":\"object\",\"properties\":{\"how\":{\"enum\":[\"phone\","
	    "\"email\"]}},\"if\":{\"properties\":{\"how\":{\"const\":"
	    "\"phone\"}},\"required\":[\"how\"]},\"then\":{\"required\":["
	    "\"number\"]},\"else\":{\"required\":[\"address\"]},"
	    "\"dependentRequired\":{\"card\":[\"holder\",\"until\"]},"
	    "\"dependentSchemas\":{\"until\":{\"properties\":{\"card\":{"
	    "\"type\":\"string\"}}}},\"patternProperties\":{\"^n_\":{"
	    "\"type\":\"integer\"},\"_s$\":{\"maxLength\":2}},"
	    "\"propertyNames\":{\"maxLength\":8,\"not\":{\"const\":\"no\"}},"
	    "\"additionalProperties\":{\"type\":[\"string\",\"array\","
	    "\"number\"],\"contains\":{\"type\":\"integer\"},"
	    "\"maxContains\":2}}";

	assert_int_equal(
	    args(schema,
		"{\"how\":\"phone\",\"card\":1,\"n_a\":\"x\",\"x_s\":\"abc\","
		"\"until\":\"x\",\"no\":\"\",\"too_long_\":\"\","
		"\"l\":[1,2,3],\"m\":[\"x\"],\"f\":true}"),
	    FAILURE_INVALID_ARGUMENTS);
	assert_true(has("/number", "is required"));
	assert_false(has("/address", "is required"));
	assert_true(has("/holder", "is required beside card"));
	assert_false(has("/until", "is required"));
	assert_true(has("/card", "must be a string, not an integer"));
	assert_true(has("/n_a", "must be an integer, not a string"));
	assert_true(has("/x_s", "must have at most 2 characters, has 3"));
	assert_true(has("/no", "is of a form that is excluded"));
	assert_true(has("/too_long_", "must have at most 8 characters"));
	assert_true(has("/l", "must have at most 2 elements of the form"));
	assert_true(has("/m", "must have at least 1 elements of the form"));
	assert_true(has("/f", "must be an array or a string or a number"));
	assert_int_equal(args(schema, "{}"), FAILURE_INVALID_ARGUMENTS);
	assert_true(has("/address", "is required"));
	assert_int_equal(
	    args(schema, "{\"address\":\"x\",\"n_s\":1,\"l\":[1,\"2\",3]}"),
	    FAILURE_NONE);
	/* without `if` the other two mean nothing, and minContains 0 lifts
	 * what contains asks for */
	assert_int_equal(
	    args("{\"type\":\"object\",\"then\":false,\"else\":false,"
		 "\"properties\":{\"a\":{\"minContains\":0,\"contains\":"
		 "false},\"b\":{\"minContains\":5,\"maxContains\":0}}}",
		"{\"a\":[1],\"b\":[1]}"),
	    FAILURE_NONE);
	/* by name */
	assert_int_equal(
	    args("{\"type\":\"object\",\"$id\":\"https://x/\",\"properties\":{"
		 "\"a\":{\"$ref\":\"#short\"}},\"$defs\":{\"s\":{\"$anchor\":"
		 "\"short\",\"maxLength\":1}}}",
		"{\"a\":\"ab\"}"),
	    FAILURE_INVALID_ARGUMENTS);
	assert_true(has("/a", "must have at most 1 characters"));
}

/* The schema that the conformance suite lists byte for byte. */
static void
the_conformance_schema(void **state)
{
	const char *schema =
	    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
	    "\"type\":\"object\",\"$defs\":{\"address\":{\"$anchor\":"
	    "\"addressDef\",\"type\":\"object\",\"properties\":{\"street\":{"
	    "\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"
	    "\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{"
	    "\"$ref\":\"#/$defs/address\"},\"contactMethod\":{\"type\":"
	    "\"string\",\"enum\":[\"phone\",\"email\"]},\"phone\":{\"type\":"
	    "\"string\"},\"email\":{\"type\":\"string\"}},\"allOf\":[{"
	    "\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}"
	    "]}],\"if\":{\"properties\":{\"contactMethod\":{\"const\":"
	    "\"phone\"}},\"required\":[\"contactMethod\"]},\"then\":{"
	    "\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"
	    "\"additionalProperties\":false}";

	assert_int_equal(args(schema, "{\"email\":\"a@b\"}"), FAILURE_NONE);
	assert_int_equal(args(schema,
			     "{\"contactMethod\":\"phone\",\"email\":\"a\","
			     "\"address\":{\"city\":1}}"),
	    FAILURE_INVALID_ARGUMENTS);
	assert_true(has("/phone", "is required"));
	assert_true(has("/address/city", "must be a string"));
}

/* x-mcp-header where clients would drop the tool. */
static void
headers_are_linted(void **state)
{
#define MARK(t, h) "{\"type\":" t ",\"x-mcp-header\":" h "}"
	static const struct {
		const char *schema, *pointer, *message;
	} rows[] = {
	    {OBJ("\"a\":" MARK("\"string\"", "\"\"")),
		"/properties/a/x-mcp-header", "must be a header's name"},
	    {OBJ("\"a\":" MARK("\"string\"", "7")),
		"/properties/a/x-mcp-header", "must be a header's name"},
	    {OBJ("\"a\":" MARK("\"string\"", "\"a b\"")),
		"/properties/a/x-mcp-header", "must be a header's name"},
	    {OBJ("\"a\":" MARK("\"string\"", "\"a\\u0000\"")),
		"/properties/a/x-mcp-header", "must be a header's name"},
	    {OBJ("\"a\":" MARK("\"string\"", "\"a:\"")),
		"/properties/a/x-mcp-header", "must be a header's name"},
	    {OBJ("\"a\":" MARK("\"number\"", "\"A\"")),
		"/properties/a/x-mcp-header", "needs a property whose"},
	    {OBJ("\"a\":" MARK("[\"string\"]", "\"A\"")),
		"/properties/a/x-mcp-header", "needs a property whose"},
	    {OBJ("\"a\":{\"x-mcp-header\":\"A\"}"),
		"/properties/a/x-mcp-header", "needs a property whose"},
	    {OBJ("\"a\":" MARK("\"string\"", "\"A-b\"") ",\"b\":" MARK(
		 "\"integer\"", "\"a-B\"")),
		"/properties/b/x-mcp-header", "is a header's name that"},
	    {"{\"type\":\"object\",\"x-mcp-header\":\"A\"}", "/x-mcp-header",
		"is allowed on properties of the arguments"},
	    {OBJ("\"a\":{\"items\":" MARK("\"string\"", "\"A\"") "}"),
		"/properties/a/items/x-mcp-header", "is allowed on properties"},
	    {"{\"type\":\"object\",\"$defs\":{\"properties\":{\"properties\":"
	     "{\"a\":" MARK("\"string\"", "\"A\"") "}}}}",
		"/$defs/properties/properties/a/x-mcp-header",
		"is allowed on properties"},
	    {OBJ("\"properties\":{\"not\":" MARK("\"string\"", "\"A\"") "}"),
		"/properties/properties/not/x-mcp-header",
		"is allowed on properties"},
	};
	char many[6000] = "{\"type\":\"object\",\"properties\":{";
	struct check c;
	size_t n;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_schema(&c, ipc_str(rows[i].schema));
		if (!errors(&c) || !has(rows[i].pointer, rows[i].message))
			fail_msg("%s: %s", rows[i].schema, text);
		check_free(&c);
	}
	/* Inside objects, and as many as the gateway looks at. */
	assert_int_equal(
	    args(
		OBJ("\"a\":{\"properties\":{\"properties\":" MARK("\"boolean\"",
		    "\"X-1\"") "}},\"b\":" MARK("\"string\"", "\"Region\"")),
		"{\"a\":{\"properties\":true},\"b\":\"x\"}"),
	    FAILURE_NONE);
	n = strlen(many);
	for (int i = 0; i < 33; i++)
		n += (size_t)snprintf(many + n, sizeof(many) - n,
		    "%s\"p%d\":" MARK("\"string\"", "\"H%d\""),
		    i > 0 ? "," : "", i, i);
	snprintf(many + n, sizeof(many) - n, "}}");
	check_schema(&c, ipc_str(many));
	assert_true(errors(&c));
	assert_true(has("/properties/p32/x-mcp-header", "is one header too"));
	check_free(&c);
	/* A stored schema is judged as it is: it was saved before the rule. */
	check_arguments(&c, ipc_str(rows[0].schema), ipc_str("{}"), false);
	assert_false(errors(&c));
	check_free(&c);
}

/* Results: schemas and values of any type. */
static void
results(void **state)
{
	struct check c;

	check_arguments(&c,
	    ipc_str("{\"type\":\"array\",\"items\":{\"type\":"
		    "\"string\"}}"),
	    ipc_str("[\"a\",1,null]"), true);
	assert_true(errors(&c));
	assert_int_equal(c.failure, FAILURE_BAD_RESULT);
	assert_true(has("/1", "must be a string, not an integer"));
	assert_true(has("/2", "must be a string, not null"));
	assert_non_null(strstr(c.summary, "the result is not what"));
	check_free(&c);
	check_arguments(&c, ipc_str("{}"), ipc_str("7"), true);
	assert_false(errors(&c));
	check_free(&c);
	/* A value that can't be judged is not a good one. */
	check_arguments(&c, ipc_str("{\"$ref\":\"#\"}"), ipc_str("7"), true);
	assert_true(errors(&c));
	assert_int_equal(c.failure, FAILURE_LIMIT);
	check_free(&c);
}

static void
alternatives_say_why(void **state)
{
	const char *schema =
	    OBJ("\"v\":{\"anyOf\":[{\"type\":\"integer\"},"
		"{\"type\":\"null\"}]},\"w\":{\"oneOf\":[{\"minimum\":1},"
		"{\"minimum\":2}]},\"x\":{\"not\":{\"const\":1}},\"l\":{"
		"\"prefixItems\":[{}],\"items\":false}");

	assert_int_equal(
	    args(schema, "{\"v\":\"s\",\"w\":3,\"x\":1,\"l\":[1,2]}"),
	    FAILURE_INVALID_ARGUMENTS);
	assert_true(has("/v",
	    "fits none of its 2 alternatives: must be an "
	    "integer, not a string; must be null, not a string"));
	assert_true(has("/w", "fits 2 of its alternatives"));
	assert_true(has("/x", "is of a form that is excluded"));
	assert_true(has("/l/1", "is one element too many"));
	assert_int_equal(args(schema, "{\"v\":null,\"w\":1}"), FAILURE_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(schemas_outside_the_subset),
	    cmocka_unit_test(conditions),
	    cmocka_unit_test(the_conformance_schema),
	    cmocka_unit_test(headers_are_linted),
	    cmocka_unit_test(results),
	    cmocka_unit_test(alternatives_say_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
