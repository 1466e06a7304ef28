/* A block of our lines in a file of PostgreSQL's (pg_hba.conf, pg_ident.conf).
 * Text in, text out. */
#ifndef SETUP_LINES_H
#define SETUP_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

enum setup_block {
	SETUP_BLOCK_NONE,   /* not there */
	SETUP_BLOCK_OURS,   /* there, as it would be written */
	SETUP_BLOCK_EDITED, /* there, but a person changed its lines */
	SETUP_BLOCK_BROKEN  /* markers without their pair, or twice */
};

/* Looks for the block in a text. lines: the block's lines as they would be
 * written, each with its newline. */
enum setup_block setup_lines_find(
    const uint8_t *text, size_t n, const char *lines);
/* Appends the block and then the text to out. */
void setup_lines_put(
    const uint8_t *text, size_t n, const char *lines, struct buf *out);

#endif
