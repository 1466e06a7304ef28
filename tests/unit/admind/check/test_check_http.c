/* admind-check: declared REST calls, and what follows from them. */
#include "check.h"
#include "management_tools.h"
#include "specs.h"
#include "tlv.h"
#include "unit.h"

static char text[1 << 16]; /* the errors of the last check */
static char fields[16][8192];

static enum failure
http(unsigned confirm, const char *spec)
{
	struct check c;
	enum failure f;
	size_t n;
	struct tlv_reader r;
	struct tlv t;

	memset(fields, 0, sizeof(fields));
	check_http(&c, confirm, ipc_str(spec));
	n = c.errors.len < sizeof(text) - 1 ? c.errors.len : sizeof(text) - 1;
	memcpy(text, n > 0 ? (char *)c.errors.p : "", n);
	text[n] = '\0';
	f = c.ok ? FAILURE_NONE : c.failure;
	if (c.ok) {
		tlv_open(&r, c.fields.p, c.fields.len);
		while (tlv_next(&r, &t) == 1) {
			char *to = fields[t.tag % 16];
			size_t have = strlen(to);

			snprintf(to + have, sizeof(fields[0]) - have, "%s%.*s",
			    have > 0 ? " " : "", (int)t.n,
			    t.tag == INSPECT_OK || t.tag == INSPECT_CONFIRM
				? (t.p[7] == 1 ? "00000001" : "00000000")
				: (const char *)t.p);
		}
	}
	check_free(&c);
	return f;
}

#define GET(more) "{\"method\":\"GET\",\"url\":\"https://a.example/x\"" more "}"
#define PARAM(p)  GET(",\"parameters\":{" p "}")

/* What follows from a whole one. */
static void
follows(void **state)
{
	(void)state;
	assert_int_equal(
	    http(0,
		"{\"method\":\"GET\","
		"\"url\":\"https://api.example.com:8443/v1/p/{id}/c.{kind}\","
		"\"parameters\":{"
		"\"id\":{\"in\":\"path\",\"schema\":{\"type\":\"integer\","
		"\"minimum\":1},\"description\":\"which\"},"
		"\"kind\":{\"in\":\"path\",\"schema\":{\"enum\":[\"a\"],"
		"\"type\":\"string\"}},"
		"\"q\":{\"in\":\"query\",\"name\":\"q[]\",\"schema\":{\"type\":"
		"\"array\",\"items\":{\"type\":\"string\"}}},"
		"\"h\":{\"in\":\"header\",\"name\":\"X-H\",\"required\":true}},"
		"\"query\":{\"key\":\"{secret:B_KEY}\"},"
		"\"headers\":{\"Authorization\":\"Bearer {secret:A1}\","
		"\"X-B\":\"{secret:B_KEY}{x}\"},"
		"\"response\":{\"as\":\"status\",\"pointer\":\"/a~1b/0\","
		"\"success\":[200,404],\"headers\":[\"Link\"]},"
		"\"redirects\":2,\"redirect_hosts\":[\"*.cdn.example\","
		"\"b.example:444\"],\"timeout_ms\":5000,\"max_bytes\":1000}"),
	    FAILURE_NONE);
	assert_string_equal(fields[INSPECT_INPUT_SCHEMA],
	    "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"integer\","
	    "\"minimum\":1,\"description\":\"which\"},\"kind\":{\"enum\":["
	    "\"a\"],\"type\":\"string\"},\"q\":{\"type\":\"array\",\"items\":{"
	    "\"type\":\"string\"}},\"h\":{\"type\":\"string\"}},\"required\":["
	    "\"id\",\"kind\",\"h\"],\"additionalProperties\":false}");
	assert_string_equal(fields[INSPECT_SECRET], "A1 B_KEY");
	assert_string_equal(fields[INSPECT_REQUIRE],
	    "*.cdn.example api.example.com:8443 b.example:444");
	assert_string_equal(fields[INSPECT_CONFIRM], "");
	/* The usual ports are named, too. */
	assert_int_equal(http(0, GET("")), FAILURE_NONE);
	assert_string_equal(fields[INSPECT_REQUIRE], "a.example:443");
	assert_int_equal(
	    http(0, "{\"method\":\"GET\",\"url\":\"http://a.example\"}"),
	    FAILURE_NONE);
	assert_string_equal(fields[INSPECT_REQUIRE], "a.example:80");
	assert_int_equal(
	    http(
		0, "{\"method\":\"GET\",\"url\":\"http://192.168.1.5:8123/\"}"),
	    FAILURE_NONE);
	assert_string_equal(fields[INSPECT_REQUIRE], "192.168.1.5:8123");
	assert_int_equal(
	    http(0, "{\"method\":\"GET\",\"url\":\"http://[2001:db8::1]/\"}"),
	    FAILURE_NONE);
	assert_string_equal(fields[INSPECT_REQUIRE], "[2001:db8::1]:80");
}

/* Who replaces or deletes is confirmed; nobody can say otherwise. */
static void
destructive(void **state)
{
	static const char *const methods[] = {"PUT", "PATCH", "DELETE"};
	char spec[128];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		snprintf(spec, sizeof(spec),
		    "{\"method\":\"%s\",\"url\":\"https://a.example/x\"}",
		    methods[i]);
		assert_int_equal(http(0, spec), FAILURE_NONE);
		assert_string_equal(fields[INSPECT_CONFIRM], "00000001");
		assert_int_equal(http(2, spec), FAILURE_NONE);
		assert_int_equal(http(1, spec), FAILURE_INVALID_ARGUMENTS);
		assert_non_null(strstr(text, "/spec/method"));
	}
	assert_int_equal(
	    http(1, "{\"method\":\"POST\",\"url\":\"https://a.example/x\"}"),
	    FAILURE_NONE);
	assert_string_equal(fields[INSPECT_CONFIRM], "");
	assert_int_equal(http(2, GET("")), FAILURE_NONE);
	assert_string_equal(fields[INSPECT_CONFIRM], "00000001");
}

/* Each is refused, at its place. */
static void
refused(void **state)
{
	static const struct {
		const char *spec, *pointer;
	} bad[] = {
	    {"[]", ""},
	    {"{\"url\":\"https://a.example/\"}", "/spec/method"},
	    {"{\"method\":\"TRACE\",\"url\":\"https://a.example/\"}",
		"/spec/method"},
	    {"{\"method\":\"GET\"}", "/spec/url"},
#define URL(u) {"{\"method\":\"GET\",\"url\":\"" u "\"}", "/spec/url"}
	    URL("ftp://a.example/"),
	    URL("//a.example/"),
	    URL("https:///x"),
	    URL("https://u:p@a.example/"),
	    URL("https://A.example/"),
	    URL("https://{host}/"),
	    URL("https://a.example:0/"),
	    URL("https://a.example:65536/"),
	    URL("https://a.example:x/"),
	    URL("https://a.example:/"),
	    URL("https://a.example/?q=1"),
	    URL("https://a.example/#f"),
	    URL("https://a.example/a b"),
	    URL("https://a.example/\\u00fc"),
	    URL("https://\\u00fc.example/"),
	    URL("https://a.example/{x"),
	    URL("https://a.example/{1}"),
	    URL("https://a.example/{x}"),
	    URL("https://a.example/../x"),
	    URL("https://a.example/x/.."),
	    URL("https://a.example/./x"),
	    URL("https://a.example/%2"),
	    URL("https://a.example/%zz"),
	    URL("https://a.example/\\\\x"),
	    URL("https://169.254.169.254/"),
	    URL("https://[::1"),
	    URL("https://[::1]:x/"),
	    URL("https://a.example\\u0000/"),
	    URL("https://127.1/"),
	    URL("https://0x7f000001/"),
	    URL("https://2130706433/"),
	    {GET(",\"x\":1"), "/spec/x"},
	    {GET(",\"body\":\"json\""), "/spec/body"},
	    {GET(",\"query\":[]"), "/spec/query"},
	    {GET(",\"query\":{\"a\":1}"), "/spec/query/a"},
	    {GET(",\"query\":{\"a\":\"{secret:a}\"}"), "/spec/query/a"},
	    {GET(",\"query\":{\"a\":\"{secret:A\"}"), "/spec/query/a"},
	    {GET(",\"headers\":{\"a b\":\"\"}"), "/spec/headers/a b"},
	    {GET(",\"headers\":{\"hOst\":\"x\"}"), "/spec/headers/hOst"},
	    {GET(",\"headers\":{\"Content-Length\":\"1\"}"),
		"/spec/headers/Content-Length"},
	    {GET(",\"headers\":{\"A\":\"x\\r\\nB: y\"}"), "/spec/headers/A"},
	    {GET(",\"response\":[]"), "/spec/response"},
	    {GET(",\"response\":{\"x\":1}"), "/spec/response"},
	    {GET(",\"response\":{\"as\":\"xml\"}"), "/spec/response/as"},
	    {GET(",\"response\":{\"pointer\":\"a\"}"),
		"/spec/response/pointer"},
	    {GET(",\"response\":{\"pointer\":\"/~2\"}"),
		"/spec/response/pointer"},
	    {GET(",\"response\":{\"success\":[]}"), "/spec/response/success"},
	    {GET(",\"response\":{\"success\":[199]}"),
		"/spec/response/success"},
	    {GET(",\"response\":{\"headers\":[\"a b\"]}"),
		"/spec/response/headers"},
	    {GET(",\"redirects\":11"), "/spec/redirects"},
	    {GET(",\"redirects\":1.5"), "/spec/redirects"},
	    {GET(",\"redirects\":\"1\""), "/spec/redirects"},
	    {GET(",\"redirect_hosts\":[\"b.example\"]"),
		"/spec/redirect_hosts"},
	    {GET(",\"redirects\":1,\"redirect_hosts\":[\"b/c\"]"),
		"/spec/redirect_hosts/0"},
	    {GET(",\"timeout_ms\":99"), "/spec/timeout_ms"},
	    {GET(",\"max_bytes\":0"), "/spec/max_bytes"},
	    {GET(",\"max_bytes\":67108865"), "/spec/max_bytes"},
	    {GET(",\"parameters\":[]"), "/spec/parameters"},
	    {PARAM("\"a\":1"), "/spec/parameters/a"},
	    {PARAM("\"a\":{}"), "/spec/parameters/a"},
	    {PARAM("\"a\":{\"in\":\"url\"}"), "/spec/parameters/a"},
	    {PARAM("\"a-b\":{\"in\":\"query\"}"), "/spec/parameters/a-b"},
	    {PARAM("\"1a\":{\"in\":\"query\"}"), "/spec/parameters/1a"},
	    {PARAM("\"a\":{\"in\":\"path\"}"), "/spec/parameters/a"},
	    {PARAM("\"a\":{\"in\":\"query\",\"x\":1}"), "/spec/parameters/a/x"},
	    {PARAM("\"a\":{\"in\":\"query\",\"required\":1}"),
		"/spec/parameters/a/required"},
	    {PARAM("\"a\":{\"in\":\"query\",\"style\":\"pipe\"}"),
		"/spec/parameters/a"},
	    {PARAM("\"a\":{\"in\":\"query\",\"schema\":{\"type\":\"object\"}}"),
		"/spec/parameters/a/schema"},
	    {PARAM("\"a\":{\"in\":\"query\",\"schema\":{}}"),
		"/spec/parameters/a/schema"},
	    {PARAM("\"a\":{\"in\":\"query\",\"schema\":{\"type\":\"array\"}}"),
		"/spec/parameters/a/schema"},
	    {PARAM("\"a\":{\"in\":\"query\",\"schema\":{\"type\":\"array\","
		   "\"items\":{\"type\":\"object\"}}}"),
		"/spec/parameters/a/schema"},
	    {PARAM("\"a\":{\"in\":\"query\",\"schema\":{\"type\":\"text\"}}"),
		"/spec/parameters/a/schema"},
	    {PARAM("\"a\":{\"in\":\"query\",\"schema\":[]}"),
		"/spec/parameters/a/schema"},
	    {GET(",\"headers\":{\"X-HTTP-Method-Override\":\"DELETE\"}"),
		"/spec/headers/X-HTTP-Method-Override"},
	    {PARAM("\"a\":{\"in\":\"header\",\"name\":"
		   "\"x-http-METHOD\"}"),
		"/spec/parameters/a/name"},
	    {PARAM("\"a\":{\"in\":\"header\",\"name\":"
		   "\"X-Method-Override\"}"),
		"/spec/parameters/a/name"},
	    {PARAM("\"a\":{\"in\":\"header\",\"name\":\"Host\"}"),
		"/spec/parameters/a/name"},
	    {PARAM("\"a\":{\"in\":\"header\",\"name\":\"x y\"}"),
		"/spec/parameters/a/name"},
	    {PARAM("\"a\":{\"in\":\"cookie\",\"name\":\"x;y\"}"),
		"/spec/parameters/a/name"},
	    {PARAM("\"a\":{\"in\":\"query\",\"name\":\"\"}"),
		"/spec/parameters/a/name"},
	    {PARAM("\"a\":{\"in\":\"query\"},\"b\":{\"in\":\"query\","
		   "\"name\":\"a\"}"),
		"/spec/parameters/b/name"},
	    {PARAM("\"a\":{\"in\":\"query\"}},\"query\":{\"a\":\"1\""),
		"/spec/query/a"},
	    {PARAM("\"a\":{\"in\":\"body\"}"), "/spec/body"},
	    {PARAM("\"a\":{\"in\":\"query\",\"description\":\"x\",\"schema\":{"
		   "\"type\":\"string\",\"description\":\"y\"}}"),
		"/spec/parameters/a"},
#define POST(p, b)                                          \
	"{\"method\":\"POST\",\"url\":\"https://a.example/" \
	"\",\"parameters\":{" p "},\"body\":\"" b "\"}"
	    {POST("\"a\":{\"in\":\"body\"}", "xml"), "/spec/body"},
	    {POST("\"a\":{\"in\":\"query\"}", "json"), "/spec/body"},
	    {POST("\"a\":{\"in\":\"body\"},\"b\":{\"in\":\"body\"}", "whole"),
		"/spec/body"},
	    {POST("\"a\":{\"in\":\"body\",\"schema\":{\"type\":\"integer\"}}",
		 "text"),
		"/spec/body"},
	    {POST("\"a\":{\"in\":\"body\",\"schema\":{\"type\":\"object\"}}",
		 "form"),
		"/spec/body"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char want[256];

		if (http(0, bad[i].spec) != FAILURE_INVALID_ARGUMENTS)
			fail_msg("%s was taken", bad[i].spec);
		snprintf(
		    want, sizeof(want), "{\"pointer\":\"%s\"", bad[i].pointer);
		if (bad[i].pointer[0] != '\0' && strstr(text, want) == NULL)
			fail_msg("%s: %s", bad[i].spec, text);
	}
	assert_int_not_equal(http(0, "{\"method\":"), FAILURE_NONE);
	/* One name, two truths: what was judged and what runs. */
	assert_int_not_equal(
	    http(0, GET(",\"method\":\"DELETE\"")), FAILURE_NONE);
	assert_int_not_equal(
	    http(0, GET(",\"\\u0075rl\":\"https://b.example/\"")),
	    FAILURE_NONE);
	assert_int_not_equal(
	    http(0, PARAM("\"a\":{\"in\":\"query\",\"in\":\"header\"}")),
	    FAILURE_NONE);
}

/* All of them together. */
static void
together(void **state)
{
	(void)state;
	assert_int_equal(
	    http(0,
		"{\"method\":\"get\",\"url\":\"ftp://"
		"x\",\"parameters\":{\"a\":{"
		"\"in\":\"query\",\"schema\":{}}},\"redirects\":-1,\"y\":1}"),
	    FAILURE_INVALID_ARGUMENTS);
	assert_non_null(strstr(text, "/spec/method"));
	assert_non_null(strstr(text, "/spec/url"));
	assert_non_null(strstr(text, "/spec/parameters/a/schema"));
	assert_non_null(strstr(text, "/spec/redirects"));
	assert_non_null(strstr(text, "/spec/y"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(follows),
	    cmocka_unit_test(destructive),
	    cmocka_unit_test(refused),
	    cmocka_unit_test(together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
