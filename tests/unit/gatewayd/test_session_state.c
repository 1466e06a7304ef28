/*
 * What sessions asked to be remembered: bounded, and the one used longest ago
 * goes first.
 */
#include "session_state.h"
#include "unit.h"

static struct session
session(unsigned n)
{
	struct session s = {0};

	s.id.b[0] = (uint8_t)n;
	s.id.b[1] = (uint8_t)(n >> 8);
	return s;
}

static void
test_levels(void **state)
{
	struct session_states *t = session_state_new();
	struct session s;
	unsigned i;

	(void)state;
	assert_non_null(t);
	s = session(0);
	assert_int_equal(session_state_level(t, &s.id), SESSION_LEVEL_DEFAULT);
	for (i = 0; i < SESSION_STATES_MAX; i++) {
		s = session(i);
		assert_int_equal(session_state_set_level(t, &s, 7), 0);
	}
	/* The first is used again, so the second one goes for the next. */
	s = session(0);
	assert_int_equal(session_state_set_level(t, &s, 6), 0);
	s = session(SESSION_STATES_MAX);
	assert_int_equal(session_state_set_level(t, &s, 5), 0);
	assert_int_equal(session_state_level(t, &s.id), 5);
	s = session(0);
	assert_int_equal(session_state_level(t, &s.id), 6);
	s = session(1);
	assert_int_equal(session_state_level(t, &s.id), SESSION_LEVEL_DEFAULT);
	s = session(2);
	assert_int_equal(session_state_level(t, &s.id), 7);
	session_state_forget(t, &s.id);
	assert_int_equal(session_state_level(t, &s.id), SESSION_LEVEL_DEFAULT);
	session_state_free(t);
}

static void
test_subscriptions(void **state)
{
	struct session_states *t = session_state_new();
	struct session s = session(3), other = session(259); /* one chain */
	struct ipc_hash v = {{1}};
	char uri[32], *large;
	unsigned i, n;

	(void)state;
	assert_non_null(t);
	for (i = 0; i < SESSION_SUBSCRIPTIONS_MAX; i++) {
		snprintf(uri, sizeof(uri), "t:%u", i);
		assert_int_equal(session_state_subscribe(t, &s, uri, &v), 0);
	}
	assert_int_equal(session_state_subscribe(t, &s, "t:0", &v), 0);
	assert_int_equal(session_state_subscribe(t, &s, "t:x", &v), -1);
	assert_true(session_state_subscribed(t, &s.id, "t:63"));
	assert_false(session_state_subscribed(t, &other.id, "t:63"));
	assert_false(session_state_subscribed(t, &s.id, "t:x"));
	session_state_unsubscribe(t, &s, "t:1");
	session_state_unsubscribe(t, &other, "t:2");
	assert_false(session_state_subscribed(t, &s.id, "t:1"));
	assert_int_equal(session_state_subscribe(t, &s, "t:x", &v), 0);
	(void)session_state_watches(t, &s.id, &n);
	assert_int_equal(n, SESSION_SUBSCRIPTIONS_MAX);
	/* The log level of the same session is another matter. */
	assert_int_equal(session_state_level(t, &s.id), SESSION_LEVEL_DEFAULT);
	session_state_forget(t, &s.id);
	assert_false(session_state_subscribed(t, &s.id, "t:x"));
	/* All together are bounded, too. */
	large = malloc(SESSION_SUBSCRIPTION_BYTES + 2);
	assert_non_null(large);
	memset(large, 'a', SESSION_SUBSCRIPTION_BYTES + 1);
	large[SESSION_SUBSCRIPTION_BYTES + 1] = '\0';
	assert_int_equal(session_state_subscribe(t, &s, large, &v), -1);
	large[SESSION_SUBSCRIPTION_BYTES] = '\0';
	assert_int_equal(session_state_subscribe(t, &s, large, &v), 0);
	assert_int_equal(session_state_subscribe(t, &other, "a", &v), -1);
	session_state_unsubscribe(t, &s, large);
	assert_int_equal(session_state_subscribe(t, &other, "a", &v), 0);
	free(large);
	session_state_free(t);
}

/* Who asks for too much loses its own: other principals' sessions stay. */
static void
test_whose(void **state)
{
	struct session_states *t = session_state_new();
	struct session a = session(0), s;
	struct ipc_hash v = {{1}};
	char *large = malloc(1024 * 1024 + 1), uri[16];
	unsigned i, refused = 0;

	(void)state;
	assert_non_null(t);
	assert_non_null(large);
	a.principal.b[0] = 1;
	assert_int_equal(session_state_set_level(t, &a, 7), 0);
	assert_int_equal(session_state_subscribe(t, &a, "mine", &v), 0);
	for (i = 1; i < SESSION_STATES_MAX + 500; i++) {
		s = session(i);
		s.principal.b[0] = 2;
		assert_int_equal(session_state_set_level(t, &s, 3), 0);
	}
	assert_int_equal(session_state_level(t, &a.id), 7);
	assert_true(session_state_subscribed(t, &a.id, "mine"));
	/* Bytes: the other one fills them, and is refused more ... */
	memset(large, 'x', 1024 * 1024);
	large[1024 * 1024] = '\0';
	for (i = 0; i < 9; i++) {
		large[0] = (char)('a' + i);
		refused += session_state_subscribe(t, &s, large, &v) < 0;
	}
	assert_true(refused >= 1);
	/* ... while the first still gets some. */
	for (i = 0; i < 10; i++) {
		snprintf(uri, sizeof(uri), "t:%u", i);
		assert_int_equal(session_state_subscribe(t, &a, uri, &v), 0);
	}
	large[0] = 'A';
	assert_int_equal(session_state_subscribe(t, &a, large, &v), 0);
	assert_true(session_state_subscribed(t, &a.id, "mine"));
	free(large);
	session_state_free(t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_levels),
	    cmocka_unit_test(test_subscriptions),
	    cmocka_unit_test(test_whose),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
