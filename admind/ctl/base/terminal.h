/*
 * Standard output and its width, and questions to the person at the terminal.
 */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stdbool.h>

#include "buf.h"

/* Prints a buffer to standard output. */
void terminal_out(const struct buf *);
/* Returns the columns of the terminal at standard output, error or input, else
 * SHOW_WIDTH. */
unsigned terminal_width(void);
/* Asks the person at the terminal: the question, then " [y/N] ". Returns
 * whether he says yes. Without a terminal, or if `yes` (--yes), asks nothing
 * and returns true. */
bool terminal_agreed(bool yes, const char *question);

#endif
