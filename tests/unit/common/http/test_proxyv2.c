/* The PROXY protocol's header, version 2, and the list of who may send it. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "proxyv2.h"

static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";

/* A header: its length. rest: bytes after the first 16. */
static size_t
make(uint8_t *p, int command, int family, const void *rest, size_t len)
{
	memcpy(p, signature, 12);
	p[12] = (uint8_t)command;
	p[13] = (uint8_t)family;
	p[14] = (uint8_t)(len >> 8);
	p[15] = (uint8_t)len;
	if (len > 0)
		memcpy(p + 16, rest, len);
	return 16 + len;
}

static void
client_is(const struct proxyv2 *v, const char *want, unsigned port)
{
	const struct sockaddr_in *in4 = (const void *)&v->from;
	const struct sockaddr_in6 *in6 = (const void *)&v->from;
	char text[INET6_ADDRSTRLEN];

	assert_true(v->client);
	assert_false(v->local);
	if (v->from.ss_family == AF_INET) {
		inet_ntop(AF_INET, &in4->sin_addr, text, sizeof(text));
		assert_int_equal(ntohs(in4->sin_port), port);
	} else {
		assert_int_equal(v->from.ss_family, AF_INET6);
		inet_ntop(AF_INET6, &in6->sin6_addr, text, sizeof(text));
		assert_int_equal(ntohs(in6->sin6_port), port);
	}
	assert_string_equal(text, want);
}

static const uint8_t four[12] = {
    192, 0, 2, 7, 198, 51, 100, 1, 0x80, 0x01, 0x1f, 0x42};

static void
headers(void **state)
{
	uint8_t p[PROXYV2_MAX + 16], rest[PROXYV2_REST_MAX] = {0};
	struct proxyv2 v;
	size_t n;

	n = make(p, 0x21, 0x11, four, sizeof(four));
	memset(p + n, 'G', 4); /* the request after it is not looked at */
	assert_int_equal(proxyv2_read(p, n + 4, &v, NULL), 28);
	client_is(&v, "192.0.2.7", 0x8001);
	/* Whatever piece of it came: more. */
	for (size_t k = 0; k < n; k++)
		assert_int_equal(proxyv2_read(p, k, &v, NULL), 0);

	inet_pton(AF_INET6, "2001:db8::7", rest);
	rest[32] = 0x12;
	rest[33] = 0x34;
	n = make(p, 0x21, 0x21, rest, 36);
	assert_int_equal(proxyv2_read(p, n, &v, NULL), 52);
	client_is(&v, "2001:db8::7", 0x1234);
	/* TLVs, up to the bound. */
	n = make(p, 0x21, 0x21, rest, PROXYV2_REST_MAX);
	assert_int_equal(proxyv2_read(p, n, &v, NULL), PROXYV2_MAX);
	client_is(&v, "2001:db8::7", 0x1234);

	/* The balancer's own, whatever its family; no IP address. */
	n = make(p, 0x20, 0x00, NULL, 0);
	assert_int_equal(proxyv2_read(p, n, &v, NULL), 16);
	assert_true(v.local && !v.client);
	n = make(p, 0x20, 0xff, rest, 5);
	assert_int_equal(proxyv2_read(p, n, &v, NULL), 21);
	assert_true(v.local && !v.client);
	n = make(p, 0x21, 0x00, rest, 7);
	assert_int_equal(proxyv2_read(p, n, &v, NULL), 23);
	assert_true(!v.local && !v.client);
	n = make(p, 0x21, 0x31, rest, 216);
	assert_int_equal(proxyv2_read(p, n, &v, NULL), 232);
	assert_true(!v.local && !v.client);
}

static void
no_headers(void **state)
{
	static const char *const texts[] = {"GET / HTTP/1.1\r\n", "x",
	    "PROXY TCP4 192.0.2.7 198.51.100.1 32769 8002\r\n", "\r\n\r\n\r\n"};
	static const int bad[][2] = {{0x11, 0x11}, {0x22, 0x11}, {0x31, 0x11},
	    {0x21, 0x12}, {0x21, 0x22}, {0x21, 0x10}, {0x21, 0x41}};
	struct proxyv2 v = {.local = true};
	uint8_t p[PROXYV2_MAX];
	struct err e;
	size_t n;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(proxyv2_read((const uint8_t *)texts[i],
				     strlen(texts[i]), &v, &e),
		    -1);
	(void)proxyv2_read((const uint8_t *)texts[2], strlen(texts[2]), &v, &e);
	assert_non_null(strstr(e.text, "send-proxy-v2"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		n = make(p, bad[i][0], bad[i][1], four, sizeof(four));
		assert_int_equal(proxyv2_read(p, n, &v, &e), -1);
	}
	n = make(p, 0x21, 0x11, four, 11); /* an address that is cut */
	assert_int_equal(proxyv2_read(p, n, &v, &e), -1);
	n = make(p, 0x21, 0x21, four, 12);
	assert_int_equal(proxyv2_read(p, n, &v, &e), -1);
	/* Too long: refused before it has come. */
	n = make(p, 0x21, 0x11, four, sizeof(four));
	p[14] = (PROXYV2_REST_MAX + 1) >> 8;
	p[15] = (PROXYV2_REST_MAX + 1) & 0xff;
	assert_int_equal(proxyv2_read(p, n, &v, &e), -1);
	assert_true(v.local); /* untouched */
}

static bool
may(const struct proxyv2_from *f, const char *text)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in in4 = {.sin_family = AF_INET};

	if (inet_pton(AF_INET, text, &in4.sin_addr) == 1)
		return proxyv2_from_has(f, (struct sockaddr *)(void *)&in4);
	assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
	return proxyv2_from_has(f, (struct sockaddr *)(void *)&in6);
}

static void
senders(void **state)
{
	static const char *const bad[] = {"192.0.2", "192.0.2.7/33",
	    "192.0.2.7/", "192.0.2.7/x", "192.0.2.7 192.0.2.8", ",",
	    "192.0.2.7,,192.0.2.8", "localhost", "2001:db8::/129", "[::1]",
	    "192.0.2.7:80"};
	struct sockaddr un = {.sa_family = AF_UNIX};
	struct proxyv2_from f = {.n = 0};
	char many[1024] = "192.0.2.7";
	struct err e;

	assert_int_equal(
	    proxyv2_from_read(" 192.0.2.7 ,10.1.2.0/23, 2001:db8::/64", &f, &e),
	    0);
	assert_int_equal(f.n, 3);
	assert_true(may(&f, "192.0.2.7"));
	assert_false(may(&f, "192.0.2.6"));
	assert_true(may(&f, "::ffff:192.0.2.7"));
	assert_true(may(&f, "10.1.3.255") && may(&f, "10.1.2.0"));
	assert_false(may(&f, "10.1.4.0") || may(&f, "10.1.1.255"));
	assert_true(may(&f, "2001:db8::ffff"));
	assert_false(may(&f, "2001:db8:0:1::"));
	assert_false(may(&f, "::1") || may(&f, "127.0.0.1"));
	assert_false(proxyv2_from_has(&f, &un));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(proxyv2_from_read(bad[i], &f, &e), -1);
		assert_non_null(strstr(e.text, "ADDRESS[/BITS]"));
		assert_int_equal(f.n, 3);
	}
	for (int i = 0; i < PROXYV2_FROM_MAX; i++)
		memcpy(many + 9 + 10 * i, ",192.0.2.7", 11);
	assert_int_equal(proxyv2_from_read(many, &f, &e), -1);
	assert_int_equal(proxyv2_from_read("", &f, &e), 0);
	assert_int_equal(f.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(headers),
	    cmocka_unit_test(no_headers),
	    cmocka_unit_test(senders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
