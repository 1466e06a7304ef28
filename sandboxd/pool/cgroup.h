/*
 * One cgroup v2 leaf a slot, which binds all the processes of a call together.
 *
 *	POOL		given by spawn, root of our cgroup namespace
 *	POOL/init	pool-init
 *	POOL/zygote	zygotes, with limits of their own
 *	POOL/slot-NNN	the runner of that slot, and all it makes
 *
 * A leaf is made when its slot is first used and kept: making one costs the
 * kernel more than a call does. Its limits are written when they differ from
 * its present ones, and it is used again only when nothing lives in it.
 *
 * cgroup.kill is the backstop, not the rule: SIGKILL to a runner, which is pid
 * 1 of its namespace, takes its tree. cgroup.kill ends any process that lives
 * in the leaf after that, and then the leaf is made again: on kernel 6.1 every
 * process that clone3(2) puts into a cgroup once killed that way dies at birth
 * (decision 0012).
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
	uint32_t oom_kills;   /* processes killed for want of its memory */
};

struct cgroup_leaf {
	int dir;                    /* -1: not made yet; owned */
	int peak;                   /* memory.peak, or -1 */
	bool resets;                /* does it start again for each use? */
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
 * there is no cgroup. Never fails otherwise.
 */
void cgroup_start(struct cgroup *, int fd, struct buf *layers);
bool cgroup_on(const struct cgroup *);
/* Enters the zygotes' cgroup, in the zygote's process before it is executed. 0
 * or -1 with errno. */
int cgroup_enter_zygote(const struct cgroup *);
/*
 * Readies a free slot's leaf for its next use with these limits. 0; 1 if its
 * directory is a new one; -1 with errno: EBUSY if a process still lives in it,
 * which is killed.
 */
int cgroup_take(struct cgroup *, uint32_t slot, const struct cgroup_limits *);
/* Returns the leaf's directory for clone3(2), borrowed; -1 without cgroups. */
int cgroup_dir(const struct cgroup *, uint32_t slot);
/* Sets other limits for the use under way. 0 or -1 with errno. */
int cgroup_limit(struct cgroup *, uint32_t slot, const struct cgroup_limits *);
/*
 * Ends the use under way, whose runner was reaped, and tells its cost (zeroes
 * if unknown). SIGKILLs the processes that live in the leaf all the same; true
 * if there were any.
 */
bool cgroup_end(struct cgroup *, uint32_t slot, struct cgroup_usage *);

#endif
