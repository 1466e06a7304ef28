/* UTF-8 as RFC 3629 has it. */
#ifndef UTF8_H
#define UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this strict UTF-8 (RFC 3629: no overlongs, surrogates, > U+10FFFF)? */
bool utf8_valid(const uint8_t *, size_t);

#endif
