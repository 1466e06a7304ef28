/*
 * Content blocks of a tool's result, as MCP defines them (schema of revision
 * 2025-11-25, ContentBlock). They come from a stranger: the tool's code shares
 * a process with whoever wrote the frame. So each is written anew from the
 * members its type has; others are dropped, and what has another form is
 * refused by name. Clients get nothing they would have to be careful with but
 * the texts themselves.
 */
#ifndef CONTENT_H
#define CONTENT_H

#include "err.h"
#include "jsonw.h"
#include "redact.h"

/*
 * array: the value of `content`, in text that json_scan accepted. Writes the
 * array with secrets replaced; base64 data that holds one becomes a text that
 * says so, since no client could decode the rest. *replaced is set if any was
 * found. 0, or -1 with FAILURE_EXCEPTION and the place in err.
 */
int content_take(struct ipc_bytes array, struct redact *, struct jsonw *,
    bool *replaced, struct err *);
/* Likewise the `messages` of a prompt: {role, content: one block} each. */
int content_messages(struct ipc_bytes array, struct redact *, struct jsonw *,
    bool *replaced, struct err *);
/* Likewise the `contents` of resources/read: {uri?, mimeType?, text or blob}
 * each; the gateway adds a URI that is missing, the one it was asked for. */
int content_resources(struct ipc_bytes array, struct redact *, struct jsonw *,
    bool *replaced, struct err *);

#endif
