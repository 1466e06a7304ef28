/*
 * A call's life against a scripted pool and runner: the test holds pool-init's
 * end of a socketpair, the runner's channel that FORK brings, the gateway's
 * and admind's ends, and turns the loop by hand.
 */
#include <sys/socket.h>

#include <event2/event.h>

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "call.h"
#include "ids.h"
#include "ipc_io.h"

static const struct ipc_id epoch = {"epoch epoch epoc"};

struct rig {
	struct event_base *base;
	struct records *records;
	struct calls *calls;
	struct pool *pool;
	struct ipc_peer *gw, *adm;  /* sandboxd's ends */
	int pool_fd, gw_fd, adm_fd; /* ours */
	struct ipc_fork fork; /* the last FORK; .channel is the runner's */
	uint64_t kills, last_killed;
	uint8_t ids;
	bool gw_gone;
};

static struct rig r;

static int
no_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	return -1;
}

static void
gw_down(struct ipc_peer *p, void *arg)
{
	calls_peer_gone(r.calls, p);
	r.gw_gone = true;
}

static struct ipc_peer *
adopt(int *ours, enum ipc_role role)
{
	static const struct ipc_handlers h = {
	    .message = no_message, .down = gw_down};
	struct ipc_peer *p;
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sv), 0);
	*ours = sv[1];
	p = ipc_peer_adopt(r.base, sv[0], "test", IPC_ROLE_SANDBOXD, role,
	    false, IPC_STATE_OPEN, &h, NULL, NULL);
	assert_non_null(p);
	return p;
}

static void
give_pool(void)
{
	struct ipc_pool_report m = {.layers = ipc_str("fake=enforced\n")};
	int sv[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sv), 0);
	r.pool_fd = sv[1];
	assert_int_equal(pool_adopt(r.pool, sv[0], 300), 0);
	assert_int_equal(ipc_write(r.pool_fd, IPC_POOL_REPORT, 0, &m, NULL), 0);
}

static int
setup(void **state)
{
	static const struct calls_conf conf = {
	    .queue = 2,
	    .queue_wait_ms = 150,
	};

	memset(&r, 0, sizeof(r));
	r.base = event_base_new();
	r.records = records_new(r.base, 16, &epoch);
	r.calls = calls_new(r.base, &conf, r.records);
	r.pool = pool_new(r.base, NULL, 1, &runners_pool_events,
	    calls_runners(r.calls), NULL);
	calls_pool(r.calls, r.pool);
	r.gw = adopt(&r.gw_fd, IPC_ROLE_GATEWAY);
	r.adm = adopt(&r.adm_fd, IPC_ROLE_ADMIND);
	r.fork.channel = -1;
	records_peer(r.records, r.adm);
	give_pool();
	return 0;
}

static int
teardown(void **state)
{
	if (r.fork.channel >= 0)
		close(r.fork.channel);
	if (r.pool_fd >= 0)
		close(r.pool_fd);
	if (r.gw_fd >= 0)
		close(r.gw_fd);
	close(r.adm_fd);
	calls_free(r.calls);
	records_free(r.records);
	ipc_peer_close(r.adm);
	if (!r.gw_gone)
		ipc_peer_close(r.gw);
	pool_free(r.pool);
	/* What was closed is freed from the loop; nothing looks at it then. */
	r.calls = calls_new(r.base, &(struct calls_conf){0}, NULL);
	event_base_loop(r.base, EVLOOP_NONBLOCK);
	calls_free(r.calls);
	event_base_free(r.base);
	return 0;
}

/* Turns the loop until fd has a frame. Fails the test after 3 s. */
static struct ipc_frame
expect(int fd, enum ipc_type want)
{
	struct ipc_frame f;
	struct err e;
	int rc;

	for (int i = 0; i < 3000; i++) {
		event_base_loop(r.base, EVLOOP_NONBLOCK);
		rc = ipc_read(fd, &f, &e);
		if (rc == 1) {
			if (f.type != want)
				fail_msg("%s came", ipc_name(f.type));
			return f;
		}
		if (rc == 0 || errno != EAGAIN)
			fail_msg("closed while waiting for %s", ipc_name(want));
		usleep(1000);
	}
	fail_msg("no %s", ipc_name(want));
	abort();
}

static void
turn(int ms)
{
	for (int i = 0; i < ms; i++) {
		event_base_loop(r.base, EVLOOP_NONBLOCK);
		usleep(1000);
	}
}

/* Nothing may have come on fd. */
static void
expect_silence(int fd)
{
	struct ipc_frame f;
	struct err e;

	turn(20);
	assert_int_equal(ipc_read(fd, &f, &e), -1);
	assert_int_equal(errno, EAGAIN);
}

static struct ipc_id
run(uint64_t timeout_ms)
{
	struct held *h = calloc(1, sizeof(*h));

	h->node.id.b[0] = ++r.ids;
	h->kind = CONTEXT_TOOL;
	h->listener = LISTENER_LOCAL;
	h->timeout_ms = timeout_ms;
	h->code = ipc_str("code");
	h->name = ipc_str("demo__t");
	h->limit[LIMIT_MEMORY_BYTES] = 1 << 28;
	h->limit[LIMIT_PROCESSES] = 64;
	h->limit[LIMIT_TMP_BYTES] = 1 << 26;
	h->limit[LIMIT_RESULT_BYTES] = RESULT_MAX;
	h->limit[LIMIT_STDOUT_BYTES] = STDOUT_SHOWN_MAX;
	h->limit[LIMIT_LOG_RATE] = 10;
	h->limit[LIMIT_PROGRESS_RATE] = 10;
	h->record = record_new(&h->node.id, ipc_str("intent"));
	assert_int_equal(calls_run(r.calls, r.gw, r.ids, h, ipc_str("{}")), 0);
	/* The call may be over, and h gone, by now. */
	return (struct ipc_id){{r.ids}};
}

static void
take_fork(void)
{
	struct ipc_frame f = expect(r.pool_fd, IPC_FORK);

	if (r.fork.channel >= 0)
		close(r.fork.channel);
	assert_int_equal(ipc_decode(&f, &r.fork, NULL), 0);
	ipc_frame_free(&f);
}

static void
say(enum ipc_type t, const void *m)
{
	assert_int_equal(ipc_write(r.fork.channel, t, 0, m, NULL), 0);
}

/* From FORK to a running tool. */
static void
to_running(void)
{
	struct ipc_ready ready;
	struct ipc_frame f;

	take_fork();
	memset(&ready, 0, sizeof(ready));
	say(IPC_READY, &ready);
	f = expect(r.fork.channel, IPC_EXECUTE);
	ipc_frame_free(&f);
	f = expect(r.fork.channel, IPC_ARGUMENTS);
	ipc_frame_free(&f);
	f = expect(r.fork.channel, IPC_SECRETS);
	ipc_frame_free(&f);
}

static void
send_result(void)
{
	static const char body[] = "{\"content\":[]}";
	struct ipc_content_part p = {.data = ipc_str(body)};
	struct ipc_run_result res = {.length = sizeof(body) - 1};

	say(IPC_CONTENT_PART, &p);
	say(IPC_RUN_RESULT, &res);
}

static void
send_exited(uint32_t code, uint32_t status)
{
	struct ipc_exited m = {.slot = r.fork.slot,
	    .generation = r.fork.generation,
	    .status = code << 16 | status,
	    .cpu_us = 1234};

	assert_int_equal(ipc_write(r.pool_fd, IPC_EXITED, 0, &m, NULL), 0);
}

static void
take_kill(void)
{
	struct ipc_frame f = expect(r.pool_fd, IPC_KILL);
	struct ipc_kill k;

	assert_int_equal(ipc_decode(&f, &k, NULL), 0);
	assert_int_equal(k.generation, r.fork.generation);
	ipc_frame_free(&f);
}

static void
take_result(enum outcome o, enum failure fl)
{
	struct ipc_frame f = expect(r.gw_fd, IPC_CALL_RESULT);
	struct ipc_call_result m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.outcome, o);
	assert_int_equal(m.failure, fl);
	ipc_frame_free(&f);
}

static void
take_refused(enum failure fl)
{
	struct ipc_frame f = expect(r.gw_fd, IPC_REFUSED);
	struct ipc_refused m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.failure, fl);
	ipc_frame_free(&f);
}

static void
take_record(
    struct ipc_id id, enum outcome o, enum failure fl, bool delivered, bool ok)
{
	struct ipc_frame f = expect(r.adm_fd, IPC_RECORD);
	struct ipc_record m;
	struct ipc_ok answer;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_memory_equal(&m.execution, &id, sizeof(id));
	assert_int_equal(m.outcome, o);
	assert_int_equal(m.failure, fl);
	assert_int_equal(m.delivered, delivered);
	assert_true(ipc_streq(m.intent, "intent"));
	memset(&answer, 0, sizeof(answer));
	if (ok)
		assert_int_equal(
		    ipc_write(r.adm_fd, IPC_OK, m.request, &answer, NULL), 0);
	ipc_frame_free(&f);
}

static void
test_ordinary(void **state)
{
	struct ipc_id id = run(1000);

	to_running();
	send_result();
	take_result(OUTCOME_DONE, FAILURE_NONE);
	take_kill();
	/* The record waits for the reaping, and so does the slot. */
	expect_silence(r.adm_fd);
	(void)run(1000);
	expect_silence(r.pool_fd);
	send_exited(CLD_KILLED, SIGKILL);
	take_record(id, OUTCOME_DONE, FAILURE_NONE, true, true);
	take_fork();
}

/* EXITED may overtake the runner's last frames: the result still counts. */
static void
test_reaped_before_result_is_read(void **state)
{
	struct ipc_id id = run(1000);

	to_running();
	send_exited(CLD_EXITED, 0);
	turn(10);
	send_result();
	take_result(OUTCOME_DONE, FAILURE_NONE);
	take_record(id, OUTCOME_DONE, FAILURE_NONE, true, true);
}

static void
test_crash_either_order(void **state)
{
	for (int first = 0; first < 2; first++) {
		struct ipc_id id = run(1000);

		to_running();
		if (first == 0)
			send_exited(CLD_KILLED, SIGSEGV);
		else
			close(r.fork.channel);
		turn(10);
		if (first == 0)
			close(r.fork.channel);
		else
			send_exited(CLD_KILLED, SIGSEGV);
		r.fork.channel = -1;
		take_result(OUTCOME_FAILED, FAILURE_EXCEPTION);
		take_record(id, OUTCOME_FAILED, FAILURE_EXCEPTION, true, true);
	}
}

static void
test_closed_channel_of_a_living_runner(void **state)
{
	struct ipc_id id = run(5000);

	to_running();
	close(r.fork.channel);
	r.fork.channel = -1;
	take_result(OUTCOME_KILLED, FAILURE_KILLED);
	take_kill();
	send_exited(CLD_KILLED, SIGKILL);
	take_record(id, OUTCOME_KILLED, FAILURE_KILLED, true, true);
}

static void
test_timeout_answers_before_the_reaping(void **state)
{
	struct ipc_id id = run(50);
	uint64_t start;

	to_running();
	start = now_boot_ms();
	take_result(OUTCOME_FAILED, FAILURE_TIMEOUT);
	assert_true(now_boot_ms() - start < 500);
	take_kill();
	expect_silence(r.adm_fd);
	/* What the dying runner still says reaches nobody. */
	(void)ipc_write(r.fork.channel, IPC_RUN_RESULT, 0,
	    &(struct ipc_run_result){0}, NULL);
	send_exited(CLD_KILLED, SIGKILL);
	take_record(id, OUTCOME_FAILED, FAILURE_TIMEOUT, true, true);
	expect_silence(r.gw_fd);
}

static void
test_pool_lost_while_starting(void **state)
{
	struct ipc_id id = run(1000);

	take_fork();
	close(r.pool_fd);
	turn(20);
	/* It goes to the next pool, unseen by the client. */
	give_pool();
	to_running();
	send_result();
	take_result(OUTCOME_DONE, FAILURE_NONE);
	take_kill();
	send_exited(CLD_KILLED, SIGKILL);
	take_record(id, OUTCOME_DONE, FAILURE_NONE, true, true);
}

static void
test_pool_lost_while_running(void **state)
{
	struct ipc_id id = run(1000);

	to_running();
	close(r.pool_fd);
	r.pool_fd = -1;
	take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	take_record(id, OUTCOME_LOST, FAILURE_SANDBOX_UNAVAILABLE, true, true);
	/* Without a pool a new call waits its time, then is refused. */
	id = run(1000);
	take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	take_record(
	    id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, true, true);
}

static void
test_pool_names_no_current_use(void **state)
{
	struct ipc_id id = run(1000);

	to_running();
	r.fork.generation++;
	send_exited(CLD_KILLED, SIGKILL);
	/* A pool that is wrong about its runners is given up. */
	take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	take_record(id, OUTCOME_LOST, FAILURE_SANDBOX_UNAVAILABLE, true, true);
}

static void
test_queue(void **state)
{
	struct ipc_id a = run(1000), b, c, d;

	to_running();
	b = run(1000);
	c = run(1000);
	d = run(1000); /* one more than may wait */
	take_refused(FAILURE_BUSY);
	take_record(d, OUTCOME_REFUSED, FAILURE_BUSY, true, true);
	/* The others wait no longer than they may. */
	take_refused(FAILURE_BUSY);
	take_refused(FAILURE_BUSY);
	take_record(b, OUTCOME_REFUSED, FAILURE_BUSY, true, true);
	take_record(c, OUTCOME_REFUSED, FAILURE_BUSY, true, true);
	send_result();
	take_result(OUTCOME_DONE, FAILURE_NONE);
	take_kill();
	send_exited(CLD_KILLED, SIGKILL);
	take_record(a, OUTCOME_DONE, FAILURE_NONE, true, true);
}

static void
test_cancel(void **state)
{
	struct ipc_id id = run(1000), unknown = {{99}};
	struct ipc_peer *other;
	int fd;

	to_running();
	other = adopt(&fd, IPC_ROLE_GATEWAY);
	assert_false(calls_cancel(r.calls, &id, other, FAILURE_KILLED));
	assert_false(calls_cancel(r.calls, &unknown, NULL, FAILURE_KILLED));
	assert_true(calls_cancel(r.calls, &id, r.gw, FAILURE_KILLED));
	assert_false(calls_cancel(r.calls, &id, r.gw, FAILURE_KILLED));
	take_result(OUTCOME_KILLED, FAILURE_KILLED);
	take_kill();
	send_exited(CLD_KILLED, SIGKILL);
	take_record(id, OUTCOME_KILLED, FAILURE_KILLED, true, true);
	ipc_peer_close(other);
	close(fd);
	turn(2);
	r.gw_gone = false;
}

static void
test_gateway_gone(void **state)
{
	struct ipc_id id = run(1000);

	to_running();
	close(r.gw_fd);
	r.gw_fd = -1;
	turn(5);
	assert_true(r.gw_gone);
	send_result();
	take_kill();
	send_exited(CLD_KILLED, SIGKILL);
	take_record(id, OUTCOME_DONE, FAILURE_NONE, false, true);
}

static void
test_fork_failed(void **state)
{
	struct ipc_id id = run(1000);
	struct ipc_fork_failed m;

	take_fork();
	m = (struct ipc_fork_failed){.slot = r.fork.slot,
	    .generation = r.fork.generation,
	    .error = EAGAIN,
	    .step = ipc_str("clone3")};
	assert_int_equal(ipc_write(r.pool_fd, IPC_FORK_FAILED, 0, &m, NULL), 0);
	take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	take_record(
	    id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, true, true);
}

static void
test_frames_before_execute(void **state)
{
	struct ipc_id id = run(1000);
	struct ipc_stdout m = {.data = ipc_str("early")};

	take_fork();
	say(IPC_STDOUT, &m); /* in WAITING: the table's violation */
	turn(5);
	send_exited(CLD_KILLED, SIGKILL);
	take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	take_record(
	    id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, true, true);
}

static void
test_confine_failed(void **state)
{
	struct ipc_id id = run(1000);
	struct ipc_confine_failed m = {
	    .step = ipc_str("seccomp"), .path = ipc_str(""), .error = EINVAL};

	take_fork();
	say(IPC_CONFINE_FAILED, &m);
	take_refused(FAILURE_SANDBOX_UNAVAILABLE);
	take_kill();
	send_exited(CLD_EXITED, 1);
	take_record(
	    id, OUTCOME_REFUSED, FAILURE_SANDBOX_UNAVAILABLE, true, true);
}

static void
test_record_is_resent(void **state)
{
	struct ipc_id id = run(50);
	int fd;

	to_running();
	take_result(OUTCOME_FAILED, FAILURE_TIMEOUT);
	take_kill();
	send_exited(CLD_KILLED, SIGKILL);
	take_record(id, OUTCOME_FAILED, FAILURE_TIMEOUT, true, false);
	assert_int_equal(records_count(r.records), 1);
	/* admind reconnects. */
	records_peer(r.records, NULL);
	ipc_peer_close(r.adm);
	close(r.adm_fd);
	turn(2);
	r.gw_gone = false;
	r.adm = adopt(&fd, IPC_ROLE_ADMIND);
	r.adm_fd = fd;
	records_peer(r.records, r.adm);
	assert_true(records_has(r.records, &id));
	take_record(id, OUTCOME_FAILED, FAILURE_TIMEOUT, true, true);
	turn(5);
	assert_int_equal(records_count(r.records), 0);
	expect_silence(r.adm_fd);
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
