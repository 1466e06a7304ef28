/* Runners got ready for calls that are held and not yet RUN, against a
 * scripted pool and runner (rig.h). */
#include <event2/event.h>

#include <signal.h>
#include <unistd.h>

#include "early.h"
#include "ids.h"
#include "ipc_io.h"
#include "rig.h"
#include "unit.h"

/* One waiting runner, one processor. */
static int
setup(void **state)
{
	struct calls_conf c = {
	    .queue = 4,
	    .queue_wait_ms = RIG_LONG_MS,
	    .waiting_min = 1,
	    .waiting_max = 1,
	    .waiting_memory = (uint64_t)1 << 30,
	    .forks = 1,
	};

	c.limit[LIMIT_TMP_BYTES] = 1 << 26;
	c.limit[LIMIT_MEMORY_BYTES] = 1 << 28;
	rig_start(&c, 4);
	rig_take_fork();
	rig_ready();
	rig_turn(10);
	return 0;
}

static int
teardown(void **state)
{
	rig_end();
	return 0;
}

/* The runner has EXECUTE and nothing else. */
static void
told(void)
{
	struct ipc_frame f = rig_expect(rig.fork.channel, IPC_EXECUTE);

	ipc_frame_free(&f);
	rig_expect_silence(rig.fork.channel);
}

/* And now what makes it run. */
static void
let_go(void)
{
	struct ipc_frame f = rig_expect(rig.fork.channel, IPC_ARGUMENTS);

	ipc_frame_free(&f);
	f = rig_expect(rig.fork.channel, IPC_SECRETS);
	ipc_frame_free(&f);
}

static void
to_the_end(struct ipc_id id)
{
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, true, true);
}

static void
test_code_before_run_and_the_rest_behind_it(void **state)
{
	struct held *h = rig_held(RIG_LONG_MS, 0);
	struct ipc_id id = h->id;
	uint64_t before = now_boot_ms();

	early_begin(rig.calls, h);
	told();
	early_sweep(rig.calls, before + EARLY_MS - 1); /* not too late */
	rig_run_held(h);
	let_go();
	to_the_end(id);
}

/* What was refused: its runner had the code, ran nothing and is killed. */
static void
test_dropped(void **state)
{
	struct held *h = rig_held(RIG_LONG_MS, 0);
	struct ipc_fork first;
	struct ipc_id id;

	early_begin(rig.calls, h);
	told();
	early_drop(rig.calls, h);
	held_free(h);
	rig_take_kill();
	first = rig.fork;
	rig_expect_silence(rig.adm_fd);
	/* The next call gets another one, in another slot. */
	id = rig_run(RIG_LONG_MS);
	rig.fork.channel = -1;
	rig_take_fork();
	assert_int_not_equal(rig.fork.slot, first.slot);
	rig_ready();
	(void)rig_executed(CONTEXT_TOOL);
	close(first.channel);
	to_the_end(id);
}

static void
test_too_late(void **state)
{
	struct held *h = rig_held(RIG_LONG_MS, 0);
	struct ipc_id id = h->id;

	early_begin(rig.calls, h);
	told();
	early_sweep(rig.calls, now_boot_ms() + EARLY_MS + 1);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	/* It may still RUN, by another runner. */
	rig_run_held(h);
	rig_to_running();
	to_the_end(id);
}

/* A runner that dies, or speaks, while it should wait. */
static void
test_gone_before_run(void **state)
{
	for (int speaks = 0; speaks < 2; speaks++) {
		struct held *h = rig_held(RIG_LONG_MS, 0);
		struct ipc_id id = h->id;

		early_begin(rig.calls, h);
		told();
		if (speaks)
			rig_send_result();
		else
			rig_send_exited(CLD_KILLED, SIGSEGV);
		rig_turn(10);
		if (speaks) {
			rig_take_kill();
			rig_send_exited(CLD_KILLED, SIGKILL);
		}
		rig_run_held(h);
		rig_to_running();
		to_the_end(id);
		/* The one that waits for the second time round. */
		if (!speaks) {
			rig_take_fork();
			rig_ready();
			rig_turn(10);
		}
	}
}

static void
test_pool_lost_before_run(void **state)
{
	struct held *h = rig_held(RIG_LONG_MS, 0);
	struct ipc_id id = h->id;

	early_begin(rig.calls, h);
	told();
	close(rig.pool_fd);
	rig_turn(20);
	rig_give_pool("Python 3");
	rig_run_held(h);
	rig_to_running();
	to_the_end(id);
}

/* As many as there are processors, of approved tools alone, and none that a
 * call waits for. */
static void
test_whom_none_is_got_ready_for(void **state)
{
	static const uint8_t kinds[] = {CONTEXT_INSPECT, CONTEXT_TEST};
	struct held *a, *b;
	int first;

	for (size_t i = 0; i < sizeof(kinds); i++) {
		a = rig_held(RIG_LONG_MS, 0);
		a->kind = kinds[i];
		early_begin(rig.calls, a);
		rig_expect_silence(rig.fork.channel);
		held_free(a);
	}
	a = rig_held(RIG_LONG_MS, 0);
	a->runner = RUNNER_COMMAND;
	early_begin(rig.calls, a);
	rig_expect_silence(rig.fork.channel);
	held_free(a);
	a = rig_held(RIG_LONG_MS, 0);
	b = rig_held(RIG_LONG_MS, 0);
	early_begin(rig.calls, a);
	told();
	first = rig.fork.channel;
	rig.fork.channel = -1;
	rig_take_fork();
	rig_ready();
	rig_turn(10);
	early_begin(rig.calls, b);
	rig_expect_silence(rig.fork.channel);
	early_drop(rig.calls, a);
	close(first);
	held_free(a);
	held_free(b);
}

#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    T(test_code_before_run_and_the_rest_behind_it),
	    T(test_dropped),
	    T(test_too_late),
	    T(test_gone_before_run),
	    T(test_pool_lost_before_run),
	    T(test_whom_none_is_got_ready_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
