/*
 * What a request's head must look like before anything is done for it: pure
 * functions over the parsed fields, tested alone.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>

#include "ipc.h"
#include "web.h"

/* Is this Host value a loopback name (localhost, 127.0.0.1, [::1]), with or
 * without a port? */
bool guard_host(const char *host);
/* Is this Host value, which guard_host let pass, the name localhost? Then *port
 * is what follows it: nothing, or ":" and digits. */
bool guard_localhost(const char *host, const char **port);
/* Is this Origin the one that a page served under this Host has? */
bool guard_origin(const char *origin, const char *host);
/* The first half of a login's token, from a Cookie value. 1 found, 0 absent, -1
 * twice or of another form. */
int guard_cookie(const char *cookie, char half[LOGIN_HALF + 1]);
/* The second half, from X-CSRF-Token. false: it has another form, and half is
 * untouched. */
bool guard_half(const char *text, char half[LOGIN_HALF + 1]);
/* The same of the device's cookie. */
int guard_device(const char *cookie, char device[DEVICE_TEXT_MAX + 1]);
/* May this stand in a cookie as it is? */
bool guard_device_text(struct ipc_bytes);
/* An If-Match value that is exactly one strong tag of 64 lower-case hex
 * digits. 0 or -1. */
int guard_etag(const char *value, struct ipc_hash *);
/* Is this the media type application/json, with or without charset=utf-8? */
bool guard_json_type(const char *content_type);
/* Parses a query (may be NULL) that may have only the `allowed` parameters,
 * each at most once. 0, or -1 with one sentence in err. */
int guard_query(
    const char *query, const char *allowed, struct params *, struct err *);
/* Host, Origin and Sec-Fetch-Site together: 0, or -1 with one sentence. */
/* The value of one parameter of a query in which others may stand: 1 found, 0
 * absent (out is empty), -1 malformed, too long or there twice. */
int guard_query_value(
    const char *query, const char *name, char *out, size_t len);
/* callback: another site's redirect may lead here (ACCESS_CALLBACK). */
int guard_request(const struct http1_request *, bool callback, struct err *);

#endif
