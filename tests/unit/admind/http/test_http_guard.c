/* admind-http's pure parts: guard.h, the routes table, what a
 * reviewer is shown. */
#include "unit.h"

#include "approvals.h"
#include "crypto.h"
#include "guard.h"
#include "json.h"
#include "problem.h"
#include "routes.h"
#include "version.h"

static void
hosts(void **state)
{
	static const char *const good[] = {"localhost", "localhost:8000",
	    "LOCALHOST:1", "127.0.0.1", "127.0.0.1:65535", "[::1]",
	    "[::1]:8000"};
	static const char *const bad[] = {"", "evil.example", "localhost.",
	    "localhost.evil.example", "localhost:", "localhost:x",
	    "localhost:65536", "localhost:123456", "localhost:80:80",
	    "127.0.0.1.evil.example", "127.0.0.2", "127.1", "0.0.0.0",
	    "2130706433", "::1", "[::1", "[::1]x", "[::ffff:127.0.0.1]",
	    "user@localhost", "localhost ", " localhost", "localhost:-1"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!guard_host(good[i]))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (guard_host(bad[i]))
			fail_msg("accepted: %s", bad[i]);
}

static void
origins(void **state)
{
	(void)state;
	assert_true(
	    guard_origin("http://localhost:8000", "localhost:8000", false));
	assert_true(guard_origin("http://[::1]:1", "[::1]:1", false));
	assert_false(guard_origin("null", "localhost:8000", false));
	assert_false(guard_origin("", "localhost:8000", false));
	assert_false(
	    guard_origin("https://localhost:8000", "localhost:8000", false));
	assert_false(
	    guard_origin("http://localhost:8001", "localhost:8000", false));
	assert_false(
	    guard_origin("http://127.0.0.1:8000", "localhost:8000", false));
	assert_false(
	    guard_origin("http://localhost:8000/", "localhost:8000", false));
	assert_false(
	    guard_origin("http://evil.example", "localhost:8000", false));
	/* at a name of panel_origins: https of this very name and port */
	assert_true(guard_origin("https://a.example", "a.example", true));
	assert_true(guard_origin("https://A.example:1", "a.example:1", true));
	assert_false(guard_origin("http://a.example", "a.example", true));
	assert_false(guard_origin("https://a.example:1", "a.example", true));
	assert_false(guard_origin("https://b.example", "a.example", true));
	assert_false(guard_origin("null", "a.example", true));
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

static void
requests(void **state)
{
	struct http1_request r;
	bool https = true;
	struct err e;

	(void)state;
	r = request("localhost:8000", NULL, NULL);
	assert_int_equal(guard_request(&r, "", false, &https, &e), 0);
	r = request("localhost:8000", "origin", "http://localhost:8000");
	assert_int_equal(guard_request(&r, "", false, &https, &e), 0);
	r = request("localhost:8000", "sec-fetch-site", "same-origin");
	assert_int_equal(guard_request(&r, "", false, &https, &e), 0);
	r = request("localhost:8000", "sec-fetch-site", "none");
	assert_int_equal(guard_request(&r, "", false, &https, &e), 0);
	r = request("rebound.example", NULL, NULL);
	assert_int_equal(guard_request(&r, "", false, &https, &e), -1);
	assert_int_equal(e.failure, FAILURE_FORBIDDEN_ORIGIN);
	r = request("rebound.example", "origin", "http://rebound.example");
	assert_int_equal(guard_request(&r, "", false, &https, &e), -1);
	r = request("localhost:8000", "origin", "http://evil.example");
	assert_int_equal(guard_request(&r, "", false, &https, &e), -1);
	r = request("localhost:8000", "origin", "null");
	assert_int_equal(guard_request(&r, "", false, &https, &e), -1);
	/* another port of localhost is the same site to SameSite cookies */
	r = request("localhost:8000", "sec-fetch-site", "same-site");
	assert_int_equal(guard_request(&r, "", false, &https, &e), -1);
	r = request("localhost:8000", "sec-fetch-site", "cross-site");
	assert_int_equal(guard_request(&r, "", false, &https, &e), -1);
	r = request("localhost:8000", "host", "localhost:8000");
	assert_int_equal(guard_request(&r, "", false, &https, &e), -1);
}

#define T43 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO-_"

static void
cookies(void **state)
{
	static const char *const bad[] = {
	    "mcpbox_session=short",
	    "mcpbox_session=",
	    "mcpbox_session=" T43 "x",
	    "mcpbox_session=\"" T43 "\"",
	    "mcpbox_session=" T43 "; mcpbox_session=" T43,
	    "mcpbox_session=evil; mcpbox_session=" T43,
	    "mcpbox_session=abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO-+",
	};
	static const char *const none[] = {"", "a=b", "mcpbox_sessionx=" T43,
	    "xmcpbox_session=" T43, "MCPBOX_SESSION=" T43, ";;; ",
	    "a=mcpbox_session=" T43};
	char token[LOGIN_HALF + 1];

	(void)state;
	assert_int_equal(guard_cookie("mcpbox_session=" T43, false, token), 1);
	assert_string_equal(token, T43);
	token[0] = '\0';
	assert_int_equal(
	    guard_cookie("a=b; mcpbox_session=" T43 "; c=d", false, token), 1);
	assert_string_equal(token, T43);
	/* A cookie's name tells by which scheme it came. */
	assert_int_equal(
	    guard_cookie("__Host-mcpbox_session=" T43, true, token), 1);
	assert_string_equal(token, T43);
	assert_int_equal(
	    guard_cookie("__Host-mcpbox_session=" T43, false, token), 0);
	assert_int_equal(guard_cookie("mcpbox_session=" T43, true, token), 0);
	assert_int_equal(
	    guard_cookie(
		"mcpbox_session=" T43 "; __Host-mcpbox_session=x", true, token),
	    -1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (guard_cookie(bad[i], false, token) != -1)
			fail_msg("accepted: %s", bad[i]);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (guard_cookie(none[i], false, token) != 0)
			fail_msg("found one in: %s", none[i]);
}

static void
second_halves(void **state)
{
	static const char *const bad[] = {"", "x", T43 "x", T43 T43,
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO-+",
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO-=",
	    " bcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO-_"};
	char half[LOGIN_HALF + 1] = "untouched";

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (guard_half(bad[i], half))
			fail_msg("accepted: %s", bad[i]);
	assert_string_equal(half, "untouched");
	assert_true(guard_half(T43, half));
	assert_string_equal(half, T43);
}

/* What an authorization server's redirect brings: of the rest nothing is
 * believed, and nothing refused. */
static void
one_value_of_a_query(void **state)
{
	static const struct {
		const char *query;
		int rc;
		const char *value;
	} all[] = {
	    {NULL, 0, ""},
	    {"", 0, ""},
	    {"a=1", 0, ""},
	    {"state=x", 1, "x"},
	    {"a=1&state=x%20y+z&b=2", 1, "x y z"},
	    {"state=", 1, ""},
	    {"xstate=1&statex=2", 0, ""},
	    {"state", 0, ""},
	    {"state=x&&b", 1, "x"},
	    {"state=x&state=x", -1, NULL},
	    {"state=%0a", -1, NULL},
	    {"state=%00", -1, NULL},
	    {"state=%zz", -1, NULL},
	    {"state=%4", -1, NULL},
	    {"state=12345678901234567", -1, NULL},
	};
	char value[16];

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int rc = guard_query_value(
		    all[i].query, "state", value, sizeof(value));

		if (rc != all[i].rc)
			fail_msg("%s: %d", all[i].query, rc);
		if (all[i].value != NULL)
			assert_string_equal(value, all[i].value);
	}
}

/* Other sites' redirects may lead to a callback, their pages nowhere; and no
 * name but a loopback one ever. */
static void
callbacks(void **state)
{
	struct http1_request r;
	bool https = true;
	struct err e;

	(void)state;
	r = request("127.0.0.1:8000", "sec-fetch-site", "cross-site");
	assert_int_equal(guard_request(&r, "", false, &https, &e), -1);
	assert_int_equal(guard_request(&r, "", true, &https, &e), 0);
	r = request("evil.example", "sec-fetch-site", "cross-site");
	assert_int_equal(guard_request(&r, "", true, &https, &e), -1);
	r = request("127.0.0.1:8000", "origin", "http://evil.example");
	assert_int_equal(guard_request(&r, "", true, &https, &e), -1);
}

static void
devices(void **state)
{
	char device[DEVICE_TEXT_MAX + 1], text[DEVICE_TEXT_MAX + 32];

	(void)state;
	assert_int_equal(guard_device("mcpbox_session=x; mcpbox_device=ab-_9",
			     false, device),
	    1);
	assert_string_equal(device, "ab-_9");
	assert_int_equal(guard_device("a=b", false, device), 0);
	assert_int_equal(guard_device("mcpbox_device=", false, device), -1);
	assert_int_equal(guard_device("mcpbox_device=a,b", false, device), -1);
	assert_int_equal(
	    guard_device("mcpbox_device=a; mcpbox_device=a", false, device),
	    -1);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "mcpbox_device=", 14);
	text[14 + DEVICE_TEXT_MAX] = '\0';
	assert_int_equal(guard_device(text, false, device), 1);
	assert_int_equal(strlen(device), DEVICE_TEXT_MAX);
	text[14 + DEVICE_TEXT_MAX] = 'a';
	text[14 + DEVICE_TEXT_MAX + 1] = '\0';
	assert_int_equal(guard_device(text, false, device), -1);
	assert_true(guard_device_text(ipc_str("")));
	assert_true(guard_device_text(ipc_str("aZ0-_")));
	assert_false(guard_device_text(ipc_str("a; Path=/")));
	assert_false(guard_device_text(ipc_str("a\r\nX: y")));
}

#define H64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void
etags(void **state)
{
	static const char *const bad[] = {"", "*", H64, "\"\"", "W/\"" H64 "\"",
	    "\"" H64 "\" ", "\"" H64 "\", \"" H64 "\"", "\"" H64 "0\"",
	    "\"0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcde"
	    "f\"",
	    "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg"
	    "\"",
	    "'" H64 "'"};
	struct ipc_hash h;

	(void)state;
	assert_int_equal(guard_etag("\"" H64 "\"", &h), 0);
	assert_int_equal(h.b[0], 0x01);
	assert_int_equal(h.b[31], 0xef);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (guard_etag(bad[i], &h) == 0)
			fail_msg("accepted: %s", bad[i]);
}

static void
types(void **state)
{
	(void)state;
	assert_true(guard_json_type("application/json"));
	assert_true(guard_json_type("Application/JSON; charset=UTF-8"));
	assert_true(guard_json_type("application/json;charset=utf-8"));
	assert_false(guard_json_type("text/plain"));
	assert_false(guard_json_type("application/jsonx"));
	assert_false(guard_json_type("application/json; charset=utf-16"));
	assert_false(guard_json_type("application/json, text/plain"));
	assert_false(guard_json_type(""));
}

static void
queries(void **state)
{
	static const char all[] =
	    "kind=tool|module|network|call state=pending|approved|rejected "
	    "server search since tool cursor limit";
	static const struct {
		const char *query, *allowed;
	} bad[] = {{"x=1", all}, {"kind", all}, {"kind=", all},
	    {"kind=tools", all}, {"kind=tool&kind=tool", all},
	    {"kind=tool", "cursor limit"}, {"state=open", all},
	    {"limit=0", all}, {"limit=201", all}, {"limit=-1", all},
	    {"limit=1x", all}, {"limit=99999999999", all}, {"server=demo", all},
	    {"cursor=%", all}, {"cursor=%0a", all}, {"cursor=%00", all},
	    {"cursor=%zz", all}, {"cursor=a&", all}, {"&cursor=a", all},
	    {"Kind=tool", all}, {"limit=1", ""}, {"kin=tool", all},
	    {"kinds=tool", all}, {"kind=tool|module", all}, {"kind=too", all},
	    {"kind=|", all}, {"kind=tool%7cmodule", all}, {"kind=call+", all},
	    {"since=tomorrow", all}, {"since=2026-01-02", all},
	    {"since=2026-01-02T03:04:05", all},
	    {"since=2026-01-02T03:04:05%2B00:00", all},
	    {"since=2026-01-02T03:04:05.Z", all},
	    {"since=2026-01-02T03:04:05.1234567Z", all}, {"tool=a%2Fb", all},
	    {"tool=%C3%A9", all}, {"search=%01", all}, {"search=%7f", all},
	    {"search=%ff", all}, {"search=%c3", all}, {"search=%00", all},
	    {"cursor=%C3%A9", all}, {"actor=x", all}, {"=x", all}, {"=", all},
	    {"kind==tool", all}};
	char longest[ADMIN_FILTER_MAX + 32] = "cursor=";
	struct params p;
	struct err e;

	(void)state;
	assert_int_equal(guard_query(NULL, "", &p, &e), 0);
	assert_int_equal(p.limit, PAGE_DEFAULT);
	assert_int_equal(guard_query("", all, &p, &e), 0);
	if (guard_query("kind=tool&state=pending&limit=200&cursor=a%2Fb%3D"
			"&server=018f0000-0000-7000-8000-000000000000",
		all, &p, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(p.filter[ADMIN_FILTER_KIND], "tool");
	assert_string_equal(p.filter[ADMIN_FILTER_STATE], "pending");
	assert_string_equal(p.cursor, "a/b=");
	assert_string_equal(p.filter[ADMIN_FILTER_SERVER],
	    "018f0000-0000-7000-8000-000000000000");
	assert_string_equal(p.filter[ADMIN_FILTER_TOOL], "");
	assert_int_equal(p.limit, 200);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (guard_query(bad[i].query, bad[i].allowed, &p, &e) == 0)
			fail_msg("accepted: %s", bad[i].query);
	if (guard_query("search=%C3%A9+a%2Bb&since=2026-01-02T03:04:05.5Z"
			"&tool=demo__*",
		all, &p, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(p.filter[ADMIN_FILTER_SEARCH], "\xc3\xa9 a+b");
	assert_string_equal(
	    p.filter[ADMIN_FILTER_SINCE], "2026-01-02T03:04:05.5Z");
	assert_string_equal(p.filter[ADMIN_FILTER_TOOL], "demo__*");
	memset(longest + 7, 'a', ADMIN_CURSOR_MAX);
	assert_int_equal(guard_query(longest, all, &p, &e), 0);
	assert_int_equal(strlen(p.cursor), ADMIN_CURSOR_MAX);
	longest[7 + ADMIN_CURSOR_MAX] = 'a';
	assert_int_equal(guard_query(longest, all, &p, &e), -1);
	memcpy(longest, "search=", 7);
	memset(longest + 7, 'a', ADMIN_TEXT_CHARS);
	longest[7 + ADMIN_TEXT_CHARS] = '\0';
	assert_int_equal(guard_query(longest, all, &p, &e), 0);
	longest[7 + ADMIN_TEXT_CHARS] = 'a';
	longest[8 + ADMIN_TEXT_CHARS] = '\0';
	assert_int_equal(guard_query(longest, all, &p, &e), -1);
}

static void
routes(void **state)
{
	char allow[64], id[ADMIN_ID_MAX + 1], path[ADMIN_ID_MAX + 32];
	const struct route *r;

	(void)state;
	assert_non_null(
	    routes_find(HTTP1_GET, "/health", allow, sizeof(allow), id));
	r = routes_find(HTTP1_HEAD, "/api/servers", allow, sizeof(allow), id);
	assert_non_null(r);
	assert_string_equal(r->subject, "servers");
	assert_null(
	    routes_find(HTTP1_POST, "/api/modules", allow, sizeof(allow), id));
	assert_string_equal(allow, "GET, HEAD");
	assert_null(
	    routes_find(HTTP1_GET, "/api/login", allow, sizeof(allow), id));
	assert_string_equal(allow, "POST");
	r = routes_find(HTTP1_POST,
	    "/api/approvals/018f0000-0000-7000-8000-000000000000/approve",
	    allow, sizeof(allow), id);
	assert_non_null(r);
	assert_string_equal(id, "018f0000-0000-7000-8000-000000000000");
	assert_int_equal(r->access, ACCESS_WRITE);
	assert_null(routes_find(
	    HTTP1_GET, "/api/approvals/", allow, sizeof(allow), id));
	assert_string_equal(allow, "");
	assert_null(routes_find(
	    HTTP1_GET, "/api/approvals/..", allow, sizeof(allow), id));
	assert_null(routes_find(
	    HTTP1_GET, "/api/approvals/a/b", allow, sizeof(allow), id));
	assert_null(
	    routes_find(HTTP1_GET, "/api/servers/", allow, sizeof(allow), id));
	assert_null(
	    routes_find(HTTP1_GET, "/API/servers", allow, sizeof(allow), id));
	assert_null(
	    routes_find(HTTP1_GET, "/api/setup", allow, sizeof(allow), id));
	assert_null(
	    routes_find(HTTP1_POST, "/api/setup", allow, sizeof(allow), id));
	assert_string_equal(allow, "");
	/* a row of admin_action.def, beside one of routes.def */
	r = routes_find(
	    HTTP1_PUT, "/api/settings/a.b", allow, sizeof(allow), id);
	assert_non_null(r);
	assert_string_equal(r->subject, "settings_set");
	assert_int_equal(r->access, ACCESS_WRITE);
	assert_string_equal(id, "a.b");
	assert_string_equal(allow, "GET, HEAD, PUT, DELETE");
	for (size_t i = 0; i < 6; i++)
		assert_null(routes_find(HTTP1_PUT,
		    (const char *const[]){"/api/settings/.", "/api/settings/..",
			"/api/settings/", "/api/settings/a%41",
			"/api/settings/a/b", "/api/settings/a\x01"}[i],
		    allow, sizeof(allow), id));
	memset(path, 'a', sizeof(path));
	memcpy(path, "/api/settings/", 14);
	path[14 + ADMIN_NAME_MAX] = '\0';
	assert_non_null(routes_find(HTTP1_PUT, path, allow, sizeof(allow), id));
	path[14 + ADMIN_NAME_MAX] = 'a';
	path[15 + ADMIN_NAME_MAX] = '\0';
	assert_null(routes_find(HTTP1_PUT, path, allow, sizeof(allow), id));
}

static void
statuses(void **state)
{
	(void)state;
	assert_int_equal(problem_status(FAILURE_NOT_FOUND), 404);
	assert_int_equal(problem_status(FAILURE_CONFLICT), 409);
	assert_int_equal(problem_status(FAILURE_ALREADY_DECIDED), 409);
	assert_int_equal(problem_status(FAILURE_NOT_APPROVED), 409);
	assert_int_equal(problem_status(FAILURE_REVOKED), 409);
	assert_int_equal(problem_status(FAILURE_STOPPED), 409);
	assert_int_equal(problem_status(FAILURE_CONFIRMATION_PENDING), 409);
	assert_int_equal(problem_status(FAILURE_UNKNOWN_RESOURCE), 404);
	assert_int_equal(problem_status(FAILURE_HASH_MISMATCH), 412);
	assert_int_equal(problem_status(FAILURE_HASH_REQUIRED), 428);
	assert_int_equal(problem_status(FAILURE_BAD_LOGIN), 401);
	assert_int_equal(problem_status(FAILURE_RATE_LIMITED), 429);
	/* no failure may ever look like a success */
	for (int f = 0; f < FAILURE_COUNT; f++)
		assert_in_range(problem_status((enum failure)f), 400, 599);
}

/* The reviewer's object: our own hash; nothing forged by admind's members. */
static void
shown(void **state)
{
	static const char *const bad[] = {"\"hash\":\"canary\"",
	    "\"content\":{}", "\"id\":1", "\"x\":1,", "\"x\"", "x",
	    "\"x\":1},\"y\":{", "\"x\":\"", "}", "\"x\":{\"a\":1,\"a\":2}",
	    "\"\\u0068ash\":\"canary\""};
	struct ipc_approval_content a = {.kind = ipc_str("tool"),
	    .state = ipc_str("pending"),
	    .circumstances = ipc_str("\"server\":\"demo\",\"version\":1")};
	struct ipc_hash hash, want;
	struct ipc_id id;
	struct buf pre, out;
	struct err e;
	char hex[HEX32_LEN + 1];

	(void)state;
	uuid_v7(&id);
	buf_init(&pre, 4096);
	buf_init(&out, 65536);
	version_begin(&pre);
	tlv_put_u64(&pre, VERSION_FORMAT, 1);
	tlv_puts(&pre, VERSION_CODE, "print(\"\xe2\x80\xae\")");
	a.preimage = ipc_bytes(pre.p, pre.len);
	if (approvals_show(&id, &a, &out, &hash, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(json_scan(out.p, out.len, &e), 0);
	sha256(pre.p, pre.len, &want);
	assert_memory_equal(hash.b, want.b, 32);
	hex_encode(want.b, 32, hex);
	buf_putc(&out, '\0');
	assert_non_null(strstr((char *)out.p, hex));
	assert_non_null(strstr((char *)out.p, "\"server\":\"demo\""));
	assert_non_null(strstr((char *)out.p, "print(\\\"\\u202e\\\")"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		buf_clear(&out);
		a.circumstances = ipc_str(bad[i]);
		if (approvals_show(&id, &a, &out, &hash, &e) == 0)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(e.failure, FAILURE_INTERNAL);
	}
	buf_clear(&out);
	a.circumstances = ipc_str("");
	assert_int_equal(approvals_show(&id, &a, &out, &hash, &e), 0);
	buf_clear(&out);
	a.preimage = ipc_bytes("junk", 4);
	assert_int_equal(approvals_show(&id, &a, &out, &hash, &e), -1);
	buf_free(&pre);
	buf_free(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(hosts),
	    cmocka_unit_test(origins),
	    cmocka_unit_test(requests),
	    cmocka_unit_test(cookies),
	    cmocka_unit_test(second_halves),
	    cmocka_unit_test(one_value_of_a_query),
	    cmocka_unit_test(callbacks),
	    cmocka_unit_test(devices),
	    cmocka_unit_test(etags),
	    cmocka_unit_test(types),
	    cmocka_unit_test(queries),
	    cmocka_unit_test(routes),
	    cmocka_unit_test(statuses),
	    cmocka_unit_test(shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
