"""A runner that waits for its call: looked at from outside, in the host's
proc. It must hold nothing that a call could want to have."""
import os
import socket

import pytest

from harness.instance import processes, waits
from harness.patience import patience, until
from harness.place import readable_directory
from harness.played.sandbox import Sandbox
from probes import ipcframes, outside, runner_driver

RUNNER = "sandboxd/runner/mcpbox-runner"
NAMESPACES = ("pid", "mnt", "net", "ipc", "uts", "cgroup")
ONE = "def main():\n    return 1\n"


@pytest.fixture
def waiting(pool):
    runner = pool.fork(99)
    assert runner.ready()[0] == "ready"
    yield runner
    runner.close()


def test_zygote_is_what_we_compare_with(pool):
    """The control: the process that it was forked from does hold rights, so
    these files tell."""
    zygote = _zygote(pool)
    s = outside.status(zygote)
    assert int(s["CapEff"], 16) != 0 and s["Seccomp"].strip() == "0"
    assert s["Uid"].split()[0] == str(pool.base + runner_driver.POOL_UID)


def _zygote(pool):
    init = pool.init()
    with open(f"/proc/{init}/task/{init}/children", encoding="ascii") as f:
        for pid in f.read().split():
            if outside.status(pid)["Name"] == "mcpbox-zygote":
                return int(pid)
    raise AssertionError("no zygote")


def test_rights(pool, waiting):
    uid, gid = outside.holds_nothing(outside.host_pid(waiting))
    assert uid == gid == pool.base + runner_driver.RUNNER_UID + 98


def test_namespaces(pool, waiting):
    """Its own, neither the pool's nor another runner's; the user namespace is
    the pool's, in which it has no right."""
    other = pool.fork()
    try:
        assert other.ready()[0] == "ready"
        pids = (outside.host_pid(waiting), outside.host_pid(other),
                pool.init(), os.getpid())
        for ns in NAMESPACES:
            seen = [os.readlink(f"/proc/{p}/ns/{ns}") for p in pids]
            assert len(set(seen)) == 4, (ns, seen)
        user = [os.readlink(f"/proc/{p}/ns/user") for p in pids]
        assert user[0] == user[1] == user[2] != user[3]
    finally:
        other.close()


def test_root(waiting):
    root = f"/proc/{outside.host_pid(waiting)}/root"
    assert not os.path.exists(root + "/root")
    assert not os.path.exists(root + "/bin")
    assert not os.path.exists(root + "/sys")
    assert os.listdir(root + "/tmp") == []
    with open(f"/proc/{outside.host_pid(waiting)}/mountinfo",
              encoding="utf-8") as f:
        mounts = [line.split(" - ")[0].split()[4:6] for line in f]
    assert mounts[0][0] == "/"
    for path, options in mounts:
        options = options.split(",")
        assert "nosuid" in options, path
        if path not in ("/tmp", "/proc"):
            assert "ro" in options, path
        assert "nodev" in options or path.startswith("/dev/"), path


def test_descriptors(waiting):
    """Null, its pipe, its channel, its own event loop: no file, no directory,
    no memfd, no namespace, no pidfd, no socket of anybody else's."""
    found = outside.descriptors(outside.host_pid(waiting))
    null = found.pop(0)
    assert null in ("/dev/null", "/null"), found
    kinds = sorted(v.split(":")[0] if not v.startswith("anon_inode")
                   else v for v in found.values())
    allowed = {"pipe", "socket", "anon_inode:[eventpoll]",
               "anon_inode:[eventfd]"}
    assert set(kinds) <= allowed, found
    assert kinds.count("socket") <= 3 and len(found) <= 12, found
    assert len({v for v in found.values() if v.startswith("pipe")}) == 1


def test_sockets(pool, waiting):
    """By inode: the channel, and a pair of its own. Not the zygote's socket
    to pool-init."""
    inodes = {v for v in outside.descriptors(outside.host_pid(
        waiting)).values() if v.startswith("socket")}
    # The zygote holds the channel while it forks, which a runner that is
    # READY need not have waited for: once it has reported, it is gone.
    until(lambda: not inodes & set(outside.descriptors(_zygote(pool)).values()),
          2, 0.01, say=lambda: "the zygote keeps a channel")
    assert not inodes & set(outside.descriptors(pool.init()).values())


def test_no_shared_writable_memory(waiting):
    """Where a runner could leave something for the zygote or another one."""
    for low, _, rights, name in outside.areas(outside.host_pid(waiting)):
        assert not ("w" in rights and rights[3] == "s"), (hex(low), name)


def test_no_way_to_the_file_behind_its_memory(sandbox):
    """What the zygote's memory is mapped from, libraries too: no file of a
    mapping can be opened by way of proc. The control only reads: while somebody
    has the loader open for writing, no program of the machine starts (ETXTBSY)."""
    code = '''
def main(flags: list[int]):
    out = set()
    for line in open("/proc/self/maps"):
        for f in flags:
            out.add(attempt(os.open, "/proc/self/map_files/"
                            + line.split()[0], f))
    return sorted(str(o) for o in out)
'''
    outside_ = sandbox.outside(code, flags=[os.O_RDONLY])
    inside = sandbox.inside(code, flags=[os.O_RDONLY, os.O_RDWR])
    assert "None" in outside_
    assert set(inside) <= {"EACCES", "EPERM", "ENOENT"}, inside


def test_kernel_kills_it_first(waiting):
    with open(f"/proc/{outside.host_pid(waiting)}/oom_score_adj",
              encoding="ascii") as f:
        assert f.read().strip() == "1000"


def test_no_terminal_and_a_session_of_its_own(waiting):
    pid = outside.host_pid(waiting)
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    assert fields[4] == "0"                 # tty_nr
    assert fields[2] == fields[3] == str(pid)   # pgrp and session


def test_fixed_limits(waiting):
    """Those that no call changes are there before the call is."""
    with open(f"/proc/{outside.host_pid(waiting)}/limits",
              encoding="ascii") as f:
        text = {line[:26].strip(): line[26:].split()[:2] for line in f}
    assert text["Max core file size"] == ["1", "1"]
    assert text["Max locked memory"] == ["0", "0"]
    assert text["Max msgqueue size"] == ["0", "0"]
    assert text["Max realtime priority"] == ["0", "0"]
    assert text["Max nice priority"] == ["0", "0"]
    assert int(text["Max pending signals"][1]) <= 256


@pytest.mark.parametrize("uid", [0, 4096, 4097, 65534, 65535, 70000,
                                 1 << 31, (1 << 32) - 2, (1 << 32) - 1])
def test_uid_outside_the_map(pool, uid):
    """Root of the pool, nobody, and what the map has no place for."""
    control = pool.fork(4095)
    assert control.ready()[0] == "ready"
    control.close()
    runner = pool.fork(uid)
    try:
        if uid == 4096:     # the map's last
            assert runner.ready()[0] == "ready"
            return
        kind, fields = runner.ready()
        assert kind == "confine_failed" and fields["error"] != 0
        assert fields["step"] in ("tmp", "ids")
        assert runner.exited(2)
    finally:
        runner.close()


def frame(name, **values):
    def send(channel):
        ipcframes.send(channel, name, **values)
    return send


def packet(data, fds=()):
    def send(channel):
        if fds:
            socket.send_fds(channel, [data], fds)
        else:
            channel.send(data)
    return send


def head(number, length, flags=0):
    return ipcframes.HEADER.pack(number, flags, length, 0)


EXECUTE = ipcframes.NAMES["execute"][0]

#: Instead of EXECUTE.
WRONG_FIRST = {
    "arguments": frame("arguments", json=b"{}"),
    "secrets": frame("secrets", tlv=b""),
    "ready": frame("ready"),
    "kill": frame("kill", slot=0, generation=1),
    "run_result": frame("run_result", length=0),
    "stdout": frame("stdout", data=b"x"),
    "a number nobody has": packet(head(4095, 0)),
    "number 0": packet(head(0, 0)),
    "one byte": packet(b"x"),
    "a header cut short": packet(head(EXECUTE, 0)[:-1]),
    "a length too large": packet(head(EXECUTE, 100) + b"x"),
    "a length too small": packet(head(EXECUTE, 0) + b"x"),
    "an empty execute": packet(head(EXECUTE, 0)),
    "zeros for an execute": packet(head(EXECUTE, 64) + bytes(64)),
    "ones for an execute": packet(head(EXECUTE, 64) + b"\xff" * 64),
    "flags nobody knows": packet(head(EXECUTE, 0, 0xfffe)),
    "a descriptor nobody asked for": packet(head(EXECUTE, 0), [0]),
    "many descriptors": packet(head(EXECUTE, 0), [0] * 16),
    "a blob that is no sealed memfd": packet(head(EXECUTE, 0, 1), [0]),
}


@pytest.mark.parametrize("what", WRONG_FIRST)
def test_wrong_first_frame_ends_it(waiting, what):
    WRONG_FIRST[what](waiting.channel)
    assert waiting.exited(2), what
    assert _silent(waiting)


def _silent(runner):
    """Not a word came."""
    runner.channel.settimeout(patience(2))
    try:
        return ipcframes.receive(runner.channel) is None
    except ConnectionResetError:
        return True


def test_two_executes(pool):
    """The second is no arguments: nothing of either runs."""
    for first in (True, False):
        runner = pool.fork()
        try:
            assert runner.ready()[0] == "ready"
            packed = []
            real = ipcframes.send

            def catch(sock, name, /, **values):
                packed.append((name, values))
            ipcframes.send = catch
            try:
                runner.execute(ONE, {})
            finally:
                ipcframes.send = real
            for name, values in ([packed[0]] * 2 if first
                                 else [packed[0], packed[2], packed[1]]):
                real(runner.channel, name, **values)
            assert runner.exited(2)
            assert _silent(runner)
        finally:
            runner.close()


def test_second_call_is_never_taken(pool):
    """Used once: what comes behind the first call is not read."""
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute(ONE, {})
        runner.execute("def main():\n    return 2\n", {})
        assert runner.result()[0] == "run_result"
        assert runner.exited(2)
        assert b"1" in runner.body and b"2" not in runner.body
    finally:
        runner.close()


@pytest.mark.parametrize("source_len", [1, 5, 1 << 31, (1 << 32) - 1])
def test_source_longer_than_the_blob(pool, source_len):
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        real = ipcframes.send

        def lie(sock, name, /, **values):
            if name == "execute":
                values["source_len"] = len(values["code"]) + source_len
                if values["source_len"] >= 1 << 32:
                    values["source_len"] = (1 << 32) - 1
            real(sock, name, **values)
        ipcframes.send = lie
        try:
            runner.execute(ONE, {})
        finally:
            ipcframes.send = real
        assert runner.result() is None
        assert runner.exited(2)
    finally:
        runner.close()


@pytest.mark.parametrize("code", [0, 5, 6, 77, 255])
def test_kind_of_call_nobody_knows(pool, code):
    """Nothing runs that is not one of the four kinds."""
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute("open('/tmp/ran', 'w')\nprint('canary')\n"
                       "def main():\n    return 'canary'\n", {}, kind=code)
        end = runner.result()
        assert end is None and runner.exited(2)
        assert b"canary" not in runner.stdout + runner.body
    finally:
        runner.close()


@pytest.fixture(scope="module")
def profiles():
    """A pool with a store of modules and a list of commands."""
    digests = [bytes([n]) * 32 for n in range(1, 4)]
    with readable_directory() as store:
        for d in digests:
            (store / d.hex()).mkdir()
            (store / d.hex() / f"m{d[0]}.py").write_text("X = 1\n")
        pool = runner_driver.Pool(store=str(store), commands="/usr/bin/true")
        yield pool, digests
        pool.close()


@pytest.mark.parametrize("profile", ["modules", "command"])
def test_of_another_profile(profiles, profile):
    """A runner that waits with modules, or for a command, has no more: no
    right, no descriptor of the store, none of the entries that it was not
    given."""
    pool, digests = profiles
    runner = pool.fork(**({"kind": 1} if profile == "command" else
                          {"modules": digests[1]}))
    try:
        assert runner.ready()[0] == "ready"
        pid = outside.host_pid(runner)
        outside.holds_nothing(pid)
        kinds = {v.split(":")[0] for v in outside.descriptors(pid).values()}
        assert kinds <= {"/dev/null", "/null", "pipe", "socket",
                         "anon_inode"}, outside.descriptors(pid)
        root = f"/proc/{pid}/root"
        if profile == "modules":
            found = [n for d in os.listdir(root + "/modules")
                     for n in os.listdir(f"{root}/modules/{d}")]
            assert found == ["m2.py"]
        else:
            assert not os.path.exists(root + "/modules")
            assert os.path.exists(root + "/usr/bin/true")
            assert not os.path.exists(root + "/usr/bin/id")
        for low, _, rights, name in outside.areas(pid):
            assert not ("w" in rights and rights[3] == "s"), (low, name)
    finally:
        runner.close()


@pytest.mark.parametrize("modules", [
    b"\x01" * 31, b"\x01" * 33, b"\x00" * 32, b"../" * 32,
    b"".join(bytes([n]) * 32 for n in range(1, 60))])
def test_modules_that_are_none(profiles, modules):
    """A list of the wrong length, of too many, of what is not there: a
    runner that says so and ends, and a zygote that goes on."""
    pool, digests = profiles
    runner = pool.fork(modules=modules)
    try:
        kind, fields = runner.ready()
        assert kind == "confine_failed" and fields["error"] != 0
        assert runner.exited(2)
    finally:
        runner.close()
    runner = pool.fork(modules=digests[0])
    assert runner.ready()[0] == "ready"
    runner.close()


@pytest.mark.parametrize("kind", [2, 3, 128, 255])
def test_kind_of_runner_nobody_knows(pool, kind):
    """Never a runner with the rights of one and the filter of the other."""
    runner = pool.fork(kind=kind)
    try:
        said = runner.ready()
        if said[0] == "ready":
            outside.holds_nothing(outside.host_pid(runner))
            runner.execute("def main():\n    import os\n    os.execv("
                           "'/usr/bin/true', ['true'])\n", {})
            assert runner_driver.Call(
                runner, runner.result()).kind == "run_error"
        else:
            assert said[0] == "confine_failed" and runner.exited(2)
    finally:
        runner.close()


def test_in_a_real_pool():
    """All runners that a real sandboxd keeps waiting."""
    with Sandbox(runner=RUNNER) as s, s.gateway():
        low, high = s.base + 1024, s.base + 65536
        def waiting():
            return {pid: uid for pid, (_, state, uid, _) in processes().items()
                    if low <= uid < high and state != "Z"}
        # One that waits for its call has ended its confinement.
        seen = until(lambda: there if len(there := waiting()) >= 2 and all(map(waits, there)) else None,
                     say=waiting)
        roots = set()
        for pid in list(seen):
            uid, _ = outside.holds_nothing(pid)
            assert low <= uid < high
            roots.add(os.readlink(f"/proc/{pid}/ns/mnt"))
            kinds = {v.split(":")[0] for v in
                     outside.descriptors(pid).values()}
            assert kinds <= {"/dev/null", "/null", "pipe", "socket",
                             "anon_inode"}
        assert len(roots) == len(seen)
        assert len(set(seen.values())) == len(seen)
