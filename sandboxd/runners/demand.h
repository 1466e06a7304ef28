/*
 * The number of runners that wait ahead of their calls: between two bounds, by
 * demand.
 *
 * It grows by one with each call that found none waiting. After a whole period
 * that left some unused, it shrinks by half of those. So half of a burst is met
 * at its second wave, idle time gives the memory back within half a minute, and
 * no clock or rate has to be guessed. No I/O and no clock here.
 */
#ifndef DEMAND_H
#define DEMAND_H

#include <stdbool.h>
#include <stdint.h>

enum { DEMAND_PERIOD_MS = 5000 };

struct demand {
	unsigned min, max, target;
	unsigned least; /* runners that waited at the period's worst moment */
	bool missed;    /* a call found none in this period */
	uint64_t since_ms;
};

/* max below min counts as min. */
void demand_init(struct demand *, unsigned min, unsigned max, uint64_t now_ms);
/* Counts a call that took a runner; `left` still wait. */
void demand_taken(struct demand *, unsigned left);
/* Counts a call that found no runner. */
void demand_missed(struct demand *);
/* Lets time go on; `waiting` runners wait now. */
void demand_tick(struct demand *, unsigned waiting, uint64_t now_ms);

#endif
