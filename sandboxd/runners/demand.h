/*
 * How many runners wait ahead of their calls: between two bounds, by what was
 * asked for.
 *
 * It grows by one with each call that found none waiting, and shrinks where a
 * whole period left some unused: by half of those. So a burst is met half-way
 * at its second wave, idle time gives the memory back within half a minute,
 * and no clock or rate has to be guessed. No I/O and no clock here.
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
/* A call took one; so many still wait. */
void demand_taken(struct demand *, unsigned left);
/* A call found none. */
void demand_missed(struct demand *);
/* Time goes on; `waiting` runners wait now. */
void demand_tick(struct demand *, unsigned waiting, uint64_t now_ms);

#endif
