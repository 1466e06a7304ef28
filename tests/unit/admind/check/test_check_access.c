/* The access document: fields of good ones, every fault of bad ones. */
#include <limits.h>

#include <openssl/rsa.h>

#include "access.h"
#include "access_fields.h"
#include "bounds.h"
#include "endpoint_fields.h"
#include "jwt_key.h"
#include "signer.h"
#include "tlv.h"
#include "unit.h"

enum { TEXT_MAX = 512 * 1024 };

static char key[SIGNER_JWK_MAX]; /* a JWK with ' for " */

static int
begin(void **state)
{
	struct err err;

	if (jwt_key_ready(&err) == -1)
		fail_msg("%s", err.text);
	signer_start();
	signer_jwk(signer_key(SIGNER_EC), ",'kid':'e'", key);
	return 0;
}

static int
end(void **state)
{
	signer_stop();
	return 0;
}

/* Checks a document in which ' is " and KEY is the key. */
static void
checks(struct check *c, const char *text)
{
	static char with[TEXT_MAX], quoted[TEXT_MAX];
	const char *at;
	size_t n = 0;

	for (; (at = strstr(text, "KEY")) != NULL; text = at + 3)
		n += (size_t)snprintf(with + n, sizeof(with) - n, "%.*s%s",
		    (int)(at - text), text, key);
	snprintf(with + n, sizeof(with) - n, "%s", text);
	signer_quote(with, quoted, sizeof(quoted));
	check_access(c, ipc_str(quoted));
}

/* Writes fields as text: a record as N{...}, numbers in decimal. */
static void
show(const uint8_t *p, size_t len, unsigned record, char *out, size_t max)
{
	struct tlv_reader r;
	uint64_t u;
	size_t n;
	struct tlv f;

	tlv_open(&r, p, len);
	while (tlv_next(&r, &f) == 1) {
		n = strlen(out);
		assert_true(n + 64 < max);
		if ((record == 0 && f.tag != ACCESS_RESOURCE) ||
		    (record == ACCESS_ENDPOINT && f.tag == ENDPOINT_RENAME)) {
			snprintf(out + n, max - n, "%u{", f.tag);
			show(
			    f.p, f.n, record == 0 ? f.tag : UINT_MAX, out, max);
			strncat(out, "}", 2);
		} else if (record == ACCESS_ISSUER && f.tag == ISSUER_KEY) {
			strncat(out, "key ", 5);
		} else if (f.n == 8 && tlv_u64(&f, &u) == 0 && f.p[0] == 0) {
			snprintf(out + n, max - n, "%u=%llu ", f.tag,
			    (unsigned long long)u);
		} else if (f.n == 1 && f.p[0] < ' ') {
			snprintf(out + n, max - n, "%u=%u ", f.tag, f.p[0]);
		} else {
			snprintf(out + n, max - n, "%u=%.*s ", f.tag, (int)f.n,
			    (const char *)f.p);
		}
	}
}

static void
makes(const char *text, const char *want)
{
	static char have[64 * 1024];
	struct check c;

	checks(&c, text);
	if (!c.ok)
		fail_msg("%s: %.*s", c.summary, (int)c.errors.len,
		    (const char *)c.errors.p);
	*have = '\0';
	show(c.fields.p, c.fields.len, 0, have, sizeof(have));
	assert_string_equal(have, want);
	check_free(&c);
}

#define RES          "'resource':'https://mcp.example.org/mcp'"
#define IS           "'name':'pocket','issuer':'https://id.example.org'"
#define JWKS         "'jwks':{'keys':[KEY]}"
#define ISSUER(more) "{" RES ",'issuers':[{" IS "," JWKS more "}]}"
#define SETS                                                                   \
	"'permission_sets':[{'name':'family','scopes':['tools:read'],'allow':" \
	"['*']}]"
#define RULE(rule) \
	"{" RES ",'issuers':[{" IS "," JWKS "}],'rules':[" rule "]," SETS "}"
#define SET(set) "{'permission_sets':[" set "]}"

/* Endpoints: the shortest, and one with each member. */
static void
good_endpoints(void **state)
{
	makes("{'endpoints':[]}", "");
	makes(
	    "{'endpoints':[{'name':'home','allow':[]}]}", "5{1=home 6=0 8=6 }");
	makes("{" SETS ",'endpoints':[{'name':'a-1','allow':['a__*','b'],"
	      "'deny':['a__c'],'rename':[{'tool':'a__b','as':'b'},"
	      "{'tool':'b','as':'a__b','description':'Better.'}],"
	      "'instructions':'Look first.','mode':'search','set':'family',"
	      "'listeners':['tunnel']}]}",
	    "4{1=family 2=tools:read 3=* }"
	    "5{1=a-1 2=a__* 2=b 3=a__c 4{1=a__b 2=b }"
	    "4{1=b 2=a__b 3=Better. }5=Look first. 6=1 7=family 8=4 }");
}

static void
good(void **state)
{
	makes("{}", "");
	makes("{'issuers':[],'rules':[],'permission_sets':[]}", "");
	makes("{" RES "}", "1=https://mcp.example.org/mcp ");
	/* All that may be absent. */
	makes(ISSUER(""),
	    "1=https://mcp.example.org/mcp 2{1=pocket "
	    "2=https://id.example.org 3=https://mcp.example.org/mcp 4=3 5=0 "
	    "6=4 7=60 8=0 9=at+jwt 9=jwt 10=0 12=0 13=0 15=0 key }");
	/* And all that may be said. */
	makes(
	    ISSUER(",'audiences':['tag','https://a.example/'],"
		   "'algorithms':['ES256'],'header':'cf-access-jwt-assertion',"
		   "'listeners':['tunnel','local'],'leeway_seconds':0,"
		   "'max_age_seconds':60,'types':['','Application/AT+jwt'],"
		   "'email':'trusted','clients':['a','b'],'scopes':'token',"
		   "'id_tokens':true"),
	    "1=https://mcp.example.org/mcp 2{1=pocket "
	    "2=https://id.example.org 3=tag 3=https://a.example/ 4=3 5=1 "
	    "6=6 7=0 8=60 9= 9=at+jwt 10=1 11=a 11=b 12=1 13=1 15=0 key }");
	/* A bound issuer has another leeway, unless the document says one. */
	makes(ISSUER(",'bound':true"),
	    "1=https://mcp.example.org/mcp 2{1=pocket "
	    "2=https://id.example.org 3=https://mcp.example.org/mcp 4=3 5=0 "
	    "6=4 7=5 8=0 9=at+jwt 9=jwt 10=0 12=0 13=0 15=1 key }");
	makes(ISSUER(",'bound':true,'leeway_seconds':60"),
	    "1=https://mcp.example.org/mcp 2{1=pocket "
	    "2=https://id.example.org 3=https://mcp.example.org/mcp 4=3 5=0 "
	    "6=4 7=60 8=0 9=at+jwt 9=jwt 10=0 12=0 13=0 15=1 key }");
	/* Keys that are fetched: every algorithm that is not left out. */
	makes("{" RES ",'issuers':[{" IS ",'discovery':true,'key_hosts':"
	      "['keys.example.org','192.168.1.5:8443','[fd12::1]:443']}]}",
	    "1=https://mcp.example.org/mcp 2{1=pocket "
	    "2=https://id.example.org 3=https://mcp.example.org/mcp "
	    "20=https://id.example.org 21=1 22=keys.example.org "
	    "22=192.168.1.5:8443 22=[fd12::1]:443 4=1 4=2 4=3 4=4 5=0 "
	    "6=4 7=60 8=0 9=at+jwt 9=jwt 10=0 12=0 13=0 15=0 }");
	makes("{" RES ",'issuers':[{" IS ",'algorithms':['ES256'],"
	      "'jwks_url':'https://192.168.1.5:8443/jwks'}]}",
	    "1=https://mcp.example.org/mcp 2{1=pocket "
	    "2=https://id.example.org 3=https://mcp.example.org/mcp "
	    "20=https://192.168.1.5:8443/jwks 4=3 5=0 "
	    "6=4 7=60 8=0 9=at+jwt 9=jwt 10=0 12=0 13=0 15=0 }");
	makes(RULE("{'issuer':'pocket','claim':'email','values':"
		   "['a@example.org','b@example.org'],'set':'family'},"
		   "{'issuer':'pocket','claim':'any','set':'family'}"),
	    "1=https://mcp.example.org/mcp 2{1=pocket "
	    "2=https://id.example.org 3=https://mcp.example.org/mcp 4=3 5=0 "
	    "6=4 7=60 8=0 9=at+jwt 9=jwt 10=0 12=0 13=0 15=0 key }"
	    "3{1=pocket 2=2 3=a@example.org 3=b@example.org 4=family }"
	    "3{1=pocket 2=6 4=family }4{1=family 2=tools:read 3=* }");
	makes(SET("{'name':'a-1','scopes':['tools:read','tools:call','manage',"
		  "'manage:edit'],'allow':['a__*','a__b_c','b_c'],"
		  "'deny':['a__d']},{'name':'none','scopes':['manage'],"
		  "'allow':[],'deny':[],'calls_per_minute':30}"),
	    "4{1=a-1 2=tools:read 2=tools:call 2=manage 2=manage:edit 3=a__* "
	    "3=a__b_c 3=b_c 4=a__d }4{1=none 2=manage 5=30 }");
}

/* Issuers' URLs that are taken. */
static void
good_urls(void **state)
{
	static const char *const all[] = {"https://a.example/realms/x",
	    "https://a.example/", "https://a.example:8443", "http://localhost",
	    "http://127.0.0.1:8080/x", "http://[::1]:9",
	    "https://[2001:db8::1]", "https://A.example", "https://10.1.2.3"};
	char text[1024];
	struct check c;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(text, sizeof(text),
		    "{" RES ",'issuers':[{'name':'a','issuer':'%s'," JWKS "}]}",
		    all[i]);
		checks(&c, text);
		if (!c.ok)
			fail_msg("%s: %s", all[i], c.summary);
		check_free(&c);
	}
}

static const struct {
	const char *text, *pointer, *message;
} bad[] = {
#define BAD(text, pointer, message) {text, pointer, message},
#include "access_cases.def"
};

static void
has(const struct check *c, const char *text, const char *pointer,
    const char *message)
{
	char want[1024], quoted[1024];

	snprintf(want, sizeof(want), "{'pointer':'%s','message':'%s", pointer,
	    message);
	signer_quote(want, quoted, sizeof(quoted));
	if (memmem(c->errors.p, c->errors.len, quoted, strlen(quoted)) == NULL)
		fail_msg("%s: no %s in %.*s", text, quoted, (int)c->errors.len,
		    (const char *)c->errors.p);
}

static void
faults(void **state)
{
	struct check c;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		checks(&c, bad[i].text);
		if (c.ok)
			fail_msg("accepted: %s", bad[i].text);
		assert_int_equal(c.failure, FAILURE_INVALID_PARAMS);
		has(&c, bad[i].text, bad[i].pointer, bad[i].message);
		check_free(&c);
	}
}

/* A real key of 1024 bits is refused, one of 4096 is taken. */
static void
key_lengths(void **state)
{
	static const unsigned all[] = {1024, 4096};
	static char text[2 * SIGNER_JWK_MAX];
	char jwk[SIGNER_JWK_MAX];
	struct check c;

	for (size_t i = 0; i < 2; i++) {
		EVP_PKEY *rsa = EVP_RSA_gen(all[i]);

		assert_non_null(rsa);
		signer_jwk(rsa, ",'kid':'r'", jwk);
		snprintf(text, sizeof(text),
		    "{" RES ",'issuers':[{" IS ",'jwks':{'keys':[%s]}}]}", jwk);
		checks(&c, text);
		assert_int_equal(c.ok, all[i] == 4096);
		if (!c.ok)
			has(&c, text, "/issuers/0/jwks/keys/0",
			    "must have a modulus of 2048 to 4096 bits");
		check_free(&c);
		EVP_PKEY_free(rsa);
	}
}

/* All faults come at once, each with its place. */
static void
all_at_once(void **state)
{
	static const char text[] =
	    "{'resource':'http://x','issuers':[{'name':'A','issuer':"
	    "'ftp://x','jwks':{'keys':[{'kty':'oct','k':'AA'}]},'cleints':[]}],"
	    "'rules':[{'issuer':'b','claim':'emial','set':'c'}],"
	    "'permission_sets':[{'name':'d','scopes':[],'allow':['a__b__c']}],"
	    "'a/b~c':1}";
	static const char *const at[] = {"/resource", "/issuers/0/name",
	    "/issuers/0/issuer", "/issuers/0/jwks/keys/0/kty",
	    "/issuers/0/cleints", "/rules/0/issuer", "/rules/0/claim",
	    "/rules/0/set", "/permission_sets/0/scopes",
	    "/permission_sets/0/allow/0", "/a~1b~0c"};
	struct check c;

	checks(&c, text);
	assert_false(c.ok);
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		has(&c, text, at[i], "");
	assert_non_null(strstr(c.summary, "11 errors, the first: "));
	check_free(&c);
}

static void
not_json(void **state)
{
	static const char *const all[] = {"", "{", "{'a':1,'a':2}", "{} {}",
	    "{'resource':'\xff'}", "{'a':NaN}"};
	struct check c;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		checks(&c, all[i]);
		assert_false(c.ok);
		assert_int_equal(c.failure, FAILURE_INVALID_PARAMS);
		assert_non_null(
		    strstr(c.summary, "the access document is not JSON: byte"));
		check_free(&c);
	}
}

/* Writes a list of n entries: # in an entry is its number. */
static void
repeat(char *out, size_t max, const char *entry, unsigned n)
{
	size_t len = strlen(out);

	for (unsigned i = 0; i < n; i++) {
		if (i > 0)
			out[len++] = ',';
		for (const char *p = entry; *p != '\0'; p++) {
			assert_true(len + 16 < max);
			if (*p == '#')
				len += (size_t)snprintf(
				    out + len, max - len, "%u", i);
			else
				out[len++] = *p;
		}
	}
	out[len] = '\0';
}

/* Checks a document with n entries between two texts. Returns whether it is
 * taken; if not, the list is at `pointer`. */
static bool
takes(const char *before, const char *entry, unsigned n, const char *after,
    const char *pointer)
{
	static char text[TEXT_MAX];
	struct check c;
	bool ok;

	snprintf(text, sizeof(text), "%s", before);
	repeat(text, sizeof(text) - 1024, entry, n);
	strncat(text, after, 1023);
	checks(&c, text);
	ok = c.ok;
	if (!ok)
		has(&c, before, pointer, "has ");
	check_free(&c);
	return ok;
}

#define ONE "{" RES ",'issuers':[{" IS ","

/* Each list ends where its bound is. */
static void
bounds(void **state)
{
	static const struct {
		const char *before, *entry, *after, *pointer;
		unsigned max;
	} all[] = {
	    {"{" RES ",'issuers':[",
		"{'name':'i#','issuer':'https://i#.example'," JWKS "}", "]}",
		"/issuers", ACCESS_ISSUERS_MAX},
	    {ONE "'jwks':{'keys':[",
		"{'kty':'OKP','crv':'Ed25519','kid':'k#','x':"
		"'11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'}",
		"]}}]}", "/issuers/0/jwks/keys", ACCESS_KEYS_MAX},
	    {ONE JWKS ",'audiences':[", "'a#'", "]}]}", "/issuers/0/audiences",
		ACCESS_AUDIENCES_MAX},
	    {ONE JWKS ",'clients':[", "'a#'", "]}]}", "/issuers/0/clients",
		ACCESS_CLIENTS_MAX},
	    {ONE JWKS "}],'permission_sets':[{'name':'a','scopes':['manage'],"
		      "'allow':[]}],'rules':[",
		"{'issuer':'pocket','claim':'sub','values':['s#'],'set':'a'}",
		"]}", "/rules", ACCESS_RULES_MAX},
	    {ONE JWKS "}],'permission_sets':[{'name':'a','scopes':['manage'],"
		      "'allow':[]}],'rules':[{'issuer':'pocket','claim':'sub',"
		      "'set':'a','values':[",
		"'s#'", "]}]}", "/rules/0/values", ACCESS_VALUES_MAX},
	    {"{'endpoints':[", "{'name':'e#','allow':[]}", "]}", "/endpoints",
		ENDPOINTS_MAX},
	    {"{'endpoints':[{'name':'e','allow':[],'rename':[",
		"{'tool':'a__b#','as':'b#'}", "]}]}", "/endpoints/0/rename",
		ENDPOINT_RENAMES_MAX},
	    {"{'permission_sets':[",
		"{'name':'s#','scopes':['manage'],'allow':[]}", "]}",
		"/permission_sets", ACCESS_SETS_MAX},
	    {"{'permission_sets':[{'name':'s','scopes':['manage'],'allow':[",
		"'a__b#'", "]}]}", "/permission_sets/0/allow",
		ACCESS_PATTERNS_MAX},
	    {"{'permission_sets':[{'name':'s','scopes':['manage'],'allow':[],"
	     "'deny':[",
		"'a__b#'", "]}]}", "/permission_sets/0/deny",
		ACCESS_PATTERNS_MAX},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_true(takes(all[i].before, all[i].entry, all[i].max,
		    all[i].after, all[i].pointer));
		assert_false(takes(all[i].before, all[i].entry, all[i].max + 1,
		    all[i].after, all[i].pointer));
	}
}

/* A document of ACCESS_DOCUMENT_MAX bytes is read, one byte more is not. */
static void
reads_up_to_the_limit(void **state)
{
	static char text[ACCESS_DOCUMENT_MAX + 1];
	struct check c;

	memset(text, ' ', sizeof(text));
	memcpy(text, "{}", 2);
	check_access(&c, ipc_bytes(text, ACCESS_DOCUMENT_MAX));
	assert_true(c.ok);
	check_free(&c);
	check_access(&c, ipc_bytes(text, ACCESS_DOCUMENT_MAX + 1));
	assert_false(c.ok);
	assert_int_equal(c.failure, FAILURE_TOO_LARGE);
	check_free(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good),
	    cmocka_unit_test(good_endpoints),
	    cmocka_unit_test(good_urls),
	    cmocka_unit_test(faults),
	    cmocka_unit_test(key_lengths),
	    cmocka_unit_test(all_at_once),
	    cmocka_unit_test(not_json),
	    cmocka_unit_test(bounds),
	    cmocka_unit_test(reads_up_to_the_limit),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
