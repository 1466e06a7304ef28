/* Answers with a problem (RFC 9457). Each function that gets a call ends that
 * call. */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "web.h"

/* Returns a failure's status in REST, for example 404 where /mcp says 200. */
int problem_status(enum failure);
/* Writes the body (RFC 9457). fix NULL: the failure table's fix. */
void problem_body(struct buf *, int status, enum failure, const char *detail,
    const char *fix, uint64_t retry_after_ms);
void problem_send(
    struct call *, enum failure, const char *detail, const char *fix);
void problem_retry(
    struct call *, enum failure, const char *detail, uint64_t retry_after_ms);
/* Answers 503 for admind-vault (vault) or admind, which is away, and tells the
 * client to wait. For admind the failure is that of the storage, but the fix
 * does not speak of PostgreSQL. */
void problem_away(struct call *, bool vault, const char *detail);
void problem_status_send(struct call *, int status, enum failure,
    const char *detail, const char *fix);

#endif
