/* Pages that may call the local listener from a browser: the panel's. */
#include "gateway_rig.h"
#include "unit.h"

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"

static struct conf *
settings(const char *text)
{
	struct conf *c = conf_new("gatewayd");
	struct err e;

	assert_non_null(c);
	assert_int_equal(
	    conf_parse(c, "test", (const uint8_t *)text, strlen(text), &e), 0);
	return c;
}

/* Asks at the listener for a preflight of a page at this origin. Returns
 * whether the answer lets it. */
static bool
lets(const char *origin)
{
	struct lc c = lc_open(address);
	char text[512];
	int status;
	bool named;

	snprintf(text, sizeof(text),
	    "OPTIONS /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\nOrigin: %s\r\n"
	    "Access-Control-Request-Method: POST\r\n\r\n",
	    origin);
	lc_sends(&c, base, text);
	status = lc_answer(&c, base);
	named = strstr(c.p, "Access-Control-Allow-Origin: ") != NULL;
	assert_int_equal(status, named ? 204 : 403);
	/* No cookie of a browser counts here, and the answer asks for none. */
	assert_null(strstr(c.p, "Access-Control-Allow-Credentials"));
	lc_close(&c);
	return named;
}

/* The local listener lets that origin to the letter, and no other. */
static void
test_local(void **state)
{
	static const char *const others[] = {"http://127.0.0.1:8001",
	    "http://127.0.0.1:80000", "http://127.0.0.1:8000/",
	    "http://127.0.0.1:800", "https://127.0.0.1:8000",
	    "http://localhost:8000", "HTTP://127.0.0.1:8000",
	    "http://127.0.0.1", "http://127.0.0.1:8000.evil.example", "null"};

	(void)state;
	assert_string_equal(gw.panel_origin, "http://127.0.0.1:8000");
	assert_true(lets("http://127.0.0.1:8000"));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (lets(others[i]))
			fail_msg("%s", others[i]);
	/* Beside the preflight: the page reads the answer, the session and the
	 * challenge. */
	assert_int_equal(post("Origin: http://127.0.0.1:8000\r\n", PING), 200);
	assert_true(
	    has("Access-Control-Allow-Origin: http://127.0.0.1:8000\r\n"));
	assert_true(has("Access-Control-Expose-Headers: Mcp-Session-Id, "));
	assert_true(has("WWW-Authenticate"));
	assert_int_equal(post("Origin: http://127.0.0.1:8001\r\n", PING), 403);
	assert_false(has("Access-Control-Allow-Origin"));
}

/* A page whose name leads here brings its name in Host (DNS rebinding). */
static void
test_rebound(void **state)
{
	struct lc c = lc_open(address);

	(void)state;
	lc_sends(&c, base,
	    "OPTIONS /mcp HTTP/1.1\r\nHost: evil.example:8002\r\n"
	    "Origin: http://127.0.0.1:8000\r\n\r\n");
	assert_int_equal(lc_answer(&c, base), 403);
	assert_null(strstr(c.p, "Access-Control-Allow-Origin"));
	lc_close(&c);
}

/* The tunnel's listener lets none, and neither does the setting "-". */
static void
test_none(void **state)
{
	static const char *const texts[] = {
	    "listener tunnel\npanel_origin http://a.example\n",
	    "panel_origin -\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct gateway g = {.proc = {.base = base}};

		g.proc.conf = settings(texts[i]);
		assert_int_equal(gateway_init(&g), 0);
		assert_null(g.panel_origin);
		gateway_free(&g);
		conf_free(g.proc.conf);
	}
	gw.panel_origin = NULL;
	assert_false(lets("http://127.0.0.1:8000"));
}

/* A text that no browser sends is refused before it is compared with one. */
static void
test_setting(void **state)
{
	static const struct {
		const char *text;
		int rc;
	} t[] = {
	    {"-", 0},
	    {"http://127.0.0.1:8000", 0},
	    {"https://panel.example.org", 0},
	    {"http://[::1]:8000", 0},
	    {"http://127.0.0.1:8000/", -1},
	    {"127.0.0.1:8000", -1},
	    {"http://127.0.0.1:80", -1},
	    {"http://A.example", -1},
	    {"http://a.example,http://b.example", -1},
	    {"*", -1},
	    {"null", -1},
	};
	char text[128];
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct conf *c;

		snprintf(text, sizeof(text), "panel_origin %s\n", t[i].text);
		c = settings(text);
		if (gateway_check(c, &e) != t[i].rc)
			fail_msg("%s", t[i].text);
		if (t[i].rc < 0)
			assert_non_null(strstr(e.text, "panel_origin is"));
		conf_free(c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_local, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_rebound, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_none, setup, teardown),
	    cmocka_unit_test(test_setting),
	};

	log_init("gatewayd", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
