/*
 * The message GW_ENDPOINTS: the endpoints of this listener, as admind tells
 * them (docs/decisions/0102). An endpoint's path is /mcp/NAME. The list is not
 * secret, but a client hears only that a path is there or not.
 */
#ifndef GW_ENDPOINTS_H
#define GW_ENDPOINTS_H

#include "bounds.h"
#include "ipc.h"

struct gateway;

struct gw_endpoint {
	char name[ENDPOINT_NAME_MAX + 1];
	struct ipc_hash digest; /* changes with its content */
	uint8_t *metadata;      /* JSON of RFC 9728; NULL: none */
	size_t metadata_len;
	char *instructions; /* or NULL */
};

struct gw_endpoints {
	struct gw_endpoint *list;
	unsigned n;
};

/* Takes GW_ENDPOINTS, and calls changed(gw, name) for each endpoint that is
 * gone or another one than before. 0, or -1: malformed, or without memory. */
int gw_endpoints_take(struct gateway *, struct ipc_frame *,
    void (*changed)(struct gateway *, const char *name));
void gw_endpoints_free(struct gateway *);
/* Returns the endpoint of this name, or NULL. */
const struct gw_endpoint *gw_endpoints_find(
    const struct gateway *, const char *name);
/* Returns the name in /mcp/NAME, which need not be an endpoint's, or NULL:
 * another path. */
const char *gw_endpoints_name(const char *path);
/* Returns whether a path is that of MCP: /mcp, or an endpoint's. *later: that
 * can't be known yet. */
bool gw_endpoints_is(const struct gateway *, const char *path, bool *later);

#endif
