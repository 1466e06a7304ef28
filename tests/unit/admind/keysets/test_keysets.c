/* Fetched keys of issuers: how long they serve, when they are fetched again,
 * the meaning of an unknown key. The clock is the test's. */
#include "keysets.h"
#include "tlv.h"
#include "unit.h"

enum { S = 1000, MIN = 60 * S, HOUR = 60 * MIN, START = 7 * S };

static struct keysets all;
static struct keyset *home;

static void
follow(const char *name, const char *source)
{
	struct keysets_source one = {ipc_str(name), ipc_str(source)};

	keysets_follow(&all, &one, 1);
	home = &all.set[0];
}

static int
start(void **unused)
{
	memset(&all, 0, sizeof(all));
	follow("home", "SOURCE");
	return 0;
}

static int
stop(void **unused)
{
	keysets_free(&all);
	return 0;
}

/* A fetch that begins at `now` and finds these keys, one letter each. */
static bool
finds(const char *keys, uint64_t now, uint64_t age_s)
{
	struct buf b;
	bool gone;

	buf_init(&b, 1024);
	for (; *keys != '\0'; keys++)
		tlv_put(&b, ISSUER_KEY, keys, 1);
	keysets_begin(home, now);
	gone = keysets_good(home, ipc_bytes(b.p, b.len), age_s, now * 1000);
	buf_free(&b);
	return gone;
}

static void
fails(uint64_t now)
{
	keysets_begin(home, now);
	keysets_bad(home, ipc_str("away"), now + S, KEYSETS_AGAIN_MS);
}

static size_t
serving(uint64_t now)
{
	struct buf b;
	size_t n;

	buf_init(&b, 1024);
	keysets_put(&all, ipc_str("home"), now, &b);
	n = b.len;
	buf_free(&b);
	return n;
}

static bool
due(uint64_t now)
{
	return keysets_due(&all, now) == home;
}

static bool
absent(uint64_t now)
{
	return keysets_lacks(&all, ipc_str("home"), now) == KEYSETS_ABSENT;
}

/* The age that a server says holds between 5 minutes and a day. */
static void
ages(void **unused)
{
	static const struct {
		uint64_t said_s, kept;
	} rows[] = {{0, 5 * MIN}, {299, 5 * MIN}, {301, 301 * S}, {3600, HOUR},
	    {86400, 24 * HOUR}, {86401, 24 * HOUR}, {UINT64_MAX, 24 * HOUR}};

	assert_true(due(START));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)finds("a", START, rows[i].said_s);
		assert_false(due(START + rows[i].kept - 1));
		assert_true(due(START + rows[i].kept));
	}
}

/* An issuer that is away: its keys serve a day longer than they are fresh. */
static void
away(void **unused)
{
	uint64_t stale = START + HOUR, end = stale + 24 * HOUR;

	(void)finds("ab", START, 3600);
	assert_int_equal(home->nkeys, 2);
	assert_true(due(stale));
	fails(stale);
	assert_string_equal(home->why, "away");
	assert_false(due(stale + S + KEYSETS_AGAIN_MS - 1));
	assert_true(due(stale + S + KEYSETS_AGAIN_MS));
	assert_true(serving(end - 1) > 0);
	assert_int_equal(serving(end), 0);
	/* and they are back with the issuer */
	assert_false(finds("ab", end, 3600));
	assert_true(serving(end) > 0);
	assert_string_equal(home->why, "");
}

/* A token of an unknown key can't be judged until the issuer was asked. */
static void
unknown_key(void **unused)
{
	uint64_t at = START + 1000 * S;

	assert_false(absent(START)); /* never fetched */
	keysets_begin(home, START);
	assert_false(absent(START)); /* under way */
	(void)finds("a", START, 3600);
	assert_true(absent(START));
	assert_true(absent(START + KEYSETS_ASK_MS - 1));
	assert_false(due(START + KEYSETS_ASK_MS - 1));
	/* A flood after that asks once. */
	for (int i = 0; i < 1000; i++)
		assert_false(absent(at + (uint64_t)i));
	assert_true(due(at + 1000));
	keysets_begin(home, at + 1000);
	for (int i = 0; i < 1000; i++)
		assert_false(absent(at + 1000 + (uint64_t)i));
	assert_false(due(at + 2000));
	(void)finds("a", at + 1000, 3600);
	for (uint64_t t = 0; t < KEYSETS_ASK_MS; t += 10)
		assert_true(absent(at + 1000 + t));
	assert_false(due(at + 1000 + KEYSETS_ASK_MS - 1));
}

/* An issuer that does not answer says nothing about a key. */
static void
unknown_while_away(void **unused)
{
	fails(START);
	assert_false(absent(START + S));
	assert_false(due(START + 2 * S));
	assert_false(absent(START + KEYSETS_ASK_MS));
	assert_true(due(START + KEYSETS_ASK_MS));
	(void)finds("a", START + KEYSETS_ASK_MS, 3600);
	fails(START + HOUR);
	assert_false(absent(START + HOUR + S));
	assert_false(
	    keysets_lacks(&all, ipc_str("other"), START) == KEYSETS_ABSENT);
}

/* A person asks for a fetch: at most once in 30 s, as strangers do. */
static void
asked_by_a_person(void **unused)
{
	uint64_t at = START + 1000 * S, wait = 1;

	assert_int_equal(
	    keysets_refresh(home, START, &wait), KEYSETS_REFRESH_DUE);
	assert_int_equal(wait, 0);
	keysets_begin(home, START);
	assert_int_equal(
	    keysets_refresh(home, START + S, &wait), KEYSETS_REFRESH_RUNNING);
	(void)finds("a", START, 3600);
	assert_int_equal(
	    keysets_refresh(home, START + 2 * S, &wait), KEYSETS_REFRESH_EARLY);
	assert_int_equal(wait, KEYSETS_ASK_MS - 2 * S);
	assert_false(due(START + KEYSETS_ASK_MS)); /* nor does it come later */
	/* Keys that are fresh are fetched all the same, and once. */
	assert_false(due(at));
	for (int i = 0; i < 1000; i++)
		assert_int_equal(
		    keysets_refresh(home, at, &wait), KEYSETS_REFRESH_DUE);
	assert_true(due(at));
	assert_true(serving(at) > 0);
	fails(at);
	assert_false(due(at + 2 * S));
	for (uint64_t t = S; t < KEYSETS_ASK_MS; t += S) {
		assert_int_equal(keysets_refresh(home, at + t, &wait),
		    KEYSETS_REFRESH_EARLY);
		assert_int_equal(wait, KEYSETS_ASK_MS - t);
	}
	assert_int_equal(keysets_refresh(home, at + KEYSETS_ASK_MS, &wait),
	    KEYSETS_REFRESH_DUE);
	assert_true(due(at + KEYSETS_ASK_MS));
}

/* A key that an issuer took away is told, one that it added is not. */
static void
rotation(void **unused)
{
	assert_false(finds("a", START, 0));
	assert_false(finds("ab", START + HOUR, 0));
	assert_false(finds("ba", START + 2 * HOUR, 0));
	assert_true(finds("b", START + 3 * HOUR, 0));
	assert_true(finds("c", START + 4 * HOUR, 0));
}

/* Another document: equal sources keep their keys, others begin again. */
static void
another_document(void **unused)
{
	struct keysets_source two[] = {{ipc_str("new"), ipc_str("X")},
	    {ipc_str("home"), ipc_str("SOURCE")}};

	(void)finds("a", START, 3600);
	keysets_follow(&all, two, 2);
	assert_int_equal(all.n, 2);
	home = keysets_find(&all, ipc_str("home"));
	assert_int_equal(home->nkeys, 1);
	assert_true(serving(START) > 0);
	assert_string_equal(keysets_due(&all, START)->name, "new");
	follow("home", "OTHER SOURCE");
	assert_int_equal(serving(START), 0);
	assert_true(due(START));
	keysets_follow(&all, NULL, 0);
	assert_null(keysets_find(&all, ipc_str("home")));
	assert_null(keysets_due(&all, START));
}

/* A long sentence is cut, none becomes one. */
static void
sentences(void **unused)
{
	char text[2 * KEYSETS_WHY_MAX];

	memset(text, 'x', sizeof(text));
	keysets_begin(home, START);
	keysets_bad(home, ipc_bytes(text, sizeof(text)), START, S);
	assert_int_equal(strlen(home->why), KEYSETS_WHY_MAX - 1);
	keysets_bad(home, ipc_bytes(NULL, 0), START, S);
	assert_string_equal(home->why, "the fetch failed");
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
	    T(ages),
	    T(away),
	    T(unknown_key),
	    T(unknown_while_away),
	    T(asked_by_a_person),
	    T(rotation),
	    T(another_document),
	    T(sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
