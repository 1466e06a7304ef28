/* Untrusted text on an administrator's terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "ctl.h"

static void
shows(const char *in, size_t n, enum show_mode mode, const char *want)
{
	struct buf b;

	buf_init(&b, 4096);
	show_text(&b, in, n, mode);
	buf_put_u8(&b, 0);
	assert_false(b.failed);
	assert_string_equal((char *)b.p, want);
	buf_free(&b);
}

#define SHOWS(in, mode, want) shows(in, sizeof(in) - 1, mode, want)

static void
control(void **state)
{
	SHOWS("plain text", SHOW_LINE, "plain text");
	SHOWS("\033[2J\033]0;x\007", SHOW_LINE, "\\u{1b}[2J\\u{1b}]0;x\\u{7}");
	SHOWS("a\nb\tc\rd", SHOW_LINE, "a\\u{a}b\\u{9}c\\u{d}d");
	SHOWS("a\nb\tc\rd", SHOW_TEXT, "a\nb\tc\\u{d}d");
	SHOWS("a\0b\177", SHOW_CODE, "a\\u{0}b\\u{7f}");
	SHOWS("\xc2\x9b"
	      "2J",
	    SHOW_LINE, "\\u{9b}2J");
	SHOWS("", SHOW_LINE, "");
}

static void
hidden(void **state)
{
	SHOWS("a\xe2\x80\xae"
	      "b",
	    SHOW_LINE, "a\\u{202e}b");
	SHOWS("a\xe2\x81\xa6"
	      "b",
	    SHOW_TEXT, "a\\u{2066}b");
	SHOWS("a\xe2\x80\x8b"
	      "b",
	    SHOW_TEXT, "a\\u{200b}b");
	SHOWS("\xef\xbb\xbf", SHOW_TEXT, "\\u{feff}");
	SHOWS("\xc2\xa0\xc2\xad", SHOW_TEXT, "\\u{a0}\\u{ad}");
	SHOWS("\xe2\x80\xa8", SHOW_TEXT, "\\u{2028}");
	SHOWS("\xf3\xa0\x81\x81", SHOW_TEXT, "\\u{e0041}");
	SHOWS("\xef\xb8\x8f", SHOW_TEXT, "\\u{fe0f}");
}

/* Words of other languages are readable in prose and escaped in code, where a
 * Cyrillic a could pass for a Latin one. */
static void
letters(void **state)
{
	SHOWS("gr\xc3\xbc\xc3\x9f"
	      "e",
	    SHOW_LINE,
	    "gr\xc3\xbc\xc3\x9f"
	    "e");
	SHOWS("p\xd0\xb0ss", SHOW_LINE, "p\xd0\xb0ss");
	SHOWS("p\xd0\xb0ss", SHOW_CODE, "p\\u{430}ss");
	SHOWS("\xf0\x9f\x98\x80", SHOW_LINE, "\xf0\x9f\x98\x80");
	SHOWS("\xf0\x9f\x98\x80", SHOW_CODE, "\\u{1f600}");
}

static void
not_utf8(void **state)
{
	SHOWS("\xff", SHOW_LINE, "\\x{ff}");
	SHOWS("a\xc3", SHOW_LINE, "a\\x{c3}");
	SHOWS("\xc0\xaf", SHOW_TEXT, "\\x{c0}\\x{af}");
	SHOWS("\xed\xa0\x80", SHOW_TEXT, "\\x{ed}\\x{a0}\\x{80}");
	SHOWS("\x80z", SHOW_TEXT, "\\x{80}z");
}

static void
json(void **state)
{
	static const char in[] =
	    "{\"a\":\"\xe2\x80\xae\xc3\xbc\xf0\x9f\x98\x80\x7f\",\n\"b\":1}";
	struct buf b;

	buf_init(&b, 4096);
	show_json(&b, in, sizeof(in) - 1);
	buf_put_u8(&b, 0);
	assert_string_equal((char *)b.p,
	    "{\"a\":\"\\u202e\\u00fc\\ud83d\\ude00\\u007f\", \"b\":1}");
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(control),
	    cmocka_unit_test(hidden),
	    cmocka_unit_test(letters),
	    cmocka_unit_test(not_utf8),
	    cmocka_unit_test(json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
