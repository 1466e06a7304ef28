/*
 * Keys that a run fetched: which of a set are taken, which sets are refused.
 * And tokens of an issuer whose keys are fetched: a missing key gives no
 * verdict on the token.
 */
#include "access.h"
#include "access_fields.h"
#include "ipc_values.h"
#include "jwt.h"
#include "jwt_key.h"
#include "keys.h"
#include "signer.h"
#include "signin_fields.h"
#include "tlv.h"
#include "unit.h"

enum { TEXT_MAX = 512 * 1024 };

static const uint64_t now = UINT64_C(1800000000) * 1000000;
static char ec[SIGNER_JWK_MAX], rsa[SIGNER_JWK_MAX], ed[SIGNER_JWK_MAX];
static char text[TEXT_MAX], quoted[TEXT_MAX];

static int
begin(void **state)
{
	struct err err;

	if (jwt_key_ready(&err) == -1)
		fail_msg("%s", err.text);
	signer_start();
	signer_jwk(signer_key(SIGNER_EC), ",'kid':'e'", ec);
	signer_jwk(signer_key(SIGNER_RSA), ",'kid':'r','use':'sig'", rsa);
	signer_jwk(signer_key(SIGNER_ED), ",'kid':'d'", ed);
	return 0;
}

static int
end(void **state)
{
	signer_stop();
	return 0;
}

/* Checks a run's answer in which the key set, with ' for ", is a text. */
static void
checks(struct check *c, const char *set)
{
	size_t n;

	n = (size_t)snprintf(text, sizeof(text),
	    "{\"content\":[],\"structuredContent\":{\"keys\":\"");
	for (; *set != '\0'; set++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%c",
		    strchr("'\"\\", *set) != NULL ? "\\" : "",
		    *set == '\'' ? '"' : *set);
	n += (size_t)snprintf(text + n, sizeof(text) - n,
	    "\",\"max_age\":1234},\"isError\":false}");
	check_keys(c, ipc_bytes(text, n));
}

/* Checks that the set gives keys of these names, in order. */
static void
takes(const char *set, const char *want)
{
	char have[1024] = "";
	struct tlv_reader r;
	struct tlv f, kid;
	uint64_t age = 0;
	struct check c;

	checks(&c, set);
	if (!c.ok)
		fail_msg("%s: %s", set, c.summary);
	tlv_open(&r, c.fields.p, c.fields.len);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == KEYS_MAX_AGE_S) {
			assert_int_equal(tlv_u64(&f, &age), 0);
		} else {
			assert_int_equal(f.tag, ISSUER_KEY);
			if (tlv_find(f.p, f.n, KEY_ID, &kid) == 1)
				strncat(have, (const char *)kid.p, kid.n);
			else
				strncat(have, "-", 2);
		}
	assert_int_equal(age, 1234);
	assert_string_equal(have, want);
	check_free(&c);
}

static void
refuses(const char *set, const char *sentence)
{
	struct check c;

	checks(&c, set);
	assert_false(c.ok);
	if (strstr(c.summary, sentence) == NULL)
		fail_msg("%.200s: %s", set, c.summary);
	check_free(&c);
}

static void
good_sets(void **state)
{
	static char set[64 * 1024];

	snprintf(set, sizeof(set), "{'keys':[%s,%s,%s],'more':1}", ec, rsa, ed);
	takes(set, "erd");
	/* Keys that we can't use are left out: other uses, algorithms, curves,
	 * sizes, secrets, nonsense, and a name that comes again. */
	snprintf(set, sizeof(set),
	    "{'keys':[1,null,{},{'kty':'oct','k':'AAAA','kid':'o'},"
	    "{'kty':'EC','crv':'P-384','x':'AA','y':'AA','kid':'x'},"
	    "{'kty':'RSA','kid':'enc','use':'enc','n':'AQ','e':'AQAB'},"
	    "{'kty':'RSA','kid':'small','n':'AQAB','e':'AQAB'},"
	    "{'kty':'RSA','alg':'RSA-OAEP','kid':'oaep'},%s,%s,%s]}",
	    ec, ec, rsa);
	takes(set, "er");
	signer_jwk(signer_key(SIGNER_ED), "", quoted);
	snprintf(set, sizeof(set), "{'keys':[%.*s]}", 2000, quoted);
	takes(set, "-");
}

static void
bad_sets(void **state)
{
	static char set[TEXT_MAX / 2];
	size_t n;

	refuses("", "the key set is not JSON");
	refuses("<html>", "the key set is not JSON");
	refuses("[]", "the key set is not an object");
	refuses("{}", "the key set has no array \"keys\"");
	refuses("{'keys':{}}", "the key set has no array \"keys\"");
	refuses("{'keys':[]}", "no key that can be used: it has no key");
	refuses("{'keys':[{'kty':'oct','k':'AAAA'}]}",
	    "no key that can be used: /keys/0/kty is \"oct\"");
	/* 33 keys, then 10,000, then too many bytes. */
	n = (size_t)snprintf(set, sizeof(set), "{'keys':[{}");
	for (int i = 0; i < 32; i++)
		n += (size_t)snprintf(set + n, sizeof(set) - n, ",{}");
	snprintf(set + n, sizeof(set) - n, "]}");
	refuses(set, "the key set has 33 keys, and at most 32 are read");
	for (int i = 33; i < 10000; i++)
		n += (size_t)snprintf(set + n, sizeof(set) - n, ",{}");
	snprintf(set + n, sizeof(set) - n, "]}");
	refuses(set, "the key set");
	memset(set, ' ', sizeof(set) - 1);
	memcpy(set, "{'keys':[]}", 11);
	set[ACCESS_KEYS_BYTES_MAX + 1] = '\0';
	refuses(set, "the key set has more than 65536 bytes");
}

static void
answers(void **state)
{
	static const struct {
		const char *answer, *want;
	} rows[] = {
	    {"{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":"
	     "\"no such host\"}]}",
		"no such host"},
	    {"{\"isError\":true}", "the run failed"},
	    {"{\"isError\":true,\"content\":[1]}", "the run failed"},
	    {"[]", "the run said no object"},
	    {"{}", "the run said no keys"},
	    {"{\"structuredContent\":{\"keys\":1}}", "the run said no keys"},
	    {"x", ""},
	};
	struct check c;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_keys(&c, ipc_str(rows[i].answer));
		assert_false(c.ok);
		assert_non_null(strstr(c.summary, rows[i].want));
		check_free(&c);
	}
}

/* Says in which way people sign in, by an answer's member sign_in. */
static void
sign_in(void **state)
{
	static const struct {
		const char *said, *url, *fault;
		unsigned iss;
	} rows[] = {
	    {"{'url':'https://id.example/a?b=c','iss':true}",
		"https://id.example/a?b=c", NULL, 1},
	    {"{'url':'https://id.example/a','iss':'true'}",
		"https://id.example/a", NULL, 0},
	    {"{'fault':'no S256'}", NULL, "no S256", 0},
	    {"{'url':'http://id.example/a'}", NULL, "do not say", 0},
	    {"{'url':'https://id.example/a#b'}", NULL, "do not say", 0},
	    {"{'url':'https://id.example/a b'}", NULL, "do not say", 0},
	    {"{'url':'https://id.example/\\u00e4'}", NULL, "do not say", 0},
	    {"{'url':'javascript:alert(1)'}", NULL, "do not say", 0},
	    {"{'fault':''}", NULL, "do not say", 0},
	    {"{}", NULL, "do not say", 0},
	    {"1", NULL, NULL, 0},
	};
	const char *url, *fault;
	struct check c;
	struct tlv f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(text, sizeof(text),
		    "{'structuredContent':{'keys':'{\\'keys\\':[{\\'kty\\':"
		    "\\'OKP\\',\\'crv\\':\\'Ed25519\\',\\'x\\':\\'"
		    "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\\'}]}',"
		    "'max_age':1,'sign_in':%s}}",
		    rows[i].said);
		signer_quote(text, quoted, sizeof(quoted));
		check_keys(&c, ipc_str(quoted));
		if (!c.ok)
			fail_msg("%s: %s", rows[i].said, c.summary);
		if (tlv_find(c.fields.p, c.fields.len, KEYS_SIGN_IN_URL, &f) ==
		    1) {
			url = rows[i].url != NULL ? rows[i].url : "none";
			assert_int_equal(f.n, strlen(url));
			assert_memory_equal(f.p, url, f.n);
			assert_int_equal(tlv_find(c.fields.p, c.fields.len,
					     KEYS_SIGN_IN_ISS, &f),
			    1);
			assert_int_equal(f.p[0], rows[i].iss);
		} else {
			assert_null(rows[i].url);
		}
		if (tlv_find(c.fields.p, c.fields.len, KEYS_SIGN_IN_FAULT,
			&f) == 1) {
			fault = rows[i].fault != NULL ? rows[i].fault : "none";
			assert_non_null(memmem(f.p, f.n, fault, strlen(fault)));
		} else {
			assert_null(rows[i].fault);
		}
		check_free(&c);
	}
}

/* ---- tokens ---- */

/* The record of an issuer, with one fetched key or none. */
static void
issuer(const char *source, const char *key, struct buf *out)
{
	struct buf record;
	struct check c, k;
	struct tlv f, one;

	snprintf(text, sizeof(text),
	    "{'resource':'https://mcp.example.org/mcp','issuers':[{'name':"
	    "'home','issuer':'https://id.example.org',%s}]}",
	    source);
	signer_quote(text, quoted, sizeof(quoted));
	check_access(&c, ipc_str(quoted));
	if (!c.ok)
		fail_msg("%s", c.summary);
	assert_int_equal(
	    tlv_find(c.fields.p, c.fields.len, ACCESS_ISSUER, &f), 1);
	buf_init(&record, IPC_BLOB_MAX);
	buf_put(&record, f.p, f.n);
	if (key != NULL) {
		char set[SIGNER_JWK_MAX + 32];

		snprintf(set, sizeof(set), "{'keys':[%s]}", key);
		checks(&k, set);
		assert_true(k.ok);
		assert_int_equal(
		    tlv_find(k.fields.p, k.fields.len, ISSUER_KEY, &one), 1);
		tlv_put(&record, ISSUER_KEY, one.p, one.n);
		check_free(&k);
	}
	buf_init(out, IPC_BLOB_MAX);
	tlv_put(out, ACCESS_ISSUER, record.p, record.len);
	buf_free(&record);
	check_free(&c);
}

/* Returns ' ' for an accepted token, '?' for a key that is not there, else
 * '!'. */
static char
judged(const struct buf *issuers, enum signer_way way, enum signer_key key,
    const char *header)
{
	static char token[SIGNER_TOKEN_MAX];
	struct jwt_question q = {.listener = LISTENER_TUNNEL, .now_us = now};
	struct check c;
	struct tlv f;
	char verdict;

	signer_token(way, signer_key(key), header,
	    "{'iss':'https://id.example.org','sub':'ann',"
	    "'aud':'https://mcp.example.org/mcp','exp':1800000060}",
	    token);
	q.token = ipc_str(token);
	q.issuers = ipc_bytes(issuers->p, issuers->len);
	check_jwt(&c, &q);
	verdict = !c.ok ? '!' : ' ';
	if (c.ok && tlv_find(c.fields.p, c.fields.len, JWT_NO_KEY, &f) == 1) {
		verdict = '?';
		assert_true(ipc_streq(ipc_bytes(f.p, f.n), "home"));
		/* and it says nothing about a person */
		assert_int_equal(c.fields.len, f.n + 5);
	}
	check_free(&c);
	return verdict;
}

static void
tokens(void **state)
{
	static const char e[] = "{'alg':'ES256','kid':'e','typ':'jwt'}";
	static const char other[] = "{'alg':'ES256','kid':'f','typ':'jwt'}";
	static const char none[] = "{'alg':'ES256','typ':'jwt'}";
	struct buf is;

	issuer("'discovery':true", NULL, &is);
	assert_int_equal(judged(&is, SIGN_ES256, SIGNER_EC, e), '?');
	assert_int_equal(judged(&is, SIGN_ES256, SIGNER_EC, none), '?');
	buf_free(&is);
	issuer("'discovery':true", ec, &is);
	assert_int_equal(judged(&is, SIGN_ES256, SIGNER_EC, e), ' ');
	assert_int_equal(judged(&is, SIGN_ES256, SIGNER_EC, none), ' ');
	assert_int_equal(judged(&is, SIGN_ES256, SIGNER_EC, other), '?');
	assert_int_equal(judged(&is, SIGN_ES256, SIGNER_OTHER, e), '!');
	assert_int_equal(judged(&is, SIGN_RS256, SIGNER_RSA,
			     "{'alg':'RS256','kid':'e','typ':'jwt'}"),
	    '!');
	assert_int_equal(judged(&is, SIGN_HS256, SIGNER_EC,
			     "{'alg':'HS256','kid':'e','typ':'jwt'}"),
	    '!');
	buf_free(&is);
	/* Given keys are all there are. */
	snprintf(quoted, sizeof(quoted), "'jwks':{'keys':[%.*s]}", 2000, ec);
	{
		static char source[4096];

		memcpy(source, quoted, strlen(quoted) + 1);
		issuer(source, NULL, &is);
	}
	assert_int_equal(judged(&is, SIGN_ES256, SIGNER_EC, e), ' ');
	assert_int_equal(judged(&is, SIGN_ES256, SIGNER_EC, other), '!');
	buf_free(&is);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good_sets),
	    cmocka_unit_test(bad_sets),
	    cmocka_unit_test(answers),
	    cmocka_unit_test(sign_in),
	    cmocka_unit_test(tokens),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
