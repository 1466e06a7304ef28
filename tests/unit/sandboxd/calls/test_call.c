/* A call's life against a scripted pool and runner (rig.h). */
#include <event2/event.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "call_internal.h"
#include "ids.h"
#include "ipc_io.h"
#include "rig.h"
#include "unit.h"

static int
setup(void **state)
{
	static const struct calls_conf conf = {
	    .queue = 2,
	    .queue_wait_ms = RIG_LONG_MS,
	};

	rig_start(&conf, 1);
	return 0;
}

static int
teardown(void **state)
{
	rig_end();
	return 0;
}

static void
test_ordinary(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);

	rig_to_running();
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	rig_take_kill();
	/* The record waits for the reaping, and so does the slot. */
	rig_expect_silence(rig.adm_fd);
	(void)rig_run(RIG_LONG_MS);
	rig_expect_silence(rig.pool_fd);
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, true, true);
	rig_take_fork();
}

/* EXITED may overtake the runner's last frames: the result still counts. */
static void
test_reaped_before_result_is_read(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);

	rig_to_running();
	rig_send_exited(CLD_EXITED, 0);
	rig_turn(10);
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, true, true);
}

static bool
is_reaped(const void *call)
{
	return ((const struct call *)call)->reaped;
}

static bool
is_hungup(const void *call)
{
	return ((const struct call *)call)->hungup;
}

/* The second half follows as soon as the first was seen. The loop reads before
 * it looks at timers, so no pause of the machine ends CALL_HANGUP_MS first. */
static void
test_crash_either_order(void **state)
{
	for (int first = 0; first < 2; first++) {
		struct ipc_id id = rig_run(RIG_LONG_MS);

		rig_to_running();
		if (first == 0) {
			rig_send_exited(CLD_KILLED, SIGSEGV);
			rig_until(is_reaped, rig_call(id));
			close(rig.fork.channel);
		} else {
			close(rig.fork.channel);
			rig_until(is_hungup, rig_call(id));
			rig_send_exited(CLD_KILLED, SIGSEGV);
		}
		rig.fork.channel = -1;
		rig_take_result(OUTCOME_FAILED, FAILURE_EXCEPTION);
		rig_take_record(
		    id, OUTCOME_FAILED, FAILURE_EXCEPTION, true, true);
	}
}

static void
test_closed_channel_of_a_living_runner(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);

	rig_to_running();
	close(rig.fork.channel);
	rig.fork.channel = -1;
	rig_take_result(OUTCOME_KILLED, FAILURE_KILLED);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_KILLED, FAILURE_KILLED, true, true);
}

static void
test_timeout_answers_before_the_reaping(void **state)
{
	struct ipc_id id = rig_run(50);

	rig_to_running();
	/* Nobody has said yet that the runner ended. */
	rig_take_result(OUTCOME_FAILED, FAILURE_TIMEOUT);
	rig_take_kill();
	rig_expect_silence(rig.adm_fd);
	/* What the dying runner still says reaches nobody. */
	(void)ipc_write(rig.fork.channel, IPC_RUN_RESULT, 0,
	    &(struct ipc_run_result){0}, NULL);
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_FAILED, FAILURE_TIMEOUT, true, true);
	rig_expect_silence(rig.gw_fd);
}

static void
test_pool_lost_while_starting(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);

	rig_take_fork();
	close(rig.pool_fd);
	rig_turn(20);
	/* It goes to the next pool, unseen by the client. */
	rig_give_pool("Python 3");
	rig_to_running();
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, true, true);
}

static void
test_pool_lost_while_running(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);

	rig_to_running();
	close(rig.pool_fd);
	rig.pool_fd = -1;
	rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	rig_take_record(
	    id, OUTCOME_LOST, FAILURE_SANDBOX_UNAVAILABLE, true, true);
	/* Without a pool a new call waits its time, then is refused. */
	rig.calls->conf.queue_wait_ms = 150;
	id = rig_run(RIG_LONG_MS);
	rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	rig_take_record(
	    id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, true, true);
}

static void
test_pool_names_no_current_use(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);

	rig_to_running();
	rig.fork.generation++;
	rig_send_exited(CLD_KILLED, SIGKILL);
	/* A pool that is wrong about its runners is given up. */
	rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	rig_take_record(
	    id, OUTCOME_LOST, FAILURE_SANDBOX_UNAVAILABLE, true, true);
}

static void
test_queue(void **state)
{
	struct ipc_id a = rig_run(RIG_LONG_MS), b, c, d;

	rig_to_running();
	rig.calls->conf.queue_wait_ms = 150;
	b = rig_run(RIG_LONG_MS);
	c = rig_run(RIG_LONG_MS);
	d = rig_run(RIG_LONG_MS); /* one more than may wait */
	rig_take_refused(FAILURE_BUSY);
	rig_take_record(d, OUTCOME_REFUSED, FAILURE_BUSY, true, true);
	/* The others wait no longer than they may. */
	rig_take_refused(FAILURE_BUSY);
	rig_take_refused(FAILURE_BUSY);
	rig_take_record(b, OUTCOME_REFUSED, FAILURE_BUSY, true, true);
	rig_take_record(c, OUTCOME_REFUSED, FAILURE_BUSY, true, true);
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(a, OUTCOME_DONE, FAILURE_NONE, true, true);
}

static void
test_cancel(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS), unknown = {{99}};
	struct ipc_peer *other;
	int fd;

	rig_to_running();
	other = rig_adopt(&fd, IPC_ROLE_GATEWAY);
	assert_false(calls_cancel(rig.calls, &id, other, FAILURE_KILLED));
	assert_false(calls_cancel(rig.calls, &unknown, NULL, FAILURE_KILLED));
	assert_true(calls_cancel(rig.calls, &id, rig.gw, FAILURE_KILLED));
	assert_false(calls_cancel(rig.calls, &id, rig.gw, FAILURE_KILLED));
	rig_take_result(OUTCOME_KILLED, FAILURE_KILLED);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_KILLED, FAILURE_KILLED, true, true);
	ipc_peer_close(other);
	close(fd);
	rig_turn(2);
	rig.gw_gone = false;
}

static void
test_gateway_gone(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);

	rig_to_running();
	close(rig.gw_fd);
	rig.gw_fd = -1;
	rig_turn(5);
	assert_true(rig.gw_gone);
	rig_send_result();
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, false, true);
}

static void
test_fork_failed(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);
	struct ipc_fork_failed m;

	rig_take_fork();
	m = (struct ipc_fork_failed){.slot = rig.fork.slot,
	    .generation = rig.fork.generation,
	    .error = EAGAIN,
	    .step = ipc_str("clone3")};
	assert_int_equal(
	    ipc_write(rig.pool_fd, IPC_FORK_FAILED, 0, &m, NULL), 0);
	rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	rig_take_record(
	    id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, true, true);
}

static void
test_frames_before_execute(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);
	struct ipc_stdout m = {.data = ipc_str("early")};

	rig_take_fork();
	rig_say(IPC_STDOUT, &m); /* in WAITING: the table's violation */
	rig_turn(5);
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	rig_take_record(
	    id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, true, true);
}

static void
test_confine_failed(void **state)
{
	struct ipc_id id = rig_run(RIG_LONG_MS);
	struct ipc_confine_failed m = {
	    .step = ipc_str("seccomp"), .path = ipc_str(""), .error = EINVAL};

	rig_take_fork();
	rig_say(IPC_CONFINE_FAILED, &m);
	rig_take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	rig_take_kill();
	rig_send_exited(CLD_EXITED, 1);
	rig_take_record(
	    id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, true, true);
}

static void
test_record_is_resent(void **state)
{
	struct ipc_id id = rig_run(50);
	int fd;

	rig_to_running();
	rig_take_result(OUTCOME_FAILED, FAILURE_TIMEOUT);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_FAILED, FAILURE_TIMEOUT, true, false);
	assert_int_equal(records_count(rig.records), 1);
	/* admind reconnects. */
	records_peer(rig.records, NULL);
	ipc_peer_close(rig.adm);
	close(rig.adm_fd);
	rig_turn(2);
	rig.gw_gone = false;
	rig.adm = rig_adopt(&fd, IPC_ROLE_ADMIND);
	rig.adm_fd = fd;
	records_peer(rig.records, rig.adm);
	assert_true(records_has(rig.records, &id));
	rig_take_record(id, OUTCOME_FAILED, FAILURE_TIMEOUT, true, true);
	rig_turn(5);
	assert_int_equal(records_count(rig.records), 0);
	rig_expect_silence(rig.adm_fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	    T(test_ordinary), T(test_reaped_before_result_is_read),
	    T(test_crash_either_order),
	    T(test_closed_channel_of_a_living_runner),
	    T(test_timeout_answers_before_the_reaping),
	    T(test_pool_lost_while_starting), T(test_pool_lost_while_running),
	    T(test_pool_names_no_current_use), T(test_queue), T(test_cancel),
	    T(test_gateway_gone), T(test_fork_failed),
	    T(test_frames_before_execute), T(test_confine_failed),
	    T(test_record_is_resent)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
