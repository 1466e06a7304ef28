/*
 * Tasks on the wire: the extension io.modelcontextprotocol/tasks (2026-07-28).
 *
 * gatewayd keeps nothing of a task. It asks admind for the task's state with
 * each request, and admind checks each time whether the task is this client's.
 * So any gateway of the listener serves the task, even a gateway that was
 * started after the task.
 */
#ifndef TASKS_H
#define TASKS_H

#include "exchange.h"

/* Serves tasks/get, tasks/update, tasks/cancel. Takes over the exchange. */
void tasks_serve(struct exchange *);
/* Answers ex, whose tools/call became a task, with CreateTaskResult. If the
 * task asks questions before its client is to know of the task, the questions
 * are sent first. Takes over the exchange. */
void tasks_created(struct exchange *, const struct ipc_task_state *);
/* Takes TASK_CHANGED: tells the streams that watch the task. 0, or -1:
 * malformed. */
int tasks_changed(struct gateway *, struct ipc_frame *);

#endif
