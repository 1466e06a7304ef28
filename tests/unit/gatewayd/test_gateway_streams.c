/*
 * Event streams that live longer than an answer, between a false admind and a
 * false sandboxd: what each says first, what it is told and what it never is,
 * and what a client that was cut off gets back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway_rig.h"
#include "stream_internal.h"

#define ENV                                     \
	"\"_meta\":{\"io.modelcontextprotocol/" \
	"protocolVersion\":\"2026-07-28\","     \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define LISTEN(id, filter)                                  \
	"{\"jsonrpc\":\"2.0\",\"id\":" id                   \
	",\"method\":\"subscriptions/listen\",\"params\":{" \
	"\"notifications\":{" filter "}," ENV "}}"
#define LISTEN_FIELDS                          \
	"MCP-Protocol-Version: 2026-07-28\r\n" \
	"Mcp-Method: subscriptions/listen\r\n"
#define ACKNOWLEDGED                                                          \
	"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions" \
	"/acknowledged\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"   \
	"subscriptionId\":"
#define CALL(tool)                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"" tool "\",\"_meta\":{\"progressToken\":7}}}"

/* Until the client has this text. */
static void
wait_for(struct lc *c, const char *text)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (strstr(c->p, text) == NULL) {
		if (c->eof || lc_ms() > end)
			fail_msg("no %s; got: %s", text, c->p);
		lc_turn(c, base);
	}
}

/* Whatever comes within a moment. */
static void
settle(struct lc *c)
{
	long end = lc_ms() + 40;

	while (lc_ms() < end)
		lc_turn(c, base);
}

static unsigned
times(const struct lc *c, const char *text)
{
	const char *p = c->p;
	unsigned n = 0;

	while ((p = strstr(p, text)) != NULL) {
		n++;
		p++;
	}
	return n;
}

static void
forget(struct lc *c)
{
	c->n = 0;
	c->p[0] = '\0';
}

static void
announced(unsigned mask, unsigned more)
{
	static uint64_t revision = 1;
	struct ipc_catalogue_changed m = {
	    .revision = revision += more, .lists = (uint8_t)mask};
	uint64_t id;

	assert_int_equal(ipc_request(gateway_at_admind, IPC_CATALOGUE_CHANGED,
			     &m, 5000, NULL, NULL, &id),
	    0);
}

static void
changed(unsigned mask)
{
	announced(mask, 1);
}

/* A session by initialize; its field, with the version's. */
static void
open_session(const char *version, char fields[1024], const char *more)
{
	char body[256];
	const char *p;

	snprintf(body, sizeof(body),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
	    "\"params\":{\"protocolVersion\":\"%s\",\"capabilities\":{},"
	    "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
	    version);
	assert_int_equal(post(more, body), 200);
	p = strstr(answer, "Mcp-Session-Id: ");
	assert_non_null(p);
	snprintf(fields, 1024, "MCP-Protocol-Version: %s\r\n%.*s\r\n%s",
	    version, (int)strcspn(p, "\r"), p, more);
}

static struct lc
get(const char *fields)
{
	struct lc c = lc_open(address);
	char text[2048];

	snprintf(text, sizeof(text),
	    "GET /mcp HTTP/1.1\r\nHost: localhost\r\n"
	    "Accept: text/event-stream\r\n%s\r\n",
	    fields);
	lc_sends(&c, base, text);
	return c;
}

static int
get_status(const char *fields)
{
	struct lc c = get(fields);
	int status = lc_answer(&c, base);

	snprintf(answer, sizeof(answer), "%s", c.p);
	lc_close(&c);
	return status;
}

/* The text behind the last "id: ". */
static void
last_id(const struct lc *c, char id[32])
{
	const char *p = c->p, *last = NULL;

	while ((p = strstr(p, "\nid: ")) != NULL)
		last = p += 5;
	assert_non_null(last);
	snprintf(id, 32, "%.*s", (int)strcspn(last, "\r\n"), last);
}

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
		"\"test://nothing\",7,\"test://item/4/data\"],"
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
	struct ipc_id id = call_id();

	event(hanging_peer, hanging, &id, kind, json);
}

static void
end_call(void)
{
	struct ipc_id id = call_id();

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

/* Tells a stream of changes until it does not take more. */
static struct stream *
fill(struct lc *c)
{
	struct stream *s;
	int small = 2048;
	long end = lc_ms() + 20 * 1000;

	*c = lc_open(address);
	setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	send_post(c, LISTEN_FIELDS, LISTEN("1", "\"toolsListChanged\":true"));
	wait_for(c, "acknowledged");
	s = TAILQ_FIRST(&gw.streams->all);
	assert_non_null(s);
	lc_run(base, 20);
	while (!httpd_stream_slow(s->req)) {
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

	/* One that never reads loses its connection (5 s in the rig). */
	fill(&c);
	end = lc_ms() + 10 * 1000;
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
	    T(test_revoked),
	    T(test_limits),
	    T(test_get),
	    T(test_subscribe),
	    T(test_resume),
	    T(test_pause),
	    T(test_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
