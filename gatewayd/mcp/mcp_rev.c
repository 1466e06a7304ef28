/*
 * The revisions of MCP that are served here, by name.
 */
#include <string.h>

#include "mcp_method.h"

static const char *const rev_text[MCP_REV_COUNT] = {
    "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"};

const char *
mcp_rev_text(enum mcp_rev r)
{
	return rev_text[r];
}

int
mcp_rev_of(const char *s)
{
	int i;

	for (i = 0; i < MCP_REV_COUNT; i++)
		if (strcmp(s, rev_text[i]) == 0)
			return i;
	return -1;
}
