/*
 * Slices of JSON text that json_scan accepted, and their types. No I/O.
 */
#ifndef MCP_JSON_H
#define MCP_JSON_H

#include <stdbool.h>

#include "ipc.h"

enum { MCP_ID_MAX = 1024 }; /* bytes of an id; clients use fewer than 40 */

/* Gets the member of an object with this name. false: there is none. */
bool mcp_json_get(
    struct ipc_bytes object, const char *name, struct ipc_bytes *out);
/* Does the same as mcp_json_get, but null counts as absent: several clients
 * write null for an optional member that they have no value for (mcp.el, Go
 * clients with a nil pointer). */
bool mcp_json_given(
    struct ipc_bytes object, const char *name, struct ipc_bytes *out);
bool mcp_json_is_null(struct ipc_bytes); /* true also if absent */
bool mcp_json_is_object(struct ipc_bytes);
/* True for a string or an integer, the two forms of an id. */
bool mcp_json_is_id(struct ipc_bytes);

/* Returns the text without the white space around it. */
struct ipc_bytes mcp_json_trim(const uint8_t *, size_t n);
/* Takes the next element off *rest, which is the rest of the text between an
 * array's brackets. json_scan must have accepted it. false: none is left. */
bool mcp_json_element(struct ipc_bytes *rest, struct ipc_bytes *element);

/* Decodes a JSON string slice into out. 0; -1: not a string, too long, or it
 * contains NUL. */
int mcp_json_text(struct ipc_bytes json, char *out, size_t size);

#endif
