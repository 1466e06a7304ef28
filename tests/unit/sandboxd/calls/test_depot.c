/*
 * What an installer sends goes to the store, one piece after the other, and the
 * store's word about it to admind before the result. Whoever is no installer,
 * or sends out of turn, is ended; what is half there is dropped.
 */
#include <sys/socket.h>

#include <event2/event.h>

#include <signal.h>
#include <unistd.h>

#include "depot.h"
#include "ids.h"
#include "ipc_io.h"
#include "rig.h"
#include "unit.h"

enum { REQUEST = 7 };

static struct ipc_peer *admind, *store; /* sandboxd's ends */
static int admind_fd, store_fd;
static bool store_there;

static int
setup(void **state)
{
	static const struct calls_conf conf = {
	    .queue = 2, .queue_wait_ms = RIG_LONG_MS};

	rig_start(&conf, 1);
	admind = rig_adopt(&admind_fd, IPC_ROLE_ADMIND);
	store = rig_adopt(&store_fd, IPC_ROLE_STORE);
	depot_adopt(calls_depot(rig.calls), store);
	store_there = true;
	return 0;
}

static void
lose_store(void)
{
	depot_adopt(calls_depot(rig.calls), NULL);
	ipc_peer_close(store);
	close(store_fd);
	store_there = false;
}

static int
teardown(void **state)
{
	if (store_there)
		lose_store();
	ipc_peer_close(admind);
	close(admind_fd);
	rig_end();
	return 0;
}

static struct ipc_id
run(uint8_t kind)
{
	struct held *h = rig_held(5000, 0);

	h->kind = kind;
	h->driver = kind == CONTEXT_MODULE ? DRIVER_MODULE : DRIVER_CODE;
	h->listener = LISTENER_ADMIND;
	assert_int_equal(
	    calls_run(rig.calls, admind, REQUEST, h, ipc_str("{}")), 0);
	rig_take_fork();
	rig_ready();
	(void)rig_executed(kind);
	return (struct ipc_id){{rig.ids}};
}

static void
part(const char *text, bool last)
{
	struct ipc_module_part m = {.last = last, .data = ipc_str(text)};

	rig_say(IPC_MODULE_PART, &m);
}

/* The next STORE_PUT; its request. */
static uint64_t
put(const struct ipc_id *id, const char *text, bool last)
{
	struct ipc_frame f = rig_expect(store_fd, IPC_STORE_PUT);
	struct ipc_store_put m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_memory_equal(&m.execution, id, sizeof(*id));
	assert_true(ipc_streq(m.data, text));
	assert_int_equal(m.last, last);
	ipc_frame_free(&f);
	return m.request;
}

static void
store_says(enum ipc_type t, uint64_t request, const void *m)
{
	assert_int_equal(ipc_write(store_fd, t, request, m, NULL), 0);
}

static void
expect_next(uint8_t state)
{
	struct ipc_frame f = rig_expect(rig.fork.channel, IPC_MODULE_NEXT);
	struct ipc_module_next m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.state, state);
	assert_int_equal(m.text.n > 0, state == 2);
	ipc_frame_free(&f);
}

static void
expect_dropped(const struct ipc_id *id)
{
	struct ipc_frame f = rig_expect(store_fd, IPC_STORE_DROP);
	struct ipc_store_drop m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_memory_equal(&m.execution, id, sizeof(*id));
	ipc_frame_free(&f);
}

static void
expect_result(enum outcome o, enum failure why)
{
	struct ipc_frame f = rig_expect(admind_fd, IPC_CALL_RESULT);
	struct ipc_call_result m;

	assert_int_equal(ipc_decode(&f, &m, NULL), 0);
	assert_int_equal(m.outcome, o);
	assert_int_equal(m.failure, why);
	ipc_frame_free(&f);
}

static void
test_pieces(void **state)
{
	static const struct ipc_ok ok;
	struct ipc_stored stored = {.digest = {{9}}, .files = 3, .size = 99};
	struct ipc_id id = run(CONTEXT_MODULE);
	struct ipc_module_stored told;
	struct ipc_frame f;
	uint64_t request;

	part("one", false);
	request = put(&id, "one", false);
	rig_expect_silence(rig.fork.channel); /* it waits */
	store_says(IPC_OK, request, &ok);
	expect_next(0);
	part("two", true);
	store_says(IPC_STORED, put(&id, "two", true), &stored);
	expect_next(1);
	rig_send_result();
	/* the store's word, not the runner's, and before the result */
	f = rig_expect(admind_fd, IPC_MODULE_STORED);
	assert_int_equal(ipc_decode(&f, &told, NULL), 0);
	assert_int_equal(told.request, REQUEST);
	assert_memory_equal(&told.execution, &id, sizeof(id));
	assert_memory_equal(&told.digest, &stored.digest, 32);
	assert_int_equal(told.files, 3);
	assert_int_equal(told.size, 99);
	ipc_frame_free(&f);
	expect_result(OUTCOME_DONE, FAILURE_NONE);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_expect_silence(store_fd); /* nothing is left to drop */
}

static void
test_out_of_turn(void **state)
{
	struct ipc_id id = run(CONTEXT_MODULE);

	part("one", false);
	(void)put(&id, "one", false);
	part("two", false);
	expect_result(OUTCOME_KILLED, FAILURE_KILLED);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	expect_dropped(&id);
}

static void
test_behind_the_last(void **state)
{
	struct ipc_stored stored = {.files = 1};
	struct ipc_id id = run(CONTEXT_MODULE);

	part("one", true);
	store_says(IPC_STORED, put(&id, "one", true), &stored);
	expect_next(1);
	part("more", false);
	{
		struct ipc_frame f = rig_expect(admind_fd, IPC_MODULE_STORED);

		ipc_frame_free(&f);
	}
	expect_result(OUTCOME_KILLED, FAILURE_KILLED);
	rig_expect_silence(store_fd);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
}

static void
test_refused_and_gone(void **state)
{
	struct ipc_refused no = {.failure = FAILURE_LIMIT,
	    .message = ipc_str("it is full"),
	    .data = ipc_str("")};
	struct ipc_id id = run(CONTEXT_MODULE);

	part("one", false);
	store_says(IPC_REFUSED, put(&id, "one", false), &no);
	expect_next(2);
	rig_send_result();
	expect_result(
	    OUTCOME_DONE, FAILURE_NONE); /* admind heard of no entry */
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	rig_turn(20);
	lose_store();
	(void)run(CONTEXT_MODULE);
	part("one", false);
	expect_next(2);
}

/* A tool's, a draft's, an inspection's runner has no way to the store. */
static void
test_no_installer(void **state)
{
	static const uint8_t kinds[] = {
	    CONTEXT_TOOL, CONTEXT_TEST, CONTEXT_INSPECT};

	for (size_t i = 0; i < sizeof(kinds); i++) {
		(void)run(kinds[i]);
		part("one", true);
		expect_result(OUTCOME_KILLED, FAILURE_KILLED);
		rig_expect_silence(store_fd);
		rig_take_kill();
		rig_send_exited(CLD_KILLED, SIGKILL);
		rig_turn(20);
	}
}

/* The wall clock ends it while the store still writes: its answer comes to
 * nobody. */
static void
test_late_answer(void **state)
{
	static const struct ipc_ok ok;
	struct held *h = rig_held(150, 0);
	struct ipc_id id;
	uint64_t request;

	h->kind = CONTEXT_MODULE;
	h->driver = DRIVER_MODULE;
	h->listener = LISTENER_ADMIND;
	assert_int_equal(
	    calls_run(rig.calls, admind, REQUEST, h, ipc_str("{}")), 0);
	rig_take_fork();
	rig_ready();
	(void)rig_executed(CONTEXT_MODULE);
	id = (struct ipc_id){{rig.ids}};
	part("one", false);
	request = put(&id, "one", false);
	expect_result(OUTCOME_FAILED, FAILURE_TIMEOUT);
	rig_take_kill();
	rig_send_exited(CLD_KILLED, SIGKILL);
	expect_dropped(&id);
	store_says(IPC_OK, request, &ok);
	rig_turn(20);
}

static void
test_asking(void **state)
{
	uint8_t digests[64] = {1}, there[2] = {1, 0};
	struct ipc_store_ask ask = {.digests = ipc_bytes(digests, 64)};
	struct ipc_store_says says = {.there = ipc_bytes(there, 2)};
	struct depot *d = calls_depot(rig.calls);
	struct ipc_frame f;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    ipc_write(sv[1], IPC_STORE_ASK, 5, &ask, NULL), 0);
		assert_int_equal(ipc_read(sv[0], &f, NULL), 1);
		assert_int_equal(depot_ask(d, admind, &f), 0);
		ipc_frame_free(&f);
	}
	close(sv[0]);
	close(sv[1]);
	/* one at a time */
	f = rig_expect(admind_fd, IPC_REFUSED);
	ipc_frame_free(&f);
	f = rig_expect(store_fd, IPC_STORE_ASK);
	store_says(IPC_STORE_SAYS, f.request, &says);
	ipc_frame_free(&f);
	f = rig_expect(admind_fd, IPC_STORE_SAYS);
	assert_int_equal(f.request, 5);
	ipc_frame_free(&f);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {T(test_pieces), T(test_out_of_turn),
	    T(test_behind_the_last), T(test_refused_and_gone),
	    T(test_no_installer), T(test_late_answer), T(test_asking)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
