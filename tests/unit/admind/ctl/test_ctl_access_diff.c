/* access_diff.h: each change has a row, an unchanged item has no row, and no
 * name of a document reaches the terminal as it is. */
#include <json-c/json.h>

#include "access_diff.h"
#include "unit.h"

static struct json_object *
parse(const char *s)
{
	struct json_object *o = *s != '\0' ? json_tokener_parse(s) : NULL;

	assert_true((o != NULL) == (*s != '\0'));
	return o;
}

static void
rows(void **state)
{
	static const struct {
		const char *old, *new, *rows;
	} cases[] = {
	    {"", "{}", ""},
	    {"{}", "{}", ""},
	    {"{\"rules\":[]}", "{}", ""},
	    {"{\"resource\":\"https://a/mcp\"}",
		"{\"resource\":\"https://b/mcp\"}",
		"~ member resource https://b/mcp\n"},
	    {"{\"resource\":\"https://a/mcp\"}", "{}", "- member resource\n"},
	    {"", "{\"x\":{\"y\":\"a/b\"}}", "+ member x { \"y\": \"a/b\" }\n"},
	    /* issuers and their keys */
	    {"", "{\"issuers\":[{\"name\":\"a\",\"issuer\":\"https://a\"}]}",
		"+ issuer a  https://a\n"},
	    {"{\"issuers\":[{\"name\":\"a\"}]}", "{}", "- issuer a\n"},
	    {"{\"issuers\":[{\"name\":\"a\",\"issuer\":\"https://a\"}]}",
		"{\"issuers\":[{\"name\":\"a\",\"issuer\":\"https://"
		"b\",\"id_tokens\":true}]}",
		"~ issuer a: issuer, id_tokens  https://b; id_tokens true\n"},
	    /* each member that lets somebody in */
	    {"",
		"{\"issuers\":[{\"name\":\"a\",\"issuer\":\"https://a\","
		"\"audiences\":[\"t\"],\"algorithms\":[\"RS256\"],\"header\":"
		"\"authorization\",\"listeners\":[\"local\"],"
		"\"leeway_seconds\":9,\"max_age_seconds\":60,\"types\":[\"\"],"
		"\"email\":\"trusted\",\"clients\":[\"c\"],\"id_tokens\":true,"
		"\"bound\":true,\"discovery\":true,\"key_hosts\":[\"k\"],"
		"\"scopes\":\"token\"}]}",
		"+ issuer a  https://a; audiences t; algorithms RS256; header "
		"authorization; listeners local; leeway_seconds 9; "
		"max_age_seconds 60; types ; email trusted; clients c; "
		"id_tokens true; bound true; discovery true; key_hosts k; "
		"scopes token\n"},
	    {"{\"issuers\":[{\"name\":\"a\",\"jwks\":{\"keys\":[{\"kid\":\"1\","
	     "\"kty\":\"RSA\",\"n\":\"x\"},"
	     "{\"kid\":\"2\",\"kty\":\"EC\"}]}}]}",
		"{\"issuers\":[{\"name\":\"a\",\"jwks\":{\"keys\":[{\"kid\":"
		"\"1\",\"kty\":\"RSA\",\"n\":\"y\"},"
		"{\"kid\":\"3\",\"kty\":\"EC\"}]}}]}",
		"~ key of issuer a: kid 1, RSA \n"
		"- key of issuer a: kid 2, EC \n"
		"+ key of issuer a: kid 3, EC \n"},
	    /* keys without names, in another order */
	    {"{\"issuers\":[{\"name\":\"a\",\"jwks\":{\"keys\":[{\"kty\":\"A\"}"
	     ",{\"kty\":\"B\"}]}}]}",
		"{\"issuers\":[{\"name\":\"a\",\"jwks\":{\"keys\":[{\"kty\":"
		"\"B\"},{\"kty\":\"A\"}]}}]}",
		""},
	    {"{\"issuers\":[{\"name\":\"a\",\"jwks\":{\"keys\":[{\"kty\":\"A\"}"
	     "]}}]}",
		"{\"issuers\":[{\"name\":\"a\",\"jwks\":{\"keys\":[{\"kty\":"
		"\"A\"},{\"kty\":\"B\"}]}}]}",
		"+ key of issuer a: kid , B \n"},
	    /* sets and rules */
	    {"{\"permission_sets\":[{\"name\":\"s\",\"allow\":[\"*\"]}]}",
		"{\"permission_sets\":[{\"name\":\"s\",\"allow\":[\"a\",\"b\"]}"
		"]}",
		"~ permission set s: allow; allow a, b\n"},
	    /* an empty list has no place */
	    {"",
		"{\"permission_sets\":[{\"name\":\"s\",\"scopes\":[\"manage\"],"
		"\"allow\":[\"*\"],\"deny\":[]}]}",
		"+ permission set s; scopes manage; allow *\n"},
	    {"{\"permission_sets\":[{\"name\":\"s\",\"allow\":[\"*\"],\"deny\":"
	     "["
	     "\"a\"]}]}",
		"{\"permission_sets\":[{\"name\":\"s\",\"allow\":[\"*\"],"
		"\"deny\":[]}]}",
		"~ permission set s: deny; allow *\n"},
	    {"", "{\"permission_sets\":[{\"name\":\"s\",\"scopes\":[]}]}",
		"+ permission set s\n"},
	    {"{\"permission_sets\":[{\"name\":\"s\",\"allow\":[\"*\"]}]}",
		"{\"permission_sets\":[{\"name\":\"s\",\"allow\":[\"*\"],"
		"\"calls_per_minute\":30}]}",
		"~ permission set s: calls_per_minute; allow *; calls per "
		"minute 30\n"},
	    {"{\"rules\":[{\"issuer\":\"a\",\"claim\":\"any\",\"set\":\"s\"},"
	     "{\"issuer\":\"b\",\"claim\":\"any\",\"set\":\"s\"}]}",
		"{\"rules\":[{\"issuer\":\"b\",\"claim\":\"any\",\"set\":\"s\"}"
		","
		"{\"issuer\":\"a\",\"claim\":\"any\",\"set\":\"s\"}]}",
		"~ rules: another order; the first that fits wins\n"
		"  rule 1: issuer b, any -> set s\n"
		"  rule 2: issuer a, any -> set s\n"},
	    {"",
		"{\"endpoints\":[{\"name\":\"e\",\"allow\":[\"a__*\"],"
		"\"mode\":\"search\",\"set\":\"s\",\"rename\":[{\"tool\":"
		"\"a__b\",\"as\":\"b\",\"description\":\"\u202e\"},7],"
		"\"instructions\":\"Look.\"}]}",
		"+ endpoint e; allow a__*; mode search; at most set s; rename "
		"a__b -> b: \\u{202e}; instructions Look.\n"},
	    {"{\"endpoints\":[{\"name\":\"e\",\"allow\":[\"a\"]},"
	     "{\"name\":\"f\"}]}",
		"{\"endpoints\":[{\"name\":\"e\",\"allow\":[\"a\"],"
		"\"rename\":[{\"tool\":\"a\",\"as\":\"b\"}]}]}",
		"- endpoint f\n~ endpoint e: rename; allow a; rename a -> b\n"},
	    /* no known form */
	    {"{\"rules\":1}", "{\"rules\":2}", "~ member rules 2\n"},
	    {"", "{\"issuers\":[1,null,{\"name\":{}}]}",
		"+ issuer\n+ issuer\n+ issuer { }\n"},
	    {"{\"issuers\":[{\"name\":\"a\",\"jwks\":7}]}",
		"{\"issuers\":[{\"name\":\"a\",\"jwks\":[]}]}", ""},
	    {"", "{\"\\u001b[2J\":\"\\u202e\"}",
		"+ member \\u{1b}[2J \\u{202e}\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_object *old = parse(cases[i].old);
		struct json_object *new = parse(cases[i].new);
		unsigned n = 0;
		struct buf b;

		buf_init(&b, 4096);
		n = access_diff(old, new, &b);
		buf_putc(&b, '\0');
		assert_string_equal((const char *)b.p, cases[i].rows);
		assert_int_equal(n > 0, *cases[i].rows != '\0');
		buf_free(&b);
		json_object_put(old);
		json_object_put(new);
	}
}

static void
ascii(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {{"\"a b\"", "\"a b\""}, {"\xc3\xa9", "\\u00e9"},
	    {"\xe2\x80\xae", "\\u202e"}, {"\xf0\x9f\x98\x80", "\\ud83d\\ude00"},
	    {"\x7f", "\\u007f"}, {"\x80", "?"}, {"", ""}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf b;

		buf_init(&b, 64);
		access_diff_ascii(&b, cases[i].in, strlen(cases[i].in));
		buf_putc(&b, '\0');
		assert_string_equal((const char *)b.p, cases[i].out);
		buf_free(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rows),
	    cmocka_unit_test(ascii),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
