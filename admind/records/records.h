/* A sandbox's reports on its executions, and rows that are left open. */
#ifndef RECORDS_H
#define RECORDS_H

#include "op.h"

int gather_start(struct admind *, struct err *);
int gather_message(struct link *, struct ipc_frame *);  /* RECORD */
int records_message(struct link *, struct ipc_frame *); /* RECORD, EPOCH_* */
int results_message(struct link *, struct ipc_frame *); /* RESULT_CHECK */
void records_sandbox_down(struct admind *);
void records_store_epoch(struct admind *); /* the sandbox's */
/* Stores our own epoch, after all endings of earlier admind processes are
 * committed. */
void sweep_own_epoch(struct admind *);
void sweep_run(struct admind *);
/* Notes that this node is alive, and closes rows that vanished nodes left
 * open. */
void sweep_nodes(struct admind *);

#endif
