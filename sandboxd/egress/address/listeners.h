/*
 * Sockets of this network namespace that take connections or datagrams, with
 * the user of each: by sock_diag(7), which lists those alone, or, if the kernel
 * lacks it, from /proc/net. Both need no capability.
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

/* Is this listener the wanted one? bound may be the any address of its
 * family. */
typedef bool listeners_cb(void *arg, const struct address *bound, uid_t user);

/* Opens the sources that are read later. */
void listeners_open(struct listeners *);
void listeners_close(struct listeners *);
/* Can the sockets be listed at all? */
bool listeners_work(const struct listeners *);
/* Asks cb about each socket on that port. 1: cb said yes, 0: it did not, -1:
 * they can't be listed. */
int listeners_find(struct listeners *, enum netgrant_proto, uint16_t port,
    listeners_cb *, void *arg);
/* Does the same from /proc/net, whatever the kernel has: for the test. */
int listeners_find_proc(struct listeners *, enum netgrant_proto, uint16_t port,
    listeners_cb *, void *arg);

#endif
