/*
 * JSON read as bytes: the pre-scan that every foreign text passes, and the
 * slices of its members. There is no json-c: a program that links only this
 * library can't build an object from a text.
 */
#ifndef JSON_SCAN_H
#define JSON_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

/*
 * Checks a text in one linear pass: strict UTF-8, no BOM, no raw control
 * characters, number grammar of RFC 8259 with finite double value, depth <=
 * JSON_DEPTH_MAX, members and elements <= JSON_MEMBERS_MAX, no duplicate names
 * in an object after unescaping, no U+0000 in a name (json-c would cut it
 * there), no lone surrogate escapes, one value and nothing after it but white
 * space. 0, or -1 with byte offset and rule in err (FAILURE_PARSE).
 */
int json_scan(const uint8_t *, size_t, struct err *);

/* Finds the byte slice of a member of the top-level object along `path`
 * (NULL-terminated names), in text that json_scan accepted. Returns 1 if found
 * (*p, *len borrow from text), 0 if absent. */
int json_slice(const uint8_t *text, size_t n, const char *const *path,
    const uint8_t **p, size_t *len);

/* Finds the slices of several members of the top-level object in one pass. */
struct json_wanted {
	const char *name;
	size_t len;       /* of the name */
	const uint8_t *p; /* its value; NULL: absent */
	size_t n;
};
#define JSON_WANTED(name) {(name), sizeof(name) - 1, NULL, 0}
void json_slice_all(
    const uint8_t *text, size_t n, struct json_wanted *, size_t wanted);

/* Appends the decoded text of a string, given as a slice from json_slice (with
 * its quotes). 0, or -1 if the slice is no string or the text does not fit. */
int json_unescape(const uint8_t *, size_t, struct buf *out);
/* Appends the decoded inside of a string, without its quotes, of text that
 * json_scan accepted. */
void json_unescape_inside(const uint8_t *, size_t, struct buf *out);
/* Returns the next code point of the inside of a string that json_scan
 * accepted. */
uint32_t json_slice_point(const uint8_t **);

#endif
