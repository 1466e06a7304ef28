/*
 * The difference of two texts, line by line, as diff -u writes it. Bounded: the
 * texts are strangers' (tools' code), the reader a person.
 */
#ifndef LINEDIFF_H
#define LINEDIFF_H

#include <stddef.h>

#include "buf.h"

enum {
	/* Lines put in and taken out together, up to which the shortest
	 * difference is looked for (time and memory grow with its square:
	 * 4 MB here). Beyond it, all that lies between the equal beginning and
	 * the equal end is shown as replaced: right, but not short. */
	LINEDIFF_EDITS_MAX = 1024,
	LINEDIFF_CONTEXT = 3 /* equal lines shown around a change */
};

/*
 * Appends the hunks ("@@ -1,3 +1,4 @@" and lines behind ' ', '-' or '+';
 * without file names) that make b of a. Nothing if they are equal. out->failed
 * when it did not fit or memory was out.
 */
void linediff(
    const void *a, size_t na, const void *b, size_t nb, struct buf *out);

#endif
