/*
 * An attempt: one connect(2) of a runner, from NET_CONNECT to its answer.
 */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include "net.h"

/* Starts the attempt of one request, which is answered now or from the loop. */
void attempt_start(
    struct egress *, struct ipc_peer *, const struct ipc_net_connect *);
/* Ends all attempts of a net if `of` is NULL: connect(2) fails with
 * ENETUNREACH. Otherwise ends those of the connection `of` to peek, which is
 * gone, so they get no answer. */
void attempts_cancel(struct net *, struct ipc_peer *of);

#endif
