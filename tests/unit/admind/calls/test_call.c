/*
 * A call from its AUTHORISE to its one answer (call.c, lookup.c, job.c,
 * intent.c), with a fake database and fake processes: the states it goes
 * through, its questions to other processes and their order, and refusals
 * before there is a row.
 */
#include "access.h"
#include "access_fields.h"
#include "call_steps.h"
#include "context.h"
#include "crypto.h"
#include "endpoint_fields.h"
#include "narrow.h"
#include "tlv.h"
#include "tokens.h"

/* ---- admitted ---- */

static void
asks_check_and_vault_at_once(void **unused)
{
	struct ipc_check_arguments q;
	struct ipc_seal_context s;
	struct job *j;
	struct tlv t;

	authorise(REQUEST, "s__t", arguments);
	assert_int_equal(job()->state, JOB_LOOKUP);
	fake_db_is("call_lookup", 0, "s__t");
	assert_int_equal(fake_peer_waits(f.check), 0);
	answer_lookup(&(struct found){0});
	j = job();
	assert_int_equal(j->state, JOB_CHECKING);
	(void)fake_took(f.check, IPC_CHECK_ARGUMENTS, &q);
	assert_int_equal(q.output, 0);
	assert_int_equal(q.schema_len, strlen(schema));
	assert_int_equal(
	    q.schema_arguments.n, strlen(schema) + strlen(arguments));
	assert_memory_equal(q.schema_arguments.p, schema, strlen(schema));
	assert_memory_equal(q.schema_arguments.p + strlen(schema), arguments,
	    strlen(arguments));
	(void)fake_took(f.vault, IPC_SEAL_CONTEXT, &s);
	assert_memory_equal(&s.execution, &j->execution, sizeof(s.execution));
	assert_memory_equal(&s.epoch, &a->sandbox_epoch, sizeof(s.epoch));
	assert_int_equal(s.listener, LISTENER_LOCAL);
	assert_int_equal(s.kind, CONTEXT_TOOL);
	assert_int_equal(
	    tlv_find(s.material.p, s.material.n, CTX_PREIMAGE, &t), 1);
	assert_memory_equal(t.p, "PREIMAGE", 8);
	assert_int_equal(
	    tlv_find(s.material.p, s.material.n, CTX_APPROVAL, &t), 1);
	assert_memory_equal(t.p, "SEAL", 4);
	assert_int_equal(
	    tlv_find(s.material.p, s.material.n, CTX_ARGS_SHA256, &t), 1);
	assert_memory_equal(t.p, j->args_sha256.b, 32);
	/* Nothing is made known before the verdict. */
	assert_int_equal(fake_db_waits(NULL), 0);
	assert_int_equal(fake_peer_waits(f.sandboxd), 0);
}

static void
intent_has_what_is_recorded(void **unused)
{
	struct job *j = until_intent();
	struct ipc_bytes b;
	struct ipc_hash h;

	assert_int_equal(j->state, JOB_INTENT);
	b = fake_db_bytes("call_insert", 0);
	assert_memory_equal(b.p, j->execution.b, 16);
	b = fake_db_bytes("call_insert", 1);
	assert_memory_equal(b.p, id_of(7).b, 16);
	b = fake_db_bytes("call_insert", 3);
	assert_memory_equal(b.p, a->sandbox_epoch.b, 16);
	assert_true(fake_db_null("call_insert", 4)); /* no limits were set */
	fake_db_is("call_insert", 5, "local");
	fake_db_is("call_insert", 6, "local");
	fake_db_is("call_insert", 7, "s__t");
	sha256(arguments, strlen(arguments), &h);
	b = fake_db_bytes("call_insert", 8);
	assert_memory_equal(b.p, h.b, 32);
	fake_db_is("call_insert", 9, arguments);
	fake_db_is("call_insert", 10, "unit 1");
	fake_db_is("call_insert", 11, "2026-07-28");
	assert_true(fake_db_null("call_insert", 14)); /* trace */
	assert_true(fake_db_null("call_insert", 16)); /* session */
}

/* The gateway hears the id after both the commit and the sandbox's OK. */
static void
admitted(bool commit_last)
{
	struct ipc_id execution;
	struct ipc_run_id m;
	struct job *j = until_intent();

	execution = j->execution;
	vault_seals();
	if (commit_last) {
		sandbox_holds();
		assert_int_equal(fake_peer_waits(f.local), 0);
		assert_int_equal(job()->state, JOB_INTENT);
		row_is_made();
	} else {
		row_is_made();
		assert_int_equal(fake_peer_waits(f.local), 0);
		assert_int_equal(job()->state, JOB_SEALING);
		sandbox_holds();
	}
	assert_int_equal(fake_took(f.local, IPC_RUN_ID, &m), REQUEST);
	assert_memory_equal(&m.execution, &execution, sizeof(execution));
	assert_int_equal(m.timeout_ms, conf_int(a->proc.conf, "call_timeout"));
	assert_int_equal(a->njobs, 0);
	assert_int_equal(a->job_bytes, 0);
	/* From now on sandboxd answers for the row, and admind does not close
	 * it. */
	assert_true(idset_has(&a->live, &execution));
	assert_int_equal(a->ncloses, 0);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
commit_then_held(void **unused)
{
	admitted(false);
}

static void
held_then_commit(void **unused)
{
	admitted(true);
}

static void
held_context_is_the_sealed_one(void **unused)
{
	struct job *j = until_intent();
	struct ipc_held h;

	vault_seals();
	(void)fake_took(f.sandboxd, IPC_HELD, &h);
	assert_memory_equal(&h.execution, &j->execution, sizeof(h.execution));
	assert_int_equal(h.listener, LISTENER_LOCAL);
	assert_true(ipc_streq(h.context, "SEALED"));
	assert_true(ipc_streq(h.arguments, arguments));
}

static void
second_call_asks_less(void **unused)
{
	admitted(false);
	authorise(REQUEST, "s__t", arguments);
	/* Neither the lookup nor the verdict is asked for again. */
	assert_int_equal(fake_db_sent("call_lookup"), 1);
	assert_int_equal(fake_peer_waits(f.check), 0);
	assert_int_equal(job()->state, JOB_INTENT);
	assert_int_equal(fake_db_waits("call_insert"), 1);
	/* The row decides: a remembered version is looked up once more. */
	no_row("not_approved");
	assert_int_equal(job()->state, JOB_LOOKUP);
	assert_int_equal(fake_db_waits("call_lookup"), 1);
	answer_lookup(&(struct found){.none = true, .revoked = true});
	refused_as(FAILURE_REVOKED, "the tool's approval was withdrawn");
}

/* ---- refused before a row ---- */

static void
unknown_tool(void **unused)
{
	authorise(REQUEST, "s__t", arguments);
	fake_db_answer("call_lookup");
	refused_as(FAILURE_UNKNOWN_TOOL, "no tool has this name");
	assert_int_equal(a->metrics->refused[FAILURE_UNKNOWN_TOOL], 1);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
other_kinds_are_no_tools(void **unused)
{
	authorise(REQUEST, "s__t", arguments);
	answer_lookup(&(struct found){.object = "prompt"});
	refused_as(FAILURE_UNKNOWN_TOOL, "no tool has this name");
	authorise(REQUEST, "s__t", arguments);
	answer_lookup(&(struct found){.object = "source"});
	refused_as(FAILURE_UNKNOWN_TOOL, "no tool has this name");
}

static void
what_does_not_serve(void **unused)
{
	authorise(REQUEST, "s__t", arguments);
	answer_lookup(&(struct found){.none = true});
	refused_as(FAILURE_NOT_APPROVED, "no version of this tool is approved");
	authorise(REQUEST, "s__t", arguments);
	answer_lookup(&(struct found){.none = true, .revoked = true});
	refused_as(FAILURE_REVOKED, "the tool's approval was withdrawn");
	authorise(REQUEST, "s__t", arguments);
	answer_lookup(&(struct found){.stopped = "bob stopped it"});
	refused_as(FAILURE_STOPPED, "bob stopped it");
	authorise(REQUEST, "s__t", arguments);
	answer_lookup(&(struct found){.missing = "module m is not granted"});
	error_as(FAILURE_MISSING_GRANT, "Error: module m is not granted");
	assert_int_equal(fake_db_sent("call_insert"), 0);
	assert_int_equal(fake_peer_waits(f.vault), 0);
}

static void
wrong_arguments_make_no_row(void **unused)
{
	struct ipc_check_errors e = {.failure = FAILURE_INVALID_ARGUMENTS,
	    .summary = ipc_str("Error: one argument is wrong"),
	    .json = ipc_str("[{\"pointer\":\"/n\"}]")};
	struct ipc_check_arguments q;

	(void)until_checking();
	(void)fake_took(f.check, IPC_CHECK_ARGUMENTS, &q);
	fake_answers(f.check, IPC_CHECK_ERRORS, &e);
	error_as(FAILURE_INVALID_ARGUMENTS, "Error: one argument is wrong");
	assert_int_equal(fake_db_waits(NULL), 0);
	/* The context that is sealed now goes nowhere. */
	vault_seals();
	assert_int_equal(fake_peer_waits(f.sandboxd), 0);
}

static void
processes_that_are_away(void **unused)
{
	struct ipc_check_arguments q;

	fake_client_up(a->check, false);
	authorise(REQUEST, "s__t", arguments);
	answer_lookup(&(struct found){0});
	refused_as(FAILURE_BUSY, "the checking process is not reachable");
	fake_client_up(a->check, true);

	(void)until_checking();
	(void)fake_took(f.check, IPC_CHECK_ARGUMENTS, &q);
	fake_goes(f.check, FAILURE_BUSY);
	refused_as(FAILURE_BUSY, "a process did not answer");

	a->sandbox_ready = false;
	(void)until_intent();
	refused_as(FAILURE_SANDBOX_UNAVAILABLE, "the sandbox is not reachable");
	a->sandbox_ready = true;

	fake_client_up(a->vault, false);
	/* the verdict is remembered by now */
	authorise(REQUEST, "s__t", arguments);
	refused_as(FAILURE_VAULT_UNAVAILABLE, "the vault is not reachable");
	fake_client_up(a->vault, true);

	fake_db_up(false);
	authorise(REQUEST, "s__t", arguments);
	refused_as(
	    FAILURE_STORAGE_UNAVAILABLE, "the database is not reachable");
	fake_db_up(true);
	assert_int_equal(fake_db_sent("call_insert"), 0);
}

static void
tunnel_needs_a_credential(void **unused)
{
	struct ipc_authorise m = {
	    .tool = ipc_str("s__t"), .arguments = ipc_str("{}")};
	struct ipc_refused no;

	assert_int_equal(
	    call_message(f.tunnelled, fake_frame(IPC_AUTHORISE, REQUEST, &m)),
	    0);
	assert_int_equal(fake_took(f.tunnel, IPC_REFUSED, &no), REQUEST);
	assert_int_equal(no.failure, FAILURE_UNAUTHENTICATED);
	assert_int_equal(a->njobs, 0);
	assert_int_equal(a->metrics->auth_failed, 1);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
rate_is_asked_before_the_catalogue(void **unused)
{
	limits_reload(a);
	fake_db_row("snin", "rate_principal_per_minute", INT64_C(60));
	fake_db_answer("limits_read");
	authorise(REQUEST, "s__t", arguments);
	assert_int_equal(job()->state, JOB_NEW);
	assert_int_equal(fake_db_waits("call_lookup"), 0);
	fake_db_row("iiii", INT64_C(0), INT64_C(5000), INT64_C(60), INT64_C(8));
	fake_db_answer("rate_lease");
	refused_as(FAILURE_RATE_LIMITED, "you call too often");
	assert_int_equal(fake_db_sent("call_lookup"), 0);
}

static void
too_many_are_refused_at_once(void **unused)
{
	char name[16];

	/* not the same call, which a breaker would stop */
	for (unsigned i = 0; i < JOBS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "s__t%u", i);
		authorise(i, name, "{}");
	}
	assert_int_equal(a->njobs, JOBS_MAX);
	assert_int_equal(fake_peer_waits(f.local), 0);
	authorise(REQUEST, "s__t", "{}");
	assert_int_equal(a->njobs, JOBS_MAX);
	refusal_is(FAILURE_BUSY, "too many calls are in work");
	fake_end_all();
	assert_int_equal(a->njobs, 0);
	assert_int_equal(a->job_bytes, 0);
}

static void
waits_for_the_start(void **unused)
{
	a->started = false;
	authorise(REQUEST, "s__t", arguments);
	assert_int_equal(job()->state, JOB_NEW);
	assert_int_equal(fake_db_waits(NULL), 0);
	call_started(a);
	assert_int_equal(job()->state, JOB_LOOKUP);
	assert_int_equal(fake_db_waits("call_lookup"), 1);
}

static unsigned managed;

static void
manage(struct job *j)
{
	managed++;
	job_refuse(j, FAILURE_FORBIDDEN, "not here");
}

static void
management_tools_go_elsewhere(void **unused)
{
	a->manage = manage;
	managed = 0;
	authorise(REQUEST, "mcpbox_guide", "{}");
	assert_int_equal(managed, 1);
	refused_as(FAILURE_FORBIDDEN, "not here");
	assert_int_equal(fake_db_waits(NULL), 0);
}

/* ---- runs of endpoints ---- */

static unsigned noted;

static void
note(void *arg, const struct ipc_id *id)
{
	noted++;
	if (arg != NULL)
		assert_memory_equal(id, arg, sizeof(*id));
}

/* A document with the endpoint home, and the local client there. */
static void
authorise_at_home(struct access *x)
{
	struct ipc_authorise m = {.tool = ipc_str("s__t"),
	    .endpoint = ipc_str("home"),
	    .arguments = ipc_str(arguments),
	    .protocol = ipc_str("2026-07-28")};
	const uint8_t local = 1u << LISTENER_LOCAL;
	struct buf all, b;
	struct err err;

	if (a->access == NULL) {
		buf_init(&all, IPC_FRAME_MAX);
		buf_init(&b, IPC_FRAME_MAX);
		tlv_puts(&b, ENDPOINT_NAME, "home");
		tlv_puts(&b, ENDPOINT_ALLOW, "*");
		tlv_put(&b, ENDPOINT_LISTENERS, &local, 1);
		tlv_put(&all, ACCESS_ENDPOINT, b.p, b.len);
		x->now = compiled_new(ipc_bytes(all.p, all.len), &err);
		assert_non_null(x->now);
		x->narrowed = narrow_init();
		assert_non_null(x->narrowed);
		x->ready = true;
		a->access = x;
		buf_free(&all);
		buf_free(&b);
		tokens_load(a, NULL, NULL);
		fake_db_row("nnnnnnnnnbn", 0);
		fake_db_answer("tokens_read");
	}
	assert_int_equal(
	    call_message(f.gateway, fake_frame(IPC_AUTHORISE, REQUEST, &m)), 0);
}

/* The runs that are noted are few. Calls that were refused take no place. */
static void
runs_alone_are_noted(void **unused)
{
	static struct access x;
	struct ipc_id execution;
	struct ipc_run_id m;

	noted = 0;
	memset(&x, 0, sizeof(x));
	authorise_at_home(&x);
	fake_db_answer("call_lookup");
	refused_as(FAILURE_UNKNOWN_TOOL, "no tool has this name");
	narrow_runs(x.narrowed, ipc_str("home"), note, NULL);
	assert_int_equal(noted, 0);
	authorise_at_home(&x);
	answer_lookup(&(struct found){0});
	execution = job()->execution;
	check_says_ok();
	vault_seals();
	row_is_made();
	narrow_runs(x.narrowed, ipc_str("home"), note, NULL);
	assert_int_equal(noted, 0);
	sandbox_holds();
	assert_int_equal(fake_took(f.local, IPC_RUN_ID, &m), REQUEST);
	narrow_runs(x.narrowed, ipc_str("home"), note, &execution);
	assert_int_equal(noted, 1);
	narrow_drop(x.narrowed);
	compiled_free(x.now);
	a->access = NULL;
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {T(asks_check_and_vault_at_once),
	    T(intent_has_what_is_recorded), T(commit_then_held),
	    T(held_then_commit), T(held_context_is_the_sealed_one),
	    T(second_call_asks_less), T(unknown_tool),
	    T(other_kinds_are_no_tools), T(what_does_not_serve),
	    T(wrong_arguments_make_no_row), T(processes_that_are_away),
	    T(tunnel_needs_a_credential), T(rate_is_asked_before_the_catalogue),
	    T(too_many_are_refused_at_once), T(waits_for_the_start),
	    T(management_tools_go_elsewhere), T(runs_alone_are_noted)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
