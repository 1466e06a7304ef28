/*
 * Steps of a call from its AUTHORISE to its context. call.c puts them in order.
 */
#ifndef CALL_H
#define CALL_H

#include "intent.h"
#include "job.h"

/* ---- lookup.c ---- */
/* Fills the members of the job that describe the serving version. Then calls
 * call_check(), or ends the job. May be called again for the same job. */
void lookup_run(struct job *);

/* ---- call.c ---- */
/* Checks the job's arguments, then makes its intent row. */
void call_check(struct job *);
int call_message(struct link *, struct ipc_frame *); /* AUTHORISE */
/* Begins the jobs that waited for admind's start. Called when the database and
 * the sandbox are both connected for the first time, or when admind has waited
 * a second for them. */
void call_started(struct admind *);
/* Takes a call that admind makes for itself (inner.h) through the same
 * steps. */
void call_inner(struct job *);

/* ---- confirm.c: calls that a person must have said yes to ---- */
/*
 * Asks the database whether the job's call is approved. If it is, calls
 * then(j). Else answers the job with PENDING or an error. The arguments were
 * checked before, so no person is asked about a call that would fail by itself.
 */
void confirm_start(struct job *, void (*then)(struct job *));
/* Does what intent_open() does, for a confirmed job. The same transaction uses
 * up the approval. The callback's `why` may also be "not_confirmed". */
void confirm_open(struct job *, intent_cb *);
/* Handles NOTIFY mcpbox_call: a setting was changed, or a call was decided. */
void confirm_notified(struct admind *, const char *payload);
/* Ends the requests that no administrator decided in time. */
void confirm_tick(struct admind *);

/* ---- obstacle.c: each function ends the job, or returns false ---- */
/* Answers that no object has this name. */
void obstacle_unknown(struct job *);
/* Answers that the definition of the tool at the other server changed (decision
 * 0083), with the sentence `words`. */
void obstacle_quarantine(struct job *, struct ipc_bytes words);
/* Returns true, and ends the job, for an obstacle that the caller or the author
 * can remove: a missing grant, or too long arguments. missing is the sentence
 * that names the grant, or empty. */
bool obstacle_mendable(struct job *, struct ipc_bytes missing);
/* Returns true, and ends the job, if the client lacks a capability that the
 * version requires. required: mask of enum client_capability. */
bool obstacle_undeclared(struct job *, uint32_t required);

/* ---- content.c: static prompts and resources, answered here ---- */
/* Makes the result in j->body, then the intent row. Calls cb as intent_open()
 * does; after "ok" the caller answers with job_result(). A failure ends the
 * job. */
void content_start(struct job *, intent_cb *cb);

#endif
