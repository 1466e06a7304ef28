/*
 * What a token's patterns and scopes let it see and do, and that every
 * management tool has a row that says who may use it.
 */
#include "management_tools.h"
#include "permit.h"
#include "unit.h"

#define NONE FAILURE_NONE

static bool
may(const char *allow, const char *deny, const char *exposed,
    const char *server, const char *name)
{
	struct permit p = {PERMIT_CALL, allow, deny};

	return permit_name(&p, exposed, ipc_str(server), ipc_str(name));
}

static void
patterns(void **state)
{
	assert_true(may("*", "", "a__b", "a", "b"));
	assert_true(may("a__b", "", "a__b", "a", "b"));
	assert_true(may("x\na__*\ny", "", "a__b", "a", "b"));
	assert_false(may("", "", "a__b", "a", "b"));
	assert_false(may("a", "", "a__b", "a", "b"));
	assert_false(may("b", "", "a__b", "a", "b"));
	assert_false(may("a__", "", "a__b", "a", "b"));
	assert_false(may("a__bc\na__a", "", "a__b", "a", "b"));
	assert_false(may("aa__*", "", "a__b", "a", "b"));
	/* a server's name that begins as another's */
	assert_false(may("a__*", "", "ab__c", "ab", "c"));
	assert_false(may("a__*", "", "a_b__c", "a_b", "c"));
	/* no pattern is longer than the name it means */
	assert_false(may("a__*", "", "a_", "a_", ""));
}

static void
denied(void **state)
{
	assert_false(may("*", "*", "a__b", "a", "b"));
	assert_false(may("*", "a__*", "a__b", "a", "b"));
	assert_false(may("*", "c\na__b", "a__b", "a", "b"));
	assert_false(may("a__b", "a__b", "a__b", "a", "b"));
	assert_true(may("*", "a__c", "a__b", "a", "b"));
}

/* What a server exposes barely has two names, and both count. */
static void
bare(void **state)
{
	assert_true(may("a__*", "", "b", "a", "b"));
	assert_true(may("a__b", "", "b", "a", "b"));
	assert_true(may("b", "", "b", "a", "b"));
	assert_false(may("*", "a__*", "b", "a", "b"));
	assert_false(may("*", "a__b", "b", "a", "b"));
	assert_false(may("*", "b", "b", "a", "b"));
	/* a bare name says nothing of another server's */
	assert_false(may("b", "", "c__b", "c", "b"));
}

static void
everything(void **state)
{
	static const struct {
		const char *allow, *deny;
		bool all;
	} of[] = {{"*", "", true}, {"a\n*", "", true}, {"a__*\n*\nb", "", true},
	    {"*", "x", false}, {"", "", false}, {"a__*", "", false}};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct permit p = {0, of[i].allow, of[i].deny};

		assert_int_equal(permit_everything(&p), of[i].all);
	}
}

static void
scopes(void **state)
{
	assert_int_equal(permit_scopes(""), 0);
	assert_int_equal(permit_scopes("tools:read"), PERMIT_READ);
	assert_int_equal(
	    permit_scopes("tools:call"), PERMIT_CALL | PERMIT_READ);
	assert_int_equal(permit_scopes("manage"), PERMIT_MANAGE);
	assert_int_equal(
	    permit_scopes("manage:edit"), PERMIT_MANAGE | PERMIT_EDIT);
	assert_int_equal(permit_scopes("manage:edit\ntools:call"), 15);
	assert_int_equal(permit_scopes("Manage\nmanage:\nroot\n"), 0);
}

static enum failure
manage(const struct permit *p, unsigned scopes, const char *tool)
{
	const char *sentence = NULL;
	enum failure f = permit_management(p, scopes, tool, &sentence);

	assert_int_equal(f == NONE, sentence == NULL);
	return f;
}

static void
management(void **state)
{
	struct permit all = {15, "*", ""}, crm = {15, "crm__*", ""};
	struct permit less = {15, "*", "mcpbox_delete_tool"};

	assert_int_equal(manage(&all, 15, "mcpbox_create_tool"), NONE);
	/* what the listener takes away */
	assert_int_equal(
	    manage(&all, 7, "mcpbox_create_tool"), FAILURE_FORBIDDEN);
	assert_int_equal(manage(&all, 7, "mcpbox_list_servers"), NONE);
	assert_int_equal(
	    manage(&all, 3, "mcpbox_list_servers"), FAILURE_FORBIDDEN);
	assert_int_equal(manage(&all, 3, "mcpbox_search_tools"), NONE);
	/* what shows more than its patterns let it see */
	assert_int_equal(manage(&crm, 15, "mcpbox_list_pending_requests"),
	    FAILURE_FORBIDDEN);
	assert_int_equal(manage(&crm, 15, "mcpbox_update_tool"), NONE);
	assert_int_equal(
	    manage(&less, 15, "mcpbox_delete_tool"), FAILURE_FORBIDDEN);
	/* one that nobody thought of */
	assert_int_equal(manage(&all, 7, "mcpbox_new"), FAILURE_FORBIDDEN);
	assert_int_equal(manage(&crm, 15, "mcpbox_new"), FAILURE_FORBIDDEN);
	assert_int_equal(manage(&all, 15, "mcpbox_new"), NONE);
}

/* Each tool that is offered has its row, and each row is of a tool. */
static void
rows(void **state)
{
	const struct management_tool *tools;
	size_t n, found = 0;

	tools = management_tools(&n);
	for (size_t i = 0; i < n; i++) {
		if (permit_tool(tools[i].name)->name[0] == '\0')
			fail_msg("%s has no row", tools[i].name);
		/* what is read-only is not kept for editors */
		if (tools[i].read_only)
			assert_int_not_equal(
			    permit_tool(tools[i].name)->scope, PERMIT_EDIT);
	}
	for (const struct permit_tool *t = permit_tools; t->name != NULL; t++) {
		bool known = false;

		for (size_t i = 0; i < n; i++)
			known |= strcmp(t->name, tools[i].name) == 0;
		if (!known)
			fail_msg("no tool is called %s", t->name);
		found++;
	}
	assert_int_equal(found, n);
}

static void
words_of_scopes(void **state)
{
	static const struct {
		unsigned scopes;
		const char *words;
	} of[] = {{0, ""}, {PERMIT_CALL, "tools:call"},
	    {PERMIT_READ | PERMIT_CALL, "tools:read tools:call"},
	    {PERMIT_MANAGE | PERMIT_EDIT, "manage manage:edit"}, {15, NULL}};
	struct buf b;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		buf_init(&b, 256);
		permit_put_scopes(&b, of[i].scopes);
		buf_putc(&b, '\0');
		assert_false(b.failed);
		if (of[i].words != NULL)
			assert_string_equal(b.p, of[i].words);
		else
			assert_int_equal(b.len - 1, PERMIT_WORDS_MAX);
		buf_free(&b);
	}
}

/* False where a right is lost, or may be. */
static void
covers(void **state)
{
	static const struct {
		struct permit was, is;
		bool covers;
	} of[] = {
	    {{PERMIT_READ, "a", "b"}, {PERMIT_READ, "a", "b"}, true},
	    {{PERMIT_READ, "a", ""}, {PERMIT_READ | PERMIT_CALL, "a", ""},
		true},
	    {{PERMIT_READ | PERMIT_CALL, "a", ""}, {PERMIT_READ, "a", ""},
		false},
	    {{0, "a", ""}, {0, "b\na", ""}, true},
	    {{0, "a\nb", ""}, {0, "b", ""}, false},
	    {{0, "a\nb__*", ""}, {0, "*", ""}, true},
	    {{0, "*", ""}, {0, "a__*", ""}, false},
	    {{0, "ab", ""}, {0, "a\nb", ""}, false},
	    {{0, "", ""}, {0, "", ""}, true},
	    {{0, "*", "a\nb"}, {0, "*", "b"}, true},
	    {{0, "*", "b"}, {0, "*", "a\nb"}, false},
	    {{0, "*", ""}, {0, "*", "a"}, false},
	    {{0, "a", ""}, {0, "", ""}, false},
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (permit_covers(&of[i].is, &of[i].was) != of[i].covers)
			fail_msg("row %zu", i);
}

/* Groups of patterns: a name must be in each. */
static void
groups(void **state)
{
#define AND "\n" PERMIT_AND "\n"
	assert_true(may("*" AND "a__*", "", "a__b", "a", "b"));
	assert_false(may("*" AND "a__*", "", "c__b", "c", "b"));
	assert_false(may("a__*" AND "c__*", "", "a__b", "a", "b"));
	assert_true(may("x\na__*" AND "y\na__b" AND "*", "", "a__b", "a", "b"));
	/* A group without patterns allows nothing, wherever it is. */
	assert_false(may(PERMIT_AND "\n*", "", "a__b", "a", "b"));
	assert_false(may("*" AND "", "", "a__b", "a", "b"));
	assert_false(may("*" AND PERMIT_AND "\n*", "", "a__b", "a", "b"));
	assert_false(may("*" AND "*", "a__b", "a__b", "a", "b"));
}

/* An endpoint has only the management tools that it names. */
static void
at_endpoints(void **state)
{
	static const struct {
		const char *allow, *deny, *tool;
		enum permit_at at;
		bool may;
	} of[] = {
	    /* No default. */
	    {"*" AND "crm__*", "", "mcpbox_list_servers", PERMIT_AT_ENDPOINT,
		false},
	    {"*" AND "crm__*\nmcpbox_list_servers", "", "mcpbox_list_servers",
		PERMIT_AT_ENDPOINT, true},
	    {"*" AND "crm__*\nmcpbox_list_servers", "", "mcpbox_guide",
		PERMIT_AT_ENDPOINT, false},
	    {"*" AND "*", "", "mcpbox_create_tool", PERMIT_AT_ENDPOINT, true},
	    /* One that reaches every name: by its name, or where all is. */
	    {"*" AND "crm__*\nmcpbox_stop_server", "", "mcpbox_stop_server",
		PERMIT_AT_ENDPOINT, true},
	    {"crm__*" AND "mcpbox_stop_server", "", "mcpbox_stop_server",
		PERMIT_AT_ENDPOINT, false},
	    {"*" AND "crm__*" AND "mcpbox_stop_server", "",
		"mcpbox_stop_server", PERMIT_AT_ENDPOINT, false},
	    {"*" AND "*", "crm__*", "mcpbox_stop_server", PERMIT_AT_ENDPOINT,
		false},
	    {"*" AND "mcpbox_stop_server", "crm__*", "mcpbox_stop_server",
		PERMIT_AT_ENDPOINT, false},
	    {"*" AND "mcpbox_stop_server", "mcpbox_stop_server",
		"mcpbox_stop_server", PERMIT_AT_ENDPOINT, false},
	    /* Mode "search". */
	    {"*" AND "crm__*", "", PERMIT_SEARCH_TOOL, PERMIT_AT_SEARCH, true},
	    {"*" AND "crm__*", "", PERMIT_CALL_TOOL, PERMIT_AT_SEARCH, true},
	    {"*" AND "crm__*", "", PERMIT_CALL_TOOL, PERMIT_AT_ENDPOINT, false},
	    {"*" AND "crm__*", "", "mcpbox_guide", PERMIT_AT_SEARCH, false},
	    {"*" AND "crm__*", PERMIT_SEARCH_TOOL, PERMIT_SEARCH_TOOL,
		PERMIT_AT_SEARCH, false},
	};
	const char *sentence;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct permit p = {15, of[i].allow, of[i].deny, of[i].at};

		if ((permit_management(&p, 15, of[i].tool, &sentence) ==
			NONE) != of[i].may)
			fail_msg("row %zu", i);
		/* The scope is the token's all the same. */
		p.scopes = 0;
		assert_int_equal(
		    permit_management(&p, 0, of[i].tool, &sentence),
		    FAILURE_FORBIDDEN);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(patterns),
	    cmocka_unit_test(denied), cmocka_unit_test(bare),
	    cmocka_unit_test(everything), cmocka_unit_test(scopes),
	    cmocka_unit_test(management), cmocka_unit_test(rows),
	    cmocka_unit_test(words_of_scopes), cmocka_unit_test(covers),
	    cmocka_unit_test(groups), cmocka_unit_test(at_endpoints)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
