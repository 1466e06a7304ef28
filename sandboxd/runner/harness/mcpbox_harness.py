"""Runs one tool, or reads its signature. Called by python.c, once a process.

Nothing in here is a boundary: a tool shares the interpreter with it and may
change all of it. The worst a tool gains is to forge the result of its own
call, which it could simply return.
"""

import _mcpbox
import ast
import asyncio
import contextvars
import functools
import gc
import importlib
import inspect
import json
import linecache
import marshal
import os
import sys
import threading
import types

import mcpbox
import mcpbox_docstring
import mcpbox_drivers
import mcpbox_errors
import mcpbox_forms
import mcpbox_hide
import mcpbox_imports
import mcpbox_results
import mcpbox_schema

#: Imported by the zygote, so that a call does not pay for them.
WARM = (
    "abc", "argparse", "array", "base64", "binascii", "bisect", "calendar",
    "collections", "collections.abc", "concurrent.futures.thread",
    "configparser", "contextlib", "copy", "csv", "dataclasses", "datetime",
    "decimal", "difflib", "email.message", "enum", "fractions", "functools",
    "glob", "hashlib", "heapq", "hmac", "html", "http.client", "io",
    "itertools", "logging", "math", "operator", "os", "pathlib", "pickle",
    "pprint", "queue", "random", "re", "secrets", "shlex", "shutil", "signal",
    "socket", "ssl", "statistics", "string", "struct", "tempfile", "textwrap",
    "threading", "time", "traceback", "typing", "unicodedata", "urllib.error",
    "urllib.parse", "urllib.request", "uuid", "zlib", "zoneinfo",
)

#: Types of most results; none of them is awaitable.
_PLAIN = frozenset({type(None), bool, int, float, str, dict, list, tuple})
MODULE = "tool"     # not __main__: a guard for scripts must not fire
KIND_INSPECT, KIND_TEST, KIND_COMPILE = 2, 3, 4     # enum context_kind
TOOL, PROMPT, RESOURCE, STRUCTURED = range(4)       # enum call_method
#: What makes the answer of main's value; it is called with the size limit.
BODIES = (mcpbox_results.body, mcpbox_forms.prompt, mcpbox_forms.resource,
          mcpbox_results.structured)

_loop = _module = None
_decode = json.JSONDecoder().decode
#: The decoder's part in C: the value at an index, and where it ends.
_scan = json.JSONDecoder().scan_once


class MissingMain(Exception):
    """The code defines no main function."""


def warm():
    """In the zygote: everything a call would otherwise do each time."""
    for name in WARM:
        importlib.import_module(name)
    inspect.signature(warm)
    json.dumps({"a": [1, 2.0, None]})
    ast.parse("def main(): pass")
    re_cache()
    mcpbox_imports.install()
    leaving()
    rehearse()
    sys.path[:] = [p for p in sys.path if not p.endswith(".zip")]
    sys.path_importer_cache.clear()
    sys.argv = ["tool"]
    sys.executable = ""
    sys.dont_write_bytecode = True
    gc.collect()
    gc.freeze()


def leaving():
    """os._exit tells first what was printed: the thread that reads it ends with
    the process, and may not have seen the last of it."""
    leave = os._exit

    @functools.wraps(leave)
    def _exit(status):
        _mcpbox.printed()
        leave(status)
    os._exit = _exit


def re_cache():
    """Regular expressions that error reports and schemas compile."""
    mcpbox_docstring.parse("a\n\nArgs:\n  b: c\n")


def streams():
    """In the zygote: the standard streams that every runner will have."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace",
                      buffering=1, closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace",
                      buffering=1, closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = (
        sys.stdin, sys.stdout, sys.stderr)


def loop(epoll, wake, waker, thread):
    """In the zygote: the event loop of every runner, on descriptors that
    python.c replaces in each. thread: the id of a runner's first thread."""
    global _loop
    _loop = asyncio.new_event_loop()
    made = (_loop._selector.fileno(), _loop._ssock.fileno(),
            _loop._csock.fileno())
    if made != (epoll, wake, waker):
        raise RuntimeError(f"asyncio's loop has the descriptors {made}")
    asyncio.set_event_loop(_loop)
    threading.main_thread()._native_id = thread


def modules(count):
    """In a runner: the granted modules' directories, as modules.c mounted
    them."""
    sys.path += [f"/modules/{i}" for i in range(count)]


def _flush():
    """What the tool printed, also to streams that it put in their places."""
    streams = [sys.__stdout__, sys.__stderr__]
    if sys.stdout is not sys.__stdout__:
        streams.append(sys.stdout)
    if sys.stderr is not sys.__stderr__:
        streams.append(sys.stderr)
    for stream in streams:
        try:
            stream.flush()
        except BaseException:
            pass


def _source(code):
    """The code as text; SyntaxError for what is not UTF-8."""
    try:
        return code.decode("utf-8")
    except UnicodeDecodeError as e:
        raise SyntaxError(f"the code is not UTF-8 at byte {e.start}") from None


def _compile(code, filename):
    source = _source(code)
    if "\0" in source:
        raise SyntaxError("the code contains a NUL character")
    tree = ast.parse(source, filename)
    if not any(isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
               and n.name == "main" for n in tree.body):
        raise MissingMain("the code must define main: "
                          "`def main(...)` or `async def main(...)`")
    return compile(tree, filename, "exec", dont_inherit=True)


def _load(code, filename, program=None):
    """Runs the tool's module, of which program is the code object if there is
    one already; returns its main."""
    if program is None:
        program = _compile(code, filename)
    # Split into lines when somebody asks: mostly nobody does.
    linecache.cache[filename] = (lambda: _source(code),)
    scope = _module.__dict__
    scope["__file__"] = filename
    exec(program, scope)
    main = scope.get("main")
    if not callable(main):
        raise MissingMain("main is not a function after the module ran")
    return main


async def _await(awaitable):
    return await awaitable


def _parse(text):
    """A JSON text's value. sandboxd sends it without blanks around it: then
    the regular expressions that skip them need not be touched."""
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = None
    return value if end == len(text) else _decode(text)


def _given(main, arguments):
    """Keyword arguments of main from the arguments' JSON bytes."""
    given = _parse(arguments.decode("utf-8"))
    try:
        return mcpbox_schema.arguments(main, given)
    except mcpbox_schema.Unsupported:
        # An annotation that cannot be read was refused at inspection; a tool
        # with a schema of its own may have one: no conversion.
        return given


async def _first():
    """What the first task runs: the main that _run left in _main; nothing, if
    the tool runs the loop for something else."""
    main = _main
    return None if main is None else await main


def first_task():
    """In the zygote: the task of an asynchronous main, ready in the loop. Made
    for each call, a task, its context and its handle are a fifth of what such
    a call costs more than another."""
    global _main, _task, _hooks, _thread
    _main = None
    _task = asyncio.Task(_first(), loop=_loop)
    _hooks = (_loop._asyncgen_firstiter_hook, _loop._asyncgen_finalizer_hook)
    _thread = threading.get_ident()


def _task_of(coroutine):
    """The task that runs it. The one that was made in the zygote is as good as
    a new one while nothing has happened that a new one would show: it is all
    that waits for the loop, nobody cancelled it, and no context variable was
    set. Otherwise it ends in its first step, before anybody meets it."""
    global _main
    if (len(_loop._ready) == 1 and not _task.done()
            and not _task.cancelling() and not contextvars.copy_context()):
        _main = coroutine
        return _task
    return asyncio.Task(coroutine, loop=_loop)


def _run(coroutine):
    """run_until_complete of the loop that was made for this. A main that
    waits for nothing ends in its task's first step, and never reaches the
    selector: half of what starting a loop costs is saved. What a tool can see
    is the same: a running loop, a current task, and the usual errors."""
    task = _task_of(coroutine)
    sys.set_asyncgen_hooks(*_hooks)
    _loop._thread_id = _thread
    asyncio._set_running_loop(_loop)
    try:
        _loop._ready.popleft()._run()
        while not (task.done() or _loop._stopping):
            _loop._run_once()
    finally:
        _loop._stopping = False
        _loop._thread_id = None
        asyncio._set_running_loop(None)
        sys.set_asyncgen_hooks(None, None)
    if not task.done():
        raise RuntimeError("Event loop stopped before Future completed.")
    return task.result()


def _call(main, given):
    """Runs main to its end, asynchronous or not."""
    result = main(**given)
    kind = type(result)
    if kind in _PLAIN:
        return result
    if kind is types.CoroutineType:
        return _run(result)
    return _run(_await(result)) if inspect.isawaitable(result) else result


def _fail(failure, text, limit):
    """Ends the call with an isError body; does not return."""
    _mcpbox.finish(failure, mcpbox_results.error_body(text, limit))


#: What an exception may be told as, by its own word. Whoever raises it tells of
#: itself: the call has failed either way, and no right goes by how.
_SAID = {"upstream_error": _mcpbox.UPSTREAM, "timeout": _mcpbox.TIMEOUT,
         "limit": _mcpbox.LIMIT, "invalid_arguments": _mcpbox.INVALID_ARGUMENTS}


def _failure_of(e):
    if (isinstance(e, (MemoryError, mcpbox_results.TooLarge))
            or mcpbox_errors.limit_met(e)):
        return _mcpbox.LIMIT
    if isinstance(e, mcpbox.ClientError):
        return _mcpbox.NO_ANSWER
    if isinstance(e, mcpbox.ProtocolError):
        return _mcpbox.PROTOCOL
    if isinstance(e, mcpbox.http.BadRequest):
        return _mcpbox.EXCEPTION        # the code made a request that is none
    if isinstance(e, (mcpbox.ToolError, mcpbox.http.Error)):
        return _SAID.get(e.failure, _mcpbox.EXCEPTION)
    return _mcpbox.EXCEPTION


def _report(e, failure, filename, code, limit):
    """Ends the call with what an exception tells."""
    if isinstance(e, MemoryError):
        # Make room before the report is written.
        sys.modules.pop(MODULE, None)
        e.__traceback__ = None
        gc.collect()
        e = MemoryError("the call used more memory than it may")
        mcpbox_errors.limit_met(e)
    _flush()
    stdout, truncated = _mcpbox.captured()
    if isinstance(e, mcpbox.ProtocolError):
        text = mcpbox_errors.safe_str(e) or "the tool ended the request"
    elif isinstance(e, (mcpbox.ToolError, mcpbox.ClientError)):
        text = mcpbox_errors.safe_str(e) or type(e).__name__
        if stdout:
            text += "\n\n" + mcpbox_errors.output(stdout, truncated)
    elif isinstance(e, mcpbox_results.TooLarge):
        text = mcpbox_errors.too_large_text(limit)
    else:
        if isinstance(e, SystemExit):
            # Not our parent class: it would end the process on its way out.
            e = RuntimeError(f"the tool called sys.exit({e.code!r}); return "
                             "a value, or raise mcpbox.ToolError"
                             ).with_traceback(e.__traceback__)
        text = mcpbox_errors.text(e, filename, code.decode("utf-8", "replace"),
                                  stdout, truncated)
        if failure == _mcpbox.LIMIT and mcpbox_errors.told:
            text = f"{mcpbox_errors.told}\n\n{text}"
    _fail(failure, text, limit)


def _new_module():
    """The module that the tool's code will be, empty."""
    global _module
    _module = types.ModuleType(MODULE)
    _module.__dict__.update(mcpbox=mcpbox, secrets=mcpbox.secrets, json=json)
    sys.modules[MODULE] = _module


def rehearsal(is_async):
    """A tool's source that stands here, and its compiled form."""
    code = (b"async " if is_async else b"") + (
        b"def main(n: int = 0) -> int:\n    return n\n")
    return code, marshal.dumps(_compile(code, "rehearsal"))


def rehearse():
    """In the zygote: goes the way of a call with code that stands here, often
    enough that the interpreter has specialised its bytecode, which it would
    do, and write to, in each runner."""
    _new_module()
    first_task()
    for i in range(64):
        code, program = rehearsal(i % 2)
        program = marshal.loads(program)
        main = _load(code, "rehearsal", program)
        mcpbox_results.body(_call(main, _given(main, b'{"n":1}')), 1024)
        mcpbox_results.body("text", 1024)
        mcpbox_results.body({"a": [1, 2.0, None, "text"]}, 1024)
        _flush()
        if not _loop._ready:
            first_task()
    linecache.clearcache()
    _new_module()


def _nothing(n: int = 0) -> int:
    return n


def rehearse_once():
    """In a runner that was told its code and waits for its arguments: the same
    with a function that stands here."""
    mcpbox_results.body(_call(_nothing, _given(_nothing, b'{"n":1}')), 1024)
    _flush()


def run(form, filename, code, program, arguments, secrets, limit):
    """Calls main and sends its result, in this form."""
    if secrets:
        mcpbox.secrets = mcpbox._Secrets(secrets)
        _module.__dict__["secrets"] = mcpbox.secrets
        mcpbox_hide.hide_secrets(secrets.values())
    failure = _mcpbox.BAD_CODE
    try:
        try:
            main = _load(code, filename, program)
        except (SyntaxError, MissingMain):
            raise
        except BaseException as e:
            failure = _failure_of(e)
            raise
        failure = _mcpbox.INVALID_ARGUMENTS
        given = _given(main, arguments)
        failure = _mcpbox.EXCEPTION
        result = _call(main, given)
        body = BODIES[form](result, limit)
    except BaseException as e:
        if form == RESOURCE and isinstance(e, mcpbox.NotFound):
            failure = _mcpbox.UNKNOWN_RESOURCE
        elif failure == _mcpbox.EXCEPTION:
            failure = _failure_of(e)
        _report(e, failure, filename, code, limit)
        return
    _flush()
    _mcpbox.finish(0, body)


def inspect_tool(filename, code):
    """What the signature of main says, as the inspection object."""
    try:
        main = _load(code, filename)
        schema = mcpbox_schema.input_schema(main)
    except BaseException as e:
        error = mcpbox_errors.describe(e, filename,
                                       code.decode("utf-8", "replace"))
        if error["line"] is None and isinstance(e, mcpbox_schema.Unsupported):
            line = getattr(getattr(inspect.unwrap(main), "__code__", None),
                           "co_firstlineno", None)
            error["line"] = line
            error["code_context"] = mcpbox_errors.context(
                code.decode("utf-8", "replace"), line)
        if isinstance(e, SystemExit):
            error["message"] = f"the module called sys.exit({e.code!r})"
        return {"ok": False, "error": error}
    text, _ = mcpbox_docstring.parse(main.__doc__)
    return {"ok": True, "input_schema": schema, "doc": text,
            "is_async": inspect.iscoroutinefunction(inspect.unwrap(main))}


def compile_only(filename, code):
    """The code object, marshalled, for sandboxd's cache; nothing of the tool
    runs. What does not compile has no compiled form: each call says why."""
    try:
        body = marshal.dumps(_compile(code, filename))
    except Exception:
        body = b""
    _mcpbox.finish(0, body)


def drive(driver, form, spec, arguments, secrets, limit):
    """Has a driver make the result of what a specification declares
    (mcpbox_drivers.py says what a driver is)."""
    if secrets:
        mcpbox_hide.hide_secrets(secrets.values())
    failure = 0
    try:
        main = mcpbox_drivers.find(driver).main
        given = _parse(arguments.decode("utf-8")) if arguments else {}
        result = main(_parse(spec.decode("utf-8")), given, secrets)
        if inspect.isawaitable(result):
            result = _run(_await(result))
        if isinstance(result, mcpbox_drivers.Body):
            body = mcpbox_results.encode(result.value, limit)
            # The other side's own error is one in our records, too.
            if result.value.get("isError") is True:
                failure = _mcpbox.UPSTREAM
        else:
            body = BODIES[form](result, limit)
    except mcpbox_drivers.Failure as e:
        _flush()
        _fail(e.failure, mcpbox_errors.safe_str(e), limit)
        return
    except BaseException as e:
        _report(e, _failure_of(e), f"<{driver}>", b"", limit)
        return
    _flush()
    _mcpbox.finish(failure, body)


def start(kind, filename, code, program, arguments, secrets, limit, form,
          driver=0, network=0):
    """python.c calls this; it always ends in finish()."""
    if kind == KIND_COMPILE:
        compile_only(filename, code)
        return
    if kind in (KIND_TEST, KIND_INSPECT):
        mcpbox.no_secret = mcpbox_errors.NO_SECRET[kind == KIND_TEST]
        mcpbox_errors.no_network = mcpbox_errors.NO_NETWORK[kind == KIND_TEST]
    elif network:
        mcpbox_errors.no_network = mcpbox_errors.OTHER_HOSTS
    if kind != KIND_INSPECT:
        if driver:
            drive(driver, form, code, arguments, secrets, limit)
        else:
            run(form, filename, code, program, arguments, secrets, limit)
        return
    if driver:
        found = mcpbox_drivers.inspect(driver, code)
    else:
        found = inspect_tool(filename, code)
    _flush()
    try:
        body = mcpbox_results.encode(found, limit)
    except mcpbox_results.TooLarge:
        body = mcpbox_results.encode({"ok": False, "error": {
            "type": "TooLarge", "line": None, "column": None,
            "message": "the schema of main is too large",
            "code_context": []}}, limit)
    _mcpbox.finish(0, body)
