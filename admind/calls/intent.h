/* The intent of a call: its row, and what records keep of it. */
#ifndef INTENT_H
#define INTENT_H

#include "job.h"

/* The intent TLV (context.h) of a job: of its call of a tool, or of its
 * management call. */
void intent_tlv(const struct job *, struct buf *);
/* Without what is kept of the arguments: hold_may() brings that. */
void intent_tlv_bare(const struct job *, struct buf *);
/*
 * Commits the intent row of a tool's call. why: "ok"; "stale", the server's
 * limits are not those of j->limits_at; else the name of the failure that
 * forbids the call. With err, a STORAGE_UNAVAILABLE means: perhaps it is there.
 */
typedef void intent_cb(struct job *, const char *why, const struct err *);
/* call_open()'s parameters of a job; text (initialised) keeps their bytes. */
struct db_params;
void intent_params(const struct job *, struct db_params *, struct buf *text);
/* The arguments as the record keeps them, appended to text (initialised). */
void intent_arguments(const struct job *, struct buf *text);
/* Three more parameters: trace id, span id, session; each may be null. */
void intent_marks(const struct job *, struct db_params *);
void intent_open(struct job *, intent_cb *);

#endif
