/* The member "telemetry" of an access document: the collector that spans and
 * metrics go to (docs/decisions/0107). */
#ifndef TELEMETRY_H
#define TELEMETRY_H

#include "access_read.h"

/* Puts ACCESS_TELEMETRY, if the member is there. */
void telemetry_read(struct access_doc *, const struct access_at *);

#endif
