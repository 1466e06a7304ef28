/* mcpboxctl remote without I/O: answers from outside as fields, and the
 * document with a remote and without it. */
#include <json-c/json.h>

#include "remote_document.h"
#include "remote_key.h"
#include "remote_read.h"
#include "unit.h"

static struct json_object *
parse(const char *s)
{
	struct json_object *o = json_tokener_parse(s);

	assert_non_null(o);
	return o;
}

/* ---- remote_read.h ---- */

static struct remote_said
challenge(const char *s)
{
	struct remote_said said = {0};

	remote_read_challenge(s, strlen(s), &said);
	return said;
}

static void
challenges(void **state)
{
	struct remote_said s;

	(void)state;
	s = challenge(
	    "Bearer realm=\"mcpbox\", resource_metadata=\"https://h/x\""
	    ", scope=\"tools:read tools:call\", error=\"invalid_token\""
	    ", error_description=\"the token ended\"");
	assert_true(s.bearer);
	assert_string_equal(s.realm, "mcpbox");
	assert_string_equal(s.metadata, "https://h/x");
	assert_string_equal(s.error, "invalid_token");
	assert_string_equal(s.description, "the token ended");
	/* Parameters of another scheme are not those of Bearer. */
	s = challenge("Basic realm=\"a\", error=\"x\"");
	assert_false(s.bearer);
	assert_string_equal(s.error, "");
	s = challenge("Basic realm=\"a\", Bearer error=one, DPoP error=two");
	assert_true(s.bearer);
	assert_string_equal(s.realm, "");
	assert_string_equal(s.error, "one");
	/* The first of two Bearer counts, and the first of two parameters. */
	s = challenge("Bearer error=a, error=b, Bearer error=c, realm=d");
	assert_string_equal(s.error, "a");
	assert_string_equal(s.realm, "");
	s = challenge("bearer REALM=x");
	assert_true(s.bearer);
	assert_string_equal(s.realm, "x");
	/* A broken part ends with the field. */
	for (size_t n = 0; n < 6; n++) {
		static const char *const bad[] = {"", "Bearer",
		    "Bearer error=", "Bearer error=\"x", "Bearer error=\"x\\",
		    "=\"\",,=\\"};

		s = challenge(bad[n]);
		assert_string_equal(s.realm, "");
	}
	/* A terminal's commands, and a text with an escape, are left out. */
	s = challenge(
	    "Bearer error_description=\"a\x1b[2Jb\", realm=\"a\\\"b\"");
	assert_string_equal(s.description, "");
	assert_string_equal(s.realm, "");
}

static struct remote_said *
body(const char *type, const char *text)
{
	static struct remote_said said;

	memset(&said, 0, sizeof(said));
	remote_read_body(text, strlen(text), type, &said);
	return &said;
}

static void
bodies(void **state)
{
	struct remote_said *s;

	(void)state;
	s = body("application/json",
	    "{\"resource\":\"https://h/mcp\",\"authorization_servers\":["
	    "\"https://a\",1,\"https://b\"]}");
	assert_true(s->json && !s->html);
	assert_string_equal(s->resource, "https://h/mcp");
	assert_int_equal(s->nservers, 2);
	assert_string_equal(s->servers[1], "https://b");
	s = body("",
	    "{\"issuer\":\"https://i\",\"jwks_uri\":\"https://i/k\","
	    "\"code_challenge_methods_supported\":[\"plain\",\"S256\"]}");
	assert_string_equal(s->issuer, "https://i");
	assert_string_equal(s->jwks_uri, "https://i/k");
	assert_true(s->s256);
	s = body("text/html; charset=utf-8", "hello");
	assert_true(s->html && !s->json);
	s = body("", "\n <!DOCTYPE html><p>");
	assert_true(s->html);
	s = body("application/json", "{\"resource\":\"a\",\"resource\":\"b\"}");
	assert_false(s->json);
	s = body("application/json", "[1]");
	assert_false(s->json);
	s = body("application/json", "{\"resource\":\"a b\",\"issuer\":7}");
	assert_true(s->json);
	assert_string_equal(s->resource, "");
	assert_string_equal(s->issuer, "");
	/* JSON-RPC, as one object or as events; the last event counts. */
	s = body("application/json",
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"message\":\"no\"}}");
	assert_false(s->result);
	assert_string_equal(s->rpc_error, "no");
	s = body("text/event-stream",
	    "event: message\ndata: {\"method\":\"x\"}\n\nid: 2\n"
	    "data: {\"result\":{\"tools\":[{},{}]}}\n\n");
	assert_true(s->result);
	assert_int_equal(s->ntools, 2);
	s = body("text/event-stream", "{\"result\":{}}");
	assert_false(s->result);
}

static void
long_texts(void **state)
{
	char text[REMOTE_URL_MAX + 64];
	struct remote_said *s;
	size_t n;

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		n = (size_t)snprintf(text, sizeof(text),
		    "{\"resource\":\"%0*d\"}", (int)(REMOTE_URL_MAX + more), 0);
		assert_true(n < sizeof(text));
		s = body("", text);
		assert_int_equal(
		    strlen(s->resource), more == 0 ? REMOTE_URL_MAX : 0);
	}
}

static void
thumbprints(void **state)
{
	/* RFC 7638 section 3.1, RFC 8037 appendix A.3 */
	static const char *const vectors[][2] = {
	    {"{\"kty\":\"RSA\",\"n\":"
	     "\"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFb"
	     "WhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n"
	     "3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQ"
	     "R0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91"
	     "CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xB"
	     "niIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw\",\"e\":\"AQAB\","
	     "\"alg\":\"RS256\",\"kid\":\"2011-04-29\"}",
		"NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"},
	    {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
	     "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
		"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"}};
	static const char *const bad[] = {"{}", "{\"kty\":\"oct\",\"k\":\"x\"}",
	    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\"}",
	    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"a\\\"b\"}"};
	char thumb[REMOTE_THUMB_LEN + 1];
	struct json_object *o;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		o = parse(vectors[i][0]);
		assert_int_equal(remote_read_thumb(o, thumb), 0);
		assert_string_equal(thumb, vectors[i][1]);
		json_object_put(o);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o = parse(bad[i]);
		assert_int_equal(remote_read_thumb(o, thumb), -1);
		json_object_put(o);
	}
}

static void
only_keys_that_sign(void **state)
{
	struct remote_key keys[REMOTE_KEYS_MAX];
	struct json_object *o = parse(
	    "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"a\",\"y\":"
	    "\"b\","
	    "\"kid\":\"one\"},{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"a\","
	    "\"y\":\"b\"},{\"kty\":\"RSA\",\"n\":\"a\",\"e\":\"b\",\"use\":"
	    "\"enc\"},7,{\"kty\":\"RSA\",\"n\":\"a\",\"e\":\"b\",\"use\":"
	    "\"sig\"}]}");

	(void)state;
	assert_int_equal(remote_read_keys(o, keys), 2);
	assert_string_equal(keys[0].kid, "one");
	assert_string_equal(keys[1].kid, "");
	json_object_put(o);
}

static void
a_workers_key(void **state)
{
	struct json_object *set = NULL, *other = NULL, *private;
	struct remote_key keys[REMOTE_KEYS_MAX];
	struct buf one, two;

	(void)state;
	buf_init(&one, REMOTE_JWK_MAX);
	buf_init(&two, REMOTE_JWK_MAX);
	assert_int_equal(remote_key_make(&set, &one, NULL), 0);
	assert_int_equal(remote_key_make(&other, &two, NULL), 0);
	assert_int_equal(remote_read_keys(set, keys), 1);
	assert_string_equal(keys[0].kid, keys[0].thumb);
	assert_null(strstr(json_object_to_json_string(set), "\"d\""));
	buf_putc(&one, '\0');
	private = parse((const char *)one.p);
	assert_string_equal(
	    remote_document_text(private, "kid"), keys[0].thumb);
	assert_int_equal(strlen(remote_document_text(private, "d")), 43);
	assert_false(json_object_equal(set, other));
	json_object_put(private);
	json_object_put(set);
	json_object_put(other);
	buf_free(&one);
	buf_free(&two);
}

/* ---- remote.h ---- */

static void
hosts(void **state)
{
	static const char *const good[][3] = {
	    {"https://mcp.example.org/mcp", "mcp.example.org",
		"mcp.example.org"},
	    {"https://a:8443/mcp", "a", "a:8443"}};
	static const char *const bad[] = {"", "http://a/mcp", "https:///mcp",
	    "https://a", "https://a/", "https://a/mcp/", "https://a/mcp?x",
	    "https://u@a/mcp", "https://a:/mcp", "https://a:123456/mcp",
	    "https://a;b/mcp", "https://a b/mcp", "https://a{/mcp"};
	char host[REMOTE_HOST_MAX + 1], authority[REMOTE_HOST_MAX + 7];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(remote_host(good[i][0], host, authority), 0);
		assert_string_equal(host, good[i][1]);
		assert_string_equal(authority, good[i][2]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(remote_host(bad[i], host, authority), -1);
	assert_true(remote_name_ok("a-1"));
	assert_false(remote_name_ok("A"));
	assert_false(remote_name_ok("1a"));
	assert_false(remote_name_ok("a/../b"));
	assert_false(remote_name_ok("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

/* ---- remote_document.h ---- */

#define HOME                                                                  \
	"{\"resource\":\"https://h/mcp\",\"issuers\":[{\"name\":\"home\","    \
	"\"issuer\":\"https://id\"}],\"rules\":[{\"issuer\":\"home\","        \
	"\"claim\":\"any\",\"set\":\"use\"}],\"permission_sets\":[{\"name\":" \
	"\"use\",\"scopes\":[\"tools:call\"],\"allow\":[\"*\"]}]}"

static struct remote_wish
wish(enum remote_kind kind)
{
	return (struct remote_wish){.name = "new",
	    .kind = kind,
	    .resource = "https://h/mcp",
	    .issuer = "https://new",
	    .emails = "a@x, b@x,",
	    .scopes = "tools:read,tools:call",
	    .allow = "*",
	    .discovery = true};
}

static void
added_and_removed(void **state)
{
	struct json_object *was = parse(HOME), *with = NULL, *without = NULL,
			   *rule;
	struct remote_wish w = wish(REMOTE_OIDC);
	struct buf stays;
	struct err err;

	(void)state;
	buf_init(&stays, 4096);
	w.subs = "s1";
	assert_int_equal(remote_document_add(was, &w, &with, &err), 0);
	assert_string_equal(
	    json_object_to_json_string_ext(
		remote_document_issuer(with, "new"), JSON_C_TO_STRING_PLAIN),
	    "{\"name\":\"new\",\"issuer\":\"https:\\/\\/new\","
	    "\"discovery\":true}");
	rule =
	    json_object_array_get_idx(json_object_object_get(with, "rules"), 2);
	assert_string_equal(
	    json_object_to_json_string_ext(rule, JSON_C_TO_STRING_PLAIN),
	    "{\"issuer\":\"new\",\"claim\":\"email\",\"values\":[\"a@x\","
	    "\"b@x\"],\"set\":\"new\"}");
	/* The older issuer is still there, untouched and first. */
	assert_string_equal(remote_document_text(
				json_object_array_get_idx(
				    json_object_object_get(with, "issuers"), 0),
				"name"),
	    "home");
	assert_int_equal(
	    remote_document_remove(with, "new", "", &without, &stays, &err), 0);
	assert_true(json_object_equal(was, without));
	assert_int_equal(stays.len, 0);
	json_object_put(was);
	json_object_put(with);
	json_object_put(without);
	buf_free(&stays);
}

static void
the_last_one_leaves_nothing(void **state)
{
	struct json_object *with = NULL, *without = NULL;
	struct remote_wish w = wish(REMOTE_OIDC);
	struct buf stays;

	(void)state;
	buf_init(&stays, 4096);
	assert_int_equal(remote_document_add(NULL, &w, &with, NULL), 0);
	assert_string_equal(
	    remote_document_text(with, "resource"), "https://h/mcp");
	assert_int_equal(
	    remote_document_remove(with, "new", "", &without, &stays, NULL), 0);
	assert_string_equal(json_object_to_json_string(without), "{ }");
	json_object_put(with);
	json_object_put(without);
	buf_free(&stays);
}

static void
shared_sets_stay(void **state)
{
	struct json_object *was = parse(HOME), *with = NULL, *without = NULL;
	struct remote_wish w = wish(REMOTE_OIDC);
	struct buf stays;

	(void)state;
	buf_init(&stays, 4096);
	w.set = "use";
	assert_int_equal(remote_document_add(was, &w, &with, NULL), 0);
	assert_int_equal(
	    remote_document_remove(with, "new", "", &without, &stays, NULL), 0);
	assert_true(json_object_equal(was, without));
	buf_putc(&stays, '\0');
	assert_string_equal(
	    (const char *)stays.p, "permission set use: other rules name it\n");
	json_object_put(without);
	without = NULL;
	buf_clear(&stays);
	assert_int_equal(
	    remote_document_remove(was, "home", "", &without, &stays, NULL), 0);
	buf_putc(&stays, '\0');
	assert_string_equal((const char *)stays.p,
	    "permission set use: it was there before; no rule names it now\n");
	json_object_put(was);
	json_object_put(with);
	json_object_put(without);
	buf_free(&stays);
}

/* The set that add made stays for its tokens; a set that another rule names
 * stays in any case. */
static void
a_set_of_tokens_stays(void **state)
{
	struct json_object *with = NULL, *without = NULL;
	struct remote_wish w = wish(REMOTE_OIDC);
	struct buf stays;

	(void)state;
	buf_init(&stays, 4096);
	assert_int_equal(remote_document_add(NULL, &w, &with, NULL), 0);
	assert_int_equal(remote_document_remove(
			     with, "new", "t1, t2", &without, &stays, NULL),
	    0);
	buf_putc(&stays, '\0');
	assert_string_equal((const char *)stays.p,
	    "permission set new: API tokens have it: t1, t2\n");
	assert_string_equal(
	    json_object_to_json_string_ext(without,
		JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE),
	    "{\"resource\":\"https://h/mcp\",\"issuers\":[],\"rules\":[],"
	    "\"permission_sets\":[{\"name\":\"new\",\"scopes\":["
	    "\"tools:read\",\"tools:call\"],\"allow\":[\"*\"]}]}");
	json_object_put(with);
	json_object_put(without);
	buf_free(&stays);
}

static void
kinds(void **state)
{
	struct json_object *d = NULL;
	struct remote_wish w = wish(REMOTE_WORKER);
	struct buf secret;

	(void)state;
	buf_init(&secret, REMOTE_JWK_MAX);
	assert_int_equal(remote_key_make(&w.jwks, &secret, NULL), 0);
	assert_int_equal(remote_document_add(NULL, &w, &d, NULL), 0);
	assert_int_equal(remote_document_kind(remote_document_issuer(d, "new")),
	    REMOTE_WORKER);
	assert_string_equal(
	    remote_document_text(remote_document_issuer(d, "new"), "scopes"),
	    "token");
	json_object_put(d);
	json_object_put((struct json_object *)w.jwks);
	w = wish(REMOTE_ACCESS);
	w.audience = "tag";
	w.discovery = false;
	w.jwks_url = "https://t.cloudflareaccess.com/cdn-cgi/access/certs";
	w.key_hosts = "a.example, 192.168.1.5:443";
	assert_int_equal(remote_document_add(NULL, &w, &d, NULL), 0);
	assert_int_equal(remote_document_kind(remote_document_issuer(d, "new")),
	    REMOTE_ACCESS);
	assert_string_equal(
	    json_object_to_json_string_ext(remote_document_issuer(d, "new"),
		JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE),
	    "{\"name\":\"new\",\"issuer\":\"https://new\",\"audiences\":["
	    "\"tag\"],\"header\":\"cf-access-jwt-assertion\",\"types\":["
	    "\"jwt\"],\"email\":\"trusted\",\"jwks_url\":"
	    "\"https://t.cloudflareaccess.com/cdn-cgi/access/certs\","
	    "\"key_hosts\":[\"a.example\",\"192.168.1.5:443\"]}");
	json_object_put(d);
	buf_free(&secret);
}

static void
refusals(void **state)
{
	struct json_object *was = parse(HOME), *out = NULL;
	struct remote_wish w;
	struct err err;
	static const struct {
		const char *name, *issuer, *resource, *set, *says;
	} cases[] = {
	    {"home", "https://new", "https://h/mcp", NULL, "an issuer home"},
	    {"new", "https://id", "https://h/mcp", NULL, "another name"},
	    {"new", "https://new", "https://other/mcp", NULL,
		"resource is https://h/mcp"},
	    {"new", "https://new", "https://h/mcp", "none",
		"no permission set none"},
	    {"use", "https://new", "https://h/mcp", NULL, "--set use"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		w = wish(REMOTE_OIDC);
		w.name = cases[i].name;
		w.issuer = cases[i].issuer;
		w.resource = cases[i].resource;
		w.set = cases[i].set;
		assert_int_equal(remote_document_add(was, &w, &out, &err), -1);
		assert_non_null(strstr(err.text, cases[i].says));
		assert_null(out);
	}
	assert_int_equal(
	    remote_document_remove(was, "none", "", &out, NULL, &err), -1);
	json_object_put(was);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(challenges),
	    cmocka_unit_test(bodies), cmocka_unit_test(long_texts),
	    cmocka_unit_test(thumbprints),
	    cmocka_unit_test(only_keys_that_sign),
	    cmocka_unit_test(a_workers_key), cmocka_unit_test(hosts),
	    cmocka_unit_test(added_and_removed),
	    cmocka_unit_test(the_last_one_leaves_nothing),
	    cmocka_unit_test(shared_sets_stay),
	    cmocka_unit_test(a_set_of_tokens_stays), cmocka_unit_test(kinds),
	    cmocka_unit_test(refusals)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
