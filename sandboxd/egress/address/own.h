/*
 * Is this address and port a listener of the suite itself? Asked of addresses
 * of this machine only, at each connect: no grant opens a way from a tool to
 * the processes that confine it, or to their database.
 */
#ifndef OWN_H
#define OWN_H

#include "address.h"
#include "err.h"
#include "netgrant.h"

struct own;

/* Opens the sources that are read later. users: comma-separated names or
 * numbers; names that this machine does not know are passed over. NULL with
 * why. */
struct own *own_open(const char *users, struct err *);
void own_close(struct own *);
/* Could listeners be read at all? */
bool own_works(const struct own *);
/* Is it one of ours? True also if the address is this machine's and the
 * listeners can't be read. */
bool own_serves(
    struct own *, enum netgrant_proto, const struct address *, uint16_t port);

#endif
