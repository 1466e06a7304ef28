/*
 * Making and ending a pool: one child in new user, pid, mount, network, IPC,
 * UTS and cgroup namespaces, which becomes mcpbox-pool-init.
 *
 * Inside the user namespace id 0 is spawn's own uid (mcpbox-pool, which no
 * other process has) and 1..count are the reserved range. No other id of the
 * host exists there. So no process in the pool can become another user of the
 * host, own that user's files or signal that user's processes.
 */
#ifndef NSPOOL_H
#define NSPOOL_H

#include <stdint.h>
#include <sys/types.h>

#include "err.h"

struct nspool_map {
	uid_t uid; /* host uid and gid of id 0 inside */
	gid_t gid;
	uint32_t base;  /* first host uid and gid of the runners */
	uint32_t count; /* how many: ids 1..count inside */
};

/* Arguments of pool-init, in this order, from the configuration. */
struct nspool_paths {
	const char *libexec, *modules, *commands;
};

struct nspool {
	pid_t pid;    /* 0: there is none */
	int pidfd;    /* of pool-init, owned; -1 if none */
	int liveness; /* our end of pool-init's fd 4; close ends the pool */
};

/*
 * Starts libexec/mcpbox-pool-init. *broker receives sandboxd's end of the
 * socket that pool-init holds as fd 3 (owned by the caller). cgroup: the
 * directory of the cgroup in which pool-init is born, or -1 for no cgroup;
 * pool-init gets the directory as fd 5. cgroup stays the caller's. 0, or -1 and
 * no child is left.
 */
int nspool_start(struct nspool *, const struct nspool_map *,
    const struct nspool_paths *, int cgroup, int *broker, struct err *);
/* Kills pool-init, and the kernel kills all other processes of the pool. The
 * pidfd becomes readable once pool-init may be reaped. Harmless if there is no
 * pool. */
void nspool_kill(struct nspool *);
/* Waits for pool-init's end, reaps it and forgets the pool. */
void nspool_reap(struct nspool *);

#endif
