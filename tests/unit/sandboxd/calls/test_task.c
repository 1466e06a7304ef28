/*
 * A task's call (CTX_TASK): it outlives the connection it was run by, waits
 * with its question for the next one, and is recorded whole. Any other call
 * that loses its peer behaves as ever, which each test shows beside it.
 */
#include <event2/event.h>

#include <signal.h>
#include <unistd.h>

#include "call_internal.h"
#include "ids.h"
#include "ipc_io.h"
#include "rig.h"
#include "unit.h"

/* The time of a question that a test lets end. */
enum { SHORT_MS = 50 };

static struct ipc_peer *first, *second; /* admind's connections, our ends */
static int first_fd, second_fd;

static int
begin(const struct calls_conf *conf)
{
	rig_start(conf, 1);
	first = rig_adopt(&first_fd, IPC_ROLE_ADMIND);
	second = rig_adopt(&second_fd, IPC_ROLE_ADMIND);
	return 0;
}

/* No question's time is over while a test waits. */
static int
setup(void **state)
{
	static const struct calls_conf conf = {.queue = 2,
	    .queue_wait_ms = RIG_LONG_MS,
	    .parked_max = 1,
	    .ask_timeout_ms = 3600 * 1000};

	return begin(&conf);
}

static int
teardown(void **state)
{
	ipc_peer_close(first);
	ipc_peer_close(second);
	close(first_fd);
	close(second_fd);
	rig_end();
	return 0;
}

static struct ipc_id
run(bool task)
{
	struct held *h = rig_held(RIG_LONG_MS, 0);

	h->task = task;
	assert_int_equal(calls_run(rig.calls, first, 7, h, ipc_str("{}")), 0);
	rig_to_running();
	return (struct ipc_id){{rig.ids}};
}

static void
ask(uint32_t number)
{
	struct ipc_ask m = {.number = number,
	    .json = ipc_str("{\"k\":{\"method\":\"elicitation/create\","
			    "\"params\":{\"message\":\"?\",\"requestedSchema\":"
			    "{\"type\":\"object\",\"properties\":{}}}}}")};

	rig_say(IPC_ASK, &m);
}

static void
take_question(int fd, uint64_t request)
{
	struct ipc_frame f = rig_expect(fd, IPC_CALL_EVENT);
	struct ipc_call_event m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(f.request, request);
	assert_int_equal(m.kind, 3);
	assert_int_equal(m.number, 1);
	assert_non_null(memmem(m.json.p, m.json.n, "elicitation/create", 18));
	ipc_frame_free(&f);
}

/* What the tool is told: true, an answer; false, an error. */
static bool
answered(void)
{
	struct ipc_frame f = rig_expect(rig.fork.channel, IPC_ANSWER);
	struct ipc_answer m;
	bool result;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	result = memmem(m.json.p, m.json.n, "\"result\"", 8) != NULL;
	assert_true(
	    result || memmem(m.json.p, m.json.n, "\"error\"", 7) != NULL);
	ipc_frame_free(&f);
	return result;
}

static const char accept_json[] =
    "{\"k\":{\"result\":{\"action\":\"accept\",\"content\":{}}}}";

static void
test_goes_on_without_a_peer(void **state)
{
	struct ipc_id id = run(true);
	struct ipc_frame f;
	struct ipc_record m;
	struct ipc_ok ok = {0};

	calls_peer_gone(rig.calls, first);
	assert_true(calls_attach(rig.calls, &id, second, 9));
	rig_send_result();
	f = rig_expect(second_fd, IPC_CALL_RESULT);
	assert_int_equal(f.request, 9);
	ipc_frame_free(&f);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	f = rig_expect(rig.adm_fd, IPC_RECORD);
	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	/* body, then _meta, which no other record has */
	assert_true(m.meta_len > 0);
	assert_true(m.meta_len < m.stdout_result.n - m.stdout_len);
	assert_int_equal(m.stdout_result.p[m.stdout_len], '{');
	assert_memory_equal(m.stdout_result.p + m.stdout_result.n - m.meta_len,
	    "{\"mcpbox/execution\"", 19);
	assert_int_equal(
	    ipc_write(rig.adm_fd, IPC_OK, m.request, &ok, NULL), 0);
	ipc_frame_free(&f);
}

static void
test_only_tasks_and_only_those_that_run(void **state)
{
	struct ipc_id id = run(false), none = {{99}};

	assert_false(calls_attach(rig.calls, &id, second, 9));
	assert_false(calls_attach(rig.calls, &none, second, 9));
	rig_send_result();
	rig_take_kill();
	assert_false(calls_attach(rig.calls, &id, second, 9));
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, true, true);
}

/* The question waits, is asked again of who attaches, and only that one may
 * answer it. */
static void
test_a_question_waits(void **state)
{
	struct ipc_id id = run(true);

	ask(1);
	take_question(first_fd, 7);
	calls_peer_gone(rig.calls, first);
	rig_turn(20);
	assert_true(calls_attach(rig.calls, &id, second, 9));
	take_question(second_fd, 9);
	park_answer(rig.calls, &id, first, 1, ipc_str(accept_json));
	rig_expect_silence(rig.fork.channel);
	park_answer(rig.calls, &id, second, 1, ipc_str(accept_json));
	assert_true(answered());
}

static bool
is_parked(const void *call)
{
	return ((const struct call *)call)->state == CALL_PARKED;
}

/* Asked while nobody is there, too: until its time is over. */
static void
test_a_question_of_nobody(void **state)
{
	struct ipc_id id = run(true);
	uint64_t asked_ms;

	calls_peer_gone(rig.calls, first);
	ask(1);
	rig_until(is_parked, rig_call(id));
	assert_true(calls_attach(rig.calls, &id, second, 9));
	take_question(second_fd, 9);
	calls_peer_gone(rig.calls, second);
	rig_expect_silence(rig.fork.channel);
	call_arm(rig_call(id), 0);
	assert_false(answered());
	/* And its time is ask_timeout. */
	rig.calls->conf.ask_timeout_ms = SHORT_MS;
	asked_ms = now_boot_ms();
	ask(2);
	assert_false(answered());
	assert_true(now_boot_ms() - asked_ms >= SHORT_MS);
}

static void
test_an_ordinary_question_does_not(void **state)
{
	(void)run(false);
	ask(1);
	take_question(first_fd, 7);
	calls_peer_gone(rig.calls, first);
	assert_false(answered());
}

static void
test_cancelled_while_it_asks(void **state)
{
	struct ipc_id id = run(true);

	ask(1);
	take_question(first_fd, 7);
	calls_peer_gone(rig.calls, first);
	assert_true(calls_cancel(rig.calls, &id, NULL, FAILURE_KILLED));
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_KILLED, FAILURE_KILLED, false, true);
	assert_false(calls_attach(rig.calls, &id, second, 9));
}

int
main(void)
{
#define N(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    N(test_goes_on_without_a_peer),
	    N(test_only_tasks_and_only_those_that_run),
	    N(test_a_question_waits),
	    N(test_a_question_of_nobody),
	    N(test_an_ordinary_question_does_not),
	    N(test_cancelled_while_it_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
