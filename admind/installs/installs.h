/*
 * Installs requested modules that no store has. An installer in this node's
 * sandbox fetches them; then they are stored and recorded
 * (docs/decisions/0052).
 */
#ifndef INSTALLS_H
#define INSTALLS_H

#include "admind.h"

/* Begins the next due installation, one at a time. Called at every tick. */
void installs_tick(struct admind *);
/* Makes the next tick look for requests, because a module was requested. */
void installs_soon(void);
/* Makes requests for a module's dependencies, and lets the vault approve those
 * that a policy covers. Call this when the module was recorded, or when a
 * request for a recorded module came. */
void installs_recorded(
    struct admind *, struct ipc_bytes name, struct ipc_bytes version);

#endif
