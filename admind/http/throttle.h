/*
 * Failed logins per source: a bounded table of token buckets. No clock of its
 * own, so that tests need no waiting.
 */
#ifndef THROTTLE_H
#define THROTTLE_H

#include <stdint.h>

enum {
	/* Sources remembered. Behind a proxy there is one; directly, as many
	 * as a /24 has addresses. */
	THROTTLE_SOURCES = 256,
	THROTTLE_SOURCE_LEN = 46, /* INET6_ADDRSTRLEN */
	/* Attempts at once, then one a period: 28,800 guesses a day against
	 * passwords of at least 12 characters; a person who mistypes five
	 * times notices nothing. */
	THROTTLE_BURST = 10,
	THROTTLE_PERIOD_MS = 3000
};

struct throttle_entry {
	char source[THROTTLE_SOURCE_LEN];
	uint64_t spent_until_ms; /* the bucket is full again at this time */
};

struct throttle {
	struct throttle_entry e[THROTTLE_SOURCES];
};

/* Takes one attempt of this source. 0, or how many ms to wait. */
uint64_t throttle_take(struct throttle *, const char *source, uint64_t now_ms);
/* The attempt succeeded: the source starts afresh. */
void throttle_reset(struct throttle *, const char *source);

#endif
