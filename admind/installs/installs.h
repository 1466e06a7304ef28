/*
 * Requested modules that no store has: an installer in this node's sandbox
 * fetches them; they are stored and recorded (docs/decisions/0052).
 */
#ifndef INSTALLS_H
#define INSTALLS_H

#include "admind.h"

/* Called by the tick: begins the next due installation, one at a time. */
void installs_tick(struct admind *);
/* A module was requested: makes the next tick look. */
void installs_soon(void);
/* A module was recorded, or a request for a recorded one came: makes requests
 * for its dependencies, and approves those that a policy covers. */
void installs_recorded(
    struct admind *, struct ipc_bytes name, struct ipc_bytes version);

#endif
