/* Kind COMMAND: connects the runner, the interpreter and command.c. */
#ifndef PYCOMMAND_H
#define PYCOMMAND_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "runner.h"

/* Runs a command: _mcpbox.command(path, argv, env, stdin, stdout_max,
 * stderr_max). */
PyObject *pycommand_method(PyObject *self, PyObject *args);
/* Hands one call to harness/mcpbox_command.py. NULL with a Python exception set
 * if the harness could not end the call. */
PyObject *pycommand_start(const struct runner *, const struct ipc_execute *,
    struct ipc_bytes arguments);

#endif
