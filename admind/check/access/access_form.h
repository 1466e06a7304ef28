/* Forms of the texts of an access document. Each function returns NULL, or a
 * sentence about the form that the text must have (access_form of
 * access_read.h). */
#ifndef ACCESS_FORM_H
#define ACCESS_FORM_H

#include <stddef.h>
#include <stdint.h>

/* Our own URL: https, host in lower case, path exactly /mcp. */
const char *access_form_resource(const uint8_t *, size_t);
/* An issuer's URL: https, or http for a host that is this machine; no user
 * name, query or fragment. */
const char *access_form_issuer(const uint8_t *, size_t);
/* The address of an issuer's keys: https, to a host that a run may reach. */
const char *access_form_jwks_url(const uint8_t *, size_t);
/* A host that a run may reach: name, address or [IPv6], perhaps with a port. */
const char *access_form_key_host(const uint8_t *, size_t);
/* Our own address to which browsers come back after a sign-in: https, or http
 * to 127.0.0.1; path exactly /api/signin/callback. */
const char *access_form_redirect(const uint8_t *, size_t);
/* A scope of OAuth (RFC 6749 section 3.3). */
const char *access_form_asked(const uint8_t *, size_t);
/* Our `client_id` at an issuer. */
const char *access_form_client(const uint8_t *, size_t);
/* The address of a collector: https, or http to an address of the local network
 * or of this machine; no slash at its end. */
const char *access_form_collector(const uint8_t *, size_t);
/* The address that a notification is posted to: as a collector's, perhaps with
 * a slash at its end. */
const char *access_form_push(const uint8_t *, size_t);
/* The panel's address, for links: https or http, no slash at its end. */
const char *access_form_panel(const uint8_t *, size_t);
/* The name of an issuer or a permission set. */
const char *access_form_name(const uint8_t *, size_t);
/* An audience: a URL, or the tag of an application. */
const char *access_form_audience(const uint8_t *, size_t);
/* A `typ`, or "". */
const char *access_form_type(const uint8_t *, size_t);
/* A `kid`. */
const char *access_form_kid(const uint8_t *, size_t);
/* Values of rules: a group, a client, `sub`, an e-mail address, a domain. */
const char *access_form_value(const uint8_t *, size_t);
const char *access_form_sub(const uint8_t *, size_t);
const char *access_form_email(const uint8_t *, size_t);
const char *access_form_domain(const uint8_t *, size_t);
/* A scope, and a pattern of names, as API tokens have them. */
const char *access_form_scope(const uint8_t *, size_t);
const char *access_form_pattern(const uint8_t *, size_t);

#endif
