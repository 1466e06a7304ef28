/* No form of a secret value leaves; everything else leaves unchanged. */
#include "ids.h"
#include "json_scan.h"
#include "redact.h"
#include "tlv.h"
#include "unit.h"

#define CANARY "s3cret/\"va+lu\\e\" \xc3\xa9?"

static struct redact *
with(const char *a, const char *b)
{
	struct redact *r;
	struct buf t;

	buf_init(&t, 100000);
	tlv_puts(&t, 1, "A");
	tlv_puts(&t, 2, a);
	if (b != NULL) {
		tlv_puts(&t, 1, "B");
		tlv_puts(&t, 2, b);
	}
	r = redact_new(t.p, t.len);
	assert_non_null(r);
	buf_free(&t);
	return r;
}

static void
expect(struct redact *r, const char *in, const char *want)
{
	struct buf out;

	buf_init(&out, 100000);
	(void)redact_bytes(r, ipc_str(in), &out);
	buf_putc(&out, '\0');
	assert_string_equal((char *)out.p, want);
	buf_free(&out);
}

static void
expect_json(struct redact *r, const char *in, const char *want)
{
	struct buf out;

	assert_int_equal(json_scan((const uint8_t *)in, strlen(in), NULL), 0);
	buf_init(&out, 100000);
	(void)redact_json(r, ipc_str(in), &out);
	assert_false(out.failed);
	assert_int_equal(json_scan(out.p, out.len, NULL), 0);
	assert_true(out.len <= strlen(in));
	buf_putc(&out, '\0');
	assert_string_equal((char *)out.p, want);
	buf_free(&out);
}

static void
test_plain(void **state)
{
	struct redact *r = with("hunter2hunter2", "hunter2hunter2!");

	expect(r, "a hunter2hunter2 b", "a [secret] b");
	/* It stands at 0, 7 and 14: what overlaps goes as one. */
	expect(r, "hunter2hunter2hunter2hunter2", "[secret]");
	expect(r, "hunter2hunter2 hunter2hunter2", "[secret] [secret]");
	/* The longest that fits wins. */
	expect(r, "hunter2hunter2!", "[secret]");
	expect(r, "hunter2hunter", "hunter2hunter");
	expect(r, "", "");
	expect(r, "xhunter2hunter2", "x[secret]");
	redact_free(r);
}

static void
test_short_values_stay(void **state)
{
	struct redact *r = with("1234567", "12345678");

	expect(r, "1234567 12345678", "1234567 [secret]");
	redact_free(r);
	r = with("abc", NULL);
	expect(r, "abc abc abc abc", "abc abc abc abc");
	redact_free(r);
}

static void
test_encodings(void **state)
{
	struct redact *r = with(CANARY, NULL);

	expect(r, "x=s3cret%2F%22va%2Blu%5Ce%22%20%C3%A9%3F;", "x=[secret];");
	expect(r, "x=s3cret/%22va%2Blu%5Ce%22%20%C3%A9%3F;", "x=[secret];");
	expect(r, "x=s3cret%2F%22va%2Blu%5Ce%22+%C3%A9%3F;", "x=[secret];");
	/* A JSON text quoted inside other text. */
	expect(r, "{\"t\": \"s3cret/\\\"va+lu\\\\e\\\" \\u00e9?\"}",
	    "{\"t\": \"[secret]\"}");
	expect(r, "{\"t\": \"s3cret/\\\"va+lu\\\\e\\\" \xc3\xa9?\"}",
	    "{\"t\": \"[secret]\"}");
	redact_free(r);
	r = with("password", NULL);
	expect(r, "70617373776f7264 70617373776F7264", "[secret] [secret]");
	redact_free(r);
}

/* user:secret, as a Basic header carries it, at each of the alignments. */
static void
test_base64_at_any_alignment(void **state)
{
	static const char secret[] = "tok\xff\xfe\xfb?>~en-0123456789";
	struct redact *r = with(secret, NULL);

	for (size_t before = 0; before < 7; before++)
		for (size_t after = 0; after < 4; after++) {
			char plain[64], text[128], std[128];
			struct buf out;
			int n;

			n = snprintf(plain, sizeof(plain), "%.*s%s%.*s",
			    (int)before, "user12:", secret, (int)after, "abc");
			(void)b64url_encode(plain, (size_t)n, text);
			memcpy(std, text, sizeof(std));
			for (char *p = std; *p != '\0'; p++)
				*p = *p == '-' ? '+' : *p == '_' ? '/' : *p;
			buf_init(&out, 1000);
			assert_int_equal(
			    redact_bytes(r, ipc_str(text), &out), 1);
			assert_int_equal(
			    redact_bytes(r, ipc_str(std), &out), 1);
			/* At most the ends are left, which others shape too. */
			assert_true(out.len <= 2 * (8 + 12 + 10));
			buf_free(&out);
		}
	redact_free(r);
}

static void
test_json(void **state)
{
	struct redact *r = with(CANARY, "8765432187");

	/* However it is escaped. */
	expect_json(r, "{\"a\":\"<s3cret\\/\\\"va+lu\\\\e\\\" \\u00e9?>\"}",
	    "{\"a\":\"<[secret]>\"}");
	expect_json(r,
	    "[\"\\u0073\\u0033cret/\\u0022va+lu\\u005ce\\\" \xc3\xa9\\u003F\"]",
	    "[\"[secret]\"]");
	/* In a name; as a number; not touching others. */
	expect_json(r, "{\"8765432187\":1,\"n\":8765432187, \"m\":-1.5e3}",
	    "{\"[secret]\":1,\"n\":null, \"m\":-1.5e3}");
	expect_json(r, "{\"x\":\"\\ud83d\\ude00\\n\",\"y\":[true,null]}",
	    "{\"x\":\"\\ud83d\\ude00\\n\",\"y\":[true,null]}");
	/* JSON inside a string: what structuredContent's text copy is. */
	expect_json(r,
	    "[\"{\\\"k\\\": \\\"s3cret/\\\\\\\"va+lu\\\\\\\\e\\\\\\\" "
	    "\\\\u00e9?\\\"}\"]",
	    "[\"{\\\"k\\\": \\\"[secret]\\\"}\"]");
	redact_free(r);
}

/* A secret made of JSON's own characters can't break the text's form. */
static void
test_structure_survives(void **state)
{
	struct redact *r = with("\",\"text\":\"", "}],\"isError\":");

	expect_json(r,
	    "{\"type\":\"text\",\"text\":\"hello\",\"c\":[{}],\"isError\":1}",
	    "{\"type\":\"text\",\"text\":\"hello\",\"c\":[{}],\"isError\":1}");
	redact_free(r);
}

static void
test_none(void **state)
{
	struct redact *r = redact_new(NULL, 0);
	struct buf out;

	assert_non_null(r);
	assert_int_equal(redact_longest(r), 0);
	expect(r, "anything at all", "anything at all");
	buf_init(&out, 100);
	assert_int_equal(redact_json(r, ipc_str("[1]"), &out), 0);
	assert_int_equal(out.len, 3);
	buf_free(&out);
	redact_free(r);
}

/* A cut moves behind the secret that stands across it, and only then. */
static void
test_cut(void **state)
{
	struct redact *r = with("hunter2hunter2", NULL);
	struct ipc_bytes t = ipc_str("0123456789hunter2hunter2 and more");

	assert_int_equal(redact_cut(r, t, 5), 5);
	assert_int_equal(redact_cut(r, t, 10), 10);
	for (size_t at = 11; at < 24; at++)
		assert_int_equal(redact_cut(r, t, at), 24);
	assert_int_equal(redact_cut(r, t, 24), 24);
	assert_int_equal(redact_cut(r, t, 30), 30);
	assert_int_equal(redact_cut(r, t, 1000), t.n);
	redact_free(r);
	r = redact_new("", 0);
	assert_int_equal(redact_cut(r, t, 12), 12);
	redact_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_plain),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_short_values_stay),
	    cmocka_unit_test(test_encodings),
	    cmocka_unit_test(test_base64_at_any_alignment),
	    cmocka_unit_test(test_json),
	    cmocka_unit_test(test_structure_survives),
	    cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
