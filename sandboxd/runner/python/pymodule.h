/* An installer's way to the module store (mcpbox_wheel.py). Includes Python.h
 * first. */
#ifndef PYMODULE_H
#define PYMODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* _mcpbox.module_part(data, last) -> (state, digest, files, size, text): sends
 * the next bytes of the tree and waits until they were taken; the values are
 * MODULE_NEXT's. */
PyObject *pymodule_part(PyObject *self, PyObject *args);

#endif
