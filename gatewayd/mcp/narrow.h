/* Revisions before 2026-07-28 know structured content and output schemas of
 * type object only. So a legacy client gets a tool or result without the member
 * that it would refuse. The result's text says the same as that member. No
 * I/O. */
#ifndef NARROW_H
#define NARROW_H

#include <stdbool.h>
#include <stddef.h>

#include "ipc.h"

/* The bytes to leave out of an object. */
struct narrow {
	size_t at, n; /* n = 0: none */
};

/* Finds a Tool's outputSchema if its type is not "object". tool: scanned
 * JSON. */
struct narrow narrow_tool(struct ipc_bytes tool);
/* Finds a CallToolResult's structuredContent if it is no object. result:
 * scanned JSON. */
struct narrow narrow_result(struct ipc_bytes result);

#endif
