/*
 * The changes of a version against a version that was approved before, and the
 * rights (gains) that an approval of the new version adds. admind-http and
 * mcpboxctl show both, and each computes them from the two pre-images itself
 * (docs/decisions/0037).
 */
#ifndef VERSION_DIFF_H
#define VERSION_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

/*
 * Appends one JSON object, ASCII:
 *   base      hash of the base, or null: everything is new
 *   fields    [{field, before, after}]: all that differ, except code; numbers
 *             as numbers, sets as arrays, JSON fields as their text, null:
 *             absent
 *   diff      [{field, unified}]: code, spec and text that differ, as diff -u
 *   gains     {secrets, modules, hosts, client_capabilities: names that the
 *             base does not have; limits: [{limit, before, after}] that are set
 *             higher or left to the server; other: [sentences]}
 * base NULL: there is no base. 0, or -1 with err if base or preimage is not a
 * version, or if the two are not of the same tool.
 */
int version_diff_json(const uint8_t *base, size_t nbase,
    const uint8_t *preimage, size_t n, struct buf *out, struct err *);

#endif
