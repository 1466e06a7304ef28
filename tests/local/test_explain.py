"""--explain, --json and profiles."""
import json
import os
import pathlib

import pytest

from local.person import CANARY

PROFILES = pathlib.Path(__file__).resolve().parents[2] / "contrib/run"


def test_explain_runs_nothing(person):
    r = person.run("touch", "made", options=["--explain"])
    assert r.status == 0 and not (person.project / "made").exists()
    for word in ("touch made", f"writable   {person.project} (current folder)", str(person.home), "network      none",
                 "localhost is the program's own", "HOME", "seccomp", "capabilities", "processes  4096", ".vscode", "landlock"):
        assert word in r.out, word
    assert CANARY not in person.run("true", options=["--explain", "--env", f"SECRET={CANARY}"]).out


def test_explain_as_json(person):
    person.write("read/file", "")
    person.write(".gitconfig", "")
    person.write("project/.envrc", "")
    r = person.run("true", "a b", options=["--explain", "--json", "--ro", person.home / "read", "--home-file", ".gitconfig",
                                           "--net", "*.example.org", "--net", "[2001:db8::1]:8080", "--publish", "3000", "--memory", "2G", "--tmp", "5M", "--env", "A=1"])
    got = json.loads(r.out)
    assert got["program"] == ["true", "a b"] and got["home"] == str(person.home)
    assert got["folders"] == [{"path": str(person.project), "writable": True},
                              {"path": str(person.home / "read"), "writable": False}]
    assert got["files"] == [str(person.home / ".gitconfig")]
    assert {"path": f"{person.project}/.envrc", "how": "read-only"} in got["kept"]
    assert {"path": f"{person.project}/.vscode", "how": "set aside"} in got["kept"]
    assert got["network"] == {"hosts": [{"host": "*.example.org", "ports": [80, 443]}, {"host": "2001:db8::1", "ports": [8080]}],
                              "published": [3000]}
    assert "A" in got["environment"] and got["limits"]["memory"] == 2 << 30 and got["limits"]["tmp"] == 5 << 20
    assert got["limits"]["memory_by"] in ("cgroup, of all processes", "rlimit, of each process")


def test_what_it_says_of_mounts_is_true(person):
    """Each path of the plan, tried."""
    person.write("read/file", "")
    options = ["--ro", person.home / "read"]
    plan = json.loads(person.run("true", options=["--explain", "--json", *options]).out)
    for folder in plan["folders"]:
        r = person.run("touch", f"{folder['path']}/probe", options=options)
        assert (r.status == 0) == folder["writable"], folder
    names = {line.split("=")[0] for line in person.run("env", options=options).out.splitlines()}
    assert names == set(plan["environment"])


def test_the_report(person):
    r = person.sh("echo out; touch .envrc; exit 3", ["--json"])
    assert r.status == 3 and r.out == "out\n"
    report = json.loads(r.err)
    assert report["status"] == 3 and report["signal"] == 0
    assert report["set_aside"] == [{"path": f"{person.project}/.envrc", "name": ".envrc.from-mcpbox-run"}]
    report = json.loads(person.sh("kill -9 $$", ["--json"]).err)
    assert report["status"] == 137 and report["signal"] == 9 and report["set_aside"] == [] and report["denied"] == []


@pytest.mark.parametrize("name", sorted(p.name for p in PROFILES.iterdir()))
def test_the_ready_profiles(person, name):
    (person.home / ".claude-run").mkdir()
    r = person.run("true", options=["--explain", "--json", "--profile", PROFILES / name])
    assert r.status == 0 and json.loads(r.out)["network"]["hosts"], r
    assert person.run("true", options=["--profile", PROFILES / name]).status == 0


def test_a_profile(person):
    person.write("read/file", "x")
    profile = person.write("profile", "# a comment\n\nro ~/read\nenv A=from the profile\nenv B=~/read\nprocesses 99\nallow-hooks\n")
    r = person.sh('cat ~/read/file; echo "-$A-$B"; mkdir .vscode', ["--profile", profile])
    assert r.out == f"x-from the profile-{person.home}/read\n" and (person.project / ".vscode").is_dir(), r
    r = person.sh('echo "$A"', ["--profile", profile, "--env", "A=later"])
    assert r.out == "later\n"


@pytest.mark.parametrize("line,word", [
    ("none x", "no option none"), ("ro", "needs a value"), ("ro ", "needs a value"), ("allow-hooks yes", "takes no value"),
    ("profile other", "command line"), ("explain", "command line"), ("json", "command line"), (" ro /usr", "no option"),
    ("ro  /usr", " /usr"), ("memory 1 G", "512M"), ("--ro /usr", "no option"), ("ro ~", "~"), ("ro /", "whole machine"),
    ("rw ~/.ssh", ".ssh"), ("env X Y", "letters"), ("RO /usr", "no option")])
def test_a_profile_is_read_strictly(person, line, word):
    (person.home / ".ssh").mkdir()
    profile = person.write("profile", f"# first\n{line}\n")
    r = person.run("true", options=["--profile", profile])
    assert r.status == 125 and "line 2" in r.err and word in r.err, r


def test_a_profile_with_odd_bytes(person):
    for text in ("ro /usr\0ro /", "x" * 20000):
        profile = person.write("profile", text)
        r = person.run("true", options=["--profile", profile])
        assert r.status == 125 and "bytes of text" in r.err, r
    os.mkfifo(person.home / "fifo")
    os.chmod(person.home / "fifo", 0o666)
    assert person.run("true", options=["--profile", person.home / "fifo"]).status == 125
