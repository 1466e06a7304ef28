/*
 * Answers that are written while they are made: chunked, and server-sent
 * events. The handler of a request calls httpd_stream_begin instead of
 * httpd_reply.
 */
#ifndef HTTPD_STREAM_H
#define HTTPD_STREAM_H

#include "httpd.h"

/* Write a chunked answer. httpd_stream_write returns false if the client's
 * socket is slow: stop then until the callback of httpd_on_drained. */
void httpd_stream_begin(
    struct httpd_req *, int status, const char *content_type);
bool httpd_stream_write(struct httpd_req *, const void *, size_t);
void httpd_stream_end(struct httpd_req *);
/* Sends a server-sent event (WHATWG HTML, 9.2): data lines, blank line. id may
 * be NULL. */
bool httpd_sse_event(
    struct httpd_req *, const char *id, const void *data, size_t n);
bool httpd_sse_comment(struct httpd_req *); /* ": keep-alive" */
void httpd_on_drained(
    struct httpd_req *, void (*)(struct httpd_req *, void *), void *arg);
/* Sends an event with an id and without data. Clients don't dispatch it (WHATWG
 * HTML, 9.2.6) but know its id from then on. If retry_ms > 0, also sets the
 * time that they wait before they connect again. */
bool httpd_sse_prime(struct httpd_req *, const char *id, unsigned retry_ms);
/* Sends a "retry:" field by itself: how long the client waits, in ms, before it
 * connects again. */
bool httpd_sse_retry(struct httpd_req *, unsigned ms);

/*
 * Prepares a begun event stream that will mostly be silent. Frees the memory of
 * the request, so the owner must not use httpd_request any more. From now on
 * input is thrown away, and the end of the answer ends the connection. A write
 * that the socket does not take at once makes the stream slow until the whole
 * write has left. gone is called instead of httpd_handlers.gone.
 */
void httpd_stream_lean(
    struct httpd_req *, void (*gone)(struct httpd_req *, void *));
/* Tells whether the stream is slow: too much of the answer still waits for the
 * client to read. */
bool httpd_stream_slow(const struct httpd_req *);

#endif
