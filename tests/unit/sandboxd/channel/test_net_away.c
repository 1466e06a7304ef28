/* Calls that may connect while egress is away, silent or new, and while runner
 * or pool are. */
#include <sys/socket.h>

#include <event2/event.h>

#include <signal.h>
#include <unistd.h>

#include "call_internal.h"
#include "callnet.h"
#include "ids.h"
#include "ipc_io.h"
#include "json_scan.h"
#include "net_rig.h"
#include "unit.h"

/* Away for a moment it is waited for; running calls are opened again, with
 * what they are granted by then. */
static void
test_egress_is_restarted(void **state)
{
	struct regrant r = {.server = net_rig_server, .number = 8};
	struct ipc_id id = net_rig_run(RIG_LONG_MS);

	net_rig_to_running();
	net_rig_egress_down();
	buf_init(&r.grants, 100);
	buf_puts(&r.grants, "tcp b.example 0\n");
	calls_regrant(rig.calls, &r);
	held_regrant_free(&r);
	net_rig_egress_up();
	net_rig_answer_ok(net_rig_take_open("tcp b.example 0\n"));
	rig_turn(5);
	rig_send_result();
	net_rig_take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
	net_rig_end_runner();
	net_rig_report("[{\"host\":\"b.example\"}]");
	/* What it did before is not known, and that is said. */
	net_rig_take_record(id, OUTCOME_DONE, FAILURE_NONE,
	    "[{\"verdict\":\"unknown\",\"reason\":\"sandboxd-egress ended "
	    "or did not report: what was connected to before is not known\"},"
	    "{\"host\":\"b.example\"}]",
	    3);
	/* One that begins meanwhile waits for it. */
	net_rig_egress_down();
	id = net_rig_run(RIG_LONG_MS);
	net_rig_forked();
	rig_turn(5);
	net_rig_egress_up();
	net_rig_answer_ok(net_rig_take_open("tcp api.example 443\n"));
	(void)rig_executed(CONTEXT_TOOL);
	net_rig_egress_down();
	rig_send_result();
	net_rig_take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
	net_rig_end_runner();
	net_rig_take_record(id, OUTCOME_DONE, FAILURE_NONE,
	    "[{\"verdict\":\"unknown\",\"reason\":\"sandboxd-egress ended "
	    "or did not report: what was connected to before is not known\"}]",
	    0);
}

/* Away for long: only calls that would connect notice. */
static void
test_no_egress(void **state)
{
	struct ipc_id id;

	net_rig_egress_down();
	usleep((NET_AWAY_MS + 50) * 1000);
	id = net_rig_run(RIG_LONG_MS);
	net_rig_forked();
	(void)rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	net_rig_end_runner();
	net_rig_take_record(
	    id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, "", 0);
	id = rig_run(RIG_LONG_MS);
	rig_to_running();
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	net_rig_end_runner();
	net_rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, "", 0);
}

/* egress that is stuck delays the call's record, not its answer. */
static void
test_a_report_that_does_not_come(void **state)
{
	struct ipc_id id = net_rig_run(RIG_LONG_MS);
	struct ipc_frame f;

	net_rig_to_running();
	rig_send_result();
	net_rig_take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
	net_rig_end_runner();
	f = rig_expect(net_rig_egress, IPC_NET_CLOSE);
	ipc_frame_free(&f);
	net_rig_take_record(id, OUTCOME_DONE, FAILURE_NONE,
	    "[{\"verdict\":\"unknown\",\"reason\":\"sandboxd-egress ended "
	    "or did not report: what was connected to before is not known\"}]",
	    0);
	/* One that failed gets its error without it. */
	(void)net_rig_run(RIG_LONG_MS);
	net_rig_to_running();
	net_rig_say_error(FAILURE_EXCEPTION);
	f = rig_expect(net_rig_egress, IPC_NET_CLOSE);
	ipc_frame_free(&f);
	net_rig_take_result(OUTCOME_FAILED, FAILURE_EXCEPTION, NULL);
}

/* Grants that change while a call waits for its report change nothing of it,
 * and harm nobody. */
static void
test_regrant_behind_the_end(void **state)
{
	struct regrant r = {.server = net_rig_server, .number = 8};
	struct ipc_id id;
	struct ipc_frame f;

	buf_init(&r.grants, 100);
	for (int failed = 0; failed < 2; failed++, r.number++) {
		id = net_rig_run(RIG_LONG_MS);
		net_rig_to_running();
		if (failed) {
			net_rig_say_error(FAILURE_EXCEPTION);
			rig_turn(5);
			calls_regrant(rig.calls, &r);
			net_rig_report("[]");
			net_rig_take_result(
			    OUTCOME_FAILED, FAILURE_EXCEPTION, NULL);
			net_rig_end_runner();
		} else {
			rig_send_result();
			net_rig_take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
			net_rig_end_runner();
			rig_turn(5);
			calls_regrant(rig.calls, &r);
			net_rig_report("[]");
		}
		net_rig_take_record(id, failed ? OUTCOME_FAILED : OUTCOME_DONE,
		    failed ? FAILURE_EXCEPTION : FAILURE_NONE, "", 3);
	}
	/* egress is away meanwhile. */
	(void)net_rig_run(RIG_LONG_MS);
	net_rig_to_running();
	net_rig_egress_down();
	r.number++;
	calls_regrant(rig.calls, &r);
	/* It was sent NET_OPEN and has not answered. */
	net_rig_egress_up();
	f = rig_expect(net_rig_egress, IPC_NET_OPEN);
	ipc_frame_free(&f);
	r.number++;
	calls_regrant(rig.calls, &r);
	f = rig_expect(net_rig_egress, IPC_NET_GRANTS);
	ipc_frame_free(&f);
	held_regrant_free(&r);
}

static void
test_a_report_that_is_none(void **state)
{
	static const char *const bad[] = {"{}", "[", "[1] x", "null"};

	for (int i = 0; i < 4; i++) {
		struct ipc_id id = net_rig_run(RIG_LONG_MS);

		net_rig_to_running();
		rig_send_result();
		net_rig_take_result(OUTCOME_DONE, FAILURE_NONE, NULL);
		net_rig_end_runner();
		net_rig_report(bad[i]);
		net_rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, "", 3);
	}
}

/* Its runner died before it ran: another one, which is another net. */
static void
test_another_runner_is_another_net(void **state)
{
	struct ipc_frame f;
	struct ipc_net_close q;
	uint64_t first;

	(void)net_rig_run(RIG_LONG_MS);
	net_rig_forked();
	(void)net_rig_take_open("tcp api.example 443\n");
	first = rig.fork.generation;
	rig_send_exited(CLD_KILLED, SIGKILL);
	f = rig_expect(net_rig_egress, IPC_NET_CLOSE);
	assert_int_equal(ipc_decode(&f, &q, NULL), 0);
	assert_int_equal(q.net, first);
	ipc_frame_free(&f);
	net_rig_forked();
	assert_true(rig.fork.generation > first);
	net_rig_answer_ok(net_rig_take_open("tcp api.example 443\n"));
	(void)rig_executed(CONTEXT_TOOL);
}

/* The pool dies under a call: it ends as lost, and its net is closed. */
static void
test_a_pool_that_dies(void **state)
{
	struct ipc_id id = net_rig_run(RIG_LONG_MS);

	net_rig_to_running();
	close(rig.pool_fd);
	rig.pool_fd = -1;
	rig_turn(5);
	net_rig_report("[{\"host\":\"api.example\"}]");
	(void)rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	net_rig_take_record(id, OUTCOME_LOST, FAILURE_SANDBOX_UNAVAILABLE,
	    "[{\"host\":\"api.example\"}]", 3);
}

/* Events of no net, or of one that is over, have no effect; whatever egress
 * says else ends the connection. */
static void
test_what_egress_may_say(void **state)
{
	struct ipc_ok ok = {0};
	uint8_t byte;

	(void)net_rig_run(RIG_LONG_MS);
	net_rig_to_running();
	rig.fork.generation += 1000;
	net_rig_tell(NET_EVENT_BYTES, "", 0, "of nobody");
	rig.fork.generation -= 1000;
	net_rig_tell(99, "", 0, "of no kind");
	rig_expect_silence(rig.gw_fd);
	assert_int_equal(
	    ipc_write(net_rig_egress, IPC_OK, 12345, &ok, NULL), 0);
	rig_turn(5);
	assert_int_equal(recv(net_rig_egress, &byte, 1, MSG_DONTWAIT), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, net_rig_setup, net_rig_teardown)
	    T(test_egress_is_restarted), T(test_no_egress),
	    T(test_a_report_that_does_not_come), T(test_regrant_behind_the_end),
	    T(test_a_report_that_is_none),
	    T(test_another_runner_is_another_net), T(test_a_pool_that_dies),
	    T(test_what_egress_may_say)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
