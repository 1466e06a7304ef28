/* Functions of a job (job.h); they are in job.c. */
#ifndef JOBS_H
#define JOBS_H

#include "job.h"

/*
 * The one function that changes a job's state; it knows the permitted
 * transitions and logs and aborts the job on any other. 0 or -1.
 */
int job_enter(struct job *, enum job_state);
struct job *job_new(struct link *, const struct ipc_authorise *, struct err *);
/* One of admind's own (inner.h), without a gateway. NULL: err says why. */
struct job *job_inner(struct admind *, const char *tool, const char *principal,
    struct ipc_bytes arguments, struct err *);
void job_free(struct job *);
/* Answers REFUSED and ends the job, closing its row if it has one. */
void job_refuse(struct job *, enum failure, const char *message);
/* The same; data: further members of the JSON-RPC error's data. */
void job_refuse_data(
    struct job *, enum failure, const char *message, const char *data);
/* Answers an isError result and ends the job; list: JSON text or empty. Prompts
 * and resources have no such results: a REFUSED with the list as data. */
void job_error(
    struct job *, enum failure, const char *summary, struct ipc_bytes list);
void job_body(struct job *, struct jsonw *, const void *text, size_t n);
void job_result(struct job *);
void job_close(struct job *);

#endif
