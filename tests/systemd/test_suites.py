"""The unit files before the eyes of each Debian suite's systemd: what it does not
know, or knows better, it says here, and how much each unit leaves open."""
import glob
import os
import re
import shutil
import subprocess

import pytest

from harness.installed import SCORES, UNITS
from harness.patience import patience, until
from harness.place import readable_directory

HERE = os.path.dirname(os.path.realpath(__file__))
SRC = os.path.realpath(os.path.join(HERE, "../.."))
CACHE = os.environ.get("MCPBOX_TEST_CACHE", "/var/cache/mcpbox-tests")
FOLDER = os.path.join(SRC, "contrib/systemd")
INSTALLED = "usr/lib/systemd/system"
MACHINE = os.path.join(HERE, "machine")


def unit_files():
    return sorted(glob.glob(os.path.join(FOLDER, "mcpbox*.*")))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


SUITES = ("bookworm", "trixie")


def prepare(suite, work):
    """A root of that suite; its path. What work/files adds to it is our units."""
    subprocess.run([MACHINE, "build", suite, CACHE], check=True, timeout=patience(100))
    os.makedirs(work / "files" / INSTALLED)
    for path in unit_files():
        shutil.copy(path, work / "files" / INSTALLED)
        # Programs only have to be there.
        for program in re.findall(r"^Exec\w+=(/usr/libexec/\S+)", read(path), re.M):
            stub = work / "files" / program[1:]
            os.makedirs(stub.parent, exist_ok=True)
            stub.write_text("#!/bin/sh\n", encoding="ascii")
            stub.chmod(0o755)
    return os.path.join(CACHE, "systemd", suite)


@pytest.fixture(scope="module", params=SUITES)
def look(request, tmp_path_factory):
    """Runs a command in a root of that suite with our units in it."""
    work = tmp_path_factory.mktemp(request.param)
    root = prepare(request.param, work)

    def run(*words):
        return subprocess.run([MACHINE, "look", root, work, *words], capture_output=True,
                              text=True, timeout=patience(60), check=False,
                              env={**os.environ, "SYSTEMD_COLORS": "0", "SYSTEMD_URLIFY": "0"})
    return run


def put(root, path, text=""):
    os.makedirs((root / path).parent, exist_ok=True)
    (root / path).write_text(text, encoding="ascii")


@pytest.fixture(params=SUITES)
def booted(request):
    """Runs a command under that suite's systemd, where our programs end at once."""
    with readable_directory() as work:
        yield from boot(request.param, work)


def boot(suite, work):
    root, files = prepare(suite, work), work / "files"
    for kind in ("sysusers.d", "tmpfiles.d"):
        put(files, f"usr/lib/{kind}/mcpbox.conf", read(os.path.join(FOLDER, kind, "mcpbox.conf")))
    put(files, "var/lib/mcpbox/setup")
    # Of all units whose names begin so.
    put(files, "etc/systemd/system/mcpbox-.service.d/test.conf", "[Service]\nType=exec\nRestart=no\n")
    with open(work / "console", "wb") as console:
        machine = subprocess.Popen([MACHINE, "run", root, work], stdin=subprocess.DEVNULL,
                                   stdout=console, stderr=console)

    def run(*words):
        pid = (work / "pid").read_text(encoding="ascii").strip()
        return subprocess.run(["nsenter", "-t", pid, "-m", "-u", "-i", "-n", "-p", "-C", *words],
                              capture_output=True, text=True, timeout=patience(60), check=False,
                              stdin=subprocess.DEVNULL)
    try:
        until(lambda: (work / "pid").exists() and run("test", "-S", "/run/systemd/private").returncode == 0, 20)
        yield run
    finally:
        machine.terminate()
        machine.wait(patience(20))


def test_the_manager_gets_as_far_as_the_program(booted):
    """All that a unit asks for can be set up by both systemds, together: what one
    of them refuses ends the start before the program (status 2xx), which is seen
    only when it is tried."""
    for words in (["systemd-sysusers"], ["systemd-tmpfiles", "--create", "mcpbox.conf"]):
        r = booted(*words)
        assert r.returncode == 0, r.stderr
    services = [u for u in names() if u.endswith(".service")]
    # The watches before what can't be without them; a pause is one, whatever it waits for.
    booted("systemctl", "start", *(u for u in names() if u.endswith(".path")))
    booted("systemctl", "start", *services)

    def ended():
        shown = booted("systemctl", "show", "-p", "Id,ExecMainCode,ExecMainStatus", *services).stdout
        blocks = (dict(line.split("=", 1) for line in block.splitlines()) for block in shown.strip().split("\n\n"))
        return {b["Id"]: (b["ExecMainCode"], b["ExecMainStatus"]) for b in blocks}
    # 0: it runs, or has not been started (systemd's own code beside those of wait(2)).
    until(lambda: all(code != "0" for code, _ in ended().values()), say=ended)
    # 1: it exited (CLD_EXITED).
    assert ended() == {u: ("1", "0") for u in services}, \
        booted("journalctl", "-b", "--no-pager", "-p", "warning", "-n", "30").stdout


def names():
    found = [os.path.basename(p) for p in unit_files()]
    found.remove("mcpbox-gatewayd@.service")
    return found + [UNITS["gatewayd-local"], UNITS["gatewayd-tunnel"]]


def test_systemd_has_nothing_to_say(look):
    r = look("systemd-analyze", "verify", "--man=no", *names())
    assert (r.returncode, r.stdout + r.stderr) == (0, "")


def test_scores(look):
    over, seen = {}, set()
    r = look("systemd-analyze", "security", "--offline=yes", "--no-pager",
             *(u for u in names() if u.endswith(".service")))
    for unit, score in re.findall(r"exposure level for (\S+): (\d+\.\d)", r.stdout):
        process = next((p for p, u in UNITS.items() if u == unit), None)
        seen.add(process)
        if float(score) > SCORES.get(process, 1.5):
            over[unit] = score
    assert seen - {None} == set(UNITS), r.stdout[-500:] + r.stderr
    assert not over


def test_each_page_it_names_exists():
    pages = set()
    for path in unit_files():
        pages.update(re.findall(r"man:([a-z.-]+)\((\d)\)", read(path)))
    missing = [f"{n}.{s}" for n, s in pages
               if not glob.glob(os.path.join(SRC, "docs/man", f"{n}.{s}*"))]
    assert pages and not missing


def test_an_exception_has_its_reason():
    """What one unit lacks of what all others have stands in it by name."""
    services = {p: read(p) for p in unit_files() if p.endswith(".service")}
    keys = {p: set(re.findall(r"^(\w+)=", t, re.M)) for p, t in services.items()}
    hardening = {k for ks in keys.values() for k in ks
                 if k.startswith(("Protect", "Private", "Restrict", "Lock", "MemoryDeny",
                                  "IPAddressDeny", "ProcSubset", "SystemCallFilter",
                                  "CapabilityBoundingSet", "NoNewPrivileges", "RemoveIPC",
                                  "KeyringMode", "DevicePolicy", "SecureBits", "UMask"))
                 and k != "RestartSec"}
    assert len(hardening) > 25
    silent = {(os.path.basename(p), k) for p, t in services.items()
              for k in hardening - keys[p] if not re.search(rf"^# .*\b{k}=", t, re.M)}
    assert not silent
