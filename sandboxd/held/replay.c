/* See replay.h. */
#include <string.h>

#include "replay.h"

void
replay_reset(struct replay *r)
{
	memset(r, 0, sizeof(*r));
}

static uint64_t
bit_of(uint64_t number)
{
	return 1ULL << (number % 64);
}

bool
replay_fresh(const struct replay *r, uint64_t number)
{
	if (!r->any || number > r->highest)
		return true;
	if (r->highest - number >= REPLAY_WINDOW)
		return false;
	return (r->seen[number % REPLAY_WINDOW / 64] & bit_of(number)) == 0;
}

void
replay_mark(struct replay *r, uint64_t number)
{
	if (r->any && number > r->highest) {
		/* Clears bits that older numbers left in the places of the
		 * numbers that are skipped now. */
		if (number - r->highest >= REPLAY_WINDOW)
			memset(r->seen, 0, sizeof(r->seen));
		else
			for (uint64_t i = r->highest + 1; i < number; i++)
				r->seen[i % REPLAY_WINDOW / 64] &= ~bit_of(i);
	}
	if (!r->any || number > r->highest)
		r->highest = number;
	r->any = true;
	r->seen[number % REPLAY_WINDOW / 64] |= bit_of(number);
}
