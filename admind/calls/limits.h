/*
 * Limits of callers in addition to their rights: circuit breakers (breaker.h,
 * docs/decisions/0042) and rates (docs/decisions/0043). A call passes the
 * breakers and its principal's rate before anything is looked up for it. Mostly
 * that needs no query to the database.
 */
#ifndef LIMITS_H
#define LIMITS_H

#include "admind.h"
#include "breaker.h"

struct limits;
struct rates;

/* ---- limits.c ---- */

int limits_start(struct admind *, struct err *);
/* Reads the limits from the database again. Called when the database is up, or
 * when a limit was changed. */
void limits_reload(struct admind *);
/* Handles NOTIFY mcpbox_setting: "breakers" closes all breakers; any other
 * payload reads the limits again. */
void limits_notified(struct admind *, const char *payload);
/* Called once a second. */
void limits_tick(struct admind *);

/* Counts the call and takes a rate token of its principal. Then calls then(j),
 * mostly at once, or refuses the job as circuit_open or rate_limited. */
void limits_begin(struct job *, void (*then)(struct job *));
/*
 * Takes a rate token of the tool and one of the listener, once, however often
 * it is called for a job. Called when the object exists and the job may call
 * it. If it were called earlier, a caller who may not use a tool would use up
 * the tokens of those who may, and would learn that the tool exists.
 */
void limits_known(struct job *, void (*then)(struct job *));
/* Notes that this process answered the job; FAILURE_NONE: with a success. */
void limits_ended(struct job *, enum failure);
/* Notes that sandboxd has the job's call now. limits_record() will tell how it
 * ended. */
void limits_under_way(struct job *);
void limits_record(
    struct admind *, const struct ipc_id *execution, enum failure);

/* Writes this process's open breakers as members of an open object. */
void limits_breakers_json(struct admind *, struct jsonw *);

/* ---- rate.c ---- */

/* Tokens are taken in this order. So a caller over its own limit takes nothing
 * of the limits that it shares with others, and one principal can't use up its
 * listener's limit. */
enum rate_scope { RATE_PRINCIPAL, RATE_TOOL, RATE_LISTENER, RATE_SCOPES };

struct rates *rates_new(struct admind *); /* NULL without memory */
/* Takes over the rows of limits_now(). If memory runs out, the former limits
 * remain. */
void rates_set(struct rates *, const struct pg_result *);
/* Takes a token from each of the call's buckets, from `first` to before `end`.
 * Then calls then(j), or refuses j. */
void rates_take(struct rates *, struct job *, enum rate_scope first,
    enum rate_scope end, void (*then)(struct job *));
void rates_tick(struct rates *);

#endif
