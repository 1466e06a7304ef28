/*
 * The life of a runner and of the zygote.
 */
#ifndef LIFE_H
#define LIFE_H

#include "runner.h"

/* child.c: a runner's life, from the fork to its end. */
/* Sets the descriptors: the channel as 3, the output pipe, and the door
 * (door.c) as RUNNER_DOOR_FD. door may be -1. Closes all other descriptors. 0
 * or -1. */
int child_descriptors(int channel, int door);
/* Serves a call, from EXECUTE to RUN_RESULT. 0 or -1. rehearsing: all frames
 * are there already, but python_prepare() does the work that in a real call
 * fills the wait for ARGUMENTS. */
int child_serve(const struct runner *, enum runner_kind, bool rehearsing);
_Noreturn void child_main(const struct zygote *, const struct ipc_fork *);

/* Makes runners that get no call (trial.c), and appends a line for each layer.
 * 0, or -1 with the failed step, its errno and the fix in err. */
int trial_run(const struct zygote *, struct buf *layers, struct err *);

/* Makes the zygote's memory cheap to fork (snapshot.c). Called last, because
 * memory that is written later is copied at each fork. */
int snapshot_take(struct err *);

/* prefault.c: learns from rehearsed calls which pages each call writes, and
 * readies those pages before a call comes. prefault_prepare runs Python, so it
 * is called before the snapshot. If prefault_learn returns -1, runners work,
 * but are slower. */
int prefault_prepare(struct err *);
int prefault_learn(void);
/* Readies the pages in a runner that said READY. Returns when the call comes or
 * all pages are ready, and at once if the call has come. */
void prefault_while_idle(void);

#endif
