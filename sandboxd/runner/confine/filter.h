/*
 * The system calls a runner may make, as a compiled seccomp program.
 *
 * Built once by the zygote with libseccomp, loaded by every runner with
 * seccomp(2). A test can read the program and evaluate it over a table.
 */
#ifndef FILTER_H
#define FILTER_H

#include <stddef.h>

#include "buf.h"
#include "err.h"

struct filter;

/* Forms of the program, or-ed. 0 is the form for tools in Python that are
 * granted no hosts. */
enum {
	/* adds execve and the other calls a program's start needs */
	FILTER_COMMAND = 1,
	FILTER_NETWORK = 2 /* adds internet sockets and connect(2), which
			    * raises a notification (filter_net.c) */
};

/* Compiles the program. Returns NULL with err on failure. With FILTER_NETWORK
 * it fails also if there are no seccomp notifications. */
struct filter *filter_new(unsigned forms, struct err *);
void filter_free(struct filter *);
/* Returns the program: an array of struct sock_filter, *n bytes; borrowed. */
const void *filter_program(const struct filter *, size_t *n);
/* Loads the program into the calling thread; the process must have no other
 * thread. 0 or -1 with errno. */
int filter_load(const struct filter *);
/* Loads a program with FILTER_NETWORK. Returns the listener (CLOEXEC), or -1
 * with errno. EBUSY: a filter that already applies to this process has a
 * listener, as in some containers. */
int filter_listen(const struct filter *);

#endif
