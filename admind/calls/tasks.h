/*
 * Tasks: calls whose client was promised an answer for later (MCP extension
 * io.modelcontextprotocol/tasks).
 *
 *  tasks.c     the task's row: made with the intent, read, answered,
 *              cancelled, announced
 *  task_run.c  the running call: admind itself runs it
 *
 * The row holds the whole state of a task. Memory holds only the list of the
 * calls at its sandbox that this process listens to. So a restart loses
 * nothing.
 */
#ifndef TASKS_H
#define TASKS_H

#include "intent.h"

/* tasks.c */

/*
 * Decides from the version's task mode and the client's wish whether a job is a
 * task or a plain call. Returns 0, or -1 if neither is possible: the job was
 * refused and is gone.
 */
int tasks_decide(struct job *, struct ipc_bytes mode);
/* Does what intent_open() does, for a job that is a task. */
void tasks_open(struct job *, intent_cb *);
/* Answers a gateway's AUTHORISE with TASK_STATE, read from the task's row. If
 * the row can't be read, the task is ended. */
void tasks_tell(struct link *, uint64_t request, const struct ipc_id *,
    const char *principal);
/* Handles TASK_GET, TASK_UPDATE, TASK_CANCEL and TASK_DROP. Returns 0, or -1
 * for a malformed frame. */
int tasks_message(struct link *, struct ipc_frame *);
/* Handles NOTIFY mcpbox_task: a task of this or another node changed. */
void tasks_notified(struct admind *, const char *payload);
/* Called once a second. Ends tasks whose execution ended. Cancels running tasks
 * whose time is over, and removes ended ones. */
void tasks_tick(struct admind *);
/* task_run.c */

/* Runs the task of a job whose context is held. Answers the gateway and frees
 * the job. */
void task_run_start(struct job *);
/* Listens to the tasks that run at the sandbox. Called when the sandbox and its
 * epoch become known, or when the database is back. */
void task_run_resume(struct admind *);
/* Called when all questions of a task were answered, perhaps through another
 * node. */
void task_run_answered(struct admind *, const struct ipc_id *);
void task_run_tick(struct admind *);
/* Returns the principal of a task that this connection began and whose client
 * does not know the task's id; else NULL. */
const char *task_run_untold(const struct link *, const struct ipc_id *);
/* Notes that the client of a task knows it now. */
void task_run_known(struct admind *, const struct ipc_id *);
/* Called at an orderly end of admind. In mode after_questions a client may
 * still wait to hear whether its call became a task. Tells each such client
 * that the call is a task now. Otherwise the next process of admind would end
 * the task, because no client got its id. Returns how many clients still wait.
 * To be called again until it returns 0. */
unsigned task_run_tell_all(struct admind *);

#endif
