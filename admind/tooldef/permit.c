/* See permit.h. */
#include <string.h>

#include "permit.h"

/*
 * A management tool that is missing in this table needs the highest rights. So
 * if somebody adds a tool and forgets it here, it is out of reach for everyone
 * who should not have it.
 *
 * The scope manage:edit covers all that the original kept from remote callers:
 * making, changing or deleting content. Starting, stopping, asking for review,
 * trying a draft: scope manage.
 */
const struct permit_tool permit_tools[] = {
    /* These are for clients that cannot see a new tool; the tools that they
     * call and find are judged by name. (gatewayd makes a plain call of
     * mcpbox_call_tool, so here it is only a line of the list.) */
    {"mcpbox_call_tool", PERMIT_CALL, PERMIT_REACH_SELF},
    {"mcpbox_search_tools", PERMIT_READ, PERMIT_REACH_SELF},
    /* These show nothing of anybody's, or only objects that the ids name. */
    {"mcpbox_guide", PERMIT_MANAGE, PERMIT_REACH_SELF},
    {"mcpbox_validate_code", PERMIT_MANAGE, PERMIT_REACH_SELF},
    {"mcpbox_list_servers", PERMIT_MANAGE, PERMIT_REACH_SELF},
    {"mcpbox_list_tools", PERMIT_MANAGE, PERMIT_REACH_SELF},
    {"mcpbox_list_prompts", PERMIT_MANAGE, PERMIT_REACH_SELF},
    {"mcpbox_list_resources", PERMIT_MANAGE, PERMIT_REACH_SELF},
    {"mcpbox_get_tool", PERMIT_MANAGE, PERMIT_REACH_IDS},
    {"mcpbox_get_tool_status", PERMIT_MANAGE, PERMIT_REACH_IDS},
    {"mcpbox_test_code", PERMIT_MANAGE, PERMIT_REACH_IDS},
    {"mcpbox_list_tool_versions", PERMIT_MANAGE, PERMIT_REACH_IDS},
    {"mcpbox_diff_tool_versions", PERMIT_MANAGE, PERMIT_REACH_IDS},
    {"mcpbox_request_publish", PERMIT_MANAGE, PERMIT_REACH_IDS},
    {"mcpbox_request_module", PERMIT_MANAGE, PERMIT_REACH_IDS},
    /* These show, or stop, everything on a server or in a queue; and others'
     * calls with their arguments. */
    {"mcpbox_get_server", PERMIT_MANAGE, PERMIT_REACH_ALL},
    {"mcpbox_start_server", PERMIT_MANAGE, PERMIT_REACH_ALL},
    {"mcpbox_stop_server", PERMIT_MANAGE, PERMIT_REACH_ALL},
    {"mcpbox_get_tool_logs", PERMIT_MANAGE, PERMIT_REACH_ALL},
    {"mcpbox_request_network_access", PERMIT_MANAGE, PERMIT_REACH_ALL},
    {"mcpbox_get_server_modules", PERMIT_MANAGE, PERMIT_REACH_ALL},
    {"mcpbox_list_pending_requests", PERMIT_MANAGE, PERMIT_REACH_ALL},
    {"mcpbox_create_server_secret", PERMIT_MANAGE, PERMIT_REACH_ALL},
    {"mcpbox_list_server_secrets", PERMIT_MANAGE, PERMIT_REACH_ALL},
    {"mcpbox_list_external_sources", PERMIT_MANAGE, PERMIT_REACH_ALL},
    {"mcpbox_discover_external_tools", PERMIT_MANAGE, PERMIT_REACH_ALL},
    /* Content. */
    {"mcpbox_update_tool", PERMIT_EDIT, PERMIT_REACH_IDS},
    {"mcpbox_delete_tool", PERMIT_EDIT, PERMIT_REACH_IDS},
    {"mcpbox_rollback_tool", PERMIT_EDIT, PERMIT_REACH_IDS},
    {"mcpbox_update_prompt", PERMIT_EDIT, PERMIT_REACH_IDS},
    {"mcpbox_delete_prompt", PERMIT_EDIT, PERMIT_REACH_IDS},
    {"mcpbox_update_resource", PERMIT_EDIT, PERMIT_REACH_IDS},
    {"mcpbox_delete_resource", PERMIT_EDIT, PERMIT_REACH_IDS},
    {"mcpbox_create_server", PERMIT_EDIT, PERMIT_REACH_ALL},
    {"mcpbox_update_server", PERMIT_EDIT, PERMIT_REACH_ALL},
    {"mcpbox_delete_server", PERMIT_EDIT, PERMIT_REACH_ALL},
    {"mcpbox_create_tool", PERMIT_EDIT, PERMIT_REACH_ALL},
    {"mcpbox_import_openapi", PERMIT_EDIT, PERMIT_REACH_ALL},
    {"mcpbox_create_prompt", PERMIT_EDIT, PERMIT_REACH_ALL},
    {"mcpbox_create_resource", PERMIT_EDIT, PERMIT_REACH_ALL},
    {"mcpbox_add_external_source", PERMIT_EDIT, PERMIT_REACH_ALL},
    {"mcpbox_import_external_tools", PERMIT_EDIT, PERMIT_REACH_ALL},
    {NULL, 0, PERMIT_REACH_ALL},
};

const struct permit_tool *
permit_tool(const char *name)
{
	static const struct permit_tool most = {
	    "", PERMIT_EDIT, PERMIT_REACH_ALL};

	for (const struct permit_tool *t = permit_tools; t->name != NULL; t++)
		if (strcmp(t->name, name) == 0)
			return t;
	return &most;
}

/* Returns the next line of a list, or NULL at its end. */
static const char *
line(const char **at, size_t *n)
{
	const char *p = *at;

	if (*p == '\0')
		return NULL;
	*n = strcspn(p, "\n");
	*at = p + *n + (p[*n] == '\n');
	return p;
}

unsigned
permit_scopes(const char *words)
{
	static const struct {
		const char *word;
		unsigned mask;
	} all[] = {{"tools:read", PERMIT_READ},
	    {"tools:call", PERMIT_CALL | PERMIT_READ},
	    {"manage", PERMIT_MANAGE},
	    {"manage:edit", PERMIT_EDIT | PERMIT_MANAGE}};
	unsigned mask = 0;
	const char *p;
	size_t n;

	while ((p = line(&words, &n)) != NULL)
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			if (strlen(all[i].word) == n &&
			    memcmp(all[i].word, p, n) == 0)
				mask |= all[i].mask;
	return mask;
}

/* Returns whether p is the text `a` followed by `b` followed by `c`. */
static bool
is(const char *p, size_t n, struct ipc_bytes a, const char *b,
    struct ipc_bytes c)
{
	size_t m = strlen(b);

	return n == a.n + m + c.n && memcmp(p, a.p, a.n) == 0 &&
	    memcmp(p + a.n, b, m) == 0 &&
	    (c.n == 0 || memcmp(p + a.n + m, c.p, c.n) == 0);
}

/* The same as mcpbox.token_matches() (0011). */
static bool
matches(const char *list, const char *exposed, struct ipc_bytes server,
    struct ipc_bytes name)
{
	const struct ipc_bytes none = {NULL, 0};
	size_t n, m = strlen(exposed);
	const char *p;

	while ((p = line(&list, &n)) != NULL) {
		if (n == 1 && *p == '*')
			return true;
		if (n == m && memcmp(p, exposed, n) == 0)
			return true;
		if (server.n > 0 &&
		    (is(p, n, server, "__", name) ||
			is(p, n, server, "__*", none)))
			return true;
		if (n > 3 && memcmp(p + n - 3, "__*", 3) == 0 && m >= n - 1 &&
		    memcmp(p, exposed, n - 1) == 0)
			return true;
	}
	return false;
}

bool
permit_everything(const struct permit *p)
{
	const char *list = p->allow, *word;
	size_t n;

	if (p->deny[0] != '\0')
		return false;
	while ((word = line(&list, &n)) != NULL)
		if (n == 1 && *word == '*')
			return true;
	return false;
}

bool
permit_name(const struct permit *p, const char *exposed,
    struct ipc_bytes server, struct ipc_bytes name)
{
	return matches(p->allow, exposed, server, name) &&
	    !matches(p->deny, exposed, server, name);
}

enum failure
permit_management(const struct permit *p, unsigned scopes, const char *tool,
    const char **sentence)
{
	const struct permit_tool *t = permit_tool(tool);
	const struct ipc_bytes none = {NULL, 0};

	if ((p->scopes & t->scope) == 0)
		*sentence = t->scope == PERMIT_EDIT
		    ? "this token may not change tools (scope manage:edit)"
		    : t->scope == PERMIT_MANAGE
		    ? "this token may not manage (scope manage)"
		    : "this token may not use tools (scopes tools:read and "
		      "tools:call)";
	else if ((scopes & t->scope) == 0)
		*sentence = "tools cannot be changed from here: an "
			    "administrator has remote_tool_editing disabled";
	else if ((t->reach == PERMIT_REACH_ALL && !permit_everything(p)) ||
	    matches(p->deny, tool, none, none))
		*sentence = "this token may not use every tool, so it may not "
			    "use this one";
	else
		return FAILURE_NONE;
	return FAILURE_FORBIDDEN;
}
