/*
 * Signed tokens: bad credentials and their accepted controls (jwt_cases.def,
 * jwt_claims.def, jwt_bound.def), against one access document with five
 * issuers.
 */
#include "access.h"
#include "access_fields.h"
#include "ids.h"
#include "ipc_values.h"
#include "jwt.h"
#include "jwt_key.h"
#include "signer.h"
#include "tlv.h"
#include "unit.h"

static const uint64_t now = UINT64_C(1800000000) * 1000000;

/* Changes of a token after it was signed. */
enum change {
	NONE,
	OTHER_SUB,
	ONE_BIT_SIGNATURE,
	SHORT_SIGNATURE,
	LONG_SIGNATURE,
	R_ZERO,
	S_ZERO,
	BOTH_ZERO,
	R_PLUS_ORDER,
	S_IS_ORDER,
	NO_SIGNATURE,
	NO_CLAIMS,
	NO_HEADER,
	FOUR_PARTS,
	FIVE_PARTS,
	TWO_PARTS,
	EMPTY,
	PADDED,
	SPARE_BITS,
	SPACE_FIRST,
	NEWLINE_LAST,
	STANDARD_ALPHABET,
	NINE_KIB
};

enum door { TUNNEL, LOCAL, ACCESS, LOCAL_ACCESS };

struct one {
	bool good;
	enum signer_way way;
	enum signer_key key;
	const char *header, *claims;
	enum change change;
	enum door door;
	const char *want;
};

#define X16  "xxxxxxxxxxxxxxxx"
#define X64  X16 X16 X16 X16
#define X193 X64 X64 X64 "x"
#define G8   "'g','g','g','g','g','g','g','g'"
#define G64  G8 "," G8 "," G8 "," G8 "," G8 "," G8 "," G8 "," G8

#define GOOD(w, k, h, c, x, d, p) {true, SIGN_##w, SIGNER_##k, h, c, x, d, p},
#define BAD(w, k, h, c, x, d, s)  {false, SIGN_##w, SIGNER_##k, h, c, x, d, s},
static const struct one all[] = {
#include "jwt_cases.def"
#include "jwt_claims.def"
#include "jwt_bound.def"
};
#undef GOOD
#undef BAD

enum { COUNT = sizeof(all) / sizeof(all[0]) };

static struct check doc; /* the access document's fields */

/* Judges a token at a door. */
static void
judge(struct check *c, const char *token, size_t n, enum door door)
{
	struct jwt_question q = {
	    .listener = door == LOCAL || door == LOCAL_ACCESS ? LISTENER_LOCAL
							      : LISTENER_TUNNEL,
	    .via = door == ACCESS || door == LOCAL_ACCESS ? VIA_ASSERTION
							  : VIA_AUTHORIZATION,
	    .now_us = now,
	    .token = ipc_bytes(token, n),
	    .issuers = ipc_bytes(doc.fields.p, doc.fields.len)};

	check_jwt(c, &q);
}

/* Writes the document: pocket with four keys, access for its own header, strict
 * with one key that has no name, ids for ID tokens at the local listener,
 * worker whose tokens are bound to one request. */
static int
begin(void **state)
{
	static char text[40 * 1024], quoted[40 * 1024];
	char e[SIGNER_JWK_MAX], r[SIGNER_JWK_MAX], p[SIGNER_JWK_MAX],
	    d[SIGNER_JWK_MAX], a[SIGNER_JWK_MAX], none[SIGNER_JWK_MAX];
	struct err err;

	if (jwt_key_ready(&err) == -1)
		fail_msg("%s", err.text);
	signer_start();
	signer_jwk(signer_key(SIGNER_EC), ",'kid':'e','alg':'ES256'", e);
	signer_jwk(signer_key(SIGNER_EC), "", none);
	signer_jwk(signer_key(SIGNER_RSA), ",'kid':'r','use':'sig'", r);
	signer_jwk(signer_key(SIGNER_RSA), ",'kid':'a','alg':'RS256'", a);
	signer_jwk(signer_key(SIGNER_RSA_PS), ",'kid':'p','alg':'PS256'", p);
	signer_jwk(signer_key(SIGNER_ED), ",'kid':'d'", d);
	snprintf(text, sizeof(text),
	    "{'resource':'https://mcp.example.org/mcp','issuers':["
	    "{'name':'pocket','issuer':'https://id.example.org',"
	    "'jwks':{'keys':[%s,%s,%s,%s]}},"
	    "{'name':'access','issuer':'https://team.example.org',"
	    "'audiences':['tag'],'header':'cf-access-jwt-assertion',"
	    "'email':'trusted','jwks':{'keys':[%s],'public_certs':[]}},"
	    "{'name':'strict','issuer':'https://strict.example.org',"
	    "'algorithms':['ES256'],'leeway_seconds':0,'max_age_seconds':600,"
	    "'types':[''],'clients':['app'],'scopes':'token',"
	    "'jwks':{'keys':[%s]}},"
	    "{'name':'ids','issuer':'https://ids.example.org/',"
	    "'audiences':['https://mcp.example.org/mcp/'],"
	    "'listeners':['local'],'email':'trusted','id_tokens':true,"
	    "'jwks':{'keys':[%s]}},"
	    "{'name':'worker','issuer':'https://worker.example.org',"
	    "'bound':true,'jwks':{'keys':[%s]}}]}",
	    e, r, p, d, a, none, e, d);
	signer_quote(text, quoted, sizeof(quoted));
	check_access(&doc, ipc_str(quoted));
	if (!doc.ok)
		fail_msg("%s", doc.summary);
	return 0;
}

static int
end(void **state)
{
	check_free(&doc);
	signer_stop();
	return 0;
}

/* Decodes an ES256 signature, changes it and puts it back. */
static void
change_numbers(char *signature, enum change change)
{
	static const uint8_t order[32] = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,
	    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
	    0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63,
	    0x25, 0x51};
	uint8_t raw[64];
	unsigned carry = 0;

	assert_int_equal(b64url_decode(signature, strlen(signature), raw), 64);
	if (change == R_ZERO || change == BOTH_ZERO)
		memset(raw, 0, 32);
	if (change == S_ZERO || change == BOTH_ZERO)
		memset(raw + 32, 0, 32);
	if (change == S_IS_ORDER)
		memcpy(raw + 32, order, 32);
	/* Also equal modulo the order, if it still fits; else any number that
	 * is out of range. */
	for (int i = 31; change == R_PLUS_ORDER && i >= 0; i--) {
		carry += raw[i] + order[i];
		raw[i] = (uint8_t)carry;
		carry >>= 8;
	}
	if (carry > 0)
		memset(raw, 0xff, 32);
	b64url_encode(raw, 64, signature);
}

/* Makes bob of ann in the claims. */
static void
change_sub(char *claims, const char *signature)
{
	size_t n = (size_t)(signature - claims) - 1;
	char text[JWT_MAX], *ann;
	long len = b64url_decode(claims, n, text);

	assert_true(len > 0);
	ann = memmem(text, (size_t)len, "ann", 3);
	assert_non_null(ann);
	memcpy(ann, "bob", 3);
	assert_int_equal(b64url_encode(text, (size_t)len, claims), n);
	claims[n] = '.';
}

/* Changes a token. */
static void
tamper(char token[SIGNER_TOKEN_MAX], enum change change)
{
	char *claims = strchr(token, '.') + 1;
	char *signature = strchr(claims, '.') + 1;
	size_t n = strlen(token);

	switch (change) {
	case NONE:
		return;
	case OTHER_SUB:
		change_sub(claims, signature);
		return;
	case ONE_BIT_SIGNATURE:
		signature[4] = signature[4] == 'A' ? 'B' : 'A';
		return;
	case SHORT_SIGNATURE:
		token[n - 4] = '\0';
		/* No spare bits may be left. */
		token[n - 5] = 'A';
		return;
	case LONG_SIGNATURE:
		memcpy(token + n - 1, "AAAAA", 6);
		return;
	case R_ZERO:
	case S_ZERO:
	case BOTH_ZERO:
	case R_PLUS_ORDER:
	case S_IS_ORDER:
		change_numbers(signature, change);
		return;
	case NO_SIGNATURE:
		*signature = '\0';
		return;
	case NO_CLAIMS:
		memmove(claims, signature - 1, strlen(signature) + 2);
		return;
	case NO_HEADER:
		memmove(token, claims - 1, strlen(claims) + 2);
		return;
	case FOUR_PARTS:
		strncat(token, ".eA", 4);
		return;
	case FIVE_PARTS:
		strncat(token, ".eA.eA", 7);
		return;
	case TWO_PARTS:
		signature[-1] = '\0';
		return;
	case EMPTY:
		*token = '\0';
		return;
	case PADDED:
		strncat(token, "==", 3);
		return;
	case SPARE_BITS:
		/* 64 bytes leave four spare bits. */
		token[n - 1] = (char)(token[n - 1] + 1);
		return;
	case SPACE_FIRST:
		memmove(token + 1, token, n + 1);
		*token = ' ';
		return;
	case NEWLINE_LAST:
		strncat(token, "\n", 2);
		return;
	case STANDARD_ALPHABET:
		signature[4] = '+';
		return;
	case NINE_KIB:
		memset(token + n, 'A', 9 * 1024 - n);
		token[9 * 1024] = '\0';
		return;
	}
}

/* Writes the fields as jwt_cases.def has them. The times are in tests of their
 * own. */
static void
show(const struct check *c, char *out, size_t max)
{
	static const char *const before[] = {[JWT_ISSUER] = "",
	    [JWT_SUB] = " ",
	    [JWT_EMAIL] = " e:",
	    [JWT_CLIENT] = " c:",
	    [JWT_GROUP] = " g:"};
	struct tlv_reader r;
	unsigned last = 0;
	struct tlv f;
	size_t n = 0;

	*out = '\0';
	tlv_open(&r, c->fields.p, c->fields.len);
	while (tlv_next(&r, &f) == 1) {
		assert_true(f.tag >= last);
		last = f.tag;
		if (f.tag <= JWT_GROUP)
			n += (size_t)snprintf(out + n, max - n, "%s%.*s",
			    before[f.tag], (int)f.n, (const char *)f.p);
		else if (f.tag == JWT_SCOPES)
			n +=
			    (size_t)snprintf(out + n, max - n, " s:%u", f.p[0]);
		assert_true(n < max);
	}
}

/* Judges one token of the table. Returns whether the verdict is the one that
 * its row has. */
static bool
is_judged(const struct one *o, unsigned *bad)
{
	static char token[SIGNER_TOKEN_MAX];
	char shown[1024];
	const char *have = shown;
	struct check c;
	bool same;

	signer_token(o->way, signer_key(o->key), o->header, o->claims, token);
	tamper(token, o->change);
	judge(&c, token, strlen(token), o->door);
	if (c.ok) {
		show(&c, shown, sizeof(shown));
		same = o->good && strcmp(shown, o->want) == 0;
	} else {
		have = c.summary;
		same = !o->good && c.failure == FAILURE_UNAUTHENTICATED &&
		    strncmp(have, o->want, strlen(o->want)) == 0;
		++*bad;
	}
	if (!same)
		print_error("row \"%s\": %s %s: %s\n", o->want, o->header,
		    o->claims, have);
	check_free(&c);
	return same;
}

static void
judges_each(void **state)
{
	unsigned bad = 0, wrong = 0;

	for (size_t i = 0; i < COUNT; i++)
		wrong += !is_judged(&all[i], &bad);
	assert_int_equal(wrong, 0);
	assert_true(bad >= 80);
}

static uint64_t
time_field(const struct check *c, uint8_t tag)
{
	uint64_t us;
	struct tlv f;

	assert_int_equal(tlv_find(c->fields.p, c->fields.len, tag, &f), 1);
	assert_int_equal(tlv_u64(&f, &us), 0);
	return us;
}

/* Times come in us, cut to seconds, without leeway. */
static void
tells_times(void **state)
{
	static char token[SIGNER_TOKEN_MAX];
	struct check c;
	struct tlv f;

	signer_token(SIGN_ES256, signer_key(SIGNER_EC), ES,
	    "{" ISS "," AUD "," SUB ",'exp':1800000300.999,'iat':17999999e2}",
	    token);
	judge(&c, token, strlen(token), TUNNEL);
	assert_true(c.ok);
	assert_true(time_field(&c, JWT_EXP_US) == UINT64_C(1800000300000000));
	assert_true(time_field(&c, JWT_IAT_US) == UINT64_C(1799999900000000));
	check_free(&c);
	signer_token(SIGN_ES256, signer_key(SIGNER_EC), ES,
	    "{"
	    "'x':1," ISS "," AUD "," EXP "," SUB "}",
	    token);
	judge(&c, token, strlen(token), TUNNEL);
	assert_true(c.ok);
	assert_int_equal(tlv_find(c.fields.p, c.fields.len, JWT_IAT_US, &f), 0);
	check_free(&c);
}

/* The request that a token is bound to comes as bytes; the session's end comes
 * in us. */
static void
tells_the_request(void **state)
{
	static const uint8_t empty[32] = {0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc,
	    0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27,
	    0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b,
	    0x78, 0x52, 0xb8, 0x55};
	static const char *const texts[] = {[BOUND_METHOD] = "GET",
	    [BOUND_URL] = "https://mcp.example.org/mcp?x=1",
	    [BOUND_ID] = "7c1\"\n"};
	static char token[SIGNER_TOKEN_MAX];
	struct check c;
	struct tlv f, g;
	uint64_t us;

	signer_token(SIGN_EDDSA, signer_key(SIGNER_ED), WK_H,
	    WK(WK_T,
		"'htm':'GET','htu':'https://mcp.example.org/mcp?x=1'," WK_B
		",'jti':'7c1\\u0022\\n','session_exp':1800003600.9"),
	    token);
	judge(&c, token, strlen(token), TUNNEL);
	if (!c.ok)
		fail_msg("%s", c.summary);
	assert_int_equal(tlv_find(c.fields.p, c.fields.len, JWT_BOUND, &f), 1);
	for (int tag = BOUND_METHOD; tag <= BOUND_ID; tag++) {
		assert_int_equal(tlv_find(f.p, f.n, (uint8_t)tag, &g), 1);
		if (tag == BOUND_BODY) {
			assert_int_equal(g.n, sizeof(empty));
			assert_memory_equal(g.p, empty, g.n);
		} else {
			assert_int_equal(g.n, strlen(texts[tag]));
			assert_memory_equal(g.p, texts[tag], g.n);
		}
	}
	assert_int_equal(tlv_find(f.p, f.n, BOUND_SESSION_EXP_US, &g), 1);
	assert_int_equal(tlv_u64(&g, &us), 0);
	assert_true(us == UINT64_C(1800003600000000));
	check_free(&c);
	/* Without session_exp the field is absent, too. */
	signer_token(
	    SIGN_EDDSA, signer_key(SIGNER_ED), WK_H, WK(WK_T, WK_R), token);
	judge(&c, token, strlen(token), TUNNEL);
	assert_true(c.ok);
	assert_int_equal(tlv_find(c.fields.p, c.fields.len, JWT_BOUND, &f), 1);
	assert_int_equal(tlv_find(f.p, f.n, BOUND_SESSION_EXP_US, &g), 0);
	check_free(&c);
	/* An issuer that is not bound says nothing of a request. */
	signer_token(SIGN_ES256, signer_key(SIGNER_EC), ES,
	    WITH(WK_R ",'session_exp':'x'"), token);
	judge(&c, token, strlen(token), TUNNEL);
	assert_true(c.ok);
	assert_int_equal(tlv_find(c.fields.p, c.fields.len, JWT_BOUND, &f), 0);
	check_free(&c);
}

/* A token of exactly JWT_MAX bytes is read, one byte more is not. */
static void
reads_up_to_the_limit(void **state)
{
	static char token[SIGNER_TOKEN_MAX], claims[2 * JWT_MAX], x[JWT_MAX];
	struct check c;
	bool seen = false;

	memset(x, 'x', sizeof(x));
	for (int n = 5800; n < 6100; n++) {
		snprintf(claims, sizeof(claims), WITH("'x':'%.*s'"), n, x);
		signer_token(
		    SIGN_ES256, signer_key(SIGNER_EC), ES, claims, token);
		judge(&c, token, strlen(token), TUNNEL);
		assert_int_equal(c.ok, strlen(token) <= JWT_MAX);
		seen = seen || strlen(token) == JWT_MAX;
		check_free(&c);
	}
	assert_true(seen);
}

/* Records that CHECK_ACCESS would not make are our fault, and open nothing. */
static void
refuses_broken_records(void **state)
{
	static char token[SIGNER_TOKEN_MAX];
	struct jwt_question q = {.listener = LISTENER_TUNNEL, .now_us = now};
	struct check c;
	unsigned internal = 0;

	signer_token(SIGN_ES256, signer_key(SIGNER_EC), ES,
	    "{" ISS "," AUD "," EXP "," SUB "}", token);
	q.token = ipc_str(token);
	for (size_t n = 0; n < doc.fields.len; n++) {
		uint8_t *cut = malloc(n + 1);

		assert_non_null(cut);
		memcpy(cut, doc.fields.p, n);
		q.issuers = ipc_bytes(cut, n);
		check_jwt(&c, &q);
		internal += !c.ok && c.failure == FAILURE_INTERNAL;
		/* All of the first issuer is there at the end. */
		assert_true(!c.ok || n > doc.fields.len / 3);
		check_free(&c);
		free(cut);
	}
	assert_true(internal > 100);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(judges_each),
	    cmocka_unit_test(tells_times),
	    cmocka_unit_test(tells_the_request),
	    cmocka_unit_test(reads_up_to_the_limit),
	    cmocka_unit_test(refuses_broken_records),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
