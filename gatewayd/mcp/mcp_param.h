/*
 * Step 11: compares Mcp-Param-* headers with the arguments. A tool's input
 * schema may mark properties with "x-mcp-header": NAME; a modern client then
 * mirrors their values in headers, and a server that reads the body must
 * compare them (MCP 2026-07-28). No I/O.
 */
#ifndef MCP_PARAM_H
#define MCP_PARAM_H

#include "mcp_request.h"

enum {
	MCP_PARAM_MAX = 32,      /* marked properties looked at in one schema */
	MCP_PARAM_DEPTH_MAX = 8, /* properties inside properties */
	MCP_PARAM_VALUE_MAX = 4096
};

#define MCP_PARAM_FIELD "mcp-param-" /* in lower case, before NAME */

/* Returns a header's value by its lower-case name, or NULL if absent. */
typedef const char *mcp_param_header(void *arg, const char *name);

/* Compares the headers. tool: the Tool object; arguments: the object that the
 * client sent. A tool without marked properties costs one search. 0, or -1 with
 * e set to HEADER_MISMATCH. */
int mcp_param_check(struct ipc_bytes tool, struct ipc_bytes arguments,
    mcp_param_header *header, void *arg, struct mcp_error *e);

/* Refuses a field, by its whole name, of a call of a tool that the client's
 * list lacks: there is nothing to compare it with. -1 with e set to
 * HEADER_MISMATCH. */
int mcp_param_unlisted(const char *field, struct mcp_error *e);

/* Calls emit for each marked property that has a value, with the text of its
 * header, not yet encoded. For mcpbox-stdio, which sends the headers. 0, or the
 * first value other than 0 that emit returned. */
typedef int mcp_param_emit(void *arg, const char *name, const char *value);
int mcp_param_each(struct ipc_bytes tool, struct ipc_bytes arguments,
    mcp_param_emit *emit, void *arg);

#endif
