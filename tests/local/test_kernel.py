"""Rights, system calls and limits."""
import ctypes
import os
import re

import pytest

from local.person import CANARY, RUN, UID

#: name, number on x86-64, arguments; each fails inside with the error.
REFUSED = [
    ("mount", 165, (0, 0, 0, 0, 0), 1), ("umount2", 166, (0, 0), 1), ("pivot_root", 155, (0, 0), 1),
    ("chroot", 161, (0,), 1), ("unshare user", 272, (0x10000000,), 1), ("unshare net", 272, (0x40000000,), 1),
    ("unshare time", 272, (0x80,), 1), ("setns", 308, (0, 0), 1), ("clone user", 56, (0x10000011, 0, 0, 0, 0), 1),
    ("clone3", 435, (0, 0), 38), ("keyctl", 250, (0, -3, 0), 1), ("add_key", 248, (0, 0, 0, 0, 0), 1),
    ("request_key", 249, (0, 0, 0, 0), 1), ("bpf", 321, (0, 0, 0), 1), ("userfaultfd", 323, (0,), 1),
    ("io_uring_setup", 425, (1, 0), 1), ("perf_event_open", 298, (0, 0, 0, 0, 0), 1), ("init_module", 175, (0, 0, 0), 1),
    ("finit_module", 313, (0, 0, 0), 1), ("kexec_load", 246, (0, 0, 0, 0), 1), ("open_by_handle_at", 304, (0, 0, 0), 1),
    ("name_to_handle_at", 303, (0, 0, 0, 0, 0), 1), ("modify_ldt", 154, (0, 0, 0), 1), ("syslog", 103, (3, 0, 0), 1),
    ("open_tree", 428, (0, 0, 1), 1), ("fsopen", 430, (0, 0), 1), ("move_mount", 429, (0, 0, 0, 0, 0), 1),
    ("mount_setattr", 442, (0, 0, 0, 0, 0), 1), ("openat2", 437, (0, 0, 0, 0), 38), ("swapon", 167, (0, 0), 1),
    ("reboot", 169, (0, 0, 0), 1), ("settimeofday", 164, (0, 0), 1), ("fanotify_init", 300, (0, 0), 1),
    ("quotactl", 179, (0, 0, 0, 0), 1), ("acct", 163, (0,), 1),
    ("TIOCSTI", 16, (0, 0x5412, 0), 1), ("TIOCSTI, upper bits", 16, (0, 0x100005412, 0), 1),
    ("TIOCLINUX", 16, (0, 0x541C, 0), 1), ("TIOCSETD", 16, (0, 0x5423, 0), 1),
]
CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
r = libc.syscall(*[ctypes.c_long(v) for v in (%d, *%r)])
print(ctypes.get_errno() if r == -1 else 0)
"""


@pytest.mark.parametrize("name,number,args,error", REFUSED, ids=[r[0] for r in REFUSED])
def test_refused_call(person, name, number, args, error):
    inside = person.python(CALL % (number, args))
    assert inside.out == f"{error}\n", (name, inside)


def test_without_the_sandbox_some_of_them_work(person):
    """So the errors above are the sandbox's, not the machine's."""
    for name in ("unshare user", "clone3", "openat2", "name_to_handle_at", "keyctl", "modify_ldt", "TIOCSETD"):
        row = next(r for r in REFUSED if r[0] == name)
        assert person.outside("python3", "-c", CALL % (row[1], row[2])).out != f"{row[3]}\n", name


@pytest.mark.parametrize("family", [5, 6, 9, 17, 29, 31, 38, 40, 41, 44, 45, (1 << 32) | 40])
def test_refused_socket(person, family):
    assert person.python(CALL % (41, (family, 2, 0))).out == "97\n"


def test_other_architectures_kill(person):
    """x32: the same call by another number."""
    r = person.python(CALL % (0x40000000 + 39, ()))
    assert r.status == 128 + 31, r


def test_capabilities(person):
    text = person.run("cat", "/proc/self/status").out
    assert set(re.findall(r"^Cap\w+:\t(\w+)", text, re.M)) == {"0" * 16}
    assert "NoNewPrivs:\t1" in text and "Seccomp:\t2" in text
    assert f"Uid:\t{UID}\t{UID}\t{UID}\t{UID}" in text and "Groups:\t \n" in text


def test_no_way_to_a_further_namespace(person):
    r = person.sh("unshare -Ur true; unshare -r true; unshare -n true")
    assert r.status != 0 and r.err.count("not permitted") == 3, r


def test_sudo_and_its_like_do_nothing(person):
    r = person.sh("su -c id 2>&1; mount -t tmpfs x /tmp; id -u")
    assert r.out.splitlines()[-1] == str(UID), r


def test_landlock_holds_without_the_mounts(person):
    """A file that the mounts leave writable, and no rule of Landlock: /usr is both. So a
    signal outside is tried, which Landlock's scope alone refuses: pid 1 is not in it."""
    abi = ctypes.CDLL(None).syscall(444, None, 0, 1)
    if abi < 6:
        pytest.skip("not run: this kernel has no Landlock of ABI 6")
    r = person.python("import os\ntry: os.kill(1, 0)\nexcept OSError as e: print(e.errno)")
    assert r.out == "1\n", r


def test_a_fork_bomb_ends_at_the_limit(person):
    r = person.python("import os, time\nn = 0\ntry:\n    while True:\n        if os.fork() == 0: time.sleep(1000)\n"
                      "        n += 1\nexcept OSError as e: print(n, e.errno)", ["--processes", "50"])
    n, error = map(int, r.out.split())
    assert 40 <= n <= 50 and error == 11, r


def test_the_limit_is_of_one_run(person):
    """Processes of the person outside do not count, and its own limit stays."""
    others = [person.start("sleep", "1000") for _ in range(30)]
    try:
        assert person.sh("for i in 1 2 3; do sleep 0 & done; wait; echo ok", ["--processes", "20"]).out == "ok\n"
    finally:
        for p in others:
            p.kill()
            p.wait()


def test_memory(person):
    script = "b = bytearray(300 << 20); b[::4096] = b'x' * len(b[::4096]); print('got it')"
    assert person.python(script).out == "got it\n"
    r = person.python(script, ["--memory", "200M"])
    assert r.status != 0 and "got it" not in r.out, r


def test_the_size_of_a_file(person):
    r = person.sh("head -c 3M /dev/zero > big; stat -c %s big", ["--file-size", "1M"])
    assert r.out == f"{1 << 20}\n", r
    assert person.sh("head -c 3M /dev/zero > big; stat -c %s big").out == f"{3 << 20}\n"


def test_limits_are_hard(person):
    r = person.python("from resource import *\nprint(getrlimit(RLIMIT_NPROC), getrlimit(RLIMIT_CORE)[1])\n"
                      "setrlimit(RLIMIT_NPROC, (78, 78))", ["--processes", "77"])
    assert r.out in ("(77, 77) 0\n", "(77, 77) 1\n") and r.status == 1, r


def test_a_core_is_not_written(person):
    r = person.sh("ulimit -c unlimited; kill -SEGV $$")
    assert r.status != 0 and not list(person.project.glob("*core*")), r


def test_keys_of_the_person(person):
    """A key of the session keyring, which children inherit."""
    script = ("import ctypes, sys, subprocess\nlibc = ctypes.CDLL(None)\nlibc.syscall(250, 1, None)\n"
              f"libc.syscall(248, b'user', b'{CANARY}', b'x', 1, -3)\n"
              "print(subprocess.run(sys.argv[1:], capture_output=True, text=True).stdout)")
    assert CANARY in person.outside("python3", "-c", script, "cat", "/proc/keys").out
    r = person.outside("python3", "-c", script, RUN, "cat", "/proc/keys")
    assert CANARY not in r.out, r


def test_files_of_the_kernel_can_not_be_written(person):
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/net/ipv4/ip_forward",
                 "/proc/sys/kernel/hostname", "/proc/self/uid_map", "/proc/1/oom_score_adj"):
        r = person.sh(f"echo 1 > {path}")
        assert r.status != 0, path
    assert os.uname().nodename != "1"
