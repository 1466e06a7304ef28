/*
 * Between admind and sandboxd: contexts that wait for their RUN, and the
 * records of the contexts that ran.
 */
#ifndef IPC_MESSAGES_HELD_H
#define IPC_MESSAGES_HELD_H

/* clang-format off */
#define IPC_MESSAGES_HELD(M) \
M(40, HELD, held, REQ, ADMIND, SANDBOXD, OPEN, IPC_BLOB_MAX, "keep this sealed context until RUN; answered by OK or REFUSED") \
M(41, RECORD, record, REQ, SANDBOXD, ADMIND, OPEN, IPC_BLOB_MAX, "how a call ended; resent until answered by OK, which follows the commit") \
M(42, EPOCH_BEGIN, epoch_begin, EVT, SANDBOXD, ADMIND, OPEN, 0, "first on each connection: the sandbox's epoch") \
M(43, EPOCH_ITEM, epoch_item, EVT, SANDBOXD, ADMIND, OPEN, 0, "an execution this sandbox still answers for") \
M(44, EPOCH_END, epoch_end, EVT, SANDBOXD, ADMIND, OPEN, 0, "all were named: the sweep may run") \
M(45, RESULT_CHECK, result_check, REQ, SANDBOXD, ADMIND, OPEN, IPC_BLOB_MAX, "does this structured content satisfy the version's outputSchema? answered by OK, RESULT_ERRORS or REFUSED") \
M(46, RESULT_ERRORS, result_errors, ANS, ADMIND, SANDBOXD, OPEN, RESULT_MAX, "it does not: all errors together")

#define IPC_FIELDS_held(F, S) \
F(S, id, execution, "the call") \
F(S, u8, listener, "enum listener: who may RUN it") \
F(S, bytes, arguments, "what records keep of them, at most ARGUMENTS_KEPT, where the intent has none") \
F(S, blob, context, "sealed by the vault for this sandbox's epoch")

#define IPC_FIELDS_record(F, S) \
F(S, id, execution, "the call") \
F(S, id, epoch, "the sandbox's, or its predecessor's, whose ledger it read") \
F(S, u8, outcome, "enum outcome") \
F(S, u16, failure, "enum failure, 0 when done") \
F(S, u8, delivered, "1: the result was handed to a live gateway") \
F(S, u64, started_us, "Unix time in us of RUN, 0 if it never ran") \
F(S, u64, ended_us, "Unix time in us") \
F(S, u64, cpu_us, "CPU time the runner used; 2^64 - 1: not known") \
F(S, bytes, intent, "the intent TLV from the sealed context: the whole row, should the database have lost it") \
F(S, u32, stdout_len, "bytes of stdout at the front of the blob") \
F(S, u32, meta_len, "of a task: bytes of the _meta object at the end of the blob; else 0") \
F(S, u32, kept_len, "of a task: bytes behind stdout; else 0") \
F(S, bytes, network, "what it connected to, NET_REPORT's array, or empty") \
F(S, u32, connections, "of it, made or tried; for metrics, as the next two") \
F(S, u32, net_refused, "connections refused by policy") \
F(S, u64, net_bytes, "of all connections, both directions") \
F(S, blob, stdout_result, "captured stdout, then the result or error body as JSON, as records keep it (common/scan/kept.h); of a task that, then the whole, then _meta")

#define IPC_FIELDS_epoch_begin(F, S) F(S, id, epoch, "random, new at each start")

#define IPC_FIELDS_epoch_item(F, S) \
F(S, id, execution, "an execution") \
F(S, u8, state, "1 held, 2 running, 3 ended and not yet acknowledged")

#define IPC_FIELDS_epoch_end(F, S) F(S, u32, count, "items named")

#define IPC_FIELDS_result_check(F, S) \
F(S, id, execution, "the call") \
F(S, u32, schema_len, "bytes of the schema at the front of the blob") \
F(S, blob, schema_value, "schema, then the value, both JSON")

#define IPC_FIELDS_result_errors(F, S) \
F(S, str, summary, "one sentence") \
F(S, blob, json, "array of {pointer, message}")
/* clang-format on */

#endif
