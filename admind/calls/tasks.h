/*
 * Tasks: calls whose client was promised an answer for later (MCP extension
 * io.modelcontextprotocol/tasks).
 *
 *  tasks.c     the task's row: made with the intent, read, answered,
 *              cancelled, announced
 *  task_run.c  the running call: admind itself runs it
 *
 * The row holds the whole state of a task. Memory holds only which calls this
 * process listens to at its sandbox. So a restart forgets nothing.
 */
#ifndef TASKS_H
#define TASKS_H

#include "intent.h"

/* tasks.c */

/*
 * Decides from the version's task mode and the client's wish whether a job is a
 * task or a plain call. -1: neither is possible, the job was refused and is
 * gone.
 */
int tasks_decide(struct job *, struct ipc_bytes mode);
/* intent_open() of a job that is a task. */
void tasks_open(struct job *, intent_cb *);
/* Answers a gateway's AUTHORISE with TASK_STATE, read from the row. If it can't
 * be read, the task is ended. */
void tasks_tell(struct link *, uint64_t request, const struct ipc_id *,
    const char *principal);
/* TASK_GET, TASK_UPDATE, TASK_CANCEL */
int tasks_message(struct link *, struct ipc_frame *);
/* NOTIFY mcpbox_task: some node's task changed. */
void tasks_notified(struct admind *, const char *payload);
/* Once a second: tasks whose execution ended, or whose time is over. */
void tasks_tick(struct admind *);
/* task_run.c */

/* The job's context is held: runs it, answers the gateway, frees the job. */
void task_run_start(struct job *);
/* The sandbox and its epoch are known (again), or the database is: listens to
 * the tasks that run there. */
void task_run_resume(struct admind *);
/* All questions of a task were answered, perhaps by way of another node. */
void task_run_answered(struct admind *, const struct ipc_id *);
void task_run_tick(struct admind *);
/* At an orderly end: tells each client that waits to hear whether its call
 * became a task (after_questions) that it did. Otherwise the next life would
 * end a task that no client has heard of. Returns how many still wait; ask
 * again until it is 0. */
unsigned task_run_tell_all(struct admind *);

#endif
