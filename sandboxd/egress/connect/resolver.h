/*
 * The name server of a runner: one end of a socket pair, whose other end its
 * resolver believes to be 127.0.0.1:53. It answers from the lists of the net
 * and asks no other server: a name is looked up when a runner connects to it.
 */
#ifndef RESOLVER_H
#define RESOLVER_H

#include "net.h"

/* Opens one. Returns the runner's end, to be passed on and closed. datagrams:
 * for UDP, one message a packet. -1 with errno: too many, or no memory. */
int resolver_open(struct net *, bool datagrams);
void resolvers_end(struct net *);

#endif
