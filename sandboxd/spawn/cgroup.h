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
 * Appends two lines to layers. "cgroup=enforced|degraded WHY" names the
 * mechanism that limits memory, processes and CPU time of a call.
 * "call_share=enforced|degraded WHY" names the mechanism that divides the
 * processors among calls. Returns UNIT's descriptor (O_CLOEXEC, owned), or -1
 * if the line cgroup says degraded: then no controller was handed down.
 */
int cgroup_enter(struct buf *layers);

/*
 * Removes an earlier pool's subtree (all its processes are reaped) and makes
 * UNIT/pool. unit: from cgroup_enter. Returns the descriptor of UNIT/pool, or
 * -1 with err.
 */
int cgroup_renew(int unit, struct err *);

#endif
