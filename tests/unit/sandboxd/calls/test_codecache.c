/* Compiled code: made by two idle runners that agree, used by those that may
 * load it, and by nobody else. Against a scripted pool (rig.h). */
#include <event2/event.h>

#include <signal.h>
#include <unistd.h>

#include "codecache.h"
#include "ipc_io.h"
#include "rig.h"
#include "unit.h"

enum { SOURCE = 4 }; /* bytes of rig_run's code */

static struct ipc_fork waits; /* the one runner that waits */

static void
next_runner(void)
{
	waits = rig_fork();
	rig.fork = waits;
	rig_ready();
}

static int
setup(void **state)
{
	struct calls_conf c = {
	    .queue = 4,
	    .queue_wait_ms = RIG_LONG_MS,
	    .waiting_min = 1,
	    .waiting_max = 1,
	    .waiting_memory = (uint64_t)1 << 30,
	    .forks = 2,
	};

	c.limit[LIMIT_TMP_BYTES] = 1 << 26;
	c.limit[LIMIT_MEMORY_BYTES] = 1 << 28;
	rig_start(&c, 4);
	next_runner();
	rig_turn(10);
	return 0;
}

static int
teardown(void **state)
{
	rig_end();
	return 0;
}

static void
end_runner(void)
{
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	close(rig.fork.channel);
	rig.fork.channel = -1;
}

/* A call of this version; how many bytes of code its runner got. */
static size_t
call(uint8_t version)
{
	struct ipc_id id = rig_run_version(1000, version);
	size_t n = rig_executed(CONTEXT_TOOL);

	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	end_runner();
	rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, true, true);
	next_runner();
	return n;
}

/* The runner that waits is asked to compile, and says this. */
static void
compile(const char *says)
{
	struct ipc_content_part part = {.data = ipc_str(says)};
	struct ipc_run_result r = {.length = (uint32_t)strlen(says)};

	assert_int_equal(rig_executed(CONTEXT_COMPILE), SOURCE);
	if (r.length > 0)
		rig_say(IPC_CONTENT_PART, &part);
	rig_say(IPC_RUN_RESULT, &r);
	end_runner();
	next_runner();
}

/* The same, but the pool tells of its end before what it said is read. */
static void
compile_and_be_reaped(const char *says)
{
	struct ipc_content_part part = {.data = ipc_str(says)};
	struct ipc_run_result r = {.length = (uint32_t)strlen(says)};

	assert_int_equal(rig_executed(CONTEXT_COMPILE), SOURCE);
	rig_send_exited(CLD_EXITED, 0);
	rig_turn(10);
	rig_say(IPC_CONTENT_PART, &part);
	rig_say(IPC_RUN_RESULT, &r);
	close(rig.fork.channel);
	next_runner();
}

static void
test_reaped_before_the_result_is_read(void **state)
{
	assert_int_equal(call(7), SOURCE);
	compile_and_be_reaped("compiled");
	compile_and_be_reaped("compiled");
	assert_int_equal(call(7), SOURCE + strlen("compiled"));
}

/* It died without a word. */
static void
test_reaped_without_a_result(void **state)
{
	(void)call(7);
	for (int i = 0; i < CODECACHE_TRIES; i++) {
		(void)rig_executed(CONTEXT_COMPILE);
		rig_send_exited(CLD_KILLED, SIGKILL);
		rig_turn(10);
		close(rig.fork.channel);
		next_runner();
	}
	rig_expect_silence(rig.fork.channel);
	assert_int_equal(call(7), SOURCE);
}

static void
expect_no_compilation(void)
{
	rig_expect_silence(rig.fork.channel);
}

static void
test_two_that_agree(void **state)
{
	assert_int_equal(call(7), SOURCE);
	compile("compiled");
	/* One of them is not enough. */
	assert_int_equal(call(7), SOURCE);
	compile("compiled");
	assert_int_equal(call(7), SOURCE + strlen("compiled"));
	assert_int_equal(call(7), SOURCE + strlen("compiled"));
	/* Another version is another matter. */
	assert_int_equal(call(8), SOURCE);
}

static void
test_two_that_differ(void **state)
{
	(void)call(7);
	compile("compiled");
	compile("c0mpiled");
	expect_no_compilation();
	assert_int_equal(call(7), SOURCE);
	expect_no_compilation();
}

static void
test_what_does_not_compile(void **state)
{
	(void)call(7);
	compile("");
	expect_no_compilation();
	assert_int_equal(call(7), SOURCE);
	expect_no_compilation();
}

/* Inspections, tests and what has no version are never compiled ahead. */
static void
test_only_versions(void **state)
{
	assert_int_equal(call(0), SOURCE);
	expect_no_compilation();
}

static void
test_another_interpreter(void **state)
{
	struct ipc_fork old;

	(void)call(7);
	compile("compiled");
	compile("compiled");
	/* A zygote of the same Python: nothing changes. */
	rig_report("Python 3");
	old = waits;
	next_runner();
	rig.fork = old;
	end_runner();
	rig.fork = waits;
	assert_int_equal(call(7), SOURCE + strlen("compiled"));
	/* Another Python: all is dropped, and a runner that is still of the
	 * former one neither loads nor makes code of this one. */
	rig_report("Python 4");
	old = waits;
	next_runner();
	rig.fork = old;
	end_runner();
	rig.fork = waits;
	assert_int_equal(call(7), SOURCE);
	compile("new code");
	compile("new code");
	assert_int_equal(call(7), SOURCE + strlen("new code"));
}

/* What a former Python's runner compiled is not taken for this one's. */
static void
test_zygote_replaced_while_compiling(void **state)
{
	struct ipc_content_part part = {.data = ipc_str("stale")};
	struct ipc_run_result r = {.length = 5};
	struct ipc_fork compiling;

	(void)call(7);
	assert_int_equal(rig_executed(CONTEXT_COMPILE), SOURCE);
	compiling = rig.fork;
	rig_report("Python 4");
	next_runner();
	rig.fork = compiling;
	rig_say(IPC_CONTENT_PART, &part);
	rig_say(IPC_RUN_RESULT, &r);
	end_runner();
	rig.fork = waits;
	/* It was dropped with the interpreter: the next call asks anew. */
	assert_int_equal(call(7), SOURCE);
	compile("fresh");
	compile("fresh");
	assert_int_equal(call(7), SOURCE + strlen("fresh"));
}

/* Runners that die over it cost tries, not the daemon. */
static void
test_runners_that_fail(void **state)
{
	(void)call(7);
	for (int i = 0; i < CODECACHE_TRIES; i++) {
		(void)rig_executed(CONTEXT_COMPILE);
		rig_say(IPC_READY, &(struct ipc_ready){0}); /* not again */
		rig_take_kill();
		rig_send_exited(CLD_KILLED, SIGKILL);
		close(rig.fork.channel);
		next_runner();
	}
	expect_no_compilation();
	assert_int_equal(call(7), SOURCE);
}

static void
test_too_much(void **state)
{
	static char piece[48 * 1024];
	struct ipc_content_part part = {
	    .data = ipc_bytes(piece, sizeof(piece))};

	(void)call(7);
	(void)rig_executed(CONTEXT_COMPILE);
	for (size_t sent = 0; sent <= CODECACHE_COMPILED_MAX;
	    sent += sizeof(piece)) {
		if (ipc_write(rig.fork.channel, IPC_CONTENT_PART, 0, &part,
			NULL) != 0)
			break;
		rig_turn(1);
	}
	rig_take_kill();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	    T(test_two_that_agree), T(test_two_that_differ),
	    T(test_reaped_before_the_result_is_read),
	    T(test_reaped_without_a_result), T(test_what_does_not_compile),
	    T(test_only_versions), T(test_another_interpreter),
	    T(test_zygote_replaced_while_compiling), T(test_runners_that_fail),
	    T(test_too_much)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
