/* admind-http at the https names of panel_origins: origins.h, and the guard
 * with such a list. */
#include "unit.h"

#include "guard.h"
#include "origins.h"

/* Lists of panel_origins: those that are taken, and those that are not. */
static void
lists(void **state)
{
	static const char *const good[] = {"", "https://mcpbox.example.org",
	    "https://mcpbox.example.org:8443", "https://box",
	    "https://a.example,https://b.example:1", "https://4.example",
	    "https://xn--bcher-kva.example", "https://localhost.example"};
	static const char *const bad[] = {"https://", "http://a.example",
	    "a.example", "https://a.example/", "https://a.example:443",
	    "https://a.example:0", "https://a.example:08443",
	    "https://a.example:65536",
	    "https://a.example:", "https://a.example:8443x",
	    "https://A.example", "https://a..example", "https://.a",
	    "https://a.", "https://-a.example", "https://a-.example",
	    "https://127.0.0.1", "https://[::1]", "https://192.0.2.1:8443",
	    "https://localhost", "https://localhost:8443",
	    "https://a.localhost", "https://u@a.example", "https://a.example,",
	    ",https://a.example", "https://a.example, https://b.example",
	    "https://a.example,http://b.example", "https://*.example"};
	/* one more than ORIGINS_COUNT_MAX */
	static const char many[] =
	    "https://a,https://b,https://c,https://d,https://e,https://f,"
	    "https://g,https://h,https://i";
	char text[8 + ORIGINS_HOST_MAX + 3] = "https://";
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (origins_check(good[i], &e) < 0)
			fail_msg("refused: %s: %s", good[i], e.text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (origins_check(bad[i], &e) == 0)
			fail_msg("accepted: %s", bad[i]);
	assert_int_equal(origins_check(many, &e), -1);
	/* labels of one letter with dots between: 253 octets, then 255 */
	for (size_t i = 0; i < ORIGINS_HOST_MAX; i++)
		text[8 + i] = i % 2 == 0 ? 'a' : '.';
	assert_int_equal(origins_check(text, &e), 0);
	text[8 + ORIGINS_HOST_MAX] = '.';
	text[8 + ORIGINS_HOST_MAX + 1] = 'a';
	assert_int_equal(origins_check(text, &e), -1);
	/* one label of 64 octets */
	memset(text + 8, 'a', ORIGINS_LABEL_MAX + 1);
	text[8 + ORIGINS_LABEL_MAX + 1] = '\0';
	assert_int_equal(origins_check(text, &e), -1);
	text[8 + ORIGINS_LABEL_MAX] = '\0';
	assert_int_equal(origins_check(text, &e), 0);
}

#define PLACES "https://a.example:8443,https://b.example"

static void
listed_hosts(void **state)
{
	(void)state;
	assert_true(origins_have(PLACES, "a.example:8443"));
	assert_true(origins_have(PLACES, "B.example"));
	assert_false(origins_have(PLACES, "a.example"));
	assert_false(origins_have(PLACES, "a.example:8444"));
	assert_false(origins_have(PLACES, "b.example:443"));
	assert_false(origins_have(PLACES, "b.example."));
	assert_false(origins_have(PLACES, "b.exampl"));
	assert_false(origins_have(PLACES, "example"));
	assert_false(origins_have(PLACES, "b.example,"));
	assert_false(origins_have(PLACES, "a.example:8443,https://b.example"));
	assert_false(origins_have(PLACES, ""));
	assert_false(origins_have("", "b.example"));
	assert_false(origins_have("", ""));
}

static struct http1_request
request(const char *host, const char *name, const char *value)
{
	struct http1_request r = {.method = HTTP1_POST, .path = "/"};

	r.fields[r.nfields++] = (struct http1_field){"host", host};
	if (name != NULL)
		r.fields[r.nfields++] = (struct http1_field){name, value};
	return r;
}

/* At a name of panel_origins. */
static void
requests_by_a_proxy(void **state)
{
	struct http1_request r;
	bool https = false;
	struct err e;

	(void)state;
	r = request("b.example", NULL, NULL);
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), 0);
	assert_true(https);
	r = request("b.example", "origin", "https://b.example");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), 0);
	r = request("b.example", "sec-fetch-site", "same-origin");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), 0);
	/* A page by http at that name: its name server answers 127.0.0.1. */
	r = request("b.example", "origin", "http://b.example");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), -1);
	r = request("b.example:8000", NULL, NULL);
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), -1);
	/* Another origin of the list is another origin. */
	r = request("b.example", "origin", "https://a.example:8443");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), -1);
	r = request("b.example", "origin", "http://127.0.0.1:8000");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), -1);
	/* A neighbour in the domain is the same site. */
	r = request("b.example", "sec-fetch-site", "same-site");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), -1);
	r = request("b.example", "sec-fetch-site", "cross-site");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), -1);
	assert_int_equal(guard_request(&r, PLACES, true, &https, &e), 0);
	r = request("b.example", "host", "b.example");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), -1);
	/* Fields of proxies make no name. */
	r = request("c.example", "x-forwarded-host", "b.example");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), -1);
	r = request("127.0.0.1:8000", "x-forwarded-proto", "https");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), 0);
	assert_false(https);
	/* The address takes no https, as without a list. */
	r = request("127.0.0.1:8000", "origin", "https://b.example");
	assert_int_equal(guard_request(&r, PLACES, false, &https, &e), -1);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lists),
	    cmocka_unit_test(listed_hosts),
	    cmocka_unit_test(requests_by_a_proxy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
