"""Installs what the chosen parts need of Debian's packages (contrib/packages)."""
import os
import subprocess

from runner import jobs
from runner.context import SRC
from runner.parts import BY_NAME

POLICY = "/usr/sbin/policy-rc.d"


def kinds_of(parts):
    """Kinds of contrib/packages: the parts' own, and what their builds need."""
    kinds = {k for p in parts for k in BY_NAME[p].packages}
    if any(j.part == "builds" for j in jobs.chosen(jobs.jobs(), parts)):
        kinds |= {"build", "tests"}
    return kinds


def wanted(parts):
    """Names of the packages that these parts need."""
    kinds = kinds_of(parts)
    names = []
    with open(SRC / "contrib/packages", encoding="utf-8") as f:
        for line in f:
            if not line.startswith("#") and line.strip():
                kind, name = line.split()
                if kind in kinds and name not in names:
                    names.append(name)
    return names


def missing(names):
    r = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${Status}\n", *names], capture_output=True,
                       text=True, check=False)
    there = {line.split()[0] for line in r.stdout.splitlines() if line.endswith("install ok installed")}
    return [n for n in names if n not in there]


def install(names, log):
    """Raises CalledProcessError; the log says why."""
    made = not os.path.exists(POLICY)
    if made:
        # Tests start what they need themselves: nginx must not begin to listen because
        # its package is there (Debian's policy-rc.d: 101, forbidden).
        with open(POLICY, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o755)) as f:
            f.write("#!/bin/sh\nexit 101\n")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        with open(log, "ab") as f:
            for argv in (["apt-get", "update", "-q"],
                         ["apt-get", "install", "-q", "-y", "--no-install-recommends", *names]):
                subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=f, stderr=f, env=env)
    finally:
        if made:
            os.unlink(POLICY)
