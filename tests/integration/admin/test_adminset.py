"""What an administrator writes: limits of servers, modules and grants. admind
alone over a real PostgreSQL; every peer of it is played by the test."""
import base64
import hashlib
import json
import secrets
import struct
import uuid

import pytest

from harness.ipc import Closed
from harness.patience import patience
from harness.played.admind import failure, preimage
from harness.tlv import tlv, untlv

TAGS = {"timeout_ms": 8, "memory_bytes": 9, "processes": 10, "tmp_bytes": 11, "result_bytes": 12,
        "cpu_ms": 16, "files": 17, "file_bytes": 18, "stdout_bytes": 19, "log_rate": 20,
        "progress_rate": 21}
VALUES = {"timeout_ms": 1234, "memory_bytes": 50331648, "processes": 7, "tmp_bytes": 70000,
          "result_bytes": 2048, "cpu_ms": 900, "files": 40, "file_bytes": 5000, "stdout_bytes": 3000,
          "argument_bytes": 100, "log_rate": 5, "progress_rate": 6, "code_bytes": 2000}


@pytest.fixture
def ctl(a):
    with a.ctl() as c:
        yield c


@pytest.fixture
def web(a):
    with a.web() as w:
        yield w


def login(a, role):
    digest = hashlib.sha256(secrets.token_bytes(64)).digest()
    a.logins[digest] = (role + "-person", role)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()      # as admind-http shows it


def tool(a, **kw):
    """A fresh approved tool: (exposed name, server id, tool id)."""
    name = "s" + secrets.token_hex(5)
    version, _ = a.approved_tool(name, **kw)
    row = a.rows("SELECT server_id, tool_id FROM mcpbox.tool_versions WHERE id = %s", version)[0]
    return name + "__greet", row[0], row[1]


def limits(peer, server, **kw):
    """(object, its bytes' SHA-256)"""
    m = peer.call("ADMIN_QUERY", what="limits", id=str(server), limit=1, **kw)
    assert m["_"] == "ADMIN_JSON", m
    return json.loads(m["json"]), hashlib.sha256(m["json"]).digest()


def act(peer, action, where="", body=None, **kw):
    return peer.call("ADMIN_ACTION", action=action, id=where,
                     body=body if isinstance(body, bytes) else json.dumps(body or {}).encode(), **kw)


def put(peer, server, values, seen=None, **kw):
    if seen is None:
        seen = limits(peer, server, **kw)[1]
    return act(peer, "server_limits_set", str(server), values if isinstance(values, bytes) else {"limits": values},
               seen=seen, **kw)


def material(a, m):
    return untlv(a.held[m["execution"]]["context"][len("sealed:"):])


def test_a_call_gets_its_servers_limits(a, gw, ctl):
    """Set after the first call, so that nothing remembered is used for it."""
    name, server, _ = tool(a)
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    assert m["timeout_ms"] == 30000 and not {t for t, _ in material(a, m)} & (set(TAGS.values()) - {8})
    assert put(ctl, server, VALUES)["_"] == "ADMIN_JSON"
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    assert m["_"] == "RUN_ID" and m["timeout_ms"] == VALUES["timeout_ms"], m
    sent = dict(material(a, m))
    for n, tag in TAGS.items():
        assert sent[tag] == struct.pack(">Q", VALUES[n]), n
    # and it is gone again when it is
    assert put(ctl, server, {})["_"] == "ADMIN_JSON"
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    assert m["timeout_ms"] == 30000 and 9 not in dict(material(a, m))


def test_a_versions_own_limit_comes_first(a, gw, ctl):
    name, server, _ = tool(a, timeout=5000)
    assert put(ctl, server, {"timeout_ms": 1000, "memory_bytes": 33554432})["_"] == "ADMIN_JSON"
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    assert m["timeout_ms"] == 5000
    assert dict(material(a, m))[9] == struct.pack(">Q", 33554432)


def test_too_long_arguments_are_refused_with_the_limit(a, gw, ctl):
    name, server, _ = tool(a)
    fits, over = (b'{"a":"' + b"x" * n + b'"}' for n in (92, 93))
    assert len(fits) == 100
    assert gw.call("AUTHORISE", tool=name, arguments=over)["_"] == "RUN_ID"
    assert put(ctl, server, {"argument_bytes": 100})["_"] == "ADMIN_JSON"
    assert gw.call("AUTHORISE", tool=name, arguments=fits)["_"] == "RUN_ID"
    m = gw.call("AUTHORISE", tool=name, arguments=over)
    assert m["_"] == "RESULT" and m["is_error"] == 1 and failure(m) == "LIMIT", m
    said = json.loads(m["body"])["content"][0]["text"]
    assert "argument_bytes" in said and "100" in said and "101" in said
    # raised again: what was remembered of the old one refuses nothing
    assert put(ctl, server, {"argument_bytes": 101})["_"] == "ADMIN_JSON"
    assert gw.call("AUTHORISE", tool=name, arguments=over)["_"] == "RUN_ID"


# --- who may ----------------------------------------------------------------


def test_only_an_administrator_sets_limits(a, web):
    _, server, _ = tool(a)
    seen = limits(web, server, token=login(a, "viewer"))[1]
    for role, said in (("viewer", "FORBIDDEN"), ("reviewer", "FORBIDDEN"), ("", "FORBIDDEN"),
                       ("Administrator", "FORBIDDEN")):
        m = put(web, server, {"files": 20}, seen, token=login(a, role))
        assert m["_"] == "REFUSED" and failure(m) == said, (role, m)
    for token in ("", "x" * 43, secrets.token_urlsafe(32)):
        m = put(web, server, {"files": 20}, seen, token=token)
        assert m["_"] == "REFUSED" and failure(m) == "UNAUTHENTICATED"
    assert not a.rows("SELECT 1 FROM mcpbox.server_limits WHERE server_id = %s", server)
    m = put(web, server, {"files": 20}, seen, token=login(a, "administrator"))
    assert m["_"] == "ADMIN_JSON" and json.loads(m["json"])["limits"]["files"] == 20
    assert json.loads(m["json"])["updated_by"] == "administrator-person"
    assert a.rows("SELECT actor FROM mcpbox.audit_log WHERE action = 'server_limits_set' "
                  "ORDER BY seq DESC LIMIT 1") == [("administrator-person",)]


def setting(peer, value, **kw):
    return peer.call("ADMIN_ACTION", action="settings_set", id="confirm_destructive",
                     body=json.dumps({"value": value}).encode(), **kw)


def test_actions_are_for_their_roles(a, web, ctl):
    for role, said in (("viewer", "FORBIDDEN"), ("reviewer", "FORBIDDEN"), ("root", "FORBIDDEN"), ("", "FORBIDDEN")):
        m = setting(web, "on", token=login(a, role))
        assert m["_"] == "REFUSED" and failure(m) == said, (role, m)
    for token in ("", "x" * 43, secrets.token_urlsafe(32)):
        assert failure(setting(web, "on", token=token)) == "UNAUTHENTICATED"
    assert not a.rows("SELECT 1 FROM mcpbox.settings WHERE key = 'confirm_destructive'")
    m = setting(web, "on", token=login(a, "administrator"))
    assert json.loads(m["json"])["updated_by"] == "administrator-person"
    # root's name comes from the socket: a login that is called root changes nothing of that
    assert json.loads(setting(ctl, "off")["json"])["updated_by"] == "root"


@pytest.mark.parametrize("fields", [
    {"action": "nothing"}, {"action": ""}, {"action": "settings_set; --"}, {"id": "x" * 512}, {"key": "a b"},
    {"key": "k" * 65}, {"body": b"{\0}"}, {"body": b"\xff"}, {"body": b""}, {"body": b"[]"}, {"body": b"{"}])
def test_malformed_actions(a, ctl, fields):
    m = ctl.call("ADMIN_ACTION", **{"action": "settings_set", "id": "confirm_destructive", "body": b"{}", **fields})
    assert m["_"] == "REFUSED" and failure(m) == "INVALID_PARAMS", m


@pytest.mark.parametrize("who", ["gateway", "tunnel"])
@pytest.mark.parametrize("name", ["ADMIN_ACTION", "EXPORT", "IMPORT"])
def test_a_gateway_cannot_even_say_it(a, who, name):
    with a.gateway("local" if who == "gateway" else who) as g:
        g.start(name)
        with pytest.raises(Closed):
            while True:
                g.receive(patience(5))


def test_modules_are_uid_0s(a, web):
    name, _, _ = tool(a)
    for action, body in (("module_add", {"name": "evil", "version": "1", "digest": bytes(32).hex()}),
                         ("module_withdraw", {"name": "evil", "version": "1"}),
                         ("module_grant", {"tool": name, "name": "evil"})):
        for role in ("administrator", "root", ""):
            m = act(web, action, body=body, token=login(a, role))
            assert m["_"] == "REFUSED" and failure(m) == "FORBIDDEN", (action, role, m)
        assert failure(act(web, action, body=body)) == "UNAUTHENTICATED"
    assert not a.rows("SELECT 1 FROM mcpbox.modules WHERE name = 'evil'")


def test_a_login_names_a_tool_by_its_id_alone(a, web, ctl):
    """uid 0 may say the name that clients see; an address of REST holds an id."""
    name, _, tool_id = tool(a)
    module = "m" + secrets.token_hex(4)
    assert module_set(ctl, 1, module, version="1.0", digest=secrets.token_bytes(32))["_"] == "ADMIN_JSON"
    assert module_set(ctl, 3, module, tool=name)["_"] == "ADMIN_JSON"
    token = login(a, "reviewer")
    m = act(web, "module_revoke", f"{name}/{module}", token=token)
    assert m["_"] == "REFUSED" and failure(m) == "NOT_FOUND", m
    m = act(web, "module_revoke", f"{tool_id}/{module}", token=token)
    assert json.loads(m["json"]) == {"tool_id": str(tool_id), "revoked": f"{module}==1.0"}


# --- what ---------------------------------------------------------------------


def test_limits_beyond_their_bounds(a, ctl):
    _, server, _ = tool(a)
    seen = limits(ctl, server)[1]
    good = b'{"limits":{"files":20}}'
    for bad in ({"timeout_ms": 0}, {"timeout_ms": 600001}, {"memory_bytes": 2**40}, {"files": 15},
                {"code_bytes": 100001}, {"timeout_ms": 2**64 - 1}, {"": 100}, {"limits": 100}, {"server_id": 1},
                {"updated_by": "root"}, {"files": "20"}, {"files": 20.5}, {"files": True}, {"files": []}, {"files": {}},
                [], ["files"], None, 20, "files", b'{"limits":{"files":20,"files":20}}', b"{}",
                good * 2, good[:-1], good + b"\0", b"\0"):
        m = put(ctl, server, bad, seen)
        assert m["_"] == "REFUSED" and failure(m) == "INVALID_PARAMS", bad
    assert limits(ctl, server)[1] == seen


def test_two_administrators_at_once(a, ctl, web):
    _, server, _ = tool(a)
    token = login(a, "administrator")
    seen = limits(ctl, server)[1]
    assert put(ctl, server, {"files": 20}, seen)["_"] == "ADMIN_JSON"
    m = put(web, server, {"files": 4000}, seen, token=token)
    assert m["_"] == "REFUSED" and failure(m) == "HASH_MISMATCH"
    assert limits(ctl, server)[0]["limits"]["files"] == 20
    m = put(ctl, uuid.uuid4(), {}, seen)
    assert m["_"] == "REFUSED" and failure(m) == "NOT_FOUND"
    # without saying what was read
    m = act(ctl, "server_limits_set", str(server), {"limits": {}})
    assert m["_"] == "REFUSED" and failure(m) == "HASH_REQUIRED"
    assert limits(ctl, server)[0]["limits"]["files"] == 20


def test_limits_by_name_and_by_id(a, ctl):
    name, server, _ = tool(a)
    assert limits(ctl, server) == limits(ctl, name.split("__")[0])
    for nobody in ("", "no_such", str(uuid.uuid4()), "' OR true --", "x" * 511):
        m = ctl.call("ADMIN_QUERY", what="limits", id=nobody, limit=1)
        assert m["_"] == "REFUSED" and failure(m) == "NOT_FOUND", nobody
    m = ctl.call("ADMIN_QUERY", what="limits", id="x" * 512, limit=1)
    assert m["_"] == "REFUSED" and failure(m) == "INVALID_PARAMS"


ACTIONS = {1: "module_add", 2: "module_withdraw", 3: "module_grant", 4: "module_revoke"}


def module_set(peer, action, name, tool=None, digest=None, **kw):
    """1 record, 2 withdraw, 3 grant, 4 revoke."""
    if digest is not None:
        kw["digest"] = digest.hex()
    if action == 4:
        return act(peer, ACTIONS[4], f"{tool}/{name}", kw)
    return act(peer, ACTIONS.get(action, str(action)), body={"name": name, **({} if tool is None else {"tool": tool}),
                                                             **kw})


def test_modules_recorded_granted_taken_back(a, ctl, gw):
    name, server, tool_id = tool(a)
    module, digest = "m" + secrets.token_hex(4), secrets.token_bytes(32)

    def ask(action, **kw):
        return module_set(ctl, action, module, **kw)

    assert failure(ask(3, tool=name)) == "NOT_FOUND"
    assert ask(1, version="1.0", digest=digest, files=2, bytes=10)["_"] == "ADMIN_JSON"
    assert failure(ask(1, version="1.0", digest=bytes(32))) == "CONFLICT"
    assert failure(ask(3, tool="no_such__tool")) == "NOT_FOUND"
    assert ask(3, tool=name)["_"] == "ADMIN_JSON"
    listed = json.loads(ctl.call("ADMIN_QUERY", what="modules", limit=200)["json"])["items"]
    mine = next(m for m in listed if m["name"] == module)
    assert mine["digest"] == digest.hex() and mine["tools"] == [name] and mine["state"] == "available"
    # a version with it, approved: it runs, until the grant is gone
    pre = preimage(server.bytes, tool_id.bytes, name.split("__")[0])
    lock = tlv((17, f"{module} 1.0 {digest.hex()}"))
    pre = pre.replace(tlv((15, "def main(): pass")), tlv((15, "def main(): pass")) + lock)
    request, version = uuid.uuid4(), uuid.uuid4()
    a.sql("SELECT mcpbox.add_version(%s, %s, '', 'x')", version, pre)
    a.sql("SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')", request, uuid.uuid4(), tool_id)
    a.sql("SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', 'seal')", request,
          hashlib.sha256(pre).digest())
    assert gw.call("AUTHORISE", tool=name, arguments=b"{}")["_"] == "RUN_ID"
    assert ask(4, tool=name)["_"] == "ADMIN_JSON"
    for _ in range(2):  # remembered or read anew
        m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
        assert m["_"] == "RESULT" and failure(m) == "MISSING_GRANT", m
        said = json.loads(m["body"])["content"][0]["text"]
        assert module in said and "mcpbox_request_module" in said, said
    assert ask(3, tool=str(tool_id), version="1.0")["_"] == "ADMIN_JSON"
    assert gw.call("AUTHORISE", tool=name, arguments=b"{}")["_"] == "RUN_ID"
    assert ask(2, version="1.0")["_"] == "ADMIN_JSON"
    assert failure(gw.call("AUTHORISE", tool=name, arguments=b"{}")) == "MISSING_GRANT"
    actions = [r[0] for r in a.rows("SELECT action FROM mcpbox.audit_log WHERE actor = 'root' AND "
                                    "action LIKE 'module%%' ORDER BY seq DESC LIMIT 5", user="postgres")]
    assert actions == ["module_withdrawn", "module_granted", "module_revoked", "module_granted", "module_added"]


@pytest.mark.parametrize("fields", [
    {"action": 0}, {"action": 5}, {"action": 255}, {"action": 1, "files": 2**63}, {"action": 1, "bytes": 2**64 - 1},
    {"action": 1}, {"action": 1, "version": "1"}, {"action": 1, "version": "1", "digest": b""},
    {"action": 1, "version": "1", "digest": bytes(31)}, {"action": 1, "version": "1", "digest": bytes(33)},
    {"action": 1, "name": "", "version": "1", "digest": bytes(32)},
    {"action": 1, "name": "a/b", "version": "1", "digest": bytes(32)},
    {"action": 1, "name": "a", "version": "", "digest": bytes(32)},
    {"action": 1, "name": "a" * 129, "version": "1", "digest": bytes(32)},
    {"action": 1, "version": "1", "digest": bytes(32), "files": 2**63},
    {"action": 1, "version": "1", "digest": bytes(32), "bytes": 2**64 - 1},
    {"action": 2, "name": "never", "version": "1"}, {"action": 4, "name": "never", "tool": ""}])
def test_nonsense_about_modules(a, ctl, fields):
    before = a.rows("SELECT count(*) FROM mcpbox.modules")
    m = module_set(ctl, **{"name": "a", **fields})
    assert m["_"] == "REFUSED" and failure(m) in ("INVALID_PARAMS", "NOT_FOUND"), m
    assert a.rows("SELECT count(*) FROM mcpbox.modules") == before


@pytest.mark.parametrize("body", [b"", b" ", b"[]", b"{", b"{}{}", b'{"value":"on"}\0', b"\xff", b'"value"'])
def test_a_body_that_is_no_object_changes_nothing(a, ctl, body):
    before = a.rows("SELECT * FROM mcpbox.settings ORDER BY key")
    m = ctl.call("ADMIN_ACTION", action="settings_set", id="confirm_destructive", body=body)
    assert m["_"] == "REFUSED" and failure(m) in ("INVALID_PARAMS", "INTERNAL") and m["message"], m
    assert failure(m) == "INVALID_PARAMS", m
    assert a.rows("SELECT * FROM mcpbox.settings ORDER BY key") == before
