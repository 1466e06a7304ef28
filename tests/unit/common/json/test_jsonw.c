/* jsonw.h writes valid JSON whatever it is given; json_grammar.h knows JSON. */
#include "unit.h"

#include <time.h>

#include "json_grammar.h"
#include "jsonw.h"
#include "bounds.h"

static void
expect(struct buf *b, const char *want)
{
	assert_false(b->failed);
	assert_true(json_grammar_valid(b->p, b->len));
	assert_int_equal(b->len, strlen(want));
	assert_memory_equal(b->p, want, b->len);
	buf_clear(b);
}

static void
values(void **state)
{
	struct jsonw w;
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "s", "x");
	jsonw_kv_int(&w, "i", INT64_MIN);
	jsonw_name(&w, "u");
	jsonw_u64(&w, UINT64_MAX);
	jsonw_kv_bool(&w, "t", true);
	jsonw_name(&w, "n");
	jsonw_null(&w);
	jsonw_name(&w, "a");
	jsonw_arr(&w);
	jsonw_arr(&w);
	jsonw_arr_end(&w);
	jsonw_obj(&w);
	jsonw_obj_end(&w);
	jsonw_int(&w, -1);
	jsonw_bool(&w, false);
	jsonw_arr_end(&w);
	jsonw_kv_raw(&w, "r", "{\"x\":1}", 7);
	jsonw_kv_strn(&w, "z", "", 0);
	jsonw_obj_end(&w);
	expect(&b,
	    "{\"s\":\"x\",\"i\":-9223372036854775808,"
	    "\"u\":18446744073709551615,\"t\":true,\"n\":null,"
	    "\"a\":[[],{},-1,false],\"r\":{\"x\":1},\"z\":\"\"}");
	buf_free(&b);
}

enum {
	CONTROLS = 1024 * 1024,
	/* printf takes this many times as much at least. With an optimizer
	 * the factor is 4 to 10, as libc's printf is; code that used printf
	 * would have 1. */
	PRINTF_TIMES = 2
};

/* Processor time of a string of controls, written where max bytes fit; what the
 * same costs with printf if p is NULL. */
static clock_t
written_in(const uint8_t *p, size_t max)
{
	clock_t least = 0, from;
	struct jsonw w;
	struct buf b;

	buf_init(&b, max);
	for (int turn = 0; turn < 5; turn++) {
		buf_clear(&b);
		from = clock();
		if (p != NULL) {
			jsonw_open(&w, &b);
			jsonw_strn(&w, p, CONTROLS);
		} else
			for (int i = 0; i < CONTROLS; i++)
				buf_putf(&b, "\\u%04x", 1);
		from = clock() - from;
		if (turn == 0 || from < least)
			least = from;
		assert_int_equal(b.failed, max < CONTROLS);
		if (!b.failed)
			assert_memory_equal(b.p + b.len - 7,
			    p != NULL ? "\\u0001\"" : "1\\u0001", 7);
	}
	buf_free(&b);
	return least;
}

/* Escaping is no way to make somebody wait: a megabyte of controls costs a
 * fraction of what printf takes for it, and what does not fit is not even
 * looked at. The least of five turns in the same memory, so that the machine is
 * no matter. */
static void
no_escape_is_slow(void **state)
{
	uint8_t *p = malloc(CONTROLS);
	clock_t fits, refused, by_printf;

	(void)state;
	assert_non_null(p);
	memset(p, 1, CONTROLS);
	fits = written_in(p, 8 * CONTROLS);
	refused = written_in(p, 64);
	free(p);
	by_printf = written_in(NULL, 8 * CONTROLS);
	printf("escaped: %ld us, refused: %ld us, by printf: %ld us\n",
	    (long)fits, (long)refused, (long)by_printf);
	assert_true(fits < by_printf / PRINTF_TIMES);
	assert_true(refused < fits / 10);
}

static void
strings(void **state)
{
	static const struct {
		const char *in;
		size_t n;
		const char *out;
	} v[] = {
	    {"plain", 5, "\"plain\""},
	    {"\"\\/", 3, "\"\\\"\\\\/\""},
	    {"\n\r\t\b\x01\x1f\x7f", 7,
		"\"\\n\\r\\t\\u0008\\u0001\\u001f\\u007f\""},
	    {"a\0b", 3, "\"a\\u0000b\""},
	    {"\xc3\xa4\xf0\x9f\x98\x80", 6, "\"\xc3\xa4\xf0\x9f\x98\x80\""},
	    {"\xff", 1, "\"\xef\xbf\xbd\""},
	    {"a\xc3", 2, "\"a\xef\xbf\xbd\""},
	    {"\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	    {"\xed\xa0\x80z", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\""},
	    {"\xe4\xb8\"", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\\\"\""},
	};
	struct jsonw w;
	struct buf b;

	(void)state;
	buf_init(&b, 4096);
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		jsonw_open(&w, &b);
		jsonw_strn(&w, v[i].in, v[i].n);
		expect(&b, v[i].out);
	}
	/* Every single byte, and every pair, gives JSON. */
	for (unsigned x = 0; x < 65536; x++) {
		char two[2] = {(char)(x >> 8), (char)x};

		jsonw_open(&w, &b);
		jsonw_strn(&w, two, 2);
		if (!json_grammar_valid(b.p, b.len))
			fail_msg("bytes %04x", x);
		buf_clear(&b);
	}
	buf_free(&b);
}

/* A buffer that is full stays failed and never holds half a document. */
static void
full(void **state)
{
	struct jsonw w;
	struct buf b;

	(void)state;
	buf_init(&b, 8);
	jsonw_open(&w, &b);
	jsonw_arr(&w);
	jsonw_str(&w, "longer than eight");
	jsonw_arr_end(&w);
	assert_true(b.failed);
	assert_true(b.len <= 8);
	buf_free(&b);
}

static void
grammar(void **state)
{
	static const char *const good[] = {"1", "-0", "0.5e-10", "1E+2", "\"\"",
	    "\"\\u00e4\\n\\/\"", "true", "false", "null", "[]", "{}",
	    " [ 1 , 2 ] ", "{\"a\":{\"b\":[{}]}}", "[[],[[]]]",
	    "{\"a\":1,\"a\":2}", "\t\r\n1\n"};
	static const char *const bad[] = {"", " ", "01", "+1", "1.", ".5", "1e",
	    "1e+", "-", "--1", "0x1", "NaN", "Infinity", "tru", "truex", "nul",
	    "'a'", "\"", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"",
	    "\"\n\"", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{", "}",
	    "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,\"a\":1}", "{a:1}", "{1:1}",
	    "{\"a\":1]", "[1}", "1 2", "{}{}", "{},", "{},\"code\":\"x\"",
	    "[]]", "//x\n1", "\"a\"b"};
	char deep[2 * JSON_DEPTH_MAX + 3];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!json_grammar_valid(
			(const uint8_t *)good[i], strlen(good[i])))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (json_grammar_valid((const uint8_t *)bad[i], strlen(bad[i])))
			fail_msg("accepted: %s", bad[i]);
	memset(deep, '[', JSON_DEPTH_MAX);
	memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
	assert_true(
	    json_grammar_valid((const uint8_t *)deep, 2 * JSON_DEPTH_MAX));
	memset(deep, '[', JSON_DEPTH_MAX + 1);
	memset(deep + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	assert_false(
	    json_grammar_valid((const uint8_t *)deep, 2 * JSON_DEPTH_MAX + 2));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(values),
	    cmocka_unit_test(strings),
	    cmocka_unit_test(no_escape_is_slow),
	    cmocka_unit_test(full),
	    cmocka_unit_test(grammar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
