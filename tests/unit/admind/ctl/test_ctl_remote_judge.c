/* mcpboxctl remote check: each fault of each step has its own words and its
 * remedy. A right step has no remedy. */
#include "remote_judge.h"
#include "unit.h"

#define SET(field, text) snprintf(field, sizeof(field), "%s", text)

static struct remote_way way = {.kind = REMOTE_OIDC,
    .url = "https://h/mcp",
    .host = "h",
    .issuer = "https://id",
    .socket = "/run/s",
    .metadata = "https://h/m",
    .serves = true,
    .now = 1000000,
    .leeway_s = 60,
    .own_keys = true,
    .nkeys = 1,
    .keys = {{"k", "AAA"}}};

static struct remote_answer
answered(uint32_t status)
{
	return (struct remote_answer){
	    .reached = REMOTE_ANSWERED, .status = status};
}

static void
is(const struct remote_row *r, enum remote_verdict verdict, const char *found)
{
	if (r->verdict != verdict || strstr(r->found, found) == NULL)
		print_message("%d %s\n", (int)r->verdict, r->found);
	assert_int_equal(r->verdict, verdict);
	assert_non_null(strstr(r->found, found));
	/* Each fault says how it is mended, and nothing else does. */
	assert_int_equal(r->fix[0] != '\0', verdict == REMOTE_WRONG);
}

static void
names_and_certificates(void **state)
{
	struct remote_answer a = {.reached = REMOTE_NO_NAME};
	struct remote_row r;

	(void)state;
	remote_judge_name(&way, &a, &r);
	is(&r, REMOTE_WRONG, "does not resolve");
	a.reached = REMOTE_NO_ROUTE;
	remote_judge_name(&way, &a, &r);
	is(&r, REMOTE_WRONG, "nothing accepts the connection");
	a = answered(200);
	remote_judge_name(&way, &a, &r);
	is(&r, REMOTE_RIGHT, "h is ");
	remote_judge_certificate(&way, &a, &r);
	is(&r, REMOTE_RIGHT, "good");
	a.ends = way.now + REMOTE_ENDS_SOON_S;
	remote_judge_certificate(&way, &a, &r);
	is(&r, REMOTE_RIGHT, "good until 1970-01-26");
	a.ends = way.now + REMOTE_ENDS_SOON_S - 1;
	remote_judge_certificate(&way, &a, &r);
	is(&r, REMOTE_WRONG, "ends on 1970-01-26, in 13 days");
	a.reached = REMOTE_NO_TLS;
	a.ends = way.now - 1;
	remote_judge_certificate(&way, &a, &r);
	is(&r, REMOTE_WRONG, "the certificate ended on 1970-01-12");
	a.ends = way.now + 1;
	remote_judge_certificate(&way, &a, &r);
	is(&r, REMOTE_WRONG, "TLS fails");
}

static void
judged_metadata(void **state)
{
	struct remote_answer a = answered(200);
	struct remote_way none = way;
	struct remote_row r;

	(void)state;
#define METADATA(w) remote_judge_metadata(w, "/p", &a, &r)
	SET(a.said.resource, "https://h/mcp");
	a.said.json = true;
	METADATA(&way);
	is(&r, REMOTE_WRONG, "does not name the issuer https://id");
	a.said.nservers = 1;
	SET(a.said.servers[0], "https://id");
	METADATA(&way);
	is(&r, REMOTE_RIGHT, "/p says the right resource");
	SET(a.said.resource, "https://h/mcp/");
	METADATA(&way);
	is(&r, REMOTE_WRONG, "https://h/mcp/, not https://h/mcp");
	a = answered(200);
	METADATA(&way);
	is(&r, REMOTE_WRONG, "no metadata of a resource");
	a.said.html = true;
	METADATA(&way);
	is(&r, REMOTE_WRONG, "with a web page");
	a.status = 404;
	METADATA(&way);
	is(&r, REMOTE_WRONG, "the proxy does not pass it");
	a = answered(404);
	METADATA(&way);
	is(&r, REMOTE_WRONG, "the proxy does not pass it");
	a.said.json = true;
	METADATA(&way);
	is(&r, REMOTE_WRONG, "404 by mcpbox");
	none.serves = false;
	METADATA(&none);
	is(&r, REMOTE_RIGHT, "API tokens");
	a = answered(302);
	SET(a.location, "https://login");
	METADATA(&way);
	is(&r, REMOTE_WRONG, "sends clients to https://login");
	a = answered(502);
	METADATA(&way);
	is(&r, REMOTE_WRONG, "the proxy does not reach mcpbox");
	a.reached = REMOTE_NO_ANSWER;
	METADATA(&way);
	is(&r, REMOTE_WRONG, "no answer");
}

static void
judged_challenges(void **state)
{
	struct remote_answer a = answered(401);
	struct remote_way other = way;
	struct remote_row r;

	(void)state;
#define CHALLENGE(w) remote_judge_challenge(w, &a, &r)
	CHALLENGE(&way);
	is(&r, REMOTE_WRONG, "the proxy strips it");
	a.said.bearer = true;
	CHALLENGE(&way);
	is(&r, REMOTE_WRONG, "does not name resource_metadata");
	SET(a.said.metadata, "https://x");
	CHALLENGE(&way);
	is(&r, REMOTE_WRONG, "https://x, not https://h/m");
	SET(a.said.metadata, "https://h/m");
	CHALLENGE(&way);
	is(&r, REMOTE_RIGHT, "names the metadata");
	a.said.metadata[0] = '\0';
	other.serves = false;
	CHALLENGE(&other);
	is(&r, REMOTE_RIGHT, "API token");
	a = answered(200);
	CHALLENGE(&way);
	is(&r, REMOTE_WRONG, "everybody is let in");
	a = answered(403);
	CHALLENGE(&way);
	is(&r, REMOTE_WRONG, "403 instead of 401");
	a = answered(404);
	CHALLENGE(&way);
	is(&r, REMOTE_WRONG, "POST /mcp answers 404");
	/* Access asks by itself. */
	other = way;
	other.kind = REMOTE_ACCESS;
	a = answered(401);
	a.said.bearer = true;
	SET(a.said.realm, "OAuth");
	CHALLENGE(&other);
	is(&r, REMOTE_RIGHT, "Access asks for a sign-in");
	SET(a.said.realm, "mcpbox");
	CHALLENGE(&other);
	is(&r, REMOTE_WRONG, "Access is not in front");
	a = answered(302);
	CHALLENGE(&other);
	is(&r, REMOTE_WRONG, "login page");
	a = answered(502);
	CHALLENGE(&other);
	is(&r, REMOTE_WRONG, "does not reach mcpbox");

	a = answered(401);
	remote_judge_authorization(&way, &a, &r);
	is(&r, REMOTE_UNSEEN, "no WWW-Authenticate");
	a.said.bearer = true;
	remote_judge_authorization(&way, &a, &r);
	is(&r, REMOTE_WRONG, "the proxy strips Authorization");
	SET(a.said.error, "invalid_token");
	SET(a.said.description, "why");
	remote_judge_authorization(&way, &a, &r);
	is(&r, REMOTE_RIGHT, "refused by name: why");
	a = answered(400);
	remote_judge_authorization(&way, &a, &r);
	is(&r, REMOTE_WRONG, "400 instead of 401");
}

static void
judged_issuers(void **state)
{
	struct remote_answer a = answered(404);
	struct remote_way fetched = way;
	struct remote_row r;

	(void)state;
#define ISSUER remote_judge_issuer(&way, way.issuer, &a, &r)
	ISSUER;
	is(&r, REMOTE_WRONG, "it answers 404");
	a = answered(200);
	a.said.json = true;
	SET(a.said.issuer, "https://id/");
	ISSUER;
	is(&r, REMOTE_WRONG, "says it is https://id/, not https://id");
	SET(a.said.issuer, "https://id");
	ISSUER;
	is(&r, REMOTE_WRONG, "S256");
	a.said.s256 = true;
	ISSUER;
	is(&r, REMOTE_RIGHT, "with S256");
	a.reached = REMOTE_NO_TLS;
	ISSUER;
	is(&r, REMOTE_WRONG, "gives no metadata");
#define KEYS(w) remote_judge_keys(w, &a, &r)
	KEYS(&way);
	is(&r, REMOTE_WRONG, "not to be had");
	a = answered(200);
	KEYS(&way);
	is(&r, REMOTE_WRONG, "not to be had");
	a.said.has_keys = true;
	KEYS(&way);
	is(&r, REMOTE_WRONG, "none of the access document's keys");
	a.said.nkeys = 1;
	SET(a.said.keys[0].thumb, "AAA");
	KEYS(&way);
	is(&r, REMOTE_RIGHT, "are those of the access document");
	a.said.nkeys = 2;
	SET(a.said.keys[1].thumb, "BBB");
	SET(a.said.keys[1].kid, "k2");
	KEYS(&way);
	is(&r, REMOTE_WRONG, "1 (kid k2) not in the access document");
	fetched.own_keys = false;
	fetched.nkeys = 0;
	KEYS(&fetched);
	is(&r, REMOTE_RIGHT, "2 keys that can sign for us");
	fetched = way;
	fetched.nkeys = 2;
	SET(fetched.keys[1].thumb, "CCC");
	a.said.nkeys = 1;
	KEYS(&fetched);
	is(&r, REMOTE_RIGHT, "1 older ones");
}

static void
judged_here(void **state)
{
	struct remote_answer a = {.reached = REMOTE_NO_NAME}, b;
	struct remote_row r;

	(void)state;
	remote_judge_clock(&way, 0, &r);
	is(&r, REMOTE_UNSEEN, "had a Date");
	remote_judge_clock(&way, way.now + 60, &r);
	is(&r, REMOTE_RIGHT, "within 60 s");
	remote_judge_clock(&way, way.now + 61, &r);
	is(&r, REMOTE_WRONG, "clock is 61 s behind");
	remote_judge_clock(&way, way.now - 61, &r);
	is(&r, REMOTE_WRONG, "clock is 61 s ahead");
	remote_judge_listener(&way, &a, &r);
	is(&r, REMOTE_WRONG, "gives no answer at /run/s");
	a = answered(404);
	remote_judge_listener(&way, &a, &r);
	is(&r, REMOTE_WRONG, "no issuer serves it");
	a = answered(503);
	remote_judge_listener(&way, &a, &r);
	is(&r, REMOTE_WRONG, "no word from admind");
	a = answered(200);
	remote_judge_listener(&way, &a, &r);
	is(&r, REMOTE_WRONG, "the resource of none");
	SET(a.said.resource, "https://h/mcp");
	remote_judge_listener(&way, &a, &r);
	is(&r, REMOTE_RIGHT, "answers at /run/s");
	a = answered(200);
	a.said.result = true;
	b = a;
	b.said.ntools = 3;
	remote_judge_call(&a, &b, &r);
	is(&r, REMOTE_RIGHT, "with 3 tools");
	a = answered(403);
	SET(a.said.description, "no rule");
	remote_judge_call(&a, NULL, &r);
	is(&r, REMOTE_WRONG, "initialize answers 403: no rule");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_and_certificates),
	    cmocka_unit_test(judged_metadata),
	    cmocka_unit_test(judged_challenges),
	    cmocka_unit_test(judged_issuers), cmocka_unit_test(judged_here)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
