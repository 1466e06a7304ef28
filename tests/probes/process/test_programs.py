"""No program runs: not from the root, not from memory, not from /tmp, none
that changes its ids. And what is read-only stays as it is."""
import base64
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile

import pytest

from probes.conftest import PRELUDE, not_run
from probes.controls import OUTSIDE

#: Forks, tries to become a program that ends with 42, says what came of it.
TRY = '''
def tried(f):
    pid = os.fork()
    if pid == 0:
        try:
            f()
        except BaseException:
            pass
        os._exit(7)
    return os.waitpid(pid, 0)[1] >> 8
'''
SOURCE = ('void _start(void) { __asm__("mov $60, %eax; mov $42, %edi; "'
          '"syscall"); }\n')


@pytest.fixture(scope="module")
def program():
    """A static program that ends with 42."""
    with tempfile.TemporaryDirectory() as d:
        with open(d + "/x.c", "w", encoding="ascii") as f:
            f.write(SOURCE)
        subprocess.run(["cc", "-static", "-nostdlib", "-Os", "-o", d + "/x", d + "/x.c"],
                       check=True)
        subprocess.run(["strip", d + "/x"], check=True)
        with open(d + "/x", "rb") as f:
            yield base64.b64encode(f.read()).decode()


WAYS = {
    "memfd, execveat": '''
        fd = os.memfd_create("x")
        os.write(fd, image)
        syscall(322, fd, b"", 0, 0, 0x1000)
''',
    "memfd, by its link": '''
        fd = os.memfd_create("x")
        os.write(fd, image)
        os.execv("/proc/self/fd/%d" % fd, ["x"])
''',
    "a file of /tmp": '''
        path = "/tmp/program-%d" % os.getpid()
        with open(path, "wb") as f:
            f.write(image)
        os.chmod(path, 0o755)
        try:
            syscall(59, path.encode(), 0, 0)
            os.execv(path, ["x"])
        finally:
            os.unlink(path)
''',
    "a file of /tmp, execveat": '''
        path = "/tmp/program-%d" % os.getpid()
        with open(path, "wb") as f:
            f.write(image)
        os.chmod(path, 0o755)
        fd = os.open(path, os.O_PATH)
        os.unlink(path)
        syscall(322, fd, b"", 0, 0, 0x1000)
''',
    "an unnamed file": '''
        fd = os.open("/tmp", os.O_TMPFILE | os.O_RDWR, 0o755)
        os.write(fd, image)
        again = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY)
        os.close(fd)
        syscall(322, again, b"", 0, 0, 0x1000)
''',
}


@pytest.mark.parametrize("way", WAYS)
def test_program_of_its_own(sandbox, program, way):
    code = "import base64\n" + TRY + '''
def main(image: str):
    image = base64.b64decode(image)
    def run():''' + WAYS[way] + '''
    return tried(run)
'''
    outside, inside = sandbox.attack(code, image=program)
    assert outside == 42
    assert inside == 7


@pytest.mark.parametrize("path", [
    "/proc/self/exe", "/lib64/ld-linux-x86-64.so.2", "/usr/bin/true",
    "/bin/sh", "/usr/bin/python3"])
def test_program_of_the_host(sandbox, path):
    """The loader is in the root, since libraries need it: a program that runs
    any other."""
    code = TRY + '''
def main(path: str):
    return tried(lambda: os.execv(path, [path, "--version"]))
'''
    outside, inside = sandbox.attack(code, path=path)
    assert outside != 7
    assert inside == 7


@pytest.mark.parametrize("how", ["PROT_EXEC", "mprotect", "dlopen"])
def test_code_from_a_file_of_its_own(sandbox, how):
    """/tmp is noexec: no mapping of a file there becomes executable."""
    code = '''
import mmap
def main(how: str):
    path = "/tmp/code-%d" % os.getpid()
    with open(path, "wb") as f:
        f.write(bytes(4096))
    fd = os.open(path, os.O_RDWR)
    os.unlink(path)
    m = _libc.mmap
    m.restype = ctypes.c_void_p
    m.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                  ctypes.c_int, ctypes.c_int, ctypes.c_long]
    if how == "PROT_EXEC":
        return m(None, 4096, 5, 2, fd, 0) != ctypes.c_void_p(-1).value
    if how == "mprotect":
        at = m(None, 4096, 3, 1, fd, 0)
        return _libc.mprotect(ctypes.c_void_p(at), 4096, 5) == 0
    at = m(None, 4096, 3, 2, fd, 0)
    return _libc.mprotect(ctypes.c_void_p(at), 4096, 7) == 0
'''
    outside, inside = sandbox.attack(code, how=how)
    assert outside is True
    assert inside is False


def _as_nobody(path, no_new_privs):
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
         *(["--no-new-privs"] if no_new_privs else []), path, "-u"],
        capture_output=True, text=True, check=False)
    return done.stdout.strip()


def test_set_id_programs(sandbox):
    """The control: a copy of id that belongs to root and has the bit gives
    nobody root's id, unless no_new_privs is set, as it is in a runner; which
    cannot execute it anyway, nor see one, nor make one."""
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        path = shutil.copy("/usr/bin/id", d)
        os.chmod(path, 0o4755)
        flags = subprocess.run(["findmnt", "-nT", path, "-o", "OPTIONS"],
                               capture_output=True, text=True,
                               check=True).stdout
        if "nosuid" not in flags:
            assert _as_nobody(path, False) == "0"
        assert _as_nobody(path, True) == "65534"
        got = sandbox.inside('''
def main(path: str):
    f = "/tmp/setid"
    open(f, "w").close()
    bit = attempt(os.chmod, f, 0o6755)
    keeps = bool(os.stat(f).st_mode & 0o4000)
    status = open("/proc/self/status").read()
    return [attempt(os.execv, path, ["id"]), attempt(os.execv, f, ["x"]),
            "NoNewPrivs:\\t1" in status, os.stat(f).st_uid == os.getuid(),
            bool(os.statvfs("/tmp").f_flag & os.ST_NOSUID)]
''', path=path)
    assert got == ["EPERM", "EPERM", True, True, True]


# --- Files that are only read. ---

CHANGES = '''
import ctypes, mmap, threading
def main(path: str):
    """Tries to change a file that it can read, in every way there is."""
    out = {}
    fd = os.open(path, os.O_RDONLY)
    m = _libc.mmap
    m.restype = ctypes.c_void_p
    m.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                  ctypes.c_int, ctypes.c_int, ctypes.c_long]
    bad = ctypes.c_void_p(-1).value
    out["map shared, writable"] = m(None, 4096, 3, 1, fd, 0) != bad
    shared = m(None, 4096, 1, 1, fd, 0)
    out["mprotect shared"] = _libc.mprotect(ctypes.c_void_p(shared), 4096,
                                            3) == 0
    # a private copy may be written; the file must not notice
    private = m(None, 4096, 3, 2, fd, 0)
    ctypes.memset(private, 0x41, 4096)
    out["msync private"] = _libc.msync(ctypes.c_void_p(private), 4096,
                                       2) == 0 and False
    out["remove"] = syscall(28, private, 4096, 9) == 0
    out["remove shared"] = syscall(28, shared, 4096, 9) == 0
    out["remap shared"] = syscall(25, shared, 0, 4096, 1, 0) > 0 and \\
        _libc.mprotect(ctypes.c_void_p(shared), 4096, 3) == 0
    for name, f in {
            "open rw": lambda: os.open(path, os.O_RDWR),
            "open trunc": lambda: os.open(path, os.O_TRUNC),
            "truncate": lambda: os.truncate(path, 1),
            "ftruncate": lambda: os.ftruncate(fd, 1),
            "write": lambda: os.write(fd, b"x"),
            "pwrite": lambda: os.pwrite(fd, b"x", 0),
            "pwritev2": lambda: os.pwritev(fd, [b"x"], 0),
            "fallocate": lambda: os.posix_fallocate(fd, 0, 10),
            "chmod": lambda: os.chmod(path, 0o777),
            "fchmod": lambda: os.fchmod(fd, 0o777),
            "chown": lambda: os.chown(path, os.getuid(), -1),
            "utime": lambda: os.utime(path),
            "futime": lambda: os.utime(fd, (1, 1)),
            "unlink": lambda: os.unlink(path),
            "rename": lambda: os.rename(path, "/tmp/renamed"),
            "rename onto": lambda: (open("/tmp/new", "w").close(),
                                    os.rename("/tmp/new", path)),
            "link": lambda: os.link(path, "/tmp/linked"),
            "link back": lambda: (open("/tmp/new", "w").close(),
                                  os.link("/tmp/new", path + "2")),
            "copy_file_range": lambda: os.copy_file_range(
                os.open("/dev/zero", 0), fd, 10),
            "sendfile": lambda: os.sendfile(fd, os.open("/dev/zero", 0), 0,
                                            10),
            "splice": lambda: os.splice(os.pipe()[0], fd, 1),
            "setxattr": lambda: os.setxattr(path, "user.x", b"x"),
            "by its link": lambda: os.open("/proc/self/fd/%d" % fd,
                                           os.O_RDWR),
            "temporary beside": lambda: os.open(
                os.path.dirname(path), os.O_TMPFILE | os.O_RDWR),
            "new beside": lambda: open(path + ".new", "w"),
            "directory beside": lambda: os.mkdir(path + ".d"),
            "symlink beside": lambda: os.symlink("x", path + ".l"),
            "own memory file": lambda: open("/proc/self/mem", "r+b")}.items():
        out[name] = attempt(f) is None
    return sorted(k for k, v in out.items() if v)
'''


def test_library_files_do_not_change(sandbox, tmp_path):
    """The control has the same done to a file of root's own."""
    path = os.path.realpath(subprocess.__file__)
    before, times = _state(path)
    inside = sandbox.inside(CHANGES, path=path)
    assert inside == []
    assert _state(path) == (before, times)
    copy = tmp_path / "copy.py"
    shutil.copy(path, copy)
    code = CHANGES.replace('            "unlink": lambda: os.unlink(path),\n',
                           "").replace("/tmp/", str(tmp_path) + "/")
    outside = sandbox.outside(code, path=str(copy))
    assert {"open rw", "truncate", "chmod", "link", "rename", "new beside",
            "own memory file"} <= set(outside)


def _state(path):
    st = os.stat(path)
    with open(path, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    return digest, (st.st_mode, st.st_uid, st.st_mtime_ns, st.st_ctime_ns,
                    st.st_nlink, st.st_size)


def test_pages_of_a_file_in_a_pipe(sandbox):
    """As the dirty pipe: pages of a file that only may be read get into a
    pipe by reference, then the pipe is written to. A kernel without that hole
    leaves the file alone; inside no page gets there at all."""
    code = '''
def main(path: str):
    fd = os.open(path, os.O_RDONLY)
    r, w = os.pipe()
    got = []
    for f in (lambda: os.splice(fd, w, 1, offset_src=1),
              lambda: os.sendfile(w, fd, 1, 1)):
        e = attempt(f)
        got.append(e)
        if e is None:
            os.write(w, b"CANARY")
            os.read(r, 64)
    return got
'''
    path = os.path.realpath(subprocess.__file__)
    before = _state(path)
    if not hasattr(os, "splice"):
        not_run("splice: this Python has no name for it")
    outside, inside = sandbox.attack(code, path=path)
    assert outside == [None, None]
    assert inside == ["EPERM", "EPERM"]
    assert _state(path) == before


def test_copy_on_write_race(sandbox):
    """As the dirty cow: a private copy is written while another thread has
    its page thrown away. The file stays."""
    code = '''
import mmap, threading, time
def main(path: str):
    fd = os.open(path, os.O_RDONLY)
    m = _libc.mmap
    m.restype = ctypes.c_void_p
    m.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                  ctypes.c_int, ctypes.c_int, ctypes.c_long]
    at = m(None, 4096, 3, 2, fd, 0)
    end = time.monotonic() + 0.5
    def drop():
        while time.monotonic() < end:
            syscall(28, at, 4096, 4)
    thread = threading.Thread(target=drop)
    thread.start()
    n = 0
    while time.monotonic() < end:
        ctypes.memset(at, 0x41, 64)
        n += 1
    thread.join()
    return [n > 100, attempt(open, "/proc/self/mem", "r+b")]
'''
    path = os.path.realpath(shutil.__file__)
    before = _state(path)
    inside = sandbox.inside(code, path=path)
    assert inside[0] is True and inside[1] is not None
    assert _state(path) == before


# --- Crashes. ---

def test_crash_of_a_child_leaves_no_core(sandbox):
    code = '''
import resource, tempfile
def main():
    where = tempfile.mkdtemp()
    os.chdir(where)
    pid = os.fork()
    if pid == 0:
        for hard in (resource.RLIM_INFINITY, resource.getrlimit(
                resource.RLIMIT_CORE)[1]):
            try:
                resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
                break
            except (ValueError, OSError):
                pass
        ctypes.string_at(0)
    status = os.waitpid(pid, 0)[1]
    found = os.listdir(where)
    for f in found:
        os.unlink(f)
    os.chdir("/")
    os.rmdir(where)
    return [os.WTERMSIG(status), os.WCOREDUMP(status), len(found)]
'''
    outside, inside = sandbox.attack(code)
    assert inside == [11, False, 0]
    with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as f:
        pattern = f.read().strip()
    if not outside[1]:
        not_run(f"core dump: none outside either, core_pattern is {pattern}")
    assert outside[0] == 11


def test_limits_are_not_raised(sandbox):
    """All sixteen, by each of the three calls; for a child, by a child."""
    code = '''
def main():
    out = []
    for what in range(16):
        now = (ctypes.c_uint64 * 2)()
        syscall(302, 0, what, 0, now)
        for soft, hard in ((-1, -1), (now[1], now[1] + 1), (1 << 62, 1 << 63),
                           (now[1] + 1, now[1])):
            new = (ctypes.c_uint64 * 2)(soft & (1 << 64) - 1,
                                        hard & (1 << 64) - 1)
            if now[1] == (1 << 64) - 1:
                continue
            for r in (syscall(302, 0, what, new, 0), syscall(160, what, new),
                      syscall(302, os.getpid(), what, new, 0)):
                if r == 0:
                    out.append([what, now[1]])
    return out
'''
    lower = ("import resource\nfor w in (4, 6, 7, 8, 11, 12):\n"
             "    resource.setrlimit(w, (1000, 1000) if w == 7 else (1, 1))\n")
    done = subprocess.run(
        [sys.executable, "-I", "-c",
         OUTSIDE.replace("import asyncio", lower + "import asyncio"),
         PRELUDE + code, "{}"], capture_output=True, text=True, check=False)
    assert sandbox.inside(code) == []
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] > 1000
    if "\n@@[]" in done.stdout:
        not_run("limits: root of this machine may not raise them either")
    assert "\n@@[[" in done.stdout, done.stderr


def test_limits_a_call_does_not_name_are_there(sandbox):
    """Nothing that a call can use up is left without one."""
    got = sandbox.inside('''
import resource
def main():
    return {n: resource.getrlimit(getattr(resource, n))[1] for n in
            ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE",
             "RLIMIT_NPROC", "RLIMIT_STACK", "RLIMIT_MEMLOCK",
             "RLIMIT_MSGQUEUE", "RLIMIT_SIGPENDING", "RLIMIT_RTPRIO",
             "RLIMIT_NICE", "RLIMIT_CORE")}
''')
    assert -1 not in got.values(), got
    assert got["RLIMIT_MEMLOCK"] == got["RLIMIT_MSGQUEUE"] == 0
    assert got["RLIMIT_RTPRIO"] == got["RLIMIT_NICE"] == 0
