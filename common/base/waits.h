/*
 * Times for which the processes of the suite wait for one another.
 *
 * Each such time is a constant of the code that waits. On an ordinary machine a
 * process that takes longer has hung. On a machine ten times as slow a process
 * that takes longer may only be slow, so the setting wait_factor
 * (mcpbox.conf(5)) makes all of these times longer.
 */
#ifndef WAITS_H
#define WAITS_H

enum {
	/* With this factor the longest wait for another process (20 minutes,
	 * for tasks) is seven hours, and no wait overflows an int. */
	WAIT_FACTOR_MAX = 20
};

/* Sets the factor, from 1 to WAIT_FACTOR_MAX, for all waits that begin from now
 * on. Called once, before the process serves. */
void wait_factor_set(int factor);

/* Returns ms milliseconds times the factor, which is 1 until
 * wait_factor_set. */
int wait_ms(int ms);

#endif
