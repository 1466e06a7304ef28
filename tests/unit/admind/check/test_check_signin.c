/*
 * ID tokens of administrators that sign in. jwt_cases.def has the faults of
 * every signed token; here are those of an ID token alone, and the members of
 * the document that must not count.
 */
#include "access.h"
#include "access_fields.h"
#include "jwt_key.h"
#include "signer.h"
#include "signin.h"
#include "tlv.h"
#include "unit.h"

enum { TEXT_MAX = 64 * 1024 };

static const uint64_t now = UINT64_C(1800000000) * 1000000;
static struct buf record;

/* The issuer takes tokens of a client with scopes, an age and a bound request.
 * None of this is asked of an ID token. */
static int
begin(void **state)
{
	static char jwk[SIGNER_JWK_MAX], text[TEXT_MAX], quoted[TEXT_MAX];
	struct check c;
	struct err err;
	struct tlv f;

	if (jwt_key_ready(&err) == -1)
		fail_msg("%s", err.text);
	signer_start();
	signer_jwk(signer_key(SIGNER_EC), ",'kid':'e'", jwk);
	snprintf(text, sizeof(text),
	    "{'resource':'https://mcp.example.org/mcp','issuers':[{'name':"
	    "'home','issuer':'https://id.example.org','header':"
	    "'cf-access-jwt-assertion','listeners':['local'],'bound':true,"
	    "'clients':['other'],'scopes':'token','types':['at+jwt'],"
	    "'jwks':{'keys':[%s]}}]}",
	    jwk);
	signer_quote(text, quoted, sizeof(quoted));
	check_access(&c, ipc_str(quoted));
	if (!c.ok)
		fail_msg("%s", c.summary);
	assert_int_equal(
	    tlv_find(c.fields.p, c.fields.len, ACCESS_ISSUER, &f), 1);
	buf_init(&record, TEXT_MAX);
	buf_put(&record, f.p, f.n);
	check_free(&c);
	return 0;
}

static int
end(void **state)
{
	buf_free(&record);
	signer_stop();
	return 0;
}

static void
ask(struct check *c, const char *result)
{
	struct signin_question q = {.now_us = now,
	    .client = ipc_str("panel"),
	    .nonce = ipc_str("n1"),
	    .issuer = ipc_bytes(record.p, record.len),
	    .result = ipc_str(result)};

	check_signin(c, &q);
}

/* Asks about a token of these claims. `aud` and the times are good unless more
 * says otherwise. */
static void
judge(struct check *c, const char *header, const char *aud, const char *more)
{
	static char claims[TEXT_MAX], token[SIGNER_TOKEN_MAX];
	static char result[SIGNER_TOKEN_MAX + 256];

	snprintf(claims, sizeof(claims),
	    "{'iss':'https://id.example.org','sub':'ann','aud':%s,"
	    "'iat':1799999990,'exp':1800000300%s}",
	    aud, more);
	signer_token(SIGN_ES256, signer_key(SIGNER_EC), header, claims, token);
	snprintf(result, sizeof(result),
	    "{\"structuredContent\":{\"id_token\":\"%s\"}}", token);
	ask(c, result);
}

#define HEAD "{'alg':'ES256','kid':'e','typ':'JWT'}"

static void
good(void **state)
{
	static const struct {
		const char *header, *aud, *more;
	} rows[] = {
	    {HEAD, "'panel'", ",'nonce':'n1'"},
	    {"{'alg':'ES256','kid':'e'}", "['panel']", ",'nonce':'n1'"},
	    {HEAD, "'panel'", ",'nonce':'n1','azp':'panel','at_hash':'x'"},
	    {HEAD, "['panel','api']", ",'nonce':'n1','azp':'panel'"},
	};
	struct check c;
	struct tlv f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		judge(&c, rows[i].header, rows[i].aud, rows[i].more);
		if (!c.ok)
			fail_msg("%s: %s", rows[i].more, c.summary);
		assert_int_equal(
		    tlv_find(c.fields.p, c.fields.len, JWT_SUB, &f), 1);
		assert_int_equal(f.n, 3);
		assert_memory_equal(f.p, "ann", 3);
		check_free(&c);
	}
}

static void
bad(void **state)
{
	static const struct {
		const char *header, *aud, *more, *why;
	} rows[] = {
	    {HEAD, "'panel'", "", "`nonce`"},
	    {HEAD, "'panel'", ",'nonce':'n2'", "`nonce`"},
	    {HEAD, "'panel'", ",'nonce':''", "`nonce`"},
	    {HEAD, "'panel'", ",'nonce':['n1']", "`nonce`"},
	    {HEAD, "'panel'", ",'nonce':'n1\\u0000'", ""},
	    {HEAD, "'panel'", ",'nonce':'n1','azp':'other'", "`azp`"},
	    {HEAD, "'panel'", ",'nonce':'n1','azp':1", ""},
	    {HEAD, "['panel','api']", ",'nonce':'n1'", "no `azp`"},
	    {HEAD, "'other'", ",'nonce':'n1'", "`aud`"},
	    {HEAD, "'https://mcp.example.org/mcp'", ",'nonce':'n1'", "`aud`"},
	    {HEAD, "'panel'", ",'nonce':'n1','events':{}", ""},
	    {HEAD, "'panel'", ",'nonce':'n1','cnf':{}", ""},
	    {"{'alg':'ES256','kid':'x'}", "'panel'", ",'nonce':'n1'", "`kid`"},
	    {"{'alg':'none','kid':'e'}", "'panel'", ",'nonce':'n1'", "`alg`"},
	    {"{'alg':'ES256','kid':'e','typ':'at+jwt'}", "'panel'",
		",'nonce':'n1'", "`typ`"},
	};
	struct check c;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		judge(&c, rows[i].header, rows[i].aud, rows[i].more);
		assert_false(c.ok);
		assert_int_equal(c.failure, FAILURE_UNAUTHENTICATED);
		if (strstr(c.summary, rows[i].why) == NULL)
			fail_msg("%s: %s", rows[i].more, c.summary);
		check_free(&c);
	}
}

static void
answers(void **state)
{
	static const struct {
		const char *answer, *why;
	} rows[] = {
	    {"{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":"
	     "\"HTTP 400\"}]}",
		"HTTP 400"},
	    {"[]", "the run said no object"},
	    {"{}", "the run said no token"},
	    {"{\"structuredContent\":{\"id_token\":1}}", "no token"},
	    {"{\"structuredContent\":{\"id_token\":\"\"}}", ""},
	    {"{\"structuredContent\":{\"id_token\":\"a.b\"}}", ""},
	    {"x", ""},
	};
	struct check c;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ask(&c, rows[i].answer);
		assert_false(c.ok);
		assert_non_null(strstr(c.summary, rows[i].why));
		check_free(&c);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good),
	    cmocka_unit_test(bad),
	    cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
