/* admind-check: kinds of tools, commands, and what inspections say of them. */
#include <time.h>

#include "check.h"
#include "forms.h"
#include "management_tools.h"
#include "num.h"
#include "specs.h"
#include "tlv.h"
#include "unit.h"

static char text[1 << 20]; /* the errors of the last check, as a string */

static bool
errors(const struct check *c)
{
	size_t n =
	    c->errors.len < sizeof(text) - 1 ? c->errors.len : sizeof(text) - 1;

	memcpy(text, c->errors.len > 0 ? (char *)c->errors.p : "", n);
	text[n] = '\0';
	return !c->ok;
}

static bool
has(const char *pointer, const char *message)
{
	char want[512];

	snprintf(want, sizeof(want), "{\"pointer\":\"%s\",\"message\":\"%s",
	    pointer, message);
	return strstr(text, want) != NULL;
}

static struct ipc_bytes
field(const struct check *c, uint8_t tag)
{
	struct tlv t;

	if (tlv_find(c->fields.p, c->fields.len, tag, &t) != 1)
		return ipc_bytes(NULL, 0);
	return ipc_bytes(t.p, t.n);
}

#define OBJ(p)                                         \
	"{\"type\":\"object\",\"properties\":{" p "}," \
	"\"additionalProperties\":false}"

static enum failure
command(const char *spec, const char *schema)
{
	struct check c;
	enum failure f;

	check_command(&c, ipc_str(spec), ipc_str(schema));
	f = errors(&c) ? c.failure : FAILURE_NONE;
	check_free(&c);
	return f;
}

/* braces that are none */
static const char braces[] =
    "{\"argv\":[\"{}\",\"{1}\",\"{a-b}\",\"{ a}\",\"{\",\"}\",\"{x\","
    "\"x}\",\"{{a}}\",\"$1\",\"{a}{\"]}";

#define AB OBJ("\"a\":{},\"b_1\":{\"type\":\"integer\"}")

/* Placeholders where the runner sees them, and nowhere else. */
static void
commands(void **state)
{
	static const char *const good[] = {"{\"argv\":[]}",
	    "{\"argv\":[\"{a}\",\"x{b_1}y{a}\"],\"stdin\":\"{a}\"}", braces,
	    "{\"argv\":[\"-n\"],\"env\":{\"LANG\":\"C\",\"_\":\"{zz}\"}}",
	    "{\"argv\":[],\"ok_exit_codes\":[]}",
	    "{\"argv\":[],\"ok_exit_codes\":[1,255,2.0]}"};
	static const char *const bad[] = {"[]", "{}", "{\"argv\":\"a\"}",
	    "{\"argv\":[1]}", "{\"argv\":[\"a\\u0000\"]}",
	    "{\"argv\":[],\"x\":1}", "{\"argv\":[],\"stdin\":\"a\"}",
	    "{\"argv\":[],\"stdin\":\"{a}b\"}", "{\"argv\":[],\"stdin\":\"\"}",
	    "{\"argv\":[],\"stdin\":null}", "{\"argv\":[],\"env\":[]}",
	    "{\"argv\":[],\"env\":{\"\":\"\"}}",
	    "{\"argv\":[],\"env\":{\"A=B\":\"\"}}",
	    "{\"argv\":[],\"env\":{\"1A\":\"\"}}",
	    "{\"argv\":[],\"env\":{\"A\":1}}",
	    "{\"argv\":[],\"env\":{\"A\":\"\\u0000\"}}",
	    "{\"argv\":[],\"ok_exit_codes\":1}",
	    "{\"argv\":[],\"ok_exit_codes\":[0]}",
	    "{\"argv\":[],\"ok_exit_codes\":[-1]}",
	    "{\"argv\":[],\"ok_exit_codes\":[256]}",
	    "{\"argv\":[],\"ok_exit_codes\":[1.5]}",
	    "{\"argv\":[],\"ok_exit_codes\":[\"1\"]}",
	    "{\"argv\":[],\"ok_exit_codes\":[1,1.0]}"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (command(good[i], AB) != FAILURE_NONE)
			fail_msg("%s: %s", good[i], text);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (command(bad[i], AB) != FAILURE_INVALID_ARGUMENTS)
			fail_msg("%s was taken", bad[i]);
	/* all of them together, each at its place */
	assert_int_equal(
	    command(
		"{\"argv\":[\"ok\",\"{c}-{a}-{d}\"],\"stdin\":\"{e}\"}", AB),
	    FAILURE_INVALID_ARGUMENTS);
	assert_true(has("/spec/argv/1", "{c} is not a property"));
	assert_true(has("/spec/argv/1", "{d} is not a property"));
	assert_true(has("/spec/stdin", "{e} is not a property"));
	assert_false(has("/spec/argv/1", "{a} is not a property"));
	/* a schema without properties has none of them */
	assert_int_equal(
	    command("{\"argv\":[\"{a}\"]}", "{\"type\":\"object\"}"),
	    FAILURE_INVALID_ARGUMENTS);
	assert_int_equal(command("{\"argv\":[]}", "{\"type\":\"string\"}"),
	    FAILURE_INVALID_ARGUMENTS);
	assert_int_not_equal(command("{\"argv\":[]", AB), FAILURE_NONE);
	assert_int_not_equal(command("", ""), FAILURE_NONE);
}

/* What a kind needs, told with all other errors. */
static void
kinds(void **state)
{
	static const char id[] =
	    "{\"server_id\":\"0190a0b0-0000-7000-8000-0000000000ff\",";
	static const struct {
		const char *rest, *pointer;
	} rows[] = {
	    {"\"name\":\"n\"}", "/python_code"},
	    {"\"name\":1}", "/python_code"},
	    {"\"name\":\"n\",\"kind\":\"python\"}", "/python_code"},
	    {"\"name\":\"n\",\"kind\":\"command\"}", "/spec"},
	    {"\"name\":\"n\",\"kind\":\"command\",\"spec\":{\"argv\":[]}}",
		"/executable"},
	    {"\"name\":\"n\",\"kind\":\"command\",\"executable\":\"/x\"}",
		"/spec"},
	};
	char request[512];
	struct check c;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(request, sizeof(request), "%s%s", id, rows[i].rest);
		check_management(
		    &c, ipc_str("mcpbox_create_tool"), ipc_str(request));
		assert_true(errors(&c));
		if (!has(rows[i].pointer, "is missing"))
			fail_msg("%s: %s", request, text);
		check_free(&c);
	}
	snprintf(request, sizeof(request),
	    "%s\"name\":\"n\",\"kind\":\"command\",\"executable\":\"/x\","
	    "\"spec\":{\"argv\":[\"{a}\"]},\"limits\":{\"cpu_ms\":100,"
	    "\"progress_rate\":100}}",
	    id);
	check_management(&c, ipc_str("mcpbox_create_tool"), ipc_str(request));
	if (errors(&c))
		fail_msg("%s", text);
	assert_true(ipc_streq(field(&c, MF_SPEC), "{\"argv\":[\"{a}\"]}"));
	assert_int_equal(field(&c, MF_CPU_MS).p[7], 100);
	assert_int_equal(field(&c, MF_PROGRESS_RATE).p[7], 100);
	check_free(&c);
}

static void
digests(void **state)
{
	static const char head[] =
	    "{\"ok\":true,\"input_schema\":{\"type\":\"object\"},"
	    "\"doc\":null,\"executable_digest\":";
	static const char *const bad[] = {"1}", "\"\"}", "\"0\"}", "{}}",
	    "\"000102030405060708090A0b0c0d0e0f"
	    "101112131415161718191a1b1c1d1e1f\"}",
	    "\"000102030405060708090a0b0c0d0e0f"
	    "101112131415161718191a1b1c1d1e1f00\"}",
	    "\"g00102030405060708090a0b0c0d0e0f"
	    "101112131415161718191a1b1c1d1e1f\"}"};
	char json[512];
	struct check c;

	(void)state;
	snprintf(json, sizeof(json), "%s%s", head,
	    "\"000102030405060708090a0b0c0d0e0f"
	    "101112131415161718191a1b1c1d1e1f\"}");
	check_inspection(&c, ipc_str(json));
	if (errors(&c))
		fail_msg("%s", text);
	assert_int_equal(field(&c, INSPECT_EXECUTABLE_DIGEST).n, 64);
	check_free(&c);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(json, sizeof(json), "%s%s", head, bad[i]);
		check_inspection(&c, ipc_str(json));
		if (c.ok)
			fail_msg("accepted %s", bad[i]);
		check_free(&c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(commands),
	    cmocka_unit_test(kinds), cmocka_unit_test(digests)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
