/*
 * Messages between any two processes: the first frame, and answers that every
 * request may have.
 */
#ifndef IPC_MESSAGES_ANY_H
#define IPC_MESSAGES_ANY_H

/* clang-format off */
#define IPC_MESSAGES_ANY(M) \
M(1, HELLO, hello, EVT, ANY, ANY, NEW, 0, "first frame in each direction") \
M(2, REFUSED, refused, ANS, ANY, ANY, OPEN, 0, "a request could not be served") \
M(3, OK, ok, ANS, ANY, ANY, OPEN, 0, "a request without a result was served") \
M(4, DOCTOR, doctor, REQ, CTL, ADMIND|VAULT|SANDBOXD, OPEN, 0, "asks which layers hold") \
M(5, DOCTOR_REPORT, doctor_report, ANS, ADMIND|VAULT|SANDBOXD, CTL, OPEN, IPC_BLOB_MAX, "the layers, as JSON")

#define IPC_FIELDS_hello(F, S) \
F(S, hash, table, "SHA-256 of the IPC table; another one is logged by both and the connection closed") \
F(S, str, process, "program name, for logs only") \
F(S, str, build, "version, for logs only") \
F(S, id, epoch, "random, new at each start of the sender") \
F(S, str, layers, "confinement layers that hold: name=enforced|degraded|missing lines, for doctor")

#define IPC_FIELDS_refused(F, S) \
F(S, u16, failure, "enum failure") \
F(S, str, message, "one sentence for the reader") \
F(S, u64, retry_after_ms, "0: no hint") \
F(S, bytes, data, "further members of the JSON-RPC error's data, without braces, or empty") \
F(S, str, scope, "of FORBIDDEN, if another token of the client's issuer is enough: the scopes it needs, those of this one included; else empty")

#define IPC_FIELDS_ok(F, S)

#define IPC_FIELDS_doctor(F, S)

#define IPC_FIELDS_doctor_report(F, S) F(S, blob, json, "array of {process, layer, state, detail, fix}")
/* clang-format on */

#endif
