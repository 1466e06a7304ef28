/*
 * What bounds callers beyond their rights: circuit breakers (breaker.h,
 * docs/decisions/0042) and rates (0043). A call passes both before anything is
 * looked up for it, mostly without leaving memory.
 */
#ifndef LIMITS_H
#define LIMITS_H

#include "admind.h"
#include "breaker.h"

struct limits;
struct rates;

/* ---- limits.c ---- */

int limits_start(struct admind *, struct err *);
/* Reads the numbers: the database is up, or somebody changed them. */
void limits_reload(struct admind *);
/* NOTIFY mcpbox_setting: "breakers" closes all breakers, else numbers changed.
 */
void limits_notified(struct admind *, const char *payload);
/* Once a second. */
void limits_tick(struct admind *);

/* Counts the call and takes its principal's token, then then(j), mostly at
 * once; or the job is refused as circuit_open or rate_limited. */
void limits_begin(struct job *, void (*then)(struct job *));
/*
 * What it calls is there and it may: takes the tool's token and the listener's,
 * once, however often it comes here. Not before: whoever may not use a tool
 * would use up the tokens of those who may, and learn that it is there.
 */
void limits_known(struct job *, void (*then)(struct job *));
/* The job was answered by this process; FAILURE_NONE: with a success. */
void limits_ended(struct job *, enum failure);
/* It was handed to who runs it: its record will say how it ended. */
void limits_under_way(struct job *);
void limits_record(
    struct admind *, const struct ipc_id *execution, enum failure);

/* Members of an open object: breakers that are open, this process's. */
void limits_breakers_json(struct admind *, struct jsonw *);

/* ---- rate.c ---- */

/* In this order: who is over its own limit takes nothing of what others share
 * with it, so one token can't use up its listener's. */
enum rate_scope { RATE_PRINCIPAL, RATE_TOOL, RATE_LISTENER, RATE_SCOPES };

struct rates *rates_new(struct admind *); /* NULL without memory */
/* What limits_now() said. Without memory the former limits hold. */
void rates_set(struct rates *, const struct pg_result *);
/* Takes a token of each of the call's buckets from `first` to before `end`,
 * then then(j); or refuses j. */
void rates_take(struct rates *, struct job *, enum rate_scope first,
    enum rate_scope end, void (*then)(struct job *));
void rates_tick(struct rates *);

#endif
