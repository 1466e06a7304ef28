/*
 * gatewayd whole, calls that wait for a person's yes: what is asked of admind,
 * when, and what becomes of those whose clients leave.
 */
#include "gateway_rig.h"
#include "unit.h"

#define HEAD                                                             \
	"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n" \
	"Mcp-Name: confirm\r\n"
#define CALL(more)                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"confirm\",\"arguments\":{\"a\":1}," more "\"_meta\":{"     \
	"\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","          \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}}}"
#define LEGACY_HEAD "MCP-Protocol-Version: 2025-11-25\r\n"
#define LEGACY                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"confirm\",\"arguments\":{\"a\":1}}}"

/* The false admind's request, and what it says of it. */
static const struct ipc_id the_request = {{'r', 'q', 1}};
static const struct ipc_id none;
static enum { PENDING, SILENT, APPROVED, REFUSED } says;
static uint64_t lives_ms, silent;
static unsigned named; /* AUTHORISEs that named the request */
static char state_text[128];

static void
say_pending(uint64_t request)
{
	struct ipc_pending m = {.approval = the_request,
	    .expires_ms = now_us() / 1000 + lives_ms,
	    .poll_ms = 1000};

	ipc_answer(gateway_at_admind, request, IPC_PENDING, &m);
}

static bool
confirm(struct ipc_peer *p, uint64_t request, const struct ipc_authorise *m)
{
	struct ipc_run_id id = {.execution = {{'o'}}, .timeout_ms = 1000};

	if (!ipc_streq(m->tool, "confirm"))
		return false;
	if (memcmp(&m->approval, &the_request, sizeof(the_request)) == 0)
		named++;
	else
		assert_memory_equal(&m->approval, &none, sizeof(none));
	switch (says) {
	case PENDING:
		say_pending(request);
		break;
	case SILENT:
		silent = request;
		break;
	case APPROVED:
		ipc_answer(p, request, IPC_RUN_ID, &id);
		break;
	case REFUSED:
		ipc_refuse(p, request, FAILURE_NOT_CONFIRMED, "no", 0);
		break;
	}
	return true;
}

static int
begin(void **state)
{
	int rc = setup(state);

	authorise_hook = confirm;
	says = PENDING;
	lives_ms = 60000;
	named = 0;
	return rc;
}

static void
decide(void)
{
	struct ipc_decided m = {.approval = the_request, .approved = 1};

	assert_int_equal(ipc_send(gateway_at_admind, IPC_DECIDED, &m), 0);
}

static void
ask(void)
{
	const char *s;

	assert_int_equal(post(HEAD, CALL("")), 200);
	assert_true(has("\"resultType\":\"input_required\""));
	assert_false(has("inputRequests"));
	assert_non_null(s = strstr(answer, "\"requestState\":\""));
	s += strlen("\"requestState\":\"");
	snprintf(
	    state_text, sizeof(state_text), "%.*s", (int)strcspn(s, "\""), s);
}

/* Calls again, on a connection that stays. */
static struct lc
retry(void)
{
	static char body[1024];
	struct lc c = lc_open(address);

	snprintf(
	    body, sizeof(body), CALL("\"requestState\":\"%s\","), state_text);
	send_post(&c, HEAD, body);
	lc_run(base, 50);
	lc_turn(&c, base);
	return c;
}

static void
test_decided(void **state)
{
	struct lc c;

	ask();
	assert_int_equal(named, 0);
	c = retry();
	assert_int_equal(named, 1);
	assert_int_equal(lc_whole(&c), 0); /* kept waiting */
	says = APPROVED;
	decide();
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\"resultType\":\"complete\""));
	assert_int_equal(named, 2);
	assert_int_equal(runs, 1);
	lc_close(&c);
	/* Told again, of something that waits no more. */
	decide();
	lc_run(base, 20);
	assert_int_equal(authorises, 3);
}

static void
test_decided_while_nobody_is_there(void **state)
{
	struct lc c;

	ask();
	says = APPROVED;
	decide();
	lc_run(base, 20);
	assert_int_equal(authorises, 1);
	assert_int_equal(runs, 0);
	c = retry();
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\"resultType\":\"complete\""));
	lc_close(&c);
}

/* DECIDED comes between AUTHORISE and its PENDING. */
static void
test_decided_while_asked(void **state)
{
	struct lc c;

	ask();
	says = SILENT;
	c = retry();
	assert_int_equal(named, 1);
	decide();
	lc_run(base, 20);
	says = APPROVED;
	say_pending(silent);
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\"resultType\":\"complete\""));
	assert_int_equal(named, 2);
	lc_close(&c);
}

static void
test_refused(void **state)
{
	struct lc c;

	ask();
	c = retry();
	says = REFUSED;
	decide();
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "not_confirmed"));
	assert_non_null(strstr(c.p, "\"isError\":true"));
	lc_close(&c);
	assert_int_equal(runs, 0);
}

/* At its expiry admind is asked how it ended. */
static void
test_expires(void **state)
{
	struct lc c;

	lives_ms = 300;
	ask();
	says = PENDING;
	c = retry();
	says = REFUSED;
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "not_confirmed"));
	lc_close(&c);
}

/* Who closes a modern request cancels it: nothing runs for nobody. */
static void
test_modern_leaves(void **state)
{
	struct lc c;

	ask();
	c = retry();
	lc_close(&c);
	lc_run(base, 50);
	says = APPROVED;
	decide();
	lc_run(base, 50);
	assert_int_equal(named, 1);
	assert_int_equal(runs, 0);
	assert_true(TAILQ_EMPTY(&gw.calls));
}

/* ... also while admind is being asked. */
static void
test_modern_leaves_while_asked(void **state)
{
	struct lc c;

	ask();
	says = SILENT;
	c = retry();
	lc_close(&c);
	lc_run(base, 50);
	say_pending(silent);
	lc_run(base, 50);
	assert_true(TAILQ_EMPTY(&gw.calls));
	assert_int_equal(runs, 0);
}

static struct lc
legacy(const char *fields)
{
	struct lc c = lc_open(address);

	send_post(&c, fields, LEGACY);
	lc_run(base, 50);
	lc_turn(&c, base);
	return c;
}

static void
test_legacy_waits(void **state)
{
	struct lc c = legacy(LEGACY_HEAD);

	assert_non_null(strstr(c.p, "text/event-stream"));
	assert_non_null(strstr(c.p, ": keep-alive"));
	says = APPROVED;
	decide();
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "\\u0041"));
	assert_int_equal(named, 1);
	lc_close(&c);
}

/* The client is told that its credential ended, not that it cancelled. */
static void
test_legacy_credential_ended(void **state)
{
	struct lc c = legacy(LEGACY_HEAD "Authorization: Bearer bob\r\n");

	credential_ends("bob", "bob");
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "The credential of this call ended."));
	assert_null(strstr(c.p, "cancelled"));
	assert_int_equal(runs, 0);
	lc_close(&c);
	assert_true(TAILQ_EMPTY(&gw.calls));
}

static void
test_legacy_leaves(void **state)
{
	struct lc c = legacy(LEGACY_HEAD);

	lc_close(&c);
	lc_run(base, 50);
	says = APPROVED;
	decide();
	lc_run(base, 50);
	assert_int_equal(named, 0);
	assert_int_equal(runs, 0);
	assert_true(TAILQ_EMPTY(&gw.calls));
}

static void
test_legacy_without_a_stream(void **state)
{
	struct lc c = lc_open(address);
	char text[1024];

	snprintf(text, sizeof(text),
	    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n"
	    "Content-Type: application/json\r\n" LEGACY_HEAD
	    "Content-Length: %zu\r\n\r\n" LEGACY,
	    strlen(LEGACY));
	lc_sends(&c, base, text);
	assert_int_equal(lc_answer(&c, base), 200);
	assert_non_null(strstr(c.p, "confirmation_pending"));
	assert_non_null(strstr(c.p, "\"isError\":true"));
	assert_non_null(strstr(c.p, "72710100-0000-0000-0000-000000000000"));
	lc_close(&c);
	assert_true(TAILQ_EMPTY(&gw.calls));
}

/* The end finds calls in every way of waiting; teardown says what is left. */
static void
test_shut_down(void **state)
{
	struct lc kept, waits;

	ask();
	kept = retry();
	ask();
	waits = legacy(LEGACY_HEAD);
	assert_false(TAILQ_EMPTY(&gw.calls));
	assert_int_equal(lc_whole(&kept), 0);
	lc_close(&kept);
	lc_close(&waits);
}

/* ... whose clients are still there. */
static void
test_shut_down_on_them(void **state)
{
	struct lc *c = *state = calloc(2, sizeof(*c));

	assert_non_null(c);
	ask();
	c[0] = retry();
	c[1] = legacy(LEGACY_HEAD);
	assert_false(TAILQ_EMPTY(&gw.calls));
}

static int
teardown_with_clients(void **state)
{
	struct lc *c = *state;
	int rc = teardown(state);

	lc_close(&c[0]);
	lc_close(&c[1]);
	free(c);
	return rc;
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_decided),
	    T(test_decided_while_nobody_is_there),
	    T(test_decided_while_asked),
	    T(test_refused),
	    T(test_expires),
	    T(test_modern_leaves),
	    T(test_modern_leaves_while_asked),
	    T(test_legacy_waits),
	    T(test_legacy_credential_ended),
	    T(test_legacy_leaves),
	    T(test_legacy_without_a_stream),
	    T(test_shut_down),
	    cmocka_unit_test_setup_teardown(
		test_shut_down_on_them, begin, teardown_with_clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
