/*
 * Grants that change while calls run (regrant.c), with a fake database and
 * fake processes: done() says that the change is in force only if it is.
 */
#include "context.h"
#include "fake_admind.h"
#include "ids.h"
#include "regrant.h"
#include "unit.h"

static struct fake f;
static struct admind *a;
static unsigned done_count;
static bool told;
static bool no_memory; /* for regrant.c, whose pieces are small */

enum { SMALL = 64 };

void *__real_calloc(size_t, size_t);
void *__real_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
void *__wrap_malloc(size_t);

void *
__wrap_calloc(size_t n, size_t size)
{
	return no_memory && n * size < SMALL ? NULL : __real_calloc(n, size);
}

void *
__wrap_malloc(size_t size)
{
	return no_memory && size < SMALL ? NULL : __real_malloc(size);
}

static void
done(void *arg, bool in_force)
{
	assert_ptr_equal(arg, &f);
	done_count++;
	told = in_force;
}

static struct ipc_id
id_of(uint8_t byte)
{
	struct ipc_id id;

	memset(id.b, byte, sizeof(id.b));
	return id;
}

static int
setup(void **unused)
{
	const struct ipc_id call = id_of(1);

	fake_admind(&f, NULL);
	a = f.a;
	done_count = 0;
	told = no_memory = false;
	return idset_add(&a->live, &call);
}

static int
teardown(void **unused)
{
	no_memory = false;
	fake_admind_free(&f, false);
	return 0;
}

/* The database's answer: these servers, from number 2 on, have calls. */
static void
servers(uint8_t n)
{
	struct ipc_id id[4];

	for (uint8_t i = 0; i < n; i++) {
		id[i] = id_of((uint8_t)(i + 2));
		fake_db_row("us", &id[i], "");
	}
	fake_db_answer("regrant_servers");
}

static void
vault_seals(void)
{
	struct ipc_seal_context q;
	struct ipc_sealed s = {.context = ipc_str("SEALED")};

	(void)fake_took(f.vault, IPC_SEAL_CONTEXT, &q);
	assert_int_equal(q.kind, CONTEXT_GRANTS);
	fake_answers(f.vault, IPC_SEALED, &s);
}

static void
sandbox_knows(void)
{
	struct ipc_regrant m;
	struct ipc_ok ok = {0};

	(void)fake_took(f.sandboxd, IPC_REGRANT, &m);
	fake_answers(f.sandboxd, IPC_OK, &ok);
}

static void
in_force_when_the_sandbox_knows(void **unused)
{
	regrant_run(a, done, &f);
	servers(1);
	vault_seals();
	assert_int_equal(done_count, 0);
	sandbox_knows();
	assert_int_equal(done_count, 1);
	assert_true(told);
	assert_false(a->regrant_again);
}

static void
in_force_without_calls(void **unused)
{
	const struct ipc_id call = id_of(1);

	idset_del(&a->live, &call);
	regrant_run(a, done, &f);
	assert_int_equal(done_count, 1);
	assert_true(told);
	assert_false(a->regrant_again);
	assert_int_equal(fake_db_waits(NULL), 0);
}

static void
in_force_when_the_calls_are_cancelled(void **unused)
{
	const struct ipc_id call = id_of(1);
	struct ipc_seal_context q;
	struct ipc_cancel c;

	regrant_run(a, done, &f);
	servers(1);
	(void)fake_took(f.vault, IPC_SEAL_CONTEXT, &q);
	fake_goes(f.vault, FAILURE_VAULT_UNAVAILABLE);
	assert_int_equal(done_count, 0);
	fake_db_row("u", &call);
	fake_db_answer("regrant_calls");
	(void)fake_took(f.sandboxd, IPC_CANCEL, &c);
	assert_memory_equal(&c.execution, &call, sizeof(call));
	assert_int_equal(done_count, 1);
	assert_true(told);
}

/* The calls of that server are not known, so they go on. */
static void
not_in_force_if_no_call_could_be_cancelled(void **unused)
{
	struct ipc_seal_context q;

	regrant_run(a, done, &f);
	servers(1);
	(void)fake_took(f.vault, IPC_SEAL_CONTEXT, &q);
	fake_goes(f.vault, FAILURE_VAULT_UNAVAILABLE);
	fake_db_fail("regrant_calls", FAILURE_STORAGE_UNAVAILABLE, "it went");
	assert_int_equal(done_count, 1);
	assert_false(told);
	assert_true(a->regrant_again);
}

static void
not_in_force_without_the_database(void **unused)
{
	regrant_run(a, done, &f);
	fake_db_fail("regrant_servers", FAILURE_BUSY, "it took too long");
	assert_int_equal(done_count, 1);
	assert_false(told);
	assert_true(a->regrant_again);
	/* The next tick's run mends it. */
	regrant_run(a, done, &f);
	assert_false(a->regrant_again);
	servers(0);
	assert_int_equal(done_count, 2);
	assert_true(told);
}

static void
not_in_force_without_memory(void **unused)
{
	no_memory = true;
	regrant_run(a, done, &f);
	no_memory = false;
	assert_int_equal(done_count, 1);
	assert_false(told);
	assert_true(a->regrant_again);
	assert_int_equal(fake_db_waits(NULL), 0);
}

/* Memory for the run, and none for its servers. */
static void
not_in_force_without_memory_for_a_server(void **unused)
{
	const struct ipc_id server = id_of(2);

	regrant_run(a, done, &f);
	fake_db_row("us", &server, "");
	no_memory = true;
	fake_db_answer("regrant_servers");
	no_memory = false;
	assert_int_equal(done_count, 1);
	assert_false(told);
	assert_true(a->regrant_again);
	assert_int_equal(fake_peer_waits(f.vault), 0);
}

int
main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {T(in_force_when_the_sandbox_knows),
	    T(in_force_without_calls), T(in_force_when_the_calls_are_cancelled),
	    T(not_in_force_if_no_call_could_be_cancelled),
	    T(not_in_force_without_the_database),
	    T(not_in_force_without_memory),
	    T(not_in_force_without_memory_for_a_server)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
