/*
 * Streams of legacy sessions, and what a client that was cut off, or sent away,
 * gets back.
 */
#include "stream_rig.h"
#include "unit.h"

/* The text behind the last "id: ". */
static void
last_id(const struct lc *c, char id[32])
{
	const char *p = c->p, *last = NULL;

	while ((p = strstr(p, "\nid: ")) != NULL)
		last = p += 5;
	if (last == NULL) {
		fail_msg("no id in: %s", c->p);
		return;
	}
	snprintf(id, 32, "%.*s", (int)strcspn(last, "\r\n"), last);
}

static void
test_get(void **state)
{
	char fields[1024], old[1024], named[1200], id[32], first[32];
	struct lc c, d;

	(void)state;
	assert_int_equal(get_status(""), 405);
	assert_int_equal(
	    get_status("MCP-Protocol-Version: 2026-07-28\r\n"), 405);
	assert_int_equal(get_status("Mcp-Session-Id: nonsense\r\n"), 404);
	open_session("2025-11-25", fields, "");
	snprintf(
	    named, sizeof(named), "%sAuthorization: Bearer bob\r\n", fields);
	/* Another's session is none. */
	assert_int_equal(get_status(named), 404);

	c = get(fields);
	wait_for(&c, "\ndata: \n\n");
	assert_non_null(strstr(c.p, "retry: 1000\n"));
	last_id(&c, first);
	changed(1 << MCP_LIST_TOOLS);
	wait_for(&c,
	    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
	    "tools/list_changed\"}\n\n");
	last_id(&c, id);
	assert_string_not_equal(id, first);
	settle(&c);
	assert_int_equal(times(&c, "list_changed"), 1);

	/* Who comes back says what it knows and is told the rest: nothing ...
	 */
	snprintf(named, sizeof(named), "%sLast-Event-ID: %s\r\n", fields, id);
	d = get(named);
	wait_for(&c, "0\r\n\r\n"); /* ... and takes the old one's place */
	wait_for(&d, "data: \n\n");
	settle(&d);
	assert_null(strstr(d.p, "list_changed"));
	lc_close(&c);
	lc_close(&d);
	/* ... or what was said after that event. */
	snprintf(
	    named, sizeof(named), "%sLast-Event-ID: %s\r\n", fields, first);
	c = get(named);
	wait_for(&c, "tools/list_changed");
	settle(&c);
	assert_int_equal(times(&c, "list_changed"), 1);
	last_id(&c, id);
	lc_close(&c);
	lc_run(base, 30);
	/* What happened while nobody was there, once. */
	changed(1 << MCP_LIST_PROMPTS);
	changed(1 << MCP_LIST_PROMPTS);
	lc_run(base, 30);
	snprintf(named, sizeof(named), "%sLast-Event-ID: %s\r\n", fields, id);
	c = get(named);
	wait_for(&c, "prompts/list_changed");
	settle(&c);
	assert_int_equal(times(&c, "list_changed"), 1);
	lc_close(&c);
	/* An id of a record that was lost: anything may have happened. */
	snprintf(
	    named, sizeof(named), "%sLast-Event-ID: 00000000-0-1\r\n", fields);
	c = get(named);
	wait_for(&c, "resources/list_changed");
	settle(&c);
	assert_int_equal(times(&c, "list_changed"), 3);

	/* The session ends, and its stream. */
	{
		struct lc e = lc_open(address);
		char text[1200];

		snprintf(text, sizeof(text),
		    "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
		    fields);
		lc_sends(&e, base, text);
		assert_int_equal(lc_answer(&e, base), 204);
		lc_close(&e);
	}
	wait_for(&c, "0\r\n\r\n");
	lc_close(&c);
	assert_int_equal(get_status(fields), 404);

	/* Clients of older revisions get no event without data. */
	open_session("2025-06-18", old, "");
	c = get(old);
	wait_for(&c, "\n\n");
	wait_for(&c, ": keep-alive");
	assert_null(strstr(c.p, "data: \n"));
	changed(1 << MCP_LIST_TOOLS);
	wait_for(&c, "tools/list_changed\"}\n\n");
	last_id(&c, id);
	lc_close(&c);
}

/* resources/subscribe of a session, told on its GET stream. */
static void
test_subscribe(void **state)
{
	char fields[1024], named[1200], id[32];
	struct lc c;

	(void)state;
	open_session("2025-11-25", fields, "");
	assert_int_equal(post(fields,
			     "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":"
			     "\"resources/subscribe\",\"params\":{\"uri\":"
			     "\"test://text\"}}"),
	    200);
	assert_true(has("\"result\":{}"));
	c = get(fields);
	wait_for(&c, "data: \n\n");
	last_id(&c, id);
	text_version = 1;
	changed(1 << MCP_LIST_RESOURCES);
	wait_for(&c,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
	    "resources/updated\",\"params\":{\"uri\":\"test://text\"}"
	    "}\n\n");
	settle(&c);
	assert_int_equal(times(&c, "resources/updated"), 1);
	lc_close(&c);
	lc_run(base, 30);
	/* While away; and what may have been lost on the way. */
	text_version = 2;
	changed(1 << MCP_LIST_RESOURCES);
	lc_run(base, 30);
	c = get(fields);
	wait_for(&c, "resources/updated");
	lc_close(&c);
	lc_run(base, 30);
	snprintf(named, sizeof(named), "%sLast-Event-ID: %s\r\n", fields, id);
	c = get(named);
	wait_for(&c, "resources/updated");
	lc_close(&c);
	assert_int_equal(post(fields,
			     "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":"
			     "\"resources/unsubscribe\",\"params\":{\"uri\":"
			     "\"test://text\"}}"),
	    200);
	c = get(fields);
	wait_for(&c, "data: \n\n");
	text_version = 3;
	changed(1 << MCP_LIST_RESOURCES);
	wait_for(&c, "resources/list_changed");
	settle(&c);
	assert_null(strstr(c.p, "resources/updated"));
	lc_close(&c);
}

static void
until_running(void)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (hanging_peer == NULL) {
		if (lc_ms() > end)
			fail_msg("it does not run");
		lc_turn(NULL, base);
	}
}

/* The call that hangs says or ends. */
static void
say(int kind, const char *json)
{
	struct ipc_id id = hanging_id;

	event(hanging_peer, hanging, &id, kind, json);
}

static void
end_call(void)
{
	struct ipc_id id = hanging_id;

	result(hanging_peer, hanging, &id, OUTCOME_DONE, FAILURE_NONE,
	    "{\"content\":[]}", "{}");
	hanging_peer = NULL;
}

/* A POST whose connection broke: the rest, and the result, by GET. */
static void
test_resume(void **state)
{
	char fields[1024], named[1200], foreign[1024], id[32], primed[32];
	struct lc c, d;

	(void)state;
	open_session("2025-11-25", fields, "");
	c = lc_open(address);
	send_post(&c, fields, CALL("t_hang"));
	until_running();
	say(CALL_EVENT_PROGRESS, "{\"progress\":1}");
	wait_for(&c, "\"progress\":1}");
	/* Primed: an id, no data, before anything else. */
	assert_ptr_equal(strstr(c.p, "\nid: ") + 1, strstr(c.p, "id: "));
	assert_true(strstr(c.p, "data: \n\n") < strstr(c.p, "progress"));
	{
		const char *p = strstr(c.p, "id: ") + 4;

		snprintf(
		    primed, sizeof(primed), "%.*s", (int)strcspn(p, "\r\n"), p);
	}
	last_id(&c, id);
	lc_close(&c);
	lc_run(base, 30);
	say(CALL_EVENT_PROGRESS, "{\"progress\":2}");
	lc_run(base, 30);

	/* Another session's id is no key to it. */
	open_session("2025-11-25", foreign, "");
	snprintf(named, sizeof(named), "%sLast-Event-ID: %s\r\n", foreign, id);
	assert_int_equal(get_status(named), 400);

	snprintf(named, sizeof(named), "%sLast-Event-ID: %s\r\n", fields, id);
	c = get(named);
	wait_for(&c, "\"progress\":2}");
	assert_null(strstr(c.p, "\"progress\":1}"));
	/* A second one: the first is taken for lost. */
	snprintf(
	    named, sizeof(named), "%sLast-Event-ID: %s\r\n", fields, primed);
	d = get(named);
	wait_for(&d, "\"progress\":1}");
	wait_for(&d, "\"progress\":2}");
	wait_for(&c, "0\r\n\r\n");
	end_call();
	wait_for(&d, "\"id\":5,\"result\":{\"content\":[]");
	wait_for(&d, "0\r\n\r\n");
	assert_null(strstr(c.p, "\"id\":5"));
	last_id(&d, id);
	lc_close(&c);
	lc_close(&d);
	lc_run(base, 30);
	assert_int_equal(gw.exchange_count, 0);

	/* All of it again, for a while. */
	c = get(named);
	wait_for(&c, "\"id\":5,\"result\"");
	wait_for(&c, "0\r\n\r\n");
	assert_int_equal(times(&c, "\"progress\":"), 2);
	lc_close(&c);
	/* After the last event there is nothing; a stream that never was. */
	snprintf(named, sizeof(named), "%sLast-Event-ID: %s\r\n", fields, id);
	c = get(named);
	wait_for(&c, "0\r\n\r\n");
	assert_null(strstr(c.p, "data:"));
	lc_close(&c);
	snprintf(
	    named, sizeof(named), "%sLast-Event-ID: %.9s9-1\r\n", fields, id);
	assert_int_equal(get_status(named), 400);
}

static void
test_pause(void **state)
{
	char fields[1024], named[1200], id[32];
	struct lc c;

	(void)state;
	open_session("2025-11-25", fields, "");
	c = lc_open(address);
	send_post(&c, fields, CALL("t_hang"));
	until_running();
	say(CALL_EVENT_PAUSE, "{\"retry\":700}");
	wait_for(&c, "0\r\n\r\n");
	assert_non_null(strstr(c.p, "\nretry: 700\n\n"));
	assert_true(strstr(c.p, "data: \n\n") < strstr(c.p, "retry: 700"));
	last_id(&c, id);
	/* The connection is as good as any: kept alive. */
	forget(&c);
	lc_sends(&c, base, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
	lc_answer(&c, base);
	lc_close(&c);
	assert_int_equal(gw.exchange_count, 1);
	say(CALL_EVENT_PAUSE, "{\"retry\":700}"); /* nobody there */
	lc_run(base, 20);
	end_call();
	lc_run(base, 20);
	snprintf(named, sizeof(named), "%sLast-Event-ID: %s\r\n", fields, id);
	c = get(named);
	wait_for(&c, "\"id\":5,\"result\"");
	wait_for(&c, "0\r\n\r\n");
	lc_close(&c);

	/* Nothing for who could not come back: older clients, no session. */
	open_session("2025-06-18", fields, "");
	c = lc_open(address);
	send_post(&c, fields, CALL("t_hang"));
	until_running();
	say(CALL_EVENT_PAUSE, "{\"retry\":700}");
	settle(&c);
	assert_int_equal(c.n, 0);
	end_call();
	assert_int_equal(lc_answer(&c, base), 200);
	assert_null(strstr(c.p, "event-stream"));
	lc_close(&c);
	c = lc_open(address);
	send_post(&c, "MCP-Protocol-Version: 2025-11-25\r\n", CALL("t_hang"));
	until_running();
	say(CALL_EVENT_PAUSE, "{\"retry\":700}");
	settle(&c);
	assert_int_equal(c.n, 0);
	end_call();
	assert_int_equal(lc_answer(&c, base), 200);
	lc_close(&c);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	static const struct CMUnitTest tests[] = {
	    T(test_get),
	    T(test_subscribe),
	    T(test_resume),
	    T(test_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
