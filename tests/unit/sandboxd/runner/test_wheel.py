"""The installer of modules in a plain interpreter, against an index on the
loopback: which wheel it chooses, what it refuses, and what of it would reach
the store."""

import hashlib
import importlib.util
import io
import os
import py_compile
import struct
import subprocess
import sys
import zipfile

import pytest

from test_inspect import fake

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
from harness import wheels

import mcpbox_drivers as drivers
import mcpbox_index
import mcpbox_versions as versions
import mcpbox_wheel

#: What is in no wheel of ours: it must never get anywhere.
CANARY = b"canary of the wheel tests"


class Store:
    """What module_part sends, as the files that the store would make."""

    def __init__(self):
        self.data, self.whole, self.refuse = b"", False, None

    def part(self, data, last):
        assert not self.whole and len(data) <= 48 * 1024
        self.data += data
        self.whole = last
        if self.refuse is not None and len(self.data) > self.refuse:
            return 2, b"", 0, 0, "it is full"
        return (1, bytes(32), len(self.files()), 7, "") if last else (0, b"", 0, 0, "")

    def files(self):
        data, out, last = self.data[14:], {}, b""
        assert self.data[:14] == b"mcpbox tree 1\0"
        while data:
            kind, n = struct.unpack(">BI", data[:5])
            path, data = data[5:5 + n], data[5 + n:]
            assert path > last
            last = path
            if kind == 2:
                n, = struct.unpack(">Q", data[:8])
                out[path.decode()], data = data[8:8 + n], data[8 + n:]
        return out


@pytest.fixture
def store(monkeypatch, tmp_path):
    s = Store()
    monkeypatch.setattr(fake, "module_part", s.part, raising=False)
    monkeypatch.setattr(mcpbox_wheel, "WHEEL", str(tmp_path / "wheel"))
    return s


@pytest.fixture(params=["json", "html"])
def index(request):
    with wheels.Index(form=request.param) as i:
        yield i


@pytest.fixture
def plain():
    with wheels.Index() as i:
        yield i


def install(index, name="demo", version="", sha256="", most=8 << 20, feed=None):
    said = mcpbox_wheel.main({"index": index.url, "advisories": feed, "wheel_bytes": most},
                             {"name": name, "version": version, "sha256": sha256}, {})
    return said.value["structuredContent"]


# ---- versions ----

ORDER = ["1.dev0", "1.0.dev456", "1.0a1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12", "1.0b1.dev456",
         "1.0b2", "1.0b2.post345.dev456", "1.0b2.post345", "1.0rc1.dev456", "1.0rc1", "1.0",
         "1.0+abc.5", "1.0+abc.7", "1.0+5", "1.0.post456.dev34", "1.0.post456", "1.0.15", "1.1.dev1",
         "1!0.1"]


def test_versions_are_ordered_as_pep_440_has_them():
    keys = [versions.Version(v).key for v in ORDER]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    assert versions.Version("1.0.0").key == versions.Version("v1").key
    assert versions.Version("1.0-1").key == versions.Version("1.0.post1").key
    for bad in ("", "one", "1.0.", "1..0", "1.0+", "1.0 2", "1" * 300, "1\n.0", "1.0*"):
        with pytest.raises(ValueError):
            versions.Version(bad)


@pytest.mark.parametrize("spec,yes,no", [
    ("==1.0", ["1.0", "1.0.0", "1.0+local"], ["1.0.1", "1.0a1", "1.0.post1"]),
    ("==1.0.*", ["1.0", "1.0.9", "1.0a1"], ["1.1"]),
    ("!=1.0.*", ["1.1"], ["1.0.3"]),
    (">=1.2,<2", ["1.2", "1.9.9"], ["1.1", "2.0", "2.0a1"]),
    ("~=2.2", ["2.2", "2.9"], ["3.0", "2.1"]),
    ("~=1.4.5", ["1.4.5", "1.4.9"], ["1.5", "1.4.4"]),
    (">1.7", ["1.7.1", "1.8"], ["1.7", "1.7.post1", "1.7+local"]),
    ("<3", ["2.9"], ["3.0", "3.0rc1"]),
    ("===1.0", ["1.0"], ["1.0.0"]),
    ("", ["1", "2a1"], []),
])
def test_specifiers(spec, yes, no):
    s = versions.Specifiers(spec)
    assert [v for v in yes if not s.take(versions.Version(v))] == []
    assert [v for v in no if s.take(versions.Version(v))] == []


def test_bad_specifiers():
    for bad in ("1.0", ">=1.*", "=1", "==1.0 || ==2", "~=1", ">=1.0+x", "==", "==1.0rc1.*"):
        with pytest.raises(ValueError):
            versions.Specifiers(bad)


@pytest.mark.parametrize("text,wanted", [
    ("urllib3 (>=1.21.1,<3)", True),
    ("a; python_version >= '3.8'", True),
    ("a; python_version < '3.8'", False),
    ("a; sys_platform == 'win32'", False),
    ("a; extra == 'socks'", False),
    ("a; (os_name == 'posix' and sys_platform != 'win32') or extra == 'x'", True),
    ("a; 'linux' in sys_platform", True),
    ("a; platform_machine not in 'sparc'", True),
    ("a[b,c]>=2; implementation_name == 'cpython'", True),
])
def test_markers(text, wanted):
    assert versions.Requirement(text, versions.environment()).wanted == wanted


def test_bad_requirements():
    env = versions.environment()
    for bad in ("", "a; nothing == '1'", "a @ https://example.com/a.whl", "a; python_version", "a ==",
                "a; (python_version >= '3'", "a; " + "(" * 50 + "os_name == 'x'" + ")" * 50,
                "a" * 2000, "-a", "a; __import__('os') == '1'"):
        with pytest.raises(ValueError):
            versions.Requirement(bad, env)


def test_tags_of_this_interpreter():
    tags = versions.tags()
    me = f"cp3{sys.version_info[1]}"
    machine = os.uname().machine
    assert tags[f"{me}-{me}-manylinux_2_17_{machine}"] < tags[f"{me}-abi3-manylinux_2_17_{machine}"]
    assert tags[f"cp32-abi3-linux_{machine}"] < tags["py3-none-any"]
    assert tags[f"{me}-{me}-manylinux2014_{machine}"] < tags["py3-none-any"]
    for other in ("cp27-cp27m-linux_x86_64", f"{me}-{me}-win_amd64", f"{me}-{me}-musllinux_1_1_{machine}",
                  "cp399-cp399-linux_x86_64", f"{me}-{me}-manylinux_2_99_{machine}", "py2-none-any"):
        assert other not in tags


# ---- choosing ----

def test_installs_the_newest_that_fits(index, store):
    for v in ("1.0", "1.10", "1.9", "2.0rc1"):
        index.add(wheels.wheel(version=v))
    index.add(wheels.wheel(version="3.0"), yanked=True)
    index.add(wheels.wheel(version="4.0"), python=">=3.99")
    index.add(wheels.wheel(version="5.0", tag="cp36-cp36m-win_amd64"))
    index.add(wheels.wheel(version="6.0"), sha256="")
    index.add(("demo-7.0.tar.gz", b"no wheel"), name="demo")
    said = install(index)
    made = index.files["demo-1.10-py3-none-any.whl"]
    assert said["version"] == "1.10"
    assert said["sha256"] == hashlib.sha256(made).hexdigest() and said["size"] == len(made)
    assert said["summary"] == "a wheel of the tests" and said["license"] == "ISC"
    assert said["needs"] == [] and said["advisories"] is None
    assert store.whole and sorted(store.files()) == [
        "demo-1.10.dist-info/METADATA", "demo-1.10.dist-info/RECORD",
        "demo-1.10.dist-info/WHEEL", "demo/__init__.py"]
    assert not os.path.exists(mcpbox_wheel.WHEEL)


def test_a_named_version_and_pinned_bytes(index, store):
    old = index.add(wheels.wheel(version="1.0"), yanked=True)
    index.add(wheels.wheel(version="2.0"))
    assert install(index, version="1.0")["filename"] == old
    pin = hashlib.sha256(index.files[old]).hexdigest()
    store.__init__()
    assert install(index, version="1.0", sha256=pin)["sha256"] == pin
    with pytest.raises(drivers.UpstreamChanged):
        install(index, version="2.0", sha256=pin)
    with pytest.raises(mcpbox_index.Refused, match="as version 1.0: ask for it by that"):
        install(index, version="1.0.0")


def test_compiled_before_pure_and_best_tag_first(plain, store):
    m, me = os.uname().machine, f"cp3{sys.version_info[1]}"
    for tag in ("py3-none-any", f"{me}-{me}-manylinux_2_17_{m}.manylinux2014_{m}",
                f"cp32-abi3-manylinux_2_17_{m}", f"{me}-{me}-musllinux_1_1_{m}",
                f"{me}-{me}-manylinux_2_99_{m}"):
        plain.add(wheels.wheel(tag=tag))
    assert install(plain)["filename"] == (
        f"demo-1.0-{me}-{me}-manylinux_2_17_{m}.manylinux2014_{m}.whl")


def test_build_numbers_and_only_prereleases(plain, store):
    name, data = wheels.wheel(version="1.0rc1")
    plain.add((name.replace("-py3", "-2-py3"), data))
    plain.add((name.replace("-py3", "-10a-py3"), data))
    plain.add((name, data))
    assert install(plain)["filename"] == "demo-1.0rc1-10a-py3-none-any.whl"


@pytest.mark.parametrize("why,kw", [
    ("no wheel fits", {"tag": "cp36-cp36m-win_amd64"}),
    ("no such version as a wheel with a SHA-256", {"sha256": ""}),
    ("it needs Python >=3.99", {"python": ">=3.99"}),
    ("withdrawn", {"yanked": True}),
])
def test_no_compatible_wheel_says_why(index, store, why, kw):
    index.add(wheels.wheel(tag=kw.get("tag", "py3-none-any")),
              **{k: v for k, v in kw.items() if k != "tag"})
    with pytest.raises(mcpbox_index.Refused, match=why):
        install(index)
    assert store.data == b""


def test_unknown_names(index, store):
    with pytest.raises(mcpbox_index.Refused, match="knows no package"):
        install(index)
    for bad in ("../x", "a b", "", "-", "a/b", "é", "a" * 200):
        with pytest.raises(drivers.InvalidArguments):
            install(index, name=bad)
    with pytest.raises(drivers.InvalidArguments):
        install(index, version="1.0/../../x")
    assert index.seen == ["/simple/demo/"]


@pytest.mark.parametrize("page", [
    ("application/json", b"[]"), ("application/json", b"{"), ("application/json", b'{"files": 3}'),
    ("application/json", b'{"files": [1]}'), ("application/json", b"[" * 100000),
    ("application/json", b'{"files": [{"filename": "demo-1.0-py3-none-any.whl"}]}'),
    ("text/html", b"<a href='\xff\xfe'>"), ("text/html", b"<a <a <a href=" * 1000), ("text/html", b""),
    ("application/octet-stream", bytes(range(256)) * 100),
])
def test_a_page_that_is_none(plain, store, page):
    plain.pages["demo"] = page
    with pytest.raises(mcpbox_index.Refused):
        install(plain)
    assert store.data == b""


def test_an_index_that_is_ill_may_be_well_later(plain, store):
    """What is worth another try, and what is not."""
    name = plain.add(wheels.wheel())
    for status, error in ((503, drivers.Upstream), (429, drivers.Upstream), (403, mcpbox_index.Refused)):
        plain.status = status
        with pytest.raises(error, match=f"answered {status}"):
            install(plain)
    plain.status = 200
    del plain.files[name]
    with pytest.raises(mcpbox_index.Refused, match="answered 404"):
        install(plain)
    plain.server.server_close()
    with pytest.raises(drivers.Upstream):
        install(plain)


def test_a_lying_index(index, store):
    """It names other projects' wheels on the page, two truths of one file, or
    files elsewhere; what counts is what is in the wheel."""
    other = wheels.wheel("other", "9.0")
    index.add(other, name="demo")
    with pytest.raises(mcpbox_index.Refused, match="can't be installed"):
        install(index)
    index.add(("demo-9.0-py3-none-any.whl", other[1]))      # another package's under our name
    with pytest.raises(drivers.Failure, match="is called demo-9.0"):
        install(index)
    index.links.clear()
    index.add(wheels.wheel())
    index.add(wheels.wheel(), sha256="0" * 64)
    with pytest.raises(mcpbox_index.Refused, match="two SHA-256"):
        install(index)
    index.links.clear()
    for url in ("file:///etc/passwd", "ftp://x/demo-1.0-py3-none-any.whl", "http://u:p@x/a.whl"):
        index.add(wheels.wheel(), url=url)
    if index.form == "json":
        with pytest.raises(mcpbox_index.Refused, match="can't be installed"):
            install(index)
    assert store.data == b""


# ---- the bytes ----

def test_wrong_hash(index, store):
    index.add(wheels.wheel(), sha256="ab" * 32)
    with pytest.raises(drivers.UpstreamChanged, match="SHA-256"):
        install(index)
    assert store.data == b""


def test_changes_between_two_looks(plain, store):
    """The page says one thing, then the file is another; later the page says
    another, too, but it was pinned."""
    first, second = wheels.wheel(), wheels.wheel(files={"demo/__init__.py": CANARY})
    plain.add(first)
    pin = install(plain)["sha256"]
    store.__init__()
    plain.bodies[first[0]] = second[1]
    with pytest.raises(drivers.UpstreamChanged):
        install(plain)
    plain.links.clear()
    plain.add(second)
    with pytest.raises(drivers.UpstreamChanged, match="pinned"):
        install(plain, version="1.0", sha256=pin)
    assert store.data == b""


def test_too_large_cut_short_and_slow(plain, store, monkeypatch):
    name = plain.add(wheels.wheel(files={"demo/big.bin": os.urandom(300_000)}))
    with pytest.raises(drivers.Limit, match="module_wheel_size"):
        install(plain, most=100_000)
    whole = plain.files[name]
    plain.bodies[name] = whole[:1000]
    with pytest.raises(drivers.UpstreamChanged):
        install(plain)
    plain.bodies[name] = whole
    plain.slow = 0.05
    monkeypatch.setattr(mcpbox_wheel, "DOWNLOAD_S", 0.5)
    with pytest.raises(drivers.Upstream, match="time"):
        install(plain)
    plain.slow_pages = 0.5
    monkeypatch.setattr(mcpbox_index, "PAGE_S", 0.3)
    plain.pages["demo"] = ("application/json", b" " * 10000)
    with pytest.raises(drivers.Upstream, match="time"):
        install(plain)
    assert store.data == b""


def test_redirects_are_followed_and_bounded(plain, store):
    name = plain.add(wheels.wheel())
    plain.files["moved.whl"] = plain.files[name]
    plain.bodies[name] = "/files/moved.whl"
    assert install(plain)["version"] == "1.0"
    plain.bodies[name] = f"/files/{name}"
    with pytest.raises(drivers.Upstream, match="redirects more"):
        install(plain)


def zipped(*entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for e in entries:
            z.writestr(*e)
    return out.getvalue()


def named(filename, **kw):
    i = zipfile.ZipInfo("placeholder")
    i.filename = filename
    for k, v in kw.items():
        setattr(i, k, v)
    return i


def listed(path, content=CANARY):
    """A member with its line in RECORD, so that only its name is amiss."""
    return {"extra": [(named(path), content)],
            "record": {path: f'"{path}",{wheels.urlsafe(content)},{len(content)}'}}


HOSTILE = {
    "up": listed("../evil.py"),
    "up inside": listed("demo/../../evil.py"),
    "absolute": listed("/etc/evil.py"),
    "backslash": listed("..\\evil.py"),
    "drive": listed("C:/evil.py"),
    "dot": listed("./evil.py"),
    "empty part": listed("demo//evil.py"),
    "control": listed("demo/e\x1bvil.py"),
    "deep": listed("/".join(["a"] * 40)),
    "long name": listed("a" * 300 + ".py"),
    "link": {"extra": [wheels.link("demo/passwd", "/etc/passwd")],
             "record": {"demo/passwd": f"demo/passwd,{wheels.urlsafe(b'/etc/passwd')},11"}},
    "device": {"extra": [(named("demo/null", create_system=3, external_attr=0o020666 << 16), b"")],
               "record": {"demo/null": f"demo/null,{wheels.urlsafe(b'')},0"}},
    "not in RECORD": {"extra": [("demo/evil.py", CANARY)]},
    "missing": {"record": {"demo/gone.py": f"demo/gone.py,{wheels.urlsafe(b'x')},1"}},
    "wrong hash in RECORD": {"record": {"demo/__init__.py":
                                        f"demo/__init__.py,{wheels.urlsafe(b'x')},15"}},
    "wrong size in RECORD": {"record": {"demo/__init__.py":
                                        f"demo/__init__.py,{wheels.urlsafe(CANARY)},3"}},
    "no hash in RECORD": {"record": {"demo/__init__.py": "demo/__init__.py,,"}},
    "md5 in RECORD": {"record": {"demo/__init__.py": "demo/__init__.py,md5=xxxx,15"}},
    "twice in RECORD": {"record": {"x": f"demo/__init__.py,{wheels.urlsafe(b'x')},1"}},
    "no RECORD": {"drop": ["RECORD"]},
    "no WHEEL": {"drop": ["WHEEL"], "record": {"demo-1.0.dist-info/WHEEL": None}},
    "no METADATA": {"drop": ["METADATA"], "record": {"demo-1.0.dist-info/METADATA": None}},
    "another name": {"metadata": b"Name: other\nVersion: 1.0\n"},
    "another version": {"metadata": b"Name: demo\nVersion: 1.1\n"},
    "another Python": {"metadata": b"Name: demo\nVersion: 1.0\nRequires-Python: <3\n"},
    "METADATA not UTF-8": {"metadata": b"Name: demo\nVersion: 1.0\nSummary: \xff\n"},
    "file and directory": {"files": {"demo": b"1", "demo/a.py": b"2"}},
    "two dist-infos": {"files": {"other-1.0.dist-info/METADATA": b"Name: other\n"}},
    "purelib over the top": {"files": {"demo/a.py": b"1", "demo-1.0.data/purelib/demo/a.py": b"2"}},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_wheel(plain, store, case):
    plain.add(wheels.wheel(**HOSTILE[case]))
    with pytest.raises(drivers.Failure):
        install(plain)
    assert not store.whole and CANARY not in store.data


def twice(data, path, other):
    """A second member under the same name."""
    with zipfile.ZipFile(io.BytesIO(data), "a") as z:
        pass
    out = io.BytesIO(data)
    import warnings
    with warnings.catch_warnings(), zipfile.ZipFile(out, "a") as z:
        warnings.simplefilter("ignore")
        z.writestr(path, other)
    return out.getvalue()


def test_hostile_archives(plain, store):
    """Damaged in ways that a writer of archives does not offer."""
    name, good = wheels.wheel(files={"demo/__init__.py": b"x" * 1000})
    at = good.find(b"PK\1\2")
    flagged = bytearray(good)
    flagged[at + 8] |= 1
    squeezed = bytearray(good)
    squeezed[at + 10] = 12
    flipped = bytearray(good)
    flipped[30 + len("demo/__init__.py") + 4] ^= 8
    nul = good.replace(b"demo/__init__.py", b"demo/__in\0t__.py")
    for data in (b"", b"PK", b"not a zip at all", good[:-30], good + b"x", b"MZ" + good,
                 bytes(flagged), bytes(squeezed), nul, twice(good, "demo/__init__.py", CANARY),
                 twice(good, "demo/__init__.py/x", CANARY),
                 wheels.entry_with_size(good, "demo/__init__.py", 10),
                 wheels.entry_with_size(good, "demo/__init__.py", 1 << 31),
                 bytes(flipped), zipped(("x", b"1")), os.urandom(5000)):
        plain.links.clear()
        store.__init__()
        plain.add((name, data))
        with pytest.raises(drivers.Failure):
            install(plain)
        assert not store.whole and CANARY not in store.data
    plain.links.clear()
    store.__init__()
    plain.add((name, good))
    assert install(plain)["version"] == "1.0"      # the test could have passed


def test_bombs(plain, store):
    """What unpacks to far more than it is: ended by the store's bound, before
    memory or /tmp are used for it; too many members before they are read."""
    name, data = wheels.wheel(files={"demo/zeros": bytes(40 << 20)})
    assert len(data) < 100_000
    plain.add((name, data))
    store.refuse = 1 << 20
    with pytest.raises(drivers.Limit, match="it is full"):
        install(plain)
    assert len(store.data) < 2 << 20
    plain.links.clear()
    store.__init__()
    plain.add(wheels.wheel(files={f"demo/{i}": b"" for i in range(20_001)}, compress=zipfile.ZIP_STORED))
    with pytest.raises(drivers.Limit, match="members"):
        install(plain, most=64 << 20)
    assert store.data == b""


def test_what_of_data_enters(plain, store):
    plain.add(wheels.wheel(files={
        "demo/__init__.py": b"1", "demo-1.0.data/purelib/demo/more.py": b"2",
        "demo-1.0.data/platlib/fast.so": b"3", "demo-1.0.data/scripts/run": CANARY,
        "demo-1.0.data/headers/x.h": CANARY, "demo-1.0.data/data/etc/x": CANARY}))
    install(plain)
    files = store.files()
    assert files["demo/more.py"] == b"2" and files["fast.so"] == b"3"
    assert sorted(f for f in files if "dist-info" not in f) == [
        "demo/__init__.py", "demo/more.py", "fast.so"]


def test_compiled_code_in_the_place_of_its_source(plain, store, tmp_path):
    """A wheel whose __pycache__ says something else than its source."""
    evil = tmp_path / "evil.py"
    evil.write_text("said = 'what nobody reads'")
    cached = importlib.util.cache_from_source("demo/shown.py")
    compiled = py_compile.compile(str(evil), str(tmp_path / "x.pyc"),
                                  invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    with open(compiled, "rb") as f:
        files = {"demo/__init__.py": b"", "demo/shown.py": b"said = 'what is read'", cached: f.read(),
                 "demo-1.0.data/purelib/__pycache__/x": CANARY}

    def runs(files):
        top = tmp_path / str(len(files))
        for name, data in files.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_bytes(data)
        return subprocess.run([sys.executable, "-c", "import demo.shown; print(demo.shown.said)"], cwd=top,
                              capture_output=True, text=True, check=True, env={}).stdout.strip()

    assert runs(files) == "what nobody reads"       # Python does run it
    plain.add(wheels.wheel(files=files))
    install(plain)
    kept = {f: d for f, d in store.files().items() if "dist-info" not in f}
    assert sorted(kept) == ["demo/__init__.py", "demo/shown.py"]
    assert runs(kept) == "what is read"


# ---- beside it ----

def test_dependencies_are_resolved_one_deep(plain, store):
    plain.add(wheels.wheel(requires=[
        "dep-a>=1,<2", "dep-b[fast] (>=2); python_version >= '3'", "dep-c; sys_platform == 'win32'",
        "dep-d; extra == 'x'", "gone", "dep-e @ https://example.com/e.whl", "dep-a>=99"]))
    for v in ("1.0", "1.5", "2.0"):
        plain.add(wheels.wheel("dep-a", v))
    plain.add(wheels.wheel("dep-b", "2.1"))
    needs = install(plain)["needs"]
    assert [(n.get("name"), n.get("version")) for n in needs] == [
        ("dep-a", "1.5"), ("dep-b", "2.1"), ("gone", None), (None, None), ("dep-a", None)]
    assert "knows no package" in needs[2]["error"] and "address" in needs[3]["error"]
    # they are only looked up
    assert [p for p in plain.seen if p.startswith("/files/")] == ["/files/demo-1.0-py3-none-any.whl"]


def test_what_is_read_by_people_has_no_controls(plain, store):
    """A reviewer's terminal shows the requirements as they stand in METADATA."""
    plain.add(wheels.wheel(requires=["dep-a\x1b[2J\x9b1m>=1", "d\u202eep-b", "\u200bdep-c"]))
    said = install(plain)
    assert said["requires"] == ["dep-a [2J 1m>=1", "d ep-b", " dep-c"]
    assert all(c == "\n" or " " <= c <= "~" for n in said["needs"] for v in n.values() for c in v), said["needs"]


def test_advisories(plain, store):
    plain.add(wheels.wheel())
    plain.vulns["demo", "1.0"] = [
        {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1"], "summary": "reads\x1b[2J all files"},
        {"id": "GHSA-x", "details": "d" * 1000}, {"id": "old", "withdrawn": "2026-01-01T00:00:00Z"}]
    said = install(plain, feed=plain.feed)["advisories"]
    assert [a["id"] for a in said["known"]] == ["PYSEC-2026-1", "GHSA-x"]
    assert said["known"][0]["summary"] == "reads [2J all files"
    assert len(said["known"][1]["summary"]) == 300
    store.__init__()
    plain.feed_status = 503
    assert install(plain, feed=plain.feed)["advisories"] == {"error": "the feed answered 503"}
    store.__init__()
    assert "error" in install(plain, feed="http://127.0.0.1:1")["advisories"]


def test_nothing_is_imported_or_executed(plain, store):
    plain.add(wheels.wheel(files={
        "demo/__init__.py": b"open('/tmp/mcpbox-wheel-ran', 'w')\n",
        "evil.pth": b"import os; os.mkdir('/tmp/mcpbox-wheel-ran')\n",
        "sitecustomize.py": b"raise SystemExit\n"}))
    before = set(sys.modules)
    install(plain)
    assert not os.path.exists("/tmp/mcpbox-wheel-ran")
    assert not {"demo", "sitecustomize"} & (set(sys.modules) - before)
