/*
 * Amounts in configuration files: reads and writes whole numbers, sizes and
 * durations by one table of units.
 */
#ifndef CONF_AMOUNT_H
#define CONF_AMOUNT_H

#include <stddef.h>
#include <stdint.h>

#include "conf.h"

enum { CONF_AMOUNT_MAX = 24 }; /* -9223372036854775808, a unit and NUL */

/* Reads digits only: no sign, no overflow past int64_t. *end points after the
 * digits. 0 or -1. */
int conf_amount_digits(const char *, const char **end, int64_t *out);
/* Parses a value of CONF_INT, CONF_SIZE (bytes) or CONF_DURATION (ms): a number
 * directly followed by one of the type's units. 0 or -1. */
int conf_amount_parse(enum conf_type, const char *, int64_t *out);
/* Writes the shortest text that conf_amount_parse reads as n, which is not
 * negative: 64M, 10s, 100000. Returns out. */
const char *conf_amount_text(
    enum conf_type, int64_t n, char out[CONF_AMOUNT_MAX]);
/* Writes "from MIN to MAX". Adds unit only for CONF_INT, since amounts of the
 * other types have their units. */
void conf_amount_range(enum conf_type, int64_t min, int64_t max,
    const char *unit, char *out, size_t len);

#endif
