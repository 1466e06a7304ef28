"""JSON-RPC through the real socket: valid requests of every method and
revision, mutated. No crash, no leak, no bare HTTP 500, and no answer that the
published JSON schema of its revision refuses.

MCPBOX_WIRE_SECONDS says how long (60), the seed of the run which mutations."""
import collections
import http.client
import json
import os
import random
import socket
import threading
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import Client, Reply
from harness.instance import DAEMONS
from harness.patience import patience, until
from harness.seed import SEED
from wire import mutate, published

SECONDS = int(os.environ.get("MCPBOX_WIRE_SECONDS", "60"))
THREADS = 4
#: What a process may grow by, after a tenth of the time: allocators and caches
#: settle; a leak of 100 bytes a request would be more in ten minutes.
RSS_MIB, FDS = 24, 24


@pytest.fixture(scope="module")
def revisions():
    return published.load(os.environ["MCPBOX_NODE_DIR"])


@pytest.fixture(scope="module")
def names(instance):
    with Client(instance.address) as c:
        def approve(made):
            c.manage("mcpbox_request_publish", tool_id=made["id"])
            item = flow.pending(instance, made["name"])
            instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])

        echo = flow.publish(instance, c, "w", "echo", "import mcpbox\ndef main(a=None):\n"
                            "    mcpbox.log('x')\n    mcpbox.progress(1)\n    return a\n")
        typed = flow.publish(instance, c, "w", "typed", "def main(n: int):\n    return [n]\n",
                             output_schema={"type": "array", "items": {"maximum": 1}})
        server = next(s["id"] for s in c.manage("mcpbox_list_servers")["servers"] if s["name"] == "w")
        approve(c.manage("mcpbox_create_prompt", server_id=server, name="hello", description="Of the tests.",
                         text="Hello {who}", arguments=[{"name": "who", "values": ["you", "me"]}]))
        approve(c.manage("mcpbox_create_resource", server_id=server, name="text", uri="w://text",
                         description="Of the tests.", mime_type="text/plain", text="here"))
        approve(c.manage("mcpbox_create_resource", server_id=server, name="item", uri_template="w://item/{id}",
                         description="Of the tests.",
                         python_code="import mcpbox\ndef main(id):\n    if id == '0':\n"
                                     "        raise mcpbox.NotFound('none')\n    return {'id': id}\n"))
    return {"echo": echo, "typed": typed, "prompt": "w__hello"}


# --- The oracle of the oracle. ------------------------------------------------

def test_the_schemas_refuse_what_is_wrong(revisions):
    """Planted: each of these must be found, or a clean run would say nothing."""
    ok = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}}
    for name, r in revisions.items():
        bad = json.loads(json.dumps(ok))
        if name == mutate.MODERN:
            assert r.message_wrong(ok, "tools/list")    # no resultType, ttlMs, cacheScope
            ok["result"].update(resultType="complete", ttlMs=0, cacheScope="private")
            bad = json.loads(json.dumps(ok))
        assert r.message_wrong(ok, "tools/list") == []
        bad["result"]["tools"][0]["inputSchema"]["type"] = "array"
        assert r.message_wrong(bad, "tools/list")
        assert r.message_wrong({"jsonrpc": "2.0", "id": 1.5, "error": {"code": 1, "message": ""}})
        assert r.message_wrong({"jsonrpc": "2.0", "id": 1, "error": {"code": 1.5, "message": ""}})
        assert r.message_wrong({"jsonrpc": "2.0", "id": 1, "result": {"content": 1}}, "tools/call")
        assert r.message_wrong({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})


# --- One client. --------------------------------------------------------------

class Fuzzer(threading.Thread):
    def __init__(self, number, address, revisions, names, until, least):
        super().__init__()
        self.number, self.rnd = number, random.Random(SEED + number)
        self.address, self.revisions, self.names, self.until, self.least = address, revisions, names, until, least
        self.count, self.statuses, self.faults = 0, collections.Counter(), []
        self.judged = collections.Counter()
        self.c, self.sessions = None, {}

    def run(self):
        try:
            while (time.monotonic() < self.until or not self.enough()) and len(self.faults) < 5:
                assert time.monotonic() < self.until + patience(SECONDS), (self.count, self.judged)
                self.one()
        except Exception as e:      # the thread's end would go unseen
            self.faults.append(f"the fuzzer itself: {type(e).__name__}: {e}")
            raise
        finally:
            if self.c is not None:
                self.c.close()

    def enough(self):
        return self.count >= self.least and (self.number < 1000 or self.judged["streams"] > 10 / THREADS)

    def send(self, method, body, headers):
        """A Reply; None: the connection broke without one."""
        if self.c is None:
            self.c = http.client.HTTPConnection(*self.address(), timeout=patience(30))
        try:
            self.c.request(method, "/mcp", body, headers)
            return Reply(self.c.getresponse())
        except (http.client.HTTPException, ConnectionError, ValueError) as e:
            self.c.close()
            self.c = None
            return e

    def session(self, revision):
        if revision not in self.sessions or self.rnd.random() < 0.02:
            message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "f", "version": "1"}}}
            r = self.send("POST", json.dumps(message).encode(), {
                "Accept": "application/json, text/event-stream", "Content-Type": "application/json"})
            if isinstance(r, Reply):
                self.sessions[revision] = r.headers.get("mcp-session-id")
        return self.sessions.get(revision)

    def stream(self, revision, session):
        """A stream that is opened and left: GET of a legacy session, or
        subscriptions/listen. What comes first is judged."""
        message, headers = mutate.valid(self.rnd, revision, self.count, self.names, session)
        headers["Accept"] = "text/event-stream, application/json"
        body = b""
        if revision == mutate.MODERN:
            headers["Mcp-Method"] = message["method"] = "subscriptions/listen"
            headers.pop("Mcp-Name", None)
            message["id"] = f"s{self.count}"
            message["params"] = {"_meta": message["params"]["_meta"], "notifications": {
                "toolsListChanged": True, "resourceSubscriptions": ["w://text"]}}
            if self.rnd.random() < 0.5:
                message = mutate.structure(self.rnd, message)
            body = mutate.dump(message).encode("utf-8", "surrogatepass")
        elif session:
            headers["Mcp-Session-Id"] = session
        if self.rnd.random() < 0.5:
            mutate.header(self.rnd, headers)
        fields = {k: v if isinstance(v, str) else v.decode("latin-1") for k, v in headers.items()}
        head = "".join(f"{k}: {v}\r\n" for k, v in fields.items())
        with socket.create_connection(self.address(), timeout=patience(10)) as s:
            s.sendall(f"{'POST' if body else 'GET'} /mcp HTTP/1.1\r\nHost: localhost\r\n{head}"
                      f"Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body)
            # The head comes however slow the machine is; of the stream, what comes at once.
            got = b""
            try:
                while len(got) < 65536 and (part := s.recv(65536)):
                    got += part
                    if b"\r\n\r\n" in got:
                        s.settimeout(0.2)
            except TimeoutError:
                pass
        status = got.split(b" ", 2)[1:2]
        self.statuses[int(status[0]) if status else "closed"] += 1
        if not status or status == [b"500"]:
            self.fault("a stream with no answer or a bare 500", body, headers, got)
        for line in got.replace(b"\r\n", b"\n").split(b"\n"):
            if line.startswith(b"data:") and line[5:].strip():
                m = json.loads(line[5:])
                if all(self.revisions[r].message_wrong(m) for r in mutate.REVISIONS):
                    self.fault("refused by the schema of any revision", body, headers, m)
                self.judged["streams"] += 1

    def one(self):
        rnd = self.rnd
        revision = rnd.choice(mutate.REVISIONS)
        session = None if revision == mutate.MODERN else self.session(revision)
        self.count += 1
        if rnd.random() < 0.02:
            self.stream(revision, session)
            return
        message, headers = mutate.valid(rnd, revision, self.count, self.names, session)
        asked, given_id = message["method"], message.get("id")
        changed = rnd.random() < 0.9
        bad_headers = changed and rnd.random() < 0.3
        bad_text = changed and not bad_headers and rnd.random() < 0.3
        body = None
        if bad_headers:
            mutate.header(rnd, headers)
        elif changed and not bad_text:
            for _ in range(rnd.choice([1, 1, 1, 2, 4])):
                message = mutate.structure(rnd, message)
                if not isinstance(message, dict):
                    break
        body = mutate.dump(message).encode("utf-8", "surrogatepass")
        if bad_text:
            body = mutate.octets(rnd, body)
        http_method = "POST" if rnd.random() < 0.97 else rnd.choice(["DELETE", "PUT", "HEAD", "OPTIONS"])
        reply = self.send(http_method, body, headers)
        if http_method == "POST":
            self.judge(reply, revision if not changed else None, revision, asked, given_id,
                       changed, message, body, headers)

    def fault(self, what, body, headers, reply):
        self.faults.append(f"{what}\n  request {headers} {body[:1500]!r}\n  answer {reply!r:.1500}")

    def judge(self, reply, certain, revision, asked, given_id, changed, message, body, headers):
        if not isinstance(reply, Reply):
            # Only what could not be HTTP for us may end a connection.
            if not changed or not isinstance(reply, (http.client.RemoteDisconnected, ConnectionError, ValueError,
                                                     http.client.HTTPException)):
                self.fault(f"no answer: {reply!r}", body, headers, reply)
            self.statuses["closed"] += 1
            return
        self.statuses[reply.status] += 1
        if reply.status == 500 or (reply.status >= 400 and reply.status != 405 and reply.raw and reply.value is None):
            self.fault(f"a bare HTTP {reply.status}", body, headers, reply)
            return
        messages = reply.events or ([] if reply.value is None else
                                    reply.value if isinstance(reply.value, list) else [reply.value])
        # What was asked under which id, by the bytes that went out: a list may ask
        # for many things, and a cut may make one method's name another's.
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            pass
        methods = {repr(x.get("id")): x.get("method") for x in (message if isinstance(message, list) else [message])
                   if isinstance(x, dict)}
        for m in messages:
            if changed:
                asked = methods.get(repr(m.get("id"))) if isinstance(m, dict) else None
            # Which revision a broken request is of is the server's to say: one
            # that was changed may be answered as any.
            candidates = [certain] if certain else [revision, *mutate.REVISIONS]
            found = None
            for name in candidates:
                found = self.revisions[name].message_wrong(m, asked)
                if not found:
                    self.judged[name] += 1
                    break
            if found:
                self.fault(f"refused by the schema of {certain or 'any revision'}: "
                           f"{self.revisions[candidates[0]].message_wrong(m, asked)}", body, headers, m)
            if not changed and isinstance(m, dict) and "method" not in m and m.get("id") != given_id:
                self.fault("another id than the request's", body, headers, m)
        if not changed and given_id is not None and not any(
                isinstance(m, dict) and m.get("id") == given_id for m in messages):
            self.fault("a valid request has no answer", body, headers, reply)


def sizes(instance):
    """process: (pid, resident MiB, descriptors)"""
    out = {}
    for name in DAEMONS:
        pid = instance.service_pid(name)
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
        out[name] = (pid, rss / 1024, len(os.listdir(f"/proc/{pid}/fd")))
    return out


def run(instance, revisions, names, seconds, offset=0):
    """For so long, and on a slow machine until there were enough of them."""
    end, least = time.monotonic() + seconds, 20 * seconds // THREADS + 1
    threads = [Fuzzer(offset + i, instance.address, revisions, names, end, least) for i in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    faults = [f for t in threads for f in t.faults]
    assert not faults, f"seed {SEED}\n" + "\n\n".join(faults[:5])
    return threads


def test_wire_fuzz(instance, revisions, names, capsys):
    run(instance, revisions, names, max(SECONDS // 10, 3))
    before = sizes(instance)
    threads = run(instance, revisions, names, SECONDS, offset=1000)
    # gatewayd notices closed connections.
    until(lambda: all(x[2] - before[n][2] < FDS for n, x in sizes(instance).items()), say=lambda: (before, sizes(instance)))
    after = sizes(instance)
    total = sum(t.count for t in threads)
    statuses = sum((t.statuses for t in threads), collections.Counter())
    judged = sum((t.judged for t in threads), collections.Counter())
    with capsys.disabled():
        print(f"\n{total} requests, statuses {dict(statuses)}, answers judged {dict(judged)}, seed {SEED}")
    assert total >= 20 * SECONDS and statuses[200] > total / 10 and statuses[400] > total / 20
    assert all(judged[r] > total / 100 for r in mutate.REVISIONS) and judged["streams"] > 10, judged
    for name, (pid, rss, fds) in after.items():
        assert pid == before[name][0], f"{name} was restarted"
        assert rss - before[name][1] < RSS_MIB, f"{name} grew from {before[name][1]:.0f} to {rss:.0f} MiB"
        assert fds - before[name][2] < FDS, f"{name} has {fds} descriptors, had {before[name][2]}"
    with Client(instance.address) as c:
        assert c.call(names["echo"], {"a": "still there"}).result["content"][0]["text"] == "still there"
