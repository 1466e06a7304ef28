/*
 * The head of a request: request line and fields, parsed in place. Internal
 * to http1.c; the grammar is in http1.h.
 */
#ifndef HTTP1_HEAD_H
#define HTTP1_HEAD_H

#include "http1.h"

enum {
	HTTP1_TARGET_MAX = 2048, /* bytes; our longest path has 60 */
	/* The target, method, two spaces and "HTTP/1.1". A longer request line
	 * gets 414. */
	HTTP1_LINE_MAX = HTTP1_TARGET_MAX + 32
};

/* Framing of the body (RFC 9112 section 6). */
struct http1_framing {
	bool chunked;
	bool has_length;
	size_t length;
};

/* Makes the request empty. */
void http1_head_clear(struct http1_request *);

/*
 * Parses a whole head (up to and with its empty line), writing NULs into it;
 * r's strings point into it. 0, or the status to answer with *why set to a
 * constant string. The caller has already checked that every byte is visible
 * ASCII, space, tab, or half of a CRLF pair.
 */
int http1_head_parse(char *head, size_t n, size_t body_max,
    struct http1_request *r, struct http1_framing *, const char **why);

#endif
