/*
 * A runner got ready for a call that is held and not yet RUN.
 *
 * admind has a call held while its intent row is on its way to the disk. In
 * that time a waiting runner, if there is one to spare, is given the call's
 * limits and its code, compiled: it sets its limits and unpacks the code.
 * Arguments and secrets, after which the tool starts, follow the RUN.
 *
 * Why this is safe:
 *  - Not a line of the tool's code runs before SECRETS (runner/child.c), and
 *    SECRETS are sent in one place (call.c), for a RUN that named this very
 *    execution at the right door with the right arguments. admind tells the id
 *    after the commit; before that no gateway can know it.
 *  - The code is out of the sealed context, which the vault made for this
 *    execution: of a version that it found approved. A runner that was given
 *    the code has read nothing of the caller.
 *  - A runner whose call is refused, cancelled, burnt or too late is killed, as
 *    one that ran. It is never given to another call.
 *  - A runner that speaks, dies or closes its channel before the RUN is gone;
 *    the RUN takes another, as if there had been none.
 * So a gateway that has calls authorised and never RUNs them can keep as many
 * runners busy as there are processors, for EARLY_MS each: less than by running
 * them.
 */
#ifndef EARLY_H
#define EARLY_H

#include "call.h"

enum {
	/* From HELD to RUN is a commit and two hops, about 1 ms; under load
	 * some 100. After this time the runner is better used elsewhere. */
	EARLY_MS = 500
};

struct channel;

/* Gets a runner ready for a held context, if one waits and no other call needs
 * it. h must live as long as it is held. */
void early_begin(struct calls *, struct held *);
/* Kills the runner, if there is one, of a context that will not RUN. */
void early_drop(struct calls *, const struct held *);
/*
 * Hands over the runner and channel of a context that RUNs. Both become the
 * caller's, who gives them an owner at once. *told: EXECUTE was sent; otherwise
 * `limited` comes first. false: there is none.
 */
bool early_take(struct calls *, const struct held *, struct runner **,
    struct channel **, bool *told);
/* Drops the runners that waited too long. */
void early_sweep(struct calls *, uint64_t now_ms);
void early_free(struct calls *);

#endif
