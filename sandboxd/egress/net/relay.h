/*
 * UDP for a runner: one end of a socket pair in place of its socket, and a
 * connected UDP socket of ours, with datagrams carried between them one by
 * one. A real UDP socket of this network namespace could be connected or
 * sent from to anywhere else.
 */
#ifndef RELAY_H
#define RELAY_H

#include "net.h"

enum { RELAY_DATAGRAM_MAX = 65535 };

/* Takes over the connected socket, also when it fails. Returns the runner's
 * end, to be passed on and closed; -1 with errno. */
int relay_open(struct net *, int udp, struct record *);
void relays_end(struct net *);

#endif
