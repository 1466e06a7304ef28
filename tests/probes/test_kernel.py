"""No capability, no namespace, no mount, and none of the kernel's large
surfaces."""
import contextlib
import errno
import os
import socket

import pytest

from harness.played.sandbox import ask_for_user_namespace

CALL = '''
def main(nr: int, args: list):
    return syscall(nr, *args)
'''

#: Outside these are reached (any answer but EPERM) or work as root; inside
#: the filter answers first.
REACHED = {
    "unshare user": (272, [0x10000000]),
    "unshare mount": (272, [0x20000]),
    "unshare net": (272, [0x40000000]),
    "setns": (308, [-1, 0]),
    "pivot_root": (155, [0, 0]),
    "mount": (165, [0, 0, 0, 0, 0]),
    "umount2": (166, [0, 0]),
    "open_tree": (428, [-1, 0, 0]),
    "move_mount": (429, [-1, 0, -1, 0, 0]),
    "fsopen": (430, [0, 0]),
    "fsmount": (432, [-1, 0, 0]),
    "fspick": (433, [-1, 0, 0]),
    "mount_setattr": (442, [-1, 0, 0, 0, 0]),
    "chroot": (161, [0]),
    "bpf": (321, [0, 0, 0]),
    "userfaultfd": (323, [-1]),
    "perf_event_open": (298, [0, 0, -1, -1, 0]),
    "keyctl": (250, [-1, 0, 0, 0, 0]),
    "add_key": (248, [0, 0, 0, 0, 0]),
    "request_key": (249, [0, 0, 0, 0]),
    "io_uring_setup": (425, [0, 0]),
    "io_uring_register": (427, [-1, 0, 0, 0]),
    "memfd_create": (319, [0, 0]),
    "memfd_secret": (447, [-1]),
    "shmget": (29, [0, 0, 0]),
    "semget": (64, [0, -1, 0]),
    "msgctl": (71, [-1, -1, 0]),
    "mq_open": (240, [0, 0, 0, 0]),
    "inotify_init1": (294, [-1]),
    "fanotify_init": (300, [-1, 0]),
    "personality": (135, [0xffffffff]),
    "modify_ldt": (154, [0, 0, 0]),
    "syslog": (103, [10, 0, 0]),
    "mlockall": (151, [0]),
    "name_to_handle_at": (303, [-1, 0, 0, 0, 0]),
    "open_by_handle_at": (304, [-1, 0, 0]),
    "seccomp": (317, [99, 0, 0]),
    "setuid": (105, [0]),
    "capset": (126, [0, 0]),
    "mknod": (133, [0, 0, 0]),
    "execve": (59, [0, 0, 0]),
    "sched_setaffinity": (203, [0, 0, 0]),
    "ioperm": (173, [0, 0, 0]),
    "quotactl": (179, [0, 0, 0, 0]),
    "kexec_load": (246, [0, -1, 0, 0]),
    "init_module": (175, [0, 0, 0]),
    "clock_settime": (227, [99, 0]),
}


@pytest.mark.parametrize("name", REACHED)
def test_refused_call(sandbox, name):
    nr, args = REACHED[name]
    outside, inside = sandbox.attack(CALL, nr=nr, args=args)
    assert outside != -1, "EPERM outside too: this proves nothing"
    assert inside == -1


@pytest.mark.parametrize("flag", [
    0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000,
    0x40000000])
def test_clone_into_a_namespace(sandbox, flag):
    code = '''
def main(flag: int):
    pid = syscall(56, flag | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    if pid > 0:
        os.waitpid(pid, 0)
        return "made"
    return pid
'''
    outside, inside = sandbox.attack(code, flag=flag)
    assert outside == "made"
    assert inside == -1


def test_clone3(sandbox):
    """ENOSYS: glibc then uses clone, whose flags can be judged."""
    code = '''
def main():
    args = (ctypes.c_uint64 * 11)()
    args[0] = 0x10000000
    args[4] = 17
    pid = syscall(435, args, 88)
    if pid == 0:
        os._exit(0)
    return "made" if pid > 0 else pid
'''
    outside, inside = sandbox.attack(code)
    assert outside == "made"
    assert inside == -38


def test_foreign_architectures_kill(pool):
    """x32 by its bit, and i386 by int 0x80: the process ends, whatever the
    number. mmap of executable memory is allowed: it is Python's own."""
    x32 = "import ctypes\ndef main():\n" \
          "    ctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 | 39))\n" \
          "    return 'alive'\n"
    assert pool.call(x32).kind == "gone"
    i386 = '''
import ctypes, mmap
def main():
    m = mmap.mmap(-1, 4096, prot=7)
    # mov eax, 20 (getpid); int 0x80; ret
    m.write(bytes.fromhex("b814000000cd80c3"))
    f = ctypes.CFUNCTYPE(ctypes.c_int)(
        ctypes.addressof(ctypes.c_char.from_buffer(m)))
    return f()
'''
    assert pool.call(i386).kind == "gone"
    # the same program without the foreign call lives
    assert pool.call(i386.replace("cd80", "9090")).value == 20


def test_capabilities_and_ids(sandbox):
    code = '''
def main():
    status = dict(line.split(":\\t", 1)
                  for line in open("/proc/self/status").read().splitlines()
                  if ":\\t" in line)
    return [[status[k].strip() for k in ("CapInh", "CapPrm", "CapEff",
             "CapBnd", "CapAmb")], status["NoNewPrivs"], status["Seccomp"],
            status["Uid"].split(), status["Gid"].split(),
            status["Groups"].strip(), os.getuid()]
'''
    caps, nnp, seccomp, uids, gids, groups, uid = sandbox.inside(code)
    assert caps == ["0" * 16] * 5
    assert (nnp, seccomp, groups) == ("1", "2", "")
    assert uids == [str(uid)] * 4 and gids == [str(uid)] * 4 and uid != 0


def test_host_uid_is_of_the_reserved_range(pool):
    """Seen from outside: neither root, nor the pool, nor another call's."""
    runner = pool.fork(77)
    try:
        assert runner.ready()[0] == "ready"
        with open(f"/proc/self/fdinfo/{runner.pidfd}", encoding="ascii") as f:
            pid = next(line.split()[1] for line in f if
                       line.startswith("Pid:"))
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            status = f.read()
        want = str(pool.base + 1024 + 76)
        assert f"Uid:\t{want}\t{want}\t{want}\t{want}\n" in status
        assert "CoreDumping:\t0" in status
        # namespaces are its own, all but the user namespace, which is the
        # pool's
        for ns in ("pid", "mnt", "net", "ipc", "uts", "cgroup", "user"):
            assert (os.readlink(f"/proc/{pid}/ns/{ns}")
                    != os.readlink(f"/proc/self/ns/{ns}")), ns
    finally:
        runner.close()


def test_root_of_the_pool_is_refused(pool):
    runner = pool.fork(0)
    try:
        kind, fields = runner.ready()
        assert kind == "confine_failed" and fields["step"] == "ids"
        assert runner.exited(2)
    finally:
        runner.close()


@pytest.mark.parametrize("size", ["tmp_bytes", "tmp_inodes"])
def test_zero_is_not_unlimited_tmp(pool, size):
    runner = pool.fork(**{size: 0})
    try:
        kind, fields = runner.ready()
        assert kind == "confine_failed" and fields["error"] == 22
        assert fields["step"] == "tmp"
    finally:
        runner.close()


@pytest.mark.parametrize("limit", ["memory_bytes", "cpu_ms", "processes",
                                   "files", "file_bytes"])
def test_zero_is_not_unlimited(pool, limit):
    """The runner ends before it reads what the limits are for."""
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        # It may be gone before it was told the rest.
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            runner.execute("def main():\n    return 1\n", {}, **{limit: 0})
        assert runner.result() is None
        assert runner.exited(2)
    finally:
        runner.close()


def test_no_new_user_namespace_even_without_the_filter(pool):
    """user.max_user_namespaces is 0 in the pool, and its own root with all
    capabilities and no filter gets none; outside the same call works. The
    real pool-init: integration/sandbox/test_hostile_runner.py."""
    limit, error = ask_for_user_namespace(0)
    assert limit > 0 and error == 0
    assert ask_for_user_namespace(pool.init()) == (0, errno.ENOSPC)


def test_hostname_is_not_the_host_s(sandbox):
    assert sandbox.inside("def main(): return socket.gethostname()") == \
        "sandbox" != socket.gethostname()


def test_core_dumps(sandbox):
    code = '''
import resource
def main():
    return [resource.getrlimit(resource.RLIMIT_CORE),
            syscall(157, 3, 0, 0, 0, 0), syscall(157, 4, 1, 0, 0, 0)]
'''
    limit, dumpable, set_dumpable = sandbox.inside(code)
    assert limit == [1, 1] and dumpable == 0 and set_dumpable == -1


def test_crash_leaves_nothing(pool):
    """A segmentation fault ends the call and nothing else."""
    assert pool.call("import ctypes\ndef main(): ctypes.string_at(0)\n"
                     ).kind == "gone"
    assert pool.call("def main(): return 1").value == 1


def test_system_v_memory_of_the_host(sandbox):
    """A segment made outside is not visible: the namespace, not only the
    filter (its number cannot even be asked for)."""
    code = '''
def main():
    return syscall(29, 0x6d637062, 4096, 0o1666)
'''
    outside, inside = sandbox.attack(code)
    assert outside >= 0
    import ctypes
    ctypes.CDLL(None).shmctl(outside, 0, None)
    assert inside == -1


def test_limits_cannot_be_raised(sandbox):
    code = '''
import resource
def main():
    out = []
    for what in (resource.RLIMIT_AS, resource.RLIMIT_NPROC,
                 resource.RLIMIT_NOFILE, resource.RLIMIT_CORE,
                 resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
        soft, hard = resource.getrlimit(what)
        try:
            resource.setrlimit(what, (hard + 1, hard + 1))
            out.append(None)
        except (ValueError, OSError) as e:
            out.append("refused")
    return out
'''
    assert sandbox.inside(code) == ["refused"] * 6
