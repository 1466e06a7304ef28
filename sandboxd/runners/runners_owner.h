/*
 * One runner, as its owner sees it. The owner is a call or a compilation.
 * runners.h explains a runner's states and where runners come from.
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

/* A runner's owner. After `exited` or `lost` the pointer to the runner is
 * invalid. */
struct runner_owner {
	void (*exited)(void *owner, const struct ipc_exited *);
	void (*lost)(void *owner); /* the whole pool died */
	void (*limited)(void *owner, int error);
};

/* Gives the runner another owner. */
void runners_owner(struct runner *, const struct runner_owner *, void *arg);
/* Kills the runner's process tree when the owner needs the runner no longer.
 * `exited` or `lost` follows. */
void runners_end(struct runner *);
/* Does the same, but calls no function of the owner any more. */
void runners_discard(struct runner *);
/* Sets the limits of the runner's cgroup. Returns 0 if the runner has these
 * limits already or has no cgroup, 1 if `limited` will be called, or -1 if the
 * limits can't be set: then the runner must not run. */
int runners_limit(struct runner *, const struct pool_limits *);
/* Returns the zygote that forked the runner. */
uint64_t runners_zygote(const struct runner *);
/* Returns the generation of the runner's slot, by which peek and egress know
 * the runner. */
uint64_t runners_net(const struct runner *);

#endif
