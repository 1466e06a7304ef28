/*
 * Runs another program to its end: pg_dump, pg_restore, psql, systemctl.
 *
 * Only commands that a person or the service manager runs use this
 * (mcpboxctl, `mcpbox-admind -m`); no daemon executes anything while it serves,
 * and its system-call list forbids it. There is no shell, and nothing of our
 * environment is passed on.
 */
#ifndef CHILD_H
#define CHILD_H

#include <sys/types.h>

#include "buf.h"
#include "err.h"

enum {
	CHILD_ARGS_MAX = 24,
	/* bytes kept of a program's standard error; the rest is dropped */
	CHILD_SAID_MAX = 64 * 1024
};

struct child {
	const char *program;     /* absolute path */
	const char *const *args; /* without argv[0]; NULL at the end */
	/* NAME=VALUE in addition to PATH and LC_ALL; NULL at the end. May be
	 * NULL. */
	const char *const *env;
	int in, out; /* -1: our own, or /dev/null if uid is not 0 */
	/* The program runs as this user and group, without other groups, in a
	 * session without a terminal. 0: it runs as we do. */
	uid_t uid;
	gid_t gid;
};

/*
 * Runs the program and waits; the program is killed if we are. Its standard
 * error is appended to *said (initialised with its maximum) if said is not
 * NULL. Else it goes to our standard error, or to /dev/null if uid is not 0.
 * Returns the program's exit status (128 + N for signal N; 127 if it could not
 * be executed), or -1 with err if fork or wait failed.
 */
int child_run(const struct child *, struct buf *said, struct err *);

#endif
