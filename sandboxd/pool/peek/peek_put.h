/*
 * Putting egress' socket in the place of the runner's. See peek_put.c.
 */
#ifndef PEEK_PUT_H
#define PEEK_PUT_H

#include "peek_table.h"

enum peek_put_result {
	PEEK_PUT_DONE,  /* or the caller does not wait any more */
	PEEK_PUT_LATER, /* the runner got no processor to take it with */
	PEEK_PUT_BAD    /* no socket that may be put anywhere */
};

/* Sets up, once, the timer that ends a wait for a runner. 0 or -1 with
 * errno. */
int peek_put_start(void);
/* Puts w's socket in place and answers. Closes nothing. */
enum peek_put_result peek_put(int listener, const struct peek_wait *);

#endif
