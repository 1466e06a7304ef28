/* Verifiers know their time: an older one is void once a newer was seen. */
#include "unit.h"

#include "stored.h"
#include "verifiers.h"

static struct keys keys;
static const struct ipc_id none;
static const char phc[] = "$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA";

struct sealed {
	struct buf b;
	uint64_t time_us;
};

static struct sealed
seal(struct verifiers *v, const char *name, const char *role)
{
	struct sealed s = {.time_us = 0};
	struct err err;

	buf_init(&s.b, VERIFIERS_PLAIN_MAX + STORED_OVERHEAD);
	assert_int_equal(verifiers_seal(v, &keys, name, role, phc, &none, &s.b,
			     &s.time_us, &err),
	    0);
	return s;
}

static bool
opens(struct verifiers *v, const char *name, const char *role,
    const struct sealed *s)
{
	char got[SLOTS_ENCODED_MAX];
	struct ipc_id handle;
	uint64_t t = 0;
	struct err err;

	if (verifiers_open(v, &keys, name, role, ipc_bytes(s->b.p, s->b.len),
		got, &handle, &t, &err) == -1) {
		assert_int_equal(err.failure, FAILURE_FORBIDDEN);
		return false;
	}
	assert_string_equal(got, phc);
	assert_int_equal(t, s->time_us);
	return true;
}

static void
older_ones_are_void(void **state)
{
	struct verifiers *v = verifiers_new(), *restarted = verifiers_new();
	struct sealed a = seal(v, "admin", "administrator"), b, c;

	(void)state;
	assert_true(opens(v, "admin", "administrator", &a));
	assert_false(opens(v, "admin", "viewer", &a));
	assert_false(opens(v, "other", "administrator", &a));
	b = seal(v, "admin", "viewer");
	assert_true(b.time_us > a.time_us);
	/* sealed, but not committed: the old one is still the person's */
	assert_true(opens(v, "admin", "administrator", &a));
	verifiers_stored(v, "admin", b.time_us);
	assert_false(opens(v, "admin", "administrator", &a));
	assert_false(verifiers_current(v, "admin", a.time_us));
	assert_true(opens(v, "admin", "viewer", &b));
	/* deleted: no verifier so far is one, a new one is */
	verifiers_stored(v, "admin", verifiers_now(v, "admin"));
	assert_false(opens(v, "admin", "viewer", &b));
	c = seal(v, "admin", "reviewer");
	assert_true(opens(v, "admin", "reviewer", &c));
	/* another process learns it from what it opens */
	assert_true(opens(restarted, "admin", "viewer", &b));
	assert_true(opens(restarted, "admin", "reviewer", &c));
	assert_false(opens(restarted, "admin", "viewer", &b));
	buf_free(&a.b);
	buf_free(&b.b);
	buf_free(&c.b);
	verifiers_free(v);
	verifiers_free(restarted);
}

/* What an earlier release sealed has no time: it opens until a newer was seen.
 */
static void
without_a_time(void **state)
{
	struct stored_place at = {
	    STORED_VERIFIERS, ipc_str("admin"), ipc_str("viewer")};
	static const char *const bad[] = {
	    "t", "t12", "tx $a", "t12 ", "t123456789012345678901 $a", ""};
	struct verifiers *v = verifiers_new();
	struct sealed old = {.time_us = 0}, s;
	struct err err;

	(void)state;
	buf_init(&old.b, 4096);
	assert_int_equal(
	    stored_seal(&keys, &at, phc, strlen(phc), &old.b, &err), 0);
	assert_true(opens(v, "admin", "viewer", &old));
	s = seal(v, "admin", "viewer");
	assert_true(opens(v, "admin", "viewer", &s));
	assert_false(opens(v, "admin", "viewer", &old));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(stored_seal(&keys, &at, bad[i], strlen(bad[i]),
				     &old.b, &err),
		    0);
		assert_false(opens(v, "admin", "viewer", &old));
	}
	buf_free(&old.b);
	buf_free(&s.b);
	verifiers_free(v);
}

/* More names than are remembered: the oldest is forgotten, no other. */
static void
many_names(void **state)
{
	struct verifiers *v = verifiers_new();
	char name[32];

	(void)state;
	for (uint64_t i = 0; i <= VERIFIERS_NAMES; i++) {
		snprintf(name, sizeof(name), "user%llu", (unsigned long long)i);
		verifiers_stored(v, name, 1000 + i);
	}
	assert_true(verifiers_current(v, "user0", 1));
	assert_false(verifiers_current(v, "user1", 1));
	assert_false(verifiers_current(v, "user256", 1));
	assert_true(verifiers_current(v, "user256", 1256));
	verifiers_free(v);
}

/* The verifier keeps the handle of its person's passkeys. */
static void
handles(void **state)
{
	static const struct ipc_id made = {{1, 2, 3}};
	struct verifiers *v = verifiers_new();
	char got[SLOTS_ENCODED_MAX], longest[SLOTS_ENCODED_MAX];
	struct ipc_id handle = none;
	uint64_t t = 0, u = 0;
	struct err err;
	struct buf b;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	buf_init(&b, VERIFIERS_PLAIN_MAX + STORED_OVERHEAD);
	assert_int_equal(verifiers_seal(v, &keys, "admin", "viewer", longest,
			     &made, &b, &t, &err),
	    0);
	assert_int_equal(verifiers_open(v, &keys, "admin", "viewer",
			     ipc_bytes(b.p, b.len), got, &handle, &u, &err),
	    0);
	assert_string_equal(got, longest);
	assert_memory_equal(handle.b, made.b, sizeof(made.b));
	assert_int_equal(t, u);
	buf_free(&b);
	verifiers_free(v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(older_ones_are_void),
	    cmocka_unit_test(without_a_time),
	    cmocka_unit_test(many_names),
	    cmocka_unit_test(handles),
	};

	memset(&keys, 7, sizeof(keys));
	keys.also = NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
