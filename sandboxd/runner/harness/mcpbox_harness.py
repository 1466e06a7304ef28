"""Runs one tool, or reads its signature. Called by python.c, once a process.

Nothing in here is a boundary: a tool shares the interpreter with it and may
change all of it. The worst a tool gains is to forge the result of its own
call, which it could simply return.
"""

import ast
import asyncio
import gc
import importlib
import inspect
import json
import linecache
import marshal
import sys
import types

import mcpbox
import mcpbox_docstring
import mcpbox_errors
import mcpbox_hide
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

MODULE = "tool"     # not __main__: a guard for scripts must not fire
KIND_INSPECT, KIND_COMPILE = 2, 4   # enum context_kind

_loop = None


class MissingMain(Exception):
    """The code defines no main function."""


def warm():
    """In the zygote: everything a call would otherwise do each time."""
    for name in WARM:
        importlib.import_module(name)
    asyncio.new_event_loop().close()
    inspect.signature(warm)
    json.dumps({"a": [1, 2.0, None]})
    ast.parse("def main(): pass")
    re_cache()
    sys.path[:] = [p for p in sys.path if not p.endswith(".zip")]
    sys.path_importer_cache.clear()
    sys.argv = ["tool"]
    sys.executable = ""
    sys.dont_write_bytecode = True
    gc.collect()
    gc.freeze()


def re_cache():
    """Regular expressions that error reports and schemas compile."""
    mcpbox_docstring.parse("a\n\nArgs:\n  b: c\n")


def prepare():
    """In a waiting runner: standard streams and the event loop."""
    global _loop
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace",
                      buffering=1, closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace",
                      buffering=1, closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = (
        sys.stdin, sys.stdout, sys.stderr)
    _loop = asyncio.new_event_loop()


def _flush():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
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


def _load(code, filename, compiled=b""):
    """Runs the tool's module; returns its main."""
    program = marshal.loads(compiled) if compiled else _compile(code, filename)
    source = _source(code)
    linecache.cache[filename] = (len(source), None,
                                 source.splitlines(True), filename)
    module = types.ModuleType(MODULE)
    module.__file__ = filename
    module.__dict__.update(mcpbox=mcpbox, secrets=mcpbox.secrets, json=json)
    sys.modules[MODULE] = module
    exec(program, module.__dict__)
    main = module.__dict__.get("main")
    if not callable(main):
        raise MissingMain("main is not a function after the module ran")
    return main


async def _await(awaitable):
    return await awaitable


def _call(main, given):
    """Runs main to its end, asynchronous or not."""
    result = main(**given)
    if inspect.isawaitable(result):
        asyncio.set_event_loop(_loop)
        result = _loop.run_until_complete(_await(result))
    return result


def _fail(failure, text, limit):
    """Ends the call with an isError body; does not return."""
    import _mcpbox
    _mcpbox.finish(failure, mcpbox_results.error_body(text, limit))


def _failure_of(e):
    import _mcpbox
    if (isinstance(e, (MemoryError, mcpbox_results.TooLarge))
            or mcpbox_errors.limit_met(e)):
        return _mcpbox.LIMIT
    return _mcpbox.EXCEPTION


def _report(e, failure, filename, code, limit):
    """Ends the call with what an exception tells."""
    import _mcpbox
    if isinstance(e, MemoryError):
        # Make room before the report is written.
        sys.modules.pop(MODULE, None)
        e.__traceback__ = None
        gc.collect()
        e = MemoryError("the call used more memory than it may")
        mcpbox_errors.limit_met(e)
    _flush()
    stdout, truncated = _mcpbox.captured()
    if isinstance(e, mcpbox.ToolError):
        text = mcpbox_errors.safe_str(e) or "ToolError"
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
        if failure == _mcpbox.LIMIT:
            text = f"{mcpbox_errors.told}\n\n{text}"
    _fail(failure, text, limit)


def run(filename, code, compiled, arguments, secrets, limit):
    """Calls main and sends its result."""
    import _mcpbox
    mcpbox.secrets = mcpbox._Secrets(secrets)
    mcpbox_hide.hide_secrets(secrets.values())
    failure = _mcpbox.BAD_CODE
    try:
        try:
            main = _load(code, filename, compiled)
        except (SyntaxError, MissingMain):
            raise
        except BaseException as e:
            failure = _failure_of(e)
            raise
        failure = _mcpbox.INVALID_ARGUMENTS
        try:
            given = mcpbox_schema.arguments(main, json.loads(arguments))
        except mcpbox_schema.Unsupported:
            # An annotation that cannot be read was refused at inspection;
            # a tool with a schema of its own may have one: no conversion.
            given = json.loads(arguments)
        failure = _mcpbox.EXCEPTION
        result = _call(main, given)
        body = mcpbox_results.body(result, limit)
    except BaseException as e:
        if failure == _mcpbox.EXCEPTION:
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
    import _mcpbox
    try:
        body = marshal.dumps(_compile(code, filename))
    except Exception:
        body = b""
    _mcpbox.finish(0, body)


def start(kind, filename, code, compiled, arguments, secrets, limit):
    """python.c calls this; it always ends in finish()."""
    import _mcpbox
    if kind == KIND_COMPILE:
        compile_only(filename, code)
        return
    if kind != KIND_INSPECT:
        run(filename, code, compiled, arguments, secrets, limit)
        return
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
