/*
 * Calls: tools/call, prompts/get and resources/read.
 */
#ifndef CALL_H
#define CALL_H

#include "exchange.h"

/* Starts the call that the exchange's message asks for. Takes over the
 * exchange. */
void call_start(struct exchange *);
/* Takes a legacy client's response. true: a call had asked for it. */
bool call_ask_response(struct exchange *);
/* Takes DECIDED, which says that a person decided. 0, or -1 if it is
 * malformed. */
int call_decided(struct gateway *, struct ipc_frame *);
void call_drop_all(struct gateway *);
/* Cancels a call, as a modern client does by closing the response. */
void call_cancel(struct call *);
/* Cancels the call with this JSON-RPC id of this session, for
 * notifications/cancelled. */
void call_cancel_by_id(
    struct gateway *, const struct session *, struct ipc_bytes id);

#endif
