/*
 * The order in which a runner gives up its rights, and the fork that begins the
 * runner.
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
 * failed NULL: all steps succeeded, so every layer that this Landlock ABI has
 * is reported as enforced. Otherwise failed is the step that failed, and why
 * says the reason. The later steps are reported as not reached.
 */
void steps_layers(
    struct buf *, int landlock_abi, const char *failed, const char *why);

/* door.c: the socket by which a runner hands its listener to peek. */
void door_set(int fd); /* in the zygote; takes ownership of fd */
/* Returns the door. For a runner without network: closes the door and returns
 * -1. The child calls this at its start. */
int door_of(const struct ipc_fork *);
/* Loads the network filter and hands its listener over. 0 or -1. */
int door_filter(struct runner *);

/* limits.c: resource limits. */
int limits_fixed(struct runner *); /* the limits that no call changes */
/* Sets the limits of one call. Limits are only lowered, so this needs no
 * privilege and works after all other steps. 0, or -1 with errno. */
int limits_call(const struct ipc_execute *, bool command);
/* Scores that make the kernel kill runners first when memory runs out, then the
 * zygote, and both long before any daemon. The zygote's end ends the pool. */
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
/* Leaves the zygote only the capabilities that the steps of its runners
 * need. */
int privileges_zygote(struct err *);

/* fsrules.c: Landlock. */
int fsrules_abi(void); /* 0: this kernel has no Landlock */
int fsrules_apply(struct runner *);

/* reseed.c: user-space random generators. */
/* Takes OpenSSL's generators down in the zygote, so that each child makes its
 * own when it first draws random bytes. 0 or -1. */
int reseed_none(struct err *);

/* Gives a runner its own stack guard and pointer guard (guards.c). The function
 * that calls this must never return. 0, or -1 with errno. */
int guards_renew(void);

/* fork.c. Prepares the zygote for fork_runner. 0 or -1. */
int fork_setup(struct zygote *, struct err *);
/* Forks a runner by clone3(2) with new namespaces of all kinds but the user
 * namespace, as a sibling of the zygote, in the slot's cgroup if there are
 * cgroups. 0 in the child; in the zygote the pid with *pidfd set, or -1 with
 * errno. */
pid_t fork_runner(const struct zygote *, uint32_t slot, int *pidfd);
/* Sets the cgroup of a slot from now on; takes ownership of directory. 0, or -1
 * with errno. */
int fork_leaf(uint32_t slot, int directory);
int fork_cgroup(struct runner *); /* a step: makes its cgroup namespace */

#endif
