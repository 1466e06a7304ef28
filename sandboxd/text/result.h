/*
 * The JSON that answers carry: bodies of CallToolResult that sandboxd builds
 * itself, results of runners, which sandboxd takes apart and puts together
 * again, and _meta.
 */
#ifndef RESULT_H
#define RESULT_H

#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "limit.h"
#include "redact.h"

/* Numbers of messages that a call sent above its rates. No client got these. */
struct result_dropped {
	uint64_t log_lines, progress_reports;
};

/* Writes a CallToolResult with one text and isError true. */
void result_error(struct buf *body, const char *text);

/* Adds one more text at the end of the body's content. -1: the body has no
 * content. */
int result_add_text(
    struct ipc_bytes body, struct ipc_bytes text, struct buf *out);

/*
 * Takes a runner's result, which is foreign: the tool's code shares a process
 * with the code that wrote it.
 *
 * Only these members pass on, each at most once. Tool: content (content.h),
 * structuredContent (an object; with CALL_STRUCTURED any JSON) and isError.
 * Prompt: messages and description. Resource: contents. The gateway adds the
 * other members, and none of these can come from a runner. An error (is_error)
 * always has a tool's form: a text.
 *
 * Secrets are replaced in the values only, so a secret that looks like the
 * result's own JSON can't spoil it. text was accepted by json_scan, which is
 * the one rule for numbers (finite), names (each once), strings (no lone
 * surrogates) and depth.
 *
 * 0, or -1: with FAILURE_EXCEPTION and the error with its place, or with
 * FAILURE_KILLED if the text is no result at all.
 */
int result_take(struct ipc_bytes text, unsigned form, bool is_error,
    struct redact *, struct buf *body, struct err *);

/* Writes a tool's progress as MCP's progress params: progress, total, message;
 * secrets replaced. 1: not to be passed on, because a number shows a secret. */
int result_progress(
    struct ipc_bytes text, struct redact *, struct buf *out, struct err *);
/* Writes a log line as MCP's logging params: level, logger, data; secrets
 * replaced. 1: not to be passed on, because it is no JSON any more (names
 * became equal). */
int result_log(unsigned level, struct ipc_bytes logger, struct ipc_bytes json,
    struct redact *, struct buf *out);

enum {
	/* Bytes of printed output that go with a successful result: a model
	 * reads all of these, though it asked for the result. The record has
	 * the whole output, and the text says how to read it. An error's output
	 * explains the error, so it is not cut. */
	RESULT_PRINTED_MAX = 8 * 1024
};

/* Writes _meta: {"mcpbox/execution": {...}} and, unless failure is NONE,
 * "mcpbox/failure". The fix in "mcpbox/failure" is chosen by message or, if
 * that is NULL, by the first text of the body. */
void result_meta(struct buf *meta, const struct ipc_id *execution,
    uint64_t duration_us, struct ipc_bytes stdout_text,
    const struct result_dropped *, enum failure, const char *message,
    struct ipc_bytes body);

/* Says that a limit was met: "what: the limit NAME is VALUE UNIT." Sets failure
 * (TIMEOUT for the wall clock, LIMIT for others) and text. */
void result_limit(const char *what, enum limit, uint64_t value, struct err *);
/*
 * Says why a runner ended without a result. status, cpu_us, peak_kib,
 * oom_kills: as in EXITED. limit: the call's limits. Sets failure and text.
 */
void result_crash(uint32_t status, uint64_t cpu_us, uint64_t peak_kib,
    uint32_t oom_kills, const uint64_t limit[LIMIT_COUNT], struct err *);

#endif
