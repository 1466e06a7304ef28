/*
 * Shows the difference between two access documents before the second one is
 * set. No I/O.
 */
#ifndef ACCESS_DIFF_H
#define ACCESS_DIFF_H

#include "buf.h"

struct json_object;

/*
 * Appends one row for each issuer, key, rule and set that is added (+), removed
 * (-) or changed (~), and for each member of the document beside these. old may
 * be NULL: there was no document. The documents may be malformed. A part
 * without a known form is compared as a whole. Returns the number of rows.
 */
unsigned access_diff(
    struct json_object *old, struct json_object *new, struct buf *rows);

/* Appends one row of JSON in ASCII: other characters as \uXXXX, so that a
 * parser reads the same value. Bytes that are not UTF-8 become ?. */
void access_diff_ascii(struct buf *, const char *, size_t);

#endif
