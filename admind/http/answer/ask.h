/*
 * Requests to the other two processes.
 */
#ifndef ASK_H
#define ASK_H

#include "web.h"

/* then(call, frame) runs with the final answer unless it is REFUSED, which is
 * answered as a problem. If the client went away it doesn't run. */
void ask_vault(struct call *, enum ipc_type, const void *msg,
    void (*then)(struct call *, struct ipc_frame *));
void ask_admind(struct call *, enum ipc_type, const void *msg,
    void (*then)(struct call *, struct ipc_frame *));

#endif
