/*
 * The questions of a running tool to its client, and the answers as they come
 * in. No I/O: bytes in, bytes out.
 *
 * The questions come from sandboxd, the answers from a client. Their form is
 * checked, and nothing else in them is trusted. A question that needs a
 * capability that the client did not declare is never asked: the tool gets an
 * error for it at once. An answer of the wrong type counts as not given
 * (modern), or the tool gets an error for it (legacy). Keys that were not asked
 * are ignored.
 */
#ifndef QUESTIONS_H
#define QUESTIONS_H

#include "mcp_request.h"

enum {
	QUESTIONS_MAX = 16, /* the same as in sandboxd */
	QUESTION_KEY_MAX = 64,
	QUESTION_ID_LEN = 22 /* base64url of 16 random bytes */
};

struct questions;

/* Reads json, CALL_EVENT's {key: {method, params}}. NULL: malformed, or no
 * memory. */
struct questions *questions_new(uint32_t number, struct ipc_bytes json);
void questions_free(struct questions *);
uint32_t questions_number(const struct questions *);
/* Returns the number of questions without an answer. */
unsigned questions_open(const struct questions *);

/* Answers with an error each question that this client can't be asked.
 * declared: mask of enum client_capability. */
void questions_declared(
    struct questions *, uint32_t declared, enum mcp_rev rev);
/* Answers all open questions with one error. */
void questions_fail(struct questions *, const char *message);
/* Takes the answers in a modern request's inputResponses. */
void questions_take(struct questions *, struct ipc_bytes input_responses);
/* Writes {key: {method, params}} of the open questions. */
void questions_requests(const struct questions *, struct buf *out);
/* For a legacy client: writes the i-th question as a JSON-RPC request with an
 * id of its own. The id is unguessable, so that no client can answer for
 * another client. false: the question is not open, or there is no i-th question
 * (*end is set). */
bool questions_request(
    const struct questions *, unsigned i, struct buf *out, bool *end);
/* Takes a response: id as raw JSON, and either result or error. true: it
 * answered one of these questions. */
bool questions_response(struct questions *, struct ipc_bytes id,
    struct ipc_bytes result, struct ipc_bytes error);
/* Writes {key: {"result": ...} or {"error": ...}} for CALL_ANSWER; open
 * questions are left out. */
void questions_answers(const struct questions *, struct buf *out);

#endif
