/* docs/TOOLS.md, embedded at build time (guide.py). */
#ifndef GUIDE_H
#define GUIDE_H

#include <stddef.h>

extern const char guide_text[];
extern const size_t guide_len; /* bytes, without the final NUL */

#endif
