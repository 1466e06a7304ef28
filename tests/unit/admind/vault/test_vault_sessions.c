/* Logins: found by token only, ended in time, bounded. */
#include "crypto.h"
#include "sessions.h"
#include "unit.h"

enum { TTL = 60000, NOW = 1000000, UNIX = 1700000000 };

static struct ipc_hash
hash_of(const char *token)
{
	struct ipc_hash h;

	sha256(token, strlen(token), &h);
	return h;
}

static void
found_by_token(void **state)
{
	struct sessions *s = sessions_new(TTL, TTL);
	char token[SESSIONS_TEXT + 1], twin[SESSIONS_TEXT + 1];
	char parts[LOGIN_TEXT], swapped[LOGIN_TEXT];
	const struct session *r;
	struct ipc_hash h, got;

	r = sessions_add(s, "admin", "reviewer", SESSION_BY_PASSWORD, NULL, NOW,
	    UNIX, token);
	assert_non_null(r);
	assert_int_equal(strlen(token), 86);
	assert_memory_not_equal(token, token + LOGIN_HALF, LOGIN_HALF);
	assert_string_equal(r->username, "admin");
	assert_string_equal(r->role, "reviewer");
	assert_int_equal(r->expires_ms, UNIX + TTL);
	/* The token's text is kept nowhere. */
	assert_null(memmem(r, sizeof(*r), token, LOGIN_HALF));
	assert_null(memmem(r, sizeof(*r), token + LOGIN_HALF, LOGIN_HALF));
	h = hash_of(token);
	assert_ptr_equal(sessions_find(s, &h, NOW), r);
	assert_ptr_equal(sessions_find_text(s, ipc_str(token), NOW, &got), r);
	assert_memory_equal(&got, &h, sizeof(h));
	assert_non_null(sessions_add(s, "admin", "reviewer",
	    SESSION_BY_PASSWORD, NULL, NOW, UNIX, twin));
	assert_string_not_equal(token, twin);
	/* Neither its hash, nor a part, nor one bit off, nor nothing. */
	assert_null(sessions_find_text(s, ipc_bytes(&h, 32), NOW, NULL));
	assert_null(
	    sessions_find_text(s, ipc_bytes(token, LOGIN_TEXT - 1), NOW, NULL));
	/* Nor either half, nor a half twice, nor both in another order. */
	for (int i = 0; i < 2; i++) {
		assert_null(sessions_find_text(s,
		    ipc_bytes(token + i * LOGIN_HALF, LOGIN_HALF), NOW, NULL));
		for (int k = 0; k < 2; k++)
			memcpy(parts + k * LOGIN_HALF, token + i * LOGIN_HALF,
			    LOGIN_HALF);
		memcpy(swapped + i * LOGIN_HALF, token + (1 - i) * LOGIN_HALF,
		    LOGIN_HALF);
		assert_null(sessions_find_text(
		    s, ipc_bytes(parts, LOGIN_TEXT), NOW, NULL));
	}
	assert_null(
	    sessions_find_text(s, ipc_bytes(swapped, LOGIN_TEXT), NOW, NULL));
	assert_null(sessions_find_text(s, ipc_str(""), NOW, NULL));
	h.b[31] ^= 1;
	assert_null(sessions_find(s, &h, NOW));
	memset(&h, 0, sizeof(h));
	assert_null(sessions_find(s, &h, NOW));
	sessions_free(s);
}

static void
ends_in_time(void **state)
{
	struct sessions *s = sessions_new(TTL, TTL);
	char token[SESSIONS_TEXT + 1];
	struct ipc_hash h;

	sessions_add(
	    s, "admin", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, token);
	h = hash_of(token);
	assert_non_null(sessions_find(s, &h, NOW + TTL - 1));
	/* Use does not prolong it. */
	assert_non_null(sessions_find(s, &h, NOW + TTL - 1));
	assert_null(sessions_find(s, &h, NOW + TTL));
	/* Over is over, also if the clock said less again. */
	assert_null(sessions_find(s, &h, NOW));
	sessions_free(s);
}

static void
ended(void **state)
{
	struct sessions *s = sessions_new(TTL, TTL);
	char a[SESSIONS_TEXT + 1], b[SESSIONS_TEXT + 1], c[SESSIONS_TEXT + 1];
	struct ipc_hash ha, hb, hc;

	sessions_add(
	    s, "admin", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, a);
	sessions_add(
	    s, "admin", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, b);
	sessions_add(
	    s, "other", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, c);
	ha = hash_of(a);
	hb = hash_of(b);
	hc = hash_of(c);
	sessions_end_user(s, "admin", &ha);
	assert_non_null(sessions_find(s, &ha, NOW));
	assert_null(sessions_find(s, &hb, NOW));
	assert_non_null(sessions_find(s, &hc, NOW));
	sessions_end(s, &ha);
	assert_null(sessions_find(s, &ha, NOW));
	sessions_end_user(s, "other", NULL);
	assert_null(sessions_find(s, &hc, NOW));
	sessions_free(s);
}

/* A user's 17th login ends his first; when all rows are others', none more. */
static void
bounded(void **state)
{
	struct sessions *s = sessions_new(TTL, TTL);
	char first[SESSIONS_TEXT + 1], second[SESSIONS_TEXT + 1];
	char token[SESSIONS_TEXT + 1], name[16];
	struct ipc_hash h1, h2;

	sessions_add(
	    s, "user0", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, first);
	sessions_add(
	    s, "user0", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, second);
	for (int i = 2; i < SESSIONS_PER_USER + 1; i++)
		assert_non_null(sessions_add(s, "user0", "viewer",
		    SESSION_BY_PASSWORD, NULL, NOW, UNIX, token));
	h1 = hash_of(first);
	h2 = hash_of(second);
	assert_null(sessions_find(s, &h1, NOW));
	assert_non_null(sessions_find(s, &h2, NOW));
	for (int u = 1; u < SESSIONS_MAX / SESSIONS_PER_USER; u++)
		for (int i = 0; i < SESSIONS_PER_USER; i++) {
			snprintf(name, sizeof(name), "user%d", u);
			assert_non_null(sessions_add(s, name, "viewer",
			    SESSION_BY_PASSWORD, NULL, NOW, UNIX, token));
		}
	assert_null(sessions_add(
	    s, "late", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, token));
	assert_non_null(sessions_find(s, &h2, NOW));
	assert_non_null(sessions_add(s, "late", "viewer", SESSION_BY_PASSWORD,
	    NULL, NOW + TTL, UNIX, token));
	sessions_free(s);
}

static void
too_long(void **state)
{
	struct sessions *s = sessions_new(TTL, TTL);
	char token[SESSIONS_TEXT + 1], name[SESSIONS_USER_MAX + 2];

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_null(sessions_add(
	    s, name, "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, token));
	assert_null(sessions_add(s, "admin", "a role of 17 char",
	    SESSION_BY_PASSWORD, NULL, NOW, UNIX, token));
	sessions_free(s);
	sessions_free(NULL);
}

/* Used, a login lives on, but never beyond its own end. */
static void
sliding(void **state)
{
	enum { IDLE = 1000, LIFE = 3500 };
	struct sessions *s = sessions_new(LIFE, IDLE);
	char token[SESSIONS_TEXT + 1], idle[SESSIONS_TEXT + 1];
	const struct session *r, *other;
	struct ipc_hash h, h2;

	(void)state;
	r = sessions_add(
	    s, "admin", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, token);
	other = sessions_add(
	    s, "admin", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, idle);
	assert_int_equal(r->expires_ms, UNIX + LIFE);
	assert_int_equal(r->idle_ms, UNIX + IDLE);
	assert_memory_not_equal(r->id.b, other->id.b, sizeof(r->id.b));
	sha256(token, SESSIONS_TEXT, &h);
	sha256(idle, SESSIONS_TEXT, &h2);
	for (int i = 1; i <= 3; i++) {
		r = sessions_find(s, &h, NOW + (uint64_t)i * 999);
		assert_non_null(r);
		sessions_touch(
		    s, r, NOW + (uint64_t)i * 999, UNIX + (uint64_t)i * 999);
		assert_int_equal(r->seen_ms, UNIX + (uint64_t)i * 999);
	}
	assert_int_equal(r->idle_ms, UNIX + LIFE);
	assert_int_equal(r->expires_ms, UNIX + LIFE);
	assert_null(sessions_find(s, &h2, NOW + 2997));
	assert_non_null(sessions_find(s, &h, NOW + LIFE - 1));
	assert_null(sessions_find(s, &h, NOW + LIFE));
	sessions_free(s);
}

/* Listed and ended by an id that is no token. */
static void
listed(void **state)
{
	struct session_origin from = {"127.0.0.1", "a browser"};
	struct sessions *s = sessions_new(TTL, TTL / 2);
	char token[SESSIONS_TEXT + 1];
	const struct session *r;
	struct ipc_id id;
	size_t at = 0, n = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		sessions_add(s, i < 2 ? "admin" : "other", "viewer",
		    SESSION_BY_PASSWORD, &from, NOW, UNIX, token);
	while ((r = sessions_next(s, &at, NOW)) != NULL) {
		assert_string_equal(r->from.agent, "a browser");
		id = r->id;
		n++;
	}
	assert_int_equal(n, 3);
	assert_string_equal(sessions_by_id(s, &id, NOW)->username, "other");
	assert_null(
	    sessions_find_text(s, ipc_bytes(id.b, sizeof(id.b)), NOW, NULL));
	assert_int_equal(sessions_end_user(s, "admin", NULL), 2);
	assert_int_equal(sessions_end_user(s, "admin", NULL), 0);
	at = 0;
	assert_null(sessions_next(s, &at, NOW + TTL / 2));
	assert_null(sessions_by_id(s, &id, NOW));
	sessions_free(s);
}

static void
proven(void **state)
{
	struct sessions *s = sessions_new(1 << 30, 1 << 30);
	const struct session *mine, *other, *issuer;
	char token[SESSIONS_TEXT + 1];
	struct ipc_hash h;

	(void)state;
	mine = sessions_add(
	    s, "admin", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, token);
	h = hash_of(token);
	other = sessions_add(
	    s, "admin", "viewer", SESSION_BY_PASSWORD, NULL, NOW, UNIX, token);
	issuer = sessions_add(s, "admin@work", "viewer", SESSION_BY_ISSUER,
	    NULL, NOW, UNIX, token);
	/* A login by password begins proven, another one does not. */
	assert_true(sessions_proven(mine, NOW));
	assert_false(sessions_proven(issuer, NOW));
	assert_false(sessions_proven(issuer, 0));
	/* A proof holds to the millisecond; a later one does not. */
	assert_true(sessions_proven(mine, NOW + SESSIONS_PROOF_MS));
	assert_false(sessions_proven(mine, NOW + SESSIONS_PROOF_MS + 1));
	assert_false(sessions_proven(mine, NOW - 1));
	/* Use makes nothing fresh. */
	sessions_touch(s, mine, NOW + SESSIONS_PROOF_MS, UNIX);
	assert_false(sessions_proven(mine, NOW + SESSIONS_PROOF_MS + 1));
	/* A proof is of one login alone. */
	sessions_prove(s, mine, NOW + SESSIONS_PROOF_MS + 1);
	assert_true(sessions_proven(mine, NOW + 2 * SESSIONS_PROOF_MS + 1));
	assert_false(sessions_proven(mine, NOW + 2 * SESSIONS_PROOF_MS + 2));
	assert_false(sessions_proven(other, NOW + SESSIONS_PROOF_MS + 1));
	assert_false(sessions_proven(issuer, NOW + SESSIONS_PROOF_MS + 1));
	sessions_prove(s, issuer, NOW + 1);
	assert_true(sessions_proven(issuer, NOW + 1));
	/* A login's row that is used again has no proof of the former one. */
	sessions_end(s, &h);
	mine = sessions_add(s, "late@work", "viewer", SESSION_BY_ISSUER, NULL,
	    NOW + SESSIONS_PROOF_MS + 1, UNIX, token);
	assert_false(sessions_proven(mine, NOW + SESSIONS_PROOF_MS + 1));
	sessions_free(s);
}

/* A login that waits for its passkey is found by nothing but sessions_find_any,
 * ends soon, and takes no place of a whole one. */
static void
pending(void **state)
{
	struct sessions *s = sessions_new(10 * SESSIONS_PENDING_MS, 1u << 30);
	char token[SESSIONS_TEXT + 1], whole[SESSIONS_TEXT + 1];
	char first[SESSIONS_TEXT + 1];
	const struct session *r;
	struct ipc_hash h, w, f;

	(void)state;
	assert_non_null(sessions_add(s, "admin", "reviewer",
	    SESSION_BY_PASSWORD, NULL, NOW, UNIX, whole));
	for (int i = 0; i <= SESSIONS_PENDING_PER_USER; i++)
		assert_non_null(sessions_add_pending(s, "admin", "reviewer",
		    NULL, NOW, UNIX, i == 0 ? first : token));
	h = hash_of(token);
	w = hash_of(whole);
	f = hash_of(first);
	assert_non_null(sessions_find(s, &w, NOW));
	assert_null(sessions_find_any(s, &f, NOW));
	assert_null(sessions_find(s, &h, NOW));
	assert_null(sessions_find_text(s, ipc_str(token), NOW, NULL));
	r = sessions_find_text_any(s, ipc_str(token), NOW, NULL);
	assert_non_null(r);
	assert_true(r->pending);
	assert_false(sessions_proven(r, NOW));
	/* it becomes a whole one, which begins then */
	sessions_complete(s, r, NOW + 1, UNIX + 1);
	r = sessions_find(s, &h, NOW + 2 * SESSIONS_PENDING_MS);
	assert_non_null(r);
	assert_true(sessions_proven(r, NOW + 1));
	sessions_cap(s, r, "administrator", r->role);
	assert_string_equal(r->role, "reviewer");
	assert_string_equal(r->cap, "administrator");
	sessions_cap(s, r, "viewer", "viewer");
	assert_string_equal(r->role, "viewer");
	/* both whole ones end with the three that still wait */
	assert_int_equal(sessions_end_user(s, "admin", NULL), 5);
	assert_non_null(sessions_add_pending(
	    s, "admin", "reviewer", NULL, NOW, UNIX, token));
	h = hash_of(token);
	assert_non_null(
	    sessions_find_any(s, &h, NOW + SESSIONS_PENDING_MS - 1));
	assert_null(sessions_find_any(s, &h, NOW + SESSIONS_PENDING_MS));
	sessions_free(s);
}

/* A login that becomes whole has its row: also in a full table it ends no other
 * one, unless the person has too many. One that is over stays so. */
static void
completed(void **state)
{
	struct sessions *s = sessions_new(10 * SESSIONS_PENDING_MS, 1u << 30);
	char first[SESSIONS_TEXT + 1], token[SESSIONS_TEXT + 1], name[16];
	const struct session *r;
	struct ipc_hash f, h;

	(void)state;
	assert_non_null(sessions_add(s, "admin", "reviewer",
	    SESSION_BY_PASSWORD, NULL, NOW, UNIX, first));
	f = hash_of(first);
	for (int i = 0; i < SESSIONS_MAX - 2; i++) {
		snprintf(name, sizeof(name), "user%d", i);
		assert_non_null(sessions_add(s, name, "viewer",
		    SESSION_BY_PASSWORD, NULL, NOW, UNIX, token));
	}
	assert_non_null(r = sessions_add_pending(
			    s, "admin", "reviewer", NULL, NOW, UNIX, token));
	h = hash_of(token);
	assert_false(sessions_complete(s, r, NOW + SESSIONS_PENDING_MS, UNIX));
	assert_true(r->pending);
	assert_true(sessions_complete(s, r, NOW + 1, UNIX));
	assert_non_null(sessions_find(s, &f, NOW + 1));
	assert_non_null(sessions_find(s, &h, NOW + 1));
	sessions_free(s);

	s = sessions_new(10 * SESSIONS_PENDING_MS, 1u << 30);
	for (int i = 0; i < SESSIONS_PER_USER; i++)
		assert_non_null(
		    sessions_add(s, "admin", "reviewer", SESSION_BY_PASSWORD,
			NULL, NOW, UNIX, i == 0 ? first : token));
	f = hash_of(first);
	assert_non_null(r = sessions_add_pending(
			    s, "admin", "reviewer", NULL, NOW, UNIX, token));
	h = hash_of(token);
	assert_true(sessions_complete(s, r, NOW + 1, UNIX));
	assert_null(sessions_find(s, &f, NOW + 1));
	assert_non_null(sessions_find(s, &h, NOW + 1));
	sessions_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(found_by_token),
	    cmocka_unit_test(ends_in_time),
	    cmocka_unit_test(ended),
	    cmocka_unit_test(bounded),
	    cmocka_unit_test(too_long),
	    cmocka_unit_test(sliding),
	    cmocka_unit_test(listed),
	    cmocka_unit_test(proven),
	    cmocka_unit_test(pending),
	    cmocka_unit_test(completed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
