/*
 * A call from its AUTHORISE to its context: the way of call.c, and what stands
 * on it.
 */
#ifndef CALL_H
#define CALL_H

#include "intent.h"
#include "job.h"

/* ---- lookup.c ---- */
/* Fills what the job needs to know of the version that serves; then
 * call_check(), or the job ends. May come again for the same job. */
void lookup_run(struct job *);

/* ---- call.c ---- */
void call_check(struct job *); /* its arguments, then its intent */
int call_message(struct link *, struct ipc_frame *); /* AUTHORISE */
/* The database and the sandbox are there for the first time, or have not come
 * for a second: what was asked until now, and waited, begins. */
void call_started(struct admind *);
/* The same way for a call of admind's own (inner.h). */
void call_inner(struct job *);

/* ---- confirm.c: calls that a person must have said yes to ---- */
/*
 * How it stands with the job's call. Approved: then(j) goes on. Else the job is
 * answered: PENDING, or an error. Arguments were checked before, so no person
 * is asked about a call that would fail by itself.
 */
void confirm_start(struct job *, void (*then)(struct job *));
/* intent_open() of a job that is confirmed: the yes is used up in the same
 * transaction. why may also be "not_confirmed". */
void confirm_open(struct job *, intent_cb *);
/* Setting or decision, by NOTIFY mcpbox_call. */
void confirm_notified(struct admind *, const char *payload);
void confirm_tick(struct admind *); /* what nobody decided about in time */

/* ---- obstacle.c. Each ends the job, the latter two if they say true ---- */
void obstacle_unknown(struct job *); /* no object has this name */
/* Its definition at the other server changed (decision 0083): the sentence. */
void obstacle_quarantine(struct job *, struct ipc_bytes words);
/* What the caller or the author can mend: a grant that is missing (the sentence
 * that says so, or empty), too long arguments. */
bool obstacle_mendable(struct job *, struct ipc_bytes missing);
/* The client can't do what the version asks of it: enum client_capability. */
bool obstacle_undeclared(struct job *, uint32_t required);

/* ---- content.c: static prompts and resources, answered here ---- */
/* Makes the result in j->body, then the intent row; cb as intent_open's. Behind
 * its "ok" the caller answers with job_result(). Failures end the job. */
void content_start(struct job *, intent_cb *cb);

#endif
