/*
 * Event streams that live longer than an answer, between a false admind and a
 * false sandboxd: what each says first, what it is told, and what it never is.
 */
#include "stream_rig.h"
#include "unit.h"

static void
test_listen(void **state)
{
	struct lc c = lc_open(address), d = lc_open(address);
	const char *p;

	(void)state;
	send_post(&c, LISTEN_FIELDS,
	    LISTEN("\"s\\u0031\"", "\"toolsListChanged\":true"));
	wait_for(&c, "\n\n");
	wait_for(&c, "200 OK");
	assert_non_null(strstr(c.p, "Content-Type: text/event-stream\r\n"));
	assert_non_null(strstr(c.p, "X-Accel-Buffering: no\r\n"));
	/* First, with the id as it was sent, and only what is honoured. */
	p = strstr(c.p, "data: ");
	assert_ptr_equal(p,
	    strstr(c.p,
		ACKNOWLEDGED "\"s\\u0031\"},\"notifications\":{"
			     "\"toolsListChanged\":true}}}\n\n"));
	send_post(&d, LISTEN_FIELDS,
	    LISTEN("9",
		"\"promptsListChanged\":true,\"resourcesListChanged\":"
		"false,\"resourceSubscriptions\":[\"test://text\","
		"\"test://nothing\",7,\"test:\\/\\/text\",\"test://item/4/"
		"data\"],"
		"\"taskIds\":[\"t\"]"));
	wait_for(&d,
	    ACKNOWLEDGED "9},\"notifications\":{\"promptsListChanged\":true,"
			 "\"resourceSubscriptions\":[\"test://text\","
			 "\"test://item/4/data\"]}}}\n\n");
	/* Requests are over; the streams are not. */
	assert_int_equal(gw.exchange_count, 0);
	forget(&c);
	forget(&d);

	/* Each is told what it asked for, nothing else. */
	changed(1 << MCP_LIST_TOOLS);
	wait_for(&c,
	    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/"
	    "list_changed\",\"params\":{\"_meta\":{\"io."
	    "modelcontextprotocol/subscriptionId\":\"s\\u0031\"}}}\n\n");
	settle(&d);
	assert_null(strstr(d.p, "method"));
	changed(1 << MCP_LIST_PROMPTS);
	wait_for(&d, "notifications/prompts/list_changed\"");
	settle(&c);
	assert_int_equal(times(&c, "list_changed"), 1);
	forget(&d);

	/* Another list, but what serves the URI is the same. */
	changed(1 << MCP_LIST_TEMPLATES);
	settle(&d);
	assert_null(strstr(d.p, "method"));
	text_version = 1;
	changed(1 << MCP_LIST_RESOURCES);
	wait_for(&d,
	    "\"notifications/resources/updated\",\"params\":{\"_meta\":{\"io."
	    "modelcontextprotocol/subscriptionId\":9},\"uri\":\"test://text\"}"
	    "}\n\n");
	settle(&d);
	assert_int_equal(times(&d, "resources/updated"), 1);
	assert_int_equal(times(&d, "list_changed"), 0);
	/* Content that changed without a version. */
	stream_notify_resource(&gw, "test://item/4/data");
	stream_notify_resource(&gw, "test://other");
	wait_for(&d, "\"uri\":\"test://item/4/data\"}");
	settle(&d);
	assert_int_equal(times(&d, "resources/updated"), 2);

	/* What the client sends behind its request means nothing. */
	lc_sends(&c, base, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
	settle(&c);
	assert_null(strstr(c.p, "200 OK"));
	assert_int_equal(c.eof, 0);

	/* The same revision once more (an admind that has just started), and
	 * a change of no list, say nothing. */
	forget(&c);
	announced(1 << MCP_LIST_TOOLS, 0);
	changed(0);
	settle(&c);
	assert_null(strstr(c.p, "method"));
	/* An idle stream has its comments (each 60 ms in the rig). */
	lc_run(base, 80);
	wait_for(&c, "\n: keep-alive\n\n");

	/* A hundred changes in one go are one message. */
	forget(&c);
	{
		int i;

		for (i = 0; i < 100; i++)
			stream_notify_lists(&gw, STREAM_ALL_LISTS);
	}
	wait_for(&c, "list_changed");
	settle(&c);
	assert_int_equal(times(&c, "list_changed"), 1);

	/* The server goes: the last message is the response. */
	forget(&c);
	stream_shutdown(&gw);
	wait_for(&c, "0\r\n\r\n");
	p = strstr(c.p, "data: ");
	assert_ptr_equal(p,
	    strstr(c.p,
		"data: {\"jsonrpc\":\"2.0\",\"id\":\"s\\u0031\","
		"\"result\":{\"resultType\":\"complete\",\"_meta\":{"));
	assert_non_null(strstr(
	    c.p, "\"io.modelcontextprotocol/subscriptionId\":\"s\\u0031\""));
	lc_close(&c);
	lc_close(&d);
}

#define TASK "01020304-0506-0708-090a-0b0c0d0e0f10"
#define LISTEN_TASK                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen\"," \
	"\"params\":{\"notifications\":{\"taskIds\":[\"" TASK "\"]},"        \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"            \
	"\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{"    \
	"\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}}}"

static void
task_changed(const char *principal)
{
	struct ipc_task_changed m = {
	    .status = TASK_WORKING, .principal = ipc_str(principal)};

	assert_int_equal(uuid_parse(TASK, strlen(TASK), &m.task), 0);
	assert_int_equal(ipc_send(gateway_at_admind, IPC_TASK_CHANGED, &m), 0);
}

/* Two credentials of one principal: each stream hears by the right of its own,
 * in whichever order they were opened. */
static void
told_by_its_own_right(const char *gone, const char *good)
{
	struct lc c = lc_open(address), d = lc_open(address);
	char fields[256];

	snprintf(fields, sizeof(fields),
	    LISTEN_FIELDS "Authorization: Bearer %s\r\n", "one");
	send_post(&c, fields, LISTEN_TASK);
	wait_for(&c, TASK "\"]}}}\n\n");
	snprintf(fields, sizeof(fields),
	    LISTEN_FIELDS "Authorization: Bearer %s\r\n", "two");
	send_post(&d, fields, LISTEN_TASK);
	wait_for(&d, TASK "\"]}}}\n\n");
	task_changed("local");
	wait_for(&c, "notifications/tasks\"");
	wait_for(&d, "notifications/tasks\"");
	settle(&c);
	settle(&d);
	assert_int_equal(times(&c, "notifications/tasks\""), 1);
	assert_int_equal(times(&d, "notifications/tasks\""), 1);
	forget(&c);
	forget(&d);
	task_changed("bob");
	settle(&c);
	settle(&d);
	assert_null(strstr(c.p, "notifications/tasks"));
	assert_null(strstr(d.p, "notifications/tasks"));

	no_more = gone;
	task_changed("local");
	wait_for(strcmp(good, "one") == 0 ? &c : &d, "notifications/tasks\"");
	wait_for(strcmp(gone, "one") == 0 ? &c : &d, "0\r\n\r\n");
	assert_null(strstr(
	    strcmp(gone, "one") == 0 ? c.p : d.p, "notifications/tasks"));
	assert_int_equal(gw.streams->count, 1);
	lc_close(&c);
	lc_close(&d);
}

static void
test_task_of_a_revoked_credential(void **state)
{
	told_by_its_own_right("two", "one");
}

static void
test_task_of_a_credential_revoked_first(void **state)
{
	told_by_its_own_right("one", "two");
}

/* A change may be the revocation of this very client. */
static void
test_revoked(void **state)
{
	struct lc c = lc_open(address), d = lc_open(address);

	(void)state;
	send_post(&c, LISTEN_FIELDS "Authorization: Bearer bob\r\n",
	    LISTEN("1", "\"toolsListChanged\":true"));
	send_post(&d, LISTEN_FIELDS, LISTEN("2", "\"toolsListChanged\":true"));
	wait_for(&c, "acknowledged");
	wait_for(&d, "acknowledged");
	bob_revoked = true;
	changed(1 << MCP_LIST_TOOLS);
	wait_for(&d, "list_changed");
	wait_for(&c, "0\r\n\r\n");
	assert_null(strstr(c.p, "list_changed"));
	lc_close(&c);
	lc_close(&d);
}

/* Not at the next change: at once, and nobody else's. */
static void
test_credential_ended(void **state)
{
	struct lc c = lc_open(address), d = lc_open(address);

	(void)state;
	send_post(&c, LISTEN_FIELDS "Authorization: Bearer bob\r\n",
	    LISTEN("1", "\"toolsListChanged\":true"));
	send_post(&d, LISTEN_FIELDS, LISTEN("2", "\"toolsListChanged\":true"));
	wait_for(&c, "acknowledged");
	wait_for(&d, "acknowledged");
	credential_ends("bob ", "bob"); /* another of the same principal */
	settle(&c);
	assert_null(strstr(c.p, "0\r\n\r\n"));
	credential_ends("bob", "bob");
	wait_for(&c, "0\r\n\r\n");
	settle(&d);
	assert_null(strstr(d.p, "0\r\n\r\n"));
	changed(1 << MCP_LIST_TOOLS);
	wait_for(&d, "list_changed");
	lc_close(&c);
	lc_close(&d);
}

/* Its time is over, and admind does not say so. */
static void
test_time_of_a_credential(void **state)
{
	struct lc c = lc_open(address), d = lc_open(address);

	(void)state;
	send_post(&d, LISTEN_FIELDS, LISTEN("2", "\"toolsListChanged\":true"));
	wait_for(&d, "acknowledged");
	left_ms = 150;
	send_post(&c, LISTEN_FIELDS "Authorization: Bearer bob\r\n",
	    LISTEN("1", "\"toolsListChanged\":true"));
	wait_for(&c, "acknowledged");
	left_ms = 0;
	wait_for(&c, "0\r\n\r\n");
	assert_null(strstr(d.p, "0\r\n\r\n"));
	lc_close(&c);
	lc_close(&d);
}

/* While admind was away bob lost his rights, and nothing changed that he is
 * told of. */
static void
test_revoked_while_admind_was_away(void **state)
{
	struct lc c = lc_open(address), d = lc_open(address);

	(void)state;
	send_post(&c, LISTEN_FIELDS "Authorization: Bearer bob\r\n",
	    LISTEN("1", "\"toolsListChanged\":true"));
	send_post(&d, LISTEN_FIELDS, LISTEN("2", "\"toolsListChanged\":true"));
	wait_for(&c, "acknowledged");
	wait_for(&d, "acknowledged");
	bob_revoked = true;
	ipc_peer_close(gateway_at_admind);
	wait_for(&c, "0\r\n\r\n");
	assert_null(strstr(c.p, "list_changed"));
	settle(&d);
	assert_null(strstr(d.p, "0\r\n\r\n"));
	lc_close(&c);
	lc_close(&d);
}

static void
test_limits(void **state)
{
	struct lc c[4];
	char fields[1024], own[1024];
	int i;

	(void)state;
	/* One principal's, then all. */
	for (i = 0; i < 2; i++) {
		c[i] = lc_open(address);
		send_post(&c[i], LISTEN_FIELDS, LISTEN("1", ""));
		wait_for(&c[i], "acknowledged");
	}
	assert_int_equal(post(LISTEN_FIELDS, LISTEN("1", "")), 200);
	assert_true(has("\"failure_mode\":\"busy\""));
	assert_true(has("Too many event streams"));
	open_session("2025-11-25", fields, "Authorization: Bearer bob\r\n");
	c[2] = get(fields);
	wait_for(&c[2], "\nid: ");
	c[3] = lc_open(address);
	send_post(&c[3], LISTEN_FIELDS "Authorization: Bearer bob\r\n",
	    LISTEN("1", ""));
	lc_answer(&c[3], base);
	assert_non_null(strstr(c[3].p, "\"failure_mode\":\"busy\""));
	lc_close(&c[3]);
	/* A GET is told by its status: it has no message. */
	open_session("2025-11-25", own, "");
	assert_int_equal(get_status(own), 503);
	assert_true(has("Retry-After: "));
	/* One that goes makes room; a session's second stream needs none. */
	lc_close(&c[0]);
	lc_run(base, 30);
	c[0] = get(own);
	wait_for(&c[0], "\nid: ");
	c[3] = get(own);
	wait_for(&c[3], "\nid: ");
	wait_for(&c[0], "0\r\n\r\n");
	for (i = 0; i < 4; i++)
		lc_close(&c[i]);
}

/* Tells a stream of changes until it does not take more, or until the gateway
 * has ended it. */
static struct stream *
fill(struct lc *c)
{
	struct stream *s;
	int small = 2048;
	long end = lc_ms() + 4 * LC_DEADLINE_MS;

	*c = lc_open(address);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	send_post(c, LISTEN_FIELDS, LISTEN("1", "\"toolsListChanged\":true"));
	wait_for(c, "acknowledged");
	s = TAILQ_FIRST(&gw.streams->all);
	assert_non_null(s);
	lc_run(base, 20);
	while (gw.streams->count > 0 && !httpd_stream_slow(s->req)) {
		if (lc_ms() > end)
			fail_msg("it takes everything");
		stream_notify_lists(&gw, 1 << MCP_LIST_TOOLS);
		event_base_loop(base, EVLOOP_NONBLOCK);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	return s;
}

/* A client that does not read costs no more than what the socket holds: what
 * is due is a bit. */
static void
test_slow(void **state)
{
	struct stream *s;
	struct lc c;
	int i, large = 1024 * 1024;
	long end;

	(void)state;
	s = fill(&c);
	for (i = 0; i < 1000; i++) {
		stream_notify_lists(&gw, 1 << MCP_LIST_TOOLS);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	assert_true(httpd_stream_slow(s->req));
	assert_false(s->queued);
	assert_int_equal(s->due, DUE_TOOLS);
	/* It reads at last, and is told of all of them by one message. */
	setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof(large));
	end = lc_ms() + 4 * LC_DEADLINE_MS;
	while (s->due != 0 || httpd_stream_slow(s->req)) {
		if (lc_ms() > end)
			fail_msg("it is not told");
		lc_turn(&c, base);
	}
	assert_true(c.n < LC_MAX);
	lc_close(&c);
	lc_run(base, 50);
	assert_int_equal(gw.streams->count, 0);
}

static int
setup_short(void **state)
{
	uint64_t usual = client_ms;
	int rc;

	client_ms = 500;
	rc = setup(state);
	client_ms = usual;
	return rc;
}

/* A client that never reads loses its connection. */
static void
test_never_reads(void **state)
{
	struct lc c;
	long end;

	(void)state;
	fill(&c);
	end = lc_ms() + 4 * LC_DEADLINE_MS;
	while (gw.streams->count > 0) {
		if (lc_ms() > end)
			fail_msg("it is still there");
		lc_turn(NULL, base);
	}
	lc_close(&c);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
	    T(test_listen),
	    T(test_task_of_a_revoked_credential),
	    T(test_task_of_a_credential_revoked_first),
	    T(test_revoked),
	    T(test_credential_ended),
	    T(test_time_of_a_credential),
	    T(test_revoked_while_admind_was_away),
	    T(test_limits),
	    T(test_slow),
	    cmocka_unit_test_setup_teardown(
		test_never_reads, setup_short, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
