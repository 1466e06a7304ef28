/* An installer's way to the module store (mcpbox_wheel.py). Includes Python.h
 * first. */
#ifndef PYMODULE_H
#define PYMODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Sends the next bytes of the tree and waits until they were taken:
 * _mcpbox.module_part(data, last) -> (state, digest, files, size, text); the
 * values are MODULE_NEXT's. */
PyObject *pymodule_part(PyObject *self, PyObject *args);

#endif
