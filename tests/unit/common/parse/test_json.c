/*
 * The pre-scan against the battery that json-c fails, its limits at their
 * edges, slices, and getters that must not convert.
 */
#include <json-c/json_object.h>

#include "json.h"
#include "bounds.h"
#include "unit.h"

static int
scan(const char *s, struct err *e)
{
	return json_scan((const uint8_t *)s, strlen(s), e);
}

/* Each is refused, for the reason given and no other. */
static void
refuses_what_json_c_accepts(void **state)
{
	static const struct {
		const char *text, *rule;
	} rows[] = {
	    {"{\"a\":1,\"a\":2}", "byte 8: duplicate name"},
	    {"{\"a\":1,\"\\u0061\":2}", "byte 8: duplicate name"},
	    {"{\"\xc3\xa9\":1,\"b\":2,\"\\u00E9\":3}", "duplicate name"},
	    {"[{\"x\":{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":1}}]",
		"duplicate name"},
	    {"{\"\\n\":1,\"\\u000a\":1}", "duplicate name"},
	    {"{\"\":1,\"\":1}", "duplicate name"},
	    {"{'a':1}", "expected a string"},
	    {"['a']", "expected a value"},
	    {"[NaN]", "expected a value"},
	    {"[Infinity]", "expected a value"},
	    {"[-Infinity]", "number without a digit"},
	    {"\"a\nb\"", "byte 2: raw control character"},
	    {"\"a\tb\"", "raw control character"},
	    {"\"\x1f\"", "raw control character"},
	    {"\"\xc0\xaf\"", "invalid UTF-8"},
	    {"\"\xe0\x80\xaf\"", "invalid UTF-8"},
	    {"\"\xed\xa0\x80\"", "invalid UTF-8"},
	    {"\"\xf4\x90\x80\x80\"", "invalid UTF-8"},
	    {"\"\xf8\x88\x80\x80\x80\"", "invalid UTF-8"},
	    {"\"\x80\"", "invalid UTF-8"},
	    {"\"\xe2\x82\"", "invalid UTF-8"},
	    {"\"\\ud800\"", "lone high"},
	    {"\"\\ud800x\"", "lone high"},
	    {"\"\\ud800\\ud800\"", "lone high"},
	    {"\"\\udc00\"", "lone low"},
	    {"1e400", "out of range"},
	    {"-1e400", "out of range"},
	    {"1.7976931348623159e308", "out of range"},
	    {"{\"a\\u0000b\":1}", "U+0000 in a name"},
	    {"\xef\xbb\xbf{}", "byte order mark"},
	    {"{} {}", "text after"},
	    {"[1,]", "expected a value"},
	    {"{\"a\":1,}", "expected a string"},
	    {"[1/*x*/]", "expected ',' or ']'"},
	    {"[01]", "leading zero"},
	    {"[-01]", "leading zero"},
	    {"[+1]", "expected a value"},
	    {"[.5]", "expected a value"},
	    {"[1.]", "no digit after"},
	    {"[1e]", "no digit in the exponent"},
	    {"[1e+]", "no digit in the exponent"},
	    {"[-]", "without a digit"},
	    {"[0x1]", "expected ',' or ']'"},
	    {"True", "expected a value"},
	    {"nul", "expected a value"},
	    {"nulll", "text after"},
	    {"\"\\x41\"", "unknown escape"},
	    {"\"\\", "unfinished escape"},
	    {"\"\\u12\"", "four hex digits"},
	    {"\"\\u00g0\"", "four hex digits"},
	    {"\"a", "unfinished string"},
	    {"{\"a\" 1}", "expected ':'"},
	    {"{\"a\":1 \"b\":2}", "expected ',' or '}'"},
	    {"[1 2]", "expected ',' or ']'"},
	    {"[1}", "expected ',' or ']'"},
	    {"{1:2}", "expected a string"},
	    {"]", "expected a value"},
	    {"[", "expected a value"},
	    {"{\"a\":[1", "unfinished array"},
	    {"", "expected a value"},
	    {" \n", "expected a value"},
	    {"\x0b{}", "expected a value"},
	};
	struct err e;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (scan(rows[i].text, &e) != -1)
			fail_msg("accepted: %s", rows[i].text);
		assert_int_equal(e.failure, FAILURE_PARSE);
		if (strstr(e.text, rows[i].rule) == NULL)
			fail_msg("%s: %s", rows[i].text, e.text);
	}
	/* A NUL byte, which C strings cannot show. */
	assert_int_equal(json_scan((const uint8_t *)"\"a\0\"", 4, &e), -1);
	assert_int_equal(json_scan((const uint8_t *)"{}\0", 3, &e), -1);
}

static void
accepts_the_grammar(void **state)
{
	static const char *const rows[] = {"{}", "[]", " [ ] ", "null", "true",
	    "false", "0", "-0", "-0.0e-0", "1E5", "1e+5", "123456789012345",
	    "100000000000000000000000000000000", "1.7976931348623157e308",
	    "1.7976931348623158e308", "1e-400", "0e999999999999999999",
	    "0.0000000001e317", "\"\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
	    "\"\\u0000\"", "\"\\ud83d\\ude00 \xf0\x9f\x98\x80 \xef\xbf\xbf\"",
	    "\"\x7f\"", "{\"a\":{\"a\":[{\"a\":1},{\"a\":1}]},\"b\":{\"a\":1}}",
	    "\t\r\n{ \"a\" : 1 , \"A\" : 2 }\n", "{\"\\\\u0061\":1,\"a\":2}"};
	struct err e;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (scan(rows[i], &e) != 0)
			fail_msg("refused: %s: %s", rows[i], e.text);
}

static void
stops_at_its_limits(void **state)
{
	char deep[2 * (JSON_DEPTH_MAX + 1) + 1], *wide;
	size_t n = 2 * (size_t)(JSON_MEMBERS_MAX + 1) + 2;
	struct json_object *o;
	struct err e;

	memset(deep, '[', JSON_DEPTH_MAX);
	memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	deep[2 * JSON_DEPTH_MAX] = '\0';
	assert_int_equal(scan(deep, &e), 0);
	assert_int_equal(json_parse((uint8_t *)deep, strlen(deep), &o, &e), 0);
	json_object_put(o);
	memset(deep, '[', JSON_DEPTH_MAX + 1);
	memset(deep + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	deep[2 * (JSON_DEPTH_MAX + 1)] = '\0';
	assert_int_equal(scan(deep, &e), -1);
	assert_non_null(strstr(e.text, "deeply"));

	assert_non_null(wide = malloc(n));
	wide[0] = '[';
	for (size_t i = 0; i < JSON_MEMBERS_MAX; i++)
		memcpy(wide + 1 + 2 * i, "1,", 2);
	wide[2 * JSON_MEMBERS_MAX] = ']';
	assert_int_equal(
	    json_scan((uint8_t *)wide, 2 * JSON_MEMBERS_MAX + 1, &e), 0);
	memcpy(wide + 2 * JSON_MEMBERS_MAX, ",1]", 3);
	assert_int_equal(
	    json_scan((uint8_t *)wide, 2 * JSON_MEMBERS_MAX + 3, &e), -1);
	assert_non_null(strstr(e.text, "too many"));
	free(wide);
}

/* Many names, one of them twice, far apart. */
static void
finds_a_duplicate_among_many(void **state)
{
	struct buf b;
	struct err e;

	buf_init(&b, 1 << 22);
	buf_putc(&b, '{');
	for (int i = 0; i < 30000; i++)
		buf_putf(&b, "\"name%d\":%d,", i, i);
	buf_puts(&b, "\"x\":0}");
	assert_int_equal(json_scan(b.p, b.len, &e), 0);
	buf_drain(&b, 0);
	b.len -= strlen("\"x\":0}");
	buf_puts(&b, "\"n\\u0061me123\":0}");
	assert_int_equal(json_scan(b.p, b.len, &e), -1);
	assert_non_null(strstr(e.text, "duplicate"));
	buf_free(&b);
}

static void
slices(void **state)
{
	static const char text[] =
	    " {\"x\":[\"}\",{\"params\":1}],\"p\\u0061rams\" : {\"name\":\"n\","
	    "\"arguments\" : {\"a\" : [1, \"]\"]} },\"b\\\\c\":-1.5e3 }";
	static const char *const arguments[] = {"params", "arguments", NULL};
	static const char *const deeper[] = {"params", "arguments", "a", NULL};
	static const char *const back[] = {"b\\c", NULL};
	static const char *const absent[] = {"params", "nothing", NULL};
	static const char *const scalar[] = {"b\\c", "x", NULL};
	static const char *const prefix[] = {"param", NULL};
	static const char *const none[] = {NULL};
	const uint8_t *t = (const uint8_t *)text, *p;
	size_t n = sizeof(text) - 1, len;

	assert_int_equal(scan(text, NULL), 0);
	assert_int_equal(json_slice(t, n, arguments, &p, &len), 1);
	assert_int_equal(len, strlen("{\"a\" : [1, \"]\"]}"));
	assert_memory_equal(p, "{\"a\" : [1, \"]\"]}", len);
	assert_int_equal(json_slice(t, n, deeper, &p, &len), 1);
	assert_int_equal(len, strlen("[1, \"]\"]"));
	assert_memory_equal(p, "[1, \"]\"]", len);
	assert_int_equal(json_slice(t, n, back, &p, &len), 1);
	assert_int_equal(len, 6);
	assert_memory_equal(p, "-1.5e3", len);
	assert_int_equal(json_slice(t, n, absent, &p, &len), 0);
	assert_int_equal(json_slice(t, n, scalar, &p, &len), 0);
	assert_int_equal(json_slice(t, n, prefix, &p, &len), 0);
	assert_int_equal(json_slice(t, n, none, &p, &len), 1);
	assert_int_equal(len, n - 1);
	assert_int_equal(
	    json_slice((const uint8_t *)"{}", 2, back, &p, &len), 0);
	assert_int_equal(
	    json_slice((const uint8_t *)"7", 1, back, &p, &len), 0);
}

/* Several members in one pass: absent ones, names written with escapes, values
 * that hold the same names. */
static void
several_slices(void **state)
{
	static const char text[] =
	    " { \"x\":{\"a\":1,\"b\":[\"}\"]}, \"\\u0061\" : [1,{\"b\":2}] ,"
	    "\"n\":-1.5e3 ,\"b\":\"\\\"a\\\":\" } ";
	struct json_wanted w[] = {JSON_WANTED("a"), JSON_WANTED("b"),
	    JSON_WANTED("none"), JSON_WANTED("n")};
	const char *const values[] = {
	    "[1,{\"b\":2}]", "\"\\\"a\\\":\"", NULL, "-1.5e3"};
	const size_t n = sizeof(text) - 1;
	size_t i;

	(void)state;
	assert_int_equal(json_scan((const uint8_t *)text, n, NULL), 0);
	json_slice_all((const uint8_t *)text, n, w, 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(w[i].p != NULL, values[i] != NULL);
		if (values[i] == NULL)
			continue;
		assert_int_equal(w[i].n, strlen(values[i]));
		assert_memory_equal(w[i].p, values[i], w[i].n);
	}
	json_slice_all((const uint8_t *)"[1]", 3, w, 4);
	for (i = 0; i < 4; i++)
		assert_null(w[i].p);
}

/* A name twice is found among few names and among many, at each place, also
 * where one of the two is written with an escape. */
static void
names_twice(void **state)
{
	enum { MOST = 80 };
	char text[32 * MOST];
	size_t n, len, at, i;
	int twice;

	(void)state;
	for (n = 2; n <= MOST; n += n < 20 ? 1 : 15)
		for (at = 0; at < n; at++)
			for (twice = 0; twice < 3; twice++) {
				len = 0;
				for (i = 0; i < n; i++)
					len += (size_t)snprintf(text + len,
					    sizeof(text) - len, "%c\"k%zu\":0",
					    i == 0 ? '{' : ',', i);
				len += (size_t)snprintf(text + len,
				    sizeof(text) - len, ",\"%s%zu\":0}",
				    twice == 0       ? "l"
					: twice == 1 ? "k"
						     : "\\u006b",
				    at);
				assert_int_equal(
				    json_scan((uint8_t *)text, len, NULL),
				    twice == 0 ? 0 : -1);
			}
}

static void
getters_never_convert(void **state)
{
	static const char text[] =
	    "{\"s\":\"a\\u0000b\",\"n\":\"7\",\"i\":7,\"f\":7.0,\"e\":7e0,"
	    "\"max\":9223372036854775807,\"over\":9223372036854775808,"
	    "\"big\":100000000000000000000000,\"neg\":-"
	    "100000000000000000000000,"
	    "\"t\":true,\"z\":null,\"o\":{},\"a\":[]}";
	struct json_object *o, *v;
	const char *s;
	size_t n;
	int64_t i = 42;
	bool b = false;
	struct err e;

	assert_int_equal(
	    json_parse((const uint8_t *)text, sizeof(text) - 1, &o, &e), 0);
	assert_int_equal(json_get_str(o, "s", &s, &n, &e), 1);
	assert_int_equal(n, 3);
	assert_memory_equal(s, "a\0b", 3);
	assert_int_equal(json_get_str(o, "none", &s, &n, &e), 0);
	assert_int_equal(json_get_str(o, "i", &s, &n, &e), -1);
	assert_string_equal(e.text, "i must be a string");
	assert_int_equal(json_get_str(o, "z", &s, &n, &e), -1);
	assert_int_equal(json_get_int(o, "i", 0, 7, &i, &e), 1);
	assert_int_equal(i, 7);
	i = 42;
	assert_int_equal(json_get_int(o, "i", 0, 6, &i, &e), -1);
	assert_non_null(strstr(e.text, "from 0 to 6"));
	assert_int_equal(json_get_int(o, "i", 8, 9, &i, &e), -1);
	assert_int_equal(json_get_int(o, "n", 0, 9, &i, &e), -1);
	assert_int_equal(json_get_int(o, "f", 0, 9, &i, &e), -1);
	assert_int_equal(json_get_int(o, "e", 0, 9, &i, &e), -1);
	assert_int_equal(json_get_int(o, "t", 0, 9, &i, &e), -1);
	for (size_t k = 0; k < 3; k++) {
		static const char *const names[] = {"over", "big", "neg"};

		assert_int_equal(
		    json_get_int(o, names[k], INT64_MIN, INT64_MAX, &i, &e),
		    -1);
	}
	assert_int_equal(i, 42);
	assert_int_equal(
	    json_get_int(o, "max", INT64_MIN, INT64_MAX, &i, &e), 1);
	assert_true(i == INT64_MAX);
	assert_int_equal(json_get_int(o, "none", 0, 9, &i, &e), 0);
	assert_int_equal(json_get_bool(o, "t", &b, &e), 1);
	assert_true(b);
	assert_int_equal(json_get_bool(o, "i", &b, &e), -1);
	assert_int_equal(json_get_obj(o, "o", &v, &e), 1);
	assert_int_equal(json_get_obj(o, "a", &v, &e), -1);
	assert_int_equal(json_get_arr(o, "a", &v, &e), 1);
	assert_int_equal(json_get_arr(o, "o", &v, &e), -1);
	json_object_put(o);

	assert_int_equal(json_parse((const uint8_t *)"12", 2, &o, &e), 0);
	assert_int_equal(json_object_get_int(o), 12);
	assert_int_equal(json_get_str(o, "s", &s, &n, &e), 0);
	json_object_put(o);
	assert_int_equal(json_parse((const uint8_t *)"{'a':1}", 7, &o, &e), -1);
}

static void
unescaped(void **state)
{
	static const struct {
		const char *text, *says;
		size_t n;
	} good[] = {{"\"\"", "", 0}, {"\"abc\"", "abc", 3},
	    {"\"\\u0041\\n\\/\\\\\\\"\"", "A\n/\\\"", 5},
	    {"\"\\u00e9\xc3\xa9\"", "\xc3\xa9\xc3\xa9", 4},
	    {"\"\\u20ac\"", "\xe2\x82\xac", 3},
	    {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", 4},
	    {"\"\xf0\x9f\x98\x80\"", "\xf0\x9f\x98\x80", 4},
	    {"\"\\u0000\"", "\0", 1}};
	static const char *const other[] = {"", "1", "null", "[\"a\"]", "\""};
	struct buf b;

	buf_init(&b, 64);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		buf_clear(&b);
		assert_int_equal(json_unescape((const uint8_t *)good[i].text,
				     strlen(good[i].text), &b),
		    0);
		assert_int_equal(b.len, good[i].n);
		assert_memory_equal(
		    b.len ? b.p : (uint8_t *)"", good[i].says, b.len);
	}
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_int_equal(json_unescape((const uint8_t *)other[i],
				     strlen(other[i]), &b),
		    -1);
	buf_free(&b);
	buf_init(&b, 2);
	assert_int_equal(json_unescape((const uint8_t *)"\"abc\"", 5, &b), -1);
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(refuses_what_json_c_accepts),
	    cmocka_unit_test(accepts_the_grammar),
	    cmocka_unit_test(stops_at_its_limits),
	    cmocka_unit_test(finds_a_duplicate_among_many),
	    cmocka_unit_test(slices),
	    cmocka_unit_test(unescaped),
	    cmocka_unit_test(several_slices),
	    cmocka_unit_test(names_twice),
	    cmocka_unit_test(getters_never_convert),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
