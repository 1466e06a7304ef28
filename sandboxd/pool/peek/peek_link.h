/*
 * peek's connection to sandboxd-egress, made by sandboxd and passed on by
 * pool-init (PEEK_LINK). There is at most one; egress may end and come back.
 */
#ifndef PEEK_LINK_H
#define PEEK_LINK_H

#include "ipc.h"
#include "peek_table.h"

struct peek_link {
	int fd;    /* -1: none; owned */
	bool open; /* egress' HELLO came */
	bool full; /* the socket's buffer is full: poll for POLLOUT */
};

/* Takes over fd, closes the earlier descriptor, and sends HELLO. */
void peek_link_set(struct peek_link *, int fd);
void peek_link_close(struct peek_link *, const char *why);
/* Asks egress. 0; 1: the socket is full, ask later; -1: the link was closed. */
int peek_link_ask(struct peek_link *, uint64_t request, uint64_t net,
    const struct peek_connect *);
/* Reads the next frame, NET_CONNECTED or NET_FAILED, which the caller frees. 1;
 * 0: none, or a HELLO; -1: the link was closed. */
int peek_link_read(struct peek_link *, struct ipc_frame *);

#endif
