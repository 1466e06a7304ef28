/* Contexts: sealed at the vault, held by the sandbox, cancelled there. */
#ifndef HOLD_H
#define HOLD_H

#include "admind.h"

/* The outcome of sealing a context at the vault and of holding it at sandboxd.
 * err is NULL on success. Otherwise sandboxd was told to drop the context. */
typedef void hold_cb(void *arg, const struct err *err);
/*
 * Seals material at the vault and lets sandboxd hold the context. cb comes
 * after hold_go(). The caller may call hold_go() only once the intent row is
 * committed, since a success that cb gets lets the context run. A failure comes
 * through cb, too, perhaps from inside hold_go(). hold_drop() takes the place
 * of hold_go() if there is no row that sandboxd could answer for. sandboxd then
 * forgets the context without a record, and cb is not called (hold_drop(NULL)
 * does nothing). NULL: no memory.
 */
struct hold;
struct hold *hold_seal(struct admind *, const struct ipc_id *execution,
    const struct ipc_id *epoch, enum listener, enum context_kind,
    struct ipc_bytes material, hold_cb *cb, void *arg);
/*
 * hold_wait(), right after hold_seal(), makes the sealed context wait for
 * hold_may(). hold_may() passes the part of the arguments that records keep,
 * because the context was sealed without that part.
 */
void hold_wait(struct hold *);
void hold_may(struct hold *, struct ipc_bytes arguments);
void hold_go(struct hold *);
void hold_drop(struct hold *);
/* Does hold_seal() and hold_go() if the intent row is committed already. */
void hold_start(struct admind *, const struct ipc_id *execution,
    const struct ipc_id *epoch, enum listener, enum context_kind,
    struct ipc_bytes material, hold_cb *cb, void *arg);
/* Sends CANCEL to sandboxd, if it is connected. FAILURE_NONE: the execution has
 * no row. */
void hold_cancel(struct admind *, const struct ipc_id *execution, enum failure);

#endif
