/*
 * Credentials at gatewayd's doors, between a false admind and a false sandboxd:
 * which requests have one, which are refused before admind is asked, how
 * clients are challenged, and the end of a token's time.
 */
#include "access_rig.h"
#include "unit.h"

/* ---- which requests have a credential ---- */

struct row {
	const char *fields;
	int status;
	const char *credential; /* that admind was asked for; NULL: it was not
				 * asked */
	const char *says;       /* the answer has this, or NULL */
};

static void
run_rows(const struct row *row, size_t n)
{
	unsigned before;
	size_t i;
	int status;

	for (i = 0; i < n; i++) {
		/* Nothing is remembered from the row before. */
		identity_cache_drop(gw.identities);
		before = authenticates;
		status = post(row[i].fields, PING);
		if (status != row[i].status ||
		    authenticates != before + (row[i].credential != NULL))
			fail_msg("%s: %d, %u questions", row[i].fields, status,
			    authenticates - before);
		if (row[i].credential != NULL)
			assert_string_equal(last_credential, row[i].credential);
		if (row[i].says != NULL && !has(row[i].says))
			fail_msg("%s: %s", row[i].fields, answer);
		/* Whatever is refused after the head has the message's id. */
		if (status != 200 && strstr(answer, "Malformed") == NULL)
			assert_true(has("\"id\":9"));
		assert_int_equal(challenge() != NULL, status == 401);
	}
}

#define NOT_READ "is not read at this listener."
#define TWO      "has two credentials"

static void
test_where_no_issuer_has_the_header(void **state)
{
	static const struct row rows[] = {
	    {"", 200, "", NULL},
	    {BEARER "x\r\n", 200, "x", NULL},
	    {"authorization:bEaReR   x\r\n", 200, "x", NULL},
	    {BEARER "a b\r\n", 200, "a b", NULL},
	    {BEARER "bad\r\n", 401, "bad", "who?"},
	    /* Another scheme, and none of any scheme, as ever. */
	    {"Authorization: Basic bG9jYWw6\r\n", 200, "", NULL},
	    {"Authorization: DPoP a.b.c\r\n", 200, "", NULL},
	    {"Authorization: Bearerx\r\n", 200, "", NULL},
	    {"Authorization: Bearer,x\r\n", 200, "", NULL},
	    {"Authorization: x Bearer y\r\n", 200, "", NULL},
	    {"Authorization: Bearer\r\n", 200, "", NULL},
	    {"Authorization: Bearer  \t \r\n", 200, "", NULL},
	    {"Authorization:\r\n", 200, "", NULL},
	    /* A bearer token that another program might read. */
	    {"Authorization: Bearer\tx\r\n", 400, NULL, "has a tab"},
	    {"Authorization: Bearer \t x\r\n", 400, NULL, "has a tab"},
	    /* An assertion that is not read makes no `local`. */
	    {ASSERTION "a.b.c\r\n", 401, NULL, NOT_READ},
	    {"CF-ACCESS-JWT-ASSERTION: a.b.c\r\n", 401, NULL, NOT_READ},
	    {ASSERTION "\r\n", 401, NULL, NOT_READ},
	    {"Authorization: Basic x\r\n" ASSERTION "a.b.c\r\n", 401, NULL,
		NOT_READ},
	    {BEARER "x\r\n" ASSERTION "a.b.c\r\n", 400, NULL, TWO},
	    {ASSERTION "a.b.c\r\n" BEARER "x\r\n", 400, NULL, TWO},
	    {BEARER "a.b.c\r\n" ASSERTION "a.b.c\r\n", 400, NULL, TWO},
	    {BEARER "xmbt_1\r\n" ASSERTION "a.b.c\r\n", 400, NULL, TWO},
	    /* Access is a second lock before an API token. */
	    {BEARER "mbt_1\r\n" ASSERTION "a.b.c\r\n", 200, "mbt_1", NULL},
	    {"Authorization: Bearer\r\n" ASSERTION "a.b.c\r\n", 400, NULL, TWO},
	    {BEARER "x\r\n" BEARER "x\r\n", 400, NULL, "Malformed"},
	    {ASSERTION "x\r\n" ASSERTION "x\r\n", 400, NULL, "Malformed"},
	};

	(void)state;
	run_rows(rows, sizeof(rows) / sizeof(rows[0]));
	assert_int_equal(last_via, VIA_AUTHORIZATION);
}

static void
test_where_an_issuer_has_the_header(void **state)
{
	static const struct row rows[] = {
	    {"", 200, "", NULL},
	    {BEARER "x\r\n", 200, "x", NULL},
	    {ASSERTION "a.b.c\r\n", 200, "a.b.c", NULL},
	    {ASSERTION "bad\r\n", 401, "bad", "who?"},
	    /* No scheme is taken off. */
	    {ASSERTION "Bearer a.b.c\r\n", 200, "Bearer a.b.c", NULL},
	    {"Authorization: Basic x\r\n" ASSERTION "a.b.c\r\n", 200, "a.b.c",
		NULL},
	    {"Authorization: \r\n" ASSERTION "a.b.c\r\n", 200, "a.b.c", NULL},
	    {ASSERTION "\r\n", 401, NULL, "is empty."},
	    {BEARER "x\r\n" ASSERTION "a.b.c\r\n", 400, NULL, TWO},
	    {BEARER "x\r\n" ASSERTION "\r\n", 400, NULL, TWO},
	    {BEARER "mbt_1\r\n" ASSERTION "a.b.c\r\n", 400, NULL, TWO},
	    {"Authorization: Bearer\r\n" ASSERTION "a.b.c\r\n", 400, NULL, TWO},
	};

	(void)state;
	tell_access(true, true);
	run_rows(rows, sizeof(rows) / sizeof(rows[0]));
	/* The document changes: from the next request on it is not read. */
	tell_access(false, true);
	assert_int_equal(post(ASSERTION "a.b.c\r\n", PING), 401);
	assert_true(has(NOT_READ));
}

/* The longest token is asked about whole; one byte more is said to be too
 * much, and never becomes another token, or none. */
static void
test_long_credentials(void **state)
{
	static char fields[CREDENTIAL_MAX + 256], token[CREDENTIAL_MAX + 2];
	static const char *const name[] = {BEARER, ASSERTION};
	unsigned before;
	int i;

	(void)state;
	tell_access(true, true);
	memset(token, 'x', CREDENTIAL_MAX + 1);
	for (i = 0; i < 2; i++) {
		token[CREDENTIAL_MAX] = '\0';
		snprintf(fields, sizeof(fields), "%s%s\r\n", name[i], token);
		assert_int_equal(post(fields, PING), 200);
		assert_string_equal(last_credential, token);
		assert_int_equal(last_via, i);
		before = authenticates;
		token[CREDENTIAL_MAX] = 'x';
		snprintf(fields, sizeof(fields), "%s%s\r\n", name[i], token);
		assert_int_equal(post(fields, PING), 401);
		assert_true(has("has 8193 bytes; at most 8192 are read.") &&
		    has("\"id\":9"));
		assert_non_null(strstr(challenge(), "error=\"invalid_token\""));
		assert_int_equal(authenticates, before);
	}
	/* A call carries it, beside the largest capabilities. */
	token[CREDENTIAL_MAX] = '\0';
	snprintf(fields, sizeof(fields), "%s%s\r\n" CALL_FIELDS("t_ok"), BEARER,
	    token);
	assert_int_equal(post(fields, CALL("t_ok")), 200);
	assert_int_equal(runs, 1);
}

/* One text in two headers is two credentials, for the cache and for admind. */
static void
test_via_goes_everywhere(void **state)
{
	static const char get[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/get\",\"params\":"
	    "{\"taskId\":\"" TASK "\"," ENV "{\"extensions\":{"
	    "\"io.modelcontextprotocol/tasks\":{}}}}}}";
	unsigned before;

	(void)state;
	tell_access(true, true);
	before = authenticates;
	assert_int_equal(post(BEARER "one\r\n", PING), 200);
	assert_int_equal(post(BEARER "one\r\n", PING), 200);
	assert_int_equal(authenticates, before + 1);
	assert_int_equal(last_via, VIA_AUTHORIZATION);
	assert_int_equal(post(ASSERTION "one\r\n", PING), 200);
	assert_int_equal(post(ASSERTION "one\r\n", PING), 200);
	assert_int_equal(authenticates, before + 2);
	assert_int_equal(last_via, VIA_ASSERTION);

	last_via = VIA_AUTHORIZATION;
	assert_int_equal(
	    post(ASSERTION "one\r\n" CALL_FIELDS("t_ok"), CALL("t_ok")), 200);
	assert_int_equal(last_via, VIA_ASSERTION);
	assert_int_equal(
	    post(BEARER "one\r\n" CALL_FIELDS("t_ok"), CALL("t_ok")), 200);
	assert_int_equal(last_via, VIA_AUTHORIZATION);
	assert_int_equal(
	    post(ASSERTION "one\r\n"
			   "MCP-Protocol-Version: 2026-07-28\r\n"
			   "Mcp-Method: tasks/get\r\nMcp-Name: " TASK "\r\n",
		get),
	    200);
	assert_int_equal(last_via, VIA_ASSERTION);
	assert_int_equal(authenticates, before + 2);
}

/* An answer that was asked for before everything was forgotten serves its own
 * request alone: admind may have given it before the change. */
static void
test_older_answer_is_not_remembered(void **state)
{
	struct lc c = lc_open(address);
	long end = lc_ms() + LC_DEADLINE_MS;
	unsigned before = authenticates;

	(void)state;
	send_post(&c, BEARER "one\r\n", PING);
	while (authenticates == before) {
		if (lc_ms() > end)
			fail_msg("admind is not asked");
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
	/* admind has answered, and the answer is on its way. */
	assert_int_equal(gw.exchange_count, 1);
	identity_cache_drop(gw.identities);
	assert_int_equal(lc_answer(&c, base), 200);
	lc_close(&c);
	assert_int_equal(post(BEARER "one\r\n", PING), 200);
	assert_int_equal(authenticates, before + 2);
	assert_int_equal(post(BEARER "one\r\n", PING), 200);
	assert_int_equal(authenticates, before + 2);
}

/* ---- challenges ---- */

static void
test_challenges(void **state)
{
	(void)state;
	assert_int_equal(post(BEARER "bad\r\n", PING), 401);
	assert_string_equal(challenge(),
	    "Bearer realm=\"mcpbox\", error=\"invalid_token\", "
	    "error_description=\"who?\"");
	tell_access(false, true);
	assert_int_equal(post(BEARER "bad\r\n", PING), 401);
	assert_string_equal(challenge(),
	    "Bearer realm=\"mcpbox\"" POINTS
	    ", scope=\"tools:read tools:call\", error=\"invalid_token\", "
	    "error_description=\"who?\"");
	/* Only characters that RFC 6750 permits are left in admind's sentence;
	 * the body has all. */
	assert_int_equal(post(BEARER "quoted\r\n", PING), 401);
	assert_non_null(
	    strstr(challenge(), "error_description=\"not 'a?b',????\""));
	assert_true(has("not \\\"a\\\\b\\\",\\r\\n\xc3\xa4"));
	/* No token of this client helps: nothing to try. An API token keeps
	 * the error. */
	assert_int_equal(
	    post(CALL_FIELDS("forbidden"), CALL("forbidden")), 403);
	assert_string_equal(challenge(), "Bearer realm=\"mcpbox\"");
	assert_int_equal(post(BEARER "a.b.c\r\n" CALL_FIELDS("forbidden"),
			     CALL("forbidden")),
	    403);
	assert_string_equal(challenge(), "Bearer realm=\"mcpbox\"");
	assert_int_equal(post(BEARER "mbt_x\r\n" CALL_FIELDS("forbidden"),
			     CALL("forbidden")),
	    403);
	assert_string_equal(challenge(),
	    "Bearer realm=\"mcpbox\"" POINTS ", error=\"insufficient_scope\"");
	/* No scopes, no parameter for them. */
	access_told.scope = ipc_str("");
	assert_int_equal(
	    ipc_send(gateway_at_admind, IPC_GW_ACCESS, &access_told), 0);
	told();
	assert_int_equal(post(BEARER "bad\r\n", PING), 401);
	assert_null(strstr(challenge(), "scope="));
	assert_non_null(strstr(challenge(), POINTS));
	/* The last issuer goes. */
	tell_access(false, false);
	assert_int_equal(post(BEARER "mbt_x\r\n" CALL_FIELDS("forbidden"),
			     CALL("forbidden")),
	    403);
	assert_string_equal(challenge(),
	    "Bearer realm=\"mcpbox\", error=\"insufficient_scope\"");
}

#define LEGACY(method, params)                                                \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" \
	"{" params "}}"
#define MORE(scope, why)                                    \
	"Bearer realm=\"mcpbox\"" POINTS ", scope=\"" scope \
	"\", error=\"insufficient_scope\", error_description=\"" why "\""

/* A token that lacks a scope which its owner could have: the challenge has all
 * scopes at once. The words of admind must fit into the field. */
static void
test_step_up(void **state)
{
	static const struct {
		const char *body;
		const char *scope; /* NULL: served */
	} of[] = {
	    {LEGACY("tools/list", ""), NULL},
	    {LEGACY("prompts/list", ""), "tools:read manage"},
	    {LEGACY("resources/list", ""), "tools:read manage"},
	    {LEGACY("completion/complete",
		 "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"x\"},"
		 "\"argument\":{\"name\":\"a\",\"value\":\"\"}"),
		"tools:read manage"},
	    {LEGACY("resources/read", "\"uri\":\"x://y\""),
		"tools:call manage"},
	    {PING, NULL},
	};
	char want[512];

	(void)state;
	tell_access(false, true);
	forbids.scope = ipc_str("tools:read tools:call");
	assert_int_equal(post(BEARER "a.b.c\r\n" CALL_FIELDS("forbidden"),
			     CALL("forbidden")),
	    403);
	assert_string_equal(challenge(),
	    MORE("tools:read tools:call",
		"Ask an administrator for this permission."));
	assert_true(has("\"failure_mode\":\"forbidden\""));
	forbids.scope = ipc_str("a\", realm=\"b");
	assert_int_equal(post(BEARER "a.b.c\r\n" CALL_FIELDS("forbidden"),
			     CALL("forbidden")),
	    403);
	assert_string_equal(challenge(), "Bearer realm=\"mcpbox\"");
	forbids.scope = ipc_str("");
	identity_told.unread =
	    1u << MCP_LIST_PROMPTS | 1u << MCP_LIST_RESOURCES;
	identity_told.read_scope = ipc_str("tools:read manage");
	identity_told.call_scope = ipc_str("tools:call manage");
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		int status = post(BEARER "narrow\r\n", of[i].body);

		if (of[i].scope == NULL) {
			assert_int_equal(status, 200);
			continue;
		}
		assert_int_equal(status, 403);
		snprintf(want, sizeof(want),
		    MORE("%s",
			"this token lacks a scope that its permission set "
			"has"),
		    of[i].scope);
		assert_string_equal(challenge(), want);
	}
	identity_told = (struct ipc_identity){.cache_ms = 30000};
}

/* The tunnel's quick 401 asks admind nothing, and counts an assertion only
 * where one is read. */
static void
test_tunnel_without_a_credential(void **state)
{
	static const char *const requests[] = {SHORT(""),
	    SHORT("X-Other: a.b.c\r\n"), "GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n",
	    "DELETE /mcp HTTP/1.1\r\nHost: x\r\n\r\n",
	    "PUT /mcp HTTP/1.1\r\nHost: x\r\n\r\n"};
	size_t i;

	(void)state;
	assert_int_equal(strlen(PING), PING_LEN);
	gw.listener = LISTENER_TUNNEL;
	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		assert_int_equal(ask_raw(requests[i]), 401);
		assert_string_equal(challenge(), "Bearer realm=\"mcpbox\"");
	}
	assert_int_equal(ask_raw(SHORT(ASSERTION "a.b.c\r\n")), 401);
	assert_string_equal(challenge(), "Bearer realm=\"mcpbox\"");
	tell_access(false, true);
	assert_int_equal(ask_raw(SHORT("")), 401);
	assert_string_equal(challenge(),
	    "Bearer realm=\"mcpbox\"" POINTS
	    ", scope=\"tools:read tools:call\"");
	assert_true(has("A credential is required."));
	assert_int_equal(ask_raw(SHORT(ASSERTION "a.b.c\r\n")), 401);
	assert_int_equal(authenticates, 0);

	tell_access(true, true);
	assert_int_equal(ask_raw(SHORT("")), 401);
	assert_int_equal(authenticates, 0);
	assert_int_equal(ask_raw(SHORT(ASSERTION "a.b.c\r\n")), 200);
	assert_int_equal(authenticates, 1);
	assert_int_equal(last_via, VIA_ASSERTION);
	/* The tunnel ignores a token of Access itself beside the assertion. One
	 * that may be ours is a second credential. */
	assert_int_equal(
	    ask_raw(SHORT(BEARER "oauth:x\r\n" ASSERTION "a.b.d\r\n")), 200);
	assert_int_equal(last_via, VIA_ASSERTION);
	assert_string_equal(last_credential, "a.b.d");
	assert_int_equal(
	    ask_raw(SHORT(BEARER "x.y.z\r\n" ASSERTION "a.b.c\r\n")), 400);
	assert_int_equal(
	    ask_raw(SHORT(BEARER "mbt_1\r\n" ASSERTION "a.b.c\r\n")), 400);
	/* A preflight has no credential. */
	assert_int_equal(ask_raw("OPTIONS /mcp HTTP/1.1\r\nHost: x\r\n"
				 "Origin: http://good.example\r\n\r\n"),
	    204);
}

#define LISTEN_FIELDS                          \
	"MCP-Protocol-Version: 2026-07-28\r\n" \
	"Mcp-Method: subscriptions/listen\r\n"
#define LISTEN                                                              \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"subscriptions/listen"   \
	"\",\"params\":{\"notifications\":{\"toolsListChanged\":true}," ENV \
	"{}}}}"

/* ---- the end of a token's time ---- */

/* Opens a stream by this credential. */
static struct lc
stream_of(const char *credential)
{
	struct lc c = lc_open(address);
	char fields[256];

	snprintf(fields, sizeof(fields), LISTEN_FIELDS "%s\r\n", credential);
	send_post(&c, fields, LISTEN);
	wait_for(&c, "acknowledged");
	return c;
}

static bool
ended(struct lc *c)
{
	lc_turn(c, base);
	return strstr(c->p, "\"resultType\":\"complete\"") != NULL;
}

/* Only this token's streams and waiting calls end; its calls under way go on,
 * and so does everything of its principal's other tokens. */
static void
test_time_is_over(void **state)
{
	struct lc one, other, running;
	struct ipc_hash h;

	(void)state;
	tell_access(true, true);
	one = stream_of(BEARER "ann1");
	other = stream_of(ASSERTION "ann1");
	running = lc_open(address);
	send_post(
	    &running, BEARER "ann1\r\n" CALL_FIELDS("t_hang"), CALL("t_hang"));
	until(&runs, 1);

	credential_ends("ann1", "");
	wait_for(&one, "\"resultType\":\"complete\"");
	assert_false(ended(&other));
	assert_int_equal(cancels, 0);
	credential_hash(VIA_ASSERTION, "ann1", 4, &h);
	credential_ends_by(&h, "");
	wait_for(&other, "\"resultType\":\"complete\"");
	assert_int_equal(cancels, 0);
	{
		struct ipc_id id = hanging_id;

		result(hanging_peer, hanging, &id, OUTCOME_DONE, FAILURE_NONE,
		    "{\"content\":[]}", "{}");
	}
	assert_int_equal(lc_answer(&running, base), 200);
	assert_non_null(strstr(running.p, "\"content\":[]"));
	lc_close(&one);
	lc_close(&other);
	lc_close(&running);
}

/* A call that waits belongs to the token of its client's last request. */
static void
test_waiting_calls(void **state)
{
	char body[1024], state_text[512];
	const char *p;

	(void)state;
	assert_int_equal(
	    post(BEARER "ann1\r\n" CALL_FIELDS("t_ask"), CALL("t_ask")), 200);
	p = strstr(answer, "\"requestState\":\"");
	assert_non_null(p);
	p += strlen("\"requestState\":\"");
	snprintf(
	    state_text, sizeof(state_text), "%.*s", (int)strcspn(p, "\""), p);
	credential_ends("ann2", "");
	assert_int_equal(cancels, 0);
	/* ann comes back with a fresh token and answers a part. */
	snprintf(body, sizeof(body),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"t_ask\",\"requestState\":\"%s\","
	    "\"inputResponses\":{\"r\":{\"roots\":[]}}," ENV
	    "{\"elicitation\":{},\"roots\":{}}}}}",
	    state_text);
	assert_int_equal(
	    post(BEARER "ann2\r\n" CALL_FIELDS("t_ask"), body), 200);
	assert_true(has("\"resultType\":\"input_required\""));
	credential_ends("ann1", "");
	assert_int_equal(cancels, 0);
	credential_ends("ann2", "");
	until(&cancels, 1);
	assert_true(TAILQ_EMPTY(&gw.calls));
}

/* A person is withdrawn: everything ends, by whichever token it came. */
static void
test_person_is_withdrawn(void **state)
{
	static const struct ipc_hash none;
	struct lc one, other, bob, running;

	(void)state;
	tell_access(true, true);
	one = stream_of(BEARER "ann1");
	other = stream_of(ASSERTION "ann2");
	bob = stream_of(BEARER "bob");
	running = lc_open(address);
	send_post(
	    &running, BEARER "ann3\r\n" CALL_FIELDS("t_hang"), CALL("t_hang"));
	until(&runs, 1);
	credential_ends_by(&none, "ann");
	wait_for(&one, "\"resultType\":\"complete\"");
	wait_for(&other, "\"resultType\":\"complete\"");
	until(&cancels, 1);
	assert_int_equal(lc_answer(&running, base), 200);
	assert_false(ended(&bob));
	lc_close(&one);
	lc_close(&other);
	lc_close(&bob);
	lc_close(&running);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(test_where_no_issuer_has_the_header),
	    T(test_where_an_issuer_has_the_header),
	    T(test_long_credentials),
	    T(test_via_goes_everywhere),
	    T(test_older_answer_is_not_remembered),
	    T(test_challenges),
	    T(test_step_up),
	    T(test_tunnel_without_a_credential),
	    T(test_time_is_over),
	    T(test_waiting_calls),
	    T(test_person_is_withdrawn),
	};

	log_init("gatewayd", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
