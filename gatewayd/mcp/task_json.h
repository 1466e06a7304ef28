/* A task as JSON. No I/O. */
#ifndef TASK_JSON_H
#define TASK_JSON_H

#include "buf.h"
#include "ipc.h"

/*
 * Writes the members of a Task, without braces. detailed: adds the member that
 * belongs to the task's state (inputRequests, result or error), as tasks/get
 * and notifications/tasks show it. The body was made elsewhere, so it is
 * scanned here. 0, or -1: it is malformed, or there is no memory; the buffer
 * then holds nothing usable.
 */
int task_json_members(
    struct buf *, const struct ipc_task_state *, bool detailed);
/* Writes "2026-11-22T05:24:00.123Z" (RFC 3339). */
enum { TASK_JSON_TIME_LEN = 24 };
void task_json_time(uint64_t unix_us, char out[TASK_JSON_TIME_LEN + 1]);

#endif
