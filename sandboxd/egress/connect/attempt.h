/*
 * An attempt: one connect(2) of a runner, from NET_CONNECT to its answer.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "net.h"

/* Starts the attempt of one request, which is answered now or from the loop. */
void attempt_start(
    struct egress *, struct ipc_peer *, const struct ipc_net_connect *);
/* Ends attempts of a net. If `of` is NULL, ends all attempts, and connect(2)
 * fails with ENETUNREACH. Otherwise ends the attempts that came by the
 * connection `of` to peek, without an answer, since the connection is gone. */
void attempts_cancel(struct net *, struct ipc_peer *of);

#endif
