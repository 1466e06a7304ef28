/*
 * What a token may: scopes, patterns of names, and which management tools that
 * means. No I/O and no state: tokens.c has the tokens.
 */
#ifndef PERMIT_H
#define PERMIT_H

#include <stdbool.h>

#include "failure.h"
#include "ipc.h"

/* A token's scopes, as bits. */
enum permit_scope {
	PERMIT_READ = 1,   /* tools:read: lists, completion, subscriptions */
	PERMIT_CALL = 2,   /* tools:call, which implies READ */
	PERMIT_MANAGE = 4, /* manage: management tools that change no content */
	PERMIT_EDIT = 8    /* manage:edit: all of them; implies MANAGE */
};

struct permit {
	unsigned scopes;
	/* One pattern a line, or "": `*`, `server__*`, `server__name`, or the
	 * name that clients use. */
	const char *allow, *deny;
};

/* "tools:call\nmanage": a mask, with what they imply; words that are none are
 * nothing. */
unsigned permit_scopes(const char *words);

/* Is any name permitted? Then nothing needs to be filtered. */
bool permit_everything(const struct permit *);

/*
 * May it see and use this object? exposed: what clients call it; server, name:
 * its other name, server__name. A pattern may mean either, so a name that an
 * administrator exposes barely is denied by its server's pattern too.
 */
bool permit_name(const struct permit *, const char *exposed,
    struct ipc_bytes server, struct ipc_bytes name);

/* How a management tool keeps to a token's patterns. */
enum permit_reach {
	/* It may show or change what no pattern names: only for tokens that may
	 * use every name. */
	PERMIT_REACH_ALL,
	/* It touches what its server_id, tool_id, prompt_id or resource_id name
	 * and no more: those are judged before it runs. */
	PERMIT_REACH_IDS,
	/* Its own statements leave out what the token may not see; its ids are
	 * judged too. */
	PERMIT_REACH_SELF
};

struct permit_tool {
	const char *name; /* mcpbox_* */
	unsigned scope;   /* one of enum permit_scope */
	enum permit_reach reach;
};

/* A management tool that stands in no row needs EDIT and all names. */
const struct permit_tool *permit_tool(const char *name);
/* The rows, ended by a NULL name: a test holds them against the tools. */
extern const struct permit_tool permit_tools[];

/*
 * May a token with these scopes (those that count now: what a listener takes
 * away is not in it) call this management tool? FAILURE_NONE, or FORBIDDEN
 * with the sentence.
 */
enum failure permit_management(const struct permit *, unsigned scopes,
    const char *tool, const char **sentence);

#endif
