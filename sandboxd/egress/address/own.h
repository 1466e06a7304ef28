/*
 * Finds out whether an address and port of this machine belong to a listener of
 * the suite itself. egress asks this at each connect, because no grant may open
 * a way from a tool to the processes that confine it, or to their database.
 */
#ifndef OWN_H
#define OWN_H

#include "address.h"
#include "err.h"
#include "netgrant.h"

struct own;

/* Opens the sources that own_serves reads. users: the suite's users, as
 * comma-separated names or numbers; names that this machine does not know are
 * ignored. NULL with why. */
struct own *own_open(const char *users, struct err *);
void own_close(struct own *);
/* Tells whether own_serves can read its sources at all. */
bool own_works(const struct own *);
/* Tells whether a listener of the suite serves this address and port. Also true
 * if the routing table or the listeners can't be read. */
bool own_serves(
    struct own *, enum netgrant_proto, const struct address *, uint16_t port);

#endif
