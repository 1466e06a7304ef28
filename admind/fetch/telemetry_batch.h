/* Ended calls of the queue as the requests of one run, and counted. No I/O. */
#ifndef TELEMETRY_BATCH_H
#define TELEMETRY_BATCH_H

#include "admind.h"
#include "otlp_state.h"
#include "rules.h"

/* Returns the number of calls in the rows of telemetry_take(). */
int telemetry_batch_calls(const struct pg_result *);
/* Takes over dropped and waiting from the rows. */
void telemetry_batch_figures(struct otlp_state *, const struct pg_result *);
/* Writes the arguments of the run: {"posts": [{"path", "body"}]}, spans first.
 * Returns the number of posts. Without memory out fails. */
int telemetry_batch_put(struct admind *, const struct telemetry *,
    const struct pg_result *, struct buf *out);
/* Counts the calls as ended. */
void telemetry_batch_count(struct otlp_state *, const struct pg_result *);

#endif
