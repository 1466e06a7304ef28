/*
 * What pool-init does once, before it listens: its mount namespace, the ban
 * on further user namespaces, the zygote, and giving up what it no longer
 * needs.
 */
#ifndef SETUP_H
#define SETUP_H

#include <sys/types.h>

#include "buf.h"
#include "cgroup.h"
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
/* settings: pool-init's arguments: libexec directory, module store, commands.
 * Starts mcpbox-runner of that directory with the other two, in the zygotes'
 * cgroup if there is one, with one end of a socketpair on fd 3, standard error
 * and nothing else. *sock is ours (CLOEXEC), *pid its process. */
int setup_zygote(const struct cgroup *, char *const settings[3], int *sock,
    pid_t *pid, struct err *);
/* Keeps CAP_KILL alone; no_new_privs; not dumpable. */
int setup_drop(struct buf *layers, struct err *);

#endif
