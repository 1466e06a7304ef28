/*
 * The routes: dispatch, and the check of the login before a write.
 */
#ifndef ROUTES_H
#define ROUTES_H

#include "web.h"

/* Takes every complete request. */
void routes_request(struct httpd_req *, void *web);
/* Judges a request by its head: lets its large body in, or refuses it. */
void routes_large(struct httpd_req *, void *web);
/* Notes that the client closed early: the answer that arrives later is
 * dropped. */
void routes_gone(struct httpd_req *, void *web);
/* Returns the route for a path, NULL if none. *allow gets the methods that the
 * path has ("GET, HEAD"), *id (ADMIN_ID_MAX + 1 bytes) the texts that match
 * {id} and {name}. For dispatch and tests. */
const struct route *routes_find(
    enum http1_method, const char *path, char *allow, size_t len, char *id);

#endif
