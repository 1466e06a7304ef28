/*
 * The methods of MCP, by era: each takes the exchange.
 */
#ifndef METHODS_H
#define METHODS_H

#include "exchange.h"

/* legacy.c, modern.c: serve ex->m, which is of their era and without error. */
void legacy_serve(struct exchange *);
void legacy_delete(struct exchange *);
void modern_serve(struct exchange *);
/* Serves a method that both eras have. false: ex->m is none of these. */
bool legacy_serve_common(struct exchange *);

/* listing.c, resource.c, complete.c: the methods that read the catalogue */
void listing_serve(struct exchange *);
void resource_read(struct exchange *);
void resource_subscribe(struct exchange *); /* and unsubscribe */
void complete_serve(struct exchange *);

#endif
