/*
 * The number of runners that should wait ahead of their calls. It follows the
 * demand between two bounds.
 *
 * The number grows by one with each call that found no runner waiting. After a
 * whole period in which some runners were not needed, the number shrinks by
 * half of the runners that were not needed. So if a burst of calls comes twice,
 * half of the second burst finds runners. When no calls come, the memory is
 * given back within half a minute. No rate has to be guessed. There is no I/O
 * and no clock here.
 */
#ifndef DEMAND_H
#define DEMAND_H

#include <stdbool.h>
#include <stdint.h>

enum { DEMAND_PERIOD_MS = 5000 };

struct demand {
	unsigned min, max, target;
	unsigned least; /* fewest runners that waited in this period */
	bool missed;    /* a call found no runner in this period */
	uint64_t since_ms;
};

/* max below min counts as min. */
void demand_init(struct demand *, unsigned min, unsigned max, uint64_t now_ms);
/* Counts a call that took a runner; `left` runners still wait. */
void demand_taken(struct demand *, unsigned left);
/* Counts a call that found no runner. */
void demand_missed(struct demand *);
/* Ends the period if it is over. `waiting` runners wait now. */
void demand_tick(struct demand *, unsigned waiting, uint64_t now_ms);

#endif
