/*
 * What runs a tool: the interpreter, and what the tool prints.
 */
#ifndef INTERPRETER_H
#define INTERPRETER_H

#include "runner.h"

/* output.c: what the tool prints. */
int output_pipe(void);  /* fds 1, 2 and RUNNER_PIPE_FD */
int output_start(void); /* the thread that reads the pipe */
/* Bytes to send at most; before the first one is printed. */
void output_limit(size_t max);
/* All bytes written so far are sent when it returns. Of the runner's process
 * alone, not of one that the tool forked. */
void output_flush(void);
/* All bytes written so far are sent when it returns, and none after. The
 * captured text stays valid until the process ends. */
void output_stop(const char **text, size_t *n, bool *truncated);
/* The channel is written by two threads; frames must not be torn apart by a
 * full socket, so both come through here. Blocks. 0 or -1. */
int output_send(enum ipc_type, const void *msg);

/* python.c: the interpreter. */
int python_start(struct zygote *, struct err *);
/* What the interpreter needs anew in each child: descriptors of its event
 * loop, a seed. A step. */
int python_child(struct runner *);
/* After the snapshot: malloc as tools know it again. 0 or -1. */
int python_settled(struct err *);
/* Unpacks what was compiled of the code that python_run will run; executes
 * nothing of it. time: the rest of the call is not there yet. */
void python_prepare(const struct ipc_execute *, bool time);
/* Runs or inspects one tool; sends everything, RUN_RESULT included. */
int python_run(const struct ipc_execute *, struct ipc_bytes arguments,
    struct ipc_bytes secrets);
/* The same for a command. */
int python_command(const struct runner *, const struct ipc_execute *,
    struct ipc_bytes arguments);

/* pyfork.c, before the snapshot: source and compiled form of a main that
 * returns its argument, as EXECUTE has them. 0 or -1. */
int pyfork_rehearsal(
    bool is_async, struct buf *code, uint32_t *source_len, struct err *);

#endif
