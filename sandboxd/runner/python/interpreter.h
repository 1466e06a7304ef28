/*
 * The interpreter that runs a tool, and the output that the tool prints.
 */
#ifndef INTERPRETER_H
#define INTERPRETER_H

#include "runner.h"

/* output.c: the tool's output. */
int output_pipe(void);  /* makes the pipe: fds 1, 2 and RUNNER_PIPE_FD */
int output_start(void); /* starts the thread that reads the pipe */
/* Sets how many bytes are sent at most. Called before any output. */
void output_limit(size_t max);
/* Sends all bytes written so far before it returns. Only the runner's own
 * process may call this, not a process that the tool forked. */
void output_flush(void);
/* Sends all bytes written so far before it returns, and none after. The
 * captured text stays valid until the process ends. */
void output_stop(const char **text, size_t *n, bool *truncated);
/* Sends a frame; blocks. Two threads write to the channel, and a full socket
 * must not tear frames apart, so both threads use this function. 0 or -1. */
int output_send(enum ipc_type, const void *msg);

/* python.c: the interpreter. */
int python_start(struct zygote *, struct err *);
/* Renews the parts of the interpreter that each child needs for itself: the
 * descriptors of its event loop, a seed. A step. */
int python_child(struct runner *);
/* Restores malloc's usual settings after the snapshot. 0 or -1. */
int python_settled(struct err *);
/* Unpacks the compiled form of the code that python_run will run; executes
 * nothing of it. time: true if ARGUMENTS has not come yet. */
void python_prepare(const struct ipc_execute *, bool time);
/* Runs or inspects one tool; sends everything, RUN_RESULT included. */
int python_run(const struct ipc_execute *, struct ipc_bytes arguments,
    struct ipc_bytes secrets);
/* Does the same for a command. */
int python_command(const struct runner *, const struct ipc_execute *,
    struct ipc_bytes arguments);

/* Makes source and compiled form of a main that returns its argument, as
 * EXECUTE has them (pyfork.c, before the snapshot). 0 or -1. */
int pyfork_rehearsal(
    bool is_async, struct buf *code, uint32_t *source_len, struct err *);

#endif
