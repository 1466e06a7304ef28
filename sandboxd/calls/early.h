/*
 * A runner got ready for a call that is held and not yet RUN.
 *
 * admind has a call held while its intent row is on its way to the disk. In
 * that time a waiting runner, if there is one to spare, is given what the call
 * may use and its code, compiled: it sets its limits and unpacks the code.
 * Arguments and secrets, behind which it starts, follow the RUN.
 *
 * Why this is safe:
 *  - Not a line of the tool's code runs before SECRETS (runner/child.c), and
 *    SECRETS are sent in one place (call.c), for a RUN that named this very
 *    execution at the right door with the right arguments. admind tells the
 *    id behind the commit; before that nobody can know it.
 *  - The code is out of the sealed context, which the vault made for this
 *    execution: of a version that it found approved. A runner that was given
 *    it has read nothing of the caller.
 *  - One whose call is refused, cancelled, burnt or too late is killed, as one
 *    that ran. It is never given to another call.
 *  - One that speaks, dies or closes its channel meanwhile is gone; the RUN
 *    takes another, as if there had been none.
 * A gateway that has calls authorised and never RUNs them can so keep as many
 * runners busy as there are processors, for EARLY_MS each: less than by
 * running them.
 */
#ifndef EARLY_H
#define EARLY_H

#include "call.h"

enum {
	/* From HELD to RUN is a commit and two hops, about 1 ms; under load
	 * some 100. Later than this the runner has better things to do. */
	EARLY_MS = 500
};

struct channel;

/* One was held: gets a runner ready for it, if one waits and nobody else
 * does. h: as long as it is held. */
void early_begin(struct calls *, struct held *);
/* It will not RUN: its runner, if it has one, is killed. */
void early_drop(struct calls *, const struct held *);
/*
 * It RUNs: its runner and channel, both the caller's, who gives them an owner
 * at once. *told: EXECUTE was sent; else `limited` is to come before it may
 * be. false: there is none.
 */
bool early_take(struct calls *, const struct held *, struct runner **,
    struct channel **, bool *told);
/* Those that waited too long. */
void early_sweep(struct calls *, uint64_t now_ms);
void early_free(struct calls *);

#endif
