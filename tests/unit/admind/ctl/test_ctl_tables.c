/*
 * Objects as people see them: no two different ones look alike, whatever their
 * texts are, since models write some of these.
 */
#include <json-c/json.h>

#include "tables.h"
#include "unit.h"

/* Scalars as JSON: each text is what another value looks like, or nearly. */
static const char *const scalars[] = {"null", "true", "1", "-1.5e3", "\"\"",
    "\"-\"", "\"none\"", "\"null\"", "\"true\"", "\"1\"", "\"-1.5e3\"", "\"a\"",
    "\"a,\"", "\"a, b\"", "\"a=1\"", "\"a=1,\"", "\"1, true\"", "\"{}\"",
    "\"[1]\"", "\"\\\"a\\\"\"", "\"\\\\\\\"a\"", "\"a\\nm: b\"", "\" a\"",
    "\"-,\"", "\"a \"", "\"1:\"", "\"\\\"a\\\", b\"", "\"a=\\\"b\\\"\"",
    "\"\\u00e9\""};
static const char *const names[] = {"a", "1", "a: b", "", "-"};

enum {
	NSCALARS = sizeof(scalars) / sizeof(scalars[0]),
	NNAMES = sizeof(names) / sizeof(names[0]),
	VALUES_MAX = 16 * 1024,
	TEXT_MAX = 512
};

static struct {
	char *json, *shown;
} values[VALUES_MAX];
static size_t nvalues;

static int
compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)((const char *)a + sizeof(char *)),
	    *(char *const *)((const char *)b + sizeof(char *)));
}

/* Shows {"m": VALUE}. */
static void
add(const char *value)
{
	char text[2 * TEXT_MAX];
	struct json_object *o;
	struct buf b;

	snprintf(text, sizeof(text), "{\"m\": %s}", value);
	assert_non_null(o = json_tokener_parse(text));
	buf_init(&b, 64 * 1024);
	tables_object(&b, o);
	buf_putc(&b, '\0');
	assert_false(b.failed);
	assert_true(nvalues < VALUES_MAX);
	values[nvalues].json = strdup(text);
	values[nvalues++].shown = strdup((const char *)b.p);
	buf_free(&b);
	json_object_put(o);
}

/* Writes a value's JSON. */
static void __attribute__((format(printf, 2, 3)))
put(char out[TEXT_MAX], const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, TEXT_MAX, fmt, ap);
	va_end(ap);
	assert_in_range(n, 0, TEXT_MAX - 1);
}

/* Every value of at most two parts, each a scalar, list or object of one. */
static void
no_two_objects_look_alike(void **state)
{
	char one[2 * NSCALARS * NNAMES + NSCALARS][TEXT_MAX], text[TEXT_MAX];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < NSCALARS; i++) {
		put(one[n++], "%s", scalars[i]);
		put(one[n++], "[%s]", scalars[i]);
		for (size_t k = 0; k < NNAMES; k++)
			put(one[n++], "{\"%s\": %s}", names[k], scalars[i]);
	}
	add("[]");
	add("{}");
	for (size_t i = 0; i < n; i++) {
		add(one[i]);
		if (one[i][0] == '[' || one[i][0] == '{') {
			put(text, "[%s]", one[i]);
			add(text);
			put(text, "{\"1\": %s}", one[i]);
			add(text);
		}
	}
	for (size_t i = 0; i < NSCALARS; i++)
		for (size_t k = 0; k < NSCALARS; k++) {
			put(text, "[%s, %s]", scalars[i], scalars[k]);
			add(text);
			put(text, "{\"a\": %s, \"b\": %s}", scalars[i],
			    scalars[k]);
			add(text);
			put(text, "[{\"a\": %s}, %s]", scalars[i], scalars[k]);
			add(text);
		}
	qsort(values, nvalues, sizeof(values[0]), compare);
	for (size_t i = 1; i < nvalues; i++)
		if (strcmp(values[i - 1].shown, values[i].shown) == 0)
			fail_msg("%s and %s are both shown as\n%s",
			    values[i - 1].json, values[i].json,
			    values[i].shown);
	for (size_t i = 0; i < nvalues; i++) {
		free(values[i].json);
		free(values[i].shown);
	}
}

/* A text that looks like nothing else stays without quotes. */
static void
words_stay_words(void **state)
{
	static const char text[] =
	    "{\"name\": \"demo\", \"doc\": \"Adds two numbers, and a third.\","
	    " \"at\": \"2026-11-25T22:17:40Z\", \"scopes\": [\"a:b\", \"c\"],"
	    " \"url\": \"https://a.example/x?y=z\"}";
	struct json_object *o = json_tokener_parse(text);
	struct buf b;

	(void)state;
	assert_non_null(o);
	buf_init(&b, 64 * 1024);
	tables_object(&b, o);
	buf_putc(&b, '\0');
	assert_string_equal((const char *)b.p,
	    "name: demo\n"
	    "doc: Adds two numbers, and a third.\n"
	    "at: 2026-11-25T22:17:40Z\n"
	    "scopes: a:b, c\n"
	    "url: https://a.example/x?y=z\n");
	buf_free(&b);
	json_object_put(o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_two_objects_look_alike),
	    cmocka_unit_test(words_stay_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
