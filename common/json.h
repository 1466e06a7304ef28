/*
 * Strict JSON: a byte pre-scan before json-c sees anything, and getters that
 * are exact.
 *
 * json-c alone accepts duplicate names, single quotes, NaN, raw control
 * characters, overlong UTF-8, lone surrogates and numbers out of range; the
 * pre-scan refuses all of them (RFC 8259, RFC 7493 I-JSON). Linked only into
 * programs that parse: never into admind.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

struct json_object; /* json-c's */

/*
 * One linear pass: strict UTF-8, no BOM, no raw control characters, number
 * grammar of RFC 8259 with finite double value, depth <= JSON_DEPTH_MAX,
 * members and elements <= JSON_MEMBERS_MAX, no duplicate names in an object
 * after unescaping, no U+0000 in a name (json-c would cut it there), no lone
 * surrogate escapes, one value and nothing after it but white space. 0, or -1
 * with byte offset and rule in err (FAILURE_PARSE).
 */
int json_scan(const uint8_t *, size_t, struct err *);

/* Finds the byte slice of a member of the top-level object along `path`
 * (NULL-terminated names), in text that json_scan accepted. 1 found (*p, *n
 * borrow from text), 0 absent. */
int json_slice(const uint8_t *text, size_t n, const char *const *path,
    const uint8_t **p, size_t *len);

/* The same for several members of one object at once, in one pass over it. */
struct json_wanted {
	const char *name;
	size_t len;       /* of the name */
	const uint8_t *p; /* its value; NULL: absent */
	size_t n;
};
#define JSON_WANTED(name) {(name), sizeof(name) - 1, NULL, 0}
void json_slice_all(
    const uint8_t *text, size_t n, struct json_wanted *, size_t wanted);

/* Appends what a string says, of a slice that json_slice gave (its quotes
 * included). 0; -1 if it is another value, or does not fit. */
int json_unescape(const uint8_t *, size_t, struct buf *out);

/* json_scan, then json-c with VALIDATE_UTF8. The caller releases with
 * json_object_put. A text `null` gives *o = NULL. */
int json_parse(const uint8_t *, size_t, struct json_object **, struct err *);

/* Exact getters on an object: 1 present with that very type, 0 absent,
 * -1 present with another type or out of range (err names the member;
 * INT64_MIN and numbers written with a point or exponent are no integers
 * here). Strings are NUL-terminated and may contain NUL: mind *n. */
int json_get_str(struct json_object *, const char *name, const char **s,
    size_t *n, struct err *);
int json_get_int(struct json_object *, const char *name, int64_t min,
    int64_t max, int64_t *v, struct err *);
int json_get_bool(
    struct json_object *, const char *name, bool *v, struct err *);
int json_get_obj(struct json_object *, const char *name, struct json_object **v,
    struct err *);
int json_get_arr(struct json_object *, const char *name, struct json_object **v,
    struct err *);

#endif
