/* Questions and decisions of the vault. */
#ifndef APPROVALS_H
#define APPROVALS_H

#include "job.h"
#include "op.h"

int approvals_message(
    struct link *, struct ipc_frame *); /* the vault's messages, and
					 * APPROVAL_GET */
/* policies.c */
int policies_message(struct link *, struct ipc_frame *);
/* Asks the vault to approve a request by the sealed policy. next() receives
 * whether the vault approved the request. If it did not, a person decides,
 * which is not a failure. */
void policies_approve(struct job *, const struct ipc_id *request,
    void (*next)(struct job *, bool approved));
/* Handles the vault's requests during a rotation of the master key
 * (renew.c). */
int renew_message(struct link *, struct ipc_frame *);

#endif
