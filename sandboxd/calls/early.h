/*
 * Runners that are made ready for calls that are held and not yet RUN.
 *
 * admind sends HELD for a call before the call's intent row is on the disk.
 * Until RUN comes, a waiting runner, if there is one to spare, is given the
 * call's limits and its code, compiled if possible. The runner sets the limits
 * and unpacks the code. Arguments and secrets are sent after RUN; only then the
 * tool starts.
 *
 * Why this is safe:
 *  - Not a line of the tool's code runs before SECRETS (life/child.c). SECRETS
 *    are sent in one place (call.c), for a RUN that named this very execution
 *    on the right listener with the right arguments. admind tells the
 *    execution's id after the commit; before that no gateway can know it.
 *  - The code comes from the sealed context, which the vault made for this
 *    execution from a version that the vault found approved. A runner that was
 *    given the code has read nothing that the caller sent.
 *  - A runner whose call is refused or cancelled, or does not RUN in time, is
 *    killed like a runner that had a call. It is never given to another call.
 *  - A runner that sends something, dies or closes its channel before RUN is
 *    dropped. RUN then takes another runner, as if none had been made ready.
 * So a gateway that has calls authorised and never RUNs them can keep as many
 * runners busy as there are processors, for EARLY_MS each. By running the calls
 * it could keep more runners busy.
 */
#ifndef EARLY_H
#define EARLY_H

#include "call.h"

enum {
	/* Between HELD and RUN there are a commit and two messages: about 1 ms,
	 * under load some 100 ms. A runner is not kept ready for longer. */
	EARLY_MS = 500
};

struct channel;

/* Makes a runner ready for a held context, if a runner waits that no other call
 * needs. h must live until early_take or early_drop. */
void early_begin(struct calls *, struct held *);
/* Kills the runner, if there is one, of a context that will not be RUN. */
void early_drop(struct calls *, const struct held *);
/*
 * Hands over the runner and the channel of a context that is RUN. The caller
 * owns them and must set their owner at once. *told: EXECUTE was sent; if not,
 * the runner's event `limited` is still to come, and the caller then sends
 * EXECUTE. false: no runner is ready.
 */
bool early_take(struct calls *, const struct held *, struct runner **,
    struct channel **, bool *told);
/* Drops the runners that waited too long. */
void early_sweep(struct calls *, uint64_t now_ms);
void early_free(struct calls *);

#endif
