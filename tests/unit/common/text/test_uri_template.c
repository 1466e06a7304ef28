/* uri_template.h: what is a URI, what is a template, what matches and how. */
#include "unit.h"

#include <unistd.h>

#include "uri_template.h"

static void
uris(void **state)
{
	static const char *const good[] = {"a:b", "test://static-text",
	    "file:///a%20b?x=[1]#f", "urn:isbn:0451450523", "x+y-z.1:/"};
	static const char *const bad[] = {"", ":", "a:", "1a:b", "noscheme",
	    "/a:b", "a:b c", "a:\"", "a:{b}", "a:%", "a:%2", "a:%2g", "a:\x7f",
	    "a:\xc3\xa9", "a:b\n", "a:<", "a:\\", "a:^", "a:`", "a:|"};
	char longest[URI_MAX + 2];
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(uri_check(good[i], strlen(good[i]), &e), 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(uri_check(bad[i], strlen(bad[i]), &e), -1);
	assert_int_equal(uri_check("a:b\0c", 5, &e), -1);
	memset(longest, 'x', sizeof(longest));
	longest[1] = ':';
	assert_int_equal(uri_check(longest, URI_MAX, &e), 0);
	assert_int_equal(uri_check(longest, URI_MAX + 1, &e), -1);
}

static void
templates(void **state)
{
	static const char *const good[] = {
	    "a:{b}", "test://t/{id}/data", "a:{+b}/{c}", "a:{_}x{B9}"};
	static const char *const bad[] = {"{a}:b", "a:b", "a:", "a:{}", "a:{",
	    "a:{b", "a:}", "a:{b}{c}", "a:{b}{+c}", "a:{b}/{b}", "a:{#b}",
	    "a:{b*}", "a:{b,c}", "a:{b:3}", "a:{1}", "a:{b-c}", "a:%2{b}",
	    "a:{b} ", "a:{++b}", "a:{aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}",
	    "a:{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}"};
	struct uri_template t;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(
		    uri_template_parse(good[i], strlen(good[i]), &t, &e), 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&t, 7, sizeof(t));
		assert_int_equal(
		    uri_template_parse(bad[i], strlen(bad[i]), &t, &e), -1);
		assert_int_equal(t.parts, (size_t)0x0707070707070707);
	}
	assert_int_equal(
	    uri_template_parse("a:{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}", 33, &t, &e),
	    0);
	assert_int_equal(t.variables, URI_VARIABLES_MAX);
}

/* The values, joined by '|', that the URI gives; NULL: no match. */
static const char *
values(const char *template, const char *uri)
{
	struct uri_value v[URI_VARIABLES_MAX];
	static char out[URI_MAX + 16];
	struct uri_template t;
	struct err e;
	size_t i, n = 0;

	assert_int_equal(
	    uri_template_parse(template, strlen(template), &t, &e), 0);
	if (!uri_template_match(&t, uri, strlen(uri), v))
		return NULL;
	for (i = 0; i < t.variables; i++) {
		if (i > 0)
			out[n++] = '|';
		memcpy(out + n, v[i].p, v[i].n);
		n += v[i].n;
	}
	out[n] = '\0';
	return out;
}

static void
matches(void **state)
{
	static const struct {
		const char *template, *uri, *want;
	} c[] = {
	    {"test://template/{id}/data", "test://template/123/data", "123"},
	    {"test://template/{id}/data", "test://template//data", NULL},
	    {"test://template/{id}/data", "test://template/1/2/data", NULL},
	    {"test://template/{id}/data", "test://template/1/data/", NULL},
	    {"test://template/{id}/data", "TEST://template/1/data", NULL},
	    {"f:///{+path}", "f:///a/b/c.txt", "a/b/c.txt"},
	    {"f:///{+path}", "f:///", NULL},
	    {"f:{name}.{ext}", "f:a.tar.gz", "a.tar|gz"},
	    {"f:{name}.{ext}", "f:.gz", NULL},
	    {"f:{name}.{ext}", "f:a.", NULL},
	    {"f:{a}/{+b}/{c}", "f:1/2/3/4", "1|2/3|4"},
	    {"f:{+a}-{b}", "f:x/y-z-w", "x/y-z|w"},
	    {"f:{a}", "f:a%20b", "a%20b"},
	    {"f:{a}", "f:a%2Fb", NULL},
	    {"f:{a}", "f:a%2fb", NULL},
	    {"f:{+a}", "f:a%2Fb", "a%2Fb"},
	    {"f:{a}", "f:a b", NULL},
	    {"f:{a}", "f:%zz", NULL},
	    {"f:{a}2F", "f:x%2F", NULL},
	    {"f:{a}%2F", "f:x%2F", "x"},
	    {"f:{a}?q={b}", "f:x?q=?q=y", "x?q=|y"},
	};
	const char *got;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		got = values(c[i].template, c[i].uri);
		if (c[i].want == NULL)
			assert_null(got);
		else
			assert_string_equal(got, c[i].want);
	}
}

/* The worst template there is must not take long: 8 variables over a URI of
 * one repeated character, and a literal that never comes. */
static void
no_explosion(void **state)
{
	static const char text[] =
	    "f:{+a}a{+b}a{+c}a{+d}a{+e}a{+f}a{+g}a{+h}ba";
	struct uri_value v[URI_VARIABLES_MAX];
	struct uri_template t;
	char uri[URI_MAX];
	struct err e;
	int i;

	(void)state;
	memset(uri, 'a', sizeof(uri));
	uri[0] = 'f';
	uri[1] = ':';
	assert_int_equal(uri_template_parse(text, sizeof(text) - 1, &t, &e), 0);
	for (i = 0; i < 1000; i++)
		assert_false(uri_template_match(&t, uri, sizeof(uri), v));
	t.part[t.parts - 1].p++; /* "a" is there */
	t.part[t.parts - 1].n--;
	/* about 0.1 s; exponential search would never end */
	alarm((unsigned)unit_patience(5000) / 1000);
	for (i = 0; i < 1000; i++)
		assert_true(uri_template_match(&t, uri, sizeof(uri), v));
	alarm(0);
}

static void
decoding(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 64);
	assert_int_equal(uri_decode("a%20%C3%a9+%2F", 14, &b), 0);
	assert_int_equal(b.len, 6);
	assert_memory_equal(b.p, "a \xc3\xa9+/", 6);
	buf_clear(&b);
	assert_int_equal(uri_decode("a%00", 4, &b), -1);
	buf_clear(&b);
	assert_int_equal(uri_decode("%ff", 3, &b), -1);
	buf_clear(&b);
	assert_int_equal(uri_decode("%C3", 3, &b), -1);
	buf_clear(&b);
	assert_int_equal(uri_decode("100%", 4, &b), 0);
	assert_int_equal(b.len, 4);
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(uris),
	    cmocka_unit_test(templates),
	    cmocka_unit_test(matches),
	    cmocka_unit_test(no_explosion),
	    cmocka_unit_test(decoding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
