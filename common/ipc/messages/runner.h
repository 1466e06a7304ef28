/* A runner's channel to sandboxd. */
#ifndef IPC_MESSAGES_RUNNER_H
#define IPC_MESSAGES_RUNNER_H

/* clang-format off */
#define IPC_MESSAGES_RUNNER(M) \
M(161, READY, ready, EVT, RUNNER, SANDBOXD, WAITING, 0, "wholly confined; it waits for its call") \
M(162, CONFINE_FAILED, confine_failed, EVT, RUNNER, SANDBOXD, WAITING, 0, "a step failed; the runner exits") \
M(163, EXECUTE, execute, EVT, SANDBOXD, RUNNER, RUNNING, IPC_BLOB_MAX, "limits first, then what to do, with the code") \
M(164, ARGUMENTS, arguments, EVT, SANDBOXD, RUNNER, RUNNING, ARGUMENTS_MAX, "the call's arguments") \
M(165, SECRETS, secrets, EVT, SANDBOXD, RUNNER, RUNNING, IPC_BLOB_MAX, "the call's secrets, then it starts") \
M(166, ANSWER, answer, EVT, SANDBOXD, RUNNER, RUNNING, ARGUMENTS_MAX, "what the client answered to an ASK") \
M(167, MODULE_PART, module_part, EVT, RUNNER, SANDBOXD, RUNNING, 0, "kind MODULE: the next bytes of the unpacked tree; the next one only after MODULE_NEXT") \
M(168, MODULE_NEXT, module_next, EVT, SANDBOXD, RUNNER, RUNNING, 0, "they were taken, or why not; behind the last: what the store holds now") \
M(170, STDOUT, stdout, EVT, RUNNER, SANDBOXD, RUNNING, 0, "bytes the tool printed") \
M(171, LOG, log, EVT, RUNNER, SANDBOXD, RUNNING, 0, "a log line of the tool") \
M(172, PROGRESS, progress, EVT, RUNNER, SANDBOXD, RUNNING, 0, "a progress report") \
M(173, CONTENT_PART, content_part, EVT, RUNNER, SANDBOXD, RUNNING, 0, "a piece of the result or error, in order") \
M(174, RUN_RESULT, run_result, EVT, RUNNER, SANDBOXD, RUNNING, 0, "the pieces were a result; nothing follows") \
M(175, RUN_ERROR, run_error, EVT, RUNNER, SANDBOXD, RUNNING, 0, "the pieces were an error object; nothing follows") \
M(176, ASK, ask, EVT, RUNNER, SANDBOXD, RUNNING, 0, "questions to the client; the runner is parked until ANSWER") \
M(177, PAUSE, pause, EVT, RUNNER, SANDBOXD, RUNNING, 0, "a hint: the client may wait unconnected and come back")

#define IPC_FIELDS_ready(F, S)

#define IPC_FIELDS_confine_failed(F, S) \
F(S, str, step, "name of the step") \
F(S, str, path, "path, or empty") \
F(S, u32, error, "errno")

#define IPC_FIELDS_execute(F, S) \
F(S, u8, kind, "enum context_kind: run main, inspect, or compile only") \
F(S, u8, form, "enum call_method: which result main's value becomes") \
F(S, u8, driver, "enum runner_driver: what the code is") \
F(S, u8, network, "1: its version declares hosts. It opens nothing; errors tell") \
F(S, str, name, "exposed name, shown in tracebacks") \
F(S, u64, memory_bytes, "address space of each process") \
F(S, u64, cpu_ms, "CPU time of each process") \
F(S, u32, processes, "processes and threads") \
F(S, u32, files, "open descriptors of each process") \
F(S, u64, file_bytes, "largest file") \
F(S, u32, stdout_max, "bytes of output to send") \
F(S, u32, result_max, "bytes of result to send") \
F(S, str, executable, "kind COMMAND: path of what is run, else empty") \
F(S, bytes, executable_digest, "kind COMMAND: SHA-256 it must have; empty: any, for an inspection") \
F(S, u32, source_len, "bytes of the source at the front of the blob") \
F(S, blob, code, "Python source or a command's spec, UTF-8; then its compiled form or nothing")

#define IPC_FIELDS_arguments(F, S) F(S, blob, json, "an object")

#define IPC_FIELDS_secrets(F, S) F(S, blob, tlv, "name, value, name, value ... (tags 1 and 2)")

#define IPC_FIELDS_answer(F, S) \
F(S, u32, number, "of the ASK") \
F(S, blob, json, "{key: {\"result\": ...} or {\"error\": ...}}")

#define IPC_FIELDS_module_part(F, S) \
F(S, u8, last, "1: the tree ends behind these bytes") \
F(S, bytes, data, "see sandboxd/store/tree.h")

#define IPC_FIELDS_module_next(F, S) \
F(S, u8, state, "0 go on, 1 stored, 2 refused: nothing of it is kept") \
F(S, hash, digest, "stored: the entry's") \
F(S, u64, files, "stored: files in it") \
F(S, u64, size, "stored: bytes of them") \
F(S, str, text, "refused: why")

#define IPC_FIELDS_stdout(F, S) F(S, bytes, data, "as printed, any bytes")

#define IPC_FIELDS_log(F, S) \
F(S, u8, level, "0 debug to 7 emergency, RFC 5424 reversed as MCP orders them") \
F(S, bytes, json, "any JSON value")

#define IPC_FIELDS_progress(F, S) F(S, bytes, json, "object: progress, total?, message?")

#define IPC_FIELDS_content_part(F, S) F(S, bytes, data, "next bytes")

#define IPC_FIELDS_run_result(F, S) F(S, u32, length, "bytes in all the pieces")

#define IPC_FIELDS_run_error(F, S) \
F(S, u16, failure, "FAILURE_EXCEPTION, FAILURE_BAD_CODE, FAILURE_INVALID_ARGUMENTS, FAILURE_LIMIT, FAILURE_NO_ANSWER, FAILURE_TOOL_PROTOCOL, FAILURE_MISSING_GRANT, FAILURE_TIMEOUT, FAILURE_UPSTREAM or FAILURE_UPSTREAM_CHANGED") \
F(S, u32, length, "bytes in all the pieces")

#define IPC_FIELDS_ask(F, S) \
F(S, u32, number, "1, 2, 3 ... within the call") \
F(S, bytes, json, "object: {key: {method, params}}")

#define IPC_FIELDS_pause(F, S) F(S, u32, retry_ms, "come back not before that")
/* clang-format on */

#endif
