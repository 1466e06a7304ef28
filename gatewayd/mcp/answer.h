/*
 * JSON-RPC answers as text. Results that were made elsewhere (CallToolResult
 * bodies, Tool objects) are spliced in byte for byte; only the envelope, and
 * for the modern era resultType and serverInfo, are made here. No I/O.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include "buf.h"
#include "mcp_request.h"

enum { ANSWER_MAX = 16 * 1024 * 1024 }; /* a tools/list of 4000 large tools */

/* The request that an answer is for: its id is echoed, its era adds members. */
struct answer_to {
	struct ipc_bytes id; /* raw JSON; n = 0: unknown */
	bool modern;
	/* An id that could not be read is written as null, as JSON-RPC 2.0
	 * says. false: it is left out, because the schema of MCP since
	 * 2025-11-25 refuses null. */
	bool null_id;
};

/* Writes an error response. data: further members of error.data as JSON, or
 * "". */
void answer_error(struct buf *, const struct answer_to *, enum failure,
    const char *message, uint64_t retry_after_ms, const char *data);
/* Writes an error response from the error of a message. */
void answer_refusal(
    struct buf *, const struct answer_to *, const struct mcp_error *);
/*
 * Writes a CallToolResult. body: the object without _meta; meta: the _meta
 * object. For a legacy client, structured content that is no object is left out
 * (narrow.h). Body and meta were made elsewhere, so they are scanned here. 0,
 * or -1: they are not JSON objects, or have a member that only we may add; the
 * buffer then holds nothing usable.
 */
int answer_call(struct buf *, const struct answer_to *, struct ipc_bytes body,
    struct ipc_bytes meta);
/*
 * Writes a failed call of a method without isError (prompts/get,
 * resources/read): a JSON-RPC error with body's text as its message. The code
 * is the failure's own code, else -32602 for INVALID_ARGUMENTS, else -32603.
 * uri: the resource's URI, a raw JSON string, or n = 0. 0, or -1 as for
 * answer_call.
 */
int answer_failed_call(struct buf *, const struct answer_to *, enum failure,
    struct ipc_bytes body, struct ipc_bytes meta, struct ipc_bytes uri);
/* Writes questions to the client (an object by key, n = 0: none) instead of a
 * result, with the state that the client sends back. */
void answer_input_required(struct buf *, const struct answer_to *,
    struct ipc_bytes requests, const char *state);
/* Writes an isError result of our own, for a failure on the tool's side. */
void answer_tool_failure(
    struct buf *, const struct answer_to *, enum failure, const char *message);
/*
 * Writes a ReadResourceResult, otherwise as answer_call does. Contents without
 * a URI get uri, the URI that was asked for (a JSON string). Unless they name a
 * type, they also get mime, the resource's declared MIME type (a JSON string,
 * or n = 0). ttl_ms is a caching hint.
 */
int answer_resource(struct buf *, const struct answer_to *,
    struct ipc_bytes body, struct ipc_bytes meta, struct ipc_bytes uri,
    struct ipc_bytes mime, uint64_t ttl_ms);
/* Write the text before and after the items of a list result. cursor: of the
 * next page; "": this page is the last. */
void answer_list_head(
    struct buf *, const struct answer_to *, const char *member);
void answer_list_tail(
    struct buf *, const struct answer_to *, const char *cursor);
void answer_empty(struct buf *, const struct answer_to *);
/* Writes {"resultType": type, members}, for the modern era only. members: the
 * text of one or more members of an object, made by us. */
void answer_members(struct buf *, const struct answer_to *, const char *type,
    struct ipc_bytes members);
/* instructions: for the client's model; NULL: INSTRUCTIONS. */
void answer_initialize(struct buf *, const struct answer_to *, enum mcp_rev,
    const char *instructions);
void answer_discover(
    struct buf *, const struct answer_to *, const char *instructions);
/* Writes a notification. params were made elsewhere, so they are scanned. 0 or
 * -1. */
int answer_notification(
    struct buf *, const char *method, struct ipc_bytes params);

#endif
