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

/* Decides as mcpbox.token_matches() does (sql/schema/tokens.sql). */
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
