/*
 * Serials of policies of review and of access documents, which the vault seals
 * and admind stores. A serial is the time of the change, in us, and only rises.
 */
#ifndef SERIALS_H
#define SERIALS_H

#include <stdbool.h>
#include <stdint.h>

/* A serial may be a day ahead of our clock. The clocks of two machines differ,
 * but not by so much. */
#define SERIALS_AHEAD_MAX_US (UINT64_C(24) * 60 * 60 * 1000 * 1000)

/* Tells whether the serial is more than SERIALS_AHEAD_MAX_US after now_us. */
bool serials_ahead(uint64_t serial, uint64_t now_us);

/*
 * Returns the serial of a new object: now_us or, if that is not greater, one
 * above the greater of `known`, which a seal of ours says, and `stored`, which
 * admind says of a row. Either is 0 without such an object. A stored serial for
 * which the new one would be ahead does not count.
 */
uint64_t serials_next(uint64_t known, uint64_t stored, uint64_t now_us);

#endif
