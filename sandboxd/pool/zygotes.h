/*
 * The current zygote, which forks, and at most one other. The other is a coming
 * zygote, which will replace the current one when it reports, or a leaving one,
 * which was replaced and still has FORKs to answer. Runners are pool-init's
 * children and outlive their zygote.
 *
 *	start	-> coming
 *	report	coming -> current, current -> leaving
 *	answer	to the last FORK: leaving -> closed, and so it ends
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
	unsigned forking; /* FORKs that it has not answered */
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
 * Lets the starter start another zygote. An earlier coming zygote, which did
 * not report, is given up first. While there is a leaving zygote, no zygote is
 * started, so there are never more than two. 0, or -1 with err: no zygote was
 * started.
 */
int zygotes_start(struct zygotes *, struct err *);
/* Notes that the current zygote was sent FORK for a slot. */
void zygotes_asked(struct zygotes *, uint32_t slot);
/* Notes that this zygote answered for a slot. 0, or -1: it was not asked. */
int zygotes_answered(struct zygotes *, struct zygote *, uint32_t slot);
/* Makes a coming zygote, which reported, the current one. 0, or -1: the zygote
 * is not coming, so it reported before. */
int zygotes_reported(struct zygotes *, struct zygote *);
/* Drops a coming zygote whose socket broke. 0, or -1 if the pool can't go on:
 * the zygote is not coming, or there is no current one. */
int zygotes_gone(struct zygotes *, struct zygote *, const char *why);

#endif
