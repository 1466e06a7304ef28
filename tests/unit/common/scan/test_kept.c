/* kept.h: what records keep of JSON. */
#include "unit.h"

#include "json.h"
#include "kept.h"

/* The kept form, which is JSON again unless it was cut; freed by the caller. */
static char *
kept(const char *text, size_t max, int expect)
{
	struct buf out;
	struct err e;
	char *copy;

	assert_int_equal(json_scan((const uint8_t *)text, strlen(text), &e), 0);
	buf_init(&out, max);
	assert_int_equal(
	    kept_form((const uint8_t *)text, strlen(text), max, &out), expect);
	assert_true(out.len <= max);
	buf_reserve(&out, 0);
	copy = calloc(1, out.len + 1);
	assert_non_null(copy);
	if (out.len > 0)
		memcpy(copy, out.p, out.len);
	buf_free(&out);
	return copy;
}

static void
becomes(const char *text, const char *want)
{
	char *got = kept(text, 4096, want == NULL ? 0 : 1);
	struct err e;

	assert_string_equal(got, want == NULL ? "" : want);
	if (want != NULL)
		assert_int_equal(
		    json_scan((const uint8_t *)got, strlen(got), &e), 0);
	free(got);
}

static bool
hides(const char *name)
{
	return kept_hides((const uint8_t *)name, strlen(name));
}

static void
names(void **state)
{
	static const char *const yes[] = {"password", "PASSWORD", "db_password",
	    "passwordHash", "api_key", "API-Key", "x-api-key", "apiKey",
	    "client_secret", "secrets", "access_token", "token", "authToken",
	    "bot-token", "Authorization", "Proxy-Authorization", "Cookie",
	    "set-cookie", "privateKey", "private_key_pem", "pwd", "DB_PWD",
	    "pin", "PIN", "otp", "auth", "connection_string", "credentials",
	    "p\\u0061ssword", "aws_secret_access_key", "jwt", "x.session.id"};
	static const char *const no[] = {"", "a", "pins", "spin", "author",
	    "authors", "tokens", "max_tokens", "token_count", "next_page_token",
	    "progressToken", "continuation-token", "syncToken", "key", "keys",
	    "primary_key", "pass_rate", "bypass", "compass", "cwd", "session",
	    "cookiecutter", "opinion", "name", "jwts", "dsnames"};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!hides(yes[i]))
			fail_msg("%s is kept", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (hides(no[i]))
			fail_msg("%s is hidden", no[i]);
}

static void
values(void **state)
{
	(void)state;
	becomes("{}", NULL);
	becomes("{\"a\": [1, \"password\", {\"b\": null}]}", NULL);
	becomes("{\"password\": \"x\"}", "{\"password\": \"[redacted]\"}");
	becomes("{\"password\" :\n 12.5e3 , \"a\":1}",
	    "{\"password\" :\n \"[redacted]\" , \"a\":1}");
	becomes("{\"token\":[1,{\"a\":\"]}\\\"\"}],\"b\":2}",
	    "{\"token\":\"[redacted]\",\"b\":2}");
	becomes("{\"token\":{\"a\":{}},\"secret\":-1}",
	    "{\"token\":\"[redacted]\",\"secret\":\"[redacted]\"}");
	becomes("[{\"pwd\":\"\\\\\"},{\"pwd\":\"\"}]",
	    "[{\"pwd\":\"[redacted]\"},{\"pwd\":\"[redacted]\"}]");
	/* what tells nothing */
	becomes("{\"password\":null,\"token\":true,\"secret\": false}", NULL);
	/* a value is no name, even where it looks like one */
	becomes("[\"password\", \"x\"]", NULL);
	becomes("{\"a\":\"password\",\"b\":\"x\"}", NULL);
	becomes("\"password\"", NULL);
	/* escapes in a name */
	becomes("{\"pass\\u0077ord\":\"x\"}",
	    "{\"pass\\u0077ord\":\"[redacted]\"}");
}

static void
nested(void **state)
{
	(void)state;
	becomes("{\"text\":\"{\\\"api_key\\\": \\\"x\\\", \\\"n\\\": "
		"\\\"\\u00e9\\\"}\"}",
	    "{\"text\":\"{\\\"api_key\\\": \\\"[redacted]\\\", "
	    "\\\"n\\\": \\\"\xc3\xa9\\\"}\"}");
	becomes("{\"text\":\"\\n [{\\\"pin\\\":1}]\"}",
	    "{\"text\":\"\\u000a [{\\\"pin\\\":\\\"[redacted]\\\"}]\"}");
	/* no JSON, or nothing in it: as it is */
	becomes("{\"text\":\"{\\\"api_key\\\": x}\"}", NULL);
	becomes("{\"text\":\"{\\\"a\\\": 1}\"}", NULL);
	becomes("{\"text\":\"[]\"}", NULL);
	/* once: a third level is what it is */
	becomes(
	    "{\"t\":\"{\\\"u\\\":\\\"{\\\\\\\"pin\\\\\\\":1}\\\"}\"}", NULL);
}

static void
cuts(void **state)
{
	char text[9000], *got;
	struct err e;
	int n;

	(void)state;
	/* One long string: cut, and JSON still. */
	n = snprintf(text, sizeof(text), "{\"pin\":1,\"note\":\"");
	memset(text + n, 'x', 5000);
	snprintf(
	    text + n + 5000, sizeof(text) - (size_t)n - 5000, "\",\"a\":true}");
	got = kept(text, 4096, 1);
	assert_int_equal(json_scan((uint8_t *)got, strlen(got), &e), 0);
	assert_non_null(strstr(got, "xxx" KEPT_CUT "\",\"a\":true}"));
	assert_non_null(strstr(got, "\"pin\":\"[redacted]\""));
	assert_true(strlen(got) < 1000);
	free(got);
	/* Escapes and characters are not cut through. */
	n = snprintf(text, sizeof(text), "[\"");
	for (int i = 0; i < 700; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
		    i % 2 ? "\\ud83d\\ude00" : "\xe2\x82\xac");
	snprintf(text + n, sizeof(text) - (size_t)n, "\"]");
	got = kept(text, 4096, 1);
	assert_int_equal(json_scan((uint8_t *)got, strlen(got), &e), 0);
	free(got);
	/* Many short members: cut in the middle, marked, no longer than max. */
	n = snprintf(text, sizeof(text), "{\"a\":[");
	while (n < 8000)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
		    "{\"pin\":\"%04d\"},", n);
	snprintf(text + n - 1, 4, "]}");
	got = kept(text, 4096, 1);
	assert_int_equal(strlen(got), 4096);
	assert_string_equal(got + 4096 - 3, KEPT_CUT);
	assert_null(strstr(got, "\"0"));
	free(got);
}

/* A huge string of JSON is not looked into, and so not kept. */
static void
huge_nested(void **state)
{
	size_t n = 300 * 1024;
	char *text = malloc(n + 64), *got;
	struct buf out;
	struct err e;
	int at;

	(void)state;
	assert_non_null(text);
	at = snprintf(text, 64, "{\"text\":\"{\\\"pin\\\":1,\\\"a\\\":\\\"");
	memset(text + at, 'x', n);
	snprintf(text + at + n, 16, "\\\"}\"}");
	assert_int_equal(json_scan((uint8_t *)text, strlen(text), &e), 0);
	buf_init(&out, 65536);
	assert_int_equal(
	    kept_form((uint8_t *)text, strlen(text), 65536, &out), 1);
	buf_putc(&out, '\0');
	got = (char *)out.p;
	assert_non_null(strstr(got, "bytes]" KEPT_CUT));
	assert_null(strstr(got, "pin"));
	buf_free(&out);
	free(text);
}

/* Each member named so has lost its value, or had none that tells. */
static void
none_left(const uint8_t *p, size_t n)
{
	static const char name[] = "\"password\":", mark[] = KEPT_MARK;
	const uint8_t *end = p + n;

	while ((p = memmem(p, (size_t)(end - p), name, sizeof(name) - 1))) {
		for (p += sizeof(name) - 1; *p == ' '; p++)
			;
		if (*p != 'n' && *p != 't' && *p != 'f')
			assert_memory_equal(p, mark, sizeof(mark) - 1);
	}
}

/* However a text is made, what is put is the text or valid JSON without what
 * was to be hidden, at most max bytes. */
static void
random_texts(void **state)
{
	static const char *const piece[] = {"{", "}", "[", "]", ",", ":", "\"",
	    "\\\"", "\"password\":", "\"CANARY\"", "\"a\":", "1", "null",
	    "true", "\"{\\\"token\\\":\\\"CANARY\\\"}\"", " ", "\"x\"",
	    "\"pin\": ", "{\"secret\":\"CANARY\"}", "[\"b\",2]",
	    "\xe2\x82\xac"};
	unsigned seed = 20261122, good = 0;
	char text[512];
	struct buf out;
	struct err e;
	int n, rc;

	(void)state;
	for (int i = 0; i < 400000; i++) {
		n = 0;
		text[0] = '\0';
		for (unsigned k = 1 + (seed >> 8) % 9; k > 0; k--) {
			seed = seed * 1664525 + 1013904223;
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s",
			    piece[(seed >> 12) %
				(sizeof(piece) / sizeof(piece[0]))]);
		}
		seed = seed * 1664525 + 1013904223;
		if (json_scan((uint8_t *)text, (size_t)n, &e) == -1)
			continue;
		good++;
		buf_init(&out, 200);
		rc = kept_form((uint8_t *)text, (size_t)n, 200, &out);
		assert_int_not_equal(rc, -1);
		if (rc == 1) {
			assert_int_equal(json_scan(out.p, out.len, &e), 0);
			none_left(out.p, out.len);
		} else {
			assert_int_equal(out.len, 0);
			none_left((uint8_t *)text, (size_t)n);
		}
		buf_free(&out);
	}
	assert_true(good > 5000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names),
	    cmocka_unit_test(values),
	    cmocka_unit_test(nested),
	    cmocka_unit_test(cuts),
	    cmocka_unit_test(huge_nested),
	    cmocka_unit_test(random_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
