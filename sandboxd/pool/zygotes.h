/*
 * The zygote that forks, and at most one other: the one that will replace it
 * once it reports, or the one it has replaced, until that one has answered its
 * FORKs. Runners are pool-init's children and outlive their zygote.
 *
 *	start	-> coming
 *	report	coming -> current, current -> leaving
 *	answer	the last one it owed: leaving -> closed, which ends it
 */
#ifndef ZYGOTES_H
#define ZYGOTES_H

#include <sys/types.h>

#include "err.h"
#include "slots.h"

struct zygote {
	int sock; /* -1: there is none */
	pid_t pid;
	unsigned serial;
	unsigned forking; /* FORKs it has not answered */
};

struct zygotes {
	struct zygote current, coming, leaving;
	unsigned serials; /* serials given so far */
	unsigned
	    /* the serial of the zygote that forks for a slot, or 0 */
	    asked[SLOTS_MAX];
};

void zygotes_init(struct zygotes *);
/*
 * Has another zygote started. A coming one that has not reported is given up
 * for it. While the former zygote still owes an answer none is started, so
 * there are never more than two. 0, or -1 with err: nothing else was changed.
 */
int zygotes_start(struct zygotes *, struct err *);
/* Notes that the current zygote was sent FORK for a slot. */
void zygotes_asked(struct zygotes *, uint32_t slot);
/* Notes that this zygote answered for a slot. -1: it was not asked. */
int zygotes_answered(struct zygotes *, struct zygote *, uint32_t slot);
/* Notes that this zygote reported. -1: it has before. */
int zygotes_reported(struct zygotes *, struct zygote *);
/* Drops a zygote whose socket broke. 0 if the others can go on: it was only
 * coming. */
int zygotes_gone(struct zygotes *, struct zygote *, const char *why);

#endif
