/*
 * The revisions of MCP, and the table of all methods: their eras, and which
 * parameter the Mcp-Name header repeats.
 */
#ifndef MCP_METHOD_H
#define MCP_METHOD_H

#include <stdbool.h>

/* In order of age. */
enum mcp_rev {
	MCP_REV_2025_03_26,
	MCP_REV_2025_06_18,
	MCP_REV_2025_11_25,
	MCP_REV_2026_07_28,
	MCP_REV_COUNT
};

enum { MCP_REV_LEGACY_NEWEST = MCP_REV_2025_11_25 };

enum mcp_method {
	MCP_OTHER,
	MCP_INITIALIZE,
	MCP_PING,
	MCP_DISCOVER,
	MCP_TOOLS_LIST,
	MCP_TOOLS_CALL,
	MCP_PROMPTS_LIST,
	MCP_PROMPTS_GET,
	MCP_RESOURCES_LIST,
	MCP_TEMPLATES_LIST,
	MCP_RESOURCES_READ,
	MCP_RESOURCES_SUBSCRIBE,
	MCP_RESOURCES_UNSUBSCRIBE,
	MCP_COMPLETE,
	MCP_SET_LEVEL,
	MCP_LISTEN,
	MCP_TASKS_GET,
	MCP_TASKS_UPDATE,
	MCP_TASKS_CANCEL,
	/* notifications */
	MCP_CANCELLED,
	MCP_INITIALIZED,
	MCP_ROOTS_CHANGED,
	MCP_CLIENT_PROGRESS
};

enum { MCP_ERA_LEGACY = 1, MCP_ERA_MODERN = 2 };

/* One row of the method table (mcp_method.c). */
struct mcp_method_info {
	const char *name;
	enum mcp_method method;
	bool notification;
	unsigned eras;     /* mask of MCP_ERA_* */
	const char *named; /* the parameter that Mcp-Name repeats, or NULL */
};

/* Returns the row of a method; NULL for MCP_OTHER. */
const struct mcp_method_info *mcp_method_info(enum mcp_method);
/* Returns the row with this name, or NULL. */
const struct mcp_method_info *mcp_method_find(const char *name);

/* Returns the revision's name, for example "2025-11-25". */
const char *mcp_rev_text(enum mcp_rev);
/* Returns the revision with this name, or -1 if it is not served here. */
int mcp_rev_of(const char *);

#endif
