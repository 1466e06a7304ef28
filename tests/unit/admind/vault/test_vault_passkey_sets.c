/* A person's sealed set of passkeys; challenges and codes. */
#include "unit.h"

#include "challenges.h"
#include "stored.h"

static const int algs[] = {AUTHKEY_ES256, AUTHKEY_EDDSA};

static struct ipc_bytes
all(const struct buf *b)
{
	assert_false(b->failed);
	return ipc_bytes(b->p, b->len);
}

/* ---- the sealed set ---- */

static struct keys keys;

static struct ipc_bytes
seal(struct verifiers *times, const struct passkeys *set, struct buf *b,
    uint64_t *time_us)
{
	struct err err;

	buf_init(b, PASSKEYS_PLAIN_MAX + STORED_OVERHEAD);
	assert_int_equal(
	    passkeys_seal(times, &keys, "admin", set, b, time_us, &err), 0);
	return all(b);
}

static void
sets(void **state)
{
	struct verifiers *times = verifiers_new(), *later = verifiers_new();
	struct passkeys set = {.handle = {{7}}}, got;
	char name[PASSKEYS_NAME_MAX + 1];
	struct buf a, b;
	uint64_t ta, tb;
	struct err err;

	(void)state;
	for (size_t i = 0; i < PASSKEYS_MAX; i++) {
		struct authdata d = {.sign_count = (uint32_t)i,
		    .backup_eligible = i % 2 == 1,
		    .key = {.alg = algs[i % 2], .x = {(uint8_t)i}}};
		uint8_t id[AUTHDATA_ID_MAX] = {(uint8_t)i};

		d.id = ipc_bytes(id, sizeof(id));
		assert_non_null(passkeys_add(&set, &d, &err));
		memset(set.row[i].label, 'l', PASSKEYS_LABEL_MAX);
		memcpy(set.row[i].cap, "administrator", 14);
		set.row[i].created_ms = 1000 + i;
	}
	assert_null(passkeys_add(
	    &set, &(struct authdata){.id = ipc_str("more")}, &err));
	assert_int_equal(err.failure, FAILURE_CONFLICT);
	seal(times, &set, &a, &ta);
	assert_int_equal(
	    passkeys_open(times, &keys, "admin", all(&a), &got, &err), 0);
	assert_memory_equal(&got, &set, sizeof(set));
	assert_int_equal(
	    passkeys_open(times, &keys, "other", all(&a), &got, &err), -1);
	passkeys_drop(
	    &set, passkeys_find(&set, ipc_bytes(set.row[3].id, 1023)));
	assert_int_equal(set.n, PASSKEYS_MAX - 1);
	assert_int_equal(set.row[3].id[0], 4);
	seal(times, &set, &b, &tb);
	assert_true(tb > ta);
	/* sealed, but not stored: the older one still counts */
	assert_int_equal(
	    passkeys_open(times, &keys, "admin", all(&a), &got, &err), 0);
	assert_int_equal(
	    passkeys_open(times, &keys, "admin", all(&b), &got, &err), 0);
	/* an older set is void now, but not for a vault that restarted */
	assert_int_equal(
	    passkeys_open(times, &keys, "admin", all(&a), &got, &err), -1);
	assert_int_equal(err.failure, FAILURE_FORBIDDEN);
	assert_int_equal(
	    passkeys_open(later, &keys, "admin", all(&a), &got, &err), 0);
	/* of the longest name, too, which has an issuer */
	memset(name, 'n', sizeof(name));
	name[32] = '@';
	name[PASSKEYS_NAME_MAX] = '\0';
	verifiers_stored(times, name, 7);
	assert_false(verifiers_current(times, name, 6));
	/* an altered set does not open */
	for (size_t i = 0; i < b.len; i += 97) {
		b.p[i] ^= 1;
		assert_int_equal(
		    passkeys_open(later, &keys, "admin", all(&b), &got, &err),
		    -1);
		b.p[i] ^= 1;
	}
	buf_free(&a);
	buf_free(&b);
	verifiers_free(times);
	verifiers_free(later);
}

static void
names_and_roles(void **state)
{
	static const char *const good[] = {
	    "admin", "a_1", "jo@corp", "a.b-c_D@my-issuer-2"};
	static const char *const bad[] = {"", "ab", "1abc", "a@", "@b", "a@B",
	    "a b@c", "a@b@c", "a@b.c", "a23456789012345678901234567890123@corp",
	    "jo@a23456789012345678901234567890123"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(passkeys_name_ok(ipc_str(good[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (passkeys_name_ok(ipc_str(bad[i])))
			fail_msg("'%s' is accepted", bad[i]);
	assert_string_equal(
	    passkeys_lesser("administrator", "reviewer"), "reviewer");
	assert_string_equal(passkeys_lesser("viewer", "reviewer"), "viewer");
	assert_string_equal(passkeys_lesser("viewer", ""), "viewer");
	assert_string_equal(passkeys_lesser("", "root"), "viewer");
}

/* ---- challenges and codes ---- */

static void
challenges(void **state)
{
	enum { T = 1000 };
	struct challenges *c = challenges_new();
	struct ipc_id a = {{1}}, b = {{2}};
	uint8_t made[32], got[32], again[32];

	(void)state;
	challenges_make(c, &a, CHALLENGES_PROOF, T, made);
	assert_int_equal(challenges_take(c, &b, CHALLENGES_PROOF, T, got), -1);
	assert_int_equal(challenges_take(c, &a, CHALLENGES_PROOF, T, got), 0);
	assert_memory_equal(got, made, sizeof(got));
	/* once */
	assert_int_equal(challenges_take(c, &a, CHALLENGES_PROOF, T, got), -1);
	/* another purpose ends it, too */
	challenges_make(c, &a, CHALLENGES_LOGIN, T, made);
	assert_int_equal(challenges_take(c, &a, CHALLENGES_PROOF, T, got), -1);
	assert_int_equal(challenges_take(c, &a, CHALLENGES_LOGIN, T, got), -1);
	/* in time */
	challenges_make(c, &a, CHALLENGES_LOGIN, T, made);
	assert_int_equal(
	    challenges_take(c, &a, CHALLENGES_LOGIN, T + CHALLENGES_MS, got),
	    -1);
	/* the newest */
	challenges_make(c, &a, CHALLENGES_LOGIN, T, made);
	challenges_make(c, &a, CHALLENGES_LOGIN, T, again);
	assert_memory_not_equal(made, again, sizeof(made));
	assert_int_equal(challenges_take(c, &a, CHALLENGES_LOGIN, T, got), 0);
	assert_memory_equal(got, again, sizeof(got));
	/* bounded: the oldest goes */
	for (unsigned i = 0; i <= CHALLENGES_MAX; i++) {
		struct ipc_id id = {{3, (uint8_t)(i >> 8), (uint8_t)i}};

		challenges_make(c, &id, CHALLENGES_LOGIN, T + i, made);
	}
	b = (struct ipc_id){{3}};
	assert_int_equal(
	    challenges_take(c, &b, CHALLENGES_LOGIN, T + 1, got), -1);
	b.b[2] = 1;
	assert_int_equal(
	    challenges_take(c, &b, CHALLENGES_LOGIN, T + 1, got), 0);
	challenges_free(c);
}

static void
codes(void **state)
{
	enum { T = 1000 };
	struct challenges *c = challenges_new();
	char code[CHALLENGES_CODE_TEXT + 1], other[CHALLENGES_CODE_TEXT + 1];

	(void)state;
	challenges_code(c, "jo@corp", "reviewer", T, code);
	assert_int_equal(strlen(code), CHALLENGES_CODE_TEXT);
	assert_string_equal(
	    challenges_code_role(c, "jo@corp", ipc_str(code), T), "reviewer");
	assert_null(challenges_code_role(c, "al@corp", ipc_str(code), T));
	assert_null(challenges_code_role(c, "", ipc_str(code), T));
	assert_null(challenges_code_role(c, "jo@corp", ipc_str("x"), T));
	assert_null(challenges_code_role(
	    c, "jo@corp", ipc_str(code), T + CHALLENGES_CODE_MS));
	/* a further code takes the place of the first */
	challenges_code(c, "jo@corp", "viewer", T, other);
	assert_null(challenges_code_role(c, "jo@corp", ipc_str(code), T));
	assert_string_equal(
	    challenges_code_role(c, "jo@corp", ipc_str(other), T), "viewer");
	challenges_code_end(c, "jo@corp");
	assert_null(challenges_code_role(c, "jo@corp", ipc_str(other), T));
	challenges_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sets),
	    cmocka_unit_test(names_and_roles),
	    cmocka_unit_test(challenges),
	    cmocka_unit_test(codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
