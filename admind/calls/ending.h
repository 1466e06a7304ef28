/* How this process's own executions end. */
#ifndef ENDING_H
#define ENDING_H

#include "admind.h"

enum { STORED_RESULT_MAX = 64 * 1024 }; /* of a result, in its row */
extern const struct db_stmt ending_row; /* execution_close() */
/* Its last ten parameters, from an intent TLV; clean keeps their bytes. */
void ending_intent_params(struct db_params *, struct ipc_bytes intent,
    uint64_t kind_max, struct buf *clean);
/* An ending of a task's execution: the statement, and its last parameters
 * behind those of ending_row. whole, meta: result text, or empty. */
extern const struct db_stmt ending_task_row;
void ending_task_params(struct db_params *, enum failure,
    struct ipc_bytes whole, struct ipc_bytes meta);
/* Returns whether this intent TLV (context.h) belongs to a task. */
bool ending_of_task(struct ipc_bytes intent);
/* How an execution of ours ended; retried until it is committed. */
struct ending {
	struct ipc_id id, epoch;
	enum outcome outcome;
	enum failure failure;
	bool delivered;
	uint64_t started_us, ended_us;
	struct ipc_bytes result; /* text, or empty */
	/* TLV (context.h, INTENT_*): the whole row again, should a crash of
	 * PostgreSQL have lost it. Or empty. */
	struct ipc_bytes intent;
};
void ending_close(struct admind *, const struct ending *);
/* Opens the ledger and takes over what an earlier life of this process left
 * in it; done runs once all of that is committed. 0, or -1: the error says
 * what to do. Before confinement. */
int ending_ledger(struct admind *, void (*done)(struct admind *), struct err *);
bool ending_full(const struct admind *); /* too many uncommitted endings */
void ending_retry(struct admind *);      /* from the tick */

#endif
