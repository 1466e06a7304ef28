/*
 * The cgroup v2 subtree of a pool, if the service manager delegated this unit's
 * cgroup with the memory, pids and cpu controllers. Version 1 hierarchies are
 * never used.
 *
 *	UNIT			delegated: owned by this process's user
 *	UNIT/supervisor		spawn itself ("no internal processes")
 *	UNIT/pool		root of the pool's cgroup namespace, made again
 *				for each pool; pool-init divides it
 */
#ifndef CGROUP_H
#define CGROUP_H

#include "buf.h"
#include "err.h"

/*
 * Moves this process to UNIT/supervisor and hands the three controllers down.
 * Appends two lines to layers: "cgroup=enforced|degraded WHY" says what carries
 * memory, processes and CPU, and "call_share=enforced|degraded WHY" what
 * divides the processors among calls. Returns UNIT's descriptor (O_CLOEXEC,
 * owned), or -1 if it is degraded: then nothing that matters was changed.
 */
int cgroup_enter(struct buf *layers);

/*
 * Removes an earlier pool's subtree (all its processes are reaped) and makes
 * UNIT/pool. unit: from cgroup_enter. Returns its descriptor, or -1 with err.
 */
int cgroup_renew(int unit, struct err *);

#endif
