/* See pycommand.h. */
#include "pycommand.h"

#include <errno.h>
#include <stdlib.h>

#include "command.h"
#include "ids.h"
#include "root.h"

enum { HEX = 2 * sizeof(struct ipc_hash) + 1, ITEMS_MAX = 1024 };

/* Turns a list of bytes into an array of strings that ends with NULL. `first`
 * comes before the list's items, unless it is NULL. The strings are borrowed.
 * Returns NULL with a Python exception on failure. */
static char **
strings(PyObject *list, char *first)
{
	Py_ssize_t n, i, at = 0;
	char **out;

	if (!PyList_Check(list) || (n = PyList_Size(list)) > ITEMS_MAX) {
		PyErr_SetString(PyExc_ValueError, "a list of bytes");
		return NULL;
	}
	out = calloc((size_t)n + 2, sizeof(*out));
	if (out == NULL) {
		(void)PyErr_NoMemory();
		return NULL;
	}
	if (first != NULL)
		out[at++] = first;
	for (i = 0; i < n; i++) {
		/* refuses an item with a NUL in it */
		if (PyBytes_AsStringAndSize(
			PyList_GetItem(list, i), &out[at++], NULL) == -1) {
			free(out);
			return NULL;
		}
	}
	return out;
}

PyObject *
pycommand_method(PyObject *self, PyObject *args)
{
	PyObject *argv, *env, *result = NULL;
	Py_ssize_t input_n, out_max, err_max;
	char **argv_s = NULL, **env_s = NULL;
	struct command c = {0};
	const char *path;
	int rc;

	(void)self;
	if (!PyArg_ParseTuple(args, "sOOz#nn", &path, &argv, &env, &c.input,
		&input_n, &out_max, &err_max))
		return NULL;
	if (out_max < 1 || err_max < 1) {
		PyErr_SetString(PyExc_ValueError, "no room for output");
		return NULL;
	}
	argv_s = strings(argv, (char *)(uintptr_t)path);
	env_s = argv_s == NULL ? NULL : strings(env, NULL);
	if (env_s == NULL)
		goto out;
	c.path = path;
	c.argv = argv_s;
	c.envp = env_s;
	c.input_n = (size_t)input_n;
	buf_init(&c.out.kept, (size_t)out_max);
	buf_init(&c.err.kept, (size_t)err_max);
	Py_BEGIN_ALLOW_THREADS;
	rc = command_run(&c);
	Py_END_ALLOW_THREADS;
	if (rc == -1)
		(void)PyErr_SetFromErrno(PyExc_OSError);
	else if (c.out.kept.failed || c.err.kept.failed)
		(void)PyErr_NoMemory();
	else
		result = Py_BuildValue("(iy#Ky#KKK)", c.status,
		    c.out.kept.len == 0 ? "" : (const char *)c.out.kept.p,
		    (Py_ssize_t)c.out.kept.len, (unsigned long long)c.out.total,
		    c.err.kept.len == 0 ? "" : (const char *)c.err.kept.p,
		    (Py_ssize_t)c.err.kept.len, (unsigned long long)c.err.total,
		    (unsigned long long)c.duration_ms,
		    (unsigned long long)c.cpu_ms);
	buf_free(&c.out.kept);
	buf_free(&c.err.kept);
out:
	free(argv_s);
	free(env_s);
	return result;
}

static void
hex_of(const uint8_t *p, size_t n, char out[HEX])
{
	hex_encode(p, n < HEX / 2 ? n : HEX / 2, out);
}

static PyObject *
allowed(const struct zygote *z)
{
	const struct toolbox_file *f;
	PyObject *list = PyList_New(0), *path;
	size_t i;

	for (i = 0; list != NULL && (f = toolbox_file(z, i)) != NULL; i++) {
		if (f->loader)
			continue;
		path = PyUnicode_FromString(f->path);
		if (path == NULL || PyList_Append(list, path) == -1)
			Py_CLEAR(list);
		Py_XDECREF(path);
	}
	return list;
}

PyObject *
pycommand_start(const struct runner *r, const struct ipc_execute *e,
    struct ipc_bytes arguments)
{
	const struct toolbox_file *f = toolbox_find(r->zygote, e->executable);
	char has[HEX], wants[HEX];
	PyObject *mod, *list, *start, *result = NULL;

	hex_of(f == NULL ? NULL : f->digest, f == NULL ? 0 : sizeof(f->digest),
	    has);
	hex_of(e->executable_digest.p, e->executable_digest.n, wants);
	mod = PyImport_ImportModule("mcpbox_command");
	list = mod == NULL ? NULL : allowed(r->zygote);
	start = list == NULL ? NULL : PyObject_GetAttrString(mod, "start");
	if (start != NULL)
		result = PyObject_CallFunction(start, "iy#y#s#zzsOIK",
		    (int)e->kind, (const char *)e->code.p,
		    (Py_ssize_t)e->source_len, (const char *)arguments.p,
		    (Py_ssize_t)arguments.n, (const char *)e->executable.p,
		    (Py_ssize_t)e->executable.n, f == NULL ? NULL : f->path,
		    f == NULL ? NULL : has, wants, list,
		    (unsigned)e->result_max, (unsigned long long)e->cpu_ms);
	Py_XDECREF(start);
	Py_XDECREF(list);
	Py_XDECREF(mod);
	return result;
}
