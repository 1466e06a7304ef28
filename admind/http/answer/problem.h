/* Answers with a problem (RFC 9457). Each function with a call ends it. */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "web.h"

/* Returns the status of a failure in REST: 404 where /mcp says 200, e.g. */
int problem_status(enum failure);
/* Writes the body (RFC 9457). fix NULL: the failure table's fix. */
void problem_body(struct buf *, int status, enum failure, const char *detail,
    const char *fix, uint64_t retry_after_ms);
void problem_send(
    struct call *, enum failure, const char *detail, const char *fix);
void problem_retry(
    struct call *, enum failure, const char *detail, uint64_t retry_after_ms);
/* Answers 503 for admind-vault (vault) or admind, which is away, and tells the
 * client to wait. admind's absence has the failure of the storage, but a fix
 * that does not speak of PostgreSQL. */
void problem_away(struct call *, bool vault, const char *detail);
void problem_status_send(struct call *, int status, enum failure,
    const char *detail, const char *fix);

#endif
