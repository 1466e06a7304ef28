/*
 * The metadata of signed tokens (RFC 9728): the two paths with every
 * method, for pages that may not see them, and while admind says nothing.
 */
#include "access_rig.h"
#include "unit.h"

/* ---- the metadata ---- */

#define ROOT      "/.well-known/oauth-protected-resource"
#define LOCALHOST " HTTP/1.1\r\nHost: localhost:8\r\n"

static void
served(const char *request)
{
	assert_int_equal(ask_raw(request), 200);
	assert_true(has("Content-Type: application/json\r\n") &&
	    has("Access-Control-Allow-Origin: *\r\n") &&
	    has("Cache-Control: max-age=300\r\n"));
	assert_false(has("Vary") || has("http://good.example"));
	assert_string_equal(strstr(answer, "\r\n\r\n") + 4, METADATA);
}

static void
test_metadata(void **state)
{
	static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};
	static const char *const absent[] = {ROOT "/", ROOT "/mcp/",
	    ROOT "/other", ROOT "s", "/.well-known/oauth-authorization-server",
	    "/.well-known/openid-configuration", "/mcp" ROOT,
	    "/.WELL-KNOWN/oauth-protected-resource"};
	char text[512];
	struct lc c;
	size_t i;

	(void)state;
	/* No issuer: they do not exist. */
	assert_int_equal(ask_raw("GET " ROOT LOCALHOST "\r\n"), 404);
	assert_int_equal(ask_raw("GET " ROOT "/mcp" LOCALHOST "\r\n"), 404);
	assert_int_equal(ask_raw("PUT " ROOT LOCALHOST "\r\n"), 404);
	tell_access(false, true);
	served("GET " ROOT LOCALHOST "\r\n");
	served("GET " ROOT "/mcp" LOCALHOST "\r\n");
	served("GET " ROOT "/mcp?x=y" LOCALHOST "\r\n");
	served("GET " ROOT LOCALHOST "Origin: http://good.example\r\n\r\n");
	/* A credential is not read, a bad one neither. */
	served("GET " ROOT LOCALHOST BEARER "bad\r\n" ASSERTION "x\r\n\r\n");
	/* HEAD: the length, and no byte after the head. */
	c = lc_open(address);
	lc_sends(&c, base,
	    "HEAD " ROOT "/mcp" LOCALHOST "Connection: close\r\n\r\n");
	lc_until_eof(&c, base);
	snprintf(text, sizeof(text), "\r\nContent-Length: %zu\r\n",
	    strlen(METADATA));
	assert_memory_equal(c.p, "HTTP/1.1 200 ", 13);
	assert_non_null(strstr(c.p, text));
	assert_string_equal(strstr(c.p, "\r\n\r\n"), "\r\n\r\n");
	lc_close(&c);
	assert_int_equal(ask_raw("OPTIONS " ROOT "/mcp" LOCALHOST
				 "Origin: http://good.example\r\n"
				 "Access-Control-Request-Method: GET\r\n\r\n"),
	    204);
	assert_true(has("Access-Control-Allow-Origin: *\r\n") &&
	    has("Access-Control-Allow-Methods: GET, HEAD, OPTIONS\r\n") &&
	    has("Access-Control-Allow-Headers: MCP-Protocol-Version\r\n"));
	assert_false(has("http://good.example"));
	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		snprintf(text, sizeof(text), "%s " ROOT "/mcp" LOCALHOST "\r\n",
		    methods[i]);
		assert_int_equal(ask_raw(text), 405);
		assert_true(has("Allow: GET, HEAD, OPTIONS\r\n") &&
		    has("\"fix\":\"Send GET.\""));
	}
	for (i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		snprintf(
		    text, sizeof(text), "GET %s" LOCALHOST "\r\n", absent[i]);
		assert_int_equal(ask_raw(text), 404);
	}
	assert_int_equal(authenticates, 0);
	assert_int_equal(gw.exchange_count, 0);
}

/* The listener's own rules come first: a page that rebound a name of its own
 * learns nothing. */
static void
test_metadata_for_pages(void **state)
{
	static const char *const paths[] = {ROOT, ROOT "/mcp"};
	static const char *const fields[] = {"Host: evil.example\r\n",
	    "Host: localhost.evil.example\r\n", "Host: 127.0.0.1.nip.io\r\n",
	    "Host: mcp.example.org\r\n",
	    "Host: evil.example\r\nOrigin: http://evil.example\r\n",
	    "Host: localhost\r\nOrigin: http://evil.example\r\n",
	    "Host: localhost\r\nOrigin: null\r\n",
	    "Host: localhost:8\r\nOrigin: http://localhost:9\r\n"};
	static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "PUT"};
	char text[512];
	size_t i, j, k;
	struct lc c;

	(void)state;
	tell_access(true, true);
	for (i = 0; i < 2; i++)
		for (j = 0; j < sizeof(fields) / sizeof(fields[0]); j++)
			for (k = 0; k < 4; k++) {
				snprintf(text, sizeof(text),
				    "%s %s HTTP/1.1\r\n%s"
				    "Connection: close\r\n\r\n",
				    methods[k], paths[i], fields[j]);
				c = lc_open(address);
				lc_sends(&c, base, text);
				lc_until_eof(&c, base);
				if (strncmp(c.p, "HTTP/1.1 403 ", 13) != 0 ||
				    strstr(c.p, "example.org") != NULL ||
				    strstr(c.p, "Allow-Origin") != NULL)
					fail_msg("%s: %s", text, c.p);
				lc_close(&c);
			}
	/* On the tunnel Host is the public name, and any Host gets the same
	 * bytes. */
	gw.listener = LISTENER_TUNNEL;
	served("GET " ROOT " HTTP/1.1\r\nHost: mcp.example.org\r\n\r\n");
	served("GET " ROOT " HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	assert_int_equal(ask_raw("GET " ROOT " HTTP/1.1\r\nHost: x\r\n"
				 "Origin: http://evil.example\r\n\r\n"),
	    403);
}

/* ---- without admind's word ---- */

static void
test_while_admind_is_away(void **state)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	(void)state;
	tell_access(true, true);
	access_untold = true;
	ipc_server_free(admind);
	admind = NULL;
	while (gw.access.told) {
		assert_true(lc_ms() < end);
		lc_run(base, 5);
	}
	/* Not 404, which a client would remember, and not 401, which would
	 * throw its token away. */
	assert_int_equal(ask_raw("GET " ROOT LOCALHOST "\r\n"), 503);
	assert_true(has("Retry-After: 1\r\n") &&
	    has("Access-Control-Allow-Origin: *\r\n") && has("no-store"));
	assert_int_equal(ask_raw("GET " ROOT "/mcp" LOCALHOST "\r\n"), 503);
	assert_int_equal(post(ASSERTION "a.b.c\r\n", PING), 200);
	assert_true(
	    has("\"busy\"") && has("retry_after_ms") && has("\"id\":9"));
	gw.listener = LISTENER_TUNNEL;
	assert_int_equal(ask_raw(SHORT("")), 401);
	assert_string_equal(challenge(), "Bearer realm=\"mcpbox\"");
	assert_int_equal(ask_raw(SHORT(ASSERTION "a.b.c\r\n")), 200);
	assert_true(has("\"busy\""));
	gw.listener = LISTENER_LOCAL;
	/* It is back, and has not said anything of tokens yet. */
	start_admind();
	wait_ready();
	assert_int_equal(post("", PING), 200);
	assert_true(has("\"result\":{}"));
	assert_int_equal(ask_raw("GET " ROOT LOCALHOST "\r\n"), 503);
	assert_int_equal(post(ASSERTION "a.b.c\r\n", PING), 200);
	assert_true(has("\"busy\""));
	tell_access(true, true);
	served("GET " ROOT LOCALHOST "\r\n");
	assert_int_equal(post(ASSERTION "a.b.c\r\n", PING), 200);
	assert_true(has("\"result\":{}"));
}

/* Texts that would break out of a header field end the link, and none is taken.
 */
static void
test_malformed_word(void **state)
{
	static char url[GW_ACCESS_URL_MAX + 2], scope[GW_ACCESS_SCOPE_MAX + 2];
	static const char *const bad[][3] = {{"https://a/\"x", "", ""},
	    {"https://a/\\x", "", ""}, {"https://a/\r\nSet-Cookie: x", "", ""},
	    {"https://a b/", "", ""}, {"https://\xc3\xa4/", "", ""},
	    {"", "a\"b", ""}, {"", "a\nb", ""}, {"", "", "[]"}, {"", "", "{"},
	    {"", "", "{}{}"}, {url, "", ""}, {"", scope, ""}};
	struct ipc_gw_access m;
	struct ipc_peer *p;
	size_t i;
	long end;

	(void)state;
	memset(url, 'a', sizeof(url) - 1);
	memset(scope, 'a', sizeof(scope) - 1);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		wait_ready();
		assert_int_equal(gw.access.metadata_len, 0);
		assert_string_equal(gw.access.resource_metadata, "");
		assert_string_equal(gw.access.scope, "");
		m = (struct ipc_gw_access){.assertion = 1,
		    .resource_metadata = ipc_str(bad[i][0]),
		    .scope = ipc_str(bad[i][1]),
		    .metadata = ipc_str(bad[i][2])};
		p = gateway_at_admind;
		gateway_at_admind = NULL;
		assert_int_equal(ipc_send(p, IPC_GW_ACCESS, &m), 0);
		end = lc_ms() + LC_DEADLINE_MS;
		while (gateway_at_admind == NULL) { /* attached again */
			assert_true(lc_ms() < end);
			lc_run(base, 5);
		}
	}
	wait_ready();
	assert_false(gw.access.assertion);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(test_metadata),
	    T(test_metadata_for_pages),
	    T(test_while_admind_is_away),
	    T(test_malformed_word),
	};

	log_init("gatewayd", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
