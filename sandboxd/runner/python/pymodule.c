/*
 * See pymodule.h. One piece of a tree is on its way at a time. So no pieces
 * gather in sandboxd, and an installer is only as fast as the store writes. If
 * a call of another kind sends a piece, sandboxd ends that call (channel.c).
 */
#include "pymodule.h"

#include "interpreter.h"
#include "ipc_io.h"
#include "pyask.h"
#include "runner.h"

static PyObject *
closed(void)
{
	PyErr_SetString(
	    PyExc_OSError, "the platform closed the call's channel");
	return NULL;
}

PyObject *
pymodule_part(PyObject *self, PyObject *args)
{
	struct ipc_module_part m = {0};
	struct ipc_module_next next;
	struct ipc_frame f;
	PyObject *result;
	const char *p;
	Py_ssize_t n;
	int last, rc;

	(void)self;
	if (!PyArg_ParseTuple(args, "y#p", &p, &n, &last) || pyask_mine() == -1)
		return NULL;
	if (n > RUNNER_PIECE_MAX) {
		PyErr_SetString(PyExc_ValueError, "the piece is too long");
		return NULL;
	}
	m.last = last != 0;
	m.data = ipc_bytes(p, (size_t)n);
	Py_BEGIN_ALLOW_THREADS;
	rc = output_send(IPC_MODULE_PART, &m) == 0 ? pyask_next(&f) : -1;
	Py_END_ALLOW_THREADS;
	if (rc != 1)
		return closed();
	if (f.type != IPC_MODULE_NEXT || ipc_decode(&f, &next, NULL) == -1) {
		ipc_frame_free(&f);
		return closed();
	}
	result = Py_BuildValue("(By#KKs#)", (unsigned char)next.state,
	    (const char *)next.digest.b, (Py_ssize_t)sizeof(next.digest.b),
	    (unsigned long long)next.files, (unsigned long long)next.size,
	    (const char *)next.text.p, (Py_ssize_t)next.text.n);
	ipc_frame_free(&f);
	return result;
}
