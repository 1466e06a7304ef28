/* Answers with a problem (RFC 9457). Each ends the call. */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "web.h"

/* Returns REST's status for a failure: 404 where MCP says 200, and so on. */
int problem_status(enum failure);
/* Writes the body (RFC 9457). fix: NULL for the table's. */
void problem_body(struct buf *, int status, enum failure, const char *detail,
    const char *fix, uint64_t retry_after_ms);
void problem_send(
    struct call *, enum failure, const char *detail, const char *fix);
void problem_retry(
    struct call *, enum failure, const char *detail, uint64_t retry_after_ms);
/* Answers 503 for a process that is away, and says that it is to be waited
 * for. admind's failure is the storage's, but the text does not mean
 * PostgreSQL then. */
void problem_away(struct call *, bool vault, const char *detail);
void problem_status_send(struct call *, int status, enum failure,
    const char *detail, const char *fix);

#endif
