/*
 * Signed tokens in gateway_rig.h's loop, for test_gateway_access.c and
 * test_gateway_metadata.c. Included once.
 */
#ifndef ACCESS_RIG_H
#define ACCESS_RIG_H

#include "gateway_rig.h"
#include "unit.h"

#define ENV                                     \
	"\"_meta\":{\"io.modelcontextprotocol/" \
	"protocolVersion\":\"2026-07-28\","     \
	"\"io.modelcontextprotocol/clientCapabilities\":"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}"
#define TASK "01020304-0506-0708-090a-0b0c0d0e0f10"
#define CALL_FIELDS(tool)                                                \
	"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n" \
	"Mcp-Name: " tool "\r\n"
#define CALL(tool)                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"" tool "\"," ENV "{\"elicitation\":{},\"roots\":{}}}}}"
#define BEARER    "Authorization: Bearer "
#define ASSERTION "Cf-Access-Jwt-Assertion: "
#define URL       "https://mcp.example.org/.well-known/oauth-protected-resource/mcp"
#define METADATA                                         \
	"{\"resource\":\"https://mcp.example.org/mcp\"," \
	"\"authorization_servers\":[\"https://id.example.org\"]}"
#define POINTS ", resource_metadata=\"" URL "\""

/* Until gatewayd has taken all that admind sent before. */
static inline void
told(void)
{
	credential_ends("of nobody", "nobody");
}

static inline void
tell_access(bool assertion, bool served)
{
	access_told.assertion = assertion;
	access_told.resource_metadata = ipc_str(served ? URL : "");
	access_told.scope = ipc_str(served ? "tools:read tools:call" : "");
	access_told.metadata = ipc_str(served ? METADATA : "");
	assert_int_equal(
	    ipc_send(gateway_at_admind, IPC_GW_ACCESS, &access_told), 0);
	told();
	assert_int_equal(gw.access.assertion, assertion);
}

/* The answer's WWW-Authenticate, or NULL. */
static inline const char *
challenge(void)
{
	static char text[4096];
	const char *p = strstr(answer, "\r\nWWW-Authenticate: ");

	if (p == NULL)
		return NULL;
	p += strlen("\r\nWWW-Authenticate: ");
	assert_null(strstr(p, "\r\nWWW-Authenticate: ")); /* once */
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(p, "\r"), p);
	return text;
}

/* One request on a connection of its own, kept in `answer`. */
static inline int
ask_raw(const char *request)
{
	struct lc c = lc_open(address);
	int status;

	lc_sends(&c, base, request);
	status = lc_answer(&c, base);
	snprintf(answer, sizeof(answer), "%s", c.p);
	lc_close(&c);
	return status;
}

static inline void
wait_for(struct lc *c, const char *text)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (strstr(c->p, text) == NULL) {
		if (c->eof || lc_ms() > end)
			fail_msg("no %s; got: %s", text, c->p);
		lc_turn(c, base);
	}
}

static inline void
until(const unsigned *what, unsigned value)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (*what < value) {
		if (lc_ms() > end)
			fail_msg("it did not happen");
		lc_turn(NULL, base);
	}
}

/* A request as a proxy brings it. */
enum { PING_LEN = 40 };
#define SHORT(fields)                                            \
	"POST /mcp HTTP/1.1\r\nHost: mcp.example.org\r\n" fields \
	"Accept: application/json, text/event-stream\r\n"        \
	"Content-Length: 40\r\n\r\n" PING

#endif
