/* The endings of executions that admind itself closes. */
#ifndef ENDING_H
#define ENDING_H

#include "admind.h"

/* Bytes of a result that are kept in the row of its execution. */
enum { STORED_RESULT_MAX = 64 * 1024 };
extern const struct db_stmt ending_row; /* execution_close() */
/* Adds the ten parameters of ending_row that come from an intent TLV. If the
 * TLV is not enough for a whole row, all ten are null. kind_max: the highest
 * kind that is accepted. clean (initialised) keeps the bytes of the
 * parameters. */
void ending_intent_params(struct db_params *, struct ipc_bytes intent,
    uint64_t kind_max, struct buf *clean);
/* ending_task_row closes the execution of a task. It takes the parameters of
 * ending_row, and before the last one the three that ending_task_params() adds.
 * whole: the text of the result. meta: its _meta object. Both may be empty. */
extern const struct db_stmt ending_task_row;
void ending_task_params(struct db_params *, enum failure,
    struct ipc_bytes whole, struct ipc_bytes meta);
/* Returns whether this intent TLV (context.h) belongs to a task. */
bool ending_of_task(struct ipc_bytes intent);
/* The ending of an execution. ending_close() sends it again until it is
 * committed. */
struct ending {
	struct ipc_id id, epoch;
	enum outcome outcome;
	enum failure failure;
	bool delivered;
	uint64_t started_us, ended_us;
	struct ipc_bytes result; /* text, or empty */
	/* The whole row as TLV (context.h, INTENT_*), in case a crash of
	 * PostgreSQL lost the row; or empty. */
	struct ipc_bytes intent;
};
void ending_close(struct admind *, const struct ending *);
/* Opens the ledger and takes over the endings that an earlier process of admind
 * left in it. Calls done() once all these endings are committed. Returns 0, or
 * -1: the error says what to do. Called before confinement. */
int ending_ledger(struct admind *, void (*done)(struct admind *), struct err *);
/* Returns whether too many endings are uncommitted. */
bool ending_full(const struct admind *);
/* Sends again the endings that were not committed. Called by the tick. */
void ending_retry(struct admind *);

#endif
