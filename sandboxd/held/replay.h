/*
 * Lets each sealed context open once. The vault numbers them (the GCM nonce is
 * a counter), so a window over the highest number seen, as IPsec's (RFC 4303
 * section 3.4.3), remembers which were used. A context that admind, or an
 * attacker who took it over, hands in a second time is refused even long after
 * its execution was forgotten.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers below the highest that may still come: contexts are handed in within
 * ms of being sealed, so thousands in between never happen. */
enum { REPLAY_WINDOW = 8192 };

struct replay {
	bool any;
	uint64_t highest;
	uint64_t seen[REPLAY_WINDOW / 64];
};

void replay_reset(struct replay *); /* for a fresh key: numbers start again */
/* May this number still be used? Changes nothing. */
bool replay_fresh(const struct replay *, uint64_t number);
void replay_mark(struct replay *, uint64_t number); /* fresh ones only */

#endif
