/* The origin of an address: the form that browsers write, and nothing that ends
 * a source or a directive of a policy. */
#include "unit.h"

#include "origin.h"

static void
forms(void **state)
{
	static const struct {
		const char *address;
		size_t length;
	} t[] = {
	    {"http://127.0.0.1:8002/mcp", 21},
	    {"http://127.0.0.1:8002", 21},
	    {"http://localhost/", 16},
	    {"https://a-b.example.org:65535/x;y", 29},
	    {"http://[::1]:1/", 14},
	    {"http://a", 8},
	    {"", 0},
	    {"http://", 0},
	    {"http:///mcp", 0},
	    {"HTTP://a", 0},
	    {"ftp://a", 0},
	    {"//a", 0},
	    {"http://A.example", 0},
	    {"http://a_b", 0},
	    {"http://.a", 0},
	    {"http://a.", 0},
	    {"http://a..b", 0},
	    {"http://-a", 0},
	    {"http://a-", 0},
	    {"http://*", 0},
	    {"http://*.a", 0},
	    {"http://u@a", 0},
	    {"http://a:80", 0},
	    {"https://a:443", 0},
	    {"http://a:", 0},
	    {"http://a:0", 0},
	    {"http://a:08000", 0},
	    {"http://a:65536", 0},
	    {"http://a:123456", 0},
	    {"http://a:8x", 0},
	    {"http://a?x", 0},
	    {"http://a#x", 0},
	    {"http://a;x", 0},
	    {"http://a b", 0},
	    {"http://a,b", 0},
	    {"http://a'b", 0},
	    {"http://a\r\nX: y", 0},
	    {"http://[::2]", 0},
	    {"http://[::1", 0},
	    {"http://a\\b", 0},
	    {"http://\xc3\xa4", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (origin_read(t[i].address) != t[i].length)
			fail_msg(
			    "%s: %zu", t[i].address, origin_read(t[i].address));
}

/* 80 is not https's own port, nor 443 http's. */
static void
ports(void **state)
{
	(void)state;
	assert_int_equal(origin_read("https://a:80"), 12);
	assert_int_equal(origin_read("http://a:443"), 12);
}

static void
long_hosts(void **state)
{
	char text[ORIGIN_MAX + 8];
	size_t n = ORIGIN_HOST_MAX;

	(void)state;
	memcpy(text, "http://", 7);
	memset(text + 7, 'a', n + 1);
	text[7 + n] = '\0';
	assert_int_equal(origin_read(text), 7 + n);
	text[7 + n] = 'a';
	text[8 + n] = '\0';
	assert_int_equal(origin_read(text), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(forms),
	    cmocka_unit_test(ports),
	    cmocka_unit_test(long_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
