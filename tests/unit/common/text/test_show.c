/*
 * Untrusted text for people. The forms invert: decoders here turn what was
 * printed back into bytes, so no two contents print alike.
 */
#include "unit.h"

#include "ids.h"
#include "show.h"
#include "show_decode.h"

#ifndef __has_feature
#define __has_feature(x) 0 /* clang's; gcc defines __SANITIZE_ADDRESS__ */
#endif

#define A30 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

enum { CODES = 0x110000, BLOCK_CODES = 4096 };

/* A sanitised build takes minutes for all code points, and looks for faults of
 * memory, which depend on their lengths: it takes each block of the first
 * plane, and each sixteenth of the others. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
static const bool every_block = false;
#else
static const bool every_block = true;
#endif

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
	SHOWS("a\nb\tc\rd", SHOW_CODE, "a\\u{a}b\\u{9}c\\u{d}d");
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
	    SHOW_LINE, "a\\u{2066}b");
	SHOWS("a\xe2\x80\x8b"
	      "b",
	    SHOW_LINE, "a\\u{200b}b");
	SHOWS("\xef\xbb\xbf", SHOW_LINE, "\\u{feff}");
	SHOWS("\xc2\xa0\xc2\xad", SHOW_LINE, "\\u{a0}\\u{ad}");
	SHOWS("\xe2\x80\xa8", SHOW_LINE, "\\u{2028}");
	SHOWS("\xf3\xa0\x81\x81", SHOW_LINE, "\\u{e0041}");
	SHOWS("\xef\xb8\x8f", SHOW_LINE, "\\u{fe0f}");
}

/* Words of other languages are readable in tables and escaped in code, where a
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
	SHOWS("\xc0\xaf", SHOW_LINE, "\\x{c0}\\x{af}");
	SHOWS("\xed\xa0\x80", SHOW_LINE, "\\x{ed}\\x{a0}\\x{80}");
	SHOWS("\x80z", SHOW_LINE, "\\x{80}z");
}

/* A model writes the characters of an escape: they are not one. */
static void
escapes_of_the_text(void **state)
{
	SHOWS("\\u{d}", SHOW_CODE, "\\u{5c}u{d}");
	SHOWS("\r", SHOW_CODE, "\\u{d}");
	SHOWS("\\x{ff}", SHOW_LINE, "\\u{5c}x{ff}");
	SHOWS("\\\\u{d}", SHOW_CODE, "\\\\u{5c}u{d}");
	SHOWS("\\u{5c}u{d}", SHOW_CODE, "\\u{5c}u{5c}u{d}");
	/* all others are as they are */
	SHOWS("'\\n\\u0041\\x41\\U{d}\\'\\", SHOW_CODE,
	    "'\\n\\u0041\\x41\\U{d}\\'\\");
}

static void
runs(void **state)
{
	char blanks[60000];

	memset(blanks, ' ', sizeof(blanks));
	shows(blanks, sizeof(blanks), SHOW_CODE, "\\u{20*60000}");
	SHOWS("a ", SHOW_CODE, "a\\u{20}");
	SHOWS("  a  ", SHOW_LINE, "  a\\u{20*2}");
	SHOWS("\t\t\tx", SHOW_CODE, "\\u{9}\\u{9}\\u{9}x");
	SHOWS("\t\t\t\t7", SHOW_CODE, "\\u{9*4}7");
	SHOWS("                        a", SHOW_CODE,
	    "                        a");
	SHOWS("                         a", SHOW_CODE, "\\u{20*25}a");
	SHOWS("\xff\xff\xff\xff\xff", SHOW_CODE, "\\x{ff*5}");
}

/* Each code point by itself, between letters, before an end of line and behind
 * a backslash; and each byte that is none. */
static void
every_code_point(void **state)
{
	struct buf b;

	buf_init(&b, OUT_MAX);
	for (unsigned long c = 0; c < CODES; c++) {
		if (c >= 0xd800 && c < 0xe000)
			continue;
		buf_puts(&b, "a");
		show_put_char(&b, c);
		buf_puts(&b, "b\\");
		show_put_char(&b, c);
		show_put_char(&b, c);
		buf_puts(&b, "\n");
		if (c % BLOCK_CODES == BLOCK_CODES - 1) {
			if (every_block || c / BLOCK_CODES % 16 == 0)
				show_all_invert(b.p, b.len, SHOW_WIDTH);
			buf_clear(&b);
		}
	}
	buf_free(&b);
	for (unsigned c = 0; c < 256; c++) {
		const uint8_t raw[] = {(uint8_t)c, 'u', '{', (uint8_t)c};

		show_all_invert(raw, 1, SHOW_WIDTH);
		show_all_invert(raw, sizeof(raw), SHOW_WIDTH);
	}
}

/* Every text of a few characters that mean something to the printer: here no
 * two of them print alike by exhaustion. */
static void
every_short_text(void **state)
{
	static const char what[] = "\\u{5cx}*2 \n\r\t\xc3\xa9";
	enum { N = sizeof(what) - 1, LONG = 4 };
	char text[LONG];

	for (size_t n = 0; n <= LONG; n++) {
		size_t all = 1;

		for (size_t i = 0; i < n; i++)
			all *= N;
		for (size_t k = 0; k < all; k++) {
			size_t rest = k;

			for (size_t i = 0; i < n; i++, rest /= N)
				text[i] = what[rest % N];
			/* a block has the forms of the others, and the
			 * longest are most of all */
			if (n < LONG)
				show_all_invert(text, n, SHOW_WIDTH);
			else
				show_inverts(text, n, SHOW_WIDTH);
		}
	}
}

/* Random texts that are mostly layout, at several widths. */
static void
random_layout(void **state)
{
	static const char *const piece[] = {" ", "    ", "\n", "\n\n\n\n\n",
	    "\\u{", "\\x{", "\\", "}", "*", "word", "\t", "\r", "\x80",
	    "\xe2\x80\xae", "       + ", "     1 | ", "(no newline at the end)",
	    "\n \n \n \n \n \n", "a\na\na\na\na\n",
	    "a_name_that_is_rather_long_for_one", "                          "};
	uint64_t seed = 20261124;
	struct buf b;

	buf_init(&b, 65536);
	for (int i = 0; i < 4000; i++) {
		buf_clear(&b);
		for (int k = i % 90; k >= 0; k--) {
			seed =
			    seed * 6364136223846793005u + 1442695040888963407u;
			buf_puts(&b,
			    piece[(seed >> 33) %
				(sizeof(piece) / sizeof(piece[0]))]);
		}
		show_all_invert(b.p, b.len,
		    (unsigned[]){SHOW_WIDTH_MIN, SHOW_WIDTH, 100}[i % 3]);
	}
	buf_free(&b);
}

/* Random pairs of texts that share lines: their differences have context,
 * several hunks, runs of equal lines, and ends without a newline. */
static void
random_differences(void **state)
{
	static const char long_line[] = A30 A30 A30 "\n";
	static const char *const line[] = {"a\n", "b\n", "\n", " \n", "- a\n",
	    "+ b\n", "@@ -1 +1 @@\n", "\\ No newline at end of file\n",
	    "              > x\n", "       (and 9 more such lines)\n", "\r\n",
	    "\\u{d}\n", "c\nc\nc\nc\nc\nc\n", "\n\n\n\n\n\n", long_line, "x"};
	uint64_t seed = 20261125;
	struct buf a, b;

	buf_init(&a, 65536);
	buf_init(&b, 65536);
	for (int i = 0; i < 4000; i++) {
		buf_clear(&a);
		buf_clear(&b);
		for (int k = i % 60; k >= 0; k--) {
			const char *s;
			unsigned how;

			seed =
			    seed * 6364136223846793005u + 1442695040888963407u;
			s = line[(seed >> 33) %
			    (sizeof(line) / sizeof(line[0]))];
			how = (unsigned)(seed >> 60);
			if (how != 0) /* most lines are in both */
				buf_puts(&a, s);
			if (how != 1)
				buf_puts(&b, s);
		}
		show_diff_inverts(a.p, a.len, b.p, b.len,
		    (unsigned[]){SHOW_WIDTH_MIN, SHOW_WIDTH, 100}[i % 3]);
	}
	buf_free(&a);
	buf_free(&b);
}

static void
block(const char *in, size_t n, const char *want)
{
	struct buf b;

	buf_init(&b, 65536);
	show_block(&b, in, n, SHOW_WIDTH);
	buf_put_u8(&b, 0);
	assert_string_equal((char *)b.p, want);
	buf_free(&b);
}

#define BLOCK(in, want) block(in, sizeof(in) - 1, want)

#define A23 "aaaaaaaaaaaaaaaaaaaaaaa"

/* A carriage return that a model wrote, and one that it wrote of. */
static void
blocks(void **state)
{
	BLOCK("", "");
	BLOCK("a\nb\n", "     1 | a\n     2 | b\n");
	BLOCK("a", "     1 | a\n       (no newline at the end)\n");
	BLOCK("# ends with\r    return 666\n",
	    "     1 | # ends with\\u{d}    return 666\n");
	BLOCK("# ends with\\u{d}    return 666\n",
	    "     1 | # ends with\\u{5c}u{d}    return 666\n");
	BLOCK("\tx \n\n\n\n\ny\n",
	    "     1 | \\u{9}x\\u{20}\n"
	    "     2 | \n"
	    "       (lines 3 to 5 are equal to line 2)\n"
	    "     6 | y\n");
	BLOCK("x\n \n \n \n \n \nevil()\n\n\n\ny\ny\ny\ny",
	    "     1 | x\n"
	    "     2 | \\u{20}\n"
	    "       (lines 3 to 6 are equal to line 2)\n"
	    "     7 | evil()\n"
	    "     8 | \n     9 | \n    10 | \n"
	    "    11 | y\n    12 | y\n    13 | y\n    14 | y\n"
	    "       (no newline at the end)\n");
	BLOCK(A23 A23 A23 " bbb\nhash               00\n",
	    "     1 | " A23 A23 A23 " b\n"
	    "       + bb\n"
	    "     2 | hash               00\n");
}

static void
values(void **state)
{
	struct buf b;

	buf_init(&b, 4096);
	show_value(&b, "notes", "one", 3, SHOW_WIDTH);
	show_value(&b, "notes", "one\nhash  00", 12, SHOW_WIDTH);
	show_value(&b, "client_capabilities", "x", 1, SHOW_WIDTH);
	show_value(&b, "reason", A23 A23 "aaaaaaaaaaaaaaabcd", 64, SHOW_WIDTH);
	buf_put_u8(&b, 0);
	assert_string_equal((char *)b.p,
	    "notes              one\n"
	    "notes (12 bytes):\n     1 | one\n     2 | hash  00\n"
	    "       (no newline at the end)\n"
	    "client_capabilities x\n"
	    "reason             " A23 A23 "aaaaaaaaaaaaaaa\n"
	    "                 + bcd\n");
	buf_free(&b);
}

static void
diffs(void **state)
{
	static const char in[] = "@@ -1,3 +1,2 @@\n one\n-two \n-\\u{d}\n"
				 "+@@ -1 +1 @@\n"
				 "\\ No newline at end of file\n";
	struct buf b;

	buf_init(&b, 4096);
	show_diff(&b, in, sizeof(in) - 1, SHOW_WIDTH);
	buf_put_u8(&b, 0);
	assert_string_equal((char *)b.p,
	    "       (@@ -1,3 +1,2 @@)\n"
	    "     1      1 | one\n"
	    "     2        |-two\\u{20}\n"
	    "     3        |-\\u{5c}u{d}\n"
	    "            2 |+@@ -1 +1 @@\n"
	    "       (no newline at the end)\n");
	buf_free(&b);
}

/* Thousands of empty lines around what was added. */
static void
diffs_of_equal_lines(void **state)
{
	static const char head[] = "@@ -1,2 +1,20004 @@\n one\n";
	struct buf in, b;

	buf_init(&in, 65536);
	buf_init(&b, 4096);
	buf_puts(&in, head);
	for (int i = 0; i < 10000; i++)
		buf_puts(&in, "+\n");
	buf_puts(&in, "+evil()\n");
	for (int i = 0; i < 10000; i++)
		buf_puts(&in, "+\n");
	buf_puts(&in, "+x\n+x\n+x\n two\n");
	show_diff(&b, in.p, in.len, SHOW_WIDTH);
	buf_put_u8(&b, 0);
	assert_string_equal((char *)b.p,
	    "       (@@ -1,2 +1,20004 @@)\n"
	    "     1      1 | one\n"
	    "            2 |+\n"
	    "       (and 9999 more such lines)\n"
	    "        10002 |+evil()\n"
	    "        10003 |+\n"
	    "       (and 9999 more such lines)\n"
	    "        20003 |+x\n"
	    "        20004 |+x\n"
	    "        20005 |+x\n"
	    "     2  20006 | two\n");
	buf_free(&b);
	buf_free(&in);
}

/* ---- JSON ---- */

static void
json(void **state)
{
	static const char in[] =
	    "{\"a\":\"\xe2\x80\xae\xc3\xbc\xf0\x9f\x98\x80\x7f\",\r\n\"b\":1}";
	static const char *const not[] = {"", "\"a\nb\"", "\"\x01\"",
	    "\"\xff\"", "{} {}", "{\"a\":1}\x80", "nul"};
	struct buf b;

	buf_init(&b, 4096);
	assert_int_equal(show_json(&b, in, sizeof(in) - 1), 0);
	buf_put_u8(&b, 0);
	assert_string_equal((char *)b.p,
	    "{\"a\":\"\\u202e\\u00fc\\ud83d\\ude00\\u007f\",  \"b\":1}");
	buf_clear(&b);
	for (size_t i = 0; i < sizeof(not) / sizeof(not[0]); i++)
		assert_int_equal(show_json(&b, not[i], strlen(not[i])), -1);
	assert_int_equal(b.len, 0);
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
	    cmocka_unit_test(escapes_of_the_text),
	    cmocka_unit_test(runs),
	    cmocka_unit_test(every_code_point),
	    cmocka_unit_test(every_short_text),
	    cmocka_unit_test(random_layout),
	    cmocka_unit_test(random_differences),
	    cmocka_unit_test(blocks),
	    cmocka_unit_test(values),
	    cmocka_unit_test(diffs),
	    cmocka_unit_test(diffs_of_equal_lines),
	    cmocka_unit_test(json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
