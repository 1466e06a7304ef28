/*
 * Byte counts of TCP connections that were handed to runners. The kernel tells
 * a socket's counts by sock_diag(7) while the socket is open, and once more
 * when it is destroyed.
 */
#ifndef METER_H
#define METER_H

#include "net.h"

/* Opens the netlink sockets. A kernel without sock_diag gives a meter that
 * counts nothing (meter_works). NULL with why. */
struct meter *meter_open(struct egress *, struct err *);
void meter_close(struct meter *);
bool meter_works(const struct meter *);

/* Counts the bytes of this socket, which is connected or connecting, from now
 * on, for the net and for the record. The socket itself is not kept. */
void meter_add(struct net *, int sock, const struct address *remote,
    uint16_t port, struct record *);
/* Waits a little for the kernel's last counts of sockets that were just
 * destroyed, asks for all counts again, then calls done. If the net has no
 * sockets, calls done at once. */
void meter_finish(struct net *, void (*done)(struct net *));
void meter_forget(struct net *);

#endif
