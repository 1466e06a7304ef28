/*
 * Questions of a tool to its client (MCP: elicitation, sampling, roots), and
 * the answers. Both sides are strangers: the questions come from a process with
 * the tool's code in it, the answers from the other end of a gateway. So both
 * are taken apart and written again. A client gets only questions of MCP's
 * three kinds, with known members and no secrets. The tool gets one answer for
 * each key that it asked, and no other.
 *
 * No I/O. Texts were accepted by json_scan before.
 */
#ifndef ASK_H
#define ASK_H

#include "err.h"
#include "redact.h"

enum {
	/* The most questions in one ASK, and the most bytes of a key: one
	 * person reads all questions in a form. */
	ASK_QUESTIONS_MAX = 16,
	ASK_KEY_MAX = 64,
	/* The most ASKs of one call: enough for a conversation. */
	ASK_CALL_MAX = 64,
	/* JSON-RPC codes of errors that sandboxd answers itself. PARAMS: the
	 * question can't be asked. NO_ANSWER: no time, no room or no client. */
	ASK_CODE_PARAMS = -32602,
	ASK_CODE_NO_ANSWER = -32603
};

/*
 * Writes {key: {method, params}} as it goes to the client. The caller
 * initialises out with its maximum. 0. 1: a question can't be asked, and err
 * says why, for the tool's author. -1: the text is no ASK; our harness never
 * sends such a text.
 */
int ask_take(
    struct ipc_bytes text, struct redact *, struct buf *out, struct err *);

/* Writes {key: {"result": ...} or {"error": ...}} for each key of the questions
 * (an object with the same keys), as it goes to the tool: the key's answer in
 * `answers`, or an error if there is none. */
void ask_answers(
    struct ipc_bytes questions, struct ipc_bytes answers, struct buf *out);

/* Does the same with one error for all keys. */
void ask_refuse(
    struct ipc_bytes questions, int code, const char *message, struct buf *out);

#endif
