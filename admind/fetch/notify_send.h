/* Tells targets of the access document which requests wait
 * (docs/decisions/0112). */
#ifndef NOTIFY_SEND_H
#define NOTIFY_SEND_H

#include "admind.h"

/* Called once a second. Begins a run if a target is to be told. */
void notify_send_tick(struct admind *);

/* The end of a test. sent: the target took it. status: of HTTP or SMTP; 0:
 * none. why: a sentence if it was not sent, borrowed. */
typedef void notify_cb(
    void *arg, bool sent, uint64_t status, struct ipc_bytes why);

/* Sends a test to the target of this name. Calls cb once, later, or returns -1
 * with err: NOT_FOUND (the document that holds has no such target), BUSY (a
 * run is under way), SANDBOX_UNAVAILABLE. */
int notify_send_test(struct admind *, struct ipc_bytes name, notify_cb *,
    void *arg, struct err *);

#endif
