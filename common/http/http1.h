/*
 * HTTP/1.1 request parser (RFC 9112), no I/O: bytes in, events out. A closed
 * grammar: a request outside this list is refused, with the status to answer.
 *
 *	methods GET POST DELETE OPTIONS HEAD PUT PATCH; other tokens get 501
 *	target origin-form of visible ASCII, at most 2 KiB, no fragment
 *	HTTP/1.1 only, CRLF only, one space each
 *	field names tchar, no space before the colon; values visible ASCII,
 *	space, tab; no obs-fold, no obs-text
 *	exactly one Host, its port at most 65535; the fields of http1_single
 *	at most once
 *	no tab around Content-Length and Transfer-Encoding
 *	Content-Length of at most 7 digits, or Transfer-Encoding: chunked,
 *	never both; chunk sizes of at most 6 hex digits, no extensions, no
 *	trailers
 *
 * Upgrade is not looked at: every request is answered in HTTP/1.1, whatever
 * else its sender offers (RFC 9110 section 7.8; docs/decisions/0007).
 */
#ifndef HTTP1_H
#define HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

enum http1_method {
	HTTP1_GET,
	HTTP1_HEAD,
	HTTP1_POST,
	HTTP1_DELETE,
	HTTP1_OPTIONS,
	HTTP1_PUT,
	HTTP1_PATCH
};

enum { HTTP1_FIELDS_MAX = 64 }; /* clients send fewer than 20 */

struct http1_field {
	const char *name;  /* NUL-terminated, lower case */
	const char *value; /* NUL-terminated, outer white space removed */
};

/* One request. Pointers live until http1_reset or http1_free. */
struct http1_request {
	enum http1_method method;
	const char *path;  /* without the query */
	const char *query; /* after '?', or NULL */
	struct http1_field fields[HTTP1_FIELDS_MAX];
	size_t nfields;
	const uint8_t *body;
	size_t body_len;
	bool keep_alive;      /* false after Connection: close */
	bool expect_continue; /* answer 100 once, before the body */
};

enum http1_event {
	HTTP1_MORE,      /* needs more bytes */
	HTTP1_HEAD_DONE, /* the fields are complete, the body is not */
	HTTP1_DONE,      /* request complete */
	HTTP1_ERROR      /* refused, see http1_error; answer and close */
};

struct http1; /* parser state of one connection */

struct http1 *http1_new(size_t head_max, size_t body_max);
void http1_free(struct http1 *);
/* Lets a Content-Length over body_max, of up to `max`, through as far as
 * HTTP1_HEAD_DONE. The body itself is refused with 413 unless http1_take_large
 * allows it. Chunked bodies keep body_max. */
void http1_set_large(struct http1 *, size_t max);
/* After HTTP1_HEAD_DONE: tells whether the Content-Length exceeds body_max. */
bool http1_is_large(const struct http1 *);
/* Lets this request's large body in. */
void http1_take_large(struct http1 *);
/* Consumes at most n bytes, up to the next event. *used is the number of bytes
 * consumed. */
enum http1_event http1_feed(
    struct http1 *, const uint8_t *, size_t n, size_t *used);
const struct http1_request *http1_request(const struct http1 *);
/* Returns the status to answer (400, 405, 408, 413, 414, 417, 431, 501, 505);
 * *why is the rule that was broken. */
int http1_error(const struct http1 *, const char **why);
/* Returns the number of body bytes that the parser holds until http1_reset. */
size_t http1_held(const struct http1 *);
/* Makes the parser ready for the next request on the same connection. */
void http1_reset(struct http1 *);
/* Returns the value of the first field of this lower-case name, or NULL. *count
 * is how often the field occurs; count may be NULL. */
const char *http1_field(
    const struct http1_request *, const char *name, unsigned *count);
const char *http1_method_name(enum http1_method);
const char *http1_reason(int status);

#endif
