/*
 * The process's state from its start to its end.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include "gateway.h"

/* gateway.c: gw->proc is filled in before. 0 or -1. */
int gateway_init(struct gateway *);
int gateway_connect(struct gateway *, struct err *);
/* Before that: accepts nobody until there is somebody to ask, for a while. */
void gateway_wait_for_links(struct gateway *);
void gateway_free(struct gateway *);

/* drain.c: ends what can be ended, answers the rest, leaves the loop.
 * proc_on_stop's. */
void gateway_drain(void *gateway);

/* credential.c: CREDENTIAL_ENDED. 0, or -1: malformed. */
int credential_ended(struct gateway *, struct ipc_frame *);

#endif
