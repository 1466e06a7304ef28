/*
 * What a running tool asks its client, and the answers as they come in. No
 * I/O: bytes in, bytes out.
 *
 * The questions come from sandboxd, the answers from a client; nothing of
 * either is believed beyond its form. What a client did not declare is never
 * asked: the tool gets an error for it at once. An answer that is none (wrong
 * type) counts as not given, keys nobody asked for are ignored.
 */
#ifndef QUESTIONS_H
#define QUESTIONS_H

#include "mcp_request.h"

enum {
	QUESTIONS_MAX = 16, /* as sandboxd's */
	QUESTION_KEY_MAX = 64,
	QUESTION_ID_LEN = 22 /* base64url of 16 random bytes */
};

struct questions;

/* json: CALL_EVENT's {key: {method, params}}. NULL: malformed, or no memory. */
struct questions *questions_new(uint32_t number, struct ipc_bytes json);
void questions_free(struct questions *);
uint32_t questions_number(const struct questions *);
/* How many still want an answer. */
unsigned questions_open(const struct questions *);

/* Answers what this client can't be asked with an error. declared: mask of
 * enum client_capability. */
void questions_declared(
    struct questions *, uint32_t declared, enum mcp_rev rev);
/* Answers all that are open with one error. */
void questions_fail(struct questions *, const char *message);
/* The modern wire: takes what a request's inputResponses answer. */
void questions_take(struct questions *, struct ipc_bytes input_responses);
/* {key: {method, params}} of the open ones. */
void questions_requests(const struct questions *, struct buf *out);
/*
 * The legacy wire: the i-th question as a JSON-RPC request with an id of its
 * own, unguessable, so that nobody answers for another. false: it is not
 * open, or there is no i-th (*end is set).
 */
bool questions_request(
    const struct questions *, unsigned i, struct buf *out, bool *end);
/* A response came: id as raw JSON, one of the two parts. true: it answered one
 * of these. */
bool questions_response(struct questions *, struct ipc_bytes id,
    struct ipc_bytes result, struct ipc_bytes error);
/* {key: {"result": ...} or {"error": ...}} for CALL_ANSWER; those that are
 * open are left out. */
void questions_answers(const struct questions *, struct buf *out);

#endif
