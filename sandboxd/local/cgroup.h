/*
 * A cgroup for one run, where the user was given a part of the tree (cgroup
 * version 2), as systemd gives its users. Without one, rlimits are used.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdbool.h>

#include "plan.h"

struct cgroup {
	char path[PLAN_PATH_MAX]; /* "": none */
	int fd;                   /* for CLONE_INTO_CGROUP; owned; or -1 */
};

/* Makes the cgroup and sets its limits. Returns whether there is one;
 * a machine without cgroups is not an error. */
bool cgroup_make(struct cgroup *, const struct plan *);
/* Removes the cgroup, whose processes have ended. */
void cgroup_remove(struct cgroup *);

#endif
