/* Contexts: sealed at the vault, held by the sandbox, cancelled there. */
#ifndef HOLD_H
#define HOLD_H

#include "admind.h"

/*
 * Seals material at the vault and has sandboxd hold it. cb(arg, NULL) on
 * success; with err otherwise, and then sandboxd was told to drop it.
 */
typedef void hold_cb(void *arg, const struct err *err);
/*
 * The same in two steps: seal and hold now; cb comes behind hold_go(), which
 * the caller may say only once the intent row is committed, since what cb
 * tells lets it run. hold_drop() instead: there is no row that sandboxd could
 * answer for, so it forgets the context without a record; cb is not called
 * (NULL is harmless). A failure is told by cb behind hold_go(), perhaps from
 * inside it. NULL without memory.
 */
struct hold;
struct hold *hold_seal(struct admind *, const struct ipc_id *execution,
    const struct ipc_id *epoch, enum listener, enum context_kind,
    struct ipc_bytes material, hold_cb *cb, void *arg);
/*
 * Right behind hold_seal(): what is sealed waits for hold_may(), which gives
 * what records keep of the arguments, of an intent that was sealed without it.
 */
void hold_wait(struct hold *);
void hold_may(struct hold *, struct ipc_bytes arguments);
void hold_go(struct hold *);
void hold_drop(struct hold *);
void hold_start(struct admind *, const struct ipc_id *execution,
    const struct ipc_id *epoch, enum listener, enum context_kind,
    struct ipc_bytes material, hold_cb *cb, void *arg);
/* CANCEL to sandboxd, if it is there. FAILURE_NONE: it has no row. */
void hold_cancel(struct admind *, const struct ipc_id *execution, enum failure);

#endif
