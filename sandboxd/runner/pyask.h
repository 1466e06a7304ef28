/*
 * Questions to the client: the harness' way to the channel (mcpbox_ask.py).
 * Includes Python.h first.
 */
#ifndef PYASK_H
#define PYASK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* _mcpbox.ask(number, json): sends the questions. */
PyObject *pyask_send(PyObject *self, PyObject *args);
/* _mcpbox.answer() -> (number, json): waits for the next answer. */
PyObject *pyask_receive(PyObject *self, PyObject *args);

#endif
