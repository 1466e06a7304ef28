/*
 * The process's state from its start to its end.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include "gateway.h"

/* gateway.c. Checks panel_origin. 0, or -1 with INVALID_PARAMS and the form
 * that it must have. */
int gateway_check(const struct conf *, struct err *);
/* Fills in the state; gw->proc must be filled in before. 0 or -1. */
int gateway_init(struct gateway *);
int gateway_connect(struct gateway *, struct err *);
/* Accepts no connections until admind and sandboxd are connected, for
 * PATIENCE_MS at most. Call it before gateway_connect. */
void gateway_wait_for_links(struct gateway *);
void gateway_free(struct gateway *);

/* drain.c, for proc_on_stop: answers open requests, ends calls and streams in
 * order, then leaves the loop. */
void drain_start(void *gateway);

/* credential.c: takes CREDENTIAL_ENDED. 0, or -1: malformed. */
int credential_ended(struct gateway *, struct ipc_frame *);

#endif
