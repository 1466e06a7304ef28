/*
 * Makes tools of kind http from the operations of an OpenAPI document. Each
 * tool becomes a request in the queue of approvals. mcpbox_import_openapi and
 * administrators use this.
 */
#ifndef OPENAPI_H
#define OPENAPI_H

#include "admind.h"

struct openapi_end {
	enum failure failure;  /* NONE: json is the result */
	const char *text;      /* else a sentence */
	struct ipc_bytes json; /* the answer, or an array of errors, or empty */
};
typedef void openapi_cb(void *arg, const struct openapi_end *);

/* Imports a document. document: JSON. base_url: replaces the servers that the
 * document names, or empty. operations: one per line, or empty for all. Calls
 * cb once with the result, perhaps before openapi_import returns. */
void openapi_import(struct admind *, const struct ipc_id *server,
    const char *actor, struct ipc_bytes document, struct ipc_bytes base_url,
    struct ipc_bytes operations, openapi_cb *, void *arg);
/* OPENAPI_IMPORT */
int openapi_message(struct link *, struct ipc_frame *);

#endif
