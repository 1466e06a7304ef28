/* UTF-8 as RFC 3629 defines it. */
#ifndef UTF8_H
#define UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tells whether this is strict UTF-8 (RFC 3629: no overlongs, surrogates, >
 * U+10FFFF). */
bool utf8_valid(const uint8_t *, size_t);

enum { UTF8_MAX = 4 }; /* bytes of one character */
/* Encodes a code point, at most U+10FFFF. Returns the number of bytes. A
 * surrogate gets three bytes, as if it were a character. */
size_t utf8_encode(uint32_t, uint8_t out[UTF8_MAX]);

#endif
