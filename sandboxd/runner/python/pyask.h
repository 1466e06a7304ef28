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
/* -1 with a Python exception: the tool forked this process, and it has no
 * share in the channel. */
int pyask_mine(void);
/* Waits for the channel's next frame, without touching Python. 1, or what
 * ipc_read says: 0 at the end, -1 broken. */
struct ipc_frame;
int pyask_next(struct ipc_frame *);

#endif
