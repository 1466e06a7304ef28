/* One line of standard input: the parts of a JSON-RPC message that the
 * bridge needs to send it on over HTTP. The message itself is never changed.
 * No I/O. */
#ifndef LINE_H
#define LINE_H

#include "mcp_request.h"

enum line_kind {
	LINE_REQUEST,
	LINE_NOTIFICATION,
	LINE_RESPONSE, /* to a request of the server's */
	LINE_ARRAY     /* of 2025-03-26: its answer is passed on */
};

enum {
	LINE_HEADER_MAX = 1024, /* bytes of a header's value, encoded */
	LINE_METHOD_MAX = 128
};

/* Slices point into the line. */
struct line {
	enum line_kind kind;
	bool modern;                /* names a revision in params._meta */
	struct ipc_bytes id;        /* raw JSON; n = 0: none */
	struct ipc_bytes params;    /* raw JSON; n = 0: none */
	struct ipc_bytes cancel_id; /* of notifications/cancelled */
	char method[LINE_METHOD_MAX];
	char version[32];           /* of a modern message */
	char name[LINE_HEADER_MAX]; /* Mcp-Name, encoded; "": none is sent */
};

/* Reads a line. 0, or -1 with the reason in err (FAILURE_PARSE,
 * FAILURE_INVALID_REQUEST). */
int line_read(const uint8_t *, size_t, struct line *, struct err *);
/* Writes a header's value as the modern revision wants it: as it is, or as
 * =?base64?...?= if a header could not carry it. 0, or -1: too long. */
int line_header(const char *text, char *out, size_t size);
/* Replaces raw line ends of a JSON text by spaces: in valid JSON they occur
 * between tokens only, so a space means the same. */
void line_flatten(uint8_t *, size_t);

#endif
