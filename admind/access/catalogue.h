/* The catalogue: all that can be called, as gateways keep it. */
#ifndef CATALOGUE_H
#define CATALOGUE_H

#include "op.h"

int catalogue_message(struct link *, struct ipc_frame *); /* CATALOGUE_GET */
void catalogue_notified(struct admind *, const char *payload);
/* Reads the revision and tells all gateways. Calls cb when all gateways dropped
 * their caches, or when CATALOGUE_ACK_MS have passed. cb may be NULL. Without
 * memory cb is called at once, the log tells it, and the tick tries again
 * (announce_again). */
void catalogue_announce(struct admind *, void (*cb)(void *), void *arg);

#endif
