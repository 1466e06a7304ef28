/*
 * One cgroup v2 leaf for each slot, which limits all processes of a call
 * together.
 *
 *	POOL		given by spawn, root of our cgroup namespace
 *	POOL/init	pool-init
 *	POOL/zygote	zygotes, with limits of their own
 *	POOL/slot-NNN	the runner of that slot, and all its processes
 *
 * A leaf is made when its slot is first used, and is kept, because making a
 * leaf costs the kernel more than a call does. Limits are written only if they
 * differ from the leaf's present ones. A leaf is used again only when no
 * process lives in it.
 *
 * cgroup.kill is rarely needed: SIGKILL to a runner, which is pid 1 of its
 * namespace, kills its whole tree. If a process lives in the leaf after that,
 * cgroup.kill ends it. Then the leaf is made again, because on kernel 6.1 every
 * process that clone3(2) puts into a cgroup that was once killed that way dies
 * at birth (decision 0012).
 *
 * Without a cgroup (cgroup_on is false) every function here does nothing and
 * succeeds.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "slots.h"

struct cgroup_limits {
	uint64_t memory_bytes; /* of all processes, files in /tmp, buffers */
	uint32_t processes;    /* and threads */
	uint32_t cpu_percent;  /* of one processor; 200 is two */
};

/* The cost of one use of a leaf. */
struct cgroup_usage {
	uint64_t memory_peak; /* bytes; 0: the kernel doesn't tell */
	uint64_t cpu_us;      /* user and system time */
	uint32_t oom_kills;   /* processes killed at the memory limit */
};

struct cgroup_leaf {
	int dir;                    /* -1: not made yet; owned */
	int peak;                   /* memory.peak, or -1 */
	bool resets;                /* memory.peak can be reset */
	struct cgroup_limits has;   /* as last written; zero: not yet */
	struct cgroup_usage before; /* counters when this use began */
	bool spent;                 /* killed: not to be used again */
};

struct cgroup {
	int pool, zygote; /* directories, or -1 */
	struct cgroup_leaf leaf[SLOTS_MAX];
};

/*
 * Takes over the pool's directory from descriptor fd, if spawn gave one: moves
 * this process to POOL/init, hands the controllers down, makes POOL/zygote.
 * Appends "call_cgroup=enforced", or degraded with the reason, or nothing if
 * there is no cgroup. The pool goes on in each case.
 */
void cgroup_start(struct cgroup *, int fd, struct buf *layers);
bool cgroup_on(const struct cgroup *);
/* Enters the zygotes' cgroup, in the zygote's process before the zygote's
 * program is executed. 0 or -1 with errno. */
int cgroup_enter_zygote(const struct cgroup *);
/*
 * Prepares a free slot's leaf for its next use with these limits. 0; 1 if the
 * leaf's directory is new; -1 with errno. EBUSY: a process still lives in the
 * leaf, and is being killed.
 */
int cgroup_take(struct cgroup *, uint32_t slot, const struct cgroup_limits *);
/* Returns the leaf's directory for clone3(2), borrowed; -1 without cgroups. */
int cgroup_dir(const struct cgroup *, uint32_t slot);
/* Sets other limits for the slot's present use. 0 or -1 with errno. */
int cgroup_limit(struct cgroup *, uint32_t slot, const struct cgroup_limits *);
/*
 * Ends the slot's present use, whose runner was reaped, and tells the cost of
 * the use (zeroes if unknown). If processes still live in the leaf, kills them
 * and returns true.
 */
bool cgroup_end(struct cgroup *, uint32_t slot, struct cgroup_usage *);

#endif
