/*
 * See pyask.h. After SECRETS only this code reads the channel. The only frame
 * that can still come is ANSWER, or MODULE_NEXT for an installer (pymodule.c).
 * The harness lets one thread at a time in. A tool that reads the descriptor
 * itself only loses its own answers.
 */
#include "pyask.h"

#include <errno.h>
#include <poll.h>

#include "interpreter.h"
#include "ipc_io.h"
#include "pyfork.h"
#include "runner.h"

static PyObject *
closed(void)
{
	PyErr_SetString(
	    PyExc_OSError, "the platform closed the call's channel");
	return NULL;
}

/* Refuses a process that the tool forked. Such a process shares the descriptor,
 * and could take the answer for which another process waits. */
int
pyask_mine(void)
{
	if (python_is_runner())
		return 0;
	PyErr_SetString(PyExc_RuntimeError,
	    "only the process that runs main can ask the client");
	return -1;
}

PyObject *
pyask_send(PyObject *self, PyObject *args)
{
	struct ipc_ask m = {0};
	unsigned number;
	const char *p;
	Py_ssize_t n;
	int rc;

	if (!PyArg_ParseTuple(args, "Iy#", &number, &p, &n) ||
	    pyask_mine() == -1)
		return NULL;
	if (n > RUNNER_PIECE_MAX) {
		PyErr_SetString(PyExc_ValueError, "the questions are too long");
		return NULL;
	}
	m.number = number;
	m.json = ipc_bytes(p, (size_t)n);
	Py_BEGIN_ALLOW_THREADS;
	rc = output_send(IPC_ASK, &m);
	Py_END_ALLOW_THREADS;
	if (rc == -1)
		return closed();
	Py_RETURN_NONE;
}

int
pyask_next(struct ipc_frame *f)
{
	struct pollfd p = {.fd = RUNNER_CHANNEL_FD, .events = POLLIN};
	int rc;

	for (;;) {
		if (poll(&p, 1, -1) == -1) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		rc = ipc_read(RUNNER_CHANNEL_FD, f, NULL);
		if (rc != -1 || (errno != EAGAIN && errno != EINTR))
			return rc;
	}
}

PyObject *
pyask_receive(PyObject *self, PyObject *args)
{
	struct ipc_answer m;
	struct ipc_frame f;
	PyObject *result;
	int rc;

	(void)args;
	if (pyask_mine() == -1)
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	rc = pyask_next(&f);
	Py_END_ALLOW_THREADS;
	if (rc != 1)
		return closed();
	if (f.type != IPC_ANSWER || ipc_decode(&f, &m, NULL) == -1) {
		ipc_frame_free(&f);
		return closed();
	}
	result = Py_BuildValue("(Iy#)", (unsigned)m.number,
	    (const char *)m.json.p, (Py_ssize_t)m.json.n);
	ipc_frame_free(&f);
	return result;
}
