/*
 * x-mcp-header: NAME on a property of a tool's input schema is a mark: clients
 * repeat the property's value in the header Mcp-Param-NAME (MCP 2026-07-28,
 * Streamable HTTP). A client must drop a tool whose marks break a rule, so such
 * a tool is not saved. The rules for a mark:
 *
 *	- a non-empty string, a token of RFC 9110 (it becomes a field name);
 *	- no two names that differ in case only;
 *	- on a schema whose type is "string", "integer" or "boolean", and
 *	  not an array;
 *	- reached from the root through `properties` alone;
 *
 * The gateway compares only so many headers. So there may be at most
 * LINT_HEADERS_MAX marks, with names of at most LINT_NAME_MAX bytes, on
 * properties that are nested at most LINT_DEPTH_MAX deep.
 */
#include <string.h>
#include <strings.h>

#include "schema_internal.h"

static const char name[] = "x-mcp-header";

bool
schema_lint_is(const struct doc_node *m)
{
	return m->namelen == sizeof(name) - 1 &&
	    memcmp(m->name, name, sizeof(name) - 1) == 0;
}

static bool
is_token(const struct doc_node *v)
{
	static const char tchar[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "!#$%&'*+-.^_`|~";

	return v->kind == DOC_STRING && v->len > 0 && v->len <= LINT_NAME_MAX &&
	    strspn((const char *)v->str, tchar) == v->len;
}

/* Returns the depth of a schema: the number of `properties` on the path from
 * the root. Returns -1 if the path leads through any other keyword. */
static int
reach(const struct path *at)
{
	int n = 0;

	for (; at != NULL; at = at->up->up, n++)
		if (at->name == NULL || at->up == NULL ||
		    at->up->len != strlen("properties") ||
		    at->up->name == NULL ||
		    memcmp(at->up->name, "properties", at->up->len) != 0)
			return -1;
	return n;
}

static void
same_as_another(struct schema_lint *l, const struct doc_node *mark,
    const struct path *at, struct report *r)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->mark[i]->len == mark->len &&
		    strncasecmp((const char *)l->mark[i]->str,
			(const char *)mark->str, mark->len) == 0) {
			report_add(r, at,
			    "is a header's name that another property has: "
			    "case does not count");
			return;
		}
	if (l->n < LINT_HEADERS_MAX)
		l->mark[l->n++] = mark;
	else
		report_add(r, at, "is one header too many: %d are allowed",
		    LINT_HEADERS_MAX);
}

void
schema_lint(struct schema_lint *l, const struct doc *d,
    const struct doc_node *v, const struct doc_node *mark,
    const struct path *at, struct report *r)
{
	struct path p = {at, mark->name, mark->namelen, 0};
	const struct doc_node *type = doc_get(d, v, "type");
	int depth = reach(at);

	if (depth <= 0)
		report_add(r, &p,
		    "is allowed on properties of the arguments only, reached "
		    "through \"properties\" alone (not $defs, items, allOf, "
		    "...)");
	else if (depth > LINT_DEPTH_MAX)
		report_add(r, &p, "is nested too deeply: %d levels are allowed",
		    LINT_DEPTH_MAX);
	if (type == NULL ||
	    !(doc_is(type, "string") || doc_is(type, "integer") ||
		doc_is(type, "boolean")))
		report_add(r, &p,
		    "needs a property whose \"type\" is \"string\", "
		    "\"integer\" or \"boolean\"");
	if (is_token(mark))
		same_as_another(l, mark, &p, r);
	else
		report_add(r, &p,
		    "must be a header's name: letters, digits and "
		    "!#$%%&'*+-.^_`|~, at most %d",
		    LINT_NAME_MAX);
}
