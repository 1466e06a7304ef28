/*
 * A call whose row is not made, or must be closed again because the call does
 * not come to run (call.c, job.c), with a fake database and fake processes.
 */
#include "call_steps.h"

static void
stale_row_is_looked_up_again(void **unused)
{
	(void)until_intent();
	/* The second and third time everything is done again. */
	for (int i = 0; i < 2; i++) {
		no_row("stale");
		assert_int_equal(job()->state, JOB_LOOKUP);
		answer_lookup(&(struct found){0});
		assert_int_equal(job()->state, JOB_INTENT);
	}
	no_row("stale");
	refused_as(FAILURE_BUSY, "the tool can't be called now");
	assert_int_equal(fake_db_sent("call_lookup"), 3);
	assert_int_equal(a->ncloses, 0);
}

static void
withdrawn_grant_is_the_callers_to_mend(void **unused)
{
	(void)until_intent();
	no_row("missing_grant");
	error_as(FAILURE_MISSING_GRANT, "withdrawn just now");
	assert_int_equal(a->ncloses, 0);
}

static void
unknown_commit_is_closed(void **unused)
{
	struct job *j = until_intent();
	struct ipc_id execution = j->execution;

	fake_db_fail("call_insert", FAILURE_STORAGE_UNAVAILABLE, "it went");
	refused_as(FAILURE_STORAGE_UNAVAILABLE, "it went");
	row_is_closed(&execution, FAILURE_STORAGE_UNAVAILABLE);
}

static void
failed_statement_made_no_row(void **unused)
{
	(void)until_intent();
	fake_db_fail("call_insert", FAILURE_BUSY, "too many");
	refused_as(FAILURE_BUSY, "too many");
	assert_int_equal(a->ncloses, 0);
}

static void
vault_that_refuses_closes_the_row(void **unused)
{
	struct ipc_refused no = {.failure = FAILURE_NOT_APPROVED,
	    .message = ipc_str("the seal is not ours")};
	struct ipc_seal_context q;
	struct ipc_cancel c;
	struct job *j = until_intent();
	struct ipc_id execution = j->execution;

	(void)fake_took(f.vault, IPC_SEAL_CONTEXT, &q);
	fake_answers(f.vault, IPC_REFUSED, &no);
	/* A waiting caller hears it after the row. */
	assert_int_equal(fake_peer_waits(f.local), 0);
	row_is_made();
	refused_as(FAILURE_NOT_APPROVED, "the seal is not ours");
	(void)fake_took(f.sandboxd, IPC_CANCEL, &c);
	assert_memory_equal(&c.execution, &execution, sizeof(execution));
	row_is_closed(&execution, FAILURE_NOT_APPROVED);
}

static void
silent_sandbox_closes_the_row(void **unused)
{
	struct ipc_held h;
	struct ipc_cancel c;
	struct job *j = until_intent();
	struct ipc_id execution = j->execution;

	row_is_made();
	vault_seals();
	(void)fake_took(f.sandboxd, IPC_HELD, &h);
	fake_goes(f.sandboxd, FAILURE_SANDBOX_UNAVAILABLE);
	refused_as(
	    FAILURE_SANDBOX_UNAVAILABLE, "the sandbox did not take the call");
	/* It may have it. */
	(void)fake_took(f.sandboxd, IPC_CANCEL, &c);
	assert_int_equal(c.failure, FAILURE_KILLED);
	assert_false(idset_has(&a->live, &execution));
	row_is_closed(&execution, FAILURE_SANDBOX_UNAVAILABLE);
}

static void
withdrawal_wins_over_the_row(void **unused)
{
	struct job *j = until_intent();
	struct ipc_id execution = j->execution;
	struct ipc_cancel c;

	vault_seals();
	sandbox_holds();
	j->revoked = true;
	j->revoked_why = FAILURE_REVOKED;
	row_is_made();
	refused_as(FAILURE_REVOKED, "the tool was withdrawn");
	(void)fake_took(f.sandboxd, IPC_CANCEL, &c);
	assert_memory_equal(&c.execution, &execution, sizeof(execution));
	row_is_closed(&execution, FAILURE_REVOKED);
}

static void
gateway_that_went_runs_nothing(void **unused)
{
	struct ipc_cancel c;

	(void)until_intent();
	vault_seals();
	row_is_made();
	f.gateway->peer = NULL;
	sandbox_holds();
	/* sandboxd closes the row: it is told to. */
	(void)fake_took(f.sandboxd, IPC_CANCEL, &c);
	assert_int_equal(c.failure, FAILURE_KILLED);
	assert_int_equal(fake_peer_waits(f.local), 0);
	assert_int_equal(a->njobs, 0);
	assert_int_equal(a->ncloses, 0);
}

static void
new_sandbox_gets_its_own_context(void **unused)
{
	struct ipc_check_arguments q;
	struct ipc_check_ok ok = {0};
	struct ipc_seal_context s;
	struct ipc_sealed sealed = {.context = ipc_str("FOR THE OLD ONE")};

	(void)until_checking();
	(void)fake_took(f.vault, IPC_SEAL_CONTEXT, &s);
	memset(a->sandbox_epoch.b, 0x5c, 16);
	(void)fake_took(f.check, IPC_CHECK_ARGUMENTS, &q);
	fake_answers(f.check, IPC_CHECK_OK, &ok);
	/* A context sealed for the old sandbox is not sent. */
	fake_answers(f.vault, IPC_SEALED, &sealed);
	assert_int_equal(fake_peer_waits(f.sandboxd), 0);
	(void)fake_took(f.vault, IPC_SEAL_CONTEXT, &s);
	assert_memory_equal(&s.epoch, &a->sandbox_epoch, sizeof(s.epoch));
	assert_memory_equal(
	    fake_db_bytes("call_insert", 3).p, a->sandbox_epoch.b, 16);
}

static void
no_state_is_left_out(void **unused)
{
	struct job *j;

	authorise(REQUEST, "s__t", arguments);
	j = job();
	assert_int_equal(job_enter(j, JOB_INTENT), -1);
	assert_int_equal(job_enter(j, JOB_SEALING), -1);
	assert_int_equal(j->state, JOB_LOOKUP);
	assert_int_equal(job_enter(j, JOB_CHECKING), 0);
	assert_int_equal(job_enter(j, JOB_LOOKUP), -1);
	assert_int_equal(job_enter(j, JOB_INTENT), 0);
	assert_int_equal(job_enter(j, JOB_SEALING), 0);
	assert_int_equal(job_enter(j, JOB_INTENT), -1);
	assert_int_equal(job_enter(j, JOB_DONE), 0);
	assert_int_equal(job_enter(j, JOB_DONE), -1);
}

/* Sealed after its row, and then the grants changed: it runs with the present
 * ones, or not at all. */
static void
without_the_present_grants_it_does_not_run(void **unused)
{
	struct job *j = until_intent();
	struct ipc_id execution = j->execution;
	struct ipc_cancel c;

	row_is_made();
	vault_seals();
	j->connects = j->confirm = true;
	j->regrants = a->regrants - 1;
	sandbox_holds();
	fake_db_fail("regrant_servers", FAILURE_BUSY, "it took too long");
	(void)fake_took(f.sandboxd, IPC_CANCEL, &c);
	assert_memory_equal(&c.execution, &execution, sizeof(execution));
	refused_as(FAILURE_BUSY,
	    "the tool's hosts changed, and the sandbox could not be told; "
	    "call again");
	/* The sandbox' record closes the row. */
	assert_int_equal(a->ncloses, 0);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {T(stale_row_is_looked_up_again),
	    T(withdrawn_grant_is_the_callers_to_mend),
	    T(unknown_commit_is_closed), T(failed_statement_made_no_row),
	    T(vault_that_refuses_closes_the_row),
	    T(silent_sandbox_closes_the_row), T(withdrawal_wins_over_the_row),
	    T(gateway_that_went_runs_nothing),
	    T(new_sandbox_gets_its_own_context), T(no_state_is_left_out),
	    T(without_the_present_grants_it_does_not_run)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
