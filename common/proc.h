/*
 * How every daemon starts: options, configuration, log, signals, loop.
 *
 *	mcpbox-NAME [-t] [-T] [-d] [-V] -f FILE
 *
 * -t checks the configuration and exits, -T prints the effective one, -d logs
 * at debug level. Nothing here needs or keeps privilege: the service manager
 * set uid, gid and ambient capabilities before exec.
 */
#ifndef PROC_H
#define PROC_H

#include "conf.h"
#include "err.h"

struct event_base;

struct proc {
	const char *name; /* process name as in conf_keys.def */
	struct conf *conf;
	struct event_base *base;
};

/* Parses argv, loads the configuration, opens the log, makes the loop, sets
 * SIGTERM and SIGINT to leave the loop, ignores SIGPIPE, sets umask 077,
 * refuses to run as uid 0. Exits with a message on any error. */
void proc_start(struct proc *, const char *name, int argc, char **argv);
/* RUN_DIR/process/name.sock into buf (at most 80 bytes: sun_path is 108 and
 * state directories may be long). -1 with err when it does not fit. */
int proc_socket_path(const struct proc *, const char *process, const char *name,
    char *buf, size_t len, struct err *);
/* Runs the loop until SIGTERM or SIGINT; returns the exit status. */
int proc_run(struct proc *);

#endif
