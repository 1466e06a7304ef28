/*
 * Finds the sockets of this network namespace that take connections or
 * datagrams, with the user of each. They are listed by sock_diag(7) or, if the
 * kernel lacks it, read from /proc/net. Neither needs a capability.
 */
#ifndef LISTENERS_H
#define LISTENERS_H

#include <sys/types.h>

#include "address.h"
#include "buf.h"
#include "netgrant.h"

enum { LISTENERS_TABLES = 4 };

struct listeners {
	int diag;
	int table[LISTENERS_TABLES];
	struct buf text;
};

/* Tells whether this listener is the wanted one. bound may be 0.0.0.0 or ::. */
typedef bool listeners_cb(void *arg, const struct address *bound, uid_t user);

/* Opens the sources that are read later. */
void listeners_open(struct listeners *);
void listeners_close(struct listeners *);
/* Tells whether the sockets can be listed at all. */
bool listeners_work(const struct listeners *);
/* Asks cb about each socket on this port. 1: cb returned true, 0: cb never did,
 * -1: the sockets can't be listed. */
int listeners_find(struct listeners *, enum netgrant_proto, uint16_t port,
    listeners_cb *, void *arg);
/* Does the same from /proc/net only, for the test. */
int listeners_find_proc(struct listeners *, enum netgrant_proto, uint16_t port,
    listeners_cb *, void *arg);

#endif
