/* The rights that mcpbox-peek gives up before it serves. See peek_confine.c. */
#ifndef PEEK_CONFINE_H
#define PEEK_CONFINE_H

#include "buf.h"
#include "err.h"

/* Confines peek to a root with only proc, to CAP_SYS_PTRACE, and by a seccomp
 * filter. Appends a line for each layer. *files: descriptors that peek may
 * have. 0, or -1 with err: a layer is missing, as its line says. */
int peek_confine(struct buf *layers, unsigned *files, struct err *);

#endif
