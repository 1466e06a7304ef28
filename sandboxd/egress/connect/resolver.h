/*
 * The name server of a runner, at one end of a socketpair. The runner gets the
 * other end when it connects to 127.0.0.1:53. The answers come from the net's
 * lists of hosts, and no other server is asked: egress looks up a name only
 * when a runner connects to the name.
 */
#ifndef RESOLVER_H
#define RESOLVER_H

#include "net.h"

/* Opens a name server. Returns the runner's end, which the caller passes on and
 * closes; -1 with errno: too many, or no memory. datagrams: for UDP, so each
 * packet is one message. */
int resolver_open(struct net *, bool datagrams);
void resolvers_end(struct net *);

#endif
