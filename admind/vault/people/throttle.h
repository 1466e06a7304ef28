/*
 * Limits guessing: a bounded table of token buckets, named by a hash. Times
 * come from the caller, so that tests need not wait.
 *
 * An attempt is counted before the password is checked, so many attempts at
 * once gain nothing. The attempt is given back if the password was right, so
 * only failures cost.
 */
#ifndef THROTTLE_H
#define THROTTLE_H

#include <stdint.h>

#include "ipc.h"

enum {
	/* Remembered buckets. To push out a bucket that was just used up, a
	 * guesser must use up this many others, and each attempt costs a
	 * password hash. By then the first bucket is full again anyway. */
	THROTTLE_BUCKETS = 1024,
	/* After the burst one attempt is allowed in each period. That is 28,800
	 * guesses a day at a name, against passwords of at least 12 characters.
	 * A person who mistypes five times notices nothing. */
	THROTTLE_PERIOD_MS = 3000,
	/* The same for the attempts of all strangers together, at any names. */
	THROTTLE_ALL_PERIOD_MS = 1000,
	THROTTLE_ALL_BURSTS = 6 /* as a multiple of one name's burst */
};

enum throttle_what {
	THROTTLE_NONE = 0, /* not counted */
	THROTTLE_NAME = 1, /* strangers at one name; key: the name */
	THROTTLE_DEVICE,   /* a known browser; key: its number */
	THROTTLE_LOGIN,    /* a login that shows its password; key: its id */
	THROTTLE_ALL       /* strangers at all names; no key */
};

struct throttle;

struct throttle *throttle_new(unsigned burst); /* NULL without memory */
void throttle_free(struct throttle *);
/* Takes one attempt. 0, or the ms to wait (nothing was taken). */
uint64_t throttle_take(
    struct throttle *, enum throttle_what, struct ipc_bytes, uint64_t now_ms);
/* Gives back an attempt that was not wrong. */
void throttle_give(struct throttle *, enum throttle_what, struct ipc_bytes);

#endif
