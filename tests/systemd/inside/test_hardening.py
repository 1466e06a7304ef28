"""What the units take from their processes. A probe stands in each one's place,
under all the same directives, and tries what is forbidden there; and under none
of them, which shows that each would work. The exceptions are named here, and
their reasons in the units (docs/decisions/0056)."""
import ctypes
import json
import os
import re
import socket
import stat

import pytest

from harness.installed import SCORES, UNITS, WATCH, command, systemctl

from .conftest import UNITS as FOLDER
from .conftest import unit_files

OUT = "/run/probes"
PROBED = {**UNITS, **{u: u for u in WATCH if u.endswith(".service")}}
# What a unit leaves to its process; all else of the probe's list fails.
ALLOWED = {
    "egress": {"reach a listener", "reach an abstract socket", "make AF_INET", "make AF_INET6",
               "make AF_NETLINK"},
    "sandboxd-store": {"make a file setuid"},
    "sandboxd-spawn": {"make AF_INET", "make AF_INET6", "see process 1", "see /proc/meminfo",
                       "see a sysctl", "get executable memory", "make a user namespace"},
}
# Of the service itself, not of what it may do.
LEFT_OUT = re.compile(r"(Type|RemainAfterExit|NotifyAccess|Exec\w+|Restart\w*|WatchdogSec|TimeoutS\w+|"
                      r"LoadCredential\w*|SetCredential|Slice|Delegate|SuccessExitStatus)=")
libc = ctypes.CDLL(None, use_errno=True)


def test_verify_finds_nothing(machine):
    r = command("systemd-analyze", "verify", "--man=no", *unit_files(), check=False)
    assert (r.returncode, r.stdout + r.stderr) == (0, "")


def test_scores(machine):
    out = command("systemd-analyze", "security", "--no-pager", *UNITS.values()).stdout
    found = dict(re.findall(r"exposure level for (\S+): (\d+\.\d)", out))
    assert set(found) == set(UNITS.values()), out[-400:]
    over = {u: found[u] for p, u in UNITS.items() if float(found[u]) > SCORES[p]}
    assert not over


def statuses(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def namespace(pid, kind):
    return os.readlink(f"/proc/{pid}/ns/{kind}")


@pytest.mark.parametrize("process", UNITS)
def test_it_runs_without_rights(suite, process):
    pid = suite.pid(process)
    s = statuses(pid)
    spawn, egress = process == "sandboxd-spawn", process == "egress"
    caps = (1 << 6 | 1 << 7) if spawn else 0	# CAP_SETGID, CAP_SETUID
    assert [int(s[c], 16) for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")] == \
        [0, caps, caps, caps, 0]
    assert (s["NoNewPrivs"], s["Seccomp"]) == ("1", "2")
    assert 0 not in {int(x) for x in s["Uid"].split() + s["Gid"].split()}
    for kind in ("mnt", "ipc") + (() if egress else ("net",)) + (() if spawn else ("uts",)):
        assert namespace(pid, kind) != namespace(1, kind), kind
    assert (namespace(pid, "user") != namespace(1, "user")) == \
        (process in ("gatewayd-local", "gatewayd-tunnel", "admind-http"))
    # Nothing that listens is its own, nor any other of the internet.
    if not egress:
        with open(f"/proc/{pid}/net/tcp", encoding="ascii") as f:
            assert len(f.readlines()) == 1


@pytest.fixture(scope="module")
def canaries():
    """What is there for everybody on this machine; the port of a listener."""
    os.makedirs(OUT, exist_ok=True)
    for folder in ("/etc/canary", "/var/lib/canary", "/run/canary", "/home/canary"):
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o1777)
    for path in ("/tmp/canary", "/home/canary/file"):
        with open(path, "w", encoding="ascii") as f:
            f.write("tweet\n")
        os.chmod(path, 0o644)
    os.mknod("/dev/canary", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    os.chmod("/dev/canary", 0o666)
    assert libc.shmget(0x6d637062, 4096, 0o1666) != -1
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0canary")
    abstract.listen(64)
    yield listener.getsockname()[1]
    listener.close()
    abstract.close()


def stand_in(name, service, command_line):
    """Writes a unit that runs a command with the [Service] lines given."""
    with open(f"/run/systemd/system/probe-{name}.service", "w", encoding="utf-8") as f:
        f.write("[Service]\n" + service + f"""
Type=oneshot
ExecStart={command_line}
StandardOutput=truncate:{OUT}/{name}
StandardError=inherit
""")


def directives(unit):
    """The [Service] lines of a unit's file that say what it may do."""
    path = os.path.join(FOLDER, re.sub(r"@.*\.", "@.", unit))
    instance = (re.findall(r"@(.*)\.service", unit) or [""])[0]
    with open(path, encoding="utf-8") as f:
        body = f.read().split("[Service]\n")[1].split("\n[Install]")[0]
    return "\n".join(line for line in body.replace("\\\n", "").replace("%i", instance).splitlines()
                     if not LEFT_OUT.match(line))


@pytest.fixture(scope="module")
def probed(suite, canaries):
    """Process -> what its probe could do; "nobody" has no directives."""
    names = ["nobody", *PROBED]
    line = f"/usr/bin/python3 {os.path.dirname(__file__)}/probe.py {canaries}"
    stand_in("nobody", "User=mcpbox-check", line)
    for process, unit in PROBED.items():
        stand_in(process, directives(unit), line)
    systemctl("daemon-reload")
    systemctl("start", *(f"probe-{n}.service" for n in names))
    found = {}
    for n in names:
        with open(os.path.join(OUT, n), encoding="ascii") as f:
            found[n] = json.load(f)
    return found


def test_without_a_unit_all_of_it_works(probed):
    assert {k: v for k, v in probed["nobody"].items() if v is not True} == {}


@pytest.mark.parametrize("process", PROBED)
def test_in_its_unit_nothing_works_but_what_it_needs(probed, process):
    assert {k for k, v in probed[process].items() if v is True} == ALLOWED.get(process, set()), \
        probed[process]


def test_the_backup_before_a_migration_can_be_written(suite, canaries):
    """mcpbox-migrate runs pg_dump under its own directives."""
    path = "/var/lib/mcpbox/backups/probe"
    stand_in("migrate", directives("mcpbox-migrate.service"), "/usr/bin/pg_dump -Fc "
             f"-f {path} 'host=/run/postgresql dbname=mcpbox user=mcpbox_owner'")
    systemctl("daemon-reload")
    r = command("systemctl", "start", "probe-migrate.service", check=False)
    with open(os.path.join(OUT, "migrate"), encoding="utf-8") as f:
        assert r.returncode == 0, f.read()
    assert os.stat(path).st_size > 10000
    os.unlink(path)
