/* The steps of a call: answers of admind's neighbours, and the effect that
 * each must have. Included once, after calls_rig.h. */
#ifndef CALL_STEPS_H
#define CALL_STEPS_H

#include "calls_rig.h"

enum { REQUEST = 77 };

static const char arguments[] = "{\"n\":1}";

/* ---- the neighbours' part ---- */

static inline void
refusal_is(enum failure failure, const char *words)
{
	struct ipc_refused m;

	assert_int_equal(fake_took(f.local, IPC_REFUSED, &m), REQUEST);
	assert_string_equal(
	    failure_info(m.failure)->name, failure_info(failure)->name);
	if (m.message.n != strlen(words) ||
	    memcmp(m.message.p, words, m.message.n) != 0)
		fail_msg("%.*s", (int)m.message.n, (const char *)m.message.p);
	assert_int_equal(fake_peer_waits(f.local), 0);
}

/* And no other call is in work. */
static inline void
refused_as(enum failure failure, const char *words)
{
	refusal_is(failure, words);
	assert_int_equal(a->njobs, 0);
	assert_int_equal(a->job_bytes, 0);
}

/* A result whose text begins so. */
static inline void
error_as(enum failure failure, const char *words)
{
	struct ipc_result m;

	assert_int_equal(fake_took(f.local, IPC_RESULT, &m), REQUEST);
	assert_int_equal(m.is_error, 1);
	assert_string_equal(
	    failure_info(m.failure)->name, failure_info(failure)->name);
	assert_non_null(memmem(m.body.p, m.body.n, words, strlen(words)));
	assert_int_equal(fake_peer_waits(f.local), 0);
	assert_int_equal(a->njobs, 0);
}

/* The arguments are at admind-check, and the context at the vault. */
static inline struct job *
until_checking(void)
{
	authorise(REQUEST, "s__t", arguments);
	if (fake_db_waits("call_lookup") > 0) /* else it is remembered */
		answer_lookup(&(struct found){0});
	return job();
}

static inline void
check_says_ok(void)
{
	struct ipc_check_arguments q;
	struct ipc_check_ok ok = {0};

	(void)fake_took(f.check, IPC_CHECK_ARGUMENTS, &q);
	fake_answers(f.check, IPC_CHECK_OK, &ok);
}

static inline struct job *
until_intent(void)
{
	struct job *j = until_checking();

	check_says_ok();
	return j;
}

static inline void
vault_seals(void)
{
	struct ipc_seal_context q;
	struct ipc_sealed s = {.context = ipc_str("SEALED")};

	(void)fake_took(f.vault, IPC_SEAL_CONTEXT, &q);
	fake_answers(f.vault, IPC_SEALED, &s);
}

static inline void
sandbox_holds(void)
{
	struct ipc_held h;
	struct ipc_ok ok = {0};

	(void)fake_took(f.sandboxd, IPC_HELD, &h);
	fake_answers(f.sandboxd, IPC_OK, &ok);
}

static inline void
row_is_made(void)
{
	fake_db_row("b", 1);
	fake_db_answer("call_insert");
}

/* No row was made: call_open() says why. */
static inline void
no_row(const char *why)
{
	fake_db_answer("call_insert");
	fake_db_row("s", why);
	fake_db_answer("call_open");
}

/* An ending is committed that says so. */
static inline void
row_is_closed(const struct ipc_id *execution, enum failure failure)
{
	struct ipc_bytes id = fake_db_bytes("records_close", 0);

	assert_int_equal(id.n, sizeof(execution->b));
	assert_memory_equal(id.p, execution->b, id.n);
	fake_db_is("records_close", 2, "refused");
	fake_db_is("records_close", 3, failure_info(failure)->name);
	assert_int_equal(a->ncloses, 1);
	fake_db_row("s", "closed");
	fake_db_answer("records_close");
	assert_int_equal(a->ncloses, 0);
}

#endif
