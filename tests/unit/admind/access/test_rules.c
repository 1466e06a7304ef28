/*
 * The access document and claims without I/O (rules.h): admind-check's fields
 * that are read or refused, the rule that fits, the rights, and the end of a
 * token.
 */
#include "access_said.h"
#include "telemetry_fields.h"

static struct buf said;
static struct compiled *doc;

static int
setup(void **unused)
{
	buf_init(&said, IPC_BLOB_MAX);
	tlv_puts(&said, ACCESS_RESOURCE, "https://mcp.example.org/mcp");
	doc = NULL;
	return 0;
}

static int
teardown(void **unused)
{
	compiled_free(doc);
	buf_free(&said);
	return 0;
}

static bool
compile(void)
{
	struct err err;

	compiled_free(doc);
	doc = compiled_new(ipc_bytes(said.p, said.len), &err);
	if (doc == NULL)
		assert_int_equal(err.failure, FAILURE_INTERNAL);
	return doc != NULL;
}

/* ---- the document ---- */

static void
empty_document(void **unused)
{
	buf_clear(&said);
	assert_true(compile());
	assert_int_equal(doc->nissuers, 0);
	assert_false(issuers_at(doc, LISTENER_TUNNEL));
	assert_false(issuers_at(NULL, LISTENER_TUNNEL));
}

static void
whole_document(void **unused)
{
	const char *const ann[3] = {"ann@example.org"};
	struct said_issuer door = {.name = "door",
	    .url = "https://door.example.org",
	    .listeners = LOCALLY | REMOTELY,
	    .via = VIA_ASSERTION,
	    .narrows = 1,
	    .max_age_s = 300};

	/* rules may come before the sets that they name */
	say_issuer(&said, &pocket);
	say_rule(&said, "pocket", RULE_EMAIL, ann, "family");
	say_set(&said, "family", "tools:call manage:edit", "* a__b", "c__*");
	say_issuer(&said, &door);
	assert_true(compile());
	assert_int_equal(doc->nissuers, 2);
	assert_int_equal(doc->nrules, 1);
	assert_int_equal(doc->nsets, 1);
	assert_true(ipc_streq(doc->resource, "https://mcp.example.org/mcp"));
	assert_int_equal(doc->issuer[1].via, VIA_ASSERTION);
	assert_int_equal(doc->issuer[1].leeway_us, LEEWAY_S * 1000000);
	assert_int_equal(doc->issuer[1].max_age_us, 300 * 1000000);
	assert_true(doc->issuer[1].narrows);
	assert_false(doc->issuer[0].narrows);
	assert_ptr_equal(doc->rule[0].issuer, &doc->issuer[0]);
	assert_ptr_equal(doc->rule[0].set, &doc->set[0]);
	assert_int_equal(doc->set[0].scopes,
	    PERMIT_CALL | PERMIT_READ | PERMIT_EDIT | PERMIT_MANAGE);
	assert_string_equal(doc->set[0].allow, "*\na__b");
	assert_string_equal(doc->set[0].deny, "c__*");
	assert_true(issuers_serve(doc, LISTENER_TUNNEL, VIA_AUTHORIZATION));
	assert_false(issuers_serve(doc, LISTENER_LOCAL, VIA_AUTHORIZATION));
	assert_true(issuers_serve(doc, LISTENER_LOCAL, VIA_ASSERTION));
	assert_null(issuers_named(doc, ipc_str("pock")));
	assert_null(issuers_named(doc, ipc_str("pocket2")));
}

/* Only the issuers of this listener and header go to admind-check. */
static void
issuers_that_are_named(void **unused)
{
	struct said_issuer door = {.name = "door",
	    .url = "https://door.example.org",
	    .listeners = REMOTELY,
	    .via = VIA_ASSERTION};
	static const struct keysets none;
	struct buf out;
	struct tlv t;

	say_issuer(&said, &pocket);
	say_issuer(&said, &door);
	assert_true(compile());
	buf_init(&out, IPC_BLOB_MAX);
	issuers_put(doc, &none, 0, LISTENER_LOCAL, VIA_ASSERTION, &out);
	assert_int_equal(out.len, 0);
	issuers_put(doc, &none, 0, LISTENER_TUNNEL, VIA_ASSERTION, &out);
	assert_int_equal(tlv_find(out.p, out.len, ACCESS_ISSUER, &t), 1);
	assert_int_equal(t.n, doc->issuer[1].record.n);
	assert_memory_equal(t.p, doc->issuer[1].record.p, t.n);
	assert_int_equal(out.len, 5 + t.n);
	buf_free(&out);
}

static void
bad_issuer(const char *name, const char *url, unsigned listeners, uint8_t via)
{
	struct said_issuer s = {
	    .name = name, .url = url, .listeners = listeners, .via = via};

	buf_clear(&said);
	tlv_puts(&said, ACCESS_RESOURCE, "https://mcp.example.org/mcp");
	say_issuer(&said, &s);
	assert_false(compile());
}

static void
malformed_issuers(void **unused)
{
	bad_issuer("", "https://x", REMOTELY, 0);
	bad_issuer("Pocket", "https://x", REMOTELY, 0);
	bad_issuer("a:b", "https://x", REMOTELY, 0);
	bad_issuer(
	    "a23456789012345678901234567890123", "https://x", REMOTELY, 0);
	bad_issuer("a", "", REMOTELY, 0);
	bad_issuer("a", "https://x\"", REMOTELY, 0);
	bad_issuer("a", "https://x\r\ny", REMOTELY, 0);
	bad_issuer("a", "https://x", 0, 0);
	bad_issuer("a", "https://x", 1 << LISTENER_ADMIND, 0);
	bad_issuer("a", "https://x", REMOTELY, VIA_ASSERTION + 1);
	/* a name or a URL twice */
	say_issuer(&said, &pocket);
	say_issuer(&said, &pocket);
	assert_false(compile());
	/* issuers without a resource */
	buf_clear(&said);
	say_issuer(&said, &pocket);
	assert_false(compile());
	/* cut off */
	said.len--;
	assert_false(compile());
	/* an unknown field */
	buf_clear(&said);
	tlv_puts(&said, 9, "x");
	assert_false(compile());
}

static void
bad_rule(const char *issuer, unsigned claim, const char *value, const char *set)
{
	const char *const values[3] = {value};

	buf_clear(&said);
	tlv_puts(&said, ACCESS_RESOURCE, "https://mcp.example.org/mcp");
	say_issuer(&said, &pocket);
	say_set(&said, "family", "tools:read", "*", "");
	say_rule(&said, issuer, claim, values, set);
	assert_false(compile());
}

/* Says a collector. spans, metrics: as bytes; every: seconds. */
static bool
telemetry(const char *url, uint8_t spans, uint8_t metrics, uint64_t every)
{
	struct buf r;

	buf_init(&r, 4096);
	tlv_puts(&r, TELEMETRY_URL, url);
	tlv_puts(&r, TELEMETRY_HOST, "192.168.1.5:4318");
	tlv_put(&r, TELEMETRY_SPANS, &spans, 1);
	tlv_put(&r, TELEMETRY_METRICS, &metrics, 1);
	tlv_put_u64(&r, TELEMETRY_EVERY_S, every);
	tlv_put(&said, ACCESS_TELEMETRY, r.p, r.len);
	buf_free(&r);
	return compile();
}

static void
collectors(void **unused)
{
	buf_clear(&said);
	assert_true(telemetry("http://127.0.0.1:4318", 1, 0, 10));
	assert_true(ipc_streq(doc->telemetry.url, "http://127.0.0.1:4318"));
	assert_true(doc->telemetry.spans);
	assert_false(doc->telemetry.metrics);
	assert_false(doc->telemetry.principals);
	assert_int_equal(doc->telemetry.every_s, 10);
	assert_false(telemetry("https://b", 1, 1, 30)); /* two */
	buf_clear(&said);
	assert_false(telemetry("", 1, 1, 30));
	buf_clear(&said);
	assert_false(telemetry("https://a\"", 1, 1, 30));
	buf_clear(&said);
	assert_false(telemetry("https://a", 0, 0, 30));
	buf_clear(&said);
	assert_false(telemetry("https://a", 1, 1, 9));
	buf_clear(&said);
	assert_false(telemetry("https://a", 1, 1, 301));
	buf_clear(&said);
	tlv_puts(&said, ACCESS_TELEMETRY, "");
	assert_false(compile());
}

static void
malformed_rules_and_sets(void **unused)
{
	bad_rule("other", RULE_SUB, "a", "family");
	bad_rule("pocket", RULE_SUB, "a", "friends");
	bad_rule("pocket", 0, "a", "family");
	bad_rule("pocket", RULE_ANY + 1, "a", "family");
	bad_rule("pocket", RULE_SUB, NULL, "family");
	bad_rule("pocket", RULE_SUB, "", "family");
	bad_rule("pocket", RULE_ANY, "a", "family");
	buf_clear(&said);
	say_set(&said, "family", "tools:read", "a\nb", "");
	assert_false(compile());
	buf_clear(&said);
	say_set(&said, "family", "tools:read", "*", "");
	say_set(&said, "family", "tools:read", "*", "");
	assert_false(compile());
	buf_clear(&said);
	say_set_rate(
	    &said, "family", "tools:read", "*", "", ACCESS_RATE_MAX + 1);
	assert_false(compile());
	buf_clear(&said);
	say_set_rate(&said, "family", "tools:read", "*", "", ACCESS_RATE_MAX);
	assert_true(compile());
}

/* ---- claims ---- */

static int
read_claims(const struct said_claims *c, struct claims *out, struct buf *b)
{
	struct err err;

	buf_init(b, IPC_FRAME_MAX);
	say_claims(b, c);
	return claims_read(out, ipc_bytes(b->p, b->len), &err);
}

static void
claims_are_read_strictly(void **unused)
{
	static const struct {
		struct said_claims said;
		int rc;
	} rows[] = {
	    {{.exp_us = 1}, 0},
	    {{.exp_us = 1, .email = "\xc3\xa4@example.org"}, 0},
	    {{.exp_us = 0}, -1},
	    {{.exp_us = 1, .sub = ""}, -1},
	    {{.exp_us = 1, .sub = "a b"}, -1},
	    {{.exp_us = 1, .sub = "a\nb"}, -1},
	    {{.exp_us = 1, .sub = "\xc3\xa4"}, -1},
	    {{.exp_us = 1, .issuer = ""}, -1},
	    {{.exp_us = 1, .email = ""}, -1},
	    {{.exp_us = 1, .email = "\xff"}, -1},
	    {{.exp_us = 1, .email = "a\tb"}, -1},
	    {{.exp_us = 1, .scopes = 0x10}, -1},
	};
	struct claims c;
	struct buf b;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
		    read_claims(&rows[i].said, &c, &b), rows[i].rc);
		if (rows[i].rc == 0)
			b.len--; /* cut off */
		assert_int_equal(
		    claims_read(&c, ipc_bytes(b.p, b.len), NULL), -1);
		buf_free(&b);
	}
	assert_int_equal(read_claims(&(struct said_claims){.exp_us = 1,
					 .scopes = PERMIT_EDIT | PERMIT_CALL},
			     &c, &b),
	    0);
	assert_int_equal(
	    c.scopes, PERMIT_EDIT | PERMIT_MANAGE | PERMIT_CALL | PERMIT_READ);
	buf_free(&b);
}

static void
claims_have_bounds(void **unused)
{
	char long_sub[JWT_SUB_MAX + 2];
	struct said_claims s = {.exp_us = 1, .sub = long_sub};
	struct claims c;
	struct buf b;

	memset(long_sub, 'a', sizeof(long_sub));
	long_sub[JWT_SUB_MAX + 1] = '\0';
	assert_int_equal(read_claims(&s, &c, &b), -1);
	buf_free(&b);
	long_sub[JWT_SUB_MAX] = '\0';
	assert_int_equal(read_claims(&s, &c, &b), 0);
	for (int i = 0; i < JWT_GROUPS_MAX; i++)
		tlv_puts(&b, JWT_GROUP, "g");
	assert_int_equal(claims_read(&c, ipc_bytes(b.p, b.len), NULL), 0);
	assert_int_equal(c.ngroups, JWT_GROUPS_MAX);
	tlv_puts(&b, JWT_GROUP, "g");
	assert_int_equal(claims_read(&c, ipc_bytes(b.p, b.len), NULL), -1);
	buf_free(&b);
}

/* ---- rules ---- */

static const char *
set_of(const struct said_claims *s)
{
	static char name[ACCESS_NAME_MAX + 1];
	const struct access_set *set;
	struct claims c;
	struct buf b;

	assert_int_equal(read_claims(s, &c, &b), 0);
	set = rules_set(doc, &c);
	snprintf(name, sizeof(name), "%.*s", set != NULL ? (int)set->name.n : 4,
	    set != NULL ? (const char *)set->name.p : "none");
	buf_free(&b);
	return name;
}

static void
first_rule_that_fits(void **unused)
{
	static const struct {
		const char *issuer;
		enum rule_claim claim;
		const char *values[3];
		const char *set;
	} rules[] = {
	    {"pocket", RULE_SUB, {"root", "ann"}, "by-sub"},
	    {"pocket", RULE_EMAIL, {"Bob@Example.org"}, "by-email"},
	    {"pocket", RULE_EMAIL_DOMAIN, {"example.net"}, "by-domain"},
	    {"pocket", RULE_GROUP, {"Staff"}, "by-group"},
	    {"pocket", RULE_CLIENT, {"robot"}, "by-client"},
	    {"other", RULE_ANY, {NULL}, "any"},
	};
	static const struct {
		struct said_claims said;
		const char *set;
	} rows[] = {
	    {{.sub = "ann"}, "by-sub"},
	    {{.sub = "root"}, "by-sub"},
	    /* a subject is compared by its bytes, and whole */
	    {{.sub = "Ann"}, "none"},
	    {{.sub = "ann2"}, "none"},
	    {{.sub = "an"}, "none"},
	    {{.sub = "x", .email = "bOB@example.ORG"}, "by-email"},
	    {{.sub = "x", .email = "bob@example.org.evil"}, "none"},
	    {{.sub = "x", .email = "x@EXAMPLE.NET"}, "by-domain"},
	    {{.sub = "x", .email = "\"a@example.net\"@evil.example"}, "none"},
	    {{.sub = "x", .email = "x@sub.example.net"}, "none"},
	    {{.sub = "x", .email = "example.net"}, "none"},
	    {{.sub = "x", .email = "x@"}, "none"},
	    {{.sub = "x", .group = {"a", "Staff"}}, "by-group"},
	    {{.sub = "x", .group = {"staff"}}, "none"},
	    {{.sub = "x", .client = "robot"}, "by-client"},
	    {{.sub = "x", .client = "Robot"}, "none"},
	    {{.sub = "x"}, "none"},
	    /* the first that fits, not the best */
	    {{.sub = "ann", .client = "robot", .email = "bob@example.org"},
		"by-sub"},
	    {{.sub = "x", .client = "robot", .group = {"Staff"}}, "by-group"},
	    /* rules of another issuer */
	    {{.issuer = "other", .sub = "ann"}, "any"},
	    {{.issuer = "third", .sub = "ann"}, "none"},
	};
	struct said_issuer other = {.name = "other",
	    .url = "https://other.example.org",
	    .listeners = REMOTELY};
	struct said_claims s;

	say_issuer(&said, &pocket);
	say_issuer(&said, &other);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		say_set(&said, rules[i].set, "tools:read", "*", "");
		say_rule(&said, rules[i].issuer, rules[i].claim,
		    rules[i].values, rules[i].set);
	}
	assert_true(compile());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		s = rows[i].said;
		s.exp_us = 1;
		assert_string_equal(set_of(&s), rows[i].set);
	}
}

static void
scopes_of_the_token(void **unused)
{
	struct access_set set = {.scopes = PERMIT_READ | PERMIT_CALL};
	struct issuer s = {.narrows = false};
	struct claims c = {.scopes = PERMIT_READ | PERMIT_MANAGE};

	assert_int_equal(rules_scopes(&s, &set, &c), PERMIT_READ | PERMIT_CALL);
	s.narrows = true;
	assert_int_equal(rules_scopes(&s, &set, &c), PERMIT_READ);
	c.scopes = 0;
	assert_int_equal(rules_scopes(&s, &set, &c), 0);
}

static void
until_when(void **unused)
{
	const uint64_t s = 1000000;
	struct issuer i = {.leeway_us = 60 * s};
	struct claims c = {.exp_us = 1000 * s};

	assert_int_equal(issuers_until(&i, &c, 900 * s), 1000 * s);
	/* accepted within the leeway */
	assert_int_equal(issuers_until(&i, &c, 1000 * s), 1060 * s);
	assert_int_equal(issuers_until(&i, &c, 1030 * s), 1060 * s);
	i.max_age_us = 100 * s;
	c.iat_us = 850 * s;
	assert_int_equal(issuers_until(&i, &c, 900 * s), 950 * s);
	assert_int_equal(issuers_until(&i, &c, 960 * s), 1000 * s);
	c.iat_us = 950 * s;
	assert_int_equal(issuers_until(&i, &c, 960 * s), 1000 * s);
	/* no sum is larger than a number can be */
	c.exp_us = UINT64_MAX;
	i.max_age_us = 0;
	assert_true(issuers_until(&i, &c, 1) == UINT64_MAX);
}

/* ---- two documents ---- */

static struct compiled *
variant(const char *key, const char *allow, const char *value, bool more)
{
	const char *const values[3] = {value}, *const none[3] = {NULL};
	struct said_issuer p = pocket,
			   q = {.name = "q",
			       .url = "https://q.example.org",
			       .listeners = REMOTELY};
	struct compiled *c;
	struct err err;
	struct buf b;

	p.key = key;
	buf_init(&b, IPC_BLOB_MAX);
	tlv_puts(&b, ACCESS_RESOURCE, "https://mcp.example.org/mcp");
	say_issuer(&b, &q);
	say_issuer(&b, &p);
	say_set(&b, "family", "tools:read", allow, "");
	say_set(&b, "else", "tools:read", more ? "x" : "y", "");
	say_rule(&b, "pocket", RULE_EMAIL, values, "family");
	say_rule(&b, "q", RULE_ANY, none, "else");
	if (more)
		say_rule(&b, "q", RULE_ANY, none, "family");
	c = compiled_new(ipc_bytes(b.p, b.len), &err);
	assert_non_null(c);
	buf_free(&b);
	return c;
}

static void
same_for_one_issuer(void **unused)
{
	struct compiled *a = variant("K", "*", "x", false), *b;
	struct ipc_bytes p = ipc_str("pocket"), q = ipc_str("q");

	b = variant("K", "*", "x", false);
	assert_true(rules_same(a, b, p));
	assert_true(rules_same(a, b, q));
	compiled_free(b);
	b = variant("L", "*", "x", false); /* a key of pocket */
	assert_false(rules_same(a, b, p));
	assert_true(rules_same(a, b, q));
	compiled_free(b);
	b = variant("K", "a", "x", false); /* its set */
	assert_false(rules_same(a, b, p));
	assert_true(rules_same(a, b, q));
	compiled_free(b);
	b = variant("K", "*", "y", false); /* its rule */
	assert_false(rules_same(a, b, p));
	compiled_free(b);
	b = variant("K", "*", "x", true); /* a rule and a set of q */
	assert_true(rules_same(a, b, p));
	assert_false(rules_same(a, b, q));
	assert_false(rules_same(b, a, q));
	assert_false(rules_same(NULL, a, p));
	assert_false(rules_same(a, NULL, p));
	compiled_free(b);
	compiled_free(a);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(empty_document),
	    TEST(whole_document),
	    TEST(issuers_that_are_named),
	    TEST(malformed_issuers),
	    TEST(malformed_rules_and_sets),
	    TEST(collectors),
	    TEST(claims_are_read_strictly),
	    TEST(claims_have_bounds),
	    TEST(first_rule_that_fits),
	    TEST(scopes_of_the_token),
	    TEST(until_when),
	    TEST(same_for_one_issuer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
