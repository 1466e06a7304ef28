/* Questions and decisions of the vault. */
#ifndef APPROVALS_H
#define APPROVALS_H

#include "job.h"
#include "op.h"

int approvals_message(
    struct link *, struct ipc_frame *); /* from the vault, APPROVAL_GET */
/* policies.c */
int policies_message(struct link *, struct ipc_frame *);
/* Asks the vault to approve a request by the sealed policy; next hears whether
 * it did (when not, a person will decide; that is no failure). */
void policies_approve(struct job *, const struct ipc_id *request,
    void (*next)(struct job *, bool approved));
/* Values under the master key, for its rotation (renew.c). */
int renew_message(struct link *, struct ipc_frame *);

#endif
