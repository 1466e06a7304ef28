/* A block of our lines in a foreign file (pg_hba.conf, pg_ident.conf). Text in,
 * text out. */
#ifndef SETUP_LINES_H
#define SETUP_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

enum setup_block {
	SETUP_BLOCK_NONE,   /* not there */
	SETUP_BLOCK_OURS,   /* there, as it would be written */
	SETUP_BLOCK_EDITED, /* there, with other lines: a person's will */
	SETUP_BLOCK_BROKEN  /* markers without their pair, or twice */
};

/* lines: text of whole lines, each with its newline. */
enum setup_block setup_lines_find(
    const uint8_t *text, size_t n, const char *lines);
/* Appends the block and then the text to out. */
void setup_lines_put(
    const uint8_t *text, size_t n, const char *lines, struct buf *out);

#endif
