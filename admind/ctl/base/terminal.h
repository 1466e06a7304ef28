/*
 * Standard output, and its width.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include "buf.h"

/* Prints a buffer to standard output. */
void terminal_out(const struct buf *);
/* Returns the columns of the terminal at standard output, error or input, else
 * SHOW_WIDTH. */
unsigned terminal_width(void);

#endif
