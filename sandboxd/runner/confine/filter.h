/*
 * The system calls a runner may make, as a compiled seccomp program.
 *
 * Built once by the zygote with libseccomp, loaded by every runner with
 * seccomp(2). Exported so that a test can evaluate it over a table.
 */
#ifndef FILTER_H
#define FILTER_H

#include <stddef.h>

#include "buf.h"
#include "err.h"

struct filter;

/* Forms of the program, or-ed. 0 is that of tools in Python without grants. */
enum {
	/* adds execve and the other calls a program's start needs */
	FILTER_COMMAND = 1,
	FILTER_NETWORK = 2 /* adds internet sockets and connect(2), which
			    * raises a notification (filter_net.c) */
};

/* Compiles the program. NULL with err on failure: with FILTER_NETWORK also if
 * there are no notifications. */
struct filter *filter_new(unsigned forms, struct err *);
void filter_free(struct filter *);
/* Returns the program: an array of struct sock_filter, *n bytes; borrowed. */
const void *filter_program(const struct filter *, size_t *n);
/* Loads the program into the calling thread; there must be no other. 0 or -1
 * with errno. */
int filter_load(const struct filter *);
/* Loads a program with FILTER_NETWORK. Returns the listener (CLOEXEC), or -1
 * with errno: EBUSY if a filter around us has one, as some containers'. */
int filter_listen(const struct filter *);

#endif
