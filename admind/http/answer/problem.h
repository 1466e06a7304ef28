/*
 * Answers. Each ends the call.
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "web.h"

/* Status of REST for a failure: 404 where MCP says 200, and so on. */
int problem_status(enum failure);
/* RFC 9457 body. fix: NULL for the table's. */
void problem_body(struct buf *, int status, enum failure, const char *detail,
    const char *fix, uint64_t retry_after_ms);
void problem_send(
    struct call *, enum failure, const char *detail, const char *fix);
void problem_retry(
    struct call *, enum failure, const char *detail, uint64_t retry_after_ms);
/* 503 for a process that is away: with what is to be waited for, which is not
 * PostgreSQL where admind is meant. */
void problem_away(struct call *, bool vault, const char *detail);
void problem_status_send(struct call *, int status, enum failure,
    const char *detail, const char *fix);
/* admind's JSON as it is, if it is JSON; tagged: with its SHA-256 as ETag. */
void reply_admind(struct call *, struct ipc_frame *, bool tagged);
void reply_json(struct call *, int status, const struct buf *);
void reply_empty(struct call *, int status);
void security_headers(struct httpd_req *);

#endif
