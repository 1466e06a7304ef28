/* Sends spans and metrics to a collector (docs/decisions/0107). */
#ifndef TELEMETRY_SEND_H
#define TELEMETRY_SEND_H

#include "admind.h"

/* Called once a second. Begins a run if one is due. */
void telemetry_send_tick(struct admind *);

#endif
