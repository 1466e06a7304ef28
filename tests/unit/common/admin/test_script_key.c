/* script_key.h, and the scopes in admin_action.def. */
#include "unit.h"

#include "admin_action.h"
#include "script_key.h"

#define KEY "mbk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-_0"

static bool
form(const char *text)
{
	return script_key_form(text, strlen(text));
}

static void
forms(void **state)
{
	char text[SCRIPT_KEY_TEXT + 1];

	(void)state;
	assert_int_equal(strlen(KEY), SCRIPT_KEY_TEXT);
	assert_true(form(KEY));
	assert_false(form(""));
	assert_false(form("mbk_"));
	assert_false(form(KEY "A"));
	assert_false(script_key_form(KEY, SCRIPT_KEY_TEXT - 1));
	for (size_t i = 0; i < SCRIPT_KEY_TEXT; i++) {
		memcpy(text, KEY, sizeof(text));
		text[i] = i < 4 ? 'x' : '=';
		assert_false(form(text));
		text[i] = ' ';
		assert_false(form(text));
	}
	/* nor the other credentials */
	memcpy(text, KEY, sizeof(text));
	text[2] = 't';
	assert_false(form(text));
}

static void
inside(void **state)
{
	(void)state;
	assert_true(script_key_inside(KEY));
	assert_true(script_key_inside("access_token=" KEY "&x=1"));
	assert_true(script_key_inside("mbk_mbk_" KEY));
	assert_false(script_key_inside(""));
	assert_false(script_key_inside("search=mbk_"));
	assert_false(script_key_inside("search=mbk_AAAA"));
}

static void
scopes(void **state)
{
	enum script_scope s = SCRIPT_NEVER;

	(void)state;
	for (int i = SCRIPT_NEVER + 1; i < SCRIPT_SCOPES; i++) {
		assert_int_equal(
		    script_scope_find(
			ipc_str(script_scope_name((enum script_scope)i)), &s),
		    0);
		assert_int_equal(s, i);
	}
	/* No key can have this scope. */
	assert_int_equal(script_scope_find(ipc_str("never"), &s), -1);
	assert_int_equal(script_scope_find(ipc_str(""), &s), -1);
	assert_int_equal(script_scope_find(ipc_str("rea"), &s), -1);
	assert_int_equal(script_scope_find(ipc_str("read\n"), &s), -1);
}

/* A key's role is an administrator's for OPERATE alone, so each action has that
 * scope or none. Actions of uid 0 have NEVER. */
static void
actions(void **state)
{
	(void)state;
	for (const struct admin_action *a = admin_actions; a->name != NULL; a++)
		if (a->scope != SCRIPT_OPERATE || a->role == ADMIN_ROOT)
			assert_int_equal(a->scope, SCRIPT_NEVER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(forms),
	    cmocka_unit_test(inside),
	    cmocka_unit_test(scopes),
	    cmocka_unit_test(actions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
