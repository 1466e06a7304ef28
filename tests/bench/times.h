/*
 * Durations of many repetitions of one thing, and the object that the bench's
 * programs print about them.
 */
#ifndef TIMES_H
#define TIMES_H

#include <stddef.h>
#include <stdint.h>

struct times {
	uint32_t *us10; /* tenths of a microsecond, 7 minutes at most */
	size_t n, size;
};

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t times_now(void);

/* Adds what passed since begin; ends the process when out of memory. */
void times_add(struct times *, uint64_t begin);

/*
 * Prints one JSON object's members, without the braces: n, seconds (wall, as
 * given), rate, cpu_us (each, of this process and its children that ended),
 * and the percentiles p50, p90, p99 and max in microseconds. Sorts.
 */
void times_print(struct times *, double seconds);

/* A whole number of an option, in min..max; ends the process otherwise. */
unsigned long times_number(
    const char *text, unsigned long min, unsigned long max);

#endif
