/* The memory of a sign-in under way, and the offers of a document. */
#include "offers.h"
#include "state.h"
#include "tlv.h"
#include "unit.h"

enum { FIELDS_MAX = 64 * 1024 };

static const uint8_t key[KEY_LEN] = {1, 2, 3}, other_key[KEY_LEN] = {1, 2, 4};

/* ---- state.h ---- */

static struct state
sample(void)
{
	struct state s = {.begun_ms = UINT64_C(0x0102030405060708)};

	memset(s.id.b, 1, sizeof(s.id.b));
	memset(s.ticket.b, 2, sizeof(s.ticket.b));
	memset(s.basis.b, 4, sizeof(s.basis.b));
	return s;
}

static void
state_of_this_process(void **unused)
{
	struct state s = sample(), got;
	char text[STATE_TEXT + 1], bent[STATE_TEXT + 1];

	state_make(key, &s, text);
	assert_int_equal(strlen(text), STATE_TEXT);
	assert_int_equal(state_read(&got, ipc_str(text)), 0);
	assert_memory_equal(&got.id, &s.id, sizeof(s.id));
	assert_memory_equal(&got.ticket, &s.ticket, sizeof(s.ticket));
	assert_int_equal(got.begun_ms, s.begun_ms);
	got.basis = s.basis;
	assert_true(state_is(key, &got));
	assert_false(state_is(other_key, &got));
	got.ticket.b[31] ^= 1; /* another browser */
	assert_false(state_is(key, &got));
	got.ticket = s.ticket;
	got.basis.b[0] ^= 1; /* another issuer, or another document */
	assert_false(state_is(key, &got));
	/* Each character counts but for the last one's unused bits. */
	for (size_t i = 0; i < STATE_TEXT - 1; i++) {
		memcpy(bent, text, sizeof(text));
		bent[i] = bent[i] == 'x' ? 'y' : 'x';
		if (state_read(&got, ipc_str(bent)) == -1)
			continue;
		got.basis = s.basis;
		assert_false(state_is(key, &got));
	}
	assert_int_equal(state_read(&got, ipc_str("")), -1);
	assert_int_equal(state_read(&got, ipc_bytes(text, STATE_TEXT - 1)), -1);
	bent[5] = '!';
	assert_int_equal(state_read(&got, ipc_str(bent)), -1);
}

static void
state_secrets(void **unused)
{
	struct state s = sample();
	char verifier[STATE_SECRET_TEXT + 1], again[STATE_SECRET_TEXT + 1];
	char nonce[STATE_SECRET_TEXT + 1], text[STATE_TEXT + 1];

	state_verifier(key, &s, verifier);
	state_nonce(key, &s, nonce);
	state_make(key, &s, text);
	assert_int_equal(strlen(verifier), STATE_SECRET_TEXT);
	assert_string_not_equal(verifier, nonce);
	assert_null(strstr(text, verifier));
	state_verifier(key, &s, again);
	assert_string_equal(verifier, again);
	s.id.b[0] ^= 1;
	state_verifier(key, &s, again);
	assert_string_not_equal(verifier, again);
	/* RFC 7636 appendix B. */
	state_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", again);
	assert_string_equal(
	    again, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

/* ---- offers.h ---- */

static void
put_issuer(struct buf *out, const char *name, const char *url)
{
	struct buf r;

	buf_init(&r, FIELDS_MAX);
	tlv_puts(&r, ISSUER_NAME, name);
	tlv_puts(&r, ISSUER_URL, url);
	tlv_put(&r, ISSUER_LISTENERS, (const uint8_t[]){4}, 1);
	tlv_puts(&r, ISSUER_KEYS_URL, url);
	tlv_put(out, ACCESS_ISSUER, r.p, r.len);
	buf_free(&r);
}

static void
put_offer(struct buf *out, const char *issuer, const char *client)
{
	struct buf r;

	buf_init(&r, FIELDS_MAX);
	tlv_puts(&r, SIGN_IN_ISSUER, issuer);
	tlv_puts(&r, SIGN_IN_CLIENT, client);
	tlv_puts(
	    &r, SIGN_IN_REDIRECT, "http://127.0.0.1:8000/api/signin/callback");
	tlv_puts(&r, SIGN_IN_SCOPE, "openid");
	tlv_puts(&r, SIGN_IN_SCOPE, "a&b");
	tlv_put(out, ACCESS_SIGN_IN, r.p, r.len);
	buf_free(&r);
}

static void
put_rule(struct buf *out, const char *issuer, uint8_t claim, const char *value,
    uint8_t role)
{
	struct buf r;

	buf_init(&r, FIELDS_MAX);
	tlv_puts(&r, RULE_ISSUER, issuer);
	tlv_put(&r, RULE_CLAIM, &claim, 1);
	if (value != NULL)
		tlv_puts(&r, RULE_VALUE, value);
	tlv_put(&r, RULE_ROLE, &role, 1);
	tlv_put(out, ACCESS_ADMINISTRATOR, r.p, r.len);
	buf_free(&r);
}

static struct compiled *
compiled(const char *client, uint8_t role, bool more)
{
	struct compiled *c;
	struct err err;
	struct buf b;

	buf_init(&b, FIELDS_MAX);
	tlv_puts(&b, ACCESS_RESOURCE, "https://mcp.example.org/mcp");
	put_issuer(&b, "home", "https://id.example.org");
	put_issuer(&b, "work", "https://id.example.com");
	put_issuer(&b, "none", "https://id.example.net");
	put_offer(&b, "home", client);
	put_offer(&b, "work", "panel");
	put_offer(&b, "gone", "panel");
	put_rule(&b, "home", RULE_SUB, "ann", role);
	put_rule(&b, "work", RULE_ANY, NULL, ADMIN_VIEWER);
	put_rule(&b, "home", RULE_SUB, "ann", ADMIN_VIEWER);
	put_rule(&b, "home", RULE_GROUP, "ops", ADMIN_REVIEWER);
	/* Such rules admind-check never makes. */
	put_rule(&b, "home", RULE_SUB, NULL, ADMIN_ADMINISTRATOR);
	put_rule(&b, "home", RULE_SUB, "", ADMIN_ADMINISTRATOR);
	put_rule(&b, "home", RULE_ANY, NULL, ADMIN_ROOT);
	put_rule(&b, "home", 0, "mallory", ADMIN_ADMINISTRATOR);
	if (more)
		put_rule(&b, "home", RULE_SUB, "bob", ADMIN_VIEWER);
	c = compiled_new(ipc_bytes(b.p, b.len), &err);
	if (c == NULL)
		fail_msg("%s", err.text);
	buf_free(&b);
	return c;
}

static void
roles(void **unused)
{
	struct compiled *c = compiled("panel", ADMIN_ADMINISTRATOR, false);
	struct claims who = {.issuer = ipc_str("home")};
	enum admin_role role = ADMIN_ROOT;
	const struct offer *home, *work;
	struct offers all;

	offers_read(&all, c);
	assert_int_equal(all.n, 2);
	home = offers_named(&all, ipc_str("home"));
	work = offers_named(&all, ipc_str("work"));
	assert_non_null(home);
	assert_null(offers_named(&all, ipc_str("none")));
	assert_null(offers_named(&all, ipc_str("gone")));
	assert_ptr_equal(offers_of(&all, &home->basis), home);
	assert_memory_not_equal(
	    &home->basis, &work->basis, sizeof(home->basis));
	who.sub = ipc_str("ann");
	assert_int_equal(offers_role(c, home, &who, &role), 0);
	assert_int_equal(role, ADMIN_ADMINISTRATOR); /* the first one */
	who.sub = ipc_str("mallory");
	assert_int_equal(offers_role(c, home, &who, &role), -1);
	who.sub = ipc_bytes(NULL, 0);
	assert_int_equal(offers_role(c, home, &who, &role), -1);
	who.group[who.ngroups++] = ipc_str("ops");
	assert_int_equal(offers_role(c, home, &who, &role), 0);
	assert_int_equal(role, ADMIN_REVIEWER);
	/* A rule of one issuer is for its people alone. */
	who = (struct claims){.issuer = ipc_str("work"), .sub = ipc_str("ann")};
	assert_int_equal(offers_role(c, work, &who, &role), 0);
	assert_int_equal(role, ADMIN_VIEWER);
	assert_int_equal(offers_role(c, home, &who, &role), -1);
	compiled_free(c);
	offers_read(&all, NULL);
	assert_int_equal(all.n, 0);
}

/* One issuer's own word counts only while it is alone: a hostile one beside it
 * would say that it sends no `iss`. */
static void
answers_name_their_issuer(void **unused)
{
	static const uint8_t no[] = {0}, yes[] = {1};
	struct compiled *two = compiled("panel", ADMIN_VIEWER, false), *one;
	struct buf b, silent, promises;
	struct offers all;
	struct err err;

	buf_init(&b, FIELDS_MAX);
	tlv_puts(&b, ACCESS_RESOURCE, "https://mcp.example.org/mcp");
	put_issuer(&b, "home", "https://id.example.org");
	put_issuer(&b, "none", "https://id.example.net");
	put_offer(&b, "home", "panel");
	one = compiled_new(ipc_bytes(b.p, b.len), &err);
	assert_non_null(one);
	buf_init(&silent, FIELDS_MAX);
	tlv_put(&silent, KEYS_SIGN_IN_ISS, no, sizeof(no));
	buf_init(&promises, FIELDS_MAX);
	tlv_put(&promises, KEYS_SIGN_IN_ISS, yes, sizeof(yes));
#define NEED(x) offers_need_iss(&all, x)
	offers_read(&all, one);
	assert_int_equal(all.n, 1);
	assert_false(NEED(ipc_bytes(NULL, 0)));
	assert_false(NEED(ipc_bytes(silent.p, silent.len)));
	assert_true(NEED(ipc_bytes(promises.p, promises.len)));
	offers_read(&all, two);
	assert_int_equal(all.n, 2);
	assert_true(NEED(ipc_bytes(NULL, 0)));
	assert_true(NEED(ipc_bytes(silent.p, silent.len)));
	assert_true(NEED(ipc_bytes(promises.p, promises.len)));
	buf_free(&silent);
	buf_free(&promises);
	buf_free(&b);
	compiled_free(one);
	compiled_free(two);
}

/* Each change of an issuer's administrators is another basis, for that issuer
 * alone. */
static void
bases(void **unused)
{
	struct compiled *c[] = {compiled("panel", ADMIN_REVIEWER, false),
	    compiled("panel", ADMIN_REVIEWER, false),
	    compiled("other", ADMIN_REVIEWER, false),
	    compiled("panel", ADMIN_ADMINISTRATOR, false),
	    compiled("panel", ADMIN_REVIEWER, true)};
	struct offers o[5];

	for (int i = 0; i < 5; i++) {
		offers_read(&o[i], c[i]);
		assert_int_equal(
		    memcmp(&o[i].offer[0].basis, &o[0].offer[0].basis,
			sizeof(struct ipc_hash)) == 0,
		    i < 2);
		assert_memory_equal(&o[i].offer[1].basis, &o[0].offer[1].basis,
		    sizeof(struct ipc_hash));
	}
	for (int i = 0; i < 5; i++)
		compiled_free(c[i]);
}

static void
names(void **unused)
{
	static const struct {
		const char *sub, *want;
	} rows[] = {
	    {"ann", "ann@home"},
	    {"A.n-n_9", "A.n-n_9@home"},
	    {"12345678901234567890123456789012",
		"12345678901234567890123456789012@home"},
	    /* 33 characters, and others that no name has: a hash */
	    {"123456789012345678901234567890123", NULL},
	    {"auth0|1", NULL},
	    {"ann@home", NULL},
	    {"a/../b", NULL},
	    /* as a hash looks */
	    {"0123456789abcdef", NULL},
	    {"0123456789abcdeF", "0123456789abcdeF@home"},
	};
	char got[OFFERS_NAME_MAX + 1], digits[33];
	struct ipc_hash h;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		offers_name(ipc_str("home"), ipc_str(rows[i].sub), got);
		sha256(rows[i].sub, strlen(rows[i].sub), &h);
		for (int k = 0; k < 8; k++)
			snprintf(digits + (size_t)k * 2, 3, "%02x", h.b[k]);
		memcpy(digits + 16, "@home", 6);
		assert_string_equal(
		    got, rows[i].want != NULL ? rows[i].want : digits);
	}
}

static void
addresses(void **unused)
{
	struct compiled *c = compiled("pa nel", ADMIN_VIEWER, false);
	struct offers all;
	struct buf source, url;

	buf_init(&source, FIELDS_MAX);
	tlv_puts(&source, ISSUER_KEYS_URL, "https://id.example.org/realm");
	tlv_puts(&source, ISSUER_KEYS_HOST, "auth.example.org:8443");
#define COVERS(u) offers_covers(ipc_bytes(source.p, source.len), ipc_str(u))
	assert_true(COVERS("https://id.example.org/authorize"));
	assert_true(COVERS("https://id.example.org"));
	assert_true(COVERS("https://id.example.org:443/a"));
	assert_true(COVERS("https://id.example.org?a"));
	assert_true(COVERS("https://auth.example.org:8443/a"));
	assert_false(COVERS("https://auth.example.org/a"));
	assert_false(COVERS("https://id.example.org.evil.example/a"));
	assert_false(COVERS("https://id.example.org@evil.example/a"));
	assert_false(COVERS("https://evil.example/id.example.org"));
	assert_false(COVERS("https://id.example.org:8443/a"));
	assert_false(COVERS("http://id.example.org/a"));
	assert_false(COVERS("https://"));
	assert_false(COVERS(""));
	buf_init(&url, FIELDS_MAX);
	offers_read(&all, c);
	offers_url(&url, &all.offer[0], ipc_str("https://id.example.org/a"),
	    "S", "N", "C");
	buf_put_u8(&url, 0);
	assert_string_equal((const char *)url.p,
	    "https://id.example.org/a?response_type=code&client_id=pa%20nel"
	    "&redirect_uri=http%3A%2F%2F127.0.0.1%3A8000%2Fapi%2Fsignin%2F"
	    "callback&scope=openid%20a%26b&state=S&nonce=N&code_challenge=C"
	    "&code_challenge_method=S256");
	buf_clear(&url);
	offers_url(&url, &all.offer[0], ipc_str("https://id.example.org/a?p=1"),
	    "S", "N", "C");
	assert_memory_equal(url.p, "https://id.example.org/a?p=1&response", 37);
	buf_free(&url);
	buf_free(&source);
	compiled_free(c);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(state_of_this_process),
	    cmocka_unit_test(state_secrets),
	    cmocka_unit_test(roles),
	    cmocka_unit_test(answers_name_their_issuer),
	    cmocka_unit_test(bases),
	    cmocka_unit_test(names),
	    cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
