/*
 * Requests to the other two processes.
 */
#ifndef ASK_H
#define ASK_H

#include "web.h"

/* Asks a daemon. then(call, frame) runs with the final answer. If that is
 * REFUSED, the client gets a problem instead, unless takes_refusals is set. If
 * the client went away, then() doesn't run. */
void ask_vault(struct call *, enum ipc_type, const void *msg,
    void (*then)(struct call *, struct ipc_frame *));
void ask_admind(struct call *, enum ipc_type, const void *msg,
    void (*then)(struct call *, struct ipc_frame *));

#endif
