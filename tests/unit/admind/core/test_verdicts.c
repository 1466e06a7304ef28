/* Arguments that were found valid: what makes two questions the same, what is
 * not remembered, and that it is bounded. */
#include "admind.h"
#include "crypto.h"
#include "unit.h"
#include "verdicts.h"

static struct verdicts v;

static int
setup(void **unused)
{
	verdicts_init(&v);
	return 0;
}

static int
teardown(void **unused)
{
	verdicts_clear(&v);
	assert_int_equal(v.n, 0);
	assert_int_equal(v.bytes, 0);
	for (int i = 0; i < VERDICTS_BUCKETS; i++)
		assert_true(LIST_EMPTY(&v.chain[i]));
	return 0;
}

static struct ipc_hash version;

static struct ipc_hash
key(const char *principal, const char *schema, const char *arguments)
{
	struct ipc_hash sum, k;

	sha256(arguments, strlen(arguments), &sum);
	assert_true(verdicts_key(
	    principal, &version, ipc_str(schema), strlen(arguments), &sum, &k));
	return k;
}

/* "" where nothing is kept, NULL where nothing is found. */
static const char *
found(const struct ipc_hash *k)
{
	static char text[VERDICT_ARGUMENTS_MAX + 1];
	struct buf kept;
	bool is;

	buf_init(&kept, sizeof(text));
	is = verdicts_find(&v, k, &kept);
	assert_false(kept.failed);
	memcpy(text, kept.len > 0 ? (const char *)kept.p : "", kept.len);
	text[kept.len] = '\0';
	buf_free(&kept);
	return is ? text : NULL;
}

static void
same_question_only(void **unused)
{
	struct ipc_hash k = key("local", "{}", "{\"a\":1}"), other;

	assert_null(found(&k));
	verdicts_add(&v, &k, ipc_bytes(NULL, 0));
	assert_string_equal(found(&k), "");
	k = key("local", "{}", "{\"a\":1}");
	assert_string_equal(found(&k), "");
	/* another schema, other arguments, even in their spaces; somebody else;
	 * the same bytes split elsewhere */
	other = key("local", "{ }", "{\"a\":1}");
	assert_null(found(&other));
	other = key("local", "{}", "{\"a\":2}");
	assert_null(found(&other));
	other = key("local", "{}", "{\"a\": 1}");
	assert_null(found(&other));
	other = key("locaL", "{}", "{\"a\":1}");
	assert_null(found(&other));
	other = key("", "local{}", "{\"a\":1}");
	assert_null(found(&other));
	version.b[31]++;
	other = key("local", "{}", "{\"a\":1}");
	assert_null(found(&other));
	verdicts_clear(&v);
	assert_null(found(&k));
}

static void
keeps_the_redacted_form(void **unused)
{
	struct ipc_hash k = key("local", "{}", "{\"password\":\"x\"}");

	verdicts_add(&v, &k, ipc_str("{\"password\":\"[redacted]\"}"));
	assert_string_equal(found(&k), "{\"password\":\"[redacted]\"}");
	/* the first stays: both are the same answer */
	verdicts_add(&v, &k, ipc_bytes(NULL, 0));
	assert_string_equal(found(&k), "{\"password\":\"[redacted]\"}");
	assert_int_equal(v.n, 1);
	/* without room for it the caller sees that something is missing */
	{
		struct buf small;

		buf_init(&small, 4);
		assert_true(verdicts_find(&v, &k, &small));
		assert_true(small.failed);
		buf_free(&small);
	}
}

static void
large_questions_are_none(void **unused)
{
	struct ipc_hash sum = {{0}}, k;
	char *text = calloc(1, VERDICT_SCHEMA_MAX + 1), name[PRINCIPAL_MAX + 2];

	assert_non_null(text);
	assert_true(
	    verdicts_key("p", &version, ipc_bytes(text, VERDICT_SCHEMA_MAX),
		VERDICT_ARGUMENTS_MAX, &sum, &k));
	assert_false(verdicts_key("p", &version,
	    ipc_bytes(text, VERDICT_SCHEMA_MAX + 1), 1, &sum, &k));
	assert_false(verdicts_key("p", &version, ipc_bytes(text, 1),
	    VERDICT_ARGUMENTS_MAX + 1, &sum, &k));
	memset(name, 'x', sizeof(name));
	name[PRINCIPAL_MAX] = '\0';
	assert_true(
	    verdicts_key(name, &version, ipc_bytes(text, 1), 1, &sum, &k));
	name[PRINCIPAL_MAX] = 'x';
	name[PRINCIPAL_MAX + 1] = '\0';
	assert_false(
	    verdicts_key(name, &version, ipc_bytes(text, 1), 1, &sum, &k));
	verdicts_add(&v, &k, ipc_bytes(text, VERDICT_ARGUMENTS_MAX + 1));
	assert_null(found(&k));
	free(text);
}

static struct ipc_hash
nth(int n)
{
	char arguments[32];

	snprintf(arguments, sizeof(arguments), "{\"n\":%d}", n);
	return key("local", "{}", arguments);
}

static void
is_bounded(void **unused)
{
	char kept[VERDICT_ARGUMENTS_MAX];
	struct ipc_hash k, first = nth(0);

	for (int i = 0; i < 3 * VERDICTS_MAX; i++) {
		k = nth(i);
		verdicts_add(&v, &k, ipc_bytes(NULL, 0));
		assert_non_null(found(&first)); /* in use: stays */
	}
	assert_int_equal(v.n, VERDICTS_MAX);
	assert_non_null(found(&k));
	k = nth(1);
	assert_null(found(&k));
	/* by bytes */
	memset(kept, 'x', sizeof(kept));
	for (int i = 0; i < VERDICTS_MAX; i++) {
		k = nth(10000 + i);
		verdicts_add(&v, &k, ipc_bytes(kept, sizeof(kept)));
		assert_true(v.bytes <= VERDICTS_BYTES_MAX);
	}
	assert_int_equal(
	    v.n, VERDICTS_BYTES_MAX / sizeof(kept)); /* nothing else is left */
	assert_non_null(found(&k));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		same_question_only, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		keeps_the_redacted_form, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		large_questions_are_none, setup, teardown),
	    cmocka_unit_test_setup_teardown(is_bounded, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
