/*
 * Putting egress' socket in the place of the runner's. See peek_put.c.
 */
#ifndef PEEK_PUT_H
#define PEEK_PUT_H

#include "peek_table.h"

enum peek_put_result {
	PEEK_PUT_DONE,  /* or the caller does not wait any more */
	PEEK_PUT_LATER, /* the runner's thread did not take it in time */
	PEEK_PUT_BAD    /* the socket must not be put into a runner */
};

/* Sets up, once, the signal handler that ends a wait for a runner. 0 or -1 with
 * errno. */
int peek_put_start(void);
/* Puts w's socket in the place of the runner's socket and answers the runner's
 * connect(2). Closes nothing. */
enum peek_put_result peek_put(int listener, const struct peek_wait *);

#endif
