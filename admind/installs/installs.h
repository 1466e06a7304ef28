/*
 * Modules that were asked for and are in no store: fetched by an installer in
 * this node's sandbox, stored, recorded (docs/decisions/0052).
 */
#ifndef INSTALLS_H
#define INSTALLS_H

#include "admind.h"

/* From the tick: begins what is due, one at a time. */
void installs_tick(struct admind *);
/* Something was asked for: looked at in the next tick. */
void installs_soon(void);
/* A module was recorded, or a request for a recorded one came: what it needs
 * becomes requests, and what a policy approves is approved. */
void installs_recorded(
    struct admind *, struct ipc_bytes name, struct ipc_bytes version);

#endif
