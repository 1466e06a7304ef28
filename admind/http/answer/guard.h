/* Functions that judge a request's head before anything is done for the
 * request. They depend on the parsed fields only, so tests call them alone. */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>

#include "ipc.h"
#include "web.h"

/*
 * Begins the name of each cookie at an https origin. Browsers take such a
 * cookie only by https, Secure, for one host and for all its paths (RFC 6265bis
 * section 4.1.3.2). So neither a page by http at that name nor one of a
 * neighbouring name can plant it, and no request by http carries it.
 */
#define GUARD_HTTPS "__Host-"

/* True if this Host value is a loopback name (localhost, 127.0.0.1, [::1]),
 * with or without a port. */
bool guard_host(const char *host);
/* True if this Host value, which guard_host let pass, is the name localhost.
 * Then *port is the text after the name: empty, or ":" and digits. */
bool guard_localhost(const char *host, const char **port);
/* True if a page served under this Host has this Origin. https: the Host is
 * that of one of panel_origins. */
bool guard_origin(const char *origin, const char *host, bool https);
/* Reads the first half of a login's token from a Cookie value. https: the
 * cookie's name begins with GUARD_HTTPS. 1 found, 0 absent, -1 twice or of
 * another form. */
int guard_cookie(const char *cookie, bool https, char half[LOGIN_HALF + 1]);
/* Reads the second half of a login's token from an X-CSRF-Token value. false:
 * the value has another form, and half is untouched. */
bool guard_half(const char *text, char half[LOGIN_HALF + 1]);
/* Reads the cookie of a sign-in by an issuer. Returns as guard_cookie. */
int guard_signin(const char *cookie, bool https, char half[LOGIN_HALF + 1]);
/* Reads the device's cookie. Returns as guard_cookie. */
int guard_device(
    const char *cookie, bool https, char device[DEVICE_TEXT_MAX + 1]);
/* True if this text may be put into a cookie as it is. */
bool guard_device_text(struct ipc_bytes);
/* Reads an If-Match value that is exactly one strong tag of 64 lower-case hex
 * digits. 0 or -1. */
int guard_etag(const char *value, struct ipc_hash *);
/* True for the media type application/json, with or without charset=utf-8. */
bool guard_json_type(const char *content_type);
/* Parses a query (may be NULL) that may have only the `allowed` parameters,
 * each at most once. 0, or -1 with one sentence in err. */
int guard_query(
    const char *query, const char *allowed, struct params *, struct err *);
/* Reads the value of one parameter of a query that may have other parameters. 1
 * found, 0 absent (out is empty), -1 malformed, too long or repeated. */
int guard_query_value(
    const char *query, const char *name, char *out, size_t len);
/* Checks Host, Origin and Sec-Fetch-Site together. origins: panel_origins.
 * callback: another site's redirect may lead here (ACCESS_CALLBACK). 0 with
 * *https set to whether the Host is that of one of the origins, or -1 with a
 * sentence in err. */
int guard_request(const struct http1_request *, const char *origins,
    bool callback, bool *https, struct err *);

#endif
