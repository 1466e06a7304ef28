/*
 * The rights of a token: scopes, patterns of names, and the management tools
 * that these allow. No I/O and no state: tokens.c has the tokens.
 */
#ifndef PERMIT_H
#define PERMIT_H

#include <stdbool.h>

#include "buf.h"
#include "failure.h"
#include "ipc.h"

/* A token's scopes, as bits. */
enum permit_scope {
	PERMIT_READ = 1,   /* tools:read: lists, completion, subscriptions */
	PERMIT_CALL = 2,   /* tools:call, which implies READ */
	PERMIT_MANAGE = 4, /* manage: management tools that change no content */
	PERMIT_EDIT = 8    /* manage:edit: all of these; implies MANAGE */
};

/* Bytes of all words and the spaces between them. */
enum { PERMIT_WORDS_MAX = 10 + 1 + 10 + 1 + 6 + 1 + 11 };

/* The place that a client came to. */
enum permit_at {
	PERMIT_WHOLE,       /* /mcp */
	PERMIT_AT_ENDPOINT, /* the last group of `allow` is the endpoint's */
	PERMIT_AT_SEARCH    /* likewise; its search and call tools are there */
};

struct permit {
	unsigned scopes;
	/* One pattern per line, or "": `*`, `server__*`, `server__name`, or the
	 * name that clients use. Lines PERMIT_AND divide `allow` into groups: a
	 * name must be in each. */
	const char *allow, *deny;
	enum permit_at at;
};
/* No pattern has a control character. sql: token_permits(). */
#define PERMIT_AND "\f"
/* The tools that an endpoint of mode "search" lists. */
#define PERMIT_SEARCH_TOOL "mcpbox_search_tools"
#define PERMIT_CALL_TOOL   "mcpbox_call_tool"

/* Reads "tools:call\nmanage" into a mask, with the implied scopes. Unknown
 * words are ignored. */
unsigned permit_scopes(const char *words);

/* Appends the words of a mask, with spaces between them. At most
 * PERMIT_WORDS_MAX bytes. */
void permit_put_scopes(struct buf *, unsigned scopes);

/* Returns whether `is` has every right of `was`. Patterns are compared as they
 * are written, so the answer may be false for two lists that mean the same. */
bool permit_covers(const struct permit *is, const struct permit *was);

/* Returns whether every name is permitted. Then nothing needs to be
 * filtered. */
bool permit_everything(const struct permit *);

/*
 * Returns whether the token may see and use this object. exposed: the name that
 * clients use. server, name: the parts of its other name, server__name. A
 * pattern may mean either name. So a pattern for a server (server__*) also
 * denies an object of that server that is exposed under its bare name.
 */
bool permit_name(const struct permit *, const char *exposed,
    struct ipc_bytes server, struct ipc_bytes name);

/* How a management tool respects a token's patterns. */
enum permit_reach {
	/* It may show or change objects that no pattern names: only tokens that
	 * may use every name may call it. */
	PERMIT_REACH_ALL,
	/* It touches only the objects that its server_id, tool_id, prompt_id or
	 * resource_id name: these are judged before it runs. */
	PERMIT_REACH_IDS,
	/* The tool's SQL leaves out everything that the token may not see. Ids
	 * in the arguments are judged, too. */
	PERMIT_REACH_SELF
};

struct permit_tool {
	const char *name; /* mcpbox_* */
	unsigned scope;   /* one of enum permit_scope */
	enum permit_reach reach;
};

/* Finds a management tool's row. A tool without a row needs EDIT and all
 * names. */
const struct permit_tool *permit_tool(const char *name);
/* The rows, ended by a NULL name. A test compares them with the tools. */
extern const struct permit_tool permit_tools[];

/*
 * Returns FAILURE_NONE if a token with these scopes may call this management
 * tool at this place, else FORBIDDEN with the reason in *sentence. scopes: the
 * token's scopes, without those that a listener takes away. An endpoint has a
 * management tool only if its own patterns name it. The tool may then reach
 * every name, since an administrator named it. The reach of the token is judged
 * as ever.
 */
enum failure permit_management(const struct permit *, unsigned scopes,
    const char *tool, const char **sentence);

#endif
