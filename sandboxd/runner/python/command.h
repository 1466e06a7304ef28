/*
 * One command: its process, its input, its output. There is no Python and no
 * JSON here: harness/mcpbox_command.py makes argv and the result.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/* A stream's output: bytes up to a maximum are kept, all others are counted. */
struct command_output {
	struct buf kept;
	uint64_t total;
};

struct command {
	/* Borrowed. argv[0] is path; argv and envp end with NULL. */
	const char *path;
	char *const *argv, *const *envp;
	const char *input; /* of input_n bytes; NULL: /dev/null */
	size_t input_n;
	/* kept is initialised with its maximum by the caller. */
	struct command_output out, err;
	/* Set at the end. */
	int status;           /* wait status of the command */
	uint64_t duration_ms; /* from its start to its end */
	uint64_t cpu_ms;      /* of the command and the children it waited
			       * for */
};

/*
 * Runs the command to its end. 0, or -1 with errno if it was not started.
 * Returns when the command itself has ended and its output was read from the
 * pipes. Descendants that hold the pipes open are not waited for: the caller is
 * pid 1 and exits soon, and the kernel then kills all other processes. The
 * caller ignores SIGPIPE: input that the command doesn't read is no error.
 */
int command_run(struct command *);

#endif
