/*
 * Revisions before 2026-07-28 know structured content and output schemas of
 * type object only. What a legacy client would refuse is left out of what it
 * gets: the result's text says the same. No I/O.
 */
#ifndef NARROW_H
#define NARROW_H

#include <stdbool.h>
#include <stddef.h>

#include "ipc.h"

/* Which bytes to leave out of an object. */
struct narrow {
	size_t at, n; /* n = 0: none */
};

/* Of a Tool: an outputSchema whose type is not "object". Scanned JSON. */
struct narrow narrow_tool(struct ipc_bytes tool);
/* Of a CallToolResult: structuredContent that is no object. Scanned JSON. */
struct narrow narrow_result(struct ipc_bytes result);

#endif
