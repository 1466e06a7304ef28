/*
 * Tokens that are bound to one request, between a false admind and a false
 * sandboxd: which requests admind is told, that no verdict is kept, and that
 * the ticket takes the token's place.
 */
#include "access_rig.h"
#include "unit.h"

#define TOKEN  "ann.eyJodG0iOiJQT1NUIiwianRpIjoiMSJ9.aaaaaaaaaaaaaaaaaaaaaa"
#define TICKET "tttttttttttttttttttttttttttttttttttttttttt"
#define LISTEN_FIELDS                          \
	"MCP-Protocol-Version: 2026-07-28\r\n" \
	"Mcp-Method: subscriptions/listen\r\n"
#define LISTEN                                                              \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen"   \
	"\",\"params\":{\"notifications\":{\"toolsListChanged\":true}," ENV \
	"{}}}}"

static char last_request[4096]; /* method and target, if told */
static struct ipc_hash last_body;
static const char *ticket; /* for each token whose request is told, or NULL */

static void
identify(const struct ipc_authenticate *who, struct ipc_identity *id)
{
	snprintf(last_request, sizeof(last_request), "%.*s%.*s",
	    (int)who->method.n, (const char *)who->method.p, (int)who->target.n,
	    (const char *)who->target.p);
	last_body = who->body;
	if (ticket != NULL && who->method.n > 0)
		id->ticket = ipc_str(ticket);
}

/* Keeps the credential of a call, and lets the rig answer. */
static bool
keep_credential(
    struct ipc_peer *p, uint64_t request, const struct ipc_authorise *m)
{
	(void)p;
	(void)request;
	snprintf(last_credential, sizeof(last_credential), "%.*s",
	    (int)m->credential.n, (const char *)m->credential.p);
	return false;
}

/* Whether an issuer of this listener binds its tokens. */
static void
tell_bound(bool bound)
{
	authenticate_hook = identify;
	authorise_hook = keep_credential;
	access_told.bound = bound;
	tell_access(true, true);
	assert_int_equal(gw.access.bound, bound);
	ticket = TICKET;
}

static void
body_is(const char *text)
{
	struct ipc_hash h;

	sha256(text, strlen(text), &h);
	assert_memory_equal(&last_body, &h, sizeof(h));
}

/* One request without a body or with PING. */
static int
ask_at(const char *line, const char *fields, bool ping)
{
	char text[4096];

	snprintf(text, sizeof(text),
	    "%s HTTP/1.1\r\nHost: localhost\r\n"
	    "Accept: application/json, text/event-stream\r\n%s%s\r\n%s",
	    line, fields, ping ? "Content-Length: 40\r\n" : "",
	    ping ? PING : "");
	return ask_raw(text);
}

static void
test_admind_is_told_the_request(void **state)
{
	static const struct {
		const char *line, *fields;
		bool ping;
		int status;
		const char *request;
	} rows[] = {
	    {"POST /mcp", BEARER TOKEN "\r\n", true, 200, "POST/mcp"},
	    {"POST /mcp?", BEARER TOKEN "\r\n", true, 200, "POST/mcp?"},
	    {"POST /mcp?a=%2F&b", BEARER TOKEN "\r\n", true, 200,
		"POST/mcp?a=%2F&b"},
	    {"POST /mcp?a?b", ASSERTION TOKEN "\r\n", true, 200,
		"POST/mcp?a?b"},
	    {"DELETE /mcp?x", "Mcp-Session-Id: s\r\n" BEARER TOKEN "\r\n",
		false, 404, "DELETE/mcp?x"},
	    {"GET /mcp", "Mcp-Session-Id: s\r\n" BEARER TOKEN "\r\n", false,
		404, "GET/mcp"},
	    /* Nothing else can be bound. */
	    {"POST /mcp?a", "", true, 200, ""},
	    {"POST /mcp?a", BEARER "mbt_1\r\n", true, 200, ""},
	    {"POST /mcp?a", BEARER "a.b\r\n", true, 200, ""},
	    {"POST /mcp?a", BEARER "a.b.c.d.e\r\n", true, 200, ""},
	};
	static const struct ipc_hash none;

	(void)state;
	tell_bound(true);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		identity_cache_drop(gw.identities);
		authenticates = 0;
		if (ask_at(rows[i].line, rows[i].fields, rows[i].ping) !=
			rows[i].status ||
		    authenticates != 1)
			fail_msg("%s: %s", rows[i].line, answer);
		assert_string_equal(last_request, rows[i].request);
		if (rows[i].request[0] == '\0')
			assert_memory_equal(&last_body, &none, sizeof(none));
		else
			body_is(rows[i].ping ? PING : "");
	}
	/* The longest target that HTTP lets through. */
	{
		static char line[2100] = "POST /mcp?";

		memset(line + 10, 'x', 2048 - 5);
		assert_int_equal(ask_at(line, BEARER TOKEN "\r\n", true), 200);
		assert_int_equal(strlen(last_request), strlen(line) - 1);
		assert_string_equal(last_request + 4, line + 5);
	}
}

/* No issuer binds: no body is digested. */
static void
test_elsewhere_nothing_is_told(void **state)
{
	static const struct ipc_hash none;

	(void)state;
	tell_bound(false);
	assert_int_equal(ask_at("POST /mcp", BEARER TOKEN "\r\n", true), 200);
	assert_int_equal(authenticates, 1);
	assert_string_equal(last_request, "");
	assert_memory_equal(&last_body, &none, sizeof(none));
	assert_string_equal(last_credential, TOKEN);
}

/* Each request asks admind, even if admind would let the answer be kept. */
static void
test_no_verdict_is_kept(void **state)
{
	unsigned i;

	(void)state;
	tell_bound(true);
	for (i = 1; i < 4; i++) {
		assert_int_equal(post(BEARER TOKEN "\r\n", PING), 200);
		assert_int_equal(authenticates, i);
		assert_string_equal(last_credential, TOKEN);
	}
	/* A refusal neither. */
	for (; i < 6; i++) {
		assert_int_equal(post(BEARER "bad\r\n", PING), 401);
		assert_int_equal(authenticates, i);
	}
	/* An unbound token beside it is remembered as ever. */
	ticket = NULL;
	assert_int_equal(post(BEARER "ann.b.d\r\n", PING), 200);
	assert_int_equal(post(BEARER "ann.b.d\r\n", PING), 200);
	assert_int_equal(authenticates, i);
}

static void
test_the_ticket_goes_on(void **state)
{
	static const char get[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/get\",\"params\":"
	    "{\"taskId\":\"" TASK "\"," ENV "{\"extensions\":{"
	    "\"io.modelcontextprotocol/tasks\":{}}}}}}";

	(void)state;
	tell_bound(true);
	assert_int_equal(
	    post(BEARER TOKEN "\r\n" CALL_FIELDS("t_ok"), CALL("t_ok")), 200);
	assert_int_equal(authorises, 1);
	assert_int_equal(runs, 1);
	assert_int_equal(last_via, VIA_TICKET);
	assert_string_equal(last_credential, TICKET);
	last_via = VIA_AUTHORIZATION;
	assert_int_equal(
	    post(BEARER TOKEN "\r\nMCP-Protocol-Version: 2026-07-28\r\n"
			      "Mcp-Method: tasks/get\r\nMcp-Name: " TASK "\r\n",
		get),
	    200);
	assert_int_equal(last_via, VIA_TICKET);
	/* A client can't bring one: it is a bearer token like any other. */
	assert_int_equal(post(BEARER TICKET "\r\n", PING), 200);
	assert_int_equal(last_via, VIA_AUTHORIZATION);
}

/* Streams and calls end with the ticket, not with the token. */
static void
test_ends_with_the_ticket(void **state)
{
	struct lc one = {0}, running;
	struct ipc_hash h;

	(void)state;
	tell_bound(true);
	one = lc_open(address);
	send_post(&one, BEARER TOKEN "\r\n" LISTEN_FIELDS, LISTEN);
	wait_for(&one, "acknowledged");
	running = lc_open(address);
	send_post(&running, BEARER TOKEN "\r\n" CALL_FIELDS("t_hang"),
	    CALL("t_hang"));
	until(&runs, 1);

	credential_ends(TOKEN, "ann");
	credential_ends(TICKET, "ann"); /* as a bearer token */
	lc_turn(&one, base);
	assert_null(strstr(one.p, "\"resultType\":\"complete\""));
	assert_int_equal(cancels, 0);

	credential_hash(VIA_TICKET, TICKET, strlen(TICKET), &h);
	credential_ends_by(&h, "ann");
	wait_for(&one, "\"resultType\":\"complete\"");
	until(&cancels, 1);
	lc_close(&one);
	lc_close(&running);
}

/* Before a stream is told anything, the ticket is asked about. */
static void
test_a_stream_asks_by_the_ticket(void **state)
{
	struct ipc_catalogue_changed m = {
	    .revision = 99, .lists = 1u << MCP_LIST_TOOLS};
	struct lc one = lc_open(address);
	uint64_t id;

	(void)state;
	tell_bound(true);
	send_post(&one, BEARER TOKEN "\r\n" LISTEN_FIELDS, LISTEN);
	wait_for(&one, "acknowledged");
	authenticates = 0;
	assert_int_equal(ipc_request(gateway_at_admind, IPC_CATALOGUE_CHANGED,
			     &m, 5000, credential_dropped, NULL, &id),
	    0);
	wait_for(&one, "notifications/tools/list_changed");
	assert_int_equal(authenticates, 1);
	assert_int_equal(last_via, VIA_TICKET);
	assert_string_equal(last_credential, TICKET);
	assert_string_equal(last_request, ""); /* of no request */
	lc_close(&one);
}

/* A ticket that can't be one, from an admind with a fault: nothing is served,
 * and nothing is written past the token. */
static void
test_faulty_tickets(void **state)
{
	(void)state;
	tell_bound(true);
	assert_int_equal(post(BEARER "ann.b.c\r\n", PING), 200);
	assert_true(has("\"failure_mode\":\"internal\""));
	ticket = TICKET TICKET; /* longer than any */
	assert_int_equal(post(BEARER TOKEN TOKEN "\r\n", PING), 200);
	assert_int_equal(post(BEARER TOKEN "a\r\n", PING), 200);
	assert_true(has("\"failure_mode\":\"internal\""));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(test_admind_is_told_the_request),
	    T(test_elsewhere_nothing_is_told),
	    T(test_no_verdict_is_kept),
	    T(test_the_ticket_goes_on),
	    T(test_ends_with_the_ticket),
	    T(test_a_stream_asks_by_the_ticket),
	    T(test_faulty_tickets),
	};

	log_init("gatewayd", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
