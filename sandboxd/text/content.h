/*
 * Content blocks of a tool's result, as MCP defines them (schema of revision
 * 2025-11-25, ContentBlock). They come from a stranger: the tool's code shares
 * a process with the code that wrote the frame. So each block is written again
 * from the members its type has. Other members are dropped, and a block of
 * another form is refused, with its place in the error. Clients need to be
 * careful with the texts only.
 */
#ifndef CONTENT_H
#define CONTENT_H

#include "err.h"
#include "jsonw.h"
#include "redact.h"

/*
 * Takes array, the value of `content`, from text that json_scan accepted.
 * Writes the array with secrets replaced. Base64 data that holds a secret
 * becomes a text that says so, since no client could decode data with a mark in
 * it. *replaced is set if a secret was found. 0, or -1 with FAILURE_EXCEPTION
 * and the place in err.
 */
int content_take(struct ipc_bytes array, struct redact *, struct jsonw *,
    bool *replaced, struct err *);
/* Does the same for the `messages` of a prompt, each {role, content: one
 * block}. */
int content_messages(struct ipc_bytes array, struct redact *, struct jsonw *,
    bool *replaced, struct err *);
/* Does the same for the `contents` of resources/read, each {uri?, mimeType?,
 * text or blob}. The gateway fills in a missing URI: the URI that it was asked
 * for. */
int content_resources(struct ipc_bytes array, struct redact *, struct jsonw *,
    bool *replaced, struct err *);

#endif
