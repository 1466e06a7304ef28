/*
 * Limits the freed memory that sandboxd keeps. A tool floods its channels with
 * data of its choice. Without this file, the tool would also choose how much
 * memory sandboxd holds after the call, for good.
 */
#ifndef HEAP_H
#define HEAP_H

#include <stddef.h>
#include <stdint.h>

enum {
	HEAP_OWN_MAPPING = 128 * 1024, /* bytes; malloc(3)'s own first value */
	/* Bytes of freed memory kept while no call runs. A few calls at once
	 * need so much, so a steady load asks the kernel for no memory. */
	HEAP_KEPT = 512 * 1024,
};

struct heap {
	size_t gone_back; /* bytes of malloc's free heap without pages */
	uint64_t ended;   /* calls that had ended when gone_back was right */
};

/* Tells malloc to return large blocks when they are freed. Called once. */
void heap_start(void);
/* Returns the pages of freed small blocks to the system. Called often while no
 * call runs; `ended` is calls_ended(). */
void heap_rest(struct heap *, uint64_t ended);

#endif
