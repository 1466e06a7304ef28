/* See permit.h. */
#include <string.h>

#include "permit.h"

/* A tool without a row needs the highest rights, so a forgotten row gives a
 * token nothing. */
const struct permit_tool permit_tools[] = {
#define M(name, run, scope, reach, object, flags) \
	{#name, PERMIT_##scope, PERMIT_REACH_##reach},
#include "management_tool.def"
#undef M
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

static const struct {
	const char *word;
	unsigned scope, implied;
} scopes_known[] = {{"tools:read", PERMIT_READ, 0},
    {"tools:call", PERMIT_CALL, PERMIT_READ}, {"manage", PERMIT_MANAGE, 0},
    {"manage:edit", PERMIT_EDIT, PERMIT_MANAGE}};

enum { SCOPES_KNOWN = sizeof(scopes_known) / sizeof(scopes_known[0]) };

unsigned
permit_scopes(const char *words)
{
	unsigned mask = 0;
	const char *p;
	size_t n;

	while ((p = line(&words, &n)) != NULL)
		for (size_t i = 0; i < SCOPES_KNOWN; i++)
			if (strlen(scopes_known[i].word) == n &&
			    memcmp(scopes_known[i].word, p, n) == 0)
				mask |= scopes_known[i].scope |
				    scopes_known[i].implied;
	return mask;
}

void
permit_put_scopes(struct buf *b, unsigned scopes)
{
	const char *space = "";

	for (size_t i = 0; i < SCOPES_KNOWN; i++)
		if ((scopes & scopes_known[i].scope) != 0) {
			buf_puts(b, space);
			buf_puts(b, scopes_known[i].word);
			space = " ";
		}
}

/* Returns whether a list has this line. */
static bool
has_line(const char *list, const char *word, size_t len)
{
	const char *p;
	size_t n;

	while ((p = line(&list, &n)) != NULL)
		if (n == len && memcmp(p, word, n) == 0)
			return true;
	return false;
}

/* Returns whether each line of `part` is in `whole`. */
static bool
has_lines(const char *whole, const char *part)
{
	const char *p;
	size_t n;

	while ((p = line(&part, &n)) != NULL)
		if (!has_line(whole, p, n))
			return false;
	return true;
}

bool
permit_covers(const struct permit *is, const struct permit *was)
{
	return (was->scopes & ~is->scopes) == 0 &&
	    (has_line(is->allow, "*", 1) || has_lines(is->allow, was->allow)) &&
	    has_lines(was->deny, is->deny);
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

/* Returns whether one pattern means the name. Decides as mcpbox.token_matches()
 * does (sql/schema/tokens.sql). */
static bool
means(const char *p, size_t n, const char *exposed, struct ipc_bytes server,
    struct ipc_bytes name)
{
	const struct ipc_bytes none = {NULL, 0};
	size_t m = strlen(exposed);

	if (n == 1 && *p == '*')
		return true;
	if (n == m && memcmp(p, exposed, n) == 0)
		return true;
	if (server.n > 0 &&
	    (is(p, n, server, "__", name) || is(p, n, server, "__*", none)))
		return true;
	return n > 3 && memcmp(p + n - 3, "__*", 3) == 0 && m >= n - 1 &&
	    memcmp(p, exposed, n - 1) == 0;
}

static bool
ends_group(const char *p, size_t n)
{
	return n == 1 && *p == PERMIT_AND[0];
}

/* Returns whether each group of a list has a pattern that means the name. */
static bool
matches(const char *list, const char *exposed, struct ipc_bytes server,
    struct ipc_bytes name)
{
	bool found = false;
	const char *p;
	size_t n;

	while ((p = line(&list, &n)) != NULL)
		if (!ends_group(p, n))
			found = found || means(p, n, exposed, server, name);
		else if (!found)
			return false;
		else
			found = false;
	return found;
}

/* Returns the last group of the list. */
static const char *
last_group(const char *list)
{
	const char *last = list, *p;
	size_t n;

	while ((p = line(&list, &n)) != NULL)
		if (ends_group(p, n))
			last = list;
	return last;
}

/* Returns whether the pattern `*` is in each group of a list, up to `end`. */
static bool
has_all(const char *list, const char *end)
{
	bool found = false;
	const char *p;
	size_t n;

	while ((p = line(&list, &n)) != NULL && p != end)
		if (!ends_group(p, n))
			found = found || (n == 1 && *p == '*');
		else if (!found)
			return false;
		else if (list == end)
			return true;
		else
			found = false;
	return found;
}

bool
permit_everything(const struct permit *p)
{
	return p->deny[0] == '\0' && has_all(p->allow, NULL);
}

/* Returns whether a management tool for tokens with every name may be used. At
 * an endpoint that names it, only the groups before the endpoint's must allow
 * every name. Nothing may be denied, since such a tool shows objects that no
 * pattern names. */
static bool
reaches_all(const struct permit *p, const char *tool)
{
	const char *own;

	if (p->at == PERMIT_WHOLE)
		return permit_everything(p);
	own = last_group(p->allow);
	return permit_everything(p) ||
	    (p->deny[0] == '\0' && has_line(own, tool, strlen(tool)) &&
		has_all(p->allow, own));
}

/* Returns whether a management tool is at the place. */
static bool
is_there(const struct permit *p, const char *tool)
{
	const struct ipc_bytes none = {NULL, 0};

	if (p->at == PERMIT_AT_SEARCH &&
	    (strcmp(tool, PERMIT_SEARCH_TOOL) == 0 ||
		strcmp(tool, PERMIT_CALL_TOOL) == 0))
		return true;
	return p->at == PERMIT_WHOLE ||
	    matches(last_group(p->allow), tool, none, none);
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

	if (!is_there(p, tool))
		*sentence = "this endpoint does not have this tool";
	else if ((p->scopes & t->scope) == 0)
		*sentence = t->scope == PERMIT_EDIT
		    ? "this token may not change tools (scope manage:edit)"
		    : t->scope == PERMIT_MANAGE
		    ? "this token may not manage (scope manage)"
		    : "this token may not use tools (scopes tools:read and "
		      "tools:call)";
	else if ((scopes & t->scope) == 0)
		*sentence = "tools cannot be changed from here: an "
			    "administrator has remote_tool_editing disabled";
	else if ((t->reach == PERMIT_REACH_ALL && !reaches_all(p, tool)) ||
	    matches(p->deny, tool, none, none))
		*sentence = "this token may not use every tool, so it may not "
			    "use this one";
	else
		return FAILURE_NONE;
	return FAILURE_FORBIDDEN;
}
