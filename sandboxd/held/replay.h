/*
 * Lets each sealed context open once. The vault numbers the contexts (the GCM
 * nonce is a counter). A window that ends at the highest number seen remembers
 * which numbers were used, like the window of IPsec (RFC 4303 section 3.4.3).
 * If admind, or an attacker who took admind over, hands in a context a second
 * time, the context is refused even long after its execution was forgotten.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdbool.h>
#include <stdint.h>

/* A number is refused if it is this far below the highest number, or farther.
 * Contexts are handed in within ms of being sealed, so thousands never come in
 * between. */
enum { REPLAY_WINDOW = 8192 };

struct replay {
	bool any;
	uint64_t highest;
	uint64_t seen[REPLAY_WINDOW / 64];
};

void replay_reset(struct replay *); /* for a fresh key: numbers start again */
/* Tells whether this number may still be used. Changes nothing. */
bool replay_fresh(const struct replay *, uint64_t number);
void replay_mark(struct replay *, uint64_t number); /* fresh numbers only */

#endif
