/*
 * The cgroup v2 subtree of a pool, where the service manager delegated this
 * unit's cgroup with the memory, pids and cpu controllers. Version 1
 * hierarchies are never used.
 *
 *	UNIT			delegated: owned by this process's user
 *	UNIT/supervisor		spawn itself ("no internal processes")
 *	UNIT/pool		root of the pool's cgroup namespace, made anew
 *				for each pool; pool-init divides it
 */
#ifndef CGROUP_H
#define CGROUP_H

#include "buf.h"
#include "err.h"

/*
 * Moves this process to UNIT/supervisor and hands the three controllers down.
 * Appends the line "cgroup=enforced|degraded WHY" to layers: what carries
 * memory, processes and CPU; and "call_share=enforced|degraded WHY": what
 * divides the processors among calls. Returns UNIT's descriptor (O_CLOEXEC,
 * owned), or -1 where it is degraded: nothing was changed then that matters.
 */
int cgroup_enter(struct buf *layers);

/*
 * Removes what an earlier pool left (all its processes are reaped) and makes
 * UNIT/pool. Its descriptor, or -1 with err. unit: from cgroup_enter.
 */
int cgroup_renew(int unit, struct err *);

#endif
