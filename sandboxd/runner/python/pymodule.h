/* An installer's way to the module store (mcpbox_wheel.py). Includes Python.h
 * first. */
#ifndef PYMODULE_H
#define PYMODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Sends the next bytes of the tree and waits until the store has taken them:
 * _mcpbox.module_part(data, last) -> (state, digest, files, size, text), the
 * fields of MODULE_NEXT. */
PyObject *pymodule_part(PyObject *self, PyObject *args);

#endif
