/* A sandbox's reports on its executions, and rows that are left open. */
#ifndef RECORDS_H
#define RECORDS_H

#include "op.h"

int gather_start(struct admind *, struct err *);
int gather_message(struct link *, struct ipc_frame *);  /* RECORD */
int records_message(struct link *, struct ipc_frame *); /* RECORD, EPOCH_* */
int results_message(struct link *, struct ipc_frame *); /* RESULT_CHECK */
void records_sandbox_down(struct admind *);
void records_store_epoch(struct admind *); /* sandboxd's, if it named all */
/* Has our own epoch stored, once no earlier life's ending is uncommitted. */
void sweep_own_epoch(struct admind *);
void sweep_run(struct admind *);
/* Says that this node is there; closes what nodes that are gone left open. */
void sweep_nodes(struct admind *);

#endif
