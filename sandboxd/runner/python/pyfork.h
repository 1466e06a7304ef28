/*
 * The interpreter's side of a fork: what the zygote makes once for all its
 * runners, and the little that each of them must have for itself. Includes
 * Python.h first.
 */
#ifndef PYFORK_H
#define PYFORK_H

#include <stdbool.h>

#include "err.h"

struct runner;

/* In the zygote, with the harness loaded: standard streams, the event loop.
 * 0 or -1. */
int pyfork_start(struct err *);
/* In a child: descriptors of its event loop, a seed. 0, or -1 with errno. */
int pyfork_child(struct runner *);

/* python.c: calls a function of the harness; NULL with a Python exception
 * set. Takes no reference. */
PyObject *python_call(const char *name, PyObject *args);
/* Is this the runner itself, and no child that a tool forked? */
bool python_is_runner(void);
/* Turns Python's pending exception into err. -1. */
int python_error(struct err *, const char *what);

#endif
