/*
 * URIs of resources (RFC 3986) and the part of RFC 6570 that names families
 * of them: level 1, `{name}`, and `{+name}`.
 *
 * No I/O and no memory of its own: a parsed template points into the text it
 * was parsed from.
 */
#ifndef URI_TEMPLATE_H
#define URI_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bounds.h"
#include "buf.h"
#include "err.h"

/* A stretch of literal text, or a variable. */
struct uri_part {
	const char *p; /* the text, or the variable's name */
	size_t n;
	bool variable;
	bool reserved; /* {+name}: its value may have `/` in it */
};

struct uri_template {
	/* Two variables are never side by side. */
	struct uri_part part[2 * URI_VARIABLES_MAX + 1];
	size_t parts, variables;
};

/* The text of one variable in a URI, still percent-encoded; points into the
 * URI. */
struct uri_value {
	const char *name;
	size_t name_n;
	const char *p;
	size_t n;
};

/*
 * Checks that this is an absolute URI (RFC 3986 section 3: a scheme, a colon,
 * then only characters that a URI may have) of at most URI_MAX bytes. 0, or -1
 * with the offset of the error.
 */
int uri_check(const char *, size_t, struct err *);

/*
 * Parses a template: a literal scheme and colon, then text and at least one
 * variable, at most URI_VARIABLES_MAX. A name is a letter or `_`, then letters,
 * digits and `_`, at most NAME_VARIABLE_MAX bytes, and occurs once. Two
 * variables with nothing between them are refused, since a character could
 * belong to either. 0, or -1 with the offset.
 */
int uri_template_parse(
    const char *, size_t, struct uri_template *, struct err *);

/*
 * Tells whether the URI matches the template. `{name}` matches one or more
 * characters other than `/`, encoded or not, `{+name}` one or more of any kind.
 * If several matches are possible, the one with the longest first value (then
 * the longest second ...) counts. On a match value[i] is the value of the i-th
 * variable. A URI that uri_check refuses matches nothing. Time: at most the
 * product of both lengths, and little if the literal ends differ.
 */
bool uri_template_match(const struct uri_template *, const char *uri, size_t,
    struct uri_value value[URI_VARIABLES_MAX]);

/*
 * Appends the value with its %XX decoded. 0, or -1 if the result is not UTF-8
 * or has a NUL in it (out may then have grown).
 */
int uri_decode(const char *, size_t, struct buf *out);

#endif
