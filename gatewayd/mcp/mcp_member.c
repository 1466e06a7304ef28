/*
 * The table of all members that a method's params may have, by revision. Its
 * sources are the schema of each revision and, for tasks/ and taskIds, the
 * tasks extension. A member that is not in the table is refused, because a
 * misspelled `arguments` would run a tool with its defaults (decision 0070).
 * `_meta` belongs to every method. The members of `_meta`, capabilities,
 * clientInfo and a tool's arguments are not checked here.
 */
#include <stdio.h>
#include <string.h>

#include "mcp_era.h"
#include "walk.h"

enum {
	R03 = 1 << MCP_REV_2025_03_26,
	R06 = 1 << MCP_REV_2025_06_18,
	R11 = 1 << MCP_REV_2025_11_25,
	R26 = 1 << MCP_REV_2026_07_28,
	LEGACY = R03 | R06 | R11,
	ALL = LEGACY | R26
};

struct member {
	enum mcp_method method;
	const char *within; /* as mcp_member_check says */
	const char *name;
	unsigned revs;
};

static const struct member table[] = {
    {MCP_INITIALIZE, "", "protocolVersion", LEGACY},
    {MCP_INITIALIZE, "", "capabilities", LEGACY},
    {MCP_INITIALIZE, "", "clientInfo", LEGACY},
    {MCP_TOOLS_LIST, "", "cursor", ALL},
    {MCP_PROMPTS_LIST, "", "cursor", ALL},
    {MCP_RESOURCES_LIST, "", "cursor", ALL},
    {MCP_TEMPLATES_LIST, "", "cursor", ALL},
    {MCP_TOOLS_CALL, "", "name", ALL},
    {MCP_TOOLS_CALL, "", "arguments", ALL},
    /* `task` is accepted and ignored. A server must do so if it declares no
     * tasks of 2025-11-25, or if it knows the tasks extension (see the
     * extension's section on compatibility). */
    {MCP_TOOLS_CALL, "", "task", R11 | R26},
    {MCP_TOOLS_CALL, "", "inputResponses", R26},
    {MCP_TOOLS_CALL, "", "requestState", R26},
    {MCP_PROMPTS_GET, "", "name", ALL},
    {MCP_PROMPTS_GET, "", "arguments", ALL},
    {MCP_PROMPTS_GET, "", "inputResponses", R26},
    {MCP_PROMPTS_GET, "", "requestState", R26},
    {MCP_RESOURCES_READ, "", "uri", ALL},
    {MCP_RESOURCES_READ, "", "inputResponses", R26},
    {MCP_RESOURCES_READ, "", "requestState", R26},
    {MCP_RESOURCES_SUBSCRIBE, "", "uri", LEGACY},
    {MCP_RESOURCES_UNSUBSCRIBE, "", "uri", LEGACY},
    {MCP_COMPLETE, "", "ref", ALL},
    {MCP_COMPLETE, "", "argument", ALL},
    {MCP_COMPLETE, "", "context", R06 | R11 | R26},
    {MCP_COMPLETE, "ref", "type", ALL},
    {MCP_COMPLETE, "ref", "name", ALL},
    {MCP_COMPLETE, "ref", "title", R06 | R11 | R26},
    {MCP_COMPLETE, "ref", "uri", ALL},
    {MCP_COMPLETE, "argument", "name", ALL},
    {MCP_COMPLETE, "argument", "value", ALL},
    {MCP_COMPLETE, "context", "arguments", R06 | R11 | R26},
    {MCP_SET_LEVEL, "", "level", LEGACY},
    {MCP_LISTEN, "", "notifications", R26},
    {MCP_LISTEN, "notifications", "toolsListChanged", R26},
    {MCP_LISTEN, "notifications", "promptsListChanged", R26},
    {MCP_LISTEN, "notifications", "resourcesListChanged", R26},
    {MCP_LISTEN, "notifications", "resourceSubscriptions", R26},
    {MCP_LISTEN, "notifications", "taskIds", R26},
    {MCP_TASKS_GET, "", "taskId", R26},
    {MCP_TASKS_UPDATE, "", "taskId", R26},
    {MCP_TASKS_UPDATE, "", "inputResponses", R26},
    {MCP_TASKS_CANCEL, "", "taskId", R26},
    {MCP_CANCELLED, "", "requestId", ALL},
    {MCP_CANCELLED, "", "reason", ALL},
    {MCP_CLIENT_PROGRESS, "", "progressToken", LEGACY},
    {MCP_CLIENT_PROGRESS, "", "progress", LEGACY},
    {MCP_CLIENT_PROGRESS, "", "total", LEGACY},
    {MCP_CLIENT_PROGRESS, "", "message", LEGACY},
};

enum { ROWS = sizeof(table) / sizeof(table[0]) };

static bool
is_of(const struct member *r, const struct mcp_message *m, const char *within)
{
	return r->method == m->method && (r->revs & 1u << m->rev) &&
	    strcmp(r->within, within) == 0;
}

/* Writes "Leave it out: tools/call of 2025-11-25 has name, arguments, task,
 * _meta." */
static void
leave_out(
    const struct mcp_message *m, const char *within, char *out, size_t size)
{
	const char *comma = "";
	size_t i, n;

	n = (size_t)snprintf(out, size, "Leave it out: %s%s%s of %s has ",
	    within, within[0] != '\0' ? " in " : "",
	    mcp_method_info(m->method)->name, mcp_rev_text(m->rev));
	for (i = 0; i < ROWS && n < size; i++)
		if (is_of(&table[i], m, within)) {
			n += (size_t)snprintf(
			    out + n, size - n, "%s%s", comma, table[i].name);
			comma = ", ";
		}
	if (n < size)
		snprintf(out + n, size - n, "%s%s.",
		    within[0] == '\0' ? comma : "",
		    within[0] == '\0' ? "_meta" : "");
}

static char
fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Returns how many letters must be added, removed or exchanged to turn a into
 * b (Levenshtein), without regard to case. Both are at most MCP_MEMBER_MAX
 * long. */
static unsigned
distance(const char *a, const char *b)
{
	unsigned row[MCP_MEMBER_MAX + 1], left, above, least;
	size_t i, j, n = strlen(b);

	for (j = 0; j <= n; j++)
		row[j] = (unsigned)j;
	for (i = 0; a[i] != '\0'; i++) {
		above = row[0]; /* the entry diagonally above row[1] */
		row[0] = (unsigned)i + 1;
		for (j = 1; j <= n; j++) {
			left = row[j - 1] + 1;
			least = above + (fold(a[i]) != fold(b[j - 1]));
			above = row[j];
			if (left < least)
				least = left;
			if (above + 1 < least)
				least = above + 1;
			row[j] = least;
		}
	}
	return row[n];
}

/* Returns the member that was probably meant, or NULL. Members that the object
 * has are left out. Two letters may differ, or one if the member has at most
 * five: `argument` means `arguments`, and `url` means `uri`. */
static const char *
meant(const struct mcp_message *m, const char *within, struct ipc_bytes object,
    const char *name)
{
	struct ipc_bytes v;
	size_t i;

	for (i = 0; i < ROWS; i++)
		if (is_of(&table[i], m, within) &&
		    distance(name, table[i].name) <=
			(strlen(table[i].name) > 5 ? 2u : 1u) &&
		    !mcp_json_get(object, table[i].name, &v))
			return table[i].name;
	return NULL;
}

static bool
is_known(const struct mcp_message *m, const char *within, const char *name)
{
	size_t i;

	if (within[0] == '\0' && strcmp(name, "_meta") == 0)
		return true;
	for (i = 0; i < ROWS; i++)
		if (is_of(&table[i], m, within) &&
		    strcmp(table[i].name, name) == 0)
			return true;
	return false;
}

/* False if the table has no rows for this object, because the object itself is
 * no known member. Always true for params, which may have _meta. */
static bool
has_rows(const struct mcp_message *m, const char *within)
{
	size_t i;

	for (i = 0; i < ROWS; i++)
		if (is_of(&table[i], m, within))
			return true;
	return within[0] == '\0';
}

void
mcp_member_check(
    struct mcp_message *m, const char *within, struct ipc_bytes object)
{
	struct ipc_bytes raw, value;
	char name[MCP_MEMBER_MAX + 1], fix[MCP_FIX_MAX], pointer[32];
	const char *other;
	struct walk w;

	if (m->method == MCP_OTHER || !has_rows(m, within) ||
	    walk_open(&w, object, '{') < 0)
		return;
	snprintf(pointer, sizeof(pointer), "/params%s%s",
	    within[0] != '\0' ? "/" : "", within);
	while (walk_next(&w, &raw, &value)) {
		/* The slice includes the quotes, because the name may have
		 * escapes to decode. */
		if (mcp_json_text(ipc_bytes(raw.p - 1, raw.n + 2), name,
			sizeof(name)) < 0) {
			mcp_fault(m, FAILURE_INVALID_PARAMS, pointer, NULL,
			    "Leave out the member with the longest name; no "
			    "name here has more than 64 bytes.");
			continue;
		}
		if (is_known(m, within, name))
			continue;
		/* Each search for the meant member reads the whole object,
		 * whose size the client chose. So faults that are only counted
		 * get no search. */
		other = m->error.left_out == 0 ? meant(m, within, object, name)
					       : NULL;
		if (other != NULL)
			snprintf(fix, sizeof(fix), "Write %s.", other);
		else
			leave_out(m, within, fix, sizeof(fix));
		mcp_fault(m, FAILURE_INVALID_PARAMS, pointer, name, fix);
	}
}
