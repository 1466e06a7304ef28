"""What a tool sees: granted modules, imports, the mcpbox module, results,
errors."""
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest

from harness.place import readable_directory
from probes import runner_driver
from probes.ipcframes import ROOT

ADD = os.path.join(ROOT, "contrib", "module-add")


def add(store, source):
    return subprocess.run([sys.executable, ADD, store, source], check=True,
                          capture_output=True, text=True).stdout.strip()


class Store:
    def __init__(self, directory):
        self.path = str(directory / "store")
        os.mkdir(self.path, 0o755)
        self.directory = directory
        self.pool = runner_driver.Pool(store=self.path)
        self.digests = {}

    def add(self, name, files, binary=()):
        source = str(self.directory / name)
        for path, text in files.items():
            path = os.path.join(source, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        for path, origin in binary:
            shutil.copyfile(origin, os.path.join(source, path))
        self.digests[name] = bytes.fromhex(add(self.path, source))
        return self.digests[name]

    def call(self, code, *names, **more):
        modules = b"".join(sorted(self.digests[n] for n in names))
        return self.pool.call(code, profile={"modules": modules}, **more)


@pytest.fixture(scope="module")
def store():
    with readable_directory() as directory:
        yield from _store(directory)


def _store(directory):
    s = Store(directory)
    s.add("first", {
        "pkg/__init__.py": "X = 1\n",
        "pkg/deep/__init__.py": "",
        "pkg/deep/leaf.py": "def c():\n    return 'leaf'\n",
        "pkg/fails.py": "raise KeyError('in a module')\n",
        "json.py": "raise SystemExit('shadow')\n",
        "colorsys.py": "raise SystemExit('shadow')\n",
        "first_data/data.txt": "data\n",
    })
    s.add("second", {"second.py": "import pkg\nVALUE = pkg.X + 1\n"}, [
        ("second_fast.so", glob.glob(
            "/usr/lib/python3.*/lib-dynload/_bz2.*.so")[0])])
    s.add("third", {"third.py": "CANARY = 'not granted'\n"})
    yield s
    s.pool.close()


# --- Granted modules ---------------------------------------------------------

def test_granted_module(store):
    call = store.call('''
import pkg.deep.leaf
import second
def main():
    import json, colorsys
    return [pkg.deep.leaf.c(), second.VALUE, json.dumps(1),
            colorsys.rgb_to_hsv(0, 0, 0)[2]]
''', "first", "second")
    assert call.kind == "run_result", call.text
    assert call.value == ["leaf", 2, "1", 0]


def test_data_beside_a_module(store):
    call = store.call('''
import importlib.resources, pkg
def main():
    at = importlib.resources.files(pkg).parent / "first_data" / "data.txt"
    return at.read_text()
''', "first")
    assert call.text == "data\n"


def test_extension_module(store):
    """The loader maps it executable: the mount must allow that."""
    call = store.call('''
import importlib.machinery, importlib.util, sys
def main():
    path = [p for p in sys.path if p.startswith("/modules/")][0]
    loader = importlib.machinery.ExtensionFileLoader(
        "_bz2", path + "/second_fast.so")
    made = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("_bz2", loader))
    return made.__file__
''', "second")
    assert call.kind == "run_result", call.text
    assert call.text.endswith("second_fast.so")


def test_only_what_is_granted(store):
    """Another tool's module is in the store and out of reach."""
    code = "import third\ndef main(): return third.CANARY\n"
    assert store.call(code, "third").text == "not granted"      # the control
    call = store.call(code, "first")
    assert call.kind == "run_error" and "not granted" not in call.text
    assert "mcpbox_request_module" in call.text
    found = store.call('''
import os
def main():
    out = []
    for top, _, files in os.walk("/modules"):
        out += [os.path.join(top, f) for f in files]
    return out + os.listdir("/")
''', "first").value
    assert not [f for f in found if "third" in f or "second" in f], found
    assert store.call("import pkg\ndef main(): pass").kind == "run_error"


def test_modules_are_read_only(store):
    call = store.call('''
import os, errno
def main():
    out = []
    for f in (lambda: open("/modules/0/x", "w"),
              lambda: open("/modules/0/pkg/__init__.py", "a"),
              lambda: os.unlink("/modules/0/pkg/__init__.py"),
              lambda: os.rename("/modules/0/pkg", "/modules/0/p"),
              lambda: os.chmod("/modules/0/pkg", 0o777),
              lambda: os.utime("/modules/0/pkg"),
              lambda: os.symlink("/tmp", "/modules/0/l"),
              lambda: os.mkdir("/modules/x")):
        try:
            f()
            out.append(None)
        except OSError as e:
            out.append(errno.errorcode[e.errno])
    return out
''', "first")
    assert set(call.value) <= {"EROFS", "EACCES", "EPERM"}, call.value


def test_absent_module_is_named(store):
    for digest in (b"\1" * 32, b"\0" * 32):
        runner = store.pool.fork(modules=digest)
        try:
            kind, fields = runner.ready()
            assert kind == "confine_failed" and fields["step"] == "modules"
            assert fields["path"] == digest.hex() and fields["error"] == 2
        finally:
            runner.close()


def test_a_link_in_the_store_is_not_followed(store):
    name = "ab" * 32
    os.symlink("/root", os.path.join(store.path, name))
    runner = store.pool.fork(modules=bytes.fromhex(name))
    try:
        kind, fields = runner.ready()
        assert kind == "confine_failed" and fields["step"] == "modules"
    finally:
        runner.close()


def test_all_the_modules_a_call_may_have(store):
    digests = sorted(store.add(f"many{i}", {f"many{i}.py": f"N = {i}\n"})
                     for i in range(32))
    code = "".join(f"import many{i}\n" for i in range(32))
    call = store.pool.call(
        code + "def main(): return many0.N + many31.N\n",
        profile={"modules": b"".join(digests)})
    assert call.text == "31"
    assert store.call("def main(): return 1\n").text == "1"


def test_digest_is_of_content(store, tmp_path):
    """What module-add hashes: names and bytes, nothing else."""
    def digest(**files):
        top = tmp_path / os.urandom(8).hex()
        top.mkdir()
        for name, text in files.items():
            (top / name).write_text(text)
        out = subprocess.run([sys.executable, ADD, "--digest", str(top)],
                             check=True, capture_output=True, text=True)
        return out.stdout.strip()

    one = digest(a="x", b="y")
    assert one == digest(b="y", a="x") and len(one) == 64
    assert len({one, digest(a="y", b="x"), digest(a="xb", y=""),
                digest(a="x"), digest(ab="xy")}) == 5
    # an empty tree: nothing but the name of the form
    assert digest() == hashlib.sha256(b"mcpbox module 1\0").hexdigest()


def test_error_inside_a_module(store):
    call = store.call("def main():\n    import pkg.fails\n", "first")
    assert "KeyError" in call.text and "line 2" in call.text
    assert 'pkg/fails.py", line 1' in call.text


# --- Imports -----------------------------------------------------------------

@pytest.mark.parametrize("statement", [
    "import requests", "import requests.adapters", "from numpy import array",
    "__import__('pandas')", "import importlib; importlib.import_module('yaml')",
])
def test_import_names_who_grants_it(pool, statement):
    call = pool.call(f"def main():\n    {statement}\n")
    assert call.text.startswith("ModuleNotFoundError: No module named ")
    assert "mcpbox_request_module" in call.text
    found = pool.inspect(f"{statement}\ndef main(): pass\n")
    assert "mcpbox_request_module" in found["error"]["message"]
    assert found["error"]["line"] == 1


def test_caught_import_error_says_it_too(pool):
    call = pool.call('''
def main():
    try:
        import requests
    except ImportError as e:
        return [str(e), e.name]
''')
    assert "mcpbox_request_module" in call.value[0]
    assert call.value[1] == "requests"


def test_asking_is_not_importing(pool):
    assert pool.call('''
import importlib.util
def main(): return importlib.util.find_spec("requests") is None
''').text == "true"


def test_absent_part_of_the_standard_library(pool):
    text = pool.call("import tkinter\ndef main(): pass\n").text
    assert "standard library is not available" in text
    assert "mcpbox_request_module" not in text


def test_part_of_what_is_there(pool):
    text = pool.call("import os.nothing\ndef main(): pass\n").text
    assert "No module named 'os.nothing'" in text
    assert "mcpbox_request_module" not in text


# --- The whole language --------------------------------------------------------

def test_classes_and_annotations(pool):
    call = pool.call('''
from __future__ import annotations
import abc, enum, typing, functools, contextlib
import dataclasses as d
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self) -> float: ...
@d.dataclass(frozen=True)
class Square(Shape):
    side: float
    def area(self): return self.side ** 2
class Colour(enum.StrEnum):
    RED = "red"
class Meta(type):
    def __call__(cls, *a):
        return super().__call__(*a)
class P(metaclass=Meta):
    __slots__ = ("a",)
    def __init__(self, a): self.a = a
    @functools.cached_property
    def never(self): ...
@contextlib.contextmanager
def managed():
    yield 5
def main(square: Square, colour: Colour, n: int = 3):
    match square:
        case Square(side=s): pass
    with managed() as five: pass
    return {"area": square.area(), "colour": colour, "s": s, "five": five,
            "sum": sum(i for i in range(n)), "p": P(1).a}
''', {"square": {"side": 2}, "colour": "red"})
    assert call.kind == "run_result", call.text
    assert call.value == {"area": 4, "colour": "red", "s": 2, "five": 5,
                          "sum": 3, "p": 1}


@pytest.mark.parametrize("code, value", [
    ("import multiprocessing as m\ndef f(x): return x * x\n"
     "def main():\n    with m.Pool(3) as p: return p.map(f, range(4))\n",
     [0, 1, 4, 9]),
    ("import multiprocessing as m\ndef f(q): q.put('sent')\ndef main():\n"
     "    q = m.Queue(); p = m.Process(target=f, args=(q,)); p.start()\n"
     "    got = q.get(timeout=10); p.join(10); return [got, p.exitcode]\n",
     ["sent", 0]),
    ("import concurrent.futures as c\ndef f(x): return x + 1\ndef main():\n"
     "    with c.ProcessPoolExecutor(2) as p: return list(p.map(f, [1, 2]))\n",
     [2, 3]),
    ("import asyncio\nasync def f(): await asyncio.sleep(0); return 4\n"
     "def main(): return asyncio.run(f())\n", 4),
    ("import asyncio\nasync def main():\n    try:\n"
     "        async with asyncio.timeout(0.05): await asyncio.sleep(9)\n"
     "    except TimeoutError: return 'late'\n", "late"),
    ("import asyncio\nasync def main():\n"
     "    loop = asyncio.get_running_loop()\n"
     "    return await loop.run_in_executor(None, sum, [1, 2])\n", 3),
    ("import threading\ndef main():\n    out = []\n"
     "    ts = [threading.Thread(target=out.append, args=(i,))"
     " for i in range(20)]\n    [t.start() for t in ts]; "
     "[t.join() for t in ts]\n    return sorted(out)\n", list(range(20))),
])
def test_concurrency(pool, code, value):
    call = pool.call(code)
    assert call.kind == "run_result", call.text
    got = call.text if isinstance(value, str) else call.value
    assert got == value


def test_shared_memory_is_counted(pool):
    """/dev/shm is the call's own /tmp: no memory beyond its limit, no place
    that two calls share."""
    code = '''
from multiprocessing import shared_memory as s
def main(create: bool):
    x = s.SharedMemory("canary", create=create, size=16 if create else 0)
    return "made"
'''
    assert pool.call(code, {"create": True}).text == "made"
    call = pool.call(code, {"create": False})
    assert call.kind == "run_error" and "FileNotFoundError" in call.text
    call = pool.call('''
import os
def main():
    with open("/dev/shm/big", "wb") as f:
        for _ in range(3):
            f.write(bytes(1 << 20))
''', profile={"tmp_bytes": 1 << 20})
    assert call.failure_name == "limit", call.text


# --- Results -------------------------------------------------------------------

@pytest.mark.parametrize("expression, value", [
    ("datetime.datetime(2025, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)",
     "2025-01-02T03:04:05+00:00"),
    ("datetime.timedelta(minutes=1.5)", 90.0),
    ("uuid.UUID(int=1)", "00000000-0000-0000-0000-000000000001"),
    ("decimal.Decimal('1.10')", "1.10"),
    ("fractions.Fraction(1, 3)", "1/3"),
    ("pathlib.Path('/a/b')", "/a/b"),
    ("ipaddress.ip_address('::1')", "::1"),
    ("{3, 1, 2}", [1, 2, 3]), ("frozenset('ba')", ["a", "b"]),
    ("(i * i for i in range(3))", [0, 1, 4]),
    ("range(3)", [0, 1, 2]), ("collections.deque([1])", [1]),
    ("{'a': 1}.values()", [1]), ("{'a': 1}.keys()", ["a"]),
    ("array.array('i', [1, 2])", [1, 2]),
    ("collections.Counter('aab')", {"a": 2, "b": 1}),
    ("Point(1, 2)", {"x": 1, "y": 2}), ("Kind.A", "a"), ("Level.LOW", 1),
    ("Box(Kind.A, [Point(0, 0)])", {"kind": "a", "at": [{"x": 0, "y": 0}]}),
    ("Model()", {"from": "model_dump"}),
    ("Vector()", [1.5, 2]), ("[None, True, 1.5]", [None, True, 1.5]),
    ("{1: 'int', None: 'none', True: 'bool'}",
     {"1": "bool", "null": "none"}),
    ("types.MappingProxyType({'a': 1})", {"a": 1}),
])
def test_result_is_json(pool, expression, value):
    call = pool.call(f'''
import array, collections, dataclasses, datetime, decimal, enum, fractions
import ipaddress, pathlib, types, typing, uuid
class Point(typing.NamedTuple):
    x: int
    y: int
class Kind(enum.Enum):
    A = "a"
class Level(enum.IntEnum):
    LOW = 1
@dataclasses.dataclass
class Box:
    kind: Kind
    at: list
class Model:
    def model_dump(self, mode): return {{"from": "model_dump"}}
class Vector:
    def tolist(self): return [1.5, 2]
def main():
    return {{"v": {expression}}}
''')
    assert call.kind == "run_result", call.text
    assert call.body["structuredContent"] == {"v": value}
    assert call.value == {"v": value}


@pytest.mark.parametrize("expression, says", [
    ("b'x'", "is bytes"), ("object()", "object"), ("main", "function"),
    ("int", "a type (int)"), ("1j", "complex"), ("float('nan')", "nan"),
    ("__import__('threading').Lock()", "lock"), ("10 ** 400", "1023 bits"),
    ("coroutine()", "await it"), ("agen()", "async for"),
    ("{(1,): 2}", "as a key"), ("ValueError('x')", "ValueError"),
    ("cycle()", "nested deeper"),
])
def test_what_is_no_json_is_named(pool, expression, says):
    call = pool.call(f'''
async def coroutine(): pass
async def agen(): yield 1
def cycle():
    a = []
    a.append(a)
    return a
def main():
    return {{"list": [0, {expression}]}}
''')
    assert call.failure_name == "exception"
    assert "the result['list'][1]" in call.text and says in call.text
    assert "mcpbox_results" not in call.text


def test_endless_result(pool):
    call = pool.call("import itertools\ndef main(): return itertools.count()\n",
                     result_max=4096)
    assert call.failure_name == "limit" and "result_bytes is 4096" in call.text


# --- The mcpbox module ---------------------------------------------------------

def test_content(pool):
    call = pool.call('''
from mcpbox import *
import datetime, pathlib
def main():
    pathlib.Path("/tmp/p.png").write_bytes(b"\\x89PNG")
    when = datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone.utc)
    return [
        Text("t", annotations={"audience": "user", "priority": 1}),
        Image(pathlib.Path("/tmp/p.png")),
        Audio(b"RIFF", "audio/wav", annotations={"lastModified": when}),
        Resource("mem:a", text="x", mime_type="text/plain"),
        Resource("mem:b", data=b"\\0"),
        ResourceLink("https://e.com/x?y#z", "n", title="T", description="d",
                     mime_type="text/html", size=5),
        "plain", {"a": 1},
    ]
''')
    assert call.kind == "run_result", call.text
    assert call.body["content"] == [
        {"type": "text", "text": "t",
         "annotations": {"audience": ["user"], "priority": 1}},
        {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav",
         "annotations": {"lastModified": "2025-01-01T00:00:00+00:00"}},
        {"type": "resource", "resource": {
            "uri": "mem:a", "mimeType": "text/plain", "text": "x"}},
        {"type": "resource", "resource": {"uri": "mem:b", "blob": "AA=="}},
        {"type": "resource_link", "uri": "https://e.com/x?y#z", "name": "n",
         "title": "T", "description": "d", "mimeType": "text/html",
         "size": 5},
        {"type": "text", "text": "plain"},
        {"type": "text", "text": '{"a": 1}'},
    ]


@pytest.mark.parametrize("expression, says", [
    ("Image(5)", "int"), ("Image('no base64!')", "base64"),
    ("Image(b'', 'png')", "MIME"), ("Resource('no scheme', text='')", "URI"),
    ("Resource('a:b')", "text or data"), ("ResourceLink('a b:c', 'n')", "URI"),
    ("ResourceLink('a:b', 'n', size=-1)", "bytes"),
    ("Text('', {'priority': 2})", "0 to 1"),
    ("Text('', {'audience': ['all']})", "audience"),
    ("Text('', {'colour': 1})", "unknown"),
    ("Result([1])", "must be an object"),
])
def test_bad_content_is_refused_here(pool, expression, says):
    call = pool.call("from mcpbox import *\ndef main():\n"
                     f"    return {expression}\n")
    assert call.failure_name == "exception" and says in call.text


def test_result_of_both_kinds(pool):
    call = pool.call('''
from mcpbox import Result, Text, Image
def main():
    return Result({"n": 1}, ["one", Image(b"x")])
''')
    assert call.body == {
        "content": [{"type": "text", "text": "one"},
                    {"type": "image", "data": "eA==",
                     "mimeType": "image/png"}],
        "structuredContent": {"n": 1}}
    call = pool.call("import mcpbox\ndef main():\n"
                     "    return mcpbox.Result({'n': 1})\n")
    assert call.body == {"content": [{"type": "text", "text": '{"n": 1}'}],
                         "structuredContent": {"n": 1}}


def test_log_levels(pool):
    call = pool.call('''
from mcpbox import log
def main():
    for name in ("debug", "info", "notice", "warning", "error", "critical",
                 "alert", "emergency"):
        getattr(log, name)(name)
        log(name, level=name)
''')
    assert [(f["level"], json.loads(f["json"])) for _, f in call.events] == [
        (n // 2, name) for n, name in enumerate(
            x for x in ("debug", "info", "notice", "warning", "error",
                        "critical", "alert", "emergency") for _ in (0, 1))]
    call = pool.call("from mcpbox import log\ndef main(): log('x', 'loud')\n")
    assert "level must be one of debug, info" in call.text


# --- Errors --------------------------------------------------------------------

def test_group_shows_its_members(pool):
    text = pool.call('''
import asyncio
async def fails(): raise ValueError("inner")
async def main():
    async with asyncio.TaskGroup() as g:
        g.create_task(fails())
''').text
    assert "ExceptionGroup" in text and "ValueError: inner" in text
    assert "run_until_complete" not in text and "mcpbox" not in text


def test_chain(pool):
    text = pool.call('''
def main():
    try:
        1 / 0
    except ZeroDivisionError as e:
        raise RuntimeError("outer") from e
''').text
    assert text.startswith("RuntimeError: outer\nat line 6")
    assert "ZeroDivisionError" in text and "direct cause" in text


def test_syntax_error_of_other_code(pool):
    text = pool.call("def main():\n    exec('def f(:', {})\n").text
    assert text.startswith("SyntaxError") and "at line 2" in text
    assert 'File "<string>", line 1' in text


def test_recursion(pool):
    text = pool.call("def f(): return f()\ndef main(): f()\n").text
    assert "RecursionError" in text and "Previous line repeated" in text
    assert len(text) < 4000


def test_why_the_sandbox_said_no(pool):
    for code, says in (
            ("import subprocess\ndef main(): subprocess.run(['ls'])\n",
             "kind command"),
            ("import asyncio\nasync def main():\n"
             "    await asyncio.create_subprocess_exec('ls')\n",
             "kind command"),
            ("import urllib.request as u\n"
             "def main(): u.urlopen('http://example.com')\n",
             "mcpbox_request_network_access"),
            ("import socket\n"
             "def main(): socket.create_connection(('192.0.2.1', 80))\n",
             "mcpbox_request_network_access")):
        call = pool.call(code)
        assert call.failure_name == "exception" and says in call.text, code


def test_ways_to_end(pool):
    text = pool.call("import sys\ndef main(): sys.exit(3)\n").text
    assert "sys.exit(3)" in text and "ToolError" in text
    text = pool.call("def main(): raise KeyboardInterrupt\n").text
    assert text.startswith("KeyboardInterrupt")
    assert pool.call("import os\ndef main(): os._exit(0)\n").kind == "gone"
