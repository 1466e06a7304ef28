"""mcpbox-sandboxd-store alone: sandboxd is played here, the streams are what a
runner that was taken over might send."""
import os
import shutil
import stat
import struct
import subprocess
import tempfile

import pytest

from harness import tree
from harness.instance import BUILD, OFFSETS, take_block
from harness.ipc import Closed, Peer, Table, socket_as
from harness.patience import patience, until

FILES = {"pkg/__init__.py": b"TEXT = 'hello'\n", "pkg/data/a.bin": bytes(range(256)) * 900,
         "pkg-1.0.dist-info/METADATA": b"Name: pkg\n", "pkg/empty": b"", "pkg.py": b"x = 1\n"}


class Store:
    """The process as a user of its own, with its directory as contrib/instance
    makes it."""

    def __init__(self, **conf):
        self.base, self._lock = take_block()
        self.uid = self.base + OFFSETS["store"]
        self.parent = tempfile.mkdtemp(prefix="mcpb")
        os.chmod(self.parent, 0o755)
        self.dir = os.path.join(self.parent, "modules")
        os.mkdir(self.dir)
        os.chown(self.dir, 0, self.uid)
        os.chmod(self.dir, 0o1775)
        os.makedirs(os.path.join(self.parent, "run", "sandboxd-store"))
        os.chmod(os.path.join(self.parent, "run"), 0o755)
        os.chown(os.path.join(self.parent, "run", "sandboxd-store"), self.uid, self.uid)
        self.log = os.path.join(self.parent, "log")
        with open(os.path.join(self.parent, "conf"), "w", encoding="ascii") as f:
            f.write(f"run_dir {self.parent}/run\nmodule_dir {self.dir}\n"
                    f"sandboxd_user {self.base + OFFSETS['sandbox']}\n")
            f.writelines(f"{k} {v}\n" for k, v in conf.items())
        os.chmod(os.path.join(self.parent, "conf"), 0o644)
        # libexec of its own: the build's directory may be closed to the user
        self.program = shutil.copy(os.path.join(BUILD, "sandboxd", "store", "mcpbox-sandboxd-store"),
                                   self.parent)
        self.table = Table()
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups",
                 "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", self.program,
                 "-f", os.path.join(self.parent, "conf")], stdout=log, stderr=log)
        path = os.path.join(self.parent, "run", "sandboxd-store", "sandboxd.sock")

        def connected():
            try:
                self.peer = Peer(self.table, socket_as(self.base + OFFSETS["sandbox"],
                                                       [self.uid], path))
                return True
            except OSError:
                return False
        until(connected, say=self.said)

    def stop(self):
        self.peer.sock.close()
        self.process.terminate()
        assert self.process.wait(patience(10)) == 0, self.said()

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.parent)
        self._lock.close()

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-3000:]

    def put(self, data, piece=60000, execution=None):
        """The last answer."""
        execution = execution or os.urandom(16)
        pieces = [data[i:i + piece] for i in range(0, len(data), piece)] or [b""]
        for i, p in enumerate(pieces):
            said = self.peer.call("STORE_PUT", execution=execution, data=p,
                                  last=i == len(pieces) - 1)
            if said["_"] != "OK":
                break
        return said

    def entries(self):
        return sorted(n for n in os.listdir(self.dir) if not n.startswith("."))

    def incoming(self):
        return os.listdir(os.path.join(self.dir, ".incoming"))


@pytest.fixture(scope="module")
def s():
    store = Store(module_files=500, module_bytes=4 << 20)
    yield store
    print(store.said())
    store.close()


def test_same_digest_and_bytes_as_module_add(s, tmp_path):
    tree.write(tmp_path, FILES)
    want = tree.module_add().digest(tmp_path)
    for piece in (60000, 7):
        said = s.put(tree.stream(FILES) if piece != 7 else tree.stream({"a/b": b"1", "a-b": b"2"}), piece)
        assert said["_"] == "STORED", said
        if piece == 60000:
            assert said["digest"].hex() == want
            assert (said["files"], said["size"]) == (5, sum(map(len, FILES.values())))
            assert said["fresh"] == 1
    top = os.path.join(s.dir, want)
    for path, content in FILES.items():
        with open(os.path.join(top, path), "rb") as f:
            assert f.read() == content
    assert tree.module_add().digest(top) == want
    for d, _, files in os.walk(top):
        assert stat.S_IMODE(os.lstat(d).st_mode) == 0o555
        for f in files:
            assert stat.S_IMODE(os.lstat(os.path.join(d, f)).st_mode) == 0o444
    # once more: the same entry
    said = s.put(tree.stream(FILES))
    assert said["_"] == "STORED" and said["digest"].hex() == want and said["fresh"] == 0
    assert s.incoming() == []
    asked = s.peer.call("STORE_ASK", digests=bytes.fromhex(want) + bytes(32))
    assert asked["there"] == b"\1\0"


M, D, F = tree.MAGIC, tree.directory, tree.file
# A name that nobody else makes.
ABSOLUTE = f"/tmp/mcpbox-store-{os.getpid()}"
HOSTILE = {
    "another beginning": b"mcpbox tree 2\0" + F(b"a", b""),
    "nothing": b"",
    "no file": M + D(b"a"),
    "up": M + D(b"..") + F(b"../x", b"1"),
    "up inside": M + D(b"a") + F(b"a/../../x", b"1"),
    "dot": M + F(b"./x", b"1"),
    "absolute": M + F(ABSOLUTE.encode(), b"1"),
    "empty part": M + D(b"a") + F(b"a//x", b"1"),
    "slash at the end": M + D(b"a/"),
    "NUL": M + F(b"a\0b", b"1"),
    "control": M + F(b"a\nb", b"1"),
    "empty path": M + struct.pack(">BI", 2, 0) + struct.pack(">Q", 0),
    "long path": M + F(b"a" * 1025, b"1"),
    "long name": M + F(b"a" * 256, b"1"),
    "deep": M + b"".join(D(b"/".join([b"a"] * i)) for i in range(1, 40)),
    "twice": M + F(b"a", b"1") + F(b"a", b"2"),
    "out of order": M + F(b"b", b"1") + F(b"a", b"2"),
    "no directory": M + F(b"a/b", b"1"),
    "below a file": M + F(b"a", b"1") + F(b"a/b", b"1"),
    "a link": M + struct.pack(">BI", 3, 1) + b"a" + struct.pack(">Q", 1) + b"b",
    "cut in a file": M + F(b"a", b"12", length=3),
    "cut in a head": M + F(b"a", b"1") + b"\2\0\0",
    "endless": M + F(b"a", b"1", length=1 << 63),
    "too large": M + F(b"a", b"x" * (5 << 20)),
    "too large in sum": M + b"".join(F(b"%04d" % i, bytes(1 << 20)) for i in range(5)),
    "too many": M + b"".join(F(b"%04d" % i, b"") for i in range(501)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_stream(s, name):
    before = s.entries()
    said = s.put(HOSTILE[name])
    assert said["_"] == "REFUSED", said
    assert s.entries() == before and s.incoming() == []
    assert not os.path.lexists(ABSOLUTE)
    assert sorted(os.listdir(s.parent)) == ["conf", "log", "mcpbox-sandboxd-store", "modules", "run"]


def test_random_cuts_and_flips(s):
    """Whatever comes, an entry's name is the digest of what is in it."""
    good = tree.stream({f"p/{i}": os.urandom(50) for i in range(20)})
    for i in range(150):
        data = bytearray(good[:os.urandom(1)[0] * len(good) // 255] if i % 2 else good)
        for _ in range(i % 5):
            if data:
                data[int.from_bytes(os.urandom(2), "big") % len(data)] ^= 1 << (i % 8)
        s.put(bytes(data), piece=1 + i * 13)
    assert s.incoming() == []
    for name in s.entries():
        assert tree.module_add().digest(os.path.join(s.dir, name)) == name


def test_several_at_once_and_dropped(s):
    """Four trees, their pieces mixed; a fifth waits its turn; what is dropped leaves nothing."""
    data = [tree.stream({"n/m": bytes([i]) * 90000}) for i in range(5)]
    ids = [os.urandom(16) for _ in data]
    for i in range(4):
        assert s.peer.call("STORE_PUT", execution=ids[i], data=data[i][:50000])["_"] == "OK"
    assert s.peer.call("STORE_PUT", execution=ids[4], data=data[4][:50000])["_"] == "REFUSED"
    s.peer.send("STORE_DROP", execution=ids[3])
    for i in range(3):
        assert s.peer.call("STORE_PUT", execution=ids[i], data=data[i][50000:],
                           last=1)["_"] == "STORED"
    assert s.incoming() == []
    assert s.put(data[4])["_"] == "STORED"


def test_half_done_is_gone_with_the_connection_and_after_a_kill():
    s = Store()
    try:
        whole = s.put(tree.stream(FILES))["digest"].hex()
        half = tree.stream({"a/b/c": bytes(50000), "a/b/d": b""})[:30000]
        s.peer.call("STORE_PUT", execution=os.urandom(16), data=half)
        assert len(s.incoming()) == 1
        s.stop()
        s.start()
        assert s.incoming() == [] and s.entries() == [whole]
        s.peer.call("STORE_PUT", execution=os.urandom(16), data=half)
        s.process.kill()
        s.process.wait()
        assert len(s.incoming()) == 1
        s.start()
        assert s.incoming() == [] and s.entries() == [whole]
    finally:
        s.close()


def test_full_store():
    s = Store(store_bytes=100000)
    try:
        assert s.put(tree.stream({"a": bytes(90000)}))["_"] == "STORED"
        said = s.put(tree.stream({"b": bytes(20000)}))
        assert said["_"] == "REFUSED" and "bytes" in said["message"], said
        s.stop()
        s.start()       # it counts anew
        assert s.put(tree.stream({"b": bytes(20000)}))["_"] == "REFUSED"
        assert s.put(tree.stream({"b": bytes(2000)}))["_"] == "STORED"
    finally:
        s.close()


def test_only_sandboxd(s):
    path = os.path.join(s.parent, "run", "sandboxd-store", "sandboxd.sock")
    for who in ("admind", "stranger"):
        with pytest.raises((Closed, OSError, AssertionError, TimeoutError)):
            Peer(s.table, socket_as(s.base + OFFSETS[who], [s.uid], path)).call(
                "STORE_ASK", digests=b"")
    assert s.peer.call("STORE_ASK", digests=b"")["_"] == "STORE_SAYS"


def test_confined(s):
    """No capability, no_new_privs, a filter; every layer as it reported it."""
    with open(f"/proc/{s.process.pid}/status", encoding="ascii") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    layers = dict(line.split("=", 1) for line in s.peer.hello["layers"].split("\n") if line)
    assert layers["capabilities"] == "enforced"
    if "seccomp" in layers and layers["seccomp"] == "enforced":
        assert status["Seccomp"] == "2"
        assert layers["landlock_files"] == "enforced"
