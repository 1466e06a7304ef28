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

#include "err.h"
#include "json_scan.h"

struct json_object; /* json-c's */

/* Parses by json_scan, then by json-c with VALIDATE_UTF8. The caller releases
 * with json_object_put. A text `null` gives *o = NULL. */
int json_parse(const uint8_t *, size_t, struct json_object **, struct err *);

/* Exact getters on an object: 1 present with that very type, 0 absent, -1
 * present with another type or out of range (err names the member; INT64_MIN
 * and numbers written with a point or exponent are no integers here). Strings
 * are NUL-terminated and may contain NUL, so use *n. */
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
