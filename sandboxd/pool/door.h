/*
 * peek, seen from pool-init: it is started with the pool, and its end is the
 * pool's end. The door is the socketpair by which runners hand it their
 * listeners; pool-init holds one end, for each new zygote.
 */
#ifndef DOOR_H
#define DOOR_H

#include <sys/types.h>

#include "buf.h"
#include "err.h"
#include "ipc.h"

struct door {
	pid_t pid; /* peek's */
	int peek;  /* the socket to it */
	int way;   /* the end that zygotes get */
};

/* Has the starter start peek, waits for its report, and appends the report's
 * lines to layers. 0; -1 with err: peek does not run, or a mandatory layer is
 * missing. */
int door_start(struct door *, struct buf *layers, struct err *);
/* Gives the door to a zygote, before it is asked for any runner. 0 or -1. */
int door_give(const struct door *, int zygote, struct err *);
/* Passes PEEK_LINK on to peek; its descriptor is neither read nor written. 0 or
 * -1. */
int door_link(const struct door *, struct ipc_frame *, struct err *);

#endif
