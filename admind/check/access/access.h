/* The access document: issuers of signed tokens, rules and permission sets
 * (docs/ACCESS.md). No I/O. The bytes are hostile. */
#ifndef ACCESS_H
#define ACCESS_H

#include "check.h"

/* Checks a document. Fills c, which check_free() empties. Ok: c->fields has
 * enum access_field. Else c->errors has all faults together (at most
 * REPORT_MAX), each with its place, and the failure is INVALID_PARAMS. */
void check_access(struct check *c, struct ipc_bytes document);

#endif
