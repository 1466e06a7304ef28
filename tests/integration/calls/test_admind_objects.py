"""admind alone, its peers played by the test: prompts, resources and templates on the wire."""
import hashlib
import json
import secrets
import uuid

import pytest

from harness.played.admind import FAILURES, failure, preimage
from harness.tlv import tlv
from database.test_limits_modules import version_with

TOOL, PROMPT, RESOURCE = 0, 1, 2
PYTHON = ((14, "python"), (15, "def main(): pass"))


pytestmark = pytest.mark.usefixtures("honest")


class Object:
    """An approved object of a server of its own."""

    def __init__(self, a, *fields):
        self.a, self.server_name = a, "s" + secrets.token_hex(5)
        self.server, self.id, self.version = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
        self.name = self.server_name + "__it"
        pre = preimage(self.server.bytes, self.id.bytes, self.server_name, "it")
        pre = pre.replace(tlv((14, "python")), b"").replace(tlv((15, "def main(): pass")), b"")
        self.pre = version_with(pre, *fields)
        self.hash = hashlib.sha256(self.pre).digest()
        request = uuid.uuid4()
        with a.pg.connect("mcpbox_app") as c:
            c.execute("SELECT mcpbox.create_server(%s, %s, '', 'x')", (self.server, self.server_name))
            c.execute("SELECT mcpbox.create_tool(%s, %s, 'x')", (self.version, self.pre))
            c.execute("SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')", (request, uuid.uuid4(), self.id))
            c.execute("SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 'seal')", (request, self.hash))

    def records(self):
        return self.a.rows("SELECT kind, state, outcome, failure FROM mcpbox.executions WHERE tool = %s "
                           "ORDER BY created_at", self.name)


def prompt(a, text="Hi {x}"):
    return Object(a, (14, "static"), (36, "prompt"), (39, '[{"name":"x","values":["1"]}]'), (40, text))


def resource(a, *more):
    return Object(a, (14, "static"), (36, "resource"), (37, "x://" + secrets.token_hex(8)), (40, "text"), *more)


def template(a):
    return Object(a, *PYTHON, (36, "template"), (37, f"x://{secrets.token_hex(8)}/{{v}}"), (39, '[{"name":"v"}]'))


def call(gw, o, method, **kw):
    return gw.call("AUTHORISE", tool=o.name, method=method, arguments=b"{}", **kw)


def test_the_method_must_fit_the_object(a, gw):
    made = {TOOL: Object(a, *PYTHON), PROMPT: prompt(a), RESOURCE: resource(a)}
    want = {TOOL: "UNKNOWN_TOOL", PROMPT: "UNKNOWN_PROMPT", RESOURCE: "UNKNOWN_RESOURCE"}
    a.on_check = lambda m: ("CHECK_OK", {"fields": b'{"messages":[]}' if m["_"] == "CHECK_RENDER" else b""})
    for kind, o in made.items():
        for method in want:
            m = call(gw, o, method)
            if kind == method:
                assert m["_"] in ("RUN_ID", "RESULT"), (kind, method, m)
            else:
                assert failure(m) == want[method], (kind, method, m)
    assert call(gw, template(a), RESOURCE)["_"] == "RUN_ID"
    for method in want:
        assert failure(gw.call("AUTHORISE", tool="no__such", method=method, arguments=b"{}")) == want[method]
        assert failure(gw.call("AUTHORISE", tool="", method=method, arguments=b"{}")) == want[method]
    # A management tool is a tool; other methods there are none.
    assert failure(gw.call("AUTHORISE", tool="mcpbox_list_servers", method=PROMPT, arguments=b"{}")) == "UNKNOWN_PROMPT"
    for method in (3, 255):
        assert failure(call(gw, made[TOOL], method)) == "INVALID_REQUEST"


def test_static_content_needs_neither_vault_nor_sandbox(a, gw):
    o, p = resource(a, (38, "text/plain")), prompt(a)
    asked = []

    def never(m):
        asked.append(m["_"])
        return ("REFUSED", {"failure": FAILURES["INTERNAL"], "message": "no"})

    a.on_check = lambda m: ("CHECK_OK", {"fields": b'{"messages":["m"]}' if m["_"] == "CHECK_RENDER" else b""})
    a.on_vault = a.on_sandbox = never
    m = call(gw, o, RESOURCE)
    assert m["_"] == "RESULT" and m["is_error"] == 0
    assert json.loads(m["body"]) == {"contents": [{"mimeType": "text/plain", "text": "text"}]}
    m = call(gw, p, PROMPT)
    assert json.loads(m["body"]) == {"description": "greets", "messages": ["m"]}
    for x in (o, p):
        a.until(lambda x=x: x.records() == [("management", "closed", "done", None)])
    assert "SEAL_CONTEXT" not in asked and "HELD" not in asked


def test_what_is_withdrawn_is_not_answered(a, gw):
    """Also what was remembered, and between the check and the row."""
    o = resource(a)

    def revoke(m):
        a.on_check = lambda m: ("CHECK_OK", {})
        a.sql("SELECT mcpbox.revoke_version(%s, '', 'x')", o.version)
        return ("CHECK_OK", {})

    # At the first call: a later one finds its arguments judged (decision 0053).
    a.on_check = revoke
    assert failure(call(gw, o, RESOURCE)) in ("REVOKED", "NOT_APPROVED")
    assert o.records() == []
    o = resource(a)
    assert call(gw, o, RESOURCE)["_"] == "RESULT"
    revoke(None)
    assert failure(call(gw, o, RESOURCE)) in ("REVOKED", "NOT_APPROVED")
    assert len(o.records()) == 1
    o = resource(a)
    assert call(gw, o, RESOURCE)["_"] == "RESULT"
    a.sql("SELECT mcpbox.delete_object(%s, 'resource', 'x')", o.id)
    assert failure(call(gw, o, RESOURCE)) in ("UNKNOWN_RESOURCE", "REVOKED")


def test_errors_of_prompts_are_errors(a, gw):
    p = prompt(a)
    found = b'[{"pointer":"/x","message":"is missing"}]'
    a.on_check = lambda m: ("CHECK_ERRORS", {"failure": FAILURES["INVALID_ARGUMENTS"], "summary": "bad", "json": found})
    m = call(gw, p, PROMPT)
    assert m["_"] == "REFUSED" and failure(m) == "INVALID_PARAMS" and m["message"] == "bad"
    assert json.loads(b"{" + m["data"] + b"}") == {"errors": json.loads(found)}
    # a checker that dies, or says what it never says, costs this call only
    for answer in (("CHECK_OK", {"fields": b""}), ("CHECK_OK", {"fields": b"x"})):
        a.on_check = lambda m, answer=answer: answer if m["_"] == "CHECK_RENDER" else ("CHECK_OK", {})
        assert call(gw, p, PROMPT)["_"] == "REFUSED"
    assert p.records() == []


def test_capabilities_are_asked_before_anything_else(a, gw):
    o = Object(a, *PYTHON, (43, "elicitation"), (43, "elicitation.url"), (43, "roots"), (43, "sampling.tools"))
    asked = []
    a.on_check = lambda m: asked.append(m) or ("CHECK_OK", {})
    for declared in (0, 1, 1 | 2 | 16, 4 | 8 | 16):
        m = call(gw, o, TOOL, declared=declared)
        assert failure(m) == "CAPABILITY_REQUIRED"
        assert json.loads(b"{" + m["data"] + b"}") == {"requiredCapabilities": {
            "elicitation": {"form": {}, "url": {}}, "roots": {}, "sampling": {"tools": {}}}}
    assert not asked and o.records() == []
    assert call(gw, o, TOOL, declared=1 | 2 | 8 | 16)["_"] == "RUN_ID"


def test_four_lists_in_order(a, gw):
    t, p, r, f = Object(a, *PYTHON, (43, "roots")), prompt(a), resource(a, (42, 5), (10, '{ "k": 1 }')), template(a)
    bare = resource(a, (42, 7), (10, "{ }"))
    got, items = gw.start("CATALOGUE_GET", permission_set="local"), []
    while True:
        i, m = gw.receive()
        if m["_"] == "CATALOGUE_CHANGED":
            gw.send("OK", request=i)
        elif i == got and m["_"] == "CATALOGUE_ITEM":
            items.append(m)
        elif i == got:
            break
    assert m["count"] == len(items)
    assert [x["list"] for x in items] == sorted(x["list"] for x in items)
    for n in range(4):
        users = [x["name"] for x in items if x["list"] == n and not x["name"].startswith("mcpbox_")]
        assert users == sorted(users)
    by = {x["name"]: x for x in items}
    for n, o in enumerate((t, p, r, f)):
        x = by[o.name]
        assert x["list"] == n and x["version"] == o.hash
        assert x["uri"] == ("" if n < 2 else json.loads(x["json"])["uri" if n == 2 else "uriTemplate"])
    assert set(json.loads(by[t.name]["json"])) == {"name", "description", "inputSchema"}
    assert json.loads(by[p.name]["json"])["arguments"] == [{"name": "x", "values": ["1"]}]
    assert json.loads(by[r.name]["json"])["_meta"] == {"mcpbox/ttlMs": 5, "k": 1}
    assert json.loads(by[bare.name]["json"])["_meta"] == {"mcpbox/ttlMs": 7}
    assert by["mcpbox_guide"]["version"] == bytes(32)


def test_gateways_are_told_which_lists_changed(a):
    with a.gateway() as g:
        g.call("GW_ATTACH")
        assert {g.receive()[1]["_"], g.receive()[1]["_"]} == {"GW_ACCESS", "GW_ENDPOINTS"}
        for make, mask in ((lambda: Object(a, *PYTHON), 1), (lambda: prompt(a), 2), (lambda: resource(a), 4),
                           (lambda: template(a), 8)):
            o = make()
            i, m = g.receive()
            assert m["_"] == "CATALOGUE_CHANGED" and m["lists"] == mask, m
            g.send("OK", request=i)
            a.sql("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", o.server)
            i, m = g.receive()
            assert m["_"] == "CATALOGUE_CHANGED" and m["lists"] == mask, m
            g.send("OK", request=i)
        # what nobody sees tells nobody
        empty = uuid.uuid4()
        a.sql("SELECT mcpbox.create_server(%s, %s, '', 'x')", empty, "s" + secrets.token_hex(5))
        a.sql("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", empty)
        with pytest.raises(TimeoutError):
            g.receive(0.3)


@pytest.mark.parametrize("payload", ["", "x", "5", "5 ", "5 x", " 3", "-1 1", "99999999999999999999999 1", "7 0", "5 1 1"])
def test_odd_notifications_are_nothing(a, gw, payload):
    with a.pg.connect("postgres") as c:
        c.autocommit = True
        c.execute("SELECT pg_notify('mcpbox_catalogue', %s)", (payload,))
    assert gw.call("AUTHORISE", tool="mcpbox_list_servers", arguments=b"{}")["_"] == "RESULT"
