/*
 * What a runner takes from itself, in which order; and the fork that begins it.
 */
#ifndef CONFINEMENT_H
#define CONFINEMENT_H

#include "runner.h"

/*
 * Confines the runner: steps.c has the confinement as one list, in the only
 * order that works. On failure a CONFINE_FAILED frame was sent and -1 is
 * returned: the caller exits.
 */
int steps_run(struct runner *);

/*
 * Appends a line for each layer: the namespaces, then each step as runner-NAME.
 * failed NULL: all hold, as far as this Landlock ABI goes; otherwise the step
 * that failed and why, and those after it are not reached.
 */
void steps_layers(
    struct buf *, int landlock_abi, const char *failed, const char *why);

/* door.c: the way of a runner's listener to peek. */
void door_set(int fd); /* in the zygote; takes it */
/* Returns the door, or -1, closed, for a runner without network. In the child,
 * first of all. */
int door_of(const struct ipc_fork *);
/* Loads the network filter and hands its listener over. 0 or -1. */
int door_filter(struct runner *);

/* limits.c: resource limits. */
int limits_fixed(struct runner *); /* those that no call changes */
/* Sets the limits of one call. They are lowered only, so this needs no right
 * and works after all other steps. 0, or -1 with errno. */
int limits_call(const struct ipc_execute *, bool command);
/* The order in which the kernel kills when memory runs out: runners, then the
 * zygote, whose end is the pool's, long before any daemon. */
enum { LIMITS_OOM_RUNNER = 1000, LIMITS_OOM_ZYGOTE = 900 };
int limits_oom(struct runner *);
int limits_oom_zygote(struct err *);

/* privileges.c: ids and capabilities. */
int privileges_bounding(struct runner *);
int privileges_securebits(struct runner *);
int privileges_ids(struct runner *);
int privileges_drop(struct runner *);
int privileges_dumpable(struct runner *);
int privileges_no_new(struct runner *);
/* Leaves the zygote only the capabilities that the steps above need. */
int privileges_zygote(struct err *);

/* fsrules.c: Landlock. */
int fsrules_abi(void); /* 0: not in this kernel */
int fsrules_apply(struct runner *);

/* reseed.c: user-space random generators. */
/* Takes OpenSSL's generators down in the zygote, so that each child that draws
 * makes its own. 0 or -1. */
int reseed_none(struct err *);

/* Gives a runner guards of its own for stack and pointers (guards.c). Called by
 * a function that never returns. 0, or -1 with errno. */
int guards_renew(void);

/* fork.c: clone3(2) with all namespaces but the user namespace, as a sibling
 * of the zygote, in the slot's cgroup if there are any. 0 in the child, the
 * pid in the zygote with *pidfd set, or -1 with errno. */
int fork_setup(struct zygote *, struct err *);
pid_t fork_runner(const struct zygote *, uint32_t slot, int *pidfd);
/* Sets the cgroup of a slot from now on; takes the descriptor. 0 or -1. */
int fork_leaf(uint32_t slot, int directory);
int fork_cgroup(struct runner *); /* a step: its own cgroup namespace */

#endif
