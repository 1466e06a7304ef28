/*
 * The start of every daemon: options, configuration, log, signals, loop.
 *
 *	mcpbox-NAME [-t] [-T] [-d] [-V] -f FILE
 *
 * -t checks the configuration and exits, -T prints the effective configuration,
 * -d logs at debug level. Nothing here needs or keeps privilege: the service
 * manager set uid, gid and ambient capabilities before exec.
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
	void (*stop)(void *arg); /* proc_on_stop */
	void *stop_arg;
	bool stopping; /* the first signal came */
};

/*
 * Sets fn, which makes the checks of -t beyond the table of settings, for
 * example of a list in a string. Call this before proc_start. If fn returns -1
 * with err, the file is refused. fn does not check other files, which -t need
 * not be able to read. A reload runs -t first, so that a wrong file changes
 * nothing (docs/decisions/0055).
 */
void proc_check_with(int (*fn)(const struct conf *, struct err *));
/* Takes the descriptors of the service manager (service.h), parses argv, loads
 * the configuration, opens the log, makes the loop, sets SIGTERM, SIGINT and
 * SIGHUP to leave the loop (proc_on_stop), ignores SIGPIPE, sets umask 077,
 * refuses to run as uid 0. Exits with a message on any error. */
void proc_start(struct proc *, const char *name, int argc, char **argv);
/* Writes RUN_DIR/process/name.sock into buf (at most 80 bytes: sun_path is 108
 * and state directories may be long). -1 with err when it does not fit. */
int proc_socket_path(const struct proc *, const char *process, const char *name,
    char *buf, size_t len, struct err *);
/*
 * The first SIGTERM, SIGINT or SIGHUP calls fn, from the loop, instead of
 * leaving the loop. fn lets work under way end, within a time of its own, and
 * then calls proc_end. A second signal leaves the loop at once. SIGHUP ends the
 * process, too: a process that is started again reads its configuration again
 * (docs/decisions/0055).
 */
void proc_on_stop(struct proc *, void (*fn)(void *arg), void *arg);
/* Leaves the loop, after the callback that runs now. */
void proc_end(struct proc *);
/* Runs the loop until a signal or proc_end ends it; returns the exit status. */
int proc_run(struct proc *);

#endif
