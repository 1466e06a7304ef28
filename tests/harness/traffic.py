"""Clients that never rest, in a process of their own: calls of one tool over
the local listener and the tunnel's socket, on connections that are kept and on
fresh ones. It outlives the test that started it, and a reboot stops it last;
what happened to each call is a line of JSON in a file.

	python3 -m harness.traffic FILE TOOL NAME MS PAUSE [TOKENFILE]
"""
import http.client
import json
import os
import signal
import sys
import threading
import time

from harness.clients.load import TYPED
from harness.clients.mcp import Client, connection, text
from harness.installed import command, systemctl
from harness.patience import eventually, patience

CODE = '''\
import time
def main(nonce: str, ms: int = 0) -> str:
    time.sleep(ms / 1000)
    return "ran " + nonce
'''
LOCAL, TUNNEL = ("127.0.0.1", 8002), "/run/mcpbox/gatewayd-tunnel/mcp.sock"
UNIT = "test-traffic.service"
TESTS = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
# A server that stops gives a fresh connection this long for its request
# (HTTPD_DRAIN_IDLE_MS, common/http/httpd_conn.h).
GRACE = 2


# --- The process. ---

class Worker(threading.Thread):
    """One client: a call, a pause, the next call."""

    def __init__(self, out, stop, who, address, kept, arguments, token=None):
        super().__init__()
        self.out, self.stop, self.who, self.address, self.kept = out, stop, who, address, kept
        self.tool, self.name_, self.ms, self.pause = arguments
        self.client = Client(lambda: address, token=token, timeout=patience(150))
        self.number = 0

    def say(self, nonce, **what):
        # One write(2) a line: threads and a sudden end leave whole lines.
        line = json.dumps({"nonce": nonce, "who": self.who, "at": time.time(), **what})
        os.write(self.out, line.encode() + b"\n")

    def run(self):
        while not self.stop.is_set():
            self.number += 1
            nonce = f"{self.name_}-{self.who.replace(' ', '-')}-{self.number:05}"
            self.say(nonce, begin=True)
            if not self.kept:
                self.client.close()
            phase, fresh = "answer", None
            try:
                if self.client.conn is None or self.client.conn.sock is None:
                    phase = "connect"
                    fresh = self.connect()
                    phase = "first answer"
                self.say(nonce, **self.judge(nonce, self.call(nonce, fresh)))
            except (OSError, http.client.HTTPException) as e:
                self.say(nonce, cut=repr(e), phase=phase,
                         after=fresh and time.monotonic() - fresh)
                self.client.close()
            self.stop.wait(self.pause)

    def connect(self):
        """Connects: the time at which the connection was there."""
        self.client.close()
        self.client.conn = connection(self.address, self.client.timeout)
        self.client.conn.connect()
        return time.monotonic()

    def call(self, nonce, fresh):
        """Calls. A server that stops closes a connection that rests, perhaps while the
        next request is being sent. EPIPE comes from send(2) alone: that request was
        never whole, so it did not run, and comes again (RFC 9112, 9.5). An end of a
        fresh connection within the server's grace is a fault; a later one shows only
        that this thread stood still."""
        while True:
            try:
                return self.client.call(self.tool, {"nonce": nonce, "ms": self.ms})
            except BrokenPipeError:
                if fresh is not None and time.monotonic() - fresh < GRACE:
                    raise
            fresh = self.connect()

    def judge(self, nonce, r):
        if r.result and not r.result.get("isError") and text(r) == "ran " + nonce:
            return {"ok": r.result["_meta"]["mcpbox/execution"]["execution_id"].replace("-", "")}
        mode = None
        if r.error:
            mode = (r.error.get("data") or {}).get("failure_mode")
        elif r.result:
            mode = r.result.get("_meta", {}).get("mcpbox/failure", {}).get("failure_mode")
        return {"typed": mode} if mode in TYPED else {"odd": repr(r)}


def main():
    path, tool, name, ms, pause = sys.argv[1:6]
    out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    stop = threading.Event()
    # A reboot sends SIGTERM before it kills: a call in flight is still waited for.
    for s in (signal.SIGTERM, signal.SIGINT):
        signal.signal(s, lambda *_: stop.set())
    token = None
    if len(sys.argv) > 6:
        with open(sys.argv[6], encoding="ascii") as f:
            token = f.read().strip()
    arguments = (tool, name, int(ms), float(pause))
    workers = [Worker(out, stop, "local fresh", LOCAL, False, arguments),
               Worker(out, stop, "local kept", LOCAL, True, arguments)]
    if token:
        workers += [Worker(out, stop, "tunnel fresh", TUNNEL, False, arguments, token),
                    Worker(out, stop, "tunnel kept", TUNNEL, True, arguments, token)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()


# --- What tests do with it. ---

class Traffic:
    """Runs as a unit of its own, ordered so that at shutdown it is stopped after
    mcpbox: its calls are in flight while that stops."""

    def __init__(self, name, tool, ms=100, pause=0.2, token=None, folder="/var/tmp"):
        self.name, self.tool = name, tool
        self.path = os.path.join(folder, f"traffic-{name}")
        words = [name, str(ms), str(pause)]
        if token:
            with open(self.path + ".token", "w", encoding="ascii",
                      opener=lambda p, f: os.open(p, f, 0o600)) as f:
                f.write(token)
            words.append(self.path + ".token")
        self.words = ["systemd-run", "--quiet", "--collect", f"--unit={UNIT}",
                      "--property=DefaultDependencies=no", "--property=TimeoutStopSec=60",
                      "--property=Before=mcpbox.target mcpbox-gatewayd@local.service "
                      "mcpbox-gatewayd@tunnel.service mcpbox-gatewayd@local.socket "
                      "mcpbox-gatewayd@tunnel.socket",
                      f"--working-directory={TESTS}", "--setenv=PYTHONDONTWRITEBYTECODE=1",
                      sys.executable, "-m", "harness.traffic", self.path, tool, *words]

    def start(self):
        command(*self.words)
        return self

    def __enter__(self):
        self.start()
        assert self.progress(2), (self.lines(), command(
            "journalctl", "--no-pager", "-u", UNIT, check=False).stdout)
        return self

    def __exit__(self, *exc):
        self.stop()

    def stop(self):
        """Waits for the calls under way."""
        systemctl("stop", UNIT, check=False)

    def lines(self):
        try:
            with open(self.path, encoding="ascii") as f:
                return [json.loads(line) for line in f if line.endswith("\n")]
        except OSError:
            return []

    def seen(self, kind):
        """nonce -> line, of one kind: begin, ok, typed, cut, odd."""
        return {m["nonce"]: m for m in self.lines() if kind in m}

    def progress(self, each=1, seconds=120):
        """Waits until every client has had `each` more successful calls."""
        def count():
            n = {}
            for m in self.lines():
                n[m["who"]] = n.get(m["who"], 0) + ("ok" in m)
            return n
        before = count()
        return eventually(lambda: (now := count()) and all(
            now[w] >= before.get(w, 0) + each for w in now), seconds, 0.3)

    def unanswered(self):
        """Calls that were begun and of which no line says how they ended."""
        lines = self.lines()
        return {m["nonce"] for m in lines if "begin" in m} - \
            {m["nonce"] for m in lines if "begin" not in m}

    def report(self):
        counts = {}
        for m in self.lines():
            for kind in ("ok", "typed", "cut", "odd"):
                if kind in m:
                    key = kind if kind in ("ok", "odd") else f"{kind} {m[kind]}"
                    counts[key] = counts.get(key, 0) + 1
        return f"{self.name}: {counts}, {len(self.unanswered())} unanswered"


if __name__ == "__main__":
    main()
