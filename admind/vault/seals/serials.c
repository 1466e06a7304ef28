#include "serials.h"

bool
serials_ahead(uint64_t serial, uint64_t now)
{
	return serial > now && serial - now > SERIALS_AHEAD_MAX_US;
}

/*
 * The serial of a row is not sealed, so an attacker that writes the database
 * chooses it. It must count, since the database refuses a serial that does not
 * follow its newest row. Otherwise a forged row of an hour ahead would keep
 * administrators out for an hour. But it counts only up to a day ahead. So a
 * row of the year 2200 uses up no numbers, and we make no serial that we refuse
 * ourselves. `known` always counts, so the new object is newer than all that we
 * know, and admind can't change that.
 */
uint64_t
serials_next(uint64_t known, uint64_t stored, uint64_t now)
{
	uint64_t least = known;

	if (stored > least && stored < UINT64_MAX &&
	    !serials_ahead(stored + 1, now))
		least = stored;
	return now > least ? now : least + 1;
}
