/*
 * Requests of the modern wire that were answered "input_required" and go on
 * here: the client calls again with the same parameters and the requestState it
 * was given, and that new request takes the place of the old one (MCP
 * 2026-07-28, multi round-trip requests).
 *
 * The owner keeps the waiting object: a call whose tool asked its client
 * (call_ask.c), a call that waits for a person's approval (call_confirm.c), or
 * a task (tasks.c). This file keeps the state of the conversation: which client
 * may go on with it, until when, and that each round is used once.
 *
 * requestState is base64url of
 *	u8 format 1, 16 bytes random id, u64be expiry (Unix ms), u32be round,
 *	32 bytes HMAC-SHA256
 * under HKDF(session key, "mcp-request-state"), over these bytes and all that
 * the request is bound to: listener, principal, method, name (or URI), SHA-256
 * of the arguments as sent. It conveys no authority, because the request that
 * brings it needs a credential, too. A thief can't use it as another principal.
 * A client that changes a byte or a parameter, or sends a requestState twice,
 * gets bad_state.
 */
#ifndef PARKED_H
#define PARKED_H

#include "exchange.h"

enum {
	PARKED_PLAIN_LEN = 1 + 16 + 8 + 4,
	PARKED_LEN = PARKED_PLAIN_LEN + 32,
	PARKED_TEXT_LEN = (PARKED_LEN * 4 + 2) / 3,
	/* Upper bounds on the parked requests of all principals together, and
	 * on those of one principal. sandboxd bounds parked runners (at most
	 * 128); PARKED_MAX bounds calls that wait for approval. */
	PARKED_MAX = 1024,
	PARKED_PRINCIPAL_MAX = 256
};

struct parked; /* one parked request */
struct parked_set;

/* The callbacks of the object that waits. They are called from the loop. */
struct parked_owner {
	/* A request of the same client came with a valid state, which is now
	 * used up. The owner takes the request, and answers it or parks it
	 * again. */
	void (*resume)(void *arg, struct exchange *);
	/* No request came back in time, or before the end of the credential of
	 * the last one, or parked_end was called. The struct
	 * parked was freed. Never called between resume and the next
	 * parked_state. */
	void (*expired)(void *arg);
	/* The process ends, and the struct parked was freed. The owner must not
	 * ask another process anything. NULL: other code frees the object that
	 * waits. */
	void (*dropped)(void *arg);
};

/* A digest of all that a request is bound to: equal for a retry of the same
 * request. */
struct parked_binding {
	struct ipc_hash of;
};

struct parked_set *parked_set_new(struct event_base *);
void parked_set_free(struct parked_set *); /* calls `dropped` */

/* Begins a conversation for ex's request. parked_answer makes its first
 * requestState. NULL with the reason in the refusal: too many requests wait,
 * there is no memory, or the session key has not come from admind yet. */
struct parked *parked_new(struct gateway *, const struct exchange *,
    const struct parked_owner *, void *arg, struct refusal *);
/* Writes the requestState of the next round, valid until expires_ms (Unix
 * time). The previous requestState is no longer valid. 0, or -1: no memory for
 * a timer. */
int parked_state(
    struct parked *, uint64_t expires_ms, char text[PARKED_TEXT_LEN + 1]);
/* Ends all conversations of a principal whose credential ended, because no
 * client will come back for them. An empty principal: those conversations whose
 * last request had this credential. Calls `expired` of each owner. */
void parked_end(struct gateway *, const struct ipc_hash *credential,
    struct ipc_bytes principal);
void parked_free(struct parked *); /* does not call `expired`; NULL is
				    * harmless */

/* Gives ex's request, which brings a requestState, to the owner. 0, or -1: the
 * state is forged, expired, used, or of another client or request. The refusal
 * tells the reason, and nothing else happened. */
int parked_resume(struct exchange *, struct refusal *);

/*
 * Answers ex with {resultType: "input_required", inputRequests, requestState}
 * and a new round's state. requests: an object {key: {method, params}}, or
 * n = 0: requestState only. ex is gone after this.
 */
void parked_answer(struct parked *, struct exchange *, uint64_t expires_ms,
    struct ipc_bytes requests);

#endif
