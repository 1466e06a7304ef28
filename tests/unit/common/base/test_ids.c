/* ids.h: encodings, names, times; and utf8_valid. */
#include "unit.h"

#include "buf.h"
#include "ids.h"
#include "bounds.h"
#include "utf8.h"

static void
uuids(void **state)
{
	static const char *const bad[] = {"", "0",
	    "018f0000-0000-7000-8000-00000000000",   /* short */
	    "018f0000-0000-7000-8000-0000000000000", /* long */
	    "018f00000-000-7000-8000-000000000000",  /* dash moved */
	    "018f0000-0000-7000-8000-00000000000g",
	    "018f0000_0000-7000-8000-000000000000",
	    "{18f0000-0000-7000-8000-000000000000",
	    " 18f0000-0000-7000-8000-000000000000"};
	struct ipc_id a, b, last = {{0}};
	char text[UUID_TEXT_LEN + 1];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uuid_v7(&a);
		uuid_text(&a, text);
		assert_int_equal(strlen(text), UUID_TEXT_LEN);
		assert_int_equal(text[14], '7');
		assert_non_null(strchr("89ab", text[19]));
		assert_int_equal(uuid_parse(text, strlen(text), &b), 0);
		assert_memory_equal(a.b, b.b, 16);
		/* sorted by time to the microsecond, random below it */
		assert_true(memcmp(last.b, a.b, 7) <= 0);
		assert_memory_not_equal(last.b, a.b, 16);
		last = a;
	}
	/* ms in the first 48 bits */
	assert_in_range(
	    (get_be64(last.b) >> 16), now_us() / 1000 - 2000, now_us() / 1000);
	assert_int_equal(
	    uuid_parse("018F0000-ABCD-7000-8000-0000000000FF", 36, &a), 0);
	assert_int_equal(a.b[0], 0x01);
	assert_int_equal(a.b[15], 0xff);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (uuid_parse(bad[i], strlen(bad[i]), &a) == 0)
			fail_msg("accepted: %s", bad[i]);
}

static void
randomness(void **state)
{
	struct ipc_id a, b;
	uint8_t big[100000];
	unsigned count[256] = {0};

	(void)state;
	id_random(&a);
	id_random(&b);
	assert_memory_not_equal(a.b, b.b, 16);
	random_bytes(big, sizeof(big));
	for (size_t i = 0; i < sizeof(big); i++)
		count[big[i]]++;
	for (int i = 0; i < 256; i++) /* mean 391, sd 20 */
		assert_in_range(count[i], 200, 600);
}

static void
hex(void **state)
{
	uint8_t out[4] = {9, 9, 9, 9};
	char text[9];

	(void)state;
	hex_encode("\x00\xff\x1a\x90", 4, text);
	assert_string_equal(text, "00ff1a90");
	assert_int_equal(hex_decode("00ff1a90", 8, out), 0);
	assert_memory_equal(out, "\x00\xff\x1a\x90", 4);
	memset(out, 9, 4);
	assert_int_equal(hex_decode("00ff1a9", 7, out), -1);
	assert_int_equal(hex_decode("00FF1a90", 8, out), -1);
	assert_int_equal(hex_decode("00ff1a9g", 8, out), -1);
	assert_memory_equal(out, "\x09\x09\x09\x09", 4); /* untouched */
	hex_encode("", 0, text);
	assert_string_equal(text, "");
}

static void
hex_digits(void **state)
{
	static const char digits[] = "0123456789abcdef", upper[] = "ABCDEF";
	const uint8_t *text = (const uint8_t *)"01aFffZ1";
	const char *at;

	(void)state;
	for (int c = -1; c < 256; c++) {
		at = c > 0 ? strchr(digits, c) : NULL;
		if (at != NULL)
			assert_int_equal(hex_digit(c), at - digits);
		else if (c > 0 && (at = strchr(upper, c)) != NULL)
			assert_int_equal(hex_digit(c), 10 + (at - upper));
		else
			assert_int_equal(hex_digit(c), -1);
	}
	assert_int_equal(hex_number(text, 0), 0);
	assert_int_equal(hex_number(text, 2), 0x01);
	assert_int_equal(hex_number(text, 4), 0x01af);
	assert_int_equal(hex_number((const uint8_t *)"fffffff", 7), 0xfffffff);
	assert_int_equal(hex_number(text, 7), -1);
	assert_int_equal(hex_number(text + 6, 2), -1);
}

static void
base64url(void **state)
{
	/* RFC 4648 section 10, without padding */
	static const struct {
		const char *plain, *text;
	} v[] = {{"", ""}, {"f", "Zg"}, {"fo", "Zm8"}, {"foo", "Zm9v"},
	    {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"},
	    {"\xfb\xff", "-_8"}};
	static const char *const bad[] = {"A", "AAAAA", "Zg==", "Zh", "Zm9",
	    "Zm+v", "Zm/v", "Z m9", "Zm9v\n", "Zm9vYh"};
	char text[64], out[64];
	uint8_t raw[97], back[97], *p;
	char big[132];

	(void)state;
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		assert_int_equal(
		    b64url_encode(v[i].plain, strlen(v[i].plain), text),
		    strlen(v[i].text));
		assert_string_equal(text, v[i].text);
		assert_int_equal(
		    b64url_decode(text, strlen(text), out), strlen(v[i].plain));
		assert_memory_equal(out, v[i].plain, strlen(v[i].plain));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (b64url_decode(bad[i], strlen(bad[i]), out) != -1)
			fail_msg("accepted: %s", bad[i]);
	for (size_t n = 0; n <= sizeof(raw); n++) {
		random_bytes(raw, sizeof(raw));
		/* the documented sizes suffice, to the byte */
		assert_non_null(
		    p = malloc(3 * b64url_encode(raw, n, big) / 4 + 1));
		assert_int_equal(b64url_decode(big, strlen(big), p), n);
		memcpy(back, p, n);
		assert_memory_equal(raw, back, n);
		free(p);
	}
}

static void
times(void **state)
{
	/* Checked with date -u -d @N */
	static const struct {
		uint64_t us;
		const char *text;
	} v[] = {{0, "1970-01-01T00:00:00.000Z"},
	    {951782400000000, "2000-02-29T00:00:00.000Z"},
	    {951868799999999, "2000-02-29T23:59:59.999Z"},
	    {951868800000000, "2000-03-01T00:00:00.000Z"},
	    {1709164800123456, "2024-02-29T00:00:00.123Z"},
	    {1798761599000999, "2026-12-31T23:59:59.000Z"},
	    {4107542400000000, "2100-03-01T00:00:00.000Z"},
	    {UINT64_MAX, "9999-12-31T23:59:59.999Z"}};
	char text[TIME_TEXT_LEN + 1];
	uint64_t a, b;

	(void)state;
	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		time_text(v[i].us, text);
		assert_string_equal(text, v[i].text);
	}
	a = now_boot_ms();
	b = now_boot_ms();
	assert_true(b >= a);
}

static void
compare(void **state)
{
	(void)state;
	assert_true(ct_equal("abc", "abc", 3));
	assert_false(ct_equal("abc", "abd", 3));
	assert_false(ct_equal("bbc", "abc", 3));
	assert_true(ct_equal("abx", "aby", 2));
	assert_true(ct_equal("x", "y", 0));
}

static void
utf8(void **state)
{
	static const char *const good[] = {"", "abc", "\xc2\x80", "\xdf\xbf",
	    "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
	    "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "\xef\xbb\xbfx"};
	static const char *const bad[] = {"\x80", "\xbf", "\xc0\xaf",
	    "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xe0\xa0",
	    "\xed\xa0\x80", "\xed\xbf\xbf", "\xe4\xb8", "\xe4\xb8\x41",
	    "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
	    "\xf0\x90\x80", "\xfe", "\xff", "a\xc3", "\xf8\x88\x80\x80\x80"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!utf8_valid((const uint8_t *)good[i], strlen(good[i])))
			fail_msg("refused good %zu", i);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (utf8_valid((const uint8_t *)bad[i], strlen(bad[i])))
			fail_msg("accepted bad %zu", i);
	assert_true(utf8_valid((const uint8_t *)"a\0b", 3));
	/* Every code point: its length, and that it is the code point again. */
	for (uint32_t c = 0; c <= 0x10ffff; c++) {
		uint8_t out[UTF8_MAX + 1] = {0};
		size_t n = utf8_encode(c, out);
		uint32_t back = n == 1 ? out[0] : out[0] & (0x7fu >> n);

		if (n != 1u + (c >= 0x80) + (c >= 0x800) + (c >= 0x10000))
			fail_msg("U+%04X: %zu bytes", c, n);
		for (size_t i = 1; i < n; i++)
			back = back << 6 | (out[i] & 0x3fu);
		if (back != c || out[n] != 0 ||
		    utf8_valid(out, n) != (c < 0xd800 || c > 0xdfff))
			fail_msg("U+%04X", c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(uuids),
	    cmocka_unit_test(randomness),
	    cmocka_unit_test(hex),
	    cmocka_unit_test(hex_digits),
	    cmocka_unit_test(base64url),
	    cmocka_unit_test(times),
	    cmocka_unit_test(compare),
	    cmocka_unit_test(utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
