/*
 * The life of a runner and of the zygote.
 */
#ifndef LIFE_H
#define LIFE_H

#include "runner.h"

/* child.c: a runner's life, from the fork to its end. */
/* Sets the descriptors: the channel as 3, the output pipe, the door (or -1) as
 * RUNNER_DOOR_FD, no others. 0 or -1. */
int child_descriptors(int channel, int door);
/* Serves a call, from EXECUTE to RUN_RESULT. 0 or -1. rehearsing: all its
 * frames are there, but the work during the wait for them is done all the
 * same. */
int child_serve(const struct runner *, enum runner_kind, bool rehearsing);
_Noreturn void child_main(const struct zygote *, const struct ipc_fork *);

/* Makes one runner that gets no call (trial.c), and appends which layers hold.
 * 0, or -1 with the step, its errno and the fix in err. */
int trial_run(const struct zygote *, struct buf *layers, struct err *);

/* Makes the zygote's memory cheap to fork (snapshot.c). Called last: memory
 * written after it is copied at each fork. */
int snapshot_take(struct err *);

/* prefault.c: finds the pages that each call writes by trying, and readies them
 * before the call comes. Learning fails without harm; -1 says so. */
int prefault_prepare(struct err *); /* before the snapshot: it runs Python */
int prefault_learn(void);
/* Readies the pages in a runner that said READY. Returns when the call comes or
 * all is done, at once if the call has come. */
void prefault_while_idle(void);

#endif
