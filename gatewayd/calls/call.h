/*
 * One tools/call, prompts/get or resources/read of a tool.
 */
#ifndef CALL_H
#define CALL_H

#include "exchange.h"

/* ex's message is such a call. Takes the exchange. */
void call_start(struct exchange *);
/* A legacy client's response. true: a call had asked for it. */
bool call_ask_response(struct exchange *);
/* DECIDED: a person did. 0, or -1: malformed. */
int call_decided(struct gateway *, struct ipc_frame *);
void call_drop_all(struct gateway *);
/* Its client closed the response: CANCEL (modern). */
void call_cancel(struct call *);
/* notifications/cancelled of this session and JSON-RPC id. */
void call_cancel_by_id(
    struct gateway *, const struct session *, struct ipc_bytes id);

#endif
