/* The time by which signed tokens are judged: it does not go back. */
#ifndef LATEST_H
#define LATEST_H

#include <stdint.h>

/* The latest time that is known, and the time since boot when it was known. All
 * zero: none yet. */
struct latest {
	uint64_t us, boot_ms;
};

/* Returns the time now, Unix time in us. It never goes back in this process,
 * even if the wall clock does. */
uint64_t latest_now(struct latest *);
/* Takes a time, Unix time in us, that the database knows to be past. */
void latest_was(struct latest *, uint64_t us);
/* Tells the log if the wall clock went back. */
void latest_look(struct latest *);

#endif
