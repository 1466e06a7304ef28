/*
 * gatewayd and its neighbours over time: cancelling, a neighbour that dies at
 * the worst moment (typed errors, no second RUN, service resumes by itself),
 * and what admind takes back.
 */
#include "gateway_rig.h"
#include "ipc_io.h"
#include "unit.h"

#define ENV                                     \
	"\"_meta\":{\"io.modelcontextprotocol/" \
	"protocolVersion\":\"2026-07-28\","     \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

/* Of a client that takes a task for an answer. */
#define ENV_TASKS                                                          \
	"\"_meta\":{\"io.modelcontextprotocol/"                            \
	"protocolVersion\":\"2026-07-28\","                                \
	"\"io.modelcontextprotocol/clientCapabilities\":{\"extensions\":{" \
	"\"io.modelcontextprotocol/tasks\":{}}}}"

#define CALL(tool, more)                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"" tool "\"" more "}}"
#define LEGACY "MCP-Protocol-Version: 2025-11-25\r\n"
#define MODERN_CALL(tool)                                                \
	"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n" \
	"Mcp-Name: " tool "\r\n"

static void
until(const unsigned *what, unsigned value)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (*what < value) {
		if (lc_ms() > end)
			fail_msg("it did not happen");
		lc_turn(NULL, base);
	}
}

static void
test_cancel(void **state)
{
	struct lc c;
	char fields[1024], text[256];
	const char *p;

	(void)state;
	/* Modern: closing the response is cancelling. */
	c = lc_open(address);
	send_post(&c, MODERN_CALL("t_hang"), CALL("t_hang", "," ENV));
	until(&runs, 1);
	assert_int_equal(cancels, 0);
	lc_close(&c);
	until(&cancels, 1);
	lc_run(base, 30);
	assert_int_equal(gw.exchange_count, 0);

	/* Legacy: it is not; the call goes on. */
	c = lc_open(address);
	send_post(&c, LEGACY, CALL("t_hang", ""));
	until(&runs, 2);
	lc_close(&c);
	lc_run(base, 50);
	assert_int_equal(cancels, 1);
	assert_int_equal(gw.exchange_count, 1);
	/* ... until the sandbox answers; nobody listens, nothing breaks. */
	{
		struct ipc_id id = {{'h'}};

		/* another execution's result is nonsense and ends it */
		result(hanging_peer, hanging, &id, OUTCOME_DONE, FAILURE_NONE,
		    "{}", "{}");
		lc_run(base, 30);
		assert_int_equal(gw.exchange_count, 0);
	}

	/* Legacy, by notification within a session. */
	post("",
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
	    "\"params\":"
	    "{\"protocolVersion\":\"2025-11-25\"}}");
	p = strstr(answer, "Mcp-Session-Id: ");
	assert_non_null(p);
	snprintf(fields, sizeof(fields), "%.*s\r\n", (int)strcspn(p, "\r"), p);
	c = lc_open(address);
	send_post(&c, fields, CALL("t_hang", ""));
	until(&runs, 3);
	/* Another id, and the same id without the session: no effect. */
	snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":%s}}",
	    "2");
	assert_int_equal(post(fields, text), 202);
	snprintf(text, sizeof(text),
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":%s}}",
	    "1");
	assert_int_equal(post(LEGACY, text), 202);
	lc_run(base, 30);
	assert_int_equal(cancels, 1);
	assert_int_equal(post(fields, text), 202);
	until(&cancels, 2);
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\"isError\":true"));
	lc_close(&c);
	assert_int_equal(runs, 3);
}

/* The end finds a call that runs, with its client there. Its connection closes
 * as if the client cancelled, which it did not. */
static void
test_end(void **state)
{
	struct lc *c = *state = calloc(1, sizeof(*c));

	assert_non_null(c);
	*c = lc_open(address);
	send_post(c, MODERN_CALL("t_hang"), CALL("t_hang", "," ENV));
	until(&runs, 1);
	assert_int_equal(gw.exchange_count, 1);
}

static int
teardown_under_way(void **state)
{
	struct lc *c = *state;
	int rc = teardown(state);

	lc_close(c);
	free(c);
	assert_int_equal(cancels, 0);
	return rc;
}

/* A call that says nothing: comments, for those who take them. */
static void
test_quiet_call(void **state)
{
	static const char body[] = CALL("t_hang", "");
	char text[1024];
	const char *p;
	struct lc c;
	long end;
	unsigned n = 0;

	(void)state;
	gw.quiet_ms = 50;
	c = lc_open(address);
	snprintf(text, sizeof(text),
	    "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" LEGACY
	    "Accept: application/json, text/event-stream\r\n"
	    "Content-Length: %zu\r\n\r\n%s",
	    strlen(body), body);
	lc_sends(&c, base, text);
	for (end = lc_ms() + LC_DEADLINE_MS; n < 3 && lc_ms() < end;) {
		lc_turn(&c, base);
		for (n = 0, p = c.p; (p = strstr(p, ": keep-alive\n\n")); p++)
			n++;
	}
	assert_int_equal(n, 3);
	assert_int_equal(strncmp(c.p, "HTTP/1.1 200 ", 13), 0);
	assert_non_null(strstr(c.p, "Content-Type: text/event-stream\r\n"));
	/* Its answer comes as an event. */
	ipc_refuse(hanging_peer, hanging, FAILURE_REVOKED, "withdrawn", 0);
	lc_answer(&c, base);
	assert_non_null(strstr(c.p, "data: {\"jsonrpc\":\"2.0\",\"id\":1,"));
	lc_close(&c);

	/* Who did not ask for a stream waits in silence. */
	c = lc_open(address);
	snprintf(text, sizeof(text),
	    "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" LEGACY
	    "Accept: */*\r\nContent-Length: %zu\r\n\r\n%s",
	    strlen(body), body);
	lc_sends(&c, base, text);
	until(&runs, 2);
	for (end = lc_ms() + 200; lc_ms() < end;)
		lc_turn(&c, base);
	assert_int_equal(c.n, 0);
	ipc_refuse(hanging_peer, hanging, FAILURE_REVOKED, "withdrawn", 0);
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "application/json"));
	lc_close(&c);
}

/* The neighbours die at the worst moment: typed errors, no second RUN, and
 * service resumes by itself. */
static void
test_neighbours_die(void **state)
{
	struct lc c;

	(void)state;
	/* The sandbox goes away in the middle: it may have run. */
	assert_int_equal(post(LEGACY, CALL("t_lost", "")), 200);
	assert_true(has("-32603") && has("\"lost\"") && !has("retry_after"));
	assert_int_equal(runs, 1);
	wait_ready();
	assert_int_equal(post(LEGACY, CALL("t_ok", "")), 200);
	assert_true(has("\\u0041"));
	assert_int_equal(runs, 2);

	/* Not there at all: nothing ran. */
	ipc_server_free(sandboxd);
	sandboxd = NULL;
	lc_run(base, 30);
	assert_int_equal(post(LEGACY, CALL("t_ok", "")), 200);
	assert_true(has("sandbox_unavailable") && has("retry_after_ms"));
	assert_int_equal(runs, 2);
	start_sandboxd();
	wait_ready();

	/* admind goes away with a call unanswered. */
	c = lc_open(address);
	send_post(&c, LEGACY, CALL("x_hang", ""));
	until(&authorises, 4);
	ipc_server_free(admind);
	admind = NULL;
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\"busy\""));
	assert_non_null(strstr(c.p, "retry_after_ms"));
	lc_close(&c);
	/* Away: typed, with a hint; lists too, though one was cached. */
	assert_int_equal(post(LEGACY, CALL("t_ok", "")), 200);
	assert_true(
	    has("\"busy\"") && has("retry_after_ms") && has("\"id\":1"));
	assert_int_equal(post(LEGACY,
			     "{\"jsonrpc\":\"2.0\",\"method\":"
			     "\"notifications/initialized\"}"),
	    503);
	assert_int_equal(post("", "{"), 400); /* needs nobody */
	assert_int_equal(runs, 2);
	{
		struct lc h = lc_open(address);

		lc_sends(&h, base,
		    "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
		assert_int_equal(lc_answer(&h, base), 503);
		lc_close(&h);
	}
	start_admind();
	wait_ready();
	assert_int_equal(post(LEGACY, CALL("t_ok", "")), 200);
	assert_true(has("\\u0041"));

	/* A management tool that was under way may have been done. */
	c = lc_open(address);
	send_post(&c, LEGACY, CALL("mcpbox_hang", ""));
	until(&authorises, 6);
	ipc_server_free(admind);
	admind = NULL;
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\"lost\""));
	lc_close(&c);
	start_admind();
	wait_ready();

	/* So may a task, which admind begins by itself: nothing here may have
	 * its client call again. */
	c = lc_open(address);
	send_post(&c, MODERN_CALL("x_hang"), CALL("x_hang", "," ENV_TASKS));
	until(&authorises, 7);
	ipc_server_free(admind);
	admind = NULL;
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\"lost\""));
	assert_null(strstr(c.p, "retry_after_ms"));
	lc_close(&c);
	start_admind();
	wait_ready();
}

/* The other side of an upgrade: a HELLO of another table, then nothing. */
static void
test_upgrading(void **state)
{
	struct ipc_hello h = {.process = ipc_str("admind"),
	    .build = ipc_str("9"),
	    .layers = ipc_str("")};
	long end = lc_ms() + LC_DEADLINE_MS;
	int listener, sock;
	struct err err;

	(void)state;
	ipc_server_free(admind);
	admind = NULL;
	while (ipc_client_peer(gw.admind) != NULL)
		lc_turn(NULL, base);
	unlink(admind_path);
	listener = ipc_listen_path(admind_path, &err);
	assert_true(listener >= 0);
	while (!ipc_client_other_build(gw.admind)) {
		assert_true(lc_ms() < end);
		sock =
		    accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (sock >= 0) {
			assert_int_equal(
			    ipc_write(sock, IPC_HELLO, 0, &h, &err), 0);
			lc_run(base, 20);
			close(sock);
		}
		lc_turn(NULL, base);
	}
	assert_int_equal(post(LEGACY, CALL("t_ok", "")), 200);
	assert_true(has("\"upgrading\"") && has("retry_after_ms"));
	close(listener);
	start_admind();
	wait_ready();
	assert_int_equal(post(LEGACY, CALL("t_ok", "")), 200);
	assert_true(has("\\u0041"));
}

static unsigned answered_ok;

static void
changed_cb(void *arg, struct ipc_frame *f, enum failure gone)
{
	(void)arg;
	(void)gone;
	if (f != NULL && f->type == IPC_OK)
		answered_ok++;
}

static void
test_changed(void **state)
{
	static const char list[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/list\"}";
	struct ipc_catalogue_changed m = {.revision = 2};
	struct ipc_session_ended e;
	struct session s;
	char token[SESSION_TEXT_LEN + 1], fields[512];
	uint64_t id;

	(void)state;
	answered_ok = 0;
	post(LEGACY, list);
	post(LEGACY, list);
	assert_int_equal(lists, 1);
	assert_int_equal(ipc_request(gateway_at_admind, IPC_CATALOGUE_CHANGED,
			     &m, 1000, changed_cb, NULL, &id),
	    0);
	until(&answered_ok, 1);
	post(LEGACY, list);
	assert_int_equal(lists, 2);
	/* A session deleted through another gateway. */
	session_make((const uint8_t *)"0123456789abcdef0123456789abcdef",
	    LISTENER_LOCAL, MCP_REV_2025_11_25, now_us() / 1000 + 60000,
	    "local", "", 0, &s, token);
	snprintf(fields, sizeof(fields), "Mcp-Session-Id: %s\r\n", token);
	assert_int_equal(post(fields, list), 200);
	e.session = s.id;
	e.expires_ms = s.expires_ms;
	assert_int_equal(ipc_send(gateway_at_admind, IPC_SESSION_ENDED, &e), 0);
	lc_run(base, 30);
	assert_int_equal(post(fields, list), 404);
}

/* No key yet: sessions can't be made or read, everything else is served. */
static void
test_no_key(void **state)
{
	(void)state;
	ipc_server_free(admind);
	while (ipc_client_peer(gw.admind) != NULL)
		lc_turn(NULL, base);
	gw.has_key = false;
	attach_fails = true;
	start_admind();
	while (ipc_client_peer(gw.admind) == NULL)
		lc_turn(NULL, base);
	assert_int_equal(post("",
			     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
			     "\"initialize\",\"params\":{\"protocolVersion\":"
			     "\"2025-11-25\"}}"),
	    200);
	assert_false(has("Mcp-Session-Id"));
	assert_int_equal(post("Mcp-Session-Id: x\r\n",
			     "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
			     "\"ping\"}"),
	    200);
	if (!has("vault_unavailable"))
		fail_msg("%s", answer);
	attach_fails = false;
	wait_ready(); /* it asks again by itself */
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(test_cancel),
	    cmocka_unit_test_setup_teardown(
		test_end, setup, teardown_under_way),
	    T(test_quiet_call),
	    T(test_neighbours_die),
	    T(test_upgrading),
	    T(test_changed),
	    T(test_no_key),
	};

	log_init("gatewayd", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
