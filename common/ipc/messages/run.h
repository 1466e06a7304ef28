/*
 * Running a call: gatewayd, or admind for its own calls, makes sandboxd run a
 * held context.
 */
#ifndef IPC_MESSAGES_RUN_H
#define IPC_MESSAGES_RUN_H

/* clang-format off */
#define IPC_MESSAGES_RUN(M) \
M(30, RUN, run, REQ, GATEWAY|ADMIND, SANDBOXD, OPEN, ARGUMENTS_MAX, "use a held context, once") \
M(31, CALL_EVENT, call_event, PART, SANDBOXD, GATEWAY|ADMIND, OPEN, 0, "progress, log line or question while it runs") \
M(32, CALL_RESULT, call_result, ANS, SANDBOXD, GATEWAY|ADMIND, OPEN, IPC_BLOB_MAX, "how the call ended") \
M(33, CANCEL, cancel, EVT, GATEWAY|ADMIND, SANDBOXD, OPEN, 0, "kill a held or running call; its record says killed") \
M(34, CALL_ANSWER, call_answer, EVT, GATEWAY|ADMIND, SANDBOXD, OPEN, ARGUMENTS_MAX, "what the client answered to a question of a running call; only from who runs it") \
M(35, ATTACH, attach, REQ, ADMIND, SANDBOXD, OPEN, 0, "be told of a call that admind runs, after a reconnection; answered as RUN is")

#define IPC_FIELDS_run(F, S) \
F(S, id, execution, "as RUN_ID gave it") \
F(S, blob, arguments, "must have the digest the context was sealed with")

#define IPC_FIELDS_call_event(F, S) \
F(S, id, execution, "the call") \
F(S, u8, kind, "1 progress, 2 log, 3 questions, 4 pause") \
F(S, u32, number, "of the questions, from 1; else 0") \
F(S, bytes, json, "its params object, pre-scanned and redacted; questions: {key: {method, params}}; pause: {retry}")

#define IPC_FIELDS_call_result(F, S) \
F(S, id, execution, "the call") \
F(S, u8, outcome, "enum outcome") \
F(S, u16, failure, "enum failure, 0 when done") \
F(S, u64, duration_us, "from RUN to the end") \
F(S, u32, body_len, "bytes of the body at the front of the blob; the rest is meta") \
F(S, blob, body_meta, "CallToolResult object without _meta, then the _meta object, both JSON")

#define IPC_FIELDS_cancel(F, S) \
F(S, id, execution, "only one that the sender authorised or ran") \
F(S, u16, failure, "why: FAILURE_KILLED, FAILURE_REVOKED, FAILURE_STOPPED; of admind also FAILURE_NONE: it has no row, forget it without a record")

#define IPC_FIELDS_call_answer(F, S) \
F(S, id, execution, "the call") \
F(S, u32, number, "of the questions; another than the open one is ignored") \
F(S, blob, json, "{key: {\"result\": ...} or {\"error\": ...}}")

#define IPC_FIELDS_attach(F, S) F(S, id, execution, "the call")
/* clang-format on */

#endif
