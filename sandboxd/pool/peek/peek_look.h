/* Reads a runner's request, once. See peek_look.c. */
#ifndef PEEK_LOOK_H
#define PEEK_LOOK_H

#include "err.h"
#include "peek_table.h"

/* Checks, once before the filter, that this kernel's notifications fit. 0 or
 * -1. */
int peek_look_start(struct err *);
/* Looks at a listener that poll(2) called readable. 1: *c is the next connect;
 * 0: none, or one that was answered here already (*answered says so); -1 with
 * errno: the listener is of no use any more. */
int peek_look(int listener, struct peek_connect *c, bool *answered);
/* Answers: connect(2) returns 0, or fails with this errno. Does nothing if the
 * caller does not wait any more. */
void peek_look_answer(int listener, uint64_t id, int error);
/* May we do what peek_look does? Tried on pid 1 of the pool, which is no runner
 * but as closed as one. 0, or -1 with err. */
int peek_look_try(struct err *);

#endif
