/*
 * UDP for a runner. The runner gets one end of a socketpair in place of its UDP
 * socket. egress carries each datagram between the other end and a connected
 * UDP socket of its own. With a real UDP socket of this network namespace a
 * runner could send to any other address.
 */
#ifndef RELAY_H
#define RELAY_H

#include "net.h"

enum { RELAY_DATAGRAM_MAX = 65535 };

/* Opens a relay for the connected socket udp, which is taken over even if this
 * fails. Returns the runner's end, which the caller passes on and closes; -1
 * with errno. */
int relay_open(struct net *, int udp, struct record *);
void relays_end(struct net *);

#endif
