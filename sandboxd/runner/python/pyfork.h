/*
 * The interpreter's side of a fork: the objects that the zygote makes once for
 * all its runners, and the few objects that each runner must have for itself.
 * Includes Python.h first.
 */
#ifndef PYFORK_H
#define PYFORK_H

#include <stdbool.h>

#include "err.h"

struct runner;

/* Prepares the zygote, with the harness loaded: standard streams, the event
 * loop. 0 or -1. */
int pyfork_start(struct err *);
/* Prepares a child: descriptors of its event loop, a seed. 0, or -1 with
 * errno. */
int pyfork_child(struct runner *);

/* Calls a function of the harness (python.c). args is borrowed. Returns NULL
 * with a Python exception set on failure. */
PyObject *python_call(const char *name, PyObject *args);
/* Tells whether this process is the runner itself, and not a child that the
 * tool forked. */
bool python_is_runner(void);
/* Turns Python's pending exception into err. Returns -1. */
int python_error(struct err *, const char *what);

#endif
