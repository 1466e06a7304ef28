/*
 * JSON numbers by their digits: comparison, integrality and divisibility
 * without binary rounding. 0.3 is a multiple of 0.1, 1.0 is an integer, and
 * 10^30 is neither cut nor rounded.
 */
#ifndef NUM_H
#define NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* value = sign * (digits read as an integer) * 10^exp; no leading or trailing
 * zero digit; zero has n == 0. Digits may have one point among them. */
struct num {
	const uint8_t *p; /* first significant digit, in the text */
	size_t span;      /* bytes to the last significant digit */
	size_t n;         /* digits in the span */
	long long exp;
	int sign; /* -1, 0, 1 */
};

/* Reads text that json_scan accepted as a number. */
struct num num_read(const uint8_t *, size_t);
int num_cmp(const struct num *, const struct num *); /* <0, 0, >0 */
bool num_integer(const struct num *);
/* Gives the value as uint64, if it is an integer from 0 to max. */
bool num_u64(const struct num *, uint64_t max, uint64_t *);
/* Tells whether `a` is a multiple of `by`, which is positive and has at most
 * NUM_DIVISOR_DIGITS significant digits. */
enum { NUM_DIVISOR_DIGITS = 18 }; /* products then fit 128 bits */
bool num_multiple(const struct num *a, const struct num *by);
uint32_t num_hash(const struct num *); /* equal values, equal hashes */

#endif
