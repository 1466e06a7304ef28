/* admin_action.h, admin_body.h, admin_filter.h. */
#include "unit.h"

#include <json-c/json.h>

#include "admin_action.h"
#include "admin_body.h"
#include "admin_filter.h"
#include "json.h"
#include "tlv.h"

/* Every row can be looked up, and its members are of the closed types. */
static void
rows(void **state)
{
	const struct admin_action *a;
	struct admin_member m;
	const char *at;
	int n = 0;

	(void)state;
	for (a = admin_actions; a->name != NULL; a++, n++) {
		assert_ptr_equal(admin_action_find(ipc_str(a->name)), a);
		if (a->role == ADMIN_ROOT)
			assert_string_equal(a->path, "");
		else
			assert_int_equal(strncmp(a->path, "/api/", 5), 0);
		assert_true(strlen(a->doc) > 0);
		at = a->members;
		while (admin_action_member(&at, &m)) {
			assert_in_range(m.len, 1, 63);
			if (memchr("sibaol", m.type, 6) == NULL)
				fail_msg("%s: type %c", a->name, m.type);
		}
	}
	assert_true(n >= 2);
	assert_null(admin_action_find(ipc_str("")));
	assert_null(admin_action_find(ipc_str("settings_se")));
	assert_null(admin_action_find(ipc_str("settings_sett")));
}

static void
roles(void **state)
{
	static const char *const bad[] = {"", "root", "Viewer", "viewers"};
	enum admin_role r;

	(void)state;
	assert_int_equal(admin_action_role(ipc_str("administrator"), &r), 0);
	assert_int_equal(r, ADMIN_ADMINISTRATOR);
	assert_int_equal(admin_action_role(ipc_str("viewer"), &r), 0);
	assert_int_equal(r, ADMIN_VIEWER);
	assert_true(ADMIN_VIEWER < ADMIN_REVIEWER);
	assert_true(ADMIN_REVIEWER < ADMIN_ADMINISTRATOR);
	assert_true(ADMIN_ADMINISTRATOR < ADMIN_ROOT);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(admin_action_role(ipc_str(bad[i]), &r), -1);
}

static void
keys(void **state)
{
	char s[ADMIN_KEY_MAX + 2];

	(void)state;
	memset(s, '~', sizeof(s));
	assert_true(admin_action_key(ipc_bytes(s, ADMIN_KEY_MAX)));
	assert_false(admin_action_key(ipc_bytes(s, ADMIN_KEY_MAX + 1)));
	assert_true(admin_action_key(ipc_str("!")));
	assert_false(admin_action_key(ipc_str("")));
	assert_false(admin_action_key(ipc_str("a b")));
	assert_false(admin_action_key(ipc_str("a\x7f")));
	assert_false(admin_action_key(ipc_str("\xc3\xa9")));
	assert_false(admin_action_key(ipc_bytes("a\0b", 3)));
}

static const struct admin_action row = {"x", ADMIN_VIEWER, SCRIPT_NEVER, "POST",
    "/api/x", ADMIN_SEEN_NONE, "name:s! count:i on:b ids:a more:o caps:l",
    "a test"};

static int
check(const char *text)
{
	struct json_object *o = NULL;
	struct err e;
	int rc;

	assert_int_equal(
	    json_parse((const uint8_t *)text, strlen(text), &o, &e), 0);
	rc = admin_body_check(&row, o, &e);
	if (rc == -1)
		assert_int_equal(e.failure, FAILURE_INVALID_PARAMS);
	json_object_put(o);
	return rc;
}

static void
bodies(void **state)
{
	static const char *const good[] = {"{\"name\":\"\"}",
	    ("{\"name\":\"a\",\"count\":-9223372036854775807,\"on\":false,"
	     "\"ids\":[],\"more\":{}}"),
	    "{\"ids\":[\"a\",\"b\"],\"name\":\"\\u00e9\"}",
	    "{\"name\":\"a\",\"count\":null,\"more\":null}",
	    "{\"name\":\"a\",\"more\":{\"a\":[1,{\"b\":null}]}}",
	    "{\"name\":\"a\",\"caps\":{}}", "{\"name\":\"a\",\"caps\":null}",
	    ("{\"name\":\"a\",\"caps\":{\"timeout_ms\":600000,\"files\":null,"
	     "\"code_bytes\":1000}}")};
	static const char *const bad[] = {"{}", "{\"name\":null}",
	    "{\"name\":1}", "{\"name\":[\"a\"]}", "{\"name\":\"a\",\"x\":1}",
	    "{\"name\":\"a\",\"nam\":1}", "{\"name\":\"a\",\"names\":1}",
	    "{\"name\":\"a\",\"\":1}", "{\"name\":\"a\\u0000\"}",
	    "{\"name\":\"a\",\"count\":1.0}", "{\"name\":\"a\",\"count\":1e2}",
	    "{\"name\":\"a\",\"count\":\"1\"}",
	    "{\"name\":\"a\",\"count\":9223372036854775808}",
	    "{\"name\":\"a\",\"on\":1}", "{\"name\":\"a\",\"on\":\"true\"}",
	    "{\"name\":\"a\",\"ids\":\"a\"}", "{\"name\":\"a\",\"ids\":[1]}",
	    "{\"name\":\"a\",\"ids\":[null]}",
	    "{\"name\":\"a\",\"ids\":[\"\\u0000\"]}",
	    "{\"name\":\"a\",\"more\":[]}",
	    "{\"name\":\"a\",\"more\":{\"a\":[{\"b\":\"x\\u0000\"}]}}",
	    "{\"name\":\"a\",\"caps\":[]}", "{\"name\":\"a\",\"caps\":1}",
	    "{\"name\":\"a\",\"caps\":{\"file\":20}}",
	    "{\"name\":\"a\",\"caps\":{\"\":20}}",
	    "{\"name\":\"a\",\"caps\":{\"files\":15}}",
	    "{\"name\":\"a\",\"caps\":{\"files\":4097}}",
	    "{\"name\":\"a\",\"caps\":{\"files\":20.5}}",
	    "{\"name\":\"a\",\"caps\":{\"files\":\"20\"}}",
	    "{\"name\":\"a\",\"caps\":{\"files\":true}}",
	    "{\"name\":\"a\",\"caps\":{\"timeout_ms\":600001}}",
	    "{\"name\":\"a\",\"caps\":{\"memory_bytes\":-1}}"};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (check(good[i]) != 0)
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (check(bad[i]) != -1)
			fail_msg("accepted: %s", bad[i]);
}

static void
words(void **state)
{
	static const char *const good[] = {"name=a=b", "count=-7", "on=true",
	    "ids=x", "ids=", "more={\"a\":[1]}", "caps={\"files\":20}"};
	static const char *const bad[] = {
	    "name", "nam=a", "=a", "", "name=c", "count=8", "ids", "x=1"};
	static const char *const mistyped[] = {"count=", "count=1x", "count= 1",
	    "count=+1", "count=99999999999999999999", "on=1",
	    "on=", "more=", "more={", "more={\"a\":1,\"a\":2}"};
	struct json_object *o = json_object_new_object();
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (admin_body_word(&row, o, good[i], &e) == -1)
			fail_msg("refused: %s: %s", good[i], e.text);
	assert_string_equal(
	    json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN),
	    "{\"name\":\"a=b\",\"count\":-7,\"on\":true,\"ids\":[\"x\",\"\"],"
	    "\"more\":{\"a\":[1]},\"caps\":{\"files\":20}}");
	assert_int_equal(admin_body_check(&row, o, &e), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (admin_body_word(&row, o, bad[i], &e) != -1)
			fail_msg("accepted: %s", bad[i]);
	json_object_put(o);
	o = json_object_new_object();
	for (size_t i = 0; i < sizeof(mistyped) / sizeof(mistyped[0]); i++)
		if (admin_body_word(&row, o, mistyped[i], &e) != -1)
			fail_msg("accepted: %s", mistyped[i]);
	assert_string_equal(
	    json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN), "{}");
	json_object_put(o);
}

static void
filters(void **state)
{
#define HEX16 "0123456789abcdef"
	static const struct {
		const char *text;
		bool ok;
	} hashes[] = {{HEX16 HEX16 HEX16 HEX16, true},
	    {HEX16 HEX16 HEX16 "0123456789abcde", false},
	    {HEX16 HEX16 HEX16 HEX16 "0", false},
	    {HEX16 HEX16 HEX16 "0123456789ABCDEF", false},
	    {HEX16 HEX16 HEX16 "0123456789abcdeg", false}};
	struct ipc_bytes out[ADMIN_FILTER_COUNT];
	struct buf b;

	(void)state;
	for (int i = 0; i < ADMIN_FILTER_COUNT; i++) {
		const char *n = admin_filter_name((enum admin_filter)i);

		assert_int_equal(admin_filter_find(n, strlen(n)), i);
		assert_false(admin_filter_ok((enum admin_filter)i, "", 0));
		assert_false(admin_filter_ok((enum admin_filter)i, "a\0b", 3));
	}
	assert_int_equal(admin_filter_find("kin", 3), -1);
	for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++)
		assert_int_equal(admin_filter_ok(ADMIN_FILTER_HASH,
				     hashes[i].text, strlen(hashes[i].text)),
		    hashes[i].ok);
	buf_init(&b, 4096);
	admin_filter_put(&b, ADMIN_FILTER_KIND, "tool");
	admin_filter_put(&b, ADMIN_FILTER_SEARCH, "two words");
	assert_int_equal(admin_filter_read(ipc_bytes(b.p, b.len), out), 0);
	assert_true(ipc_streq(out[ADMIN_FILTER_KIND], "tool"));
	assert_true(ipc_streq(out[ADMIN_FILTER_SEARCH], "two words"));
	assert_int_equal(out[ADMIN_FILTER_STATE].n, 0);
	/* cut, twice, unknown, not of its type */
	assert_int_equal(admin_filter_read(ipc_bytes(b.p, b.len - 1), out), -1);
	admin_filter_put(&b, ADMIN_FILTER_KIND, "tool");
	assert_int_equal(admin_filter_read(ipc_bytes(b.p, b.len), out), -1);
	for (unsigned tag = 0; tag < 256; tag++) {
		buf_clear(&b);
		tlv_puts(&b, (uint8_t)tag, "\x01");
		assert_int_equal(
		    admin_filter_read(ipc_bytes(b.p, b.len), out), -1);
	}
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rows),
	    cmocka_unit_test(roles),
	    cmocka_unit_test(keys),
	    cmocka_unit_test(bodies),
	    cmocka_unit_test(words),
	    cmocka_unit_test(filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
