/* The intent of a call: its row, and its TLV, which records keep. */
#ifndef INTENT_H
#define INTENT_H

#include "job.h"

/* Writes the intent TLV (context.h) of a job. The job may be a call of a tool
 * or a management call. */
void intent_tlv(const struct job *, struct buf *);
/* Writes the same TLV without the form of the arguments that records keep.
 * hold_may() adds this form later. */
void intent_tlv_bare(const struct job *, struct buf *);
/*
 * Called when the intent row of a tool's call was committed, or could not be.
 * why is "ok", "stale" (the server's limits changed after j->limits_at), or the
 * name of the failure that forbids the call. If err is STORAGE_UNAVAILABLE, the
 * row may have been committed all the same.
 */
typedef void intent_cb(struct job *, const char *why, const struct err *);
/* Writes the parameters of call_open() for a job. text (initialised) keeps the
 * bytes of the arguments. */
struct db_params;
void intent_params(const struct job *, struct db_params *, struct buf *text);
/* Appends the arguments, as records keep them, to text (initialised). */
void intent_arguments(const struct job *, struct buf *text);
/* Adds three parameters to those of intent_params(): trace id, span id,
 * session. Each may be null. */
void intent_marks(const struct job *, struct db_params *);
void intent_open(struct job *, intent_cb *);

#endif
