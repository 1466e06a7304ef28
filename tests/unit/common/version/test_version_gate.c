/* Code whose lines are not those that a reviewer reads. */
#include "unit.h"

#include "buf.h"
#include "utf8.h"
#include "version_gate.h"

enum { CODES = 0x110000 };

/* Appends a code point as UTF-8. */
static void
put_char(struct buf *b, uint32_t c)
{
	uint8_t utf8[UTF8_MAX];

	buf_put(b, utf8, utf8_encode(c, utf8));
}

/* As tests/database/test_lines.py has them. */
static bool
refused(uint32_t c)
{
	return (c < 0x20 && c != '\t' && c != '\n') ||
	    (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 ||
	    c == 0xfeff;
}

static void
characters(void **state)
{
	char where[64];
	struct err e;
	struct buf b;

	buf_init(&b, 256);
	for (uint32_t c = 0; c < CODES; c++) {
		if (c >= 0xd800 && c < 0xe000)
			continue;
		buf_clear(&b);
		buf_puts(&b, "def main():\n\tx = 1  # \xc3\xa9\n    a");
		put_char(&b, c);
		buf_puts(&b, "b\n");
		assert_int_equal(
		    version_gate_code(b.p, b.len, &e), refused(c) ? -1 : 0);
		if (!refused(c))
			continue;
		(void)snprintf(where, sizeof(where),
		    "code: character 6 of line 3 is U+%04X, ", (unsigned)c);
		assert_memory_equal(e.text, where, strlen(where));
		assert_non_null(strstr(e.text, ": ")); /* and the fix */
		assert_int_equal(e.failure, FAILURE_INVALID_PARAMS);
	}
	buf_free(&b);
	assert_int_equal(version_gate_code("", 0, &e), 0);
	assert_int_equal(version_gate_code("a\xff", 2, &e), -1);
}

/* The attack that the rule is for. */
static void
a_comment_that_ends_unseen(void **state)
{
	static const char code[] =
	    "def main():\n"
	    "    # each record ends with\r    return 666\n"
	    "    return 1\n";
	struct err e;

	assert_int_equal(version_gate_code(code, sizeof(code) - 1, &e), -1);
	assert_string_equal(e.text,
	    "code: character 28 of line 2 is U+000D, at which Python ends a "
	    "line and others do not: end lines with U+000A alone, and write "
	    "\\r in a string");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(characters),
	    cmocka_unit_test(a_comment_that_ends_unseen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
