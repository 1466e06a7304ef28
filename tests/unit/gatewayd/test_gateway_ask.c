/*
 * gatewayd whole, calls that ask their client: the modern wire's rounds, the
 * legacy wire's requests, and what becomes of a call whose client is away.
 */
#include "gateway_rig.h"
#include "unit.h"

#define HEAD(tool)                                                       \
	"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n" \
	"Mcp-Name: " tool "\r\n"
#define BOTH "{\"elicitation\":{},\"roots\":{}}"
#define CALL(capabilities, more)                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"t_ask\",\"arguments\":{\"a\":1}," more "\"_meta\":{"       \
	"\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","          \
	"\"io.modelcontextprotocol/clientCapabilities\":" capabilities "}}}"
#define FORM_ANSWER  "\"f\":{\"action\":\"accept\",\"content\":{\"n\":1}}"
#define ROOTS_ANSWER "\"r\":{\"roots\":[]}"
#define SAID                                                                 \
	"{\"f\":{\"result\":{\"action\":\"accept\",\"content\":{\"n\":1}}}," \
	"\"r\":{\"result\":{\"roots\":[]}}}"

static char state_text[128];

/* The requestState of the last answer. */
static void
take_state(void)
{
	const char *s = strstr(answer, "\"requestState\":\"");

	assert_non_null(s);
	s += strlen("\"requestState\":\"");
	snprintf(
	    state_text, sizeof(state_text), "%.*s", (int)strcspn(s, "\""), s);
}

/* Calls again with the last state and these answers. */
static int
retry(const char *fields, const char *responses)
{
	static char body[2048];

	snprintf(body, sizeof(body),
	    CALL(BOTH, "\"requestState\":\"%s\",\"inputResponses\":{%s},"),
	    state_text, responses);
	return post(fields, body);
}

static void
ask(void)
{
	assert_int_equal(post(HEAD("t_ask"), CALL(BOTH, "")), 200);
	assert_true(has("\"resultType\":\"input_required\"") &&
	    has("\"inputRequests\":{\"f\":{\"method\":\"elicitation/"
		"create\"") &&
	    has("\"r\":{\"method\":\"roots/list\",\"params\":{}}}"));
	take_state();
	assert_int_equal(runs, 1);
}

static void
test_rounds(void **state)
{
	char first[128];

	ask();
	memcpy(first, state_text, sizeof(first));
	/* Some of it: the rest is asked for again, by a new state. */
	assert_int_equal(retry(HEAD("t_ask"), FORM_ANSWER), 200);
	assert_true(has("\"inputRequests\":{\"r\":"));
	assert_false(has("\"f\":{"));
	take_state();
	assert_string_not_equal(first, state_text);
	assert_int_equal(answers, 0);
	assert_int_equal(retry(HEAD("t_ask"), ROOTS_ANSWER), 200);
	assert_true(has("\"resultType\":\"complete\"") && has("\\u0041"));
	assert_string_equal(last_answers, SAID);
	assert_int_equal(last_number, 1);
	assert_int_equal(retry(HEAD("t_ask"), ROOTS_ANSWER), 200);
	assert_true(has("-32602") && has("bad_state"));
	assert_int_equal(runs, 1);
	assert_int_equal(answers, 1);
}

static void
test_not_another_principal(void **state)
{
	ask();
	assert_int_equal(retry(HEAD("t_ask") "Authorization: Bearer bob\r\n",
			     FORM_ANSWER "," ROOTS_ANSWER),
	    200);
	assert_true(has("bad_state"));
	assert_int_equal(answers, 0);
	assert_int_equal(
	    retry(HEAD("t_ask"), FORM_ANSWER "," ROOTS_ANSWER), 200);
	assert_true(has("\"resultType\":\"complete\""));
}

static void
test_nothing_declared(void **state)
{
	assert_int_equal(post(HEAD("t_ask"), CALL("{}", "")), 200);
	assert_true(has("\"resultType\":\"complete\""));
	assert_int_equal(answers, 1);
	assert_non_null(
	    strstr(last_answers, "\"f\":{\"error\":{\"code\":-32021"));
	assert_non_null(
	    strstr(last_answers, "\"r\":{\"error\":{\"code\":-32021"));
}

static void
test_answers_at_once(void **state)
{
	assert_int_equal(post(HEAD("t_ask"),
			     CALL(BOTH,
				 "\"inputResponses\":{" ROOTS_ANSWER
				 "," FORM_ANSWER ",\"x\":1},")),
	    200);
	assert_true(has("\"resultType\":\"complete\""));
	assert_string_equal(last_answers, SAID);
}

static void
end_with(enum failure f)
{
	result(hanging_peer, hanging, &hanging_id,
	    f == FAILURE_NONE ? OUTCOME_DONE : OUTCOME_FAILED, f,
	    "{\"content\":[{\"type\":\"text\",\"text\":\"gave up\"}]}", "{}");
	hanging_peer = NULL;
	lc_run(base, 20);
}

static void
test_ends_while_the_client_is_away(void **state)
{
	ask();
	end_with(FAILURE_NO_ANSWER);
	assert_int_not_equal(gw.kept_bytes, 0);
	/* The result is its answer, whatever it brings. */
	assert_int_equal(retry(HEAD("t_ask"), FORM_ANSWER), 200);
	assert_true(has("gave up") && has("\"resultType\":\"complete\""));
	assert_int_equal(gw.kept_bytes, 0);
	assert_int_equal(answers, 0);
	assert_true(TAILQ_EMPTY(&gw.calls));
}

static void
test_too_much_is_kept(void **state)
{
	ask();
	gw.kept_bytes += KEPT_BYTES_MAX;
	end_with(FAILURE_NONE);
	assert_int_equal(retry(HEAD("t_ask"), FORM_ANSWER), 200);
	assert_true(has("\"failure_mode\":\"lost\""));
	gw.kept_bytes -= KEPT_BYTES_MAX;
	assert_int_equal(gw.kept_bytes, 0);
}

static void
test_another_question_meanwhile(void **state)
{
	struct ipc_call_event m = {.kind = CALL_EVENT_ASK,
	    .number = 2,
	    .json =
		ipc_str("{\"z\":{\"method\":\"roots/list\",\"params\":{}}}")};

	ask();
	m.execution = hanging_id;
	ipc_answer(hanging_peer, hanging, IPC_CALL_EVENT, &m);
	lc_run(base, 20);
	assert_int_equal(retry(HEAD("t_ask"), FORM_ANSWER), 200);
	assert_true(has("\"inputRequests\":{\"z\":"));
	take_state();
	assert_int_equal(retry(HEAD("t_ask"), "\"z\":{\"roots\":[]}"), 200);
	assert_string_equal(
	    last_answers, "{\"z\":{\"result\":{\"roots\":[]}}}");
	assert_int_equal(last_number, 2);
}

/* The tool gave up the first and asks something else under the same key: what
 * the client said to the first is no answer to that. */
static void
test_another_question_of_the_same_key(void **state)
{
	struct ipc_call_event m = {.kind = CALL_EVENT_ASK,
	    .number = 2,
	    .json = ipc_str("{\"f\":{\"method\":\"elicitation/create\","
			    "\"params\":{\"message\":\"Delete all?\","
			    "\"requestedSchema\":{}}}}")};

	ask();
	m.execution = hanging_id;
	ipc_answer(hanging_peer, hanging, IPC_CALL_EVENT, &m);
	lc_run(base, 20);
	assert_int_equal(
	    retry(HEAD("t_ask"), FORM_ANSWER "," ROOTS_ANSWER), 200);
	assert_true(
	    has("\"resultType\":\"input_required\"") && has("Delete all?"));
	assert_int_equal(answers, 0);
	take_state();
	assert_int_equal(retry(HEAD("t_ask"), FORM_ANSWER), 200);
	assert_true(has("\"resultType\":\"complete\""));
	assert_int_equal(answers, 1);
	assert_int_equal(last_number, 2);
}

static const char *task_questions;

static bool
task_asks(struct ipc_peer *p, uint64_t request, const struct ipc_authorise *m)
{
	struct ipc_task_state t = {.task = {{7}},
	    .status = TASK_INPUT_REQUIRED,
	    .ttl_ms = 1000,
	    .body_len = (uint32_t)strlen(task_questions),
	    .body_meta = ipc_str(task_questions)};

	assert_int_equal(m->task, TASK_MAY);
	ipc_answer(p, request, IPC_TASK_STATE, &t);
	return true;
}

/* What a task asks first is passed on only if it is one object: a false admind
 * must not write into the answer beside it. */
static void
test_questions_of_a_task_are_one_object(void **state)
{
	static const char *const no[] = {
	    "{\"f\":{}},\"_meta\":{\"x\":1}", "{\"f\":{}", "[]", "7", ""};
	size_t i;

	authorise_hook = task_asks;
	task_questions = "{\"f\":{\"method\":\"roots/list\",\"params\":{}}}";
	assert_int_equal(
	    post(HEAD("t_ask"),
		CALL("{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}",
		    "")),
	    200);
	assert_true(has("\"resultType\":\"input_required\"") &&
	    has("\"inputRequests\":{\"f\":{\"method\":\"roots/list\""));
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		task_questions = no[i];
		assert_int_equal(
		    post(HEAD("t_ask"),
			CALL("{\"extensions\":{\"io.modelcontextprotocol/"
			     "tasks\":{}}}",
			    "")),
		    200);
		assert_true(has("\"resultType\":\"task\""));
		assert_false(has("inputRequests"));
	}
}

static unsigned drops, task_cancels;
static bool drop_refused;

/* admind's answers to the end of a task. */
static int
ends_task(struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_task_state t = {.task = {{7}}, .status = TASK_WORKING};

	if (f->type == IPC_TASK_CANCEL) {
		task_cancels++;
		return ipc_answer(p, f->request, IPC_TASK_STATE, &t);
	}
	assert_int_equal(f->type, IPC_TASK_DROP);
	drops++;
	return drop_refused
	    ? ipc_refuse(p, f->request, FAILURE_UNKNOWN_TASK, "no", 0)
	    : ipc_answer_ok(p, f->request);
}

static void
begin_ending(void)
{
	drops = task_cancels = 0;
	drop_refused = false;
	more_hook = ends_task;
	authorise_hook = task_asks;
	task_questions = "{\"f\":{\"method\":\"roots/list\",\"params\":{}}}";
}

static void
wait_until(const unsigned *n, unsigned want)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (*n < want) {
		assert_true(lc_ms() < end);
		lc_run(base, 5);
	}
	assert_int_equal(*n, want);
}

/* The time of its credential is over. So the task ends by the right of this
 * connection, and by the credential only if admind does not know that right. */
static void
test_task_ends_with_its_credential(void **state)
{
	struct ipc_hash h;

	credential_hash(VIA_AUTHORIZATION, "bob", 3, &h);
	begin_ending();
	for (unsigned i = 1; i <= 2; i++) {
		assert_int_equal(
		    post(HEAD("t_ask") "Authorization: Bearer bob\r\n",
			CALL("{\"extensions\":{\"io."
			     "modelcontextprotocol/tasks\":{}}}",
			    "")),
		    200);
		assert_true(has("\"resultType\":\"input_required\""));
		assert_int_equal(drops, i - 1);
		credential_ends_by(&h, "");
		wait_until(&drops, i);
		if (i == 1)
			assert_int_equal(task_cancels, 0);
		drop_refused = true;
	}
	wait_until(&task_cancels, 1);
}

/* admind does not say it: the timer does. */
static void
test_task_ends_with_the_time_of_its_credential(void **state)
{
	begin_ending();
	left_ms = 100;
	assert_int_equal(post(HEAD("t_ask") "Authorization: Bearer bob\r\n",
			     CALL("{\"extensions\":{\"io."
				  "modelcontextprotocol/tasks\":{}}}",
				 "")),
	    200);
	assert_true(has("\"resultType\":\"input_required\""));
	wait_until(&drops, 1);
}

static void
test_what_is_no_question(void **state)
{
	struct ipc_call_event m = {.kind = CALL_EVENT_ASK,
	    .number = 2,
	    .json = ipc_str("{\"z\":{\"method\":\"tools/call\"}}")};

	ask();
	m.execution = hanging_id;
	ipc_answer(hanging_peer, hanging, IPC_CALL_EVENT, &m);
	lc_run(base, 20);
	/* Answered for the client; the false sandboxd then ends the call. */
	assert_int_equal(answers, 1);
	assert_int_equal(last_number, 2);
	assert_string_equal(last_answers, "{}");
	assert_int_equal(retry(HEAD("t_ask"), FORM_ANSWER), 200);
	assert_true(has("\"resultType\":\"complete\""));
}

static void
test_sandboxd_dies_meanwhile(void **state)
{
	ask();
	ipc_server_free(sandboxd);
	lc_run(base, 20);
	start_sandboxd();
	wait_ready();
	assert_int_equal(retry(HEAD("t_ask"), FORM_ANSWER), 200);
	assert_true(has("\"failure_mode\":\"lost\""));
	assert_int_equal(runs, 1);
}

/* The rest is up to teardown: nothing may be left. */
static void
test_nobody_comes_back(void **state)
{
	ask();
	assert_false(TAILQ_EMPTY(&gw.calls));
}

static void
test_closing_the_retry_cancels(void **state)
{
	struct lc c = lc_open(address);
	static char body[2048];

	goes_on = true;
	ask();
	snprintf(body, sizeof(body),
	    CALL(BOTH, "\"requestState\":\"%s\",\"inputResponses\":{%s},"),
	    state_text, FORM_ANSWER "," ROOTS_ANSWER);
	send_post(&c, HEAD("t_ask"), body);
	while (answers == 0)
		lc_turn(&c, base);
	assert_int_equal(cancels, 0);
	lc_close(&c);
	lc_run(base, 50);
	assert_int_equal(cancels, 1);
	assert_true(TAILQ_EMPTY(&gw.calls));
}

/* ---- legacy ---- */

static char session[512];

static void
begin(const char *capabilities)
{
	struct lc c = lc_open(address);
	char body[512], *s;

	snprintf(body, sizeof(body),
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
	    "\"params\":{"
	    "\"protocolVersion\":\"2025-11-25\",\"capabilities\":%s,"
	    "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
	    capabilities);
	send_post(&c, "", body);
	assert_int_equal(lc_answer(&c, base), 200);
	s = strstr(c.p, "Mcp-Session-Id: ");
	assert_non_null(s);
	snprintf(session, sizeof(session),
	    "%.*s\r\nMCP-Protocol-Version: 2025-11-25\r\n",
	    (int)strcspn(s, "\r"), s);
	lc_close(&c);
}

#define LEGACY_CALL                                                            \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{" \
	"\"name\":\"t_ask\"}}"

/* Until the stream says this. */
static void
await(struct lc *c, const char *text)
{
	long end = lc_ms() + LC_DEADLINE_MS;

	while (strstr(c->p, text) == NULL) {
		if (lc_ms() > end)
			fail_msg("no %s in %s", text, c->p);
		lc_turn(c, base);
	}
}

static void
respond(const struct lc *c, const char *method, const char *part)
{
	char body[512];
	const char *m = strstr(c->p, method), *id;

	assert_non_null(m);
	for (id = m; strncmp(id, "\"id\":\"", 6) != 0; id--)
		assert_ptr_not_equal(id, c->p);
	snprintf(body, sizeof(body),
	    "{\"jsonrpc\":\"2.0\",\"id\":\"%.22s\",%s}", id + 6, part);
	assert_int_equal(post(session, body), 202);
}

static void
test_legacy_requests(void **state)
{
	struct lc c;

	begin(BOTH);
	c = lc_open(address);
	send_post(&c, session, LEGACY_CALL);
	await(&c, "roots/list");
	await(&c, "elicitation/create");
	respond(&c, "elicitation/create",
	    "\"result\":{\"action\":\"accept\",\"content\":{\"n\":1}}");
	assert_int_equal(answers, 0);
	respond(&c, "roots/list", "\"result\":{\"roots\":[]}");
	await(&c, "\\u0041");
	assert_string_equal(last_answers, SAID);
	/* Late ones are nothing. */
	respond(&c, "roots/list", "\"error\":{\"code\":1,\"message\":\"x\"}");
	assert_int_equal(answers, 1);
	lc_close(&c);
}

static void
test_legacy_without_a_stream(void **state)
{
	begin("{}");
	assert_int_equal(post(session, LEGACY_CALL), 200);
	assert_int_equal(answers, 1);
	assert_non_null(strstr(last_answers, "-32021"));
	/* Without a session nobody declared anything. */
	assert_int_equal(
	    post("MCP-Protocol-Version: 2025-11-25\r\n", LEGACY_CALL), 200);
	assert_int_equal(answers, 2);
}

static void
test_legacy_sandboxd_dies(void **state)
{
	struct lc c;

	begin(BOTH);
	c = lc_open(address);
	send_post(&c, session, LEGACY_CALL);
	await(&c, "roots/list");
	ipc_server_free(sandboxd);
	await(&c, "\"failure_mode\":\"lost\"");
	start_sandboxd();
	wait_ready();
	respond(&c, "roots/list", "\"result\":{\"roots\":[]}");
	lc_close(&c);
}

/* What waits for a revoked client is killed, what another left behind is not;
 * what ended meanwhile is kept for nobody. */
static void
test_credential_ended(void **state)
{
	char mine[sizeof(state_text)];

	ask();
	memcpy(mine, state_text, sizeof(mine));
	assert_int_equal(
	    post(HEAD("t_ask") "Authorization: Bearer bob\r\n", CALL(BOTH, "")),
	    200);
	assert_true(has("\"resultType\":\"input_required\""));
	take_state();
	credential_ends("bob", "bob");
	lc_run(base, 20);
	assert_int_equal(cancels, 1);
	bob_revoked = true;
	assert_int_equal(retry(HEAD("t_ask") "Authorization: Bearer bob\r\n",
			     FORM_ANSWER "," ROOTS_ANSWER),
	    401);
	/* The other waits still: the rest of its questions is asked. */
	memcpy(state_text, mine, sizeof(mine));
	assert_int_equal(retry(HEAD("t_ask"), FORM_ANSWER), 200);
	assert_true(has("\"inputRequests\":{\"r\":"));
}

static void
test_kept_for_nobody(void **state)
{
	assert_int_equal(
	    post(HEAD("t_ask") "Authorization: Bearer bob\r\n", CALL(BOTH, "")),
	    200);
	end_with(FAILURE_NONE);
	assert_true(gw.kept_bytes > 0);
	credential_ends("bob", "bob");
	assert_int_equal(gw.kept_bytes, 0);
	assert_int_equal(cancels, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_rounds),
	    T(test_not_another_principal),
	    T(test_nothing_declared),
	    T(test_answers_at_once),
	    T(test_ends_while_the_client_is_away),
	    T(test_too_much_is_kept),
	    T(test_another_question_meanwhile),
	    T(test_another_question_of_the_same_key),
	    T(test_questions_of_a_task_are_one_object),
	    T(test_task_ends_with_its_credential),
	    T(test_task_ends_with_the_time_of_its_credential),
	    T(test_what_is_no_question),
	    T(test_sandboxd_dies_meanwhile),
	    T(test_credential_ended),
	    T(test_kept_for_nobody),
	    T(test_nobody_comes_back),
	    T(test_closing_the_retry_cancels),
	    T(test_legacy_requests),
	    T(test_legacy_without_a_stream),
	    T(test_legacy_sandboxd_dies),
	};

	log_init("gatewayd", LOG_TEXT, LOG_LV_ERR);
	ipc_hello_set("test", "");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
