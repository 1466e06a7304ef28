/* Runners that wait for calls, against a scripted pool (rig.h). */
#include <event2/event.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "ids.h"
#include "ipc_io.h"
#include "pool_internal.h"
#include "rig.h"
#include "unit.h"

static struct ipc_fork waiting[2];

static struct calls_conf
conf_of(unsigned min)
{
	struct calls_conf c = {
	    .queue = 4,
	    .queue_wait_ms = RIG_LONG_MS,
	    .waiting_min = min,
	    .waiting_max = min,
	    .waiting_memory = (uint64_t)1 << 30,
	    .forks = 4,
	};

	c.limit[LIMIT_TMP_BYTES] = 1 << 26; /* as rig_run's */
	c.limit[LIMIT_MEMORY_BYTES] = 1 << 28;
	return c;
}

static void
start(unsigned min, unsigned slots)
{
	struct calls_conf c = conf_of(min);

	rig_start(&c, slots);
}

/* Works with the runner of this FORK from here on. */
static void
with(struct ipc_fork f)
{
	rig.fork = f;
}

static void
done_with(void)
{
	if (rig.fork.channel >= 0)
		close(rig.fork.channel);
	rig.fork.channel = -1;
}

/* Two runners that wait in four slots. */
static int
setup(void **state)
{
	start(2, 4);
	for (int i = 0; i < 2; i++) {
		waiting[i] = rig_fork();
		with(waiting[i]);
		rig_ready();
		rig_turn(20); /* else their order is the kernel's */
	}
	rig.fork.channel = -1;
	return 0;
}

static int
setup_none(void **state)
{
	return 0;
}

static int
teardown(void **state)
{
	rig_end();
	return 0;
}

static void
test_a_call_takes_one_that_waits(void **state)
{
	struct ipc_id id;
	struct ipc_fork next;

	assert_int_equal(runners_counts(calls_runners(rig.calls)).waiting, 2);
	rig_expect_silence(rig.pool_fd);
	id = rig_run(RIG_LONG_MS);
	/* The oldest, in this very turn of the loop: nothing was forked. */
	with(waiting[0]);
	(void)rig_executed(CONTEXT_TOOL);
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	/* It is used up, and replaced. */
	rig_take_kill();
	next = rig_fork();
	assert_int_not_equal(next.uid, waiting[0].uid);
	assert_int_not_equal(next.generation, waiting[0].generation);
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_take_record(id, OUTCOME_DONE, FAILURE_NONE, true, true);
	close(next.channel);
	close(waiting[1].channel);
	assert_int_equal(runners_counts(calls_runners(rig.calls)).hits, 1);
}

static void
test_one_that_dies_is_replaced_later(void **state)
{
	uint64_t start_ms = now_boot_ms(), second;

	with(waiting[0]);
	done_with();
	rig_send_exited(CLD_KILLED, SIGKILL);
	with(rig_fork());
	assert_true(now_boot_ms() - start_ms >= RUNNERS_BACKOFF_MIN_MS);
	/* Each failure in a row doubles the pause. */
	start_ms = now_boot_ms();
	done_with();
	rig_send_exited(CLD_KILLED, SIGKILL);
	with(rig_fork());
	second = now_boot_ms() - start_ms;
	assert_true(second >= 2 * RUNNERS_BACKOFF_MIN_MS);
	done_with();
	close(waiting[1].channel);
}

/* It holds nothing of anybody, but it is not what it should be. */
static void
test_one_that_speaks_is_killed(void **state)
{
	struct ipc_stdout m = {.data = ipc_str("hello")};

	with(waiting[0]);
	rig_say(IPC_STDOUT, &m);
	rig_take_kill();
	assert_int_equal(runners_counts(calls_runners(rig.calls)).waiting, 1);
	done_with();
	close(waiting[1].channel);
}

/* The pool says it is gone before its channel does: no call gets it. */
static void
test_one_that_was_reaped_is_not_taken(void **state)
{
	with(waiting[1]); /* the one that would be taken */
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_turn(5);
	(void)rig_run(RIG_LONG_MS);
	with(waiting[0]);
	(void)rig_executed(CONTEXT_TOOL);
	done_with();
	close(waiting[1].channel);
}

/* The same, and it is dismissed: nothing more is to be waited for, least of
 * all with the pool's life. */
static void
test_one_that_was_reaped_is_dismissed(void **state)
{
	struct runners *rs = calls_runners(rig.calls);

	rig_report("Python 4");
	with(waiting[0]);
	rig_send_exited(CLD_KILLED, SIGKILL);
	with(rig_fork());
	rig_ready();
	rig_turn(10);
	assert_int_equal(runners_counts(rs).ending, 0);
	assert_int_equal(runners_counts(rs).waiting, 2);
	done_with();
	close(waiting[0].channel);
	close(waiting[1].channel);
}

static void
test_the_pool_dies(void **state)
{
	close(rig.pool_fd);
	rig_turn(20);
	assert_int_equal(runners_counts(calls_runners(rig.calls)).waiting, 0);
	close(waiting[0].channel);
	close(waiting[1].channel);
	rig_give_pool("Python 3");
	close(rig_fork().channel);
	close(rig_fork().channel);
}

/* Those of the former zygote go one by one, as their successors are ready. */
static void
test_another_zygote(void **state)
{
	struct ipc_fork old[2] = {waiting[0], waiting[1]}, next[2];

	rig_report("Python 4");
	for (int i = 0; i < 2; i++)
		next[i] = rig_fork();
	rig_expect_silence(rig.pool_fd);
	for (int i = 0; i < 2; i++) {
		with(next[i]);
		rig_ready();
		with(old[i]);
		rig_take_kill(); /* the older first */
		rig_send_exited(CLD_KILLED, SIGKILL);
		rig_expect_silence(rig.pool_fd);
		close(old[i].channel);
	}
	assert_int_equal(runners_counts(calls_runners(rig.calls)).waiting, 2);
	close(next[0].channel);
	close(next[1].channel);
	rig.fork.channel = -1;
}

/* What a call needs that none has is forked for it, beside those. */
static void
test_another_profile(void **state)
{
	struct pool_profile other = {
	    .tmp_bytes = 4096, .tmp_inodes = CALL_TMP_INODES};
	struct runners *rs = calls_runners(rig.calls);
	struct profile *p = runners_profile(rs, &other, now_boot_ms());
	struct ipc_peer *peer;
	struct ipc_fork f;

	assert_ptr_not_equal(p, runners_standard(rs));
	assert_null(runners_take(rs, p, NULL, NULL, &peer));
	assert_int_equal(runners_fork(rs, p), RUNNERS_FORKED);
	f = rig_fork();
	assert_int_equal(f.tmp_bytes, 4096);
	with(f);
	rig_ready();
	rig_turn(20);
	assert_int_equal(runners_counts(rs).waiting, 3);
	/* Unused for a while, it goes; the standard ones stay. */
	p->used_ms -= RUNNERS_OTHERS_MS;
	runners_sweep(rs, now_boot_ms());
	rig_take_kill();
	assert_int_equal(runners_counts(rs).waiting, 2);
	runners_profile_done(rs, p);
	done_with();
	close(waiting[0].channel);
	close(waiting[1].channel);
}

/* Clients choose profiles, but not how many runners wait. */
static void
test_profiles_do_not_make_runners(void **state)
{
	struct runners *rs;
	struct profile *p[20];
	int forked[20];
	unsigned made = 0;
	struct ipc_frame f;
	struct ipc_fork m;

	start(2, 16);
	rs = calls_runners(rig.calls);
	for (int i = 0; i < 2; i++) {
		waiting[i] = rig_fork();
		with(waiting[i]);
		rig_ready();
	}
	for (unsigned i = 0; i < 20; i++) {
		struct pool_profile is = {.tmp_bytes = 4096 + i};

		p[i] = runners_profile(rs, &is, now_boot_ms());
		assert_non_null(p[i]);
		runners_profile_done(rs, p[i]);
	}
	runners_nudge(rs);
	for (int i = 0; i < 50; i++) {
		rig_turn(2);
		while (ipc_read(rig.pool_fd, &f, NULL) == 1) {
			assert_int_equal(f.type, IPC_FORK);
			assert_int_equal(ipc_decode(&f, &m, NULL), 0);
			ipc_frame_free(&f);
			with(m);
			rig_ready();
			forked[made] = m.channel;
			made++;
		}
	}
	assert_in_range(made, 1, RUNNERS_OTHERS);
	while (made-- > 0)
		close(forked[made]);
	rig.fork.channel = -1;
	close(waiting[0].channel);
	close(waiting[1].channel);
}

/* All slots are held by runners that wait: one of them makes room. */
static void
test_room_for_another_profile(void **state)
{
	struct pool_profile is = {.tmp_bytes = 4096};
	struct runners *rs;
	struct profile *p;

	start(2, 2);
	for (int i = 0; i < 2; i++) {
		waiting[i] = rig_fork();
		with(waiting[i]);
		rig_ready();
		rig_turn(5); /* so that one is the older */
	}
	rs = calls_runners(rig.calls);
	p = runners_profile(rs, &is, now_boot_ms());
	runners_hungry(rs, 1);
	assert_int_equal(runners_fork(rs, p), RUNNERS_LATER);
	assert_int_equal(runners_fork(rs, p), RUNNERS_LATER);
	with(waiting[0]);
	rig_take_kill();
	rig_expect_silence(rig.pool_fd); /* one at a time */
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_turn(1);
	assert_int_equal(runners_fork(rs, p), RUNNERS_FORKED);
	runners_profile_done(rs, p);
	close(waiting[0].channel);
	close(waiting[1].channel);
	rig.fork.channel = -1;
}

/* The budget of memory wins over both bounds. */
static void
test_memory_bounds_how_many_wait(void **state)
{
	struct calls_conf c = conf_of(8);

	c.waiting_memory = 3 * (uint64_t)RUNNERS_WAITING_BYTES;
	rig_start(&c, 8);
	assert_int_equal(runners_counts(calls_runners(rig.calls)).target, 3);
	assert_int_equal(runners_counts(calls_runners(rig.calls)).max, 3);
}

static void
test_forks_under_way_are_bounded(void **state)
{
	struct ipc_fork f[4];

	start(8, 8);
	/* Half of conf.forks for those that nobody waits for. */
	f[0] = rig_fork();
	f[1] = rig_fork();
	rig_expect_silence(rig.pool_fd);
	/* Calls may use all of it. */
	for (int i = 0; i < 4; i++)
		(void)rig_run(RIG_LONG_MS);
	f[2] = rig_fork();
	f[3] = rig_fork();
	rig_expect_silence(rig.pool_fd);
	for (int i = 0; i < 4; i++)
		close(f[i].channel);
}

/* Busy tells when to try again, by what waits. */
static void
test_retry_follows_the_load(void **state)
{
	struct calls_conf c = conf_of(0);
	uint64_t hint;

	c.queue = 0;
	rig_start(&c, 1);
	rig_turn(5); /* the pool reports */
	(void)rig_run(60000);
	rig_to_running();
	(void)rig_run(RIG_LONG_MS);
	hint = rig_take_refused(FAILURE_BUSY);
	assert_int_equal(hint, CALL_RETRY_MIN_MS);
	rig_turn(1200);
	rig_send_result();
	rig_take_result(OUTCOME_DONE, FAILURE_NONE);
	rig_take_kill();
	/* Calls take seconds here, on the one slot there is. */
	(void)rig_run(RIG_LONG_MS);
	assert_true(rig_take_refused(FAILURE_BUSY) > CALL_RETRY_MIN_MS);
}

/* pool-init is gone and the loop has not seen it yet: what can't be asked for
 * is not asked for for ever, in the one turn that would show the end. */
static void
test_a_dead_pool_is_not_asked_for_ever(void **state)
{
	start(2, 4);
	close(rig.pool_fd);
	rig.pool_fd = -1;
	/* an endless turn ends the test, not the machine */
	(void)alarm((unsigned)unit_patience(5000) / 1000);
	rig_turn(50);
	(void)alarm(0);
	assert_int_equal(runners_counts(calls_runners(rig.calls)).forking, 0);
	assert_int_equal(runners_counts(calls_runners(rig.calls)).waiting, 0);
}

/* A call is there, and one runner more is forked, which stays. */
static int
one_more(void)
{
	(void)rig_run(RIG_LONG_MS);
	return rig_fork().channel;
}

/* A fork within the hour changes nothing; the first one after it has another
 * zygote started, once, unless none is ever to be. */
static void
test_a_zygote_of_an_hour_ago_is_replaced(void **state)
{
	struct ipc_frame f;
	int channels[3];

	for (int never = 1; never >= 0; never--) {
		start(0, 4);
		pool_recycle_after(rig.pool, never ? 0 : 1000000);
		channels[0] = one_more();
		rig_expect_silence(rig.pool_fd);
		rig.pool->zygote_ms -= POOL_ZYGOTE_MS;
		channels[1] = one_more();
		if (!never) {
			f = rig_expect(rig.pool_fd, IPC_RECYCLE);
			ipc_frame_free(&f);
		}
		channels[2] = one_more();
		rig_expect_silence(rig.pool_fd);
		for (int i = 0; i < 3; i++)
			close(channels[i]);
		if (never)
			rig_end();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define N(f) cmocka_unit_test_setup_teardown(f, setup_none, teardown)
	    T(test_a_call_takes_one_that_waits),
	    T(test_one_that_dies_is_replaced_later),
	    T(test_one_that_speaks_is_killed),
	    T(test_one_that_was_reaped_is_not_taken),
	    T(test_one_that_was_reaped_is_dismissed), T(test_the_pool_dies),
	    T(test_another_zygote), T(test_another_profile),
	    N(test_profiles_do_not_make_runners),
	    N(test_room_for_another_profile),
	    N(test_memory_bounds_how_many_wait),
	    N(test_forks_under_way_are_bounded),
	    N(test_a_dead_pool_is_not_asked_for_ever),
	    N(test_a_zygote_of_an_hour_ago_is_replaced),
	    N(test_retry_follows_the_load)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
