/*
 * Session tokens: what was put in comes out; another listener, principal, key
 * or time does not; no single changed character passes.
 */
#include "session.h"
#include "unit.h"

static const uint8_t key[KEY_LEN] = {1, 2, 3};
enum { NOW = 1000, THEN = 5000 };

static void
make(struct session *s, char text[SESSION_TEXT_LEN + 1])
{
	session_make(key, LISTENER_LOCAL, MCP_REV_2025_06_18, THEN, "alice", "",
	    CLIENT_ROOTS | CLIENT_SAMPLING, s, text);
}

static void
test_round_trip(void **state)
{
	struct session s, t;
	char text[SESSION_TEXT_LEN + 1], again[SESSION_TEXT_LEN + 1];
	size_t i;

	(void)state;
	make(&s, text);
	assert_int_equal(strlen(text), SESSION_TEXT_LEN);
	assert_true(SESSION_TEXT_LEN <= 512);
	for (i = 0; text[i] != '\0'; i++) /* visible ASCII, as MCP asks */
		assert_true(text[i] >= 0x21 && text[i] <= 0x7e);
	assert_int_equal(
	    session_open(key, text, NOW, LISTENER_LOCAL, "alice", "", &t), 0);
	assert_memory_equal(&t.id, &s.id, sizeof(s.id));
	assert_int_equal(t.rev, MCP_REV_2025_06_18);
	assert_int_equal(t.expires_ms, THEN);
	assert_int_equal(t.declared, CLIENT_ROOTS | CLIENT_SAMPLING);
	/* No two alike. */
	make(&t, again);
	assert_string_not_equal(text, again);
}

static void
test_refused(void **state)
{
	static const uint8_t other[KEY_LEN] = {1, 2, 4};
	struct session s, t;
	char text[SESSION_TEXT_LEN + 4], at_home[SESSION_TEXT_LEN + 1];
	size_t i;
	char c;

	(void)state;
	make(&s, text);
	assert_int_equal(
	    session_open(key, text, NOW, LISTENER_TUNNEL, "alice", "", &t), -1);
	/* An endpoint, and the other way round. */
	assert_int_equal(
	    session_open(key, text, NOW, LISTENER_LOCAL, "alice", "home", &t),
	    -1);
	session_make(key, LISTENER_LOCAL, MCP_REV_2025_06_18, THEN, "alice",
	    "home", 0, &s, at_home);
	assert_int_equal(session_open(key, at_home, NOW, LISTENER_LOCAL,
			     "alice", "home", &t),
	    0);
	assert_int_equal(
	    session_open(key, at_home, NOW, LISTENER_LOCAL, "alice", "hom", &t),
	    -1);
	assert_int_equal(
	    session_open(key, at_home, NOW, LISTENER_LOCAL, "alice", "", &t),
	    -1);
	assert_int_equal(
	    session_open(key, text, NOW, LISTENER_LOCAL, "bob", "", &t), -1);
	assert_int_equal(
	    session_open(key, text, NOW, LISTENER_LOCAL, "", "", &t), -1);
	assert_int_equal(
	    session_open(other, text, NOW, LISTENER_LOCAL, "alice", "", &t),
	    -1);
	assert_int_equal(
	    session_open(key, text, THEN, LISTENER_LOCAL, "alice", "", &t), -1);
	assert_int_equal(
	    session_open(key, text, THEN - 1, LISTENER_LOCAL, "alice", "", &t),
	    0);
	assert_int_equal(
	    session_open(key, "", NOW, LISTENER_LOCAL, "alice", "", &t), -1);
	for (i = 0; i < SESSION_TEXT_LEN; i++) {
		c = text[i];
		text[i] = c == 'A' ? 'B' : 'A';
		assert_int_equal(session_open(key, text, NOW, LISTENER_LOCAL,
				     "alice", "", &t),
		    -1);
		text[i] = c;
	}
	text[SESSION_TEXT_LEN] = 'A';
	text[SESSION_TEXT_LEN + 1] = '\0';
	assert_int_equal(
	    session_open(key, text, NOW, LISTENER_LOCAL, "alice", "", &t), -1);
	text[SESSION_TEXT_LEN - 1] = '\0';
	assert_int_equal(
	    session_open(key, text, NOW, LISTENER_LOCAL, "alice", "", &t), -1);
}

static void
test_ended(void **state)
{
	struct session_ended *e = session_ended_new();
	struct ipc_id id = {{0}};
	unsigned i;

	(void)state;
	assert_non_null(e);
	assert_false(session_ended_has(e, &id));
	assert_int_equal(session_ended_add(e, &id, THEN, NOW), 0);
	assert_int_equal(session_ended_add(e, &id, THEN, NOW), 0);
	assert_true(session_ended_has(e, &id));
	/* Another of the same chain drops it once it has expired. */
	id.b[15] = 1;
	assert_int_equal(session_ended_add(e, &id, THEN * 2, THEN), 0);
	assert_true(session_ended_has(e, &id));
	id.b[15] = 0;
	assert_false(session_ended_has(e, &id));
	/* Bounded: never more than the limit, the newest always in. */
	for (i = 0; i < SESSION_ENDED_MAX + 1000; i++) {
		id.b[0] = (uint8_t)i;
		id.b[1] = (uint8_t)(i >> 8);
		id.b[2] = (uint8_t)(i >> 16);
		id.b[3] = 1;
		assert_int_equal(
		    session_ended_add(e, &id, THEN * 2 + i, THEN), 0);
		if (i % 4096 == 0)
			assert_true(session_ended_has(e, &id));
	}
	/* The first of its chain, which expires first, had to go. */
	memset(&id, 0, sizeof(id));
	id.b[3] = 1;
	assert_false(session_ended_has(e, &id));
	session_ended_free(e);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
