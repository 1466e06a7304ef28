/*
 * Changes for people with signed tokens (identities_change.c), with a fake
 * database: withdrawals, also missed ones, and another access document.
 */
#include "access_rig.h"
#include "job.h"

/* ---- withdrawn ---- */

static struct job *
job_of(const char *principal)
{
	static struct job j;

	memset(&j, 0, sizeof(j));
	snprintf(j.principal, sizeof(j.principal), "%s", principal);
	TAILQ_INSERT_TAIL(&a->jobs, &j, entry);
	return &j;
}

static void
run_is_cancelled(const char *statement)
{
	struct ipc_id id = {{7}};
	struct ipc_cancel m;

	fake_db_row("u", &id);
	fake_db_answer(statement);
	(void)fake_took(f.sandboxd, IPC_CANCEL, &m);
	assert_memory_equal(&m.execution, &id, sizeof(id));
}

static void
withdrawal_ends_all(void **unused)
{
	struct job *j = job_of(ANN), *other;
	struct token *t;
	struct auth who;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	assert_int_equal(learn(T2, &ann, who_is), FAILURE_NONE);
	many("bob", 0, 1);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	t = token_ref(who.token);
	document_notified(a, "withdrawn " ANN);
	assert_true(j->revoked);
	assert_true(t->gone);
	gateways_hear(NULL, ANN);
	gateways_hear_nothing();
	assert_int_equal(fake_db_elements("ended_running", 0), 1);
	run_is_cancelled("ended_running");
	assert_int_equal(comes(T1, &who), FAILURE_BUSY);
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_FORBIDDEN);
	assert_int_equal(comes("bob.t.0", &who), FAILURE_NONE);
	/* the last use was stored before */
	assert_int_equal(fake_db_sent("identities_seen"), 1);
	/* restored */
	document_notified(a, "restored " ANN);
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	TAILQ_REMOVE(&a->jobs, j, entry);
	/* also of a person that is not remembered */
	other = job_of("oidc:pocket:eve");
	document_notified(a, "withdrawn oidc:pocket:eve");
	assert_true(other->revoked);
	gateways_hear(NULL, "oidc:pocket:eve");
	run_is_cancelled("ended_running");
	TAILQ_REMOVE(&a->jobs, other, entry);
	token_unref(t);
}

/* Missed notifications do not matter: no token is accepted before all withdrawn
 * identities were read again. */
static void
read_again_with_the_database(void **unused)
{
	struct auth who;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	many("bob", 0, 1);
	fake_db_up(false);
	assert_int_equal(comes(T1, &who), FAILURE_STORAGE_UNAVAILABLE);
	fake_db_up(true);
	identities_db_up(a);
	document_db_up(a);
	assert_int_equal(comes(T1, &who), FAILURE_STORAGE_UNAVAILABLE);
	answer_row(SERIAL, "{}", NULL); /* holds already: no questions */
	assert_int_equal(fake_peer_waits(f.vault), 0);
	assert_int_equal(comes(T1, &who), FAILURE_STORAGE_UNAVAILABLE);
	assert_false(identities_unknown(
	    a, LISTENER_TUNNEL, VIA_AUTHORIZATION, ipc_str(T1)));
	assert_int_equal(learn(T2, &ann, who_is), FAILURE_STORAGE_UNAVAILABLE);
	fake_db_row("s", ANN);
	fake_db_answer("identities_withdrawn");
	gateways_hear(NULL, ANN);
	run_is_cancelled("identities_withdrawn_runs");
	assert_int_equal(comes(T1, &who), FAILURE_BUSY);
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_FORBIDDEN);
	assert_int_equal(comes("bob.t.0", &who), FAILURE_NONE);
	/* and a restoration that was missed */
	identities_db_up(a);
	fake_db_answer("identities_withdrawn");
	fake_db_answer("identities_withdrawn_runs");
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
}

static void
failed_reading_lets_nobody_in(void **unused)
{
	struct auth who;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	identities_db_up(a);
	fake_db_fail("identities_withdrawn", FAILURE_STORAGE_UNAVAILABLE, "x");
	assert_int_equal(comes(T1, &who), FAILURE_STORAGE_UNAVAILABLE);
	identities_retry(a);
	fake_db_answer("identities_withdrawn");
	fake_db_answer("identities_withdrawn_runs");
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	identities_retry(a);
	assert_int_equal(fake_db_waits("identities_withdrawn"), 0);
}

/* ---- another document ---- */

static void
becomes(const struct said_document *d)
{
	static uint64_t serial = SERIAL;

	document_load(a, NULL, NULL);
	document_holds(d, ++serial);
}

static void
same_rights_are_undisturbed(void **unused)
{
	struct said_claims bob = {.sub = "bob", .group = {"staff"}};
	struct auth who, later;
	struct job *j;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	assert_int_equal(learn("b.o.b", &bob, who_is), FAILURE_NONE);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	j = job_of(ANN);
	/* the rights of ann's set change; bob's do not */
	becomes(&(struct said_document){.scopes = "tools:read"});
	gateways_hear(NULL, ANN);
	gateways_hear_nothing();
	assert_true(j->revoked);
	run_is_cancelled("ended_running");
	no_runs();
	assert_int_equal(comes("b.o.b", &later), FAILURE_NONE);
	assert_int_equal(comes(T1, &who), FAILURE_BUSY);
	/* the next request brings the new rights */
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
	assert_int_equal(who.token->permit.scopes, PERMIT_READ);
	TAILQ_REMOVE(&a->jobs, j, entry);
	/* the same document once more disturbs none */
	becomes(&(struct said_document){.scopes = "tools:read"});
	gateways_hear_nothing();
	no_runs();
	assert_int_equal(comes(T1, &who), FAILURE_NONE);
}

static void
who_loses_ends(void **unused)
{
	static const struct said_document rows[] = {
	    {.email = "carol@example.org"}, /* no rule fits any more */
	    {.key = "ANOTHER"},             /* the issuer's record changed */
	    {.listeners = LOCALLY},
	    {.max_age_s = 600},
	    {.empty = true},
	};
	struct auth who;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		becomes(&(struct said_document){0});
		fake_end_all();
		assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
		becomes(&rows[i]);
		gateways_hear(NULL, ANN);
		gateways_hear_nothing();
		run_is_cancelled("ended_running");
		no_runs();
		assert_int_not_equal(comes(T1, &who), FAILURE_NONE);
	}
}

/* Runs of people that are not remembered (their tokens' time is over): they end
 * if anything changed for their issuer. */
static void
runs_of_others(void **unused)
{
	struct ipc_id one = {{1}}, two = {{2}}, three = {{3}};
	struct ipc_cancel m;

	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	becomes(&(struct said_document){.email = "Ann@example.org"});
	gateways_hear_nothing(); /* ann keeps her rights */
	fake_db_row("us", &one, ANN);
	fake_db_row("us", &two, "oidc:pocket:gone");
	fake_db_row("us", &three, "oidc:door:guest");
	fake_db_answer("identities_runs");
	(void)fake_took(f.sandboxd, IPC_CANCEL, &m);
	assert_memory_equal(&m.execution, &two, sizeof(two));
	assert_int_equal(fake_peer_waits(f.sandboxd), 0);
}

/* ---- runs of an earlier process ---- */

/* This process begins, and a document holds. */
static void
begin(const struct said_document *d)
{
	rig_start(NULL);
	database_up(NULL);
	document_holds(d, SERIAL + 1);
}

static int
no_setup(void **unused)
{
	return 0;
}

static void
former_is(const struct said_document *d)
{
	fake_db_row("is", (int64_t)SERIAL, "{\"former\":1}");
	fake_db_answer("identities_judged");
	check_compiles(d);
}

static void
open_are(void)
{
	static const struct ipc_id one = {{1}}, two = {{2}};

	fake_db_row("us", &one, ANN);
	fake_db_row("us", &two, "oidc:door:guest");
	fake_db_answer("identities_runs");
}

static void
cancelled_is(uint8_t first)
{
	struct ipc_cancel m;

	(void)fake_took(f.sandboxd, IPC_CANCEL, &m);
	assert_int_equal(m.execution.b[0], first);
	assert_int_equal(m.failure, FAILURE_KILLED);
}

static void
is_noted(void)
{
	fake_db_is("identities_judged_note", 0, "node");
	assert_int_equal(fake_db_int("identities_judged_note", 1), SERIAL + 1);
}

/* The document was changed while no admind was there. */
static void
changed_while_away(void **unused)
{
	begin(&(struct said_document){.scopes = "tools:read"});
	/* no person comes in before the runs were judged */
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_BUSY);
	assert_false(identities_unknown(
	    a, LISTENER_TUNNEL, VIA_AUTHORIZATION, ipc_str(T1)));
	former_is(&(struct said_document){0});
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_BUSY);
	open_are();
	cancelled_is(1); /* of pocket; nothing changed for door */
	assert_int_equal(fake_peer_waits(f.sandboxd), 0);
	is_noted();
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
}

static void
same_while_away(void **unused)
{
	begin(&(struct said_document){0});
	fake_db_row("is", (int64_t)SERIAL + 1, "{}");
	fake_db_answer("identities_judged");
	assert_int_equal(fake_peer_waits(f.check), 0);
	open_are();
	assert_int_equal(fake_peer_waits(f.sandboxd), 0);
	is_noted();
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
}

/* The document of the runs is not known: all end. */
static void
nothing_is_known(void **unused)
{
	struct ipc_check_errors bad = {.failure = FAILURE_INVALID_PARAMS,
	    .summary = ipc_str("x"),
	    .json = ipc_str("[]")};
	struct ipc_check_access q;

	for (int i = 0; i < 2; i++) {
		begin(&(struct said_document){0});
		if (i == 0) {
			fake_db_answer("identities_judged");
		} else { /* a former document has faults today */
			fake_db_row("is", (int64_t)SERIAL, "{}");
			fake_db_answer("identities_judged");
			(void)fake_took(f.check, IPC_CHECK_ACCESS, &q);
			fake_answers(f.check, IPC_CHECK_ERRORS, &bad);
		}
		open_are();
		cancelled_is(1);
		cancelled_is(2);
		assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
		if (i == 0)
			fake_admind_free(&f, false);
	}
}

/* A process is away in between: it is tried again, and no person comes in. */
static void
trouble_while_judging(void **unused)
{
	struct ipc_check_access q;

	begin(&(struct said_document){0});
	fake_db_fail("identities_judged", FAILURE_STORAGE_UNAVAILABLE, "x");
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_BUSY);
	identities_runs_tick(a);
	fake_db_row("is", (int64_t)SERIAL, "{}");
	fake_db_answer("identities_judged");
	(void)fake_took(f.check, IPC_CHECK_ACCESS, &q);
	fake_goes(f.check, FAILURE_BUSY);
	assert_int_equal(fake_db_waits("identities_runs"), 0);
	identities_runs_tick(a);
	former_is(&(struct said_document){0});
	fake_db_fail("identities_runs", FAILURE_STORAGE_UNAVAILABLE, "x");
	assert_int_equal(fake_db_waits("identities_judged_note"), 0);
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_BUSY);
	identities_runs_tick(a);
	former_is(&(struct said_document){0});
	/* another document in between: by that one, too */
	document_load(a, NULL, NULL);
	document_holds(
	    &(struct said_document){.scopes = "tools:read"}, SERIAL + 2);
	open_are();
	assert_int_equal(fake_peer_waits(f.sandboxd), 0);
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_BUSY);
	fake_end_all();
	identities_runs_tick(a);
	former_is(&(struct said_document){0});
	open_are();
	cancelled_is(1);
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	identities_runs_tick(a);
	assert_int_equal(fake_db_waits("identities_judged"), 0);
}

/* A run that must end is cancelled when its sandbox is there. */
static void
sandbox_comes_later(void **unused)
{
	begin(&(struct said_document){0});
	a->sandbox_ready = false;
	fake_client_up(a->sandboxd, false);
	fake_db_answer("identities_judged");
	open_are();
	assert_int_equal(learn(T1, &ann, who_is), FAILURE_NONE);
	identities_runs_tick(a);
	fake_client_up(a->sandboxd, true);
	a->sandbox_ready = true;
	identities_runs_tick(a);
	assert_int_equal(fake_peer_waits(f.sandboxd), 2);
	identities_runs_tick(a);
	assert_int_equal(fake_peer_waits(f.sandboxd), 2);
	fake_end_all();
}

int
main(void)
{
#define START(f) cmocka_unit_test_setup_teardown(f, no_setup, teardown)
#define TEST(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(withdrawal_ends_all),
	    TEST(read_again_with_the_database),
	    TEST(failed_reading_lets_nobody_in),
	    TEST(same_rights_are_undisturbed),
	    TEST(who_loses_ends),
	    TEST(runs_of_others),
	    START(changed_while_away),
	    START(same_while_away),
	    START(nothing_is_known),
	    START(trouble_while_judging),
	    START(sandbox_comes_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
