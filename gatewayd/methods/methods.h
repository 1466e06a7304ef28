/*
 * The functions that serve the methods of MCP, by era (mcp_request.h). Each
 * takes over the exchange and answers it.
 */
#ifndef METHODS_H
#define METHODS_H

#include "exchange.h"

/* legacy.c, modern.c: serve ex->m, which is of their era and without error. */
void legacy_serve(struct exchange *);
void legacy_delete(struct exchange *);
void modern_serve(struct exchange *);
/* Serves a method that both eras have. false: ex->m has no such method. */
bool legacy_serve_common(struct exchange *);

/* listing.c, resource.c, complete.c: the methods that read the catalogue */
void listing_serve(struct exchange *);
void resource_read(struct exchange *);
void resource_subscribe(struct exchange *); /* and unsubscribe */
void complete_serve(struct exchange *);

#endif
