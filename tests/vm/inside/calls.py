"""Calls over a sandbox whose other ends the test plays."""
import json
import os
import re

from harness.patience import patience
from harness.played.sandbox import TOOL, Admind

# A processor that is emulated: what takes a second elsewhere takes half a
# minute here. It only bounds how long a test waits for what must happen.
SLOW = patience(120)
MIB = 1 << 20


class Patient(Admind):
    """A test that looks at the running call reads no records meanwhile, so
    they are sent again."""

    def take(self, timeout):
        request, m = self.peer.receive(timeout)
        if m["_"] == "RECORD":
            self.records[m["execution"]] = m
            self.peer.send("OK", request=request)
        return request, m


class Calls:
    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.admind = Patient(sandbox)
        self.gateway = sandbox.gateway()
        self.ended = {}
        source = os.path.join(os.path.dirname(__file__), "..", "..", "..", "common", "base", "failure.def")
        with open(source, encoding="ascii") as f:
            self.failures = re.findall(r'^F\(\w+, "(\w+)"', f.read(), re.M)

    def start(self, code, timeout=60000, **limits):
        """A running call's (execution, request)."""
        execution = self.admind.held(code, timeout=timeout, kind=TOOL, **limits)
        return execution, self.gateway.start("RUN", execution=execution, arguments=b"{}")

    def end(self, started):
        execution, request = started
        while request not in self.ended:
            got, m = self.gateway.receive(SLOW)
            if m["_"] != "CALL_EVENT":
                self.ended[got] = m
        m = self.ended.pop(request)
        record = self.admind.record(execution, SLOW)
        failure = self.failures[m["failure"]]
        if m["_"] == "REFUSED":
            body = {"isError": True, "content": [{"text": m["message"]}]}
            return Ended(record["outcome"], failure, body, record)
        assert m["_"] == "CALL_RESULT", m
        return Ended(m["outcome"], failure, json.loads(m["body_meta"][:m["body_len"]]), record)

    def run(self, code, **limits):
        return self.end(self.start(code, **limits))

    def close(self):
        self.gateway.sock.close()
        self.admind.peer.sock.close()


class Ended:
    def __init__(self, outcome, failure, body, record):
        self.outcome, self.failure, self.body, self.record = outcome, failure, body, record

    @property
    def text(self):
        return "".join(b.get("text", "") for b in self.body["content"])

    @property
    def value(self):
        assert not self.body["isError"], self.body
        return json.loads(self.text)

    def __repr__(self):
        return f"outcome {self.outcome}, {self.failure}: {self.text}"
