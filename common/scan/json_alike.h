/*
 * A digest of the meaning of a JSON text, however it is spelt: equal for texts
 * that differ in white space, the order of members, escapes and the spelling of
 * numbers (1, 1.0, 1e0, -0). The digest serves to find calls that are the same.
 * It proves nothing, since anyone who wants two texts of one digest can make
 * them.
 */
#ifndef JSON_ALIKE_H
#define JSON_ALIKE_H

#include "bytes.h"

/* text: accepted by json_scan. *out: never all zero. */
void json_alike(struct ipc_bytes text, struct ipc_id *out);

#endif
