/*
 * Limits guessing: a bounded table of token buckets, named by a hash. No clock
 * of its own, so that tests need no waiting.
 *
 * An attempt is taken before it is judged, so that many at once gain nothing,
 * and given back if it was right: only failures cost.
 */
#ifndef THROTTLE_H
#define THROTTLE_H

#include <stdint.h>

#include "ipc.h"

enum {
	/* Remembered buckets. To push out one that was just used up, a guesser
	 * must use up as many others, each at a password hash an attempt: by
	 * then that bucket would have filled again by itself. */
	THROTTLE_BUCKETS = 1024,
	/* One attempt a period after the burst: 28,800 guesses a day at a name
	 * against passwords of at least 12 characters; a person who mistypes
	 * five times notices nothing. */
	THROTTLE_PERIOD_MS = 3000,
	/* For all strangers together, whatever names they try. */
	THROTTLE_ALL_PERIOD_MS = 1000,
	THROTTLE_ALL_BURSTS = 6 /* times a name's burst */
};

enum throttle_what {
	THROTTLE_NONE = 0, /* not counted */
	THROTTLE_NAME = 1, /* strangers at one name: the name */
	THROTTLE_DEVICE,   /* a known browser: its number */
	THROTTLE_LOGIN,    /* a login that shows its own password: its id */
	THROTTLE_ALL       /* strangers at all names: nothing */
};

struct throttle;

struct throttle *throttle_new(unsigned burst); /* NULL without memory */
void throttle_free(struct throttle *);
/* Takes one attempt. 0, or the ms to wait (nothing was taken). */
uint64_t throttle_take(
    struct throttle *, enum throttle_what, struct ipc_bytes, uint64_t now_ms);
/* Gives an attempt back: it was not wrong. */
void throttle_give(struct throttle *, enum throttle_what, struct ipc_bytes);

#endif
