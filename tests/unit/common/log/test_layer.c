/* Which missing layer keeps a pool from starting, and what mends it. */
#include "layer.h"
#include "unit.h"

static const char *
fix(const char *name)
{
	return layer_fix(name, strlen(name));
}

static void
test_fixes(void **state)
{
	(void)state;
	assert_non_null(strstr(fix("cgroup"), "Delegate=yes"));
	assert_non_null(strstr(fix("runner-proc"), "ProtectKernelTunables"));
	assert_non_null(strstr(fix("runner-seccomp"), "seccomp"));
	/* A name that is longer or shorter is another one. */
	assert_non_null(strstr(fix("cgroups"), "OPERATIONS"));
	assert_non_null(strstr(layer_fix("cgroup", 5), "OPERATIONS"));
	assert_non_null(strstr(fix(""), "OPERATIONS"));
}

static void
test_what_may_be_missing(void **state)
{
	(void)state;
	assert_true(layer_optional("cgroup", 6));
	assert_true(layer_optional("runner-landlock", 15));
	assert_false(layer_optional("runner-seccomp", 14));
	/* What nobody described is not left out unnoticed. */
	assert_false(layer_optional("runner-new", 10));
}

static const char *
missing(const char *lines)
{
	static char text[64];
	size_t n;
	const char *at = layer_missing(lines, &n);

	if (at == NULL)
		return "";
	memcpy(text, at, n);
	text[n] = '\0';
	return text;
}

static void
test_the_first_that_matters(void **state)
{
	(void)state;
	assert_string_equal(missing(""), "");
	assert_string_equal(missing("a=enforced\nb=degraded why\n"), "");
	assert_string_equal(missing("runner-landlock=missing\n"), "");
	assert_string_equal(
	    missing("cgroup=degraded =missing\nrunner-tmp=missing /tmp: no\n"
		    "runner-ids=missing not reached\n"),
	    "runner-tmp=missing /tmp: no");
	assert_string_equal(missing("a=missing"), "a=missing");
	assert_string_equal(missing("\n\nmissing\na=missing"), "a=missing");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fixes),
	    cmocka_unit_test(test_what_may_be_missing),
	    cmocka_unit_test(test_the_first_that_matters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
