/* admind-check: prompts and resources in the making, and prompts being filled.
 */
#include <time.h>

#include "check.h"
#include "forms.h"
#include "management_tools.h"
#include "tlv.h"
#include "unit.h"

#define ID  "\"server_id\":\"00000000-0000-0000-0000-000000000000\""
#define OF  "\"prompt_id\":\"00000000-0000-0000-0000-000000000000\""
#define OFR "\"resource_id\":\"00000000-0000-0000-0000-000000000000\""

static char text[1 << 16]; /* the last answer: fields or errors */

/* Keeps what buf says, as a string. */
static void
keep(const void *p, size_t n)
{
	n = n < sizeof(text) - 1 ? n : sizeof(text) - 1;
	if (n > 0)
		memcpy(text, p, n);
	text[n] = '\0';
}

/* The schema of the calls that follow from these arguments; NULL: errors, which
 * `text` has; "": none follows. */
static const char *
schema_of(const char *tool, const char *arguments)
{
	struct check c;
	struct tlv t;
	bool ok;

	check_management(&c, ipc_str(tool), ipc_str(arguments));
	ok = c.ok;
	if (!ok)
		keep(c.errors.p, c.errors.len);
	else if (tlv_find(c.fields.p, c.fields.len, MF_OBJECT_SCHEMA, &t) == 1)
		keep(t.p, t.n);
	else
		keep("", 0);
	check_free(&c);
	return ok ? text : NULL;
}

static void
prompts(void **state)
{
	(void)state;
	assert_string_equal(schema_of("mcpbox_create_prompt",
				"{" ID ",\"name\":\"a\",\"text\":\"x\"}"),
	    "{\"type\":\"object\",\"properties\":{},"
	    "\"additionalProperties\":false}");
	assert_string_equal(
	    schema_of("mcpbox_create_prompt",
		"{" ID ",\"name\":\"a\",\"text\":\"{x}\",\"arguments\":["
		"{\"name\":\"x\",\"required\":true,\"description\":"
		"\"\\\"\\u0000"
		"\\n\"},{\"name\":\"y\",\"required\":false},{\"name\":\"z\","
		"\"required\":true,\"values\":[\"1\"]}]}"),
	    "{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"string\","
	    "\"description\":\"\\\"\\u0000\\n\"},\"y\":{\"type\":\"string\"},"
	    "\"z\":{\"type\":\"string\"}},\"required\":[\"x\",\"z\"],"
	    "\"additionalProperties\":false}");
	/* A change of something else keeps the arguments. */
	assert_string_equal(
	    schema_of("mcpbox_update_prompt", "{" OF ",\"text\":\"x\"}"), "");
	assert_string_equal(
	    schema_of("mcpbox_update_prompt", "{" OF ",\"arguments\":[]}"),
	    "{\"type\":\"object\",\"properties\":{},"
	    "\"additionalProperties\":false}");
	assert_null(
	    schema_of("mcpbox_create_prompt", "{" ID ",\"name\":\"a\"}"));
	assert_null(schema_of("mcpbox_update_prompt",
	    "{" OF ",\"text\":\"x\",\"python_code\":\"y\"}"));
	assert_null(schema_of("mcpbox_create_prompt",
	    "{" ID ",\"name\":\"a\",\"text\":\"x\",\"arguments\":["
	    "{\"name\":\"x\"},{\"name\":\"y\"},{\"name\":\"x\"}]}"));
	assert_non_null(strstr(text, "/arguments/2"));
	assert_null(schema_of("mcpbox_create_prompt",
	    "{" ID ",\"name\":\"a\",\"text\":\"x\",\"arguments\":["
	    "{\"name\":\"x\\n\"}]}"));
	assert_null(schema_of("mcpbox_create_prompt",
	    "{" ID ",\"name\":\"a\",\"text\":\"x\","
	    "\"meta\":{\"mcpbox/x\":1}}"));
	assert_non_null(strstr(text, "/meta/mcpbox~1x"));
}

static void
resources(void **state)
{
	static const char *const base64[] = {
	    "", "AAAA", "AA==", "AQ==", "AAA=", "AAE=", "+/+/"};
	static const char *const not_base64[] = {"A", "AA", "AAA",
	    "AB==", "AAB=", "A===", "====", "AA=A", "AA-_", "AAAA\\n", " AAA",
	    "AA==AAAA"};
	char arguments[512];
	size_t i;

	(void)state;
	assert_string_equal(
	    schema_of("mcpbox_create_resource",
		"{" ID ",\"name\":\"a\",\"uri\":\"a:b\",\"text\":\"\"}"),
	    "{\"type\":\"object\",\"properties\":{},"
	    "\"additionalProperties\":false}");
	assert_string_equal(
	    schema_of("mcpbox_create_resource",
		"{" ID ",\"name\":\"a\",\"uri_template\":\"a:{b}/{+c}\","
		"\"python_code\":\"x\",\"arguments\":[{\"name\":\"c\"}]}"),
	    "{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"string\"},"
	    "\"c\":{\"type\":\"string\"}},\"required\":[\"b\",\"c\"],"
	    "\"additionalProperties\":false}");
	assert_string_equal(
	    schema_of("mcpbox_update_resource", "{" OFR ",\"text\":\"x\"}"),
	    "");
	assert_null(schema_of("mcpbox_update_resource",
	    "{" OFR ",\"uri\":\"a:b\",\"uri_template\":\"a:{b}\"}"));
	assert_null(
	    schema_of("mcpbox_update_resource", "{" OFR ",\"uri\":\"a\"}"));
	assert_non_null(strstr(text, "/uri\""));
	assert_null(schema_of("mcpbox_create_resource",
	    "{" ID ",\"name\":\"a\",\"uri_template\":\"a:{b}\","
	    "\"python_code\":\"x\",\"arguments\":[{\"name\":\"c\"}]}"));
	assert_non_null(strstr(text, "/arguments/0"));
	for (i = 0; i < sizeof(base64) / sizeof(base64[0]); i++) {
		snprintf(arguments, sizeof(arguments),
		    "{" OFR ",\"blob\":\"%s\"}", base64[i]);
		assert_non_null(schema_of("mcpbox_update_resource", arguments));
	}
	for (i = 0; i < sizeof(not_base64) / sizeof(not_base64[0]); i++) {
		snprintf(arguments, sizeof(arguments),
		    "{" OFR ",\"blob\":\"%s\"}", not_base64[i]);
		assert_null(schema_of("mcpbox_update_resource", arguments));
	}
}

/* What the prompt becomes, or NULL: errors. */
static const char *
rendered(const char *template, const char *given)
{
	struct check c;
	bool ok;

	check_render(&c, ipc_str(template), ipc_str(given));
	ok = c.ok;
	keep(ok ? c.fields.p : c.errors.p, ok ? c.fields.len : c.errors.len);
	check_free(&c);
	return ok ? text : NULL;
}

#define ONE(t)                                                              \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\"," \
	"\"text\":\"" t "\"}}]}"

static void
filling(void **state)
{
	static const struct {
		const char *template, *given, *want;
	} c[] = {
	    {"x", "{}", ONE("x")},
	    {"", "{}", ONE("")},
	    {"{a}", "{\"a\":\"1\"}", ONE("1")},
	    {"{a}{a}{b}", "{\"a\":\"1\",\"b\":\"2\"}", ONE("112")},
	    {"<{a}>", "{}", ONE("<>")},
	    {"{a}", "{\"a\":\"{b}\",\"b\":\"2\"}", ONE("{b}")},
	    {"{a}{b}", "{\"a\":\"{\",\"b\":\"b}\"}", ONE("{b}")},
	    {"{{a}}", "{\"a\":\"1\"}", ONE("{a}")},
	    {"{{{a}}}", "{\"a\":\"1\"}", ONE("{{a}}")},
	    {"{{a}", "{\"a\":\"1\"}", ONE("{1")},
	    {"{a}}", "{\"a\":\"1\"}", ONE("1}")},
	    {"{a b} {} {1} {a-b} {", "{\"a\":\"1\"}",
		ONE("{a b} {} {1} {a-b} {")},
	    {"{{a}} {b", "{\"b\":\"1\"}", ONE("{a} {b")},
	    {"{a}", "{\"a\":\"\\\"}]\\n\"}", ONE("\\\"}]\\n")},
	    {"[x] {a}", "{\"a\":\"1\"}", ONE("[x] 1")},
	    {"[{\"role\":\"user\",\"content\":\"{a}\"}", "{\"a\":\"1\"}",
		ONE("[{\\\"role\\\":\\\"user\\\",\\\"content\\\":\\\"1\\\"}")},
	    {"[{\"role\":\"user\",\"content\":\"{a}\"}]", "{\"a\":\"\\\"\"}",
		ONE("\\\"")},
	    {" [{\"content\":{\"type\":\"text\",\"text\":\"{a}\",\"n\":1.50},"
	     "\"role\":\"assistant\"}] ",
		"{\"a\":\"x\"}",
		"{\"messages\":[{\"role\":\"assistant\",\"content\":{\"type\":"
		"\"text\",\"text\":\"x\",\"n\":1.50}}]}"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		assert_non_null(rendered(c[i].template, c[i].given));
		assert_string_equal(text, c[i].want);
	}
}

/* A resource that is text and blob. */
static const char both[] =
    "[{\"role\":\"user\",\"content\":{\"type\":\"resource\","
    "\"resource\":{\"uri\":\"a:b\",\"text\":\"\",\"blob\":\"\"}}}]";

static void
templates(void **state)
{
	static const char *const good[] = {"{a} {{b}}", "no names",
	    "[{\"role\":\"user\",\"content\":{\"type\":\"image\",\"data\":\"\","
	    "\"mimeType\":\"a/b\"}}]",
	    "[{\"role\":\"user\",\"content\":{\"type\":\"resource_link\","
	    "\"uri\":\"a:{a}\",\"name\":\"n\"}}]"};
	static const char *const bad[] = {"{b}", "{a}{b}", "[]", "[1]", "[{}]",
	    "[{\"role\":\"user\"}]",
	    "[{\"role\":\"user\",\"content\":\"{b}\"}]",
	    "[{\"role\":\"tool\",\"content\":\"x\"}]",
	    "[{\"role\":\"user\",\"content\":[]}]",
	    "[{\"role\":\"user\",\"content\":{\"type\":\"image\"}}]",
	    "[{\"role\":\"user\",\"content\":{\"type\":\"video\"}}]", both};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_non_null(rendered(good[i], "[{\"name\":\"a\"}]"));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(rendered(bad[i], "[{\"name\":\"a\"}]"));
	assert_null(rendered("x", "1"));
	assert_null(rendered("x", "{"));
}

/* One message whose content has as many strings "{a}" as fit; its length. */
static size_t
many_strings(char *to, size_t max)
{
	static const char head[] =
	    "[{\"role\":\"user\",\"content\":{\"type\":\"text\","
	    "\"text\":\"\",\"x\":[\"{a}\"";
	size_t n = sizeof(head) - 1;

	memcpy(to, head, n);
	for (; n + 20 < max; n += 6)
		memcpy(to + n, ",\"{a}\"", 6);
	memcpy(to + n, "]}}]", 4);
	return n + 4;
}

/* Processor time of rendering, which is refused as too much. */
static clock_t
refused_in(struct ipc_bytes template, struct ipc_bytes given)
{
	clock_t from = clock();
	struct check c;

	check_render(&c, template, given);
	from = clock() - from;
	assert_false(c.ok);
	assert_int_equal(c.failure, FAILURE_LIMIT);
	check_free(&c);
	return from;
}

/* A long text that is mostly placeholders: refused, not built. */
static void
no_explosion(void **state)
{
	enum { N = 100000, VALUE = 1000000 };
	char *template = malloc(3 * N + 1), *given = malloc(VALUE + 16);
	clock_t one, many;
	size_t n;

	(void)state;
	assert_non_null(template);
	assert_non_null(given);
	for (int i = 0; i < N; i++)
		memcpy(template + 3 * i, "{a}", 4);
	memcpy(given, "{\"a\":\"", 6);
	memset(given + 6, 'x', VALUE);
	memcpy(given + 6 + VALUE, "\"}", 3);
	one = refused_in(ipc_str(template), ipc_str(given));

	/* The same as tens of thousands of strings: the first ends it. */
	n = many_strings(template, 3 * N);
	many = refused_in(ipc_bytes(template, n), ipc_str(given));
	printf("one text: %ld us, many: %ld us\n", (long)one, (long)many);
	assert_true(many < 1000 * (one + 1));
	free(template);
	free(given);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(prompts),
	    cmocka_unit_test(resources),
	    cmocka_unit_test(filling),
	    cmocka_unit_test(templates),
	    cmocka_unit_test(no_explosion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
