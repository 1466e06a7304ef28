/*
 * Questions to the client: the harness' way to the channel (mcpbox_ask.py).
 * Includes Python.h first.
 */
#ifndef PYASK_H
#define PYASK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Sends the questions: _mcpbox.ask(number, json). */
PyObject *pyask_send(PyObject *self, PyObject *args);
/* Waits for the next answer: _mcpbox.answer() -> (number, json). */
PyObject *pyask_receive(PyObject *self, PyObject *args);
/* Returns 0 if this process may use the channel, or -1 with a Python exception
 * if the tool forked this process. */
int pyask_mine(void);
/* Waits for the channel's next frame, without touching Python. Returns 1, 0 at
 * the channel's end, or -1 if the channel is broken. */
struct ipc_frame;
int pyask_next(struct ipc_frame *);

#endif
