/* Tasks: calls that admind runs itself. Their clients ask about them later. */
#ifndef IPC_MESSAGES_TASK_H
#define IPC_MESSAGES_TASK_H

/* clang-format off */
#define IPC_MESSAGES_TASK(M) \
M(23, TASK_STATE, task_state, ANS, ADMIND, GATEWAY, OPEN, IPC_BLOB_MAX, "a task as it stands: answers TASK_GET, TASK_UPDATE, TASK_CANCEL, and AUTHORISE of a call that became one") \
M(24, TASK_GET, task_get, REQ, GATEWAY, ADMIND, OPEN, 0, "asks how a task stands") \
M(25, TASK_UPDATE, task_update, REQ, GATEWAY, ADMIND, OPEN, ARGUMENTS_MAX, "answers to what a task asked of its client") \
M(26, TASK_CANCEL, task_cancel, REQ, GATEWAY, ADMIND, OPEN, 0, "ends a task") \
M(27, TASK_CHANGED, task_changed, EVT, ADMIND, GATEWAY, OPEN, 0, "a task changed its state") \
M(39, TASK_DROP, task_drop, REQ, GATEWAY, ADMIND, OPEN, 0, "ends a task that this connection began, and whose client does not know its id; answered by OK")

#define IPC_FIELDS_task_state(F, S) \
F(S, id, task, "128 random bits; the id of its execution") \
F(S, u8, status, "enum task_status") \
F(S, str, message, "one sentence on it, or empty") \
F(S, u64, created_us, "Unix time in us") \
F(S, u64, updated_us, "Unix time in us") \
F(S, u64, ttl_ms, "kept so long from its creation on") \
F(S, u64, poll_ms, "ask again not before that") \
F(S, u16, failure, "enum failure, 0 unless it failed") \
F(S, u32, body_len, "bytes of the body at the front of the blob; the rest is meta") \
F(S, blob, body_meta, "completed: the CallToolResult object without _meta, then _meta; input_required: the object of questions")

#define IPC_FIELDS_task_get(F, S) \
F(S, str, credential, "bearer token, assertion or ticket, or empty") \
F(S, u8, via, "enum credential_via") \
F(S, str, endpoint, "as in AUTHENTICATE") \
F(S, id, task, "as TASK_STATE gave it")

#define IPC_FIELDS_task_update(F, S) \
F(S, str, credential, "bearer token, assertion or ticket, or empty") \
F(S, u8, via, "enum credential_via") \
F(S, str, endpoint, "as in AUTHENTICATE") \
F(S, id, task, "as TASK_STATE gave it") \
F(S, blob, answers, "JSON object: the client's answers by key")

#define IPC_FIELDS_task_cancel(F, S) \
F(S, str, credential, "bearer token, assertion or ticket, or empty") \
F(S, u8, via, "enum credential_via") \
F(S, str, endpoint, "as in AUTHENTICATE") \
F(S, id, task, "as TASK_STATE gave it")

#define IPC_FIELDS_task_drop(F, S) F(S, id, task, "as TASK_STATE gave it")

#define IPC_FIELDS_task_changed(F, S) \
F(S, id, task, "the task") \
F(S, u8, status, "enum task_status") \
F(S, str, principal, "whose it is")
/* clang-format on */

#endif
