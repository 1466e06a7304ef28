"""Calls under way while things are killed, and the account of them after."""
import http.client
import itertools
import json
import threading
import time

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.patience import patience, until

CODE = '''\
import time
def main(nonce: str, ms: int = 0) -> str:
    time.sleep(ms / 1000)
    return "ran " + nonce
'''
NUMBER = itertools.count(1)	# each Load has a tool of its own
# Typed answers that a call may get while parts are down.
TYPED = {"busy", "internal", "storage_unavailable", "sandbox_unavailable", "vault_unavailable",
         "lost", "upgrading", "killed", "timeout",
         "limit"}	# a runner that somebody killed looks like the kernel did


class Load:
    """`at_once` clients call one tool, each call with a nonce of its own and
    never a second time."""

    def __init__(self, instance, at_once=8, ms=20):
        self.instance, self.ms = instance, ms
        with Client(instance.address) as c:
            self.tool = flow.publish(instance, c, "load", f"nonce_{next(NUMBER)}", CODE)
        self.counter = itertools.count()
        self.lock = threading.Lock()
        self.ok, self.typed, self.transport, self.odd = {}, {}, {}, {}
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._worker) for _ in range(at_once)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.stopping.set()
        for t in self.threads:
            t.join()

    def _worker(self):
        client = None
        while not self.stopping.is_set():
            nonce = f"nonce-{next(self.counter):08}"
            begin = time.monotonic()
            try:
                if client is None:
                    client = Client(self.instance.address, timeout=patience(40))
                self._note(nonce, client.call(self.tool, {"nonce": nonce, "ms": self.ms}), begin)
            except (OSError, http.client.HTTPException, AssertionError) as e:
                with self.lock:
                    self.transport[nonce] = (begin, time.monotonic(), repr(e))
                client = None
                time.sleep(0.05)

    def _note(self, nonce, r, begin):
        with self.lock:
            if r.result and not r.result.get("isError") and text(r) == "ran " + nonce:
                self.ok[nonce] = r.result["_meta"]["mcpbox/execution"]["execution_id"]
                return
            mode = None
            if r.error:
                mode = (r.error.get("data") or {}).get("failure_mode")
            elif r.result:
                mode = r.result.get("_meta", {}).get("mcpbox/failure", {}).get("failure_mode")
            if mode in TYPED:
                self.typed.setdefault(mode, []).append((nonce, begin, time.monotonic()))
            else:
                self.odd[nonce] = r
        if r.error:
            time.sleep(0.02)	# as a client that heeds retry_after would

    def resumed(self, seconds=30):
        """Waits until a fresh call works; returns how long that took."""
        begin = time.monotonic()
        last = None
        while time.monotonic() - begin < patience(seconds):
            nonce = f"probe-{next(self.counter):08}"
            try:
                with Client(self.instance.address, timeout=patience(15)) as c:
                    last = c.call(self.tool, {"nonce": nonce})
                    if last.result and not last.result.get("isError"):
                        return time.monotonic() - begin
            except (OSError, http.client.HTTPException, AssertionError) as e:
                last = e
            time.sleep(0.05)
        raise AssertionError(f"no service {patience(seconds):.0f} s later: {last}\n{self.instance.logs()}")

    def account(self, seconds=60):
        by_nonce = account(self.instance, self.tool, self.ok, seconds)
        assert not self.odd, list(self.odd.items())[:3]
        return by_nonce


def account(instance, tool, ok, seconds=60):
    """Every authorised call of `tool` has exactly one closed record; what was
    answered as done (`ok`: nonce -> execution) is recorded as done; nothing is
    there twice. Returns nonce -> [(execution, outcome)]."""
    def open_rows():
        return instance.psql(
            "SELECT id, tool, owner_epoch, deadline FROM mcpbox.executions WHERE state = 'open'")
    until(lambda: not open_rows(), seconds, 0.2, say=lambda: ("still open", open_rows()[:5]))
    rows = instance.psql(
        "SELECT replace(id::text, '-', ''), outcome, arguments FROM mcpbox.executions "
        f"WHERE tool = '{tool}' AND kind = 'tool'")
    by_nonce = {}
    for execution, outcome, arguments in rows:
        by_nonce.setdefault(json.loads(arguments)["nonce"], []).append((execution, outcome))
    twice = {n: r for n, r in by_nonce.items() if len(r) != 1}
    assert not twice, twice
    missing = {n for n in ok if n not in by_nonce}
    assert not missing, (len(missing), sorted(missing)[:5])
    wrong = {n: by_nonce[n] for n, e in ok.items()
             if by_nonce[n] != [(e.replace("-", ""), "done")]}
    assert not wrong, (len(wrong), wrong)
    return by_nonce
