/*
 * An attempt: one connect(2) of a runner, from NET_CONNECT to its answer.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "net.h"

/* Takes up one request; its answer comes now or from the loop. */
void attempt_start(
    struct egress *, struct ipc_peer *, const struct ipc_net_connect *);
/* Ends a net's attempts, or only those of one peek (then no process waits for
 * the answers); connect(2) fails with ENETUNREACH. */
void attempts_cancel(struct net *, struct ipc_peer *of);

#endif
