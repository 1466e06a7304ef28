/*
 * Records of a sandbox (gather.c, records.c, results.c), with a fake database:
 * several become one statement, each is acknowledged after its commit, one
 * that the statement does not close goes alone, and records of another node's
 * epoch are refused.
 */
#include <event2/event.h>

#include "activity.h"
#include "context.h"
#include "ending.h"
#include "ids.h"
#include "limits.h"
#include "records.h"
#include "fake_admind.h"
#include "tlv.h"
#include "unit.h"

enum { GATHER_MAX = 64 };

static struct fake f;
static struct admind *a;

static void
ignore(struct admind *unused)
{
}

static int
setup(void **unused)
{
	struct err err;

	fake_admind(&f, NULL);
	a = f.a;
	assert_int_equal(ending_ledger(a, ignore, &err), 0);
	assert_int_equal(activity_start(a, &err), 0);
	assert_int_equal(limits_start(a, &err), 0);
	assert_int_equal(gather_start(a, &err), 0);
	return 0;
}

static int
teardown(void **unused)
{
	fake_admind_free(&f, false);
	return 0;
}

static struct ipc_id
id_of(unsigned n)
{
	struct ipc_id id = {{0x10, (uint8_t)(n >> 8), (uint8_t)n}};

	return id;
}

static struct ipc_record
record(unsigned n)
{
	struct ipc_record m = {.execution = id_of(n),
	    .epoch = a->sandbox_epoch,
	    .outcome = OUTCOME_DONE,
	    .delivered = 1,
	    .started_us = 1700000000000000,
	    .ended_us = 1700000001000000,
	    .cpu_us = 30,
	    .stdout_len = 3,
	    .stdout_result = ipc_str("out{\"content\":[]}")};

	return m;
}

static void
deliver(uint64_t request, const struct ipc_record *m)
{
	assert_int_equal(
	    records_message(f.sandbox, fake_frame(IPC_RECORD, request, m)), 0);
}

/* The sandbox runs calls 1 to n. */
static void
live(unsigned n)
{
	for (unsigned i = 1; i <= n; i++) {
		struct ipc_id id = id_of(i);

		assert_int_equal(idset_add(&a->live, &id), 0);
	}
}

static void
records_come(unsigned first, unsigned last)
{
	for (unsigned i = first; i <= last; i++) {
		struct ipc_record m = record(i);

		deliver(i, &m);
	}
}

static void
closed(unsigned first, unsigned last)
{
	for (unsigned i = first; i <= last; i++) {
		struct ipc_id id = id_of(i);

		fake_db_row("u", &id);
	}
	fake_db_answer("records_close_many");
}

static void
acknowledged(unsigned first, unsigned last)
{
	struct ipc_ok ok;

	for (unsigned i = first; i <= last; i++) {
		struct ipc_id id = id_of(i);

		assert_int_equal(fake_took(f.sandboxd, IPC_OK, &ok), i);
		assert_false(idset_has(&a->live, &id));
	}
	assert_int_equal(fake_peer_waits(f.sandboxd), 0);
}

static void
waits_for_those_that_run(void **unused)
{
	live(3);
	records_come(1, 2);
	/* One more may come at once. */
	assert_int_equal(fake_db_waits(NULL), 0);
	records_come(3, 3);
	assert_int_equal(fake_db_waits("records_close_many"), 1);
	assert_memory_equal(
	    fake_db_bytes("records_close_many", 0).p, a->sandbox_epoch.b, 16);
	for (int i = 1; i <= 10; i++)
		assert_int_equal(fake_db_elements("records_close_many", i), 3);
	/* No OK before the commit. */
	assert_int_equal(fake_peer_waits(f.sandboxd), 0);
	closed(1, 3);
	acknowledged(1, 3);
	assert_int_equal(a->nops, 0);
	assert_int_equal(a->metrics->outcome[OUTCOME_DONE], 3);
	assert_int_equal(a->upkeep.closed, 3);
}

static void
waits_no_longer_than_a_moment(void **unused)
{
	live(3);
	records_come(1, 2);
	assert_int_equal(fake_db_waits(NULL), 0);
	event_base_loop(a->proc.base, EVLOOP_ONCE);
	assert_int_equal(fake_db_elements("records_close_many", 1), 2);
	closed(1, 2);
	acknowledged(1, 2);
}

static void
bounded_statement(void **unused)
{
	live(200);
	records_come(1, GATHER_MAX - 1);
	assert_int_equal(fake_db_waits(NULL), 0);
	records_come(GATHER_MAX, GATHER_MAX);
	assert_int_equal(fake_db_elements("records_close_many", 1), GATHER_MAX);
	/* While one statement is under way, the others gather. */
	records_come(GATHER_MAX + 1, 150);
	assert_int_equal(fake_db_waits("records_close_many"), 1);
	closed(1, GATHER_MAX);
	acknowledged(1, GATHER_MAX);
	assert_int_equal(fake_db_elements("records_close_many", 1), GATHER_MAX);
	closed(GATHER_MAX + 1, 2 * GATHER_MAX);
	acknowledged(GATHER_MAX + 1, 2 * GATHER_MAX);
	assert_int_equal(
	    fake_db_elements("records_close_many", 1), 150 - 2 * GATHER_MAX);
	closed(2 * GATHER_MAX + 1, 150);
	acknowledged(2 * GATHER_MAX + 1, 150);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
large_ones_do_not_wait(void **unused)
{
	static char text[600 * 1024];
	struct ipc_record m;

	/* A result counts for at most the bytes that are kept. */
	memset(text, 'x', sizeof(text));
	live(100);
	for (unsigned i = 1; i <= 15; i++) {
		m = record(i);
		m.stdout_len = 0;
		m.stdout_result = ipc_bytes(text, sizeof(text));
		deliver(i, &m);
	}
	assert_int_equal(fake_db_waits(NULL), 0);
	m.execution = id_of(16);
	deliver(16, &m);
	assert_int_equal(fake_db_elements("records_close_many", 1), 16);
}

static void
one_that_is_left_goes_alone(void **unused)
{
	struct ipc_ok ok;

	live(3);
	records_come(1, 3);
	/* The second one's row was closed before, or never was. */
	fake_db_row("u", &(struct ipc_id){{0x10, 0, 3}});
	fake_db_row("u", &(struct ipc_id){{0x10, 0, 1}});
	fake_db_answer("records_close_many");
	assert_int_equal(fake_took(f.sandboxd, IPC_OK, &ok), 1);
	assert_int_equal(fake_took(f.sandboxd, IPC_OK, &ok), 3);
	assert_int_equal(fake_peer_waits(f.sandboxd), 0);
	assert_memory_equal(
	    fake_db_bytes("records_close", 0).p, id_of(2).b, 16);
	assert_memory_equal(
	    fake_db_bytes("records_close", 1).p, a->sandbox_epoch.b, 16);
	fake_db_is("records_close", 2, "done");
	assert_int_equal(fake_db_int("records_close", 7), 30);
	fake_db_is("records_close", 8, "out");
	fake_db_is("records_close", 9, "{\"content\":[]}");
	fake_db_row("s", "already");
	fake_db_answer("records_close");
	acknowledged(2, 2);
}

static void
text_that_fails_harms_no_other(void **unused)
{
	struct ipc_refused no;

	live(2);
	records_come(1, 2);
	fake_db_fail("records_close_many", FAILURE_INVALID_PARAMS, "a text");
	assert_int_equal(fake_db_waits("records_close"), 2);
	fake_db_row("s", "closed");
	fake_db_answer("records_close");
	acknowledged(1, 1);
	fake_db_fail("records_close", FAILURE_INVALID_PARAMS, "its text");
	assert_int_equal(fake_took(f.sandboxd, IPC_REFUSED, &no), 2);
	assert_int_equal(no.failure, FAILURE_INVALID_PARAMS);
	assert_int_equal(a->nops, 0);
}

static void
sandbox_sends_again_what_was_not_committed(void **unused)
{
	struct ipc_refused no;

	live(2);
	records_come(1, 2);
	fake_db_fail("records_close_many", FAILURE_STORAGE_UNAVAILABLE, "gone");
	for (uint64_t i = 1; i <= 2; i++) {
		assert_int_equal(fake_took(f.sandboxd, IPC_REFUSED, &no), i);
		assert_int_equal(no.failure, FAILURE_STORAGE_UNAVAILABLE);
	}
	assert_int_equal(fake_db_waits(NULL), 0);
	assert_int_equal(a->live.count, 2);
	records_come(1, 2);
	closed(1, 2);
	acknowledged(1, 2);
}

static void
other_epochs(void **unused)
{
	struct ipc_record m = record(1);
	struct ipc_ok ok;

	live(1);
	/* An earlier life of this node's sandbox: closed alone. */
	m.epoch = id_of(999);
	deliver(1, &m);
	assert_memory_equal(
	    fake_db_bytes("records_predecessor", 0).p, id_of(999).b, 16);
	fake_db_is("records_predecessor", 1, "node");
	fake_db_row("i", INT64_C(1));
	fake_db_answer("records_predecessor");
	assert_memory_equal(
	    fake_db_bytes("records_close", 1).p, id_of(999).b, 16);
	fake_db_row("s", "closed");
	fake_db_answer("records_close");
	acknowledged(1, 1);
	/* Anybody else's: acknowledged, or it would come for ever, and
	 * ignored. */
	m.execution = id_of(2);
	deliver(2, &m);
	fake_db_answer("records_predecessor");
	assert_int_equal(fake_took(f.sandboxd, IPC_OK, &ok), 2);
	assert_int_equal(fake_db_waits(NULL), 0);
	assert_int_equal(fake_db_sent("records_close"), 1);
	/* Neither counts among this life's calls. */
	assert_int_equal(a->metrics->outcome[OUTCOME_DONE], 0);
	/* A question to the database without an answer is told so. */
	m.execution = id_of(3);
	deliver(3, &m);
	fake_db_fail(
	    "records_predecessor", FAILURE_STORAGE_UNAVAILABLE, "gone");
	assert_int_equal(
	    fake_took(f.sandboxd, IPC_REFUSED, &(struct ipc_refused){0}), 3);
}

static void
task_goes_alone_and_whole(void **unused)
{
	struct ipc_record m = record(1);
	struct buf intent;

	buf_init(&intent, IPC_FRAME_MAX);
	tlv_put_u64(&intent, INTENT_TASK, 1);
	live(5);
	m.intent = ipc_bytes(intent.p, intent.len);
	m.stdout_len = 3;
	m.kept_len = 4;
	m.meta_len = 2;
	m.stdout_result = ipc_str("outkeptWHOLE{}");
	deliver(1, &m);
	buf_free(&intent);
	assert_int_equal(fake_db_waits("task_close"), 1);
	fake_db_is("task_close", 8, "out");
	fake_db_is("task_close", 9, "kept");
	fake_db_is("task_close", 20, "completed");
	fake_db_is("task_close", 21, "WHOLE");
	fake_db_is("task_close", 22, "{}");
	fake_db_row("s", "closed");
	fake_db_answer("task_close");
	acknowledged(1, 1);
}

static void
record_keeps_the_tables_rule(void **unused)
{
	struct ipc_record m = record(1);

	/* done has no failure, everything else has one; nothing ended after
	 * now. */
	m.failure = FAILURE_TIMEOUT;
	m.epoch = id_of(9);
	m.ended_us = UINT64_MAX;
	m.cpu_us = RECORD_CPU_UNKNOWN;
	deliver(1, &m);
	fake_db_row("i", INT64_C(1));
	fake_db_answer("records_predecessor");
	assert_true(fake_db_null("records_close", 3));
	assert_true(fake_db_int("records_close", 6) <=
	    (int64_t)now_us() - INT64_C(946684800000000));
	assert_true(fake_db_null("records_close", 7));
	fake_db_row("s", "closed");
	fake_db_answer("records_close");
	m.outcome = OUTCOME_FAILED;
	m.failure = 0;
	deliver(2, &m);
	fake_db_row("i", INT64_C(1));
	fake_db_answer("records_predecessor");
	fake_db_is("records_close", 2, "failed");
	fake_db_is("records_close", 3, failure_info(FAILURE_INTERNAL)->name);
	fake_db_row("s", "closed");
	fake_db_answer("records_close");
	m.failure = FAILURE_COUNT;
	deliver(3, &m);
	fake_db_row("i", INT64_C(1));
	fake_db_answer("records_predecessor");
	fake_db_is("records_close", 3, failure_info(FAILURE_INTERNAL)->name);
}

static void
malformed(const struct ipc_record *m)
{
	assert_int_equal(
	    records_message(f.sandbox, fake_frame(IPC_RECORD, 1, m)), -1);
	assert_int_equal(a->nops, 0);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
malformed_record_ends_the_connection(void **unused)
{
	struct ipc_record m = record(1);

	m.outcome = 0;
	malformed(&m);
	m.outcome = OUTCOME_LOST + 1;
	malformed(&m);
	m = record(1);
	m.stdout_len = (uint32_t)m.stdout_result.n + 1;
	malformed(&m);
	m = record(1);
	m.meta_len = (uint32_t)m.stdout_result.n;
	malformed(&m);
	m = record(1);
	m.kept_len = UINT32_MAX;
	malformed(&m);
}

/* ---- the executions that a sandbox still has ---- */

static void
begin(const struct ipc_id *epoch)
{
	struct ipc_epoch_begin m = {.epoch = *epoch};

	assert_int_equal(
	    records_message(f.sandbox, fake_frame(IPC_EPOCH_BEGIN, 0, &m)), 0);
}

static void
name(unsigned n)
{
	struct ipc_epoch_item m = {.execution = id_of(n), .state = 2};

	assert_int_equal(
	    records_message(f.sandbox, fake_frame(IPC_EPOCH_ITEM, 0, &m)), 0);
}

static int
end(uint32_t count)
{
	struct ipc_epoch_end m = {.count = count};

	return records_message(f.sandbox, fake_frame(IPC_EPOCH_END, 0, &m));
}

static void
new_sandbox_is_ready_behind_its_epoch(void **unused)
{
	struct ipc_id epoch = id_of(5), one = id_of(1), old = id_of(77);

	a->started = false;
	live(1);
	assert_int_equal(idset_add(&a->live, &old), 0);
	begin(&epoch);
	assert_false(a->sandbox_ready);
	/* The executions of the sandbox before have no owner now. */
	assert_int_equal(a->live.count, 0);
	name(1);
	name(2);
	assert_int_equal(end(2), 0);
	assert_true(idset_has(&a->live, &one));
	assert_false(idset_has(&a->live, &old));
	assert_false(a->sandbox_ready);
	assert_memory_equal(fake_db_bytes("records_epoch", 0).p, epoch.b, 16);
	fake_db_is("records_epoch", 1, "node");
	fake_db_row("n");
	fake_db_answer("records_epoch");
	assert_true(a->sandbox_ready);
	assert_true(a->started);
}

static void
miscounted_names(void **unused)
{
	struct ipc_id epoch = id_of(5);

	begin(&epoch);
	name(1);
	assert_int_equal(end(2), -1);
	assert_false(a->sandbox_ready);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
epoch_that_could_not_be_stored(void **unused)
{
	struct ipc_id epoch = id_of(5), next = id_of(6);

	begin(&epoch);
	assert_int_equal(end(0), 0);
	fake_db_fail("records_epoch", FAILURE_STORAGE_UNAVAILABLE, "gone");
	assert_false(a->sandbox_ready);
	/* The tick tries again. */
	records_store_epoch(a);
	/* Another sandbox came in between: the answer is not its own. */
	begin(&next);
	fake_db_row("n");
	fake_db_answer("records_epoch");
	assert_false(a->sandbox_ready);
	assert_int_equal(end(0), 0);
	fake_db_row("n");
	fake_db_answer("records_epoch");
	assert_true(a->sandbox_ready);
}

/* ---- results that are checked ---- */

static void
check(uint64_t request)
{
	struct ipc_result_check m = {.execution = id_of(1),
	    .schema_len = 2,
	    .schema_value = ipc_str("{}[1]")};

	assert_int_equal(results_message(f.sandbox,
			     fake_frame(IPC_RESULT_CHECK, request, &m)),
	    0);
}

static void
few_results_are_checked_at_once(void **unused)
{
	struct ipc_check_arguments q;
	struct ipc_check_errors e = {.failure = FAILURE_BAD_RESULT,
	    .summary = ipc_str("wrong"),
	    .json = ipc_str("[]")};
	struct ipc_result_errors bad;
	struct ipc_check_ok ok = {0};
	struct ipc_refused no;

	for (uint64_t i = 1; i <= 4; i++)
		check(i);
	assert_int_equal(fake_peer_waits(f.check), 4);
	check(5);
	assert_int_equal(fake_took(f.sandboxd, IPC_REFUSED, &no), 5);
	assert_int_equal(no.failure, FAILURE_BUSY);
	(void)fake_took(f.check, IPC_CHECK_ARGUMENTS, &q);
	assert_int_equal(q.output, 1);
	assert_int_equal(q.schema_len, 2);
	assert_true(ipc_streq(q.schema_arguments, "{}[1]"));
	fake_answers(f.check, IPC_CHECK_OK, &ok);
	assert_int_equal(fake_took(f.sandboxd, IPC_OK, &(struct ipc_ok){0}), 1);
	(void)fake_took(f.check, IPC_CHECK_ARGUMENTS, &q);
	fake_answers(f.check, IPC_CHECK_ERRORS, &e);
	assert_int_equal(fake_took(f.sandboxd, IPC_RESULT_ERRORS, &bad), 2);
	assert_true(ipc_streq(bad.summary, "wrong"));
	/* The schema is at fault: nothing is said of the value. */
	(void)fake_took(f.check, IPC_CHECK_ARGUMENTS, &q);
	e.failure = FAILURE_INTERNAL;
	fake_answers(f.check, IPC_CHECK_ERRORS, &e);
	assert_int_equal(fake_took(f.sandboxd, IPC_REFUSED, &no), 3);
	assert_int_equal(no.failure, FAILURE_INTERNAL);
	(void)fake_took(f.check, IPC_CHECK_ARGUMENTS, &q);
	fake_goes(f.check, FAILURE_BUSY);
	assert_int_equal(fake_took(f.sandboxd, IPC_REFUSED, &no), 4);
	assert_int_equal(no.failure, FAILURE_BUSY);
	assert_int_equal(a->nresults, 0);
	assert_int_equal(a->nops, 0);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {T(waits_for_those_that_run),
	    T(waits_no_longer_than_a_moment), T(bounded_statement),
	    T(large_ones_do_not_wait), T(one_that_is_left_goes_alone),
	    T(text_that_fails_harms_no_other),
	    T(sandbox_sends_again_what_was_not_committed), T(other_epochs),
	    T(task_goes_alone_and_whole), T(record_keeps_the_tables_rule),
	    T(malformed_record_ends_the_connection),
	    T(new_sandbox_is_ready_behind_its_epoch), T(miscounted_names),
	    T(epoch_that_could_not_be_stored),
	    T(few_results_are_checked_at_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
