/* The interpreter's part of a fork. See pyfork.h. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <sys/epoll.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "interpreter.h"
#include "pyfork.h"
#include "root.h"
#include "runner.h"

/*
 * PyOS_BeforeFork and PyOS_AfterFork_Child are not called. They exist for
 * processes with threads, whose locks may be held by a thread that the child
 * does not have. They make all locks again and run every module's hooks, in
 * Python, which takes a fifth of the time of a whole call. The zygote has one
 * thread. At a fork that thread holds the interpreter and no other lock, and
 * runs no Python code. The child's one thread has the same state, at the same
 * address. The hooks' work other than locks is done here. The random module's
 * generator gets a new seed. It is the only generator that the zygote made
 * (test_random.py would see another). threading needs the thread's new id,
 * which is the same in every runner, so loop() sets it before the fork. A
 * tool's own os.fork() calls both functions as usual.
 */
static PyObject *seed, *generator; /* of the random module */

/*
 * Renews the loop's descriptors. asyncio's loop exists before the fork, with
 * all its objects; only its three descriptors can't be shared. They have fixed
 * numbers, and the new descriptors get the same numbers. So no Python object
 * has to be touched.
 */
static int
loop_fds(void)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = RUNNER_WAKE_FD};
	int ep, sv[2];

	ep = epoll_create1(EPOLL_CLOEXEC);
	if (ep != RUNNER_EPOLL_FD ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		sv) == -1)
		return -1;
	if (sv[0] != RUNNER_WAKE_FD || sv[1] != RUNNER_WAKE_FD + 1) {
		errno = EBADF;
		return -1;
	}
	return epoll_ctl(ep, EPOLL_CTL_ADD, RUNNER_WAKE_FD, &e);
}

/* Adds the granted modules to Python's path. They come after the standard
 * library, so they can't take the place of one of its modules. */
static int
module_paths(size_t n)
{
	PyObject *args, *result;

	args = Py_BuildValue("(n)", (Py_ssize_t)n);
	result = args == NULL ? NULL : python_call("modules", args);
	Py_XDECREF(args);
	Py_XDECREF(result);
	return result == NULL ? -1 : 0;
}

int
pyfork_child(struct runner *r)
{
	PyObject *result;
	/* r is NULL in a rehearsal (prefault.c) */
	const size_t modules = r == NULL ? 0 : modules_count(r->fork);

	if (loop_fds() == -1)
		return -1;
	result = PyObject_CallOneArg(seed, generator);
	if (result == NULL) {
		PyErr_Clear();
		errno = EIO;
		return -1;
	}
	Py_DECREF(result);
	if (modules > 0 && module_paths(modules) == -1) {
		PyErr_Clear();
		errno = EIO;
		return -1;
	}
	return 0;
}

/* Makes asyncio's loop. Its descriptors must get the numbers that loop_fds()
 * renews. 0 to 3 are in use, so `fill` occupies 4 for now. */
static int
loop(struct err *err)
{
	int fill = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, RUNNER_PIPE_FD);
	PyObject *args, *result;

	if (fill != RUNNER_PIPE_FD)
		return err_set(err, FAILURE_INTERNAL, "descriptor %d is in use",
		    RUNNER_PIPE_FD);
	args = Py_BuildValue(
	    "(iiii)", RUNNER_EPOLL_FD, RUNNER_WAKE_FD, RUNNER_WAKE_FD + 1, 1);
	result = args == NULL ? NULL : python_call("loop", args);
	Py_XDECREF(args);
	(void)close(fill);
	if (result == NULL)
		return python_error(err, "loop");
	Py_DECREF(result);
	return 0;
}

/* Makes the standard streams' objects while 1 and 2 are a pipe, as they will be
 * in the runner, because the objects remember the kind of their descriptors. */
static int
streams(struct err *err)
{
	PyObject *result = NULL;
	int fds[2], kept[2] = {-1, -1}, i, rc = -1;

	if (pipe2(fds, O_CLOEXEC) == -1)
		return err_sys(err, FAILURE_INTERNAL, "pipe");
	for (i = 0; i < 2; i++) {
		kept[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, RUNNER_FDS);
		if (kept[i] == -1 || dup2(fds[1], i + 1) == -1) {
			(void)err_sys(err, FAILURE_INTERNAL, "streams");
			goto out;
		}
	}
	result = python_call("streams", NULL);
	if (result != NULL)
		rc = 0;
	else
		(void)python_error(err, "streams");
	Py_XDECREF(result);
out:
	for (i = 0; i < 2; i++)
		if (kept[i] != -1) {
			(void)dup2(kept[i], i + 1);
			(void)close(kept[i]);
		}
	(void)close(fds[0]);
	(void)close(fds[1]);
	return rc;
}

/* Finds the seed method. random.Random is a Python class over a C class. The
 * method of the C class does the work and touches fewer pages of memory. */
static int
find_seed(struct err *err)
{
	PyObject *random = PyImport_ImportModule("random");
	PyObject *base = PyImport_ImportModule("_random"), *type = NULL;

	if (random != NULL && base != NULL &&
	    (type = PyObject_GetAttrString(base, "Random")) != NULL) {
		seed = PyObject_GetAttrString(type, "seed");
		generator = PyObject_GetAttrString(random, "_inst");
	}
	Py_XDECREF(type);
	Py_XDECREF(base);
	Py_XDECREF(random);
	return seed != NULL && generator != NULL
	    ? 0
	    : python_error(err, "random.seed");
}

int
pyfork_rehearsal(
    bool is_async, struct buf *code, uint32_t *source_len, struct err *err)
{
	PyObject *args = Py_BuildValue("(O)", is_async ? Py_True : Py_False);
	PyObject *result = args == NULL ? NULL : python_call("rehearsal", args);
	const char *source, *compiled;
	Py_ssize_t n, m;
	int rc = -1;

	if (result != NULL &&
	    PyArg_ParseTuple(result, "y#y#", &source, &n, &compiled, &m)) {
		buf_init(code, IPC_FRAME_MAX);
		buf_put(code, source, (size_t)n);
		buf_put(code, compiled, (size_t)m);
		*source_len = (uint32_t)n;
		rc = code->failed ? err_set(err, FAILURE_INTERNAL, "no memory")
				  : 0;
	} else {
		rc = python_error(err, "rehearsal");
	}
	Py_XDECREF(result);
	Py_XDECREF(args);
	return rc;
}

int
pyfork_start(struct err *err)
{
	if (find_seed(err) == -1 || streams(err) == -1 || loop(err) == -1)
		return -1;
	return 0;
}
