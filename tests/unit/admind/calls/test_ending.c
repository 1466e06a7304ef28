/*
 * Endings of admind's own executions (ending.c): noted in the ledger before
 * anybody is told, tried until they are committed, bounded, and taken over by
 * the next life.
 */
#include "calls_rig.h"
#include "context.h"
#include "intent.h"
#include "tlv.h"

enum { CLOSES_MAX = 4096 };

/* Its execution begins with this byte. */
static struct ending
ending(uint8_t byte)
{
	struct ending e = {.id = id_of(byte),
	    .epoch = a->epoch,
	    .outcome = OUTCOME_DONE,
	    .delivered = true,
	    .started_us = 1700000000000000,
	    .ended_us = 1700000001000000,
	    .result = ipc_str("{\"content\":[]}")};

	return e;
}

static void
close_one(uint8_t byte)
{
	struct ending e = ending(byte);

	ending_close(a, &e);
}

static void
commit(void)
{
	fake_db_row("s", "closed");
	fake_db_answer("records_close");
}

static void
row_says_how_it_ended(void **unused)
{
	close_one(1);
	assert_memory_equal(
	    fake_db_bytes("records_close", 0).p, id_of(1).b, 16);
	assert_memory_equal(
	    fake_db_bytes("records_close", 1).p, a->epoch.b, 16);
	fake_db_is("records_close", 2, "done");
	assert_true(fake_db_null("records_close", 3));
	assert_int_equal(fake_db_int("records_close", 4), 1);
	assert_int_equal(fake_db_int("records_close", 5),
	    1700000000000000 - INT64_C(946684800000000));
	assert_true(fake_db_null("records_close", 7)); /* CPU time */
	assert_true(fake_db_null("records_close", 8)); /* output */
	fake_db_is("records_close", 9, "{\"content\":[]}");
	/* No intent came with it: the row can be closed, not made. */
	for (int i = 10; i <= 20; i++)
		assert_true(fake_db_null("records_close", i));
	assert_int_equal(a->metrics->outcome[OUTCOME_DONE], 1);
}

static void
ledger_has_it_until_the_commit(void **unused)
{
	close_one(1);
	assert_int_equal(a->ncloses, 1);
	assert_int_equal(ledger_count(a->ledger), 1);
	close_one(2);
	assert_int_equal(ledger_count(a->ledger), 2);
	commit();
	assert_int_equal(a->ncloses, 1);
	assert_int_equal(ledger_count(a->ledger), 1);
	assert_memory_equal(
	    fake_db_bytes("records_close", 0).p, id_of(2).b, 16);
	commit();
	assert_int_equal(a->ncloses, 0);
	assert_int_equal(ledger_count(a->ledger), 0);
}

/* The client got no answer. */
static void
lost_is_in_no_ledger(void **unused)
{
	struct ending e = ending(1);

	e.outcome = OUTCOME_LOST;
	e.failure = FAILURE_LOST;
	ending_close(a, &e);
	assert_int_equal(ledger_count(a->ledger), 0);
	fake_db_is("records_close", 2, "lost");
	fake_db_is("records_close", 3, failure_info(FAILURE_LOST)->name);
	commit();
	assert_int_equal(a->ncloses, 0);
}

static void
tried_until_committed(void **unused)
{
	close_one(1);
	/* One that is under way is not sent twice. */
	ending_retry(a);
	assert_int_equal(fake_db_sent("records_close"), 1);
	for (int i = 0; i < 3; i++) {
		fake_db_fail("records_close",
		    i == 1 ? FAILURE_BUSY : FAILURE_STORAGE_UNAVAILABLE, "no");
		assert_int_equal(a->ncloses, 1);
		assert_int_equal(ledger_count(a->ledger), 1);
		assert_int_equal(fake_db_waits(NULL), 0);
		/* Not without a database. */
		fake_db_up(false);
		ending_retry(a);
		assert_int_equal(fake_db_waits(NULL), 0);
		fake_db_up(true);
		ending_retry(a);
		assert_int_equal(fake_db_waits("records_close"), 1);
	}
	assert_memory_equal(
	    fake_db_bytes("records_close", 0).p, id_of(1).b, 16);
	fake_db_is("records_close", 9, "{\"content\":[]}");
	commit();
	assert_int_equal(a->ncloses, 0);
	assert_int_equal(ledger_count(a->ledger), 0);
}

static void
ending_matters_more_than_its_text(void **unused)
{
	close_one(1);
	fake_db_fail("records_close", FAILURE_INVALID_PARAMS, "that text");
	assert_int_equal(fake_db_waits("records_close"), 1);
	assert_true(fake_db_null("records_close", 9));
	fake_db_is("records_close", 2, "done");
	assert_int_equal(a->ncloses, 1);
	/* Without a text nothing is left to try. */
	fake_db_fail("records_close", FAILURE_INVALID_PARAMS, "still");
	assert_int_equal(fake_db_waits(NULL), 0);
	assert_int_equal(a->ncloses, 0);
	assert_int_equal(ledger_count(a->ledger), 0);
}

static void
full_refuses_new_calls(void **unused)
{
	struct ipc_refused no;

	for (unsigned i = 0; i < CLOSES_MAX; i++) {
		assert_false(ending_full(a));
		close_one((uint8_t)i);
	}
	assert_true(ending_full(a));
	authorise(5, "s__t", "{}");
	assert_int_equal(fake_took(f.local, IPC_REFUSED, &no), 5);
	assert_int_equal(no.failure, FAILURE_BUSY);
	assert_int_equal(a->njobs, 0);
	commit();
	assert_false(ending_full(a));
	authorise(6, "s__t", "{}");
	assert_int_equal(fake_peer_waits(f.local), 0);
	assert_int_equal(a->njobs, 1);
	while (a->ncloses > 0)
		commit();
	assert_int_equal(ledger_count(a->ledger), 0);
}

static void
next_life_takes_over(void **unused)
{
	const struct ipc_id before = a->epoch;
	char run_dir[sizeof(f.run_dir)];

	close_one(1);
	close_one(2);
	commit();
	/* The answer to the second one never comes. */
	memcpy(run_dir, f.run_dir, sizeof(run_dir));
	fake_admind_free(&f, true);
	rig_start(run_dir);
	memset(a->epoch.b, 0xae, sizeof(a->epoch.b));
	assert_int_equal(a->ncloses, 1);
	assert_int_equal(a->inherited, 1);
	assert_int_equal(inherited_closed, 0);
	ending_retry(a);
	assert_memory_equal(
	    fake_db_bytes("records_close", 0).p, id_of(2).b, 16);
	/* Under the epoch of the life that had it. */
	assert_memory_equal(fake_db_bytes("records_close", 1).p, before.b, 16);
	fake_db_is("records_close", 2, "done");
	fake_db_is("records_close", 9, "{\"content\":[]}");
	fake_db_fail("records_close", FAILURE_STORAGE_UNAVAILABLE, "no");
	assert_int_equal(inherited_closed, 0);
	ending_retry(a);
	commit();
	assert_int_equal(inherited_closed, 1);
	assert_int_equal(a->inherited, 0);
	assert_int_equal(a->ncloses, 0);
	assert_int_equal(ledger_count(a->ledger), 0);
	/* An ending of this life is not inherited. */
	close_one(3);
	commit();
	assert_int_equal(inherited_closed, 1);
}

/* ---- intents as columns ---- */

static void
put_intent(struct buf *b, uint64_t kind, uint64_t listener, uint64_t created_us)
{
	static const uint8_t sum[32] = {9};

	buf_init(b, IPC_FRAME_MAX);
	tlv_puts(b, INTENT_TOOL, "s__t");
	tlv_puts(b, INTENT_PRINCIPAL, "ann");
	tlv_put_u64(b, INTENT_LISTENER, listener);
	tlv_put(b, INTENT_ARGS_SHA256, sum, sizeof(sum));
	tlv_put_u64(b, INTENT_CREATED_US, created_us);
	tlv_put_u64(b, INTENT_DEADLINE_US, created_us + 1);
	tlv_put_u64(b, INTENT_KIND, kind);
	tlv_puts(b, INTENT_ARGUMENTS, "{\"n\":\"\xff\"}");
	assert_false(b->failed);
}

static void
close_with(const struct buf *intent, size_t n)
{
	struct ending e = ending(1);

	e.intent = ipc_bytes(intent->p, n);
	ending_close(a, &e);
}

static void
lost_row_is_made_again(void **unused)
{
	struct buf b;

	put_intent(&b, INTENT_KIND_MANAGEMENT, LISTENER_TUNNEL, now_us());
	close_with(&b, b.len);
	fake_db_is("records_close", 10, "management");
	assert_true(fake_db_null("records_close", 11));
	assert_true(fake_db_null("records_close", 12));
	fake_db_is("records_close", 13, "ann");
	fake_db_is("records_close", 14, "tunnel");
	fake_db_is("records_close", 15, "s__t");
	assert_int_equal(fake_db_bytes("records_close", 16).n, 32);
	/* made storable */
	fake_db_is("records_close", 17, "{\"n\":\"?\"}");
	assert_false(fake_db_null("records_close", 18));
	assert_false(fake_db_null("records_close", 19));
	commit();
	buf_free(&b);
}

/* Closes the row if there is one; makes none. */
static void
makes_no_row(const struct buf *b, size_t n)
{
	close_with(b, n);
	for (int i = 10; i < 20; i++)
		assert_true(fake_db_null("records_close", i));
	fake_db_is("records_close", 2, "done");
	commit();
}

static void
made_up_intents_make_no_row(void **unused)
{
	const uint64_t day_us = UINT64_C(24) * 3600 * 1000000;
	struct buf b;

	put_intent(&b, INTENT_KIND_MANAGEMENT + 1, LISTENER_LOCAL, now_us());
	makes_no_row(&b, b.len);
	buf_free(&b);
	put_intent(&b, 0, LISTENER_LOCAL, now_us());
	makes_no_row(&b, b.len);
	buf_free(&b);
	put_intent(&b, CONTEXT_TOOL, LISTENER_NONE, now_us());
	makes_no_row(&b, b.len);
	buf_free(&b);
	put_intent(&b, CONTEXT_TOOL, LISTENER_ADMIND + 1, now_us());
	makes_no_row(&b, b.len);
	buf_free(&b);
	/* It would be the newest of all lists for ever. */
	put_intent(&b, CONTEXT_TOOL, LISTENER_LOCAL, now_us() + 2 * day_us);
	makes_no_row(&b, b.len);
	buf_free(&b);
	put_intent(&b, CONTEXT_TOOL, LISTENER_LOCAL, 0);
	makes_no_row(&b, b.len);
	/* cut anywhere */
	buf_free(&b);
	put_intent(&b, CONTEXT_TOOL, LISTENER_LOCAL, now_us());
	makes_no_row(&b, b.len / 2);
	buf_free(&b);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {T(row_says_how_it_ended),
	    T(ledger_has_it_until_the_commit), T(lost_is_in_no_ledger),
	    T(tried_until_committed), T(ending_matters_more_than_its_text),
	    T(full_refuses_new_calls), T(next_life_takes_over),
	    T(lost_row_is_made_again), T(made_up_intents_make_no_row)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
