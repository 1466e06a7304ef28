"""What a tool may do, and how each way to end a call ends."""
import json

import pytest


def test_arguments_by_name(pool):
    call = pool.call("def main(a: int, *, b: str = 'x'): return [a, b]\n",
                     {"a": 1, "b": "ü€\U0001f600"})
    assert call.value == [1, "ü€\U0001f600"]


def test_asynchronous(pool):
    call = pool.call('''
import asyncio
async def part(n):
    await asyncio.sleep(0.05)
    return n
async def main():
    started = asyncio.get_running_loop().time()
    parts = await asyncio.gather(*(part(n) for n in range(20)))
    threaded = await asyncio.to_thread(lambda: 7)
    return [sum(parts), threaded,
            asyncio.get_running_loop().time() - started < 1]
''')
    assert call.value == [190, 7, True]


@pytest.mark.parametrize("library", [
    "asyncio", "bz2", "calendar", "collections", "configparser", "csv",
    "ctypes", "dataclasses", "datetime", "decimal", "difflib", "email",
    "fractions", "gzip", "hashlib", "hmac", "html.parser", "http.client",
    "ipaddress", "itertools", "json", "logging", "lzma", "math", "pickle",
    "random", "re", "sqlite3", "ssl", "statistics", "string", "tempfile",
    "tomllib", "typing", "unicodedata", "urllib.request", "uuid",
    "xml.etree.ElementTree", "zipfile", "zlib", "zoneinfo",
])
def test_standard_library(pool, library):
    call = pool.call(f"import {library}\ndef main(): return 1\n")
    assert call.kind == "run_result", call.body


def test_libraries_work(pool):
    call = pool.call('''
import bz2, datetime, hashlib, lzma, sqlite3, tempfile, zipfile, zlib
import zoneinfo, io, getpass, os, pwd, threading, concurrent.futures
from xml.etree import ElementTree
def main():
    db = sqlite3.connect("/tmp/db")
    db.execute("create table t(a)")
    db.execute("insert into t values (1)")
    db.commit()
    with tempfile.TemporaryDirectory() as d:
        with zipfile.ZipFile(d + "/z.zip", "w") as z:
            z.writestr("a", b"x")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        squares = list(pool.map(lambda n: n * n, range(10)))
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    return {
        "db": db.execute("select a from t").fetchall(),
        "zip": [lzma.decompress(lzma.compress(b"a")) == b"a",
                bz2.decompress(bz2.compress(b"a")) == b"a"],
        "sha": hashlib.sha256(b"").hexdigest()[:8],
        "zone": datetime.datetime(2024, 7, 1, tzinfo=zone).isoformat(),
        "xml": ElementTree.fromstring("<a b='1'/>").get("b"),
        "squares": sum(squares),
        "user": [pwd.getpwuid(os.getuid()).pw_name == f"tool{os.getuid()}", os.path.expanduser("~")],
        "cwd": os.getcwd(),
    }
''')
    assert call.kind == "run_result", call.body
    assert call.body["structuredContent"] == {
        "db": [[1]], "zip": [True, True], "sha": "e3b0c442",
        "zone": "2024-07-01T00:00:00+02:00", "xml": "1", "squares": 285,
        "user": [True, "/tmp"], "cwd": "/tmp"}


def test_output_by_every_way(pool):
    call = pool.call('''
import os, subprocess, sys, threading
print("imported")
def main():
    print("print")
    print("error", file=sys.stderr)
    os.write(1, b"write\\n")
    t = threading.Thread(target=print, args=("thread",))
    t.start(); t.join()
    if os.fork() == 0:
        os.write(2, b"child \\xff\\n")
        os._exit(0)
    os.wait()
    sys.stdout.write("no newline")
    return None
''')
    assert call.text == "null"
    assert call.stdout == (b"imported\nprint\nerror\nwrite\nthread\n"
                           b"child \xff\nno newline")


def test_output_arrives_while_it_runs(pool):
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute("import time\ndef main():\n    print('early')\n"
                       "    time.sleep(10 ** 6)\n", {})
        from probes import ipcframes
        kind, fields = ipcframes.receive(runner.channel)
        assert (kind, fields["data"]) == ("stdout", b"early\n")
    finally:
        runner.close()


def test_log_and_progress(pool):
    call = pool.call('''
from mcpbox import log, progress
def main():
    log("hello")
    log({"a": [1]}, level="error")
    for i in range(3):
        progress(i, total=3, message="step")
    return "done"
''')
    assert call.text == "done"
    assert [(k, f.get("level"), json.loads(f["json"]))
            for k, f in call.events] == [
        ("log", 1, "hello"), ("log", 4, {"a": [1]})] + [
        ("progress", None, {"progress": i, "total": 3, "message": "step"})
        for i in range(3)]


def test_secrets(pool):
    code = '''
from mcpbox import secrets as imported
def main():
    return [secrets["TOKEN"], dict(imported) == dict(secrets), len(secrets),
            "MISSING" in secrets]
'''
    call = pool.call(code, secrets=[("TOKEN", "hunter2"), ("B", "ü")])
    assert call.value == ["hunter2", True, 2, False]
    call = pool.call("def main(): return secrets['NOPE']\n")
    assert call.failure_name == "exception" and "NOPE" in call.text


def test_exception(pool):
    call = pool.call('''
def helper(x):
    print("about to fail")
    return 1 / x

def main():
    return helper(0)
''')
    assert call.kind == "run_error" and call.failure_name == "exception"
    assert call.body["isError"] is True
    text = call.text
    assert text.startswith("ZeroDivisionError: division by zero\n"
                           "at line 4, column 12\n")
    assert ">    4 |     return 1 / x" in text
    assert 'File "probe", line 7, in main' in text
    assert "about to fail" in text and "<mcpbox" not in text


@pytest.mark.parametrize("code,failure,words", [
    ("def main(:", "bad_code", "SyntaxError"),
    ("x = 1", "bad_code", "must define main"),
    ("def main(a): return a", "invalid_arguments", "a"),
    ("import sys\ndef main(): sys.exit(3)", "exception", "sys.exit(3)"),
    ("import sys\nsys.exit('x')\ndef main(): 1", "exception", "sys.exit"),
    ("def main(): raise KeyboardInterrupt", "exception", "KeyboardInterrupt"),
    ("def main(): return {1, b'x'}", "exception", "bytes"),
    ("def main(): return float('inf')", "exception", "inf"),
    ("from mcpbox import ToolError\ndef main(): raise ToolError('no door')",
     "exception", "no door"),
    ("def main(): return main()", "exception", "RecursionError"),
    ("def main():\n    import os\n    os.close(3)\n    return 1", None, None),
])
def test_ends(pool, code, failure, words):
    call = pool.call(code)
    if failure is None:
        assert call.kind == "gone"
        return
    assert call.kind == "run_error", call.body
    assert call.failure_name == failure and words in call.text, call.text


@pytest.mark.parametrize("code", [
    "import os\ndef main(): os._exit(0)\n",
    "import os\ndef main(): os.abort()\n",
    "import ctypes\ndef main(): ctypes.string_at(8)\n",
])
def test_process_ends_without_a_word(pool, code):
    """The channel closes: sandboxd says the rest."""
    assert pool.call(code).kind == "gone"


def test_threads_left_behind(pool):
    call = pool.call('''
import threading, time, atexit
atexit.register(time.sleep, 10 ** 6)
def main():
    threading.Thread(target=time.sleep, args=(10 ** 6,)).start()
    threading.Thread(target=time.sleep, args=(10 ** 6,), daemon=True).start()
    return "done"
''')
    assert call.text == "done"


def test_forked_child_that_returns(pool):
    """The child runs on behind main: only pid 1 has a result."""
    call = pool.call('''
import os, time
def main():
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    return "parent" if pid else "child"
''')
    assert call.text == "parent"


def test_lying_about_the_result_speaks_for_itself_only(pool):
    """A frame forged on the channel is this call's own answer: the harness'
    later frames follow it and the broker takes the first."""
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute('''
import socket, struct
def main():
    s = socket.socket(fileno=3)
    def frame(t, payload):
        s.send(struct.pack(">HHIQ", t, 0, len(payload), 0) + payload)
    body = b'{"content":[]}'
    frame(173, struct.pack(">I", len(body)) + body)
    frame(174, struct.pack(">I", len(body)))
    return "real"
''', {})
        assert runner.result()[0] == "run_result"
        assert runner.body == b'{"content":[]}'
    finally:
        runner.close()


def test_large_code_arguments_and_result(pool):
    """Past one frame: blobs come in sealed memfds, results go in pieces."""
    filler = "#" + "x" * 95000 + "\n"
    text = "ä" * 150000
    call = pool.call(filler + "def main(t: str): return t + t[:1000]\n",
                     {"t": text})
    assert call.text == text + text[:1000]


def test_content(pool):
    call = pool.call('''
from mcpbox import Image, Text
def main():
    return [Text("a"), Image(b"\\x89PNG", "image/png")]
''')
    assert [b["type"] for b in call.body["content"]] == ["text", "image"]


def test_state_does_not_stay(pool):
    pool.call("import builtins\nbuiltins.canary = 1\ndef main(): return 1\n")
    call = pool.call("import builtins\n"
                     "def main(): return hasattr(builtins, 'canary')\n")
    assert call.value is False


def test_inspection(pool):
    got = pool.inspect('''
from dataclasses import dataclass
@dataclass
class Box:
    width: int
async def main(box: Box, n: int = 3):
    """Measures.

    Args:
        box: what to measure
    """
''')
    assert got == {"ok": True, "is_async": True, "doc": "Measures.",
                   "input_schema": {
                       "type": "object", "additionalProperties": False,
                       "required": ["box"], "properties": {
                           "n": {"type": "integer", "default": 3},
                           "box": {"type": "object",
                                   "properties": {
                                       "width": {"type": "integer"}},
                                   "required": ["width"],
                                   "additionalProperties": False,
                                   "description": "what to measure"}}}}


def test_inspection_of_bad_code(pool):
    got = pool.inspect("def main():\n    return (\n")
    assert got["ok"] is False and got["error"]["type"] == "SyntaxError"
    assert got["error"]["line"] == 2 and got["error"]["column"] == 12


def test_inspection_is_confined(pool):
    """The module runs: it must not reach more than a call does."""
    got = pool.inspect("open('/etc/shadow')\ndef main(): pass\n")
    assert got["error"]["type"] == "FileNotFoundError"
    assert got["error"]["line"] == 1


def test_stale_order_of_frames_ends_it(pool):
    from probes import ipcframes
    runner = pool.fork()
    try:
        ipcframes.send(runner.channel, "arguments", json=b"{}")
        assert runner.exited(2)
    finally:
        runner.close()


def test_broker_that_goes_away_ends_a_waiting_runner(pool):
    runner = pool.fork()
    runner.channel.close()
    assert runner.exited(2)


def test_thread_ids(pool):
    """glibc's own idea of the main thread's id: a recursive lock taken in the
    main thread and tried in the first thread, whose id is 2 like the
    zygote's was."""
    call = pool.call('''
import ctypes, threading
def main():
    libc = ctypes.CDLL(None)
    attr, mutex = (ctypes.c_char * 64)(), (ctypes.c_char * 128)()
    libc.pthread_mutexattr_init(attr)
    libc.pthread_mutexattr_settype(attr, 1)     # recursive
    libc.pthread_mutex_init(mutex, attr)
    libc.pthread_mutex_lock(mutex)
    out = []
    for _ in range(3):
        t = threading.Thread(
            target=lambda: out.append(libc.pthread_mutex_trylock(mutex)))
        t.start(); t.join()
    owner = ctypes.c_int.from_buffer(mutex, 8).value
    return [out, owner]
''')
    assert call.value == [[16, 16, 16], 1]


@pytest.mark.parametrize("code, want", [
    # Its own task, and the loop that runs it.
    ("import asyncio\nasync def main():\n"
     "    t = asyncio.current_task()\n"
     "    return [t is not None, t in asyncio.all_tasks(),\n"
     "            asyncio.get_running_loop().is_running()]\n",
     [True, True, True]),
    # An asynchronous generator that is left half way is closed by the loop.
    ("import asyncio\nseen = []\n"
     "async def g():\n    try:\n        yield 1\n    finally:\n"
     "        await asyncio.sleep(0)\n        seen.append('closed')\n"
     "async def main():\n    async for x in g():\n        break\n"
     "    while not seen:\n        await asyncio.sleep(0.01)\n    return seen\n", ["closed"]),
    # What main starts and does not wait for goes on while it runs.
    ("import asyncio\nasync def f(a): a.append(1)\n"
     "async def main():\n    a = []\n    asyncio.create_task(f(a))\n"
     "    await asyncio.sleep(0)\n    return a\n", [1]),
    ("import asyncio\nasync def main():\n"
     "    asyncio.current_task().cancel()\n    await asyncio.sleep(1)\n",
     "CancelledError"),
    ("import asyncio\nasync def main():\n"
     "    asyncio.get_running_loop().stop()\n    await asyncio.sleep(1)\n",
     "Event loop stopped before Future completed."),
    ("import asyncio\nasync def f(): return 1\nasync def main():\n"
     "    try:\n        asyncio.run(f())\n    except RuntimeError as e:\n"
     "        return 'cannot be called' in str(e)\n", True),
    ("import asyncio, threading\nasync def main():\n"
     "    loop, f = asyncio.get_running_loop(), asyncio.Future()\n"
     "    threading.Timer(0.02, loop.call_soon_threadsafe,\n"
     "                    (f.set_result, 5)).start()\n    return await f\n", 5),
])
def test_asyncio_is_whole(pool, code, want):
    """main's coroutine is not run by run_until_complete (mcpbox_harness.py,
    _run): what one can see of a loop is as if it were."""
    call = pool.call(code)
    if isinstance(want, str):
        assert call.kind == "run_error" and want in call.text
    else:
        assert call.kind == "run_result" and call.value == want, call.text


def test_the_one_task_of_an_asynchronous_main(pool):
    """It exists before the call; a tool sees what asyncio.run would show."""
    call = pool.call('''
import asyncio
async def main():
    current = asyncio.current_task()
    alone = asyncio.all_tasks() == {current}
    async with asyncio.timeout(5):
        async with asyncio.TaskGroup() as group:
            t = group.create_task(asyncio.sleep(0.01, 7))
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(5)
        late = False
    except TimeoutError:
        late = True
    current.cancel()
    try:
        await asyncio.sleep(5)
        cancelled = False
    except asyncio.CancelledError:
        cancelled = current.cancelling() == 1
        current.uncancel()
    agens = []
    async def gen():
        try:
            yield 1
        finally:
            agens.append(asyncio.current_task() is not None)
    async for _ in gen():
        break
    while not agens:
        await asyncio.sleep(0.01)
    return [alone, t.result(), late, cancelled, agens,
            asyncio.get_running_loop().is_running()]
''')
    assert call.value == [True, 7, True, True, [True], True]


@pytest.mark.parametrize("before, expected", [
    ("var.set('module')", "module"),
    ("asyncio.get_event_loop().call_soon(var.set, 'lost')", "none"),
    ("asyncio.get_event_loop().run_until_complete(asyncio.sleep(0))", "none"),
    ("[t.cancel() for t in asyncio.all_tasks(asyncio.get_event_loop())]",
     "none"),
])
def test_what_a_module_did_before_its_asynchronous_main(pool, before, expected):
    """Context variables count, and the loop may have been used."""
    call = pool.call(f'''
import asyncio, contextvars
var = contextvars.ContextVar("var", default="none")
{before}
async def main():
    await asyncio.sleep(0)
    return [var.get(), len(asyncio.all_tasks())]
''')
    assert call.value == [expected, 1]


def test_the_loop_in_a_plain_main(pool):
    """The task that waits for an asynchronous main is in nobody's way."""
    call = pool.call('''
import asyncio
async def part():
    await asyncio.sleep(0)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for t in others:
        t.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    return len(others)
def main():
    loop = asyncio.get_event_loop()
    return [loop.is_running(), loop.run_until_complete(part()),
            asyncio.run(part())]
''')
    assert call.value == [False, 0, 0]


@pytest.mark.parametrize("form", ["def", "async def"])
def test_blanks_around_the_arguments(pool, form):
    call = pool.call(f"{form} main(n, s=''): return [n, s]\n",
                     b' \n{ "n" : 1, "s": "\\u00fc" }\t\n')
    assert call.value == [1, "ü"]
    call = pool.call(f"{form} main(n): return n\n", b'{"n":1} x')
    assert call.kind == "run_error"
