/* Functions of a job (job.h); they are in job.c. */
#ifndef JOBS_H
#define JOBS_H

#include "job.h"

/*
 * Changes a job's state; no other function does. Returns 0, or -1 if the
 * transition is not permitted. Then the state stays, a line is logged, and the
 * caller ends the job.
 */
int job_enter(struct job *, enum job_state);
struct job *job_new(struct link *, const struct ipc_authorise *, struct err *);
/* Makes a job for a call of admind's own (inner.h), without a gateway. Returns
 * NULL with err on failure. */
struct job *job_inner(struct admind *, const char *tool, const char *principal,
    struct ipc_bytes arguments, struct err *);
void job_free(struct job *);
/* Answers REFUSED and ends the job. Closes the job's row if it has one. */
void job_refuse(struct job *, enum failure, const char *message);
/* Refuses the job like job_refuse(). data: further members of the JSON-RPC
 * error's data. */
void job_refuse_data(
    struct job *, enum failure, const char *message, const char *data);
/* Refuses the job because its token lacks a scope (lack.h). */
void job_refuse_lack(struct job *, const struct lack *);
/* Answers an isError result and ends the job. list: JSON text or empty. Prompts
 * and resources have no isError results, so their jobs get a REFUSED with the
 * list as data. */
void job_error(
    struct job *, enum failure, const char *summary, struct ipc_bytes list);
void job_body(struct job *, struct jsonw *, const void *text, size_t n);
void job_result(struct job *);
void job_close(struct job *);

#endif
