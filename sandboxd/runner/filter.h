/*
 * The system calls a runner may make, as a compiled seccomp program.
 *
 * Built once by the zygote with libseccomp, loaded by every runner with
 * seccomp(2). Exported so that a test can evaluate it over a table.
 */
#ifndef FILTER_H
#define FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "err.h"

struct filter;

/* Compiles the program for tools in Python, or the one for commands, which
 * adds execve and what the start of a program needs. NULL with err on
 * failure. */
struct filter *filter_new(bool command, struct err *);
void filter_free(struct filter *);
/* The program: an array of struct sock_filter, *n bytes; borrowed. */
const void *filter_program(const struct filter *, size_t *n);
/* Loads it into the calling thread; there must be no other. 0 or -1 with
 * errno. */
int filter_load(const struct filter *);

#endif
