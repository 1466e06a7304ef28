/*
 * Requests to the other two processes.
 */
#ifndef ASK_H
#define ASK_H

#include "web.h"

/* Asks. then(call, frame) runs with the final answer. A REFUSED is answered as
 * a problem instead, unless takes_refusals is set. If the client went away,
 * then() doesn't run. */
void ask_vault(struct call *, enum ipc_type, const void *msg,
    void (*then)(struct call *, struct ipc_frame *));
void ask_admind(struct call *, enum ipc_type, const void *msg,
    void (*then)(struct call *, struct ipc_frame *));

#endif
