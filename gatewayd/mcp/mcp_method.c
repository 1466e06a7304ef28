/*
 * The table of all methods of the revisions served here: the eras of a method,
 * and the parameter that the Mcp-Name header repeats (MCP 2026-07-28,
 * Streamable HTTP; tasks extension, routing headers).
 *
 * The table does not distinguish the legacy revisions, because a client that
 * does not know a later revision's method doesn't call it.
 */
#include <string.h>

#include "mcp_request.h"

enum { L = MCP_ERA_LEGACY, M = MCP_ERA_MODERN, B = L | M };

static const struct mcp_method_info table[] = {
    {"initialize", MCP_INITIALIZE, false, L, NULL},
    {"ping", MCP_PING, false, L, NULL},
    {"server/discover", MCP_DISCOVER, false, M, NULL},
    {"tools/list", MCP_TOOLS_LIST, false, B, NULL},
    {"tools/call", MCP_TOOLS_CALL, false, B, "name"},
    {"prompts/list", MCP_PROMPTS_LIST, false, B, NULL},
    {"prompts/get", MCP_PROMPTS_GET, false, B, "name"},
    {"resources/list", MCP_RESOURCES_LIST, false, B, NULL},
    {"resources/templates/list", MCP_TEMPLATES_LIST, false, B, NULL},
    {"resources/read", MCP_RESOURCES_READ, false, B, "uri"},
    {"resources/subscribe", MCP_RESOURCES_SUBSCRIBE, false, L, NULL},
    {"resources/unsubscribe", MCP_RESOURCES_UNSUBSCRIBE, false, L, NULL},
    {"completion/complete", MCP_COMPLETE, false, B, NULL},
    {"logging/setLevel", MCP_SET_LEVEL, false, L, NULL},
    {"subscriptions/listen", MCP_LISTEN, false, M, NULL},
    {"tasks/get", MCP_TASKS_GET, false, M, "taskId"},
    {"tasks/update", MCP_TASKS_UPDATE, false, M, "taskId"},
    {"tasks/cancel", MCP_TASKS_CANCEL, false, M, "taskId"},
    {"notifications/cancelled", MCP_CANCELLED, true, B, NULL},
    {"notifications/initialized", MCP_INITIALIZED, true, L, NULL},
    {"notifications/roots/list_changed", MCP_ROOTS_CHANGED, true, L, NULL},
    {"notifications/progress", MCP_CLIENT_PROGRESS, true, L, NULL},
};

enum { ROWS = sizeof(table) / sizeof(table[0]) };

const struct mcp_method_info *
mcp_method_find(const char *name)
{
	size_t i;

	for (i = 0; i < ROWS; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

const struct mcp_method_info *
mcp_method_info(enum mcp_method m)
{
	size_t i;

	for (i = 0; i < ROWS; i++)
		if (table[i].method == m)
			return &table[i];
	return NULL;
}
