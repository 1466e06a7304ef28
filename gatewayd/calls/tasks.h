/*
 * Tasks on the wire: the extension io.modelcontextprotocol/tasks (2026-07-28).
 *
 * gatewayd keeps nothing of a task. What one is and how it stands admind says,
 * who asks it anew with each request whose it is; so any gateway of the
 * listener serves it, also one that was started later than the task.
 */
#ifndef TASKS_H
#define TASKS_H

#include "exchange.h"

/* tasks/get, tasks/update, tasks/cancel. Takes the exchange. */
void tasks_serve(struct exchange *);
/* ex's tools/call became a task: answers CreateTaskResult; a task that asks
 * before its client shall know of it is asked here first. Takes the exchange.
 */
void tasks_created(struct exchange *, const struct ipc_task_state *);
/* TASK_CHANGED: tells the streams that watch it. 0, or -1: malformed. */
int tasks_changed(struct gateway *, struct ipc_frame *);

#endif
