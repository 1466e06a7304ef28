/*
 * Byte counts of TCP connections that are no longer ours: the kernel tells the
 * counts of each by sock_diag(7) while it is open, and once more when it goes.
 */
#ifndef METER_H
#define METER_H

#include "net.h"

/* Opens the netlink sockets. A kernel without sock_diag gives a meter that
 * counts nothing (meter_works). NULL with why. */
struct meter *meter_open(struct egress *, struct err *);
void meter_close(struct meter *);
bool meter_works(const struct meter *);

/* Counts this socket, which is connected or connecting, from now on, for the
 * net and its record. The socket itself is not kept. */
void meter_add(struct net *, int sock, const struct address *remote,
    uint16_t port, struct record *);
/* Counts once more, waits a little for the kernel's last counts of sockets that
 * just went, then calls done. */
void meter_finish(struct net *, void (*done)(struct net *));
void meter_forget(struct net *);

#endif
