/*
 * One runner, as its owner sees it: a call, or a compilation. runners.h has its
 * states and says where it comes from.
 */
#ifndef RUNNERS_OWNER_H
#define RUNNERS_OWNER_H

#include "ipc.h"
#include "pool.h"

struct runner;

enum runner_state {
	RUNNER_NEW,
	RUNNER_FORKING,
	RUNNER_READY,
	RUNNER_TAKEN,
	RUNNER_ENDING,
	RUNNER_GONE
};

/* A runner's owner. `exited` and `lost` end the runner: the pointer is invalid
 * after them. */
struct runner_owner {
	void (*exited)(void *owner, const struct ipc_exited *);
	void (*lost)(void *owner); /* with its whole pool */
	void (*limited)(void *owner, int error);
};

/* Gives the runner another owner. */
void runners_owner(struct runner *, const struct runner_owner *, void *arg);
/* Kills the runner's tree when its owner is done. `exited` or `lost`
 * follows. */
void runners_end(struct runner *);
/* Does the same, and the owner hears nothing more of the runner. */
void runners_discard(struct runner *);
/* Sets the limits of the runner's cgroup. 0 if they are those it was forked
 * with, 1 if `limited` will come, -1 if they can't be set: then it must not
 * run. */
int runners_limit(struct runner *, const struct pool_limits *);
/* Returns the zygote that forked the runner. */
uint64_t runners_zygote(const struct runner *);
/* Returns the generation of the runner's slot, by which peek and egress know
 * it. */
uint64_t runners_net(const struct runner *);

#endif
