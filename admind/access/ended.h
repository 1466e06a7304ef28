/*
 * The end of a credential or of a principal: its jobs are refused at their next
 * step, its calls at the sandbox are killed (also those of tasks), and gateways
 * drop all that they hold for it.
 */
#ifndef ENDED_H
#define ENDED_H

#include "op.h"

struct compiled;

/* Marks the jobs of a principal: each is refused at its next step. */
void ended_jobs(struct admind *, const char *principal);
/* Ends the jobs and runs of clients of each endpoint that loses anything by a
 * new document, or that is gone. Either may be NULL. */
void ended_endpoints(
    struct admind *, const struct compiled *from, const struct compiled *to);
/* Cancels the open runs of these principals, in this node's sandbox. The
 * elements are texts; the array is the caller's. */
void ended_runs(struct admind *, struct db_array *principals);
void ended_runs_of(struct admind *, const char *principal);
/*
 * Asks every connected gateway to drop a credential (CREDENTIAL_ENDED). zero
 * credential: every one of the principal's. Empty principal: only the time of
 * this credential is over, so calls under way go on. cb runs when each gateway
 * has answered or is late; NULL: no call.
 */
struct ended_told {
	unsigned gateways, late;
};
typedef void ended_told_cb(void *arg, const struct ended_told *);
void ended_tell(struct admind *, const struct ipc_hash *credential,
    const char *principal, ended_told_cb *, void *arg);

#endif
