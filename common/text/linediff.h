/*
 * The difference of two texts, line by line, as diff -u writes it. Its cost is
 * bounded, because the texts are foreign (tools' code) and a person reads the
 * difference.
 */
#ifndef LINEDIFF_H
#define LINEDIFF_H

#include <stddef.h>

#include "buf.h"

enum {
	/* The shortest difference is searched for if it has at most this many
	 * inserted and deleted lines, added up (time and memory grow with the
	 * square of this number: 4 MB here). If not, all lines between the
	 * equal beginning and the equal end are shown as replaced, which is
	 * right, but not short. */
	LINEDIFF_EDITS_MAX = 1024,
	LINEDIFF_CONTEXT = 3 /* equal lines shown around a change */
};

/*
 * Appends the hunks that make b of a ("@@ -1,3 +1,4 @@" and lines after ' ',
 * '-' or '+'; without file names). Appends nothing if a and b are equal.
 * Sets out->failed if the hunks did not fit or there was no memory.
 */
void linediff(
    const void *a, size_t na, const void *b, size_t nb, struct buf *out);

#endif
