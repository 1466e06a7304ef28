/*
 * What pool-init does once, before it listens: its mount namespace, the ban
 * on further user namespaces, and giving up what it no longer needs.
 */
#ifndef SETUP_H
#define SETUP_H

#include "buf.h"
#include "err.h"

/* Fixed descriptors of pool-init and of the zygote (docs/PROTOCOL.md). */
enum {
	SETUP_BROKER_FD = 3,
	SETUP_LIVENESS_FD = 4,
	SETUP_CGROUP_FD = 5, /* closed where there is no cgroup */
	SETUP_ZYGOTE_FD = 3
};

/* Private mounts, an own proc, max_user_namespaces = 0. Appends
 * "name=state" lines to layers. 0 or -1. */
int setup_namespaces(struct buf *layers, struct err *);
/* Keeps CAP_KILL alone; no_new_privs; not dumpable. */
int setup_drop(struct buf *layers, struct err *);

#endif
