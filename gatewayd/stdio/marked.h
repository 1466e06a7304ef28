/*
 * Tools whose input schema asks for Mcp-Param-* headers ("x-mcp-header", MCP
 * 2026-07-28). The bridge learns these tools from the lists that pass through
 * it, since a host on standard input knows no headers. No I/O.
 */
#ifndef MARKED_H
#define MARKED_H

#include "mcp_param.h"

enum {
	MARKED_MAX = 256, /* tools kept; others are called without headers */
};

struct marked {
	struct {
		char *name;
		uint8_t *tool; /* its Tool object */
		size_t n;
	} tools[MARKED_MAX];
	unsigned n;
};

void marked_free(struct marked *);
/* Learns from a message that answers tools/list. */
void marked_learn(struct marked *, struct ipc_bytes message);
/* Emits the headers of a call with these params: emit gets the name after
 * "Mcp-Param-" and the value, not encoded. 0, or the first value other than 0
 * that emit returned. */
int marked_fields(const struct marked *, struct ipc_bytes params,
    mcp_param_emit *emit, void *arg);

#endif
