/*
 * pool-init's work before it listens: its mount namespace, the ban on further
 * user namespaces, and giving up the rights it no longer needs.
 */
#ifndef SETUP_H
#define SETUP_H

#include "buf.h"
#include "err.h"

/* Fixed descriptors of pool-init and of the zygote (docs/PROTOCOL.md). */
enum {
	SETUP_BROKER_FD = 3,
	SETUP_LIVENESS_FD = 4,
	SETUP_CGROUP_FD = 5, /* closed if there is no cgroup */
	SETUP_ZYGOTE_FD = 3
};

/* Makes mounts private, mounts a new proc, sets max_user_namespaces = 0.
 * Appends "name=state" lines to layers. 0 or -1. */
int setup_namespaces(struct buf *layers, struct err *);
/* Drops all capabilities but CAP_KILL, sets no_new_privs, and makes this
 * process not dumpable. Appends a line to layers. 0 or -1. */
int setup_drop(struct buf *layers, struct err *);

#endif
