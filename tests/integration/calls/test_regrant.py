"""admind alone, vault and sandbox being ours: grants in the material of calls,
and told to the sandbox while calls of their server run; what happens when they
can't be told."""
import json
import secrets
import threading
import time
import uuid

import pytest

from harness.patience import patience
from harness.played.admind import DONE, FAILURES
from harness.tlv import untlv

SEALED = b"sealed:"
TOOL, GRANTS = 1, 5
GRANT_SEAL, GRANT_PREIMAGE, SERVER_ID = 31, 32, 35
REPORT = [{"host": "api.example.org", "port": 443, "verdict": "ok"}]


@pytest.fixture(autouse=True)
def honest(a):
    """The sandbox also takes what is granted; what it was told, by server."""
    def on_sandbox(m):
        if m["_"] == "REGRANT":
            a.told.append((m["server"], hosts(untlv(m["context"][len(SEALED):]))))
            return "OK", {}
        return a.honest_sandbox(m)
    a.told = []
    a.on_check, a.on_vault, a.on_sandbox = lambda m: ("CHECK_OK", {}), a.honest_vault, on_sandbox
    yield
    a.on_check, a.on_vault, a.on_sandbox = lambda m: ("CHECK_OK", {}), a.honest_vault, on_sandbox
    for i, in a.rows("SELECT id FROM mcpbox.executions WHERE state = 'open' AND kind = 'tool'"):
        a.record(i.bytes)


@pytest.fixture
def ctl(a):
    with a.ctl() as c:
        yield c


def hosts(fields):
    return [dict(_grant(v))[13].decode() for t, v in fields if t == GRANT_PREIMAGE]


def _grant(pre):
    return untlv(pre[len(b"mcpbox grant 1\0"):])


class Net:
    """A fresh approved tool that needs hosts, and its server's grants."""

    def __init__(self, a, *requires, **more):
        self.a, self.server_name = a, "s" + secrets.token_hex(5)
        self.version, self.hash = a.approved_tool(self.server_name, requires=requires, **more)
        self.tool = self.server_name + "__greet"
        self.server, self.tool_id = a.rows("SELECT server_id, tool_id FROM mcpbox.tool_versions WHERE id = %s",
                                           self.version)[0]

    def grant(self, host, port=0):
        r = uuid.uuid4()
        with self.a.pg.connect("mcpbox_app") as c:
            c.execute("SELECT mcpbox.request_network(%s, %s, NULL, %s, %s, %s, 'x', 'local', true)",
                      (r, uuid.uuid4(), [self.tool_id], host, port))
            digest = c.execute("SELECT hash FROM mcpbox.approval_requests WHERE id = %s", (r,)).fetchone()[0]
            c.execute("SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 'grant seal')", (r, digest))
        return r

    def revoke(self, r):
        self.a.sql("SELECT mcpbox.admin_act('approval_revoke', 'anna', 'reviewer', %s, NULL, '', "
                   "'{\"reason\": \"x\"}')", str(r), user="mcpbox_app")

    def call(self, gw):
        m = gw.call("AUTHORISE", tool=self.tool, arguments=b"{}")
        assert m["_"] == "RUN_ID", m
        return m["execution"]

    def context(self, execution):
        return untlv(self.a.held[execution]["context"][len(SEALED):])


def sealed(a, kind, since=0):
    return [m for m in a.fakes["vault"].seen[since:] if m["_"] == "SEAL_CONTEXT" and m["kind"] == kind]


def test_a_call_brings_its_servers_grants(a, gw):
    """As they were sealed: admind looks into none. The second call's are those
    that were remembered."""
    n = Net(a, "api.example.org", "*.example.net:8443")
    for host, port in (("api.example.org", 0), ("*.example.net", 8443), ("else.example.com", 0)):
        n.grant(host, port)
    for _ in range(2):
        fields = n.context(n.call(gw))
        assert hosts(fields) == ["*.example.net", "api.example.org"]
        mine = [(t, v) for t, v in fields if t in (GRANT_SEAL, GRANT_PREIMAGE)]
        assert [t for t, _ in mine] == [GRANT_SEAL, GRANT_PREIMAGE] * 2
        assert all(v == b"grant seal" for t, v in mine if t == GRANT_SEAL)
        assert all(dict(_grant(v))[3] == n.server.bytes for t, v in mine if t == GRANT_PREIMAGE)
    plain = Net(a)
    plain.grant("api.example.org")
    assert not [t for t, _ in plain.context(plain.call(gw)) if t in (GRANT_SEAL, GRANT_PREIMAGE, SERVER_ID)]


def test_a_new_grant_is_in_the_next_call(a, gw):
    n = Net(a, "*.example.org")
    n.grant("*.example.org")
    assert hosts(n.context(n.call(gw))) == ["*.example.org"]
    r = n.grant("x.example.org", 8443)
    assert hosts(n.context(n.call(gw))) == ["*.example.org", "x.example.org"]
    n.revoke(r)
    assert hosts(n.context(n.call(gw))) == ["*.example.org"]


@pytest.mark.parametrize("change", ["grant", "revoke"])
def test_a_change_between_lookup_and_intent_wins(a, gw, change):
    """The intent refuses what was looked up before: sealed, perhaps, and never run."""
    n = Net(a, "*.example.org")
    n.grant("*.example.org")
    r = n.grant("y.example.org", 99)
    done = []

    def check(m):
        if not done:
            done.append(n.grant("x.example.org", 8443) if change == "grant" else n.revoke(r))
        return "CHECK_OK", {}
    a.on_check = check
    want = ["*.example.org"] + (["x.example.org", "y.example.org"] if change == "grant" else [])
    assert hosts(n.context(n.call(gw))) == want


def test_running_calls_are_told(a, gw):
    n, other = Net(a, "*.example.org"), Net(a, "*.example.org")
    n.grant("*.example.org"), other.grant("*.example.org")
    i, j = n.call(gw), other.call(gw)
    before = len(a.fakes["vault"].seen)
    r = n.grant("x.example.org", 8443)
    a.until(lambda: (n.server.bytes, ["*.example.org", "x.example.org"]) in a.told)
    m = [m for m in sealed(a, GRANTS, before) if m["execution"] == n.server.bytes][-1]
    assert (m["listener"], m["epoch"]) == (3, a.sandbox_epoch)
    fields = untlv(m["material"])
    assert fields[0] == (SERVER_ID, n.server.bytes) and {t for t, _ in fields} == {
        SERVER_ID, GRANT_SEAL, GRANT_PREIMAGE}
    a.told.clear()
    n.revoke(r)
    a.until(lambda: (n.server.bytes, ["*.example.org"]) in a.told)
    # the last of them: the call goes on, without
    a.told.clear()
    n.revoke(a.rows("SELECT request_id FROM mcpbox.network_grants WHERE server_id = %s AND revoked_at IS NULL",
                    n.server)[0][0])
    a.until(lambda: (n.server.bytes, []) in a.told)
    assert not {i, j} & {e for e, _ in a.cancelled}
    assert "mcpbox_request_network_access" in str(gw.call("AUTHORISE", tool=n.tool, arguments=b"{}"))
    assert a.record(i)["_"] == "OK" == a.record(j)["_"]


def test_nobody_is_told_what_concerns_nobody(a, gw):
    """Without calls that may connect, the vault is not asked."""
    n, plain = Net(a, "*.example.org"), Net(a)
    i = plain.call(gw)
    before = len(a.fakes["vault"].seen)
    n.grant("*.example.org")
    plain.grant("a.example.org")
    time.sleep(0.5)
    assert sealed(a, GRANTS, before) == [] and a.told == []
    a.record(i)


def test_who_revokes_is_answered_when_the_sandbox_knows(a, gw, ctl):
    """Told 'done', an administrator can rely on it: the next connect is refused."""
    n = Net(a, "*.example.org")
    r = n.grant("*.example.org")
    i = n.call(gw)
    slow, answered, told = [], [], a.on_sandbox

    def on_sandbox(m):
        if m["_"] == "REGRANT":
            time.sleep(1)
            slow.append(time.monotonic())
        return told(m)
    a.on_sandbox = on_sandbox

    def act():
        m = ctl.call("ADMIN_ACTION", action="approval_revoke", id=str(r), body=b'{"reason":"x"}')
        answered.append((time.monotonic(), m["_"]))
    t = threading.Thread(target=act)
    t.start()
    t.join(patience(10))
    assert answered[0][1] == "ADMIN_JSON" and slow and answered[0][0] >= slow[0]
    assert (n.server.bytes, []) in a.told
    a.record(i)


@pytest.mark.parametrize("who", ["vault", "sandbox"])
def test_what_cannot_be_told_ends(a, gw, who):
    """It fails closed: else the call could go on to connect to what is granted
    no more. Others go on."""
    n, other, plain = Net(a, "*.example.org"), Net(a, "*.example.org"), Net(a)
    r = n.grant("*.example.org")
    other.grant("*.example.org")
    i, j, k = n.call(gw), other.call(gw), plain.call(gw)
    a.told.clear()
    told = a.on_sandbox

    def on_vault(m):
        if m["_"] == "SEAL_CONTEXT" and m["kind"] == GRANTS and m["execution"] == n.server.bytes:
            return "REFUSED", {"failure": FAILURES["BUSY"], "message": "no"}
        return a.honest_vault(m)

    def on_sandbox(m):
        if m["_"] == "REGRANT" and m["server"] == n.server.bytes:
            return "REFUSED", {"failure": FAILURES["FORBIDDEN"], "message": "no"}
        return told(m)
    if who == "vault":
        a.on_vault = on_vault
    else:
        a.on_sandbox = on_sandbox
    n.revoke(r)
    a.until(lambda: (i, FAILURES["REVOKED"]) in a.cancelled)
    assert not {j, k} & {e for e, _ in a.cancelled}
    for e in (i, j, k):
        a.record(e)


def test_a_vault_that_is_gone_ends_them_too(a, gw):
    n = Net(a, "*.example.org")
    r = n.grant("*.example.org")
    i = n.call(gw)
    a.on_vault = lambda m: a.fakes["vault"].drop() if m["_"] == "SEAL_CONTEXT" else a.honest_vault(m)
    n.revoke(r)
    a.until(lambda: (i, FAILURES["REVOKED"]) in a.cancelled)
    a.on_vault = a.honest_vault
    a.until(lambda: a.fakes["vault"].up.is_set())
    a.record(i)


def test_a_sandbox_that_comes_back_is_told(a, gw):
    """What changed while it was away."""
    n = Net(a, "*.example.org")
    r = n.grant("*.example.org")
    i = n.call(gw)
    a.named = [i]
    a.on_vault = lambda m: None if m["_"] == "SEAL_CONTEXT" and m["kind"] == GRANTS else a.honest_vault(m)
    n.revoke(r)
    time.sleep(0.2)
    a.told.clear()
    a.on_vault = a.honest_vault
    a.fakes["sandbox"].drop()
    a.until(lambda: (n.server.bytes, []) in a.told)
    a.named = []
    a.record(i)


# --- records ------------------------------------------------------------------


def test_a_record_of_connections(a, gw, ctl):
    n = Net(a, "api.example.org")
    n.grant("api.example.org")
    before = metrics(a)
    i = n.call(gw)
    assert a.record(i, network=json.dumps(REPORT).encode(), connections=3, net_refused=1, net_bytes=4096)["_"] == "OK"
    m = ctl.call("ADMIN_QUERY", what="execution", id=str(uuid.UUID(bytes=i)))
    assert m["_"] == "ADMIN_JSON" and json.loads(m["json"])["network"] == REPORT
    now = metrics(a)
    for name, more in (("mcpbox_call_connections_total", 3), ("mcpbox_call_connections_refused_total", 1),
                       ("mcpbox_call_network_bytes_total", 4096)):
        assert now[name] == before[name] + more, name


def metrics(a):
    with a.web() as w:
        text = w.call("METRICS_GET")["text"]
    text = text.decode() if isinstance(text, bytes) else text
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
            if line and line[0] != "#"}


@pytest.mark.parametrize("network", [b"\xff\xfe", b"[", b"x" * 30000, b"[" * 16000, b'{"a":1}', b"\0"],
                         ids=["bytes", "open", "long", "deep", "object", "nul"])
def test_what_is_no_report_is_kept_as_such(a, gw, network):
    n = Net(a)
    i, fine = n.call(gw), n.call(gw)
    assert a.record(i, network=network)["_"] == "OK" == a.record(fine)["_"]
    rows = dict(a.rows("SELECT id, network FROM mcpbox.executions WHERE id = ANY (%s)",
                       [uuid.UUID(bytes=i), uuid.UUID(bytes=fine)]))
    assert rows == {uuid.UUID(bytes=i): [{"verdict": "unreadable"}], uuid.UUID(bytes=fine): None}


def test_a_lost_row_comes_back_with_them(a):
    n = Net(a)
    from integration.calls.test_admind import intent
    i = uuid.uuid4().bytes
    assert a.record(i, DONE, intent=intent(n.version, n.hash), network=json.dumps(REPORT).encode())["_"] == "OK"
    assert a.rows("SELECT network, restored FROM mcpbox.executions WHERE id = %s", uuid.UUID(bytes=i)) == [
        (REPORT, True)]


# --- a confirmed call ---------------------------------------------------------


def test_a_confirmed_call_waits_for_what_changed_meanwhile(a, gw):
    """Its context is sealed behind its row, so it may come behind a REGRANT
    that it needs: it is told once more before the call may run."""
    n = Net(a, "*.example.org", confirm=1)
    n.grant("*.example.org")
    r = n.grant("x.example.org", 8443)
    m = gw.call("AUTHORISE", tool=n.tool, arguments=b"{}")
    assert m["_"] == "PENDING", m
    request = uuid.UUID(bytes=m["approval"])
    a.sql("SELECT mcpbox.decide_approval(id, true, hash, 'root', now(), '', 's') FROM mcpbox.approval_requests "
          "WHERE id = %s", request, user="mcpbox_app")

    def on_vault(m):
        if m["_"] != "SEAL_CONTEXT" or m["kind"] != TOOL:
            return a.honest_vault(m)
        n.revoke(r)
        # admind has heard of it once it asks for the REGRANT that follows. Its answer comes behind this one.
        peer, asked = a.fakes["vault"].peer, [(m["_request"], m)]
        while asked[-1][1]["_"] != "SEAL_CONTEXT" or len(asked) == 1:
            asked.append(peer.receive())
        for request, x in asked:
            name, fields = a.honest_vault(x)
            peer.send(name, request=request, **fields)
        return None
    a.on_vault = on_vault
    m = gw.call("AUTHORISE", tool=n.tool, arguments=b"{}", approval=request.bytes)
    assert m["_"] == "RUN_ID", m
    order = [s["_"] for s in a.fakes["sandbox"].seen if s.get("execution") == m["execution"]
             or s.get("server") == n.server.bytes]
    assert order[-2:] == ["HELD", "REGRANT"] or "REGRANT" in order[order.index("HELD"):], order
    assert a.told[-1] == (n.server.bytes, ["*.example.org"])
    a.record(m["execution"])
