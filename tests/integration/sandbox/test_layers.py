"""A layer that a machine does not allow: the pool does not start, doctor and
log name it with the step, the errno and what mends it."""
import json
import os
import subprocess
import sys

import pytest

from harness.ipc import Closed
from harness.patience import eventually, until
from harness.played.sandbox import Sandbox

# Becomes the rest of its arguments under a filter by which one system call
# answers EPERM (seccomp(2); x86-64).
DENIED = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def op(code, jt, jf, k): return struct.pack("HBBI", code, jt, jf, k)
program = (op(0x20, 0, 0, 0) + op(0x15, 0, 1, int(sys.argv[1]))
           + op(0x06, 0, 0, 0x00050001) + op(0x06, 0, 0, 0x7fff0000))
buffer = ctypes.create_string_buffer(program)
class Fprog(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
fprog = Fprog(4, ctypes.addressof(buffer))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(fprog), 0, 0) == 0, ctypes.get_errno()
os.execvp(sys.argv[2], sys.argv[2:])
"""
SETHOSTNAME, SECCOMP, CLONE3 = 170, 317, 435


def rows_of(sandbox):
    """What doctor says; nothing while sandboxd is not up."""
    try:
        with sandbox.peer_root("ctl") as ctl:
            report = json.loads(ctl.call("DOCTOR")["json"])
    except (OSError, Closed):
        return {}
    return {(r["process"], r["layer"]): r for r in report}


class Crippled(Sandbox):
    """spawn, and with it the pool, is started by way of `wrap`."""

    def __init__(self, wrap, **settings):
        self.wrap = wrap
        super().__init__(runner="sandboxd/runner/mcpbox-runner", **settings)

    def start(self, process):
        real = subprocess.Popen
        if process == "sandboxd-spawn":
            def popen(argv, **kw):
                return real([*self.wrap, *argv], **kw)
            subprocess.Popen = popen
        try:
            super().start(process)
        finally:
            subprocess.Popen = real

    def rows(self):
        return rows_of(self)


def denied(number):
    return [sys.executable, "-I", "-c", DENIED, str(number)]


MASKED_PROC = ["unshare", "--mount", "sh", "-c",
               "mount -t tmpfs tmpfs /proc/sys && exec \"$@\"", "sh"]


def wait_for(what, seconds=20):
    return eventually(what, seconds, 0.05)


@pytest.mark.parametrize("wrap, layer, detail, fix", [
    (denied(SETHOSTNAME), "runner-hostname", "Operation not permitted", "CAP_SETUID"),
    (denied(SECCOMP), "peek_seccomp", "seccomp", "seccomp filters"),
    (denied(CLONE3), "pool_namespaces", "clone3", "user namespaces"),
    (MASKED_PROC, "pool_namespaces", "mount /proc", "user namespaces"),
], ids=["a step", "no seccomp", "no namespaces", "a masked proc"])
def test_a_missing_layer_keeps_the_pool_from_starting(wrap, layer, detail, fix):
    with Crippled(wrap, queue_wait="300ms") as sandbox:
        assert wait_for(lambda: ("pool", layer) in sandbox.rows()), \
            sandbox.log("sandboxd") + sandbox.log("sandboxd-spawn")
        rows = sandbox.rows()
        row = rows["pool", layer]
        assert row["state"] == "missing" and detail in row["detail"], row
        assert fix in row["fix"], row
        # No call runs without it.
        admind, gateway = sandbox.admind(), sandbox.gateway()
        execution = admind.held("def main(): return 1")
        answer = gateway.call("RUN", execution=execution, arguments=b"{}")
        assert answer["_"] == "REFUSED" and "sandbox" in answer["message"], answer
        # Both logs say so, with the fix.
        assert layer + "=missing" in sandbox.log("sandboxd") and fix in sandbox.log("sandboxd")
        assert fix in sandbox.log("sandboxd-spawn")
        if layer == "runner-hostname":
            assert rows["pool", "runner-setsid"]["state"] == "enforced"
            assert rows["pool", "runner-seccomp"]["detail"] == "not reached"


# Likewise, but only seccomp(2) with SECCOMP_FILTER_FLAG_NEW_LISTENER, and with
# EBUSY: as in a container whose manager uses notifications itself.
LISTENER_TAKEN = DENIED.replace("""(op(0x20, 0, 0, 0) + op(0x15, 0, 1, int(sys.argv[1]))
           + op(0x06, 0, 0, 0x00050001)""", """(op(0x20, 0, 0, 0) + op(0x15, 0, 3, int(sys.argv[1]))
           + op(0x20, 0, 0, 24) + op(0x45, 0, 1, 8) + op(0x06, 0, 0, 0x00050010)""").replace("Fprog(4,", "Fprog(6,")


def test_without_notifications_only_granted_hosts_are_missing():
    """A layer that one kind of call needs: named with its fix, others run."""
    assert LISTENER_TAKEN != DENIED
    wrap = [sys.executable, "-I", "-c", LISTENER_TAKEN, str(SECCOMP)]
    with Crippled(wrap, queue_wait="2s") as sandbox:
        assert wait_for(lambda: ("pool", "runner-network") in sandbox.rows()), sandbox.log("sandboxd-spawn")
        row = sandbox.rows()["pool", "runner-network"]
        assert row["state"] == "missing" and "seccomp: Device or resource busy" in row["detail"], row
        assert "notifications" in row["fix"]
        admind, gateway = sandbox.admind(), sandbox.gateway()
        answer = gateway.call("RUN", execution=admind.held("def main(): return 1"), arguments=b"{}")
        assert answer["_"] == "CALL_RESULT" and answer["outcome"] == 1, answer
        assert "peek_reads=missing" not in sandbox.log("sandboxd")


def test_every_step_is_a_row():
    """Of a pool that did start: none is missing but what an older kernel's
    Landlock leaves to others."""
    with Sandbox(runner="sandboxd/runner/mcpbox-runner") as sandbox:
        assert wait_for(lambda: "pool_ready" in sandbox.log("sandboxd"))
        rows = {k: r["state"] for k, r in rows_of(sandbox).items()}
        for name in ("namespaces", "mounts", "cgroup_namespace", "proc", "tmp", "pivot_root",
                     "close_range", "rlimits", "bounding_set", "securebits", "ids",
                     "capabilities", "dumpable", "no_new_privs", "seccomp"):
            assert rows["pool", "runner-" + name] == "enforced", rows
        for name in ("peek_root", "peek_limits", "peek_capabilities", "peek_seccomp", "peek_reads",
                     "runner-names", "runner-network"):
            assert rows["pool", name] == "enforced", rows
        assert ("pool", "runner-landlock") in rows and ("pool", "runner-landlock-scope") in rows


SETGID, SETUID, SETPCAP = 6, 7, 8     # capabilities(7)


def test_under_runit_every_process_locks_its_securebits(instance):
    """Also spawn, which keeps capabilities: it gets CAP_SETPCAP for that, as its unit
    gives it, and has lost it when it is ready. doctor names no unit's setting, which
    nobody could set here."""
    rows = {(r["process"], r["layer"]): r for r in instance.ctl_json("doctor")}
    found = {process: (r["state"], r["fix"]) for (process, layer), r in rows.items() if layer == "securebits"}
    assert set(found) >= {"sandboxd-spawn", "sandboxd", "admind", "gatewayd-local"}, found
    assert set(found.values()) == {("enforced", "")}, found
    with open(f"/proc/{instance.service_pid('sandboxd-spawn')}/status", encoding="ascii") as f:
        caps = {line[:6]: int(line[7:], 16) for line in f if line.startswith("Cap")}
    kept = 1 << SETUID | 1 << SETGID
    assert caps == {"CapInh": 0, "CapPrm": kept, "CapEff": kept, "CapBnd": kept, "CapAmb": 0}


def own_share(pid):
    """Has its cgroup, or one above it that is seen from here, a share of the
    processors? Then the kernel does not look at sessions."""
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
        for _, controllers, path in (line.rstrip("\n").split(":", 2) for line in f):
            if "cpu" in controllers.split(",") and path != "/":
                return True
            if controllers == "":
                at = next((m for m in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
                           if os.path.exists(m + "/cgroup.controllers")), None)
                parts = path.strip("/").split("/")
                if at and any(os.path.exists(os.path.join(at, *parts[:n], "cpu.weight"))
                              for n in range(len(parts) + 1)):
                    return True
    return False


WITHOUT_SESSIONS = ["unshare", "--mount", "sh", "-c",
                    "f=$(mktemp) && echo 0 >$f && mount --bind $f /proc/sys/kernel/sched_autogroup_enabled && "
                    "rm $f && exec \"$@\"", "sh"]


@pytest.mark.parametrize("wrap", [["env"], WITHOUT_SESSIONS], ids=["as it is", "no groups by session"])
def test_what_divides_the_processors_is_said(wrap):
    with Crippled(wrap) as sandbox:
        row = until(lambda: rows_of(sandbox).get(("sandboxd-spawn", "call_share")))
        with open("/proc/sys/kernel/sched_autogroup_enabled", encoding="ascii") as f:
            sessions = f.read().strip() == "1" and wrap != WITHOUT_SESSIONS
        why = "kernel.sched_autogroup_enabled" if not sessions else \
            "a share of its own" if own_share(sandbox.children["sandboxd-spawn"].pid) else None
        if why is None:
            assert (row["state"], row["fix"]) == ("enforced", "") and "session" in row["detail"], row
        else:
            assert row["state"] == "degraded" and why in row["detail"], row
            assert "sched_autogroup_enabled=1" in row["fix"] and "Delegate" in row["fix"], row
