/* How many processes the memory budget leaves a call, and what doctor says. */
#include <event2/event.h>

#include "call_internal.h"
#include "unit.h"

#define MIB ((uint64_t)1 << 20)

static const struct calls_conf conf = {
    .queue = 2,
    .limit = {[LIMIT_MEMORY_BYTES] = 256 * MIB, [LIMIT_PROCESSES] = 64},
    .memory_budget = 4096 * MIB,
};

struct rig {
	struct event_base *base;
	struct calls *calls;
	struct pool *pool;
};

static int
setup(void **state)
{
	static struct rig r;

	r.base = event_base_new();
	r.calls = calls_new(r.base, &conf, NULL);
	r.pool = pool_new(r.base, NULL, 1, &runners_pool_events,
	    calls_runners(r.calls), NULL);
	calls_pool(r.calls, r.pool);
	*state = &r;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *r = *state;

	calls_free(r->calls);
	pool_free(r->pool);
	event_base_free(r->base);
	return 0;
}

/* Nothing here says that a cgroup bounds memory, so the budget does. */
static void
test_processes(void **state)
{
	struct calls *cs = ((struct rig *)*state)->calls;

	assert_int_equal(call_processes(cs, 64, 256 * MIB), 16);
	assert_int_equal(call_processes(cs, 64, 64 * MIB), 64);
	assert_int_equal(call_processes(cs, 1024, 64 * MIB), 64);
	assert_int_equal(call_processes(cs, 4, 256 * MIB), 4);
	/* Never less than a runner needs, unless the version asks for it. */
	assert_int_equal(call_processes(cs, 64, 4096 * MIB), 8);
	assert_int_equal(call_processes(cs, 64, 16384 * MIB), 8);
	assert_int_equal(call_processes(cs, 6, 16384 * MIB), 6);
}

static void
test_layer(void **state)
{
	char text[256];

	calls_memory_layer(((struct rig *)*state)->calls, text, sizeof(text));
	assert_non_null(strstr(text, "call_memory=degraded "));
	assert_non_null(strstr(text, "16 of 64 processes of 256 MiB"));
	assert_true(strlen(text) < sizeof(text) - 16);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_layer, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
