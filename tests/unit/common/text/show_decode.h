/*
 * Decoders of printed text of each form of show.h. Each of these
 * fails the test if the form does not turn back into the very bytes, in rows
 * that are ours.
 */
#ifndef SHOW_DECODE_H
#define SHOW_DECODE_H

#include <stddef.h>

#include "buf.h"

enum { OUT_MAX = 64 * 1024 * 1024 };

/* Appends a character as UTF-8. */
void show_put_char(struct buf *, unsigned long c);
/* As a line (both modes) and as a block. */
void show_inverts(const void *, size_t, unsigned width);
/* As those, as a value of several names, and as a difference: all of it added,
 * and taken away. */
void show_all_invert(const void *, size_t, unsigned width);
/* The difference of two texts. */
void show_diff_inverts(
    const void *a, size_t na, const void *b, size_t nb, unsigned width);

#endif
