/*
 * Times for which the processes of the suite wait for one another.
 *
 * Each such time is a constant of the code that waits, chosen so that on an
 * ordinary machine a process that is late has hung. On a machine ten times as
 * slow it has not: the setting wait_factor (mcpbox.conf(5)) makes all of them
 * longer.
 */
#ifndef WAITS_H
#define WAITS_H

enum {
	/* With this factor the longest wait for another process (20 minutes, of
	 * tasks) is seven hours, and none overflows. */
	WAIT_FACTOR_MAX = 20
};

/* Sets the factor, from 1 to WAIT_FACTOR_MAX, for all waits that begin from now
 * on. Called once, before the process serves. */
void wait_factor_set(int factor);

/* Returns ms milliseconds times the factor, which is 1 until it was set. */
int wait_ms(int ms);

#endif
