"""Each limit of a call bites by its cgroup, in a guest that has the
controllers. What a tool does here stays within its rlimits wherever a cgroup
is to be shown: so it is the cgroup that ends it."""
import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys

from harness.patience import eventually, patience
from harness.played.sandbox import FAILED
from vm.inside.calls import MIB
from vm.inside.units import NAME, ROOT, SLICE, UNIT, numbers, read
from vm.programs import FORKS, TREE, go, waiting

# A call's memory and its /tmp, which is memory too.
DEFAULT_MEMORY, DEFAULT_PROCESSES = (256 + 64) * MIB, 64


def runners(sandbox):
    """Host pids of what lives in the slot's leaf, the first is pid 1 there;
    none while there is no leaf."""
    try:
        return [int(p) for p in read(sandbox.leaf(), "cgroup.procs").split()]
    except OSError:
        return []


def pool_init():
    """Host pid of pid 1 of the pool."""
    def first(pid):
        return re.search(r"^NSpid:.*\t1$", read(f"/proc/{pid}/status"), re.M)
    pid, = filter(first, read(UNIT, "pool/init/cgroup.procs").split())
    return int(pid)


def runner(sandbox):
    """The pid of the running call's first process."""
    found = eventually(lambda: [p for p in runners(sandbox)
                                if os.path.exists(f"/proc/{p}/root/tmp")])
    assert found, (runners(sandbox), sandbox.log("sandboxd"), sandbox.log("sandboxd-spawn"))
    return found[0]


# --- How it is divided. ---

def test_every_layer_says_so(sandbox, calls):
    assert calls.run("def main(): return 1").value == 1
    rows = {(r["process"], r["layer"]): r for r in json.loads(
        sandbox.peer_root("ctl").call("DOCTOR", timeout=patience(60))["json"])}
    for layer in (("sandboxd-spawn", "cgroup"), ("pool", "call_cgroup"),
                  ("sandboxd", "call_memory")):
        assert rows[layer]["state"] == "enforced" and not rows[layer]["fix"], rows
    assert "cgroup=enforced" in sandbox.log("sandboxd-spawn")
    # Landlock as this kernel has it (landlock_create_ruleset(2), VERSION).
    abi = ctypes.CDLL(None).syscall(444, None, 0, 1)
    print(f"Landlock ABI {abi}")
    assert rows["pool", "runner-landlock"]["state"] == "enforced"
    assert rows["pool", "runner-landlock-scope"]["state"] == ("enforced" if abi >= 6 else "missing")
    missing = {k for k, r in rows.items() if k[0] == "pool" and r["state"] != "enforced"}
    assert missing <= {("pool", "runner-landlock-scope")}, rows


def test_each_process_is_in_a_leaf_of_its_own(sandbox, calls):
    started = calls.start(waiting("    return 1"))
    pid = runner(sandbox)
    own = f"0::/{SLICE}/{NAME}/"
    assert read(f"/proc/{pid}/cgroup").strip() == own + "pool/slot-000"
    assert read(f"/proc/{sandbox.children['sandboxd-spawn'].pid}/cgroup").strip() \
        == own + "supervisor"
    # pool-init, the process that starts zygotes for it, and peek.
    assert pool_init() and len(read(UNIT, "pool/init/cgroup.procs").split()) == 3
    assert len(read(UNIT, "pool/zygote/cgroup.procs").split()) == 1
    # "No internal processes", and the unit's files belong to its user.
    assert read(UNIT, "cgroup.procs") == read(UNIT, "pool/cgroup.procs") == ""
    assert os.stat(sandbox.leaf()).st_uid == sandbox.uid("pool")
    go(pid)
    assert calls.end(started).value == 1


def test_defaults_hold_from_the_fork_on(sandbox):
    leaf = sandbox.leaf()
    assert int(read(leaf, "memory.max")) == DEFAULT_MEMORY
    assert int(read(leaf, "pids.max")) == DEFAULT_PROCESSES
    assert read(leaf, "cpu.max").split() == ["100000", "100000"]
    assert read(leaf, "memory.oom.group").strip() == "1"
    if os.path.exists(os.path.join(leaf, "memory.swap.max")):
        assert read(leaf, "memory.swap.max").strip() == "0"
    zygote = os.path.join(UNIT, "pool", "zygote")
    assert int(read(zygote, "memory.max")) == 512 * MIB
    assert int(read(zygote, "pids.max")) == 32


def test_a_calls_own_limits_and_back(sandbox, calls):
    started = calls.start(waiting("    return 1"), memory=448 * MIB, processes=20)
    pid, leaf = runner(sandbox), sandbox.leaf()
    # Before it runs; this one runs since it looks for /tmp/go.
    assert eventually(lambda: int(read(leaf, "memory.max")) == (448 + 64) * MIB)
    assert eventually(lambda: int(read(leaf, "pids.max")) == 20)
    go(pid)
    assert calls.end(started).value == 1
    assert calls.run("def main(): return 2").value == 2
    assert int(read(leaf, "memory.max")) == DEFAULT_MEMORY
    assert int(read(leaf, "pids.max")) == DEFAULT_PROCESSES


# --- Memory. ---

def test_a_tree_is_bounded_together(calls):
    # Each process alone is far below RLIMIT_AS, and as many, one after the
    # other in effect, are no trouble.
    assert calls.run(TREE.format(n=4, mib=40, stay=False)).value == 4
    end = calls.run(TREE.format(n=10, mib=40, stay=True))
    assert (end.outcome, end.failure) == (FAILED, "limit"), end
    assert f"memory_bytes is {256 * MIB} bytes" in end.text, end
    assert calls.run("def main(): return 1").value == 1


def test_a_smaller_limit_is_named(calls):
    end = calls.run(TREE.format(n=6, mib=30, stay=True), memory=96 * MIB, tmp=MIB)
    assert end.failure == "limit" and f"memory_bytes is {96 * MIB} bytes" in end.text, end


FILE = """
def main():
    with open("/tmp/f", "wb") as f:
        for _ in range({file}): f.write(b"x" * (1 << 20))
    held = b"x" * ({heap} << 20)
    return len(held) >> 20
"""


def test_files_in_tmp_count(calls):
    """Both were granted, 100 MiB and 60 MiB, and hold together; a tree that
    takes what the files left free and more does not."""
    limits = {"memory": 100 * MIB, "tmp": 60 * MIB}
    assert calls.run(FILE.format(file=56, heap=30), **limits).value == 30
    assert calls.run(TREE.format(n=3, mib=30, stay=True).replace("600", "1"),
                     **limits).value == 3
    both = (FILE.format(file=56, heap=1).replace("main", "files")
            + TREE.format(n=5, mib=30, stay=True).replace("main", "tree")
            + "def main():\n    files()\n    return tree()\n")
    end = calls.run(both, **limits)
    assert end.failure == "limit" and f"memory_bytes is {100 * MIB} bytes" in end.text, end


def helper(sandbox, code):
    """A process of root's that enters the running call's leaf: what a cgroup
    does there needs no tool to be able to do it."""
    procs = os.path.join(sandbox.leaf(), "cgroup.procs")
    enter = f"open({procs!r}, 'w').write('0')\n"
    return subprocess.Popen([sys.executable, "-I", "-c", "import os, time\n" + enter + code])


def test_memfd_pages_count(sandbox, calls):
    code = ("fd = os.memfd_create('x')\n"
            "for _ in range({}): os.write(fd, b'x' * (1 << 20))\n")
    started = calls.start(waiting("    return 1"))
    pid = runner(sandbox)
    small = helper(sandbox, code.format(32))
    assert small.wait(patience(120)) == 0
    large = helper(sandbox, code.format(400))
    assert large.wait(patience(240)) == -signal.SIGKILL
    # The whole leaf goes: half a call is none.
    assert calls.end(started).failure == "limit"
    assert not os.path.exists(f"/proc/{pid}")


def test_the_zygote_survives_every_one_of_these():
    assert len(read(UNIT, "pool/zygote/cgroup.procs").split()) == 1
    assert numbers(UNIT, "pool/zygote/memory.events")["oom_kill"] == 0


# --- Processes, processor. ---

def test_processes_are_bounded_without_an_rlimit(sandbox, calls):
    started = calls.start(waiting(FORKS), processes=24)
    pid = runner(sandbox)
    # Its rlimits are set when it learns its call, the cgroup's before.
    assert eventually(lambda: resource.prlimit(pid, resource.RLIMIT_NPROC)[0] == 24)
    assert int(read(sandbox.leaf(), "pids.max")) == 24
    before = numbers(sandbox.leaf(), "pids.events")["max"]
    # The call's uid is held to as many by RLIMIT_NPROC: that one is taken away
    # from outside, the cgroup is left alone.
    resource.prlimit(pid, resource.RLIMIT_NPROC,
                     (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    go(pid)
    n, error = calls.end(started).value
    assert error == 11 and 10 <= n < 24
    assert numbers(sandbox.leaf(), "pids.events")["max"] > before


# --- The end of a call. ---

STUBBORN = """
import os, signal, time
def main():
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(s, signal.SIG_IGN)
    for _ in range(6):
        if os.fork() == 0:
            os.setpgid(0, 0)
            if os.fork() == 0:
                while True: time.sleep(1)
            os._exit(0)
    while True: time.sleep(1)
"""


def grown(sandbox, seconds=60):
    """STUBBORN's tree, once it has made it, if it has within that time: its pids, of
    one look, since those in between end by themselves."""
    return eventually(lambda: pids if len(pids := set(runners(sandbox))) >= 7 else set(), seconds, 0.05)


def test_the_deadline_takes_the_whole_tree(sandbox, calls):
    """With a deadline that lets it be made, which takes longer on a slow machine."""
    for seconds in (15, 60, 240, 600):
        started = calls.start(STUBBORN, timeout=1000 * seconds)
        tree = grown(sandbox, seconds)
        end = calls.end(started)
        assert end.failure == "timeout", end
        if tree:
            break
    # The leaf itself is soon the next waiting runner's.
    assert len(tree) >= 7 and eventually(lambda: not tree & set(runners(sandbox)))


def test_what_lives_on_in_a_leaf_is_killed_and_the_leaf_not_used_again(sandbox, calls):
    """cgroup.kill: reaches a process that is not of the runner's namespace.
    No tool can make one; the test, as root, can."""
    assert calls.run("def main(): return 1").value == 1
    leaf = os.stat(sandbox.leaf()).st_ino
    started = calls.start(STUBBORN)
    runner(sandbox)
    stray = helper(sandbox, "time.sleep(600)")
    assert eventually(lambda: stray.pid in runners(sandbox))
    calls.admind.peer.send("CANCEL", execution=started[0])
    assert calls.end(started).failure == "killed"
    assert stray.wait(patience(60)) == -signal.SIGKILL
    assert calls.run("def main(): return 2").value == 2
    assert os.stat(sandbox.leaf()).st_ino != leaf
    assert "leaf_populated" in sandbox.log("sandboxd-spawn")
    # And without such a process the leaf stays.
    leaf = os.stat(sandbox.leaf()).st_ino
    for n in range(3):
        assert calls.run(f"def main(): return {n}").value == n
    assert os.stat(sandbox.leaf()).st_ino == leaf


# --- No way out of it. ---

LOOK = """
import os
def main():
    def attempt(f, *a):
        try:
            return f(*a) and None
        except OSError as e:
            return e.errno
    return {
        "own": open("/proc/self/cgroup").read(),
        "sys": os.path.exists("/sys/fs/cgroup"),
        "write": attempt(lambda: open("%s/memory.max", "w")),
        "mounts": [x for x in open("/proc/self/mountinfo") if "cgroup" in x],
        "fds": [os.readlink("/proc/self/fd/" + f) for f in os.listdir("/proc/self/fd")
                if os.path.lexists("/proc/self/fd/" + f)],
    }
"""


def test_a_runner_sees_nothing_of_it(sandbox, calls):
    leaf = sandbox.leaf()
    # Outside, the very file can be written, and the tree is there.
    with open(os.path.join(leaf, "memory.max"), "w", encoding="ascii"):
        pass
    seen = calls.run(LOOK % leaf).value
    assert seen["own"] == "0::/\n"
    assert not seen["sys"] and seen["write"] == 2 and not seen["mounts"]
    assert not any("cgroup" in f for f in seen["fds"]), seen


def test_the_pools_root_cannot_leave_it_either(sandbox):
    """A taken-over zygote or pool-init: uid 0 of the pool's user namespace,
    all its capabilities, the host's cgroup filesystem before it."""
    init = pool_init()
    code = f"""
import errno, os
def attempt(path, text):
    try:
        with open(path, "w") as f: f.write(text)
    except OSError as e:
        return errno.errorcode[e.errno]
    return "done"
open({UNIT!r} + "/pool/zygote/cgroup.procs", "w").write("0")
print(attempt({ROOT!r} + "/cgroup.procs", "0"),
      attempt({UNIT!r} + "/supervisor/cgroup.procs", "0"),
      attempt({UNIT!r} + "/cgroup.procs", "0"),
      attempt({UNIT!r} + "/pool/memory.max", "max"),
      attempt({UNIT!r} + "/memory.max", "max"),
      attempt({UNIT!r} + "/pool/zygote/memory.max", "536870912"))
"""
    # The cgroup namespace is entered from its root, as the pool's are.
    move = f"echo $$ >{UNIT}/pool/init/cgroup.procs && exec \"$@\""
    done = subprocess.run(
        ["sh", "-c", move, "sh", "nsenter", f"--target={init}", "--user", "--cgroup", "--mount",
         "--setuid", "0", "--setgid", "0", sys.executable, "-I", "-c", code],
        capture_output=True, text=True, check=False, timeout=patience(120))
    assert done.returncode == 0, done.stderr
    out = done.stdout.split()
    # Its own tree is its to divide; every way up is closed.
    assert out[5] == "done"
    assert all(e in ("EACCES", "ENOENT", "EPERM") for e in out[:5]), out


# --- Pools and units come and go. ---

def test_a_new_pool_starts_clean(sandbox, calls):
    assert calls.run("def main(): return 1").value == 1
    leaf = os.stat(sandbox.leaf()).st_ino
    started = calls.start(STUBBORN)
    assert grown(sandbox)
    os.kill(pool_init(), signal.SIGKILL)
    assert calls.end(started).failure == "sandbox_unavailable"
    end = calls.run("def main(): return 2")
    assert end.value == 2
    assert os.stat(sandbox.leaf()).st_ino != leaf


def test_the_unit_ends_with_all_of_it(sandbox, calls):
    started = calls.start(STUBBORN)
    assert grown(sandbox)
    pids = [int(p) for d in os.listdir(os.path.join(UNIT, "pool"))
            if os.path.isdir(os.path.join(UNIT, "pool", d))
            for p in read(UNIT, "pool", d, "cgroup.procs").split()]
    assert len(pids) > 8
    os.kill(sandbox.children["sandboxd-spawn"].pid, signal.SIGKILL)
    assert eventually(lambda: not any(os.path.exists(f"/proc/{p}") for p in pids), 30)
    assert calls.end(started).failure == "sandbox_unavailable"
    sandbox.start("sandboxd-spawn")
    assert eventually(lambda: calls.run("def main(): return 3").body["isError"] is False)
