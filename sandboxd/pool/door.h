/*
 * pool-init's side of peek. peek is started with the pool, and if peek ends,
 * the pool ends. The door is the socketpair by which runners hand their
 * listeners to peek. pool-init keeps the runners' end and gives it to each new
 * zygote.
 */
#ifndef DOOR_H
#define DOOR_H

#include <sys/types.h>

#include "buf.h"
#include "err.h"
#include "ipc.h"

struct door {
	pid_t pid; /* peek's */
	int peek;  /* the socket to peek */
	int way;   /* the end of the door that zygotes get */
};

/* Lets the starter start peek, waits for peek's report, and appends the
 * report's lines to layers. 0; -1 with err: peek does not run, or a mandatory
 * layer is missing. */
int door_start(struct door *, struct buf *layers, struct err *);
/* Gives the door to a zygote. Must come before the first FORK. 0 or -1. */
int door_give(const struct door *, int zygote, struct err *);
/* Passes PEEK_LINK on to peek, and closes its descriptor, which is neither read
 * nor written here. 0 or -1. */
int door_link(const struct door *, struct ipc_frame *, struct err *);

#endif
