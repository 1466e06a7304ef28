/*
 * Event streams in gateway_rig.h's loop: what test_gateway_streams.c and
 * test_gateway_resume.c share. Included once.
 */
#ifndef STREAM_RIG_H
#define STREAM_RIG_H

#include "gateway_rig.h"
#include "stream_internal.h"
#include "unit.h"

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

#endif
