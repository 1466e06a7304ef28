/* The state of the check of a declared REST call. Used by http*.c and
 * openapi*.c. */
#ifndef HTTP_SPEC_H
#define HTTP_SPEC_H

#include <stdbool.h>

#include "check.h"
#include "schema.h"

enum {
	HTTP_PARAMETERS_MAX = 64,
	HTTP_FIXED_MAX = 64,    /* members of query; also of headers */
	HTTP_TEXT_MAX = 4096,   /* bytes of a fixed text or a description */
	HTTP_NAME_MAX = 64,     /* bytes of a parameter's name */
	HTTP_WIRE_MAX = 256,    /* bytes of its name on the wire */
	HTTP_SECRETS_MAX = 64,  /* as many as a version may have */
	HTTP_SECRET_NAME = 128, /* bytes of a name, with its NUL */
	HTTP_REDIRECT_HOSTS_MAX = 16,
	HTTP_REQUIRE_MAX = 272, /* [host]:port and a NUL */
};

enum http_in { HTTP_PATH, HTTP_QUERY, HTTP_HEADER, HTTP_COOKIE, HTTP_BODY };

struct http_parameter {
	const struct doc_node *src; /* the member; its name is the argument's
				     * name */
	const struct doc_node *schema, *text;
	const uint8_t *wire;
	size_t wirelen;
	enum http_in in;
	unsigned types; /* enum schema_type of its schema */
	bool required, used;
};

struct http {
	struct report *r;
	const struct doc *d;
	struct http_parameter parameter[HTTP_PARAMETERS_MAX];
	unsigned nparameter;
	char secret[HTTP_SECRETS_MAX][HTTP_SECRET_NAME];
	unsigned nsecret;
	char require[HTTP_REDIRECT_HOSTS_MAX + 1][HTTP_REQUIRE_MAX];
	unsigned nrequire;
};

/* Returns the length of the name in "{name}" at s, or 0. */
size_t http_placeholder(const uint8_t *s, size_t n);
/* Notes that the URL has this placeholder, so that its parameter is used.
 * Reports a placeholder that has no parameter. */
void http_used(
    struct http *, const struct path *, const uint8_t *name, size_t n);
/* Reads host or host:port and writes it to out in the form of a version's
 * `requires`. usual: the port that is written if none is given (0: then no port
 * is written). If the text is wrong, reports that and returns false. */
bool http_host(struct report *, const struct path *, const uint8_t *, size_t n,
    unsigned usual, char out[HTTP_REQUIRE_MAX]);
void http_url(struct http *, const struct doc_node *);
/* Returns whether this is a token of RFC 9110. */
bool http_token(const uint8_t *, size_t n);
/* Checks parameters, query, headers and body. 0, or -1 without memory. */
int http_parameters(
    struct http *, const struct doc_node *top, bool bodiless, struct err *);
/* Writes the input schema that follows from the parameters. */
void http_schema(const struct http *, struct buf *out);

#endif
