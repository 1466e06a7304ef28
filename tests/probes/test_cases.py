"""Cases that other sandboxes promised or missed, and that no other file here
has. CASES.md says where each of them is."""
import ctypes
import os
import subprocess

import pytest

from harness.patience import until
from probes import runner_driver
from probes.conftest import PRELUDE, WRAP


def test_pid_1_is_the_platform_s(sandbox):
    """M-06: by name, beside what the host's is called."""
    outside, inside = sandbox.attack(
        "def main(): return open('/proc/1/comm').read().strip()")
    assert inside == "mcpbox-tool" != outside


def test_devices(sandbox):
    """M-07: those that are there work, and are the devices they seem."""
    got = sandbox.inside('''
import stat
def main():
    out = {}
    for n in ("null", "zero", "full", "random", "urandom"):
        st = os.stat("/dev/" + n)
        out[n] = [stat.S_ISCHR(st.st_mode), os.major(st.st_rdev),
                  os.minor(st.st_rdev)]
    open("/dev/null", "wb").write(b"x")
    return [out, open("/dev/zero", "rb").read(4) == bytes(4),
            len(open("/dev/urandom", "rb").read(16)),
            attempt(lambda: os.write(os.open("/dev/full", os.O_WRONLY),
                                     b"x"))]
''')
    assert got[0] == {"null": [True, 1, 3], "zero": [True, 1, 5],
                      "full": [True, 1, 7], "random": [True, 1, 8],
                      "urandom": [True, 1, 9]}
    assert got[1:] == [True, 16, "ENOSPC"]


def test_stdin_is_nobody_s(sandbox):
    """M-28: a tool that reads its input reads nothing of the daemons'."""
    code = '''
import sys
def main():
    return [sys.stdin.read(), os.read(0, 10).decode(),
            os.fstat(0).st_rdev == os.stat("/dev/null").st_rdev]
'''
    assert sandbox.inside(code) == ["", "", True]


def test_host_name_and_domain(sandbox):
    """M-14"""
    code = '''
import socket
def main():
    return [os.uname().nodename, socket.gethostname(), os.uname().machine]
'''
    outside, inside = sandbox.attack(code)
    assert inside[:2] == ["sandbox", "sandbox"] and outside[0] != "sandbox"


def test_interfaces(sandbox):
    """M-13: one, which is down: its namespace has no address and no route."""
    code = '''
def main():
    lines = open("/proc/self/net/dev").read().splitlines()[2:]
    return [[l.split(":")[0].strip() for l in lines],
            open("/proc/self/net/route").read().splitlines()[1:],
            open("/proc/self/net/if_inet6").read()
            if os.path.exists("/proc/self/net/if_inet6") else "",
            open("/proc/self/net/arp").read().splitlines()[1:]]
'''
    outside, inside = sandbox.attack(code)
    assert len(outside[0]) > 1 or outside[1], "nothing to compare with"
    assert inside == [["lo"], [], "", []]


def test_landlock_without_the_mounts(sandbox):
    """M-22: what mode and mount would let pass. /dev/urandom may be written
    by everybody and its mount does not keep a device from it."""
    code = '''
def main():
    return [attempt(os.open, "/dev/" + n, os.O_WRONLY)
            for n in ("urandom", "random")] + [
            attempt(os.open, "/dev/null", os.O_WRONLY)]
'''
    outside, inside = sandbox.attack(code)
    assert outside == [None] * 3
    assert inside == ["EACCES", "EACCES", None]


def test_landlock_is_probed_not_assumed(pool):
    """M-24: the report says what the kernel itself says."""
    libc = ctypes.CDLL(None, use_errno=True)
    abi = libc.syscall(444, None, ctypes.c_size_t(0), 1)
    want = "enforced" if abi > 0 else "missing"
    assert pool.layers["runner-landlock"] == want
    assert pool.layers["runner-landlock-scope"] == (
        "enforced" if abi >= 6 else "missing")


#: CVE: the first call of its public exploit, as near as it is told without
#: one: (what, number, arguments)
EXPLOITS = {
    "CVE-2017-5226 TIOCSTI": (16, [0, 0x5412, 0]),
    "CVE-2022-0492 cgroup release_agent": (272, [0x1A020000]),
    "CVE-2022-0185 fsconfig": (430, [0, 0]),
    "CVE-2022-0847 splice": (275, [-1, 0, -1, 0, 1, 0]),
    "CVE-2022-2588 route by netlink": (41, [16, 3, 0]),
    "CVE-2022-29582 io_uring": (425, [8, 0]),
    "CVE-2023-0386 overlay in a user namespace": (272, [0x10020000]),
    "CVE-2023-2640 overlay, capabilities": (188, [0, 0, 0, 0, 0]),
    "CVE-2023-32233 nf_tables": (41, [16, 3, 12]),
    "CVE-2024-1086 nf_tables": (272, [0x50000000]),
    "CVE-2024-21626 a descriptor that stayed": (81, [7]),
    "CVE-2021-22555 netfilter by setsockopt": (54, [-1, 0, 64, 0, 0]),
    "CVE-2021-33909 deep mounts": (165, [0, 0, 0, 0, 0]),
    "CVE-2020-14386 packet sockets": (41, [17, 3, 3]),
    "CVE-2016-5195 by ptrace": (101, [4, 1, 0, 0]),
    "CVE-2019-13272 ptrace_traceme": (101, [0, 0, 0, 0]),
    "CVE-2021-3490 bpf": (321, [0, 0, 0]),
    "CVE-2025-38236 urgent data": (44, [-1, 0, 0, 1, 0, 0]),
    "CVE-2021-4154 fsopen of cgroup": (430, [0, 1]),
    "CVE-2022-2602 io_uring and descriptors": (426, [-1, 0, 0, 0, 0, 0]),
    "CVE-2023-3269 vma by userfaultfd": (323, [0]),
    "CVE-2022-1015 nf_tables": (41, [16, 3, 12]),
    "CVE-2021-41073 io_uring": (427, [-1, 0, 0, 0]),
    "CVE-2020-8835 bpf": (321, [5, 0, 0]),
    "CVE-2017-7308 packet ring": (41, [17, 2, 3]),
    "CVE-2016-0728 keyring": (250, [1, 0, 0, 0, 0]),
    "CVE-2022-27666 esp by key sockets": (41, [15, 3, 2]),
    "CVE-2017-1000112 ufo": (41, [2, 2, 17]),
    "CVE-2022-1055 traffic control": (41, [16, 3, 0]),
    "CVE-2018-18955 nested id maps": (56, [0x10000011, 0, 0, 0, 0]),
    "CVE-2021-26708 vsock": (41, [40, 1, 0]),
    "CVE-2014-3153 futex requeue": (202, [0, 12, 0, 0, 0, 0]),
    "CVE-2015-1328 overlay": (165, [0, 0, 0, 0, 0]),
}


@pytest.mark.parametrize("name", EXPLOITS)
def test_first_step_of_an_exploit(sandbox, name):
    nr, args = EXPLOITS[name]
    got = sandbox.inside('''
def main(nr: int, args: list):
    return syscall(nr, *args)
''', nr=nr, args=args)
    if nr == 81:    # fchdir(7) into what is no directory
        assert got in (-9, -20)
    elif nr == 188:
        assert got == -95   # setxattr: as if the file system had none
    else:
        assert got == -1


IDENTITIES = ["chat_id", "session", "session_id", "uid", "user", "principal",
              "tenant", "_meta", "server", "tool", "execution", "__class__",
              "self", "secrets", "cwd", "env", "workspace", "timeout"]


@pytest.mark.parametrize("name", IDENTITIES)
def test_arguments_name_no_identity(pool, name):
    """S-21: what a caller adds to the arguments is refused, not passed on."""
    code = "def main(command: str = ''):\n    return command\n"
    for value in ("..", "../..", 0, {"uid": 0}):
        call = pool.call(code, {"command": "ls", name: value})
        assert call.kind == "run_error"
        assert call.failure_name == "invalid_arguments" and name in call.text


def test_two_sessions_share_nothing(sandbox):
    """S-20, M-21: a file of one call of a client is not there in its next."""
    name = "w" + os.urandom(6).hex()
    code = '''
def main(name: str):
    out = []
    for top in ("/tmp", "/dev/shm", "/var/tmp", "/run", "/home", "."):
        path = top + "/" + name
        out.append([os.path.exists(path), attempt(
            lambda: open(path, "w").write("x"))])
    return out
'''
    first, second = (sandbox.inside(code, name=name) for _ in range(2))
    assert [e for e, _ in first] == [e for e, _ in second]
    assert not first[0][0] and first[0][1] is None
    for top in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/home"):
        assert not os.path.exists(f"{top}/{name}")


@pytest.mark.parametrize("trick", [
    "../../../../../../etc/shadow", "/tmp/../etc/shadow", "//etc/shadow",
    "/proc/self/root/etc/shadow", "/proc/self/cwd/../etc/shadow",
    "/proc/1/root/etc/shadow", "/dev/fd/../../etc/shadow",
    "/dev/shm/../etc/shadow", "/usr/../etc/shadow", "/tmp/link/etc/shadow",
    "/tmp/up/up/up/etc/shadow", "/lib/../etc/shadow",
    "/proc/thread-self/root/etc/shadow", "/modules/0/../../etc/shadow"])
def test_no_path_leads_out(sandbox, trick):
    """P-02, P-03: also over links of its own making."""
    code = '''
def main(path: str):
    if os.getpid() == 1:
        os.symlink("/", "/tmp/link")
        os.symlink("..", "/tmp/up")
    return attempt(open, path)
'''
    assert sandbox.outside(code, path="/etc/shadow") is None
    assert sandbox.inside(code, path=trick) in ("ENOENT", "EACCES")


def test_read_only_is_erofs(sandbox):
    """P-04: told as what it is."""
    got = sandbox.inside('''
def main():
    return [attempt(open, p, "w") for p in
            ("/etc/passwd", "/usr/lib/canary", "/canary", os.__file__
             if os.path.exists(os.__file__) else "/etc/hosts")]
''')
    assert set(got) <= {"EROFS", "EACCES"}


def test_deadline_takes_all_that_it_made(pool):
    """M-16, S-22: SIGTERM ignored, forked twice, own group, pipe held."""
    runner = pool.fork(2468)
    try:
        assert runner.ready()[0] == "ready"
        runner.execute(PRELUDE + '''
import signal, time
def main():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(3):
        if os.fork() == 0:
            os.setpgid(0, 0)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            if os.fork():
                os._exit(0)
            while True:
                time.sleep(1)
    time.sleep(60)
''' + WRAP, {})
        host = pool.base + runner_driver.RUNNER_UID + 2467
        until(lambda: _count(host) >= 4)
    finally:
        runner.close()      # SIGKILL, as pool-init does it
    until(lambda: not _count(host))


def _count(uid):
    done = subprocess.run(["pgrep", "-c", "-U", str(uid)],
                          capture_output=True, text=True, check=False)
    return int(done.stdout or 0)
