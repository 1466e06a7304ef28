/* Names: which are valid, and which are ours. */
#include "unit.h"

#include "bounds.h"
#include "name.h"

static void
names(void **state)
{
	static const char *const good[] = {
	    "a", "a1", "web_search", "a_b_c", "z9_9z"};
	static const char *const bad[] = {"", "A", "1a", "_a", "a_", "a__b",
	    "a-b", "a b", "a.b", "\xc3\xa4", "aB"};
	char longest[NAME_TOOL_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(name_valid(good[i], strlen(good[i]), 38));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (name_valid(bad[i], strlen(bad[i]), 38))
			fail_msg("accepted: %s", bad[i]);
	memset(longest, 'a', sizeof(longest));
	assert_true(name_valid(longest, NAME_TOOL_MAX, NAME_TOOL_MAX));
	assert_false(name_valid(longest, NAME_TOOL_MAX + 1, NAME_TOOL_MAX));
	assert_false(name_valid("a\0b", 3, 38));
}

static void
management(void **state)
{
	(void)state;
	assert_true(name_is_management("mcpbox_"));
	assert_true(name_is_management("mcpbox_list_tools"));
	assert_false(name_is_management(""));
	assert_false(name_is_management("mcpbox"));
	assert_false(name_is_management("mcpboX_a"));
	assert_false(name_is_management("a__mcpbox_list_tools"));
	assert_false(name_is_management("MCPBOX_list_tools"));
}

static void
local(void **state)
{
	(void)state;
	assert_true(name_is_local("local"));
	assert_false(name_is_local(""));
	assert_false(name_is_local("loca"));
	assert_false(name_is_local("locals"));
	assert_false(name_is_local("token:local"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names),
	    cmocka_unit_test(management),
	    cmocka_unit_test(local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
