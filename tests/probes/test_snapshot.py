"""The zygote's memory is one file in memory that all runners have mapped
privately. What one could write there, all later calls would run."""
import errno
import os

import pytest

from probes import outside
from probes.conftest import PRELUDE, WRAP


@pytest.fixture
def waiting(pool):
    runner = pool.fork()
    assert runner.ready()[0] == "ready"
    yield runner
    runner.close()


def _mapped(pid):
    return [(low, high, rights) for low, high, rights, name in
            outside.areas(pid) if "memfd:zygote" in name]


def _digest(pool, runner):
    """What the file holds, read by root through a mapping's link."""
    import hashlib
    pid = outside.host_pid(runner)
    low, high, _ = _mapped(pid)[0]
    with open(f"/proc/{pid}/map_files/{low:x}-{high:x}", "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def test_it_is_there_and_private(waiting):
    found = _mapped(outside.host_pid(waiting))
    assert found
    # its data, and the text of the libraries
    assert sorted({rights for _, _, rights in found}) == ["r-xp", "rw-p"]


def test_the_interpreter_runs_from_it(pool, waiting):
    """Its functions lie in the mapping that may be executed, which holds what
    the library's file does."""
    call = pool.call("""
import ctypes
def main():
    f = ctypes.pythonapi.PyObject_CallObject
    at = ctypes.cast(f, ctypes.c_void_p).value
    for line in open("/proc/self/maps"):
        low, high = (int(x, 16) for x in line.split()[0].split("-"))
        if low <= at < high:
            return [line.split()[1], line.split()[-2], at - low,
                    ctypes.string_at(at, 64).hex()]
""")
    rights, name, _, code = call.value
    assert (rights, name) == ("r-xp", "/memfd:zygote")
    import ctypes
    import sysconfig
    library = ctypes.CDLL(sysconfig.get_config_var("INSTSONAME"))
    at = ctypes.cast(library.PyObject_CallObject, ctypes.c_void_p).value
    assert ctypes.string_at(at, 64).hex() == code


def test_not_even_root_writes_to_it(waiting):
    """Sealed: by its link as the host's root, whom nothing else stops."""
    pid = outside.host_pid(waiting)
    low, high, _ = _mapped(pid)[0]
    path = f"/proc/{pid}/map_files/{low:x}-{high:x}"
    with open(path, "rb") as f:
        assert len(f.read(4096)) == 4096        # the control: it is reached
    for attack in (lambda fd: os.pwrite(fd, b"x", 0),
                   lambda fd: os.ftruncate(fd, 0),
                   lambda fd: os.ftruncate(fd, 1 << 30),
                   lambda fd: os.posix_fallocate(fd, 0, 1 << 30)):
        fd = os.open(path, os.O_RDWR)
        try:
            with pytest.raises(OSError) as e:
                attack(fd)
            assert e.value.errno == errno.EPERM
        finally:
            os.close(fd)


#: All that changes a mapping, done to each part of it. The pages are written
#: with what they hold already: only their ownership changes. One byte, by one
#: function of C's: the interpreter that does it keeps its own state in them.
ATTACKS = '''
def main():
    out = {}
    for line in open("/proc/self/maps"):
        if "memfd:zygote" not in line:
            continue
        low, high = (int(x, 16) for x in line.split()[0].split("-"))
        if line.split()[1] == "rw-p":
            ctypes.memmove(high - 1, high - 1, 1)
        for name, args in {
                "remove": (28, high - 4096, 4096, 9),
                "sync": (26, high - 4096, 4096, 4),
                "sync, invalidate": (26, high - 4096, 4096, 6),
                "pageout": (28, high - 4096, 4096, 21),
                "mergeable": (28, high - 4096, 4096, 12),
                "hwpoison": (28, high - 4096, 4096, 100),
                "duplicate": (25, high - 4096, 0, 4096, 1, 0),
                "seal": (462, high - 4096, 4096, 0),
                "remap_file_pages": (216, high - 4096, 4096, 0, 1, 0),
        }.items():
            out.setdefault(name, set()).add(syscall(*args))
    return {k: sorted(v) for k, v in out.items()}
'''


def test_what_a_runner_does_to_it_stays_its_own(pool, waiting):
    before = _digest(pool, waiting)
    call = pool.call(PRELUDE + ATTACKS + WRAP)
    got = call.value["value"]
    assert got.pop("sync") == [0] and got.pop("sync, invalidate") == [0]
    assert got.pop("remove") == [-errno.EACCES]
    assert set(map(tuple, got.values())) <= {(-errno.EPERM,),
                                             (-errno.EINVAL,)}, got
    assert _digest(pool, waiting) == before
