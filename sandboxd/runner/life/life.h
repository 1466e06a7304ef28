/*
 * The life of a runner and of the zygote.
 */
#ifndef LIFE_H
#define LIFE_H

#include "runner.h"

/* child.c: a runner's life, from the fork to its end. */
/* The channel as descriptor 3, the output pipe, the door (or -1) as
 * RUNNER_DOOR_FD, nothing else. 0 or -1. */
int child_descriptors(int channel, int door);
/* A call, from EXECUTE to RUN_RESULT. 0 or -1. rehearsing: all its frames are
 * there; what is done while they are awaited is done all the same. */
int child_serve(const struct runner *, enum runner_kind, bool rehearsing);
_Noreturn void child_main(const struct zygote *, const struct ipc_fork *);

/* trial.c: makes one runner that gets no call, and appends which layers hold.
 * 0, or -1 with the step, its errno and the fix in err. */
int trial_run(const struct zygote *, struct buf *layers, struct err *);

/* snapshot.c: makes the zygote's memory cheap to fork. Last of all: what is
 * written after it is copied at each fork. */
int snapshot_take(struct err *);

/* prefault.c: which pages each call writes, found out by trying, and had ready
 * before the call is there. Learning fails without harm; -1 says so. */
int prefault_prepare(struct err *); /* before the snapshot: it runs Python */
int prefault_learn(void);
/* In a runner that said READY: returns when the call is there or all is done,
 * at once if the call came at once. */
void prefault_while_idle(void);

#endif
