/*
 * Builds the part of a context that says which program runs and which form its
 * result has. This part is built from an approved version's checked TLV list
 * alone, so admind can't influence it. No I/O.
 */
#ifndef RECIPE_H
#define RECIPE_H

#include "buf.h"
#include "err.h"

/* Adds the program: code with its modules, a command with its executable, or a
 * specification that our own code reads. 0, or -1 with INVALID_REQUEST. */
int recipe_kind(struct buf *out, const uint8_t *fields, size_t n, struct err *);
/* Adds the form of the result, and the schema of its structured content. 0, or
 * -1 with INVALID_REQUEST. */
int recipe_result(
    struct buf *out, const uint8_t *fields, size_t n, struct err *);

#endif
