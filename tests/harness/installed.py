"""The suite as its package installed it, under the machine's systemd: with the
face that harness.clients.flow, harness.clients.load and harness.clients.api_token know an instance by."""
import json
import os
import re
import subprocess

from harness.clients.mcp import text
from harness.patience import eventually, patience

# Process, unit: the main processes of an installation.
UNITS = {"gatewayd-local": "mcpbox-gatewayd@local.service",
         "gatewayd-tunnel": "mcpbox-gatewayd@tunnel.service",
         "admind": "mcpbox-admind.service", "admind-http": "mcpbox-admind-http.service",
         "admind-check": "mcpbox-admind-check.service",
         "admind-vault": "mcpbox-admind-vault.service", "sandboxd": "mcpbox-sandboxd.service",
         "sandboxd-spawn": "mcpbox-sandboxd-spawn.service",
         "egress": "mcpbox-sandboxd-egress.service",
         "sandboxd-store": "mcpbox-sandboxd-store.service"}
SOCKETS = ("mcpbox-gatewayd@local.socket", "mcpbox-gatewayd@tunnel.socket",
           "mcpbox-admind-http.socket")
# What has egress read /etc/resolv.conf again.
WATCH = ("mcpbox-resolv.path", "mcpbox-resolv-link.path", "mcpbox-resolv-settle.service",
         "mcpbox-resolv.service")
USERS = ("mcpbox-gw-local", "mcpbox-gw-tunnel", "mcpbox-admin", "mcpbox-adminweb",
         "mcpbox-check", "mcpbox-vault", "mcpbox-sandbox", "mcpbox-pool", "mcpbox-egress",
         "mcpbox-store", "mcpbox-owner")
# The worst score each may have of `systemd-analyze security`.
SCORES = {"gatewayd-local": 1.0, "gatewayd-tunnel": 1.0, "admind": 1.5, "admind-http": 1.5,
          "admind-check": 1.5, "admind-vault": 1.5, "sandboxd": 1.5, "sandboxd-spawn": 3.5,
          "egress": 1.5, "sandboxd-store": 1.5}
SLOW = patience(120)	# a machine may be emulated: a wait this long is a failure


def command(*words, check=True, stdin=None, timeout=SLOW, **more):
    """Runs it; its output is in what it raises."""
    r = subprocess.run(words, input=stdin, text=True, capture_output=True, check=False,
                       timeout=timeout, **more, **({} if stdin is not None else
                                                   {"stdin": subprocess.DEVNULL}))
    if check and r.returncode != 0:
        raise RuntimeError(f"{words}: {r.returncode}\n{r.stdout}{r.stderr}")
    return r


def systemctl(*words, **more):
    return command("systemctl", *words, **more).stdout


def show(unit, *properties):
    """A unit's properties, name -> text."""
    out = systemctl("show", "-p", ",".join(properties), unit)
    return dict(line.split("=", 1) for line in out.splitlines())


def apt_install(deb, *options):
    """As a person would, without a network and without questions."""
    return command("apt-get", "install", "-y", *options, os.path.abspath(deb),
                   env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, timeout=SLOW * 5)


class Installed:
    """password: of the administrator `admin`."""

    def __init__(self, password):
        self.password = password

    def run(self, *path):
        return os.path.join("/run/mcpbox", *path)

    def address(self, name="gatewayd-local"):
        return {"gatewayd-local": ("127.0.0.1", 8002), "admind-http": ("127.0.0.1", 8000)}[name]

    def ctl(self, *args, check=True, stdin=None):
        return command("mcpboxctl", *args, check=check, stdin=stdin)

    def ctl_json(self, *args):
        return json.loads(self.ctl(*args, "--json").stdout)

    def psql(self, query, database="mcpbox"):
        """Rows as lists of text."""
        out = command("runuser", "-u", "postgres", "--", "psql", "-X", "-q", "-A", "-t", "-F",
                      "\t", "-v", "ON_ERROR_STOP=1", database, "-c", query, cwd="/").stdout
        return [line.split("\t") for line in out.splitlines()]

    def pid(self, process):
        """Of a unit's main process; None while there is none."""
        return int(systemctl("show", "-P", "MainPID", UNITS[process])) or None

    def pids(self):
        """Process -> pid of all main processes, by one question."""
        out = systemctl("show", "-p", "MainPID", *UNITS.values())
        return {p: int(n) for p, n in zip(UNITS, re.findall(r"^MainPID=(\d+)$", out, re.M))}

    def up(self):
        """Is every unit and socket active?"""
        out = systemctl("is-active", "mcpbox.target", *SOCKETS, *UNITS.values(), check=False)
        return set(out.split()) == {"active"}

    def runs_tools(self):
        """Has the pool reported? The units are up before that."""
        doctor = self.ctl("doctor", "--json", check=False).stdout
        return doctor and any(r["process"] == "pool" for r in json.loads(doctor))

    def ran(self, client, tool, nonce):
        """The text of a call after a start. Who comes early is told to come
        again, and nothing ran."""
        def answered():
            r = client.call(tool, {"nonce": nonce})
            assert r.result or r.error["data"]["failure_mode"] in ("sandbox_unavailable", "upgrading"), r
            return r if r.result else None
        r = eventually(answered, step=1)
        assert r, self.logs()
        return text(r)

    def failed(self):
        """Names of failed units, anybody's."""
        out = systemctl("list-units", "--failed", "--plain", "--no-legend", check=False)
        return [line.split()[0] for line in out.splitlines()]

    def restarted(self):
        """Processes that systemd has started again by itself since their last start."""
        out = systemctl("show", "-p", "NRestarts", *UNITS.values())
        return [p for p, n in zip(UNITS, re.findall(r"^NRestarts=(\d+)$", out, re.M)) if n != "0"]

    def logs(self, lines=60):
        return command("journalctl", "-b", "--no-pager", "-n", str(lines), "-u", "mcpbox*",
                       check=False).stdout
