/*
 * Results that wait to be judged (verify.h), against a scripted runner and an
 * admind that never says anything: what they keep is bounded, whatever it is.
 * Their slots are free, so the number of slots bounds nothing here.
 */
#include <event2/event.h>

#include <signal.h>

#include "call_internal.h"
#include "ipc_io.h"
#include "rig.h"
#include "unit.h"
#include "verify.h"

static int
setup(void **state)
{
	static const struct calls_conf conf = {
	    .queue = 2, .queue_wait_ms = RIG_LONG_MS};

	rig_start(&conf, 1);
	return 0;
}

static int
teardown(void **state)
{
	rig_end();
	return 0;
}

enum {
	PRINTED = 32 * 1024, /* fits one frame */
	BODY = 256           /* more than any result here has */
};

/* A tool with an output schema, whose context has so many bytes. */
static struct held *
promising(size_t bytes)
{
	struct held *h = rig_held(5000, 0);
	uint8_t *fill = calloc(1, bytes);

	assert_non_null(fill);
	buf_init(&h->plain, bytes);
	buf_put(&h->plain, fill, bytes);
	free(fill);
	assert_false(h->plain.failed);
	h->output_schema = ipc_str("{}");
	return h;
}

/* It runs, prints so much and returns a small value. */
static void
returns(struct held *h, size_t printed)
{
	static const char body[] = "{\"content\":[],\"structuredContent\":{}}";
	_Static_assert(sizeof(body) - 1 <= BODY, "as counted");
	static char text[PRINTED];
	struct ipc_stdout out = {.data = ipc_bytes(text, printed)};
	struct ipc_content_part p = {.data = ipc_str(body)};
	struct ipc_run_result res = {.length = sizeof(body) - 1};

	memset(text, 'x', sizeof(text));
	rig_run_held(h);
	rig_to_running();
	if (printed > 0)
		rig_say(IPC_STDOUT, &out);
	rig_say(IPC_CONTENT_PART, &p);
	rig_say(IPC_RUN_RESULT, &res);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_turn(20);
}

static struct call *
nth(uint8_t id)
{
	struct ipc_id want = {{id}};

	return TABLE_OBJECT(struct call, node,
	    table_find(&rig.calls->by_id, &want, sizeof(struct ipc_id)));
}

/* Arguments are not what is waited with: a call may have 1 MiB of them. */
static void
arguments_are_let_go(void **state)
{
	struct held *h = promising(100);

	rig_run_held(h);
	assert_int_equal(nth(rig.ids)->arguments.len, 2);
	rig_to_running();
	assert_int_equal(nth(rig.ids)->state, CALL_RUNNING);
	assert_null(nth(rig.ids)->arguments.p);
}

static struct held *
of(const char *principal, struct held *h)
{
	h->principal = ipc_str(principal);
	return h;
}

/* One token's results have a quarter of what may wait, all of them a half, and
 * a local client's still find room. */
static void
shares(void **state)
{
	enum { PART = VERIFY_BYTES_MAX / 4 - BODY };

	returns(of("token:a", promising(PART)), 0);
	assert_int_equal(nth(1)->state, CALL_CHECKING);
	returns(of("token:a", promising(BODY)), 0);
	assert_null(nth(2)); /* lost at once */
	returns(of("token:b", promising(PART)), 0);
	assert_int_equal(nth(3)->state, CALL_CHECKING);
	returns(of("token:c", promising(2 * BODY)), 0);
	assert_null(nth(4));
	returns(promising(PART), 0);
	assert_int_equal(nth(5)->state, CALL_CHECKING);
}

static void
contexts_count(void **state)
{
	returns(promising(VERIFY_BYTES_MAX / 2 - BODY), 0);
	assert_int_equal(nth(1)->state, CALL_CHECKING);
	returns(promising(VERIFY_BYTES_MAX / 2 - BODY), 0);
	assert_int_equal(nth(2)->state, CALL_CHECKING);
	/* Full: lost at once, and nothing of it stays. */
	returns(promising(4 * BODY), 0);
	assert_null(nth(3));
	rig_take_refused(FAILURE_LOST);
	/* One ended: there is room. */
	assert_true(calls_cancel(rig.calls, &nth(1)->id, NULL, FAILURE_KILLED));
	returns(promising(100), 0);
	assert_int_equal(nth(4)->state, CALL_CHECKING);
}

static void
output_counts(void **state)
{
	returns(promising(VERIFY_BYTES_MAX - PRINTED - 100 - 2 * BODY), 0);
	assert_int_equal(nth(1)->state, CALL_CHECKING);
	returns(promising(100), PRINTED);
	assert_int_equal(nth(2)->state, CALL_CHECKING);
	returns(promising(4 * BODY), 0);
	assert_null(nth(3));
	rig_take_refused(FAILURE_LOST);
}

/* The bound is exact: a result with its context and output fits, or waits for
 * nothing. */
static void
the_last_one_counts_whole(void **state)
{
	enum { ROOM = 4096 };

	returns(promising(VERIFY_BYTES_MAX - ROOM - BODY), 0);
	assert_int_equal(nth(1)->state, CALL_CHECKING);
	returns(promising(ROOM + BODY), 0);
	assert_null(nth(2));
	rig_take_refused(FAILURE_LOST);
	returns(promising(100), ROOM + BODY);
	assert_null(nth(3));
	rig_take_refused(FAILURE_LOST);
	returns(promising(ROOM - BODY), 0);
	assert_int_equal(nth(4)->state, CALL_CHECKING);
}

/* Cancelled before its runner was reaped: the verdict that is still to come
 * must not end it once more, and with another end. */
static void
ended_once(void **state)
{
	static const char body[] = "{\"content\":[],\"structuredContent\":{}}";
	struct ipc_content_part p = {.data = ipc_str(body)};
	struct ipc_run_result res = {.length = sizeof(body) - 1};

	rig_run_held(promising(100));
	rig_to_running();
	rig_say(IPC_CONTENT_PART, &p);
	rig_say(IPC_RUN_RESULT, &res);
	rig_take_kill();
	assert_int_equal(nth(1)->state, CALL_CHECKING);
	assert_non_null(nth(1)->verify);
	assert_true(calls_cancel(rig.calls, &nth(1)->id, NULL, FAILURE_KILLED));
	assert_int_equal(nth(1)->state, CALL_ENDING);
	assert_null(nth(1)->verify);
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_turn(20);
	assert_null(nth(1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		arguments_are_let_go, setup, teardown),
	    cmocka_unit_test_setup_teardown(contexts_count, setup, teardown),
	    cmocka_unit_test_setup_teardown(shares, setup, teardown),
	    cmocka_unit_test_setup_teardown(output_counts, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		the_last_one_counts_whole, setup, teardown),
	    cmocka_unit_test_setup_teardown(ended_once, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
