/*
 * What is kept for a client that comes back: ids, order, and every bound.
 */
#include "stream_store.h"
#include "unit.h"

static int owner; /* stands for an exchange */
static const struct ipc_hash alice = {{1}}, mallory = {{2}};

static struct ipc_id
id_of(unsigned n)
{
	struct ipc_id id = {{0}};

	memcpy(id.b, &n, sizeof(n));
	return id;
}

static void
test_ids(void **state)
{
	static const char *const bad[] = {"", "-", "1-2", "1-2-", "1-2-3-4",
	    "1--3", "123456789-1-1", "1-2-3 ", " 1-2-3", "1-2-G", "1-2-A",
	    "-1-2-3", "0x1-2-3", "1-2-3\n"};
	struct stream_store *t = stream_store_new();
	struct ipc_id id = id_of(7), other = id_of(8);
	struct stream_session *s = stream_store_take(t, &id, &alice);
	struct stream_session *o = stream_store_take(t, &other, &alice);
	char text[STREAM_STORE_ID_MAX];
	uint32_t epoch, post, number;
	size_t i;

	(void)state;
	assert_ptr_equal(stream_store_take(t, &id, &alice), s);
	assert_ptr_equal(stream_store_find(t, &other), o);
	assert_int_equal(stream_store_sessions(t), 2);
	/* An epoch of its own: ids of one record name nothing in another. */
	assert_int_not_equal(s->epoch, o->epoch);
	stream_store_id(s, 3, 0xffffffff, text);
	assert_true(strlen(text) < STREAM_STORE_ID_MAX);
	assert_int_equal(stream_store_parse(text, &epoch, &post, &number), 0);
	assert_int_equal(epoch, s->epoch);
	assert_int_equal(post, 3);
	assert_int_equal(number, 0xffffffff);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (stream_store_parse(bad[i], &epoch, &post, &number) == 0)
			fail_msg("taken: \"%s\"", bad[i]);
	stream_store_free(t);
}

/* A replay has the events of its stream alone, in order, from the one named. */
static void
test_replay(void **state)
{
	struct stream_store *t = stream_store_new();
	struct ipc_id id = id_of(1);
	struct stream_session *s = stream_store_take(t, &id, &alice);
	struct stream_post *a = stream_store_open(s, &owner);
	struct stream_post *b = stream_store_open(s, &owner);
	char text[STREAM_STORE_ID_MAX], want[STREAM_STORE_ID_MAX];
	const struct stream_event *e;
	int i;

	(void)state;
	assert_int_equal(a->number, 1);
	assert_int_equal(b->number, 2);
	for (i = 1; i <= 3; i++) {
		stream_store_add(a, "a", 1, i == 3, 5, text);
		stream_store_id(s, 1, (uint32_t)i, want);
		assert_string_equal(text, want);
		stream_store_add(b, "bb", 2, false, 5, text);
	}
	assert_true(a->done);
	assert_false(b->done);
	e = stream_store_next(a, 0);
	assert_int_equal(e->number, 1);
	assert_int_equal(e->n, 1);
	e = stream_store_next(a, 1);
	assert_int_equal(e->number, 2);
	assert_ptr_equal(e->post, a);
	assert_null(stream_store_next(a, 3));
	assert_null(stream_store_next(a, 0xffffffff));
	/* Nobody writes any more: what was sent stays, until it is too old. */
	stream_store_close(a);
	assert_ptr_equal(stream_store_post(s, 1), a);
	stream_store_tidy(t, 5 + STREAM_STORE_KEEP_MS - 1);
	assert_non_null(stream_store_next(a, 2));
	stream_store_tidy(t, 5 + STREAM_STORE_KEEP_MS);
	assert_null(stream_store_post(s, 1));
	/* b is written to still. */
	assert_ptr_equal(stream_store_post(s, 2), b);
	assert_null(stream_store_next(b, 0));
	assert_int_equal(stream_store_bytes(t), 0);
	stream_store_close(b);
	assert_null(stream_store_find(t, &id));
	stream_store_free(t);
}

static void
test_bounds_session(void **state)
{
	struct stream_store *t = stream_store_new();
	struct ipc_id id = id_of(1);
	struct stream_session *s = stream_store_take(t, &id, &alice);
	struct stream_post *a = stream_store_open(s, &owner);
	struct stream_post *b = stream_store_open(s, &owner);
	char text[STREAM_STORE_ID_MAX];
	char *big = calloc(1, STREAM_STORE_BYTES_MAX);
	int i;

	(void)state;
	assert_non_null(big);
	for (i = 0; i < STREAM_STORE_EVENTS_MAX + 10; i++)
		assert_int_equal(
		    stream_store_add(a, "x", 1, false, 0, text), 0);
	assert_int_equal(s->nevents, STREAM_STORE_EVENTS_MAX);
	assert_int_equal(stream_store_next(a, 0)->number, 11);
	/* The answer pushes progress out, whichever stream's. */
	assert_int_equal(stream_store_add(b, big, STREAM_STORE_BYTES_MAX - 1000,
			     true, 0, text),
	    0);
	assert_true(s->bytes <= STREAM_STORE_BYTES_MAX);
	assert_true(s->nevents < STREAM_STORE_EVENTS_MAX);
	assert_non_null(stream_store_next(b, 0));
	/* Too large by itself: its id is given, nothing is kept or lost. */
	assert_int_equal(
	    stream_store_add(a, big, STREAM_STORE_BYTES_MAX, true, 0, text),
	    -1);
	assert_non_null(stream_store_next(b, 0));
	assert_int_equal(a->last, STREAM_STORE_EVENTS_MAX + 11);
	free(big);
	stream_store_free(t);
}

/* Many sessions together: the oldest events go, with records that are empty
 * then, but no record that somebody writes to. */
static void
test_bounds_all(void **state)
{
	enum { N = 40, SIZE = 2 * 1024 * 1024 };
	struct stream_store *t = stream_store_new();
	struct stream_post *p[N];
	char text[STREAM_STORE_ID_MAX], *big = calloc(1, SIZE);
	struct ipc_id id;
	unsigned i, left = 0;

	(void)state;
	for (i = 0; i < N; i++) {
		id = id_of(i);
		p[i] = stream_store_open(
		    stream_store_take(t, &id, &alice), &owner);
		assert_int_equal(
		    stream_store_add(p[i], big, SIZE, true, 0, text), 0);
		assert_true(stream_store_bytes(t) <= STREAM_STORE_ALL_MAX);
		if (i % 2 == 0)
			stream_store_close(p[i]);
	}
	for (i = 0; i < N; i++) {
		id = id_of(i);
		if (i % 2 == 1) /* written to: here, events or not */
			assert_ptr_equal(
			    stream_store_post(stream_store_find(t, &id), 1),
			    p[i]);
		else if (stream_store_find(t, &id) != NULL)
			left++;
	}
	assert_in_range(left, 1, N / 2 - 1);
	id = id_of(0);
	assert_null(stream_store_find(t, &id));
	free(big);
	stream_store_free(t);
}

/* Sessions whose stream was open once are remembered, the oldest not for
 * ever; one that has it open is never dropped. */
static void
test_bounds_sessions(void **state)
{
	struct stream_store *t = stream_store_new();
	struct stream_session *open, *s;
	struct ipc_id id = id_of(1000000);
	unsigned i;

	(void)state;
	open = stream_store_take(t, &id, &alice);
	stream_store_set_get(open, &owner);
	for (i = 0; i < STREAM_STORE_SESSIONS_MAX + 100; i++) {
		id = id_of(i);
		s = stream_store_take(t, &id, &alice);
		stream_store_set_get(s, &owner);
		stream_store_set_get(s, NULL);
	}
	assert_int_equal(
	    stream_store_sessions(t), STREAM_STORE_SESSIONS_MAX + 1);
	id = id_of(1000000);
	assert_ptr_equal(stream_store_find(t, &id), open);
	id = id_of(0);
	assert_null(stream_store_find(t, &id));
	id = id_of(STREAM_STORE_SESSIONS_MAX);
	s = stream_store_find(t, &id);
	assert_non_null(s);
	assert_true(s->had);
	/* Deleted by its client: nothing is left of it. */
	stream_store_forget(s);
	assert_null(stream_store_find(t, &id));
	stream_store_free(t);
}

/* One principal's hundred megabytes, in many sessions, cost nobody else an
 * event, and its thousands of sessions nobody else a record. */
static void
test_whose(void **state)
{
	enum { SIZE = 1024 * 1024, MANY = 100 };
	struct stream_store *t = stream_store_new();
	struct stream_session *s, *kept;
	struct stream_post *p;
	struct ipc_id id = id_of(1000000);
	char text[STREAM_STORE_ID_MAX], *big = calloc(1, SIZE);
	unsigned i;

	(void)state;
	kept = stream_store_take(t, &id, &alice);
	p = stream_store_open(kept, &owner);
	assert_int_equal(stream_store_add(p, big, SIZE, true, 0, text), 0);
	stream_store_close(p);
	stream_store_set_get(kept, &owner);
	stream_store_set_get(kept, NULL);
	for (i = 0; i < MANY; i++) {
		id = id_of(i);
		s = stream_store_take(t, &id, &mallory);
		p = stream_store_open(s, &owner);
		assert_int_equal(
		    stream_store_add(p, big, SIZE, true, 0, text), 0);
		stream_store_close(p);
		assert_true(stream_store_bytes(t) <= STREAM_STORE_ALL_MAX);
	}
	for (i = 0; i < STREAM_STORE_SESSIONS_MAX + 100; i++) {
		id = id_of(5000 + i);
		s = stream_store_take(t, &id, &mallory);
		stream_store_set_get(s, &owner);
		stream_store_set_get(s, NULL);
	}
	id = id_of(1000000);
	assert_ptr_equal(stream_store_find(t, &id), kept);
	p = stream_store_post(kept, 1);
	assert_non_null(p);
	assert_int_equal(stream_store_next(p, 0)->n, SIZE);
	id = id_of(0);
	assert_null(stream_store_find(t, &id));
	free(big);
	stream_store_free(t);
}

/* More principals than there is room for, each with one record: the newest is
 * there when it was taken. */
static void
test_many_principals(void **state)
{
	struct stream_store *t = stream_store_new();
	struct stream_session *s;
	struct ipc_hash who = {{0}};
	struct ipc_id id;
	unsigned i;

	(void)state;
	for (i = 0; i < STREAM_STORE_SESSIONS_MAX + 50; i++) {
		memcpy(who.b, &i, sizeof(i));
		id = id_of(i);
		s = stream_store_take(t, &id, &who);
		assert_non_null(s);
		stream_store_set_get(s, &owner);
		stream_store_set_get(s, NULL);
		assert_ptr_equal(stream_store_find(t, &id), s);
	}
	assert_true(stream_store_sessions(t) <= STREAM_STORE_SESSIONS_MAX + 50);
	stream_store_free(t);
}

static void
test_forget(void **state)
{
	struct stream_store *t = stream_store_new();
	struct ipc_id id = id_of(1);
	struct stream_session *s = stream_store_take(t, &id, &alice);
	struct stream_post *a = stream_store_open(s, &owner);
	struct stream_post *b = stream_store_open(s, &owner);
	char text[STREAM_STORE_ID_MAX];

	(void)state;
	stream_store_add(a, "x", 1, true, 0, text);
	stream_store_add(b, "x", 1, false, 0, text);
	stream_store_close(a);
	stream_store_forget(s);
	assert_int_equal(stream_store_bytes(t), 0);
	/* b is still being written, to a record that goes with it. */
	stream_store_add(b, "y", 1, true, 0, text);
	assert_int_equal(stream_store_next(b, 0)->number, 2);
	stream_store_close(b);
	stream_store_tidy(t, STREAM_STORE_KEEP_MS);
	assert_null(stream_store_find(t, &id));
	stream_store_free(t);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ids),
	    cmocka_unit_test(test_replay),
	    cmocka_unit_test(test_bounds_session),
	    cmocka_unit_test(test_bounds_all),
	    cmocka_unit_test(test_bounds_sessions),
	    cmocka_unit_test(test_whose),
	    cmocka_unit_test(test_many_principals),
	    cmocka_unit_test(test_forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
