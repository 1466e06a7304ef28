/*
 * The JSON that answers carry: CallToolResult bodies that sandboxd builds
 * itself, the runner's taken apart and put together again, and _meta.
 */
#ifndef RESULT_H
#define RESULT_H

#include "buf.h"
#include "err.h"
#include "ipc.h"

/* A CallToolResult with one text and isError true. */
void result_error(struct buf *body, const char *text);

/*
 * The runner's CallToolResult is foreign: the tool's code shares a process
 * with whoever wrote it. Only content (an array), structuredContent (an
 * object) and isError pass on, each at most once; the gateway adds the other
 * members and none can come from here. text was accepted by json_scan. -1
 * with err if there is no content or a member has another type.
 */
int result_take(
    struct ipc_bytes text, bool is_error, struct buf *body, struct err *);

/* Progress of a tool as MCP's progress params: progress, total, message. */
int result_progress(struct ipc_bytes text, struct buf *out, struct err *);
/* A log line as MCP's logging params: level, logger, data. */
void result_log(unsigned level, struct ipc_bytes logger, struct ipc_bytes json,
    struct buf *out);

/* _meta: {"mcpbox/execution": {...}} and, unless failure is NONE,
 * "mcpbox/failure". */
void result_meta(struct buf *meta, const struct ipc_id *execution,
    uint64_t duration_us, struct ipc_bytes stdout_text, enum failure,
    const char *message);

/*
 * What a runner's end without a result means. status as in EXITED. Sets
 * failure and text.
 */
void result_crash(
    uint32_t status, uint64_t peak_kib, uint64_t memory_bytes, struct err *);

#endif
