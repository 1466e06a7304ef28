/*
 * The interpreter: started isolated, given the harness (harness/ *.py, built
 * into this program as text), and called once in each runner.
 *
 * The harness reaches the channel only through the functions of the module
 * _mcpbox below. This rule keeps the code in order and protects nothing: a tool
 * holds the descriptor itself. All its frames count for its own call.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <marshal.h>

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "interpreter.h"
#include "ipc_io.h"
#include "pyask.h"
#include "pycommand.h"
#include "pyfork.h"
#include "pymodule.h"
#include "runner.h"
#include "tlv.h"

enum {
	/* A thread's stack counts against the call's address space: with
	 * glibc's 8 MiB, 256 MiB would hold 30 threads. Python needs about 0.5
	 * KiB for each level of calls and stops at 1000 levels. */
	THREAD_STACK = 2 * 1024 * 1024,
	SECRET_NAME = 1, /* tags of the SECRETS list */
	SECRET_VALUE = 2,
	LOG_LEVELS = 8,
};

static bool finished;
static PyObject *start;   /* the harness' function start */
static PyObject *program; /* of the tool, compiled; NULL: not unpacked */
static pid_t runner_pid;  /* any other process here was forked by the tool */

static PyObject *
io_error(void)
{
	PyErr_SetString(
	    PyExc_OSError, "the platform closed the call's channel");
	return NULL;
}

static PyObject *
py_log(PyObject *self, PyObject *args)
{
	struct ipc_log m = {0};
	const char *p;
	Py_ssize_t n;
	int level, rc;

	if (!PyArg_ParseTuple(args, "iy#", &level, &p, &n))
		return NULL;
	if (level < 0 || level >= LOG_LEVELS || n > RUNNER_PIECE_MAX) {
		PyErr_SetString(PyExc_ValueError, "log line too long");
		return NULL;
	}
	m.level = (uint8_t)level;
	m.json = ipc_bytes(p, (size_t)n);
	Py_BEGIN_ALLOW_THREADS;
	rc = output_send(IPC_LOG, &m);
	Py_END_ALLOW_THREADS;
	if (rc == -1)
		return io_error();
	Py_RETURN_NONE;
}

static PyObject *
py_progress(PyObject *self, PyObject *args)
{
	struct ipc_progress m = {0};
	const char *p;
	Py_ssize_t n;
	int rc;

	if (!PyArg_ParseTuple(args, "y#", &p, &n))
		return NULL;
	if (n > RUNNER_PIECE_MAX) {
		PyErr_SetString(PyExc_ValueError, "progress too long");
		return NULL;
	}
	m.json = ipc_bytes(p, (size_t)n);
	Py_BEGIN_ALLOW_THREADS;
	rc = output_send(IPC_PROGRESS, &m);
	Py_END_ALLOW_THREADS;
	if (rc == -1)
		return io_error();
	Py_RETURN_NONE;
}

/* pause(retry_ms): sends PAUSE to sandboxd. Nothing waits here. */
static PyObject *
py_pause(PyObject *self, PyObject *args)
{
	struct ipc_pause m = {0};
	unsigned ms;
	int rc;

	if (!PyArg_ParseTuple(args, "I", &ms))
		return NULL;
	m.retry_ms = ms;
	Py_BEGIN_ALLOW_THREADS;
	rc = output_send(IPC_PAUSE, &m);
	Py_END_ALLOW_THREADS;
	if (rc == -1)
		return io_error();
	Py_RETURN_NONE;
}

/* captured() -> (bytes, truncated): ends the capture of output. */
static PyObject *
py_captured(PyObject *self, PyObject *args)
{
	const char *text;
	bool truncated;
	size_t n;

	(void)args;
	/* A child that the tool forked is ignored: the reader may have held the
	 * lock at the fork. */
	if (getpid() != runner_pid)
		return Py_BuildValue(
		    "(y#N)", "", (Py_ssize_t)0, PyBool_FromLong(0));
	Py_BEGIN_ALLOW_THREADS;
	output_stop(&text, &n, &truncated);
	Py_END_ALLOW_THREADS;
	return Py_BuildValue(
	    "(y#N)", text, (Py_ssize_t)n, PyBool_FromLong(truncated));
}

/* printed(): sends all output so far on its way. */
static PyObject *
py_printed(PyObject *self, PyObject *args)
{
	(void)args;
	if (getpid() == runner_pid) {
		Py_BEGIN_ALLOW_THREADS;
		output_flush();
		Py_END_ALLOW_THREADS;
	}
	Py_RETURN_NONE;
}

static int
send_pieces(const char *p, size_t n)
{
	struct ipc_content_part part = {0};
	size_t take;

	for (; n > 0; p += take, n -= take) {
		take = n < RUNNER_PIECE_MAX ? n : RUNNER_PIECE_MAX;
		part.data = ipc_bytes(p, take);
		if (output_send(IPC_CONTENT_PART, &part) == -1)
			return -1;
	}
	return 0;
}

/* finish(failure, body): ends the call, once. failure 0: body is a result. */
static int
finish(unsigned failure, const char *p, size_t n)
{
	struct ipc_run_result result = {.length = (uint32_t)n};
	struct ipc_run_error error = {
	    .failure = (uint16_t)failure, .length = (uint32_t)n};
	const char *text;
	bool truncated;
	size_t printed;

	output_stop(&text, &printed, &truncated);
	if (send_pieces(p, n) == -1)
		return -1;
	return failure == 0 ? output_send(IPC_RUN_RESULT, &result)
			    : output_send(IPC_RUN_ERROR, &error);
}

static PyObject *
py_finish(PyObject *self, PyObject *args)
{
	unsigned failure;
	const char *p;
	Py_ssize_t n;
	int rc;

	if (!PyArg_ParseTuple(args, "Iy#", &failure, &p, &n))
		return NULL;
	/* Ignores a child that the tool forked, and a second finish(). */
	if (getpid() != runner_pid || finished)
		_exit(0);
	finished = true;
	Py_BEGIN_ALLOW_THREADS;
	rc = finish(failure, p, (size_t)n);
	Py_END_ALLOW_THREADS;
	if (rc == -1)
		return io_error();
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"command", pycommand_method, METH_VARARGS,
	"command(path, argv, env, stdin, stdout_max, stderr_max)"},
    {"log", py_log, METH_VARARGS, "log(level, json)"},
    {"progress", py_progress, METH_VARARGS, "progress(json)"},
    {"pause", py_pause, METH_VARARGS, "pause(retry_ms)"},
    {"ask", pyask_send, METH_VARARGS, "ask(number, json)"},
    {"answer", pyask_receive, METH_NOARGS, "answer() -> (number, json)"},
    {"module_part", pymodule_part, METH_VARARGS,
	"module_part(data, last) -> (state, digest, files, size, text)"},
    {"captured", py_captured, METH_NOARGS, "captured() -> (bytes, truncated)"},
    {"printed", py_printed, METH_NOARGS, "printed()"},
    {"finish", py_finish, METH_VARARGS, "finish(failure, body)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_mcpbox",
    .m_size = -1,
    .m_methods = methods,
};

static PyObject *
module_init(void)
{
	PyObject *m = PyModule_Create(&module);

	if (m == NULL ||
	    PyModule_AddIntConstant(m, "EXCEPTION", FAILURE_EXCEPTION) == -1 ||
	    PyModule_AddIntConstant(m, "BAD_CODE", FAILURE_BAD_CODE) == -1 ||
	    PyModule_AddIntConstant(
		m, "INVALID_ARGUMENTS", FAILURE_INVALID_ARGUMENTS) == -1 ||
	    PyModule_AddIntConstant(m, "LIMIT", FAILURE_LIMIT) == -1 ||
	    PyModule_AddIntConstant(m, "PROTOCOL", FAILURE_TOOL_PROTOCOL) ==
		-1 ||
	    PyModule_AddIntConstant(m, "NO_ANSWER", FAILURE_NO_ANSWER) == -1 ||
	    PyModule_AddIntConstant(
		m, "MISSING_GRANT", FAILURE_MISSING_GRANT) == -1 ||
	    PyModule_AddIntConstant(
		m, "UNKNOWN_RESOURCE", FAILURE_UNKNOWN_RESOURCE) == -1 ||
	    PyModule_AddIntConstant(m, "UPSTREAM", FAILURE_UPSTREAM) == -1 ||
	    PyModule_AddIntConstant(m, "TIMEOUT", FAILURE_TIMEOUT) == -1 ||
	    PyModule_AddIntConstant(
		m, "UPSTREAM_CHANGED", FAILURE_UPSTREAM_CHANGED) == -1) {
		Py_XDECREF(m);
		return NULL;
	}
	return m;
}

/* Turns Python's pending exception into err. */
int
python_error(struct err *err, const char *what)
{
	PyObject *type, *value, *trace, *text;
	const char *s = NULL;

	PyErr_Fetch(&type, &value, &trace);
	text = value == NULL ? NULL : PyObject_Str(value);
	if (text != NULL)
		s = PyUnicode_AsUTF8(text);
	(void)err_set(err, FAILURE_INTERNAL, "%s: %s", what,
	    s == NULL ? "unknown error" : s);
	PyErr_Clear();
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(trace);
	return -1;
}

/*
 * Starts the interpreter isolated: no environment, no user or site packages, no
 * signal handlers, a random hash seed. The seed is the zygote's: it cannot be
 * changed in a running interpreter, so all runners of one zygote share it
 * (DESIGN.md).
 */
static int
interpreter(struct err *err)
{
	PyPreConfig pre;
	PyConfig config;
	PyStatus status;

	PyPreConfig_InitIsolatedConfig(&pre);
	pre.utf8_mode = 1;
	status = Py_PreInitialize(&pre);
	if (PyStatus_Exception(status))
		return err_set(
		    err, FAILURE_INTERNAL, "Python: %s", status.err_msg);
	if (PyImport_AppendInittab("_mcpbox", module_init) == -1)
		return err_set(err, FAILURE_INTERNAL, "Python: no memory");
	PyConfig_InitIsolatedConfig(&config);
	config.site_import = 0;
	config.write_bytecode = 0;
	config.install_signal_handlers = 0;
	config.parse_argv = 0;
	config.pathconfig_warnings = 0;
	status = PyConfig_SetString(
	    &config, &config.program_name, L"/usr/bin/python3");
	if (!PyStatus_Exception(status))
		status = Py_InitializeFromConfig(&config);
	PyConfig_Clear(&config);
	if (PyStatus_Exception(status))
		return err_set(err, FAILURE_INTERNAL, "Python: %s",
		    status.err_msg == NULL ? "cannot start" : status.err_msg);
	return 0;
}

/* Loads the built-in modules, in the order in which they import each other. */
static int
load_harness(struct err *err)
{
	const struct harness_module *m;
	char filename[64];
	PyObject *code, *mod;

	for (m = harness_modules; m->name != NULL; m++) {
		(void)snprintf(
		    filename, sizeof(filename), "<mcpbox %s>", m->name);
		code = Py_CompileString(
		    (const char *)m->text, filename, Py_file_input);
		if (code == NULL)
			return python_error(err, m->name);
		mod = PyImport_ExecCodeModule(m->name, code);
		Py_DECREF(code);
		if (mod == NULL)
			return python_error(err, m->name);
		Py_DECREF(mod);
	}
	return 0;
}

/* Returns a function of the harness, or NULL with a Python exception set. */
static PyObject *
function(const char *name)
{
	PyObject *mod, *f;

	mod = PyImport_ImportModule("mcpbox_harness");
	if (mod == NULL)
		return NULL;
	f = PyObject_GetAttrString(mod, name);
	Py_DECREF(mod);
	return f;
}

/* Calls a function of the harness; NULL with a Python exception set. */
PyObject *
python_call(const char *name, PyObject *args)
{
	PyObject *f, *result;

	f = function(name);
	if (f == NULL)
		return NULL;
	result = PyObject_CallObject(f, args);
	Py_DECREF(f);
	return result;
}

/* Finds the directory of the standard library, from a module that is surely
 * there. */
static int
find_stdlib(struct zygote *z, struct err *err)
{
	PyObject *os, *file = NULL;
	const char *path = NULL;
	char *slash;
	int rc = -1;

	os = PyImport_ImportModule("os");
	if (os != NULL)
		file = PyObject_GetAttrString(os, "__file__");
	if (file == NULL) {
		/* Debian 13 freezes os: take sys._stdlib_dir, as sysconfig
		 * does */
		PyErr_Clear();
		file = PySys_GetObject("_stdlib_dir");
		Py_XINCREF(file);
		if (file != NULL)
			path = PyUnicode_AsUTF8(file);
		if (path != NULL)
			(void)snprintf(
			    z->stdlib, sizeof(z->stdlib), "%s", path);
	} else if ((path = PyUnicode_AsUTF8(file)) != NULL) {
		(void)snprintf(z->stdlib, sizeof(z->stdlib), "%s", path);
		slash = strrchr(z->stdlib, '/');
		if (slash != NULL)
			*slash = '\0';
	}
	if (z->stdlib[0] == '/')
		rc = 0;
	else
		(void)err_set(err, FAILURE_INTERNAL,
		    "cannot find Python's standard library");
	Py_XDECREF(file);
	Py_XDECREF(os);
	return rc;
}

int
python_start(struct zygote *z, struct err *err)
{
	pthread_attr_t attr;
	PyObject *result;

	/* One arena: each further arena reserves 64 MiB of address space, which
	 * RLIMIT_AS counts. */
	(void)mallopt(M_ARENA_MAX, 1);
	/* No block of malloc's is a mapping of its own until the snapshot is
	 * taken (snapshot.c); 32 MiB is the largest allowed threshold. */
	if (mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024) != 1)
		return err_set(err, FAILURE_INTERNAL, "malloc's threshold");
	if (pthread_attr_init(&attr) != 0 ||
	    pthread_attr_setstacksize(&attr, THREAD_STACK) != 0 ||
	    pthread_setattr_default_np(&attr) != 0)
		return err_set(err, FAILURE_INTERNAL, "thread attributes");
	(void)pthread_attr_destroy(&attr);
	if (interpreter(err) == -1 || load_harness(err) == -1)
		return -1;
	if (find_stdlib(z, err) == -1)
		return -1;
	if (pyfork_start(err) == -1)
		return -1;
	result = python_call("warm", NULL);
	if (result == NULL)
		return python_error(err, "warm");
	Py_DECREF(result);
	start = function("start");
	if (start == NULL)
		return python_error(err, "start");
	/* Compiled code is valid for one magic number. The version is for
	 * people, and an extra check. */
	(void)snprintf(z->interpreter, sizeof(z->interpreter), "%ld %s",
	    PyImport_GetMagicNumber(), Py_GetVersion());
	return 0;
}

int
python_settled(struct err *err)
{
	/* malloc(3)'s own default: large blocks go back to the kernel when
	 * freed. */
	if (mallopt(M_MMAP_THRESHOLD, 128 * 1024) != 1)
		return err_set(err, FAILURE_INTERNAL, "malloc's threshold");
	return 0;
}

int
python_child(struct runner *r)
{
	runner_pid = getpid();
	return pyfork_child(r);
}

bool
python_is_runner(void)
{
	return getpid() == runner_pid;
}

/* Makes {name: value} from a list name, value, name, value ... Returns NULL if
 * the list is malformed. */
static PyObject *
secrets_dict(struct ipc_bytes tlv)
{
	struct tlv_reader r;
	struct tlv name, value;
	PyObject *dict, *text;
	char key[256];
	int rc;

	dict = PyDict_New();
	if (dict == NULL)
		return NULL;
	tlv_open(&r, tlv.p, tlv.n);
	while ((rc = tlv_next(&r, &name)) == 1) {
		if (name.tag != SECRET_NAME || name.n >= sizeof(key) ||
		    tlv_next(&r, &value) != 1 || value.tag != SECRET_VALUE)
			break;
		memcpy(key, name.p, name.n);
		key[name.n] = '\0';
		text = PyUnicode_DecodeUTF8((const char *)value.p,
		    (Py_ssize_t)value.n, "surrogateescape");
		if (text == NULL ||
		    PyDict_SetItemString(dict, key, text) == -1) {
			Py_XDECREF(text);
			break;
		}
		Py_DECREF(text);
	}
	if (rc != 0) {
		Py_DECREF(dict);
		return NULL;
	}
	return dict;
}

/* Ends the call if the harness did not. The harness reports everything itself,
 * unless memory ran out during its report or the tool broke the harness. */
static int
last_resort(void)
{
	static const char body[] =
	    "{\"content\":[{\"type\":\"text\",\"text\":\"The tool ended "
	    "without "
	    "a result: its memory ran out, or it damaged the interpreter it "
	    "runs in.\"}],\"isError\":true}";

	if (getpid() != runner_pid || finished)
		return 0;
	finished = true;
	return finish(FAILURE_EXCEPTION, body, sizeof(body) - 1);
}

/*
 * Unpacks compiled code. Reading a code object makes objects and runs none of
 * them. If memory is short, the harness compiles the source and reports the
 * failure. If there is time, the harness rehearses a call once more, so that
 * the memory which a call uses is in the processor's caches. Fetching this
 * memory takes as long as the call itself.
 */
void
python_prepare(const struct ipc_execute *e, bool time)
{
	PyObject *result;

	if (time && e->kind == CONTEXT_TOOL && e->driver == DRIVER_CODE) {
		result = python_call("rehearse_once", NULL);
		Py_XDECREF(result);
		PyErr_Clear();
	}
	if (e->source_len >= e->code.n || e->driver != DRIVER_CODE)
		return;
	program = PyMarshal_ReadObjectFromString(
	    (const char *)e->code.p + e->source_len,
	    (Py_ssize_t)(e->code.n - e->source_len));
	if (program == NULL)
		PyErr_Clear();
}

/* Tells whether the form is known. Our own kinds and drivers have one order. */
static bool
known(const struct ipc_execute *e)
{
	return e->source_len <= e->code.n && e->kind != CONTEXT_GRANTS &&
	    e->kind >= CONTEXT_TOOL && e->kind <= CONTEXT_NOTIFY &&
	    e->form <= CALL_STRUCTURED && e->driver <= DRIVER_NOTIFY &&
	    (e->kind != CONTEXT_COMPILE || e->driver == DRIVER_CODE) &&
	    (e->kind < CONTEXT_MODULE
		    ? e->driver < DRIVER_MODULE
		    : e->driver - DRIVER_MODULE == e->kind - CONTEXT_MODULE);
}

int
python_run(const struct ipc_execute *e, struct ipc_bytes arguments,
    struct ipc_bytes secrets)
{
	PyObject *args, *dict, *result;

	if (!known(e))
		return -1;
	dict = secrets_dict(secrets);
	if (dict == NULL)
		return -1;
	args = Py_BuildValue("(is#y#Oy#NIBBB)", (int)e->kind,
	    (const char *)e->name.p, (Py_ssize_t)e->name.n,
	    (const char *)e->code.p, (Py_ssize_t)e->source_len,
	    program != NULL ? program : Py_None, (const char *)arguments.p,
	    (Py_ssize_t)arguments.n, dict, (unsigned)e->result_max,
	    (unsigned char)e->form, (unsigned char)e->driver,
	    (unsigned char)e->network);
	if (args == NULL)
		return last_resort();
	result = PyObject_CallObject(start, args);
	if (result == NULL)
		PyErr_Clear();
	/* Nothing is freed: the process ends now. */
	return last_resort();
}

int
python_command(const struct runner *r, const struct ipc_execute *e,
    struct ipc_bytes arguments)
{
	if (e->source_len > e->code.n)
		return -1;
	if (pycommand_start(r, e, arguments) == NULL)
		PyErr_Clear();
	return last_resort();
}
