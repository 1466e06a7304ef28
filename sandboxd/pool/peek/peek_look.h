/* Reads a runner's request, once. See peek_look.c. */
#ifndef PEEK_LOOK_H
#define PEEK_LOOK_H

#include "err.h"
#include "peek_table.h"

/* Checks, once before the filter is loaded, that this kernel's notifications
 * fit into our buffers. 0, or -1 with err. */
int peek_look_start(struct err *);
/* Looks at a listener that poll(2) called readable. 1: *c is the next connect.
 * 0: there was none, or it was answered here (*answered). -1 with errno: the
 * listener is of no use any more. */
int peek_look(int listener, struct peek_connect *c, bool *answered);
/* Answers a connect(2), which returns 0 or fails with this errno. Does nothing
 * if the caller does not wait any more. */
void peek_look_answer(int listener, uint64_t id, int error);
/* Tries on pid 1 of the pool whether peek may do the reads of peek_look. 0, or
 * -1 with err. */
int peek_look_try(struct err *);

#endif
