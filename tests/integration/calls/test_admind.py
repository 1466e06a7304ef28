"""admind alone: its peers are played by the test, honest or not, PostgreSQL is
real and dies when the test says so."""
import base64
import contextlib
import hashlib
import json
import os
import secrets
import threading
import time
import uuid

import pytest

from harness.ipc import Closed
from harness.patience import patience
from harness.pg import Postgres
from harness.played.admind import DONE, FAILED, FAILURES, KILLED, REFUSED, Admind, failure, preimage
from harness.tlv import tlv, untlv

#: Seconds that admind waits for the vault (ASK_MS) and for a statement
#: (DB_STATEMENT_TIMEOUT_MS): a test is done before.
VAULT_WAITS_S, STATEMENT_S = 5, 8
CANARY = "CANARY-" + secrets.token_hex(16)


@pytest.fixture(autouse=True)
def honest(request):
    yield
    if "a" in request.fixturenames:
        x = request.getfixturevalue("a")
        x.on_check = lambda m: ("CHECK_OK", {})
        x.on_vault, x.on_sandbox = x.honest_vault, x.honest_sandbox


@pytest.fixture
def ctl(a):
    with a.ctl() as c:
        yield c


def tool(a, **kw):
    """A fresh approved tool: (exposed name, version id, hash)."""
    server = "s" + secrets.token_hex(5)
    version, digest = a.approved_tool(server, **kw)
    return f"{server}__{kw.get('name', 'greet')}", version, digest


def execution(a, i):
    r = a.rows("SELECT state, outcome, failure FROM mcpbox.executions WHERE id = %s",
               uuid.UUID(bytes=i))
    assert len(r) <= 1
    return r[0] if r else None


def catalogue(gw):
    """(items by name in order, END)"""
    r, items = gw.start("CATALOGUE_GET", permission_set="local"), []
    while True:
        got, m = gw.receive()
        if m["_"] == "CATALOGUE_CHANGED":
            gw.send("OK", request=got)
        elif got == r and m["_"] == "CATALOGUE_ITEM":
            items.append((m["name"], m["json"]))
        elif got == r:
            return items, m


def query(peer, what, **kw):
    m = peer.call("ADMIN_QUERY", what=what, **kw)
    assert m["_"] == "ADMIN_JSON", m
    return json.loads(m["json"])


# --- who is who -----------------------------------------------------------


def test_the_socket_decides(a):
    with a.gateway("tunnel") as t:
        m = t.call("AUTHENTICATE")
        assert m["_"] == "REFUSED" and failure(m) == "UNAUTHENTICATED"
        m = t.call("AUTHORISE", tool="mcpbox_list_servers", arguments=b"{}", credential="local")
        assert failure(m) == "UNAUTHENTICATED"
        m = t.call("CATALOGUE_GET", permission_set="local")
        assert failure(m) == "FORBIDDEN"
        assert t.call("GW_ATTACH")["listener"] == "tunnel"


@pytest.mark.parametrize("who, message, fields", [
    ("gateway", "ADMIN_QUERY", {"what": "audit"}), ("gateway", "DECISION_STORE", {"approved": 1}),
    ("gateway", "RECORD", {"outcome": 1}), ("gateway", "DOCTOR", {}),
    ("gateway", "APPROVAL_GET", {}), ("gateway", "CONTENT_GET", {}),
    ("web", "AUTHORISE", {"tool": "mcpbox_list_servers"}), ("web", "ADMIN_STORE", {}),
    ("web", "DECISION_STORE", {"approved": 1}), ("web", "SECRET_STORE", {}),
    ("ctl", "DECISION_STORE", {"approved": 1}), ("ctl", "RECORD", {"outcome": 1})])
def test_a_role_says_only_what_its_socket_may(a, who, message, fields):
    before = a.rows("SELECT count(*) FROM mcpbox.audit_log")
    with getattr(a, who)() as p:
        p.start(message, **fields)
        assert p.closed()
    assert a.rows("SELECT count(*) FROM mcpbox.audit_log") == before


def test_other_users_are_not_let_in(a):
    from harness.ipc import Peer, socket_as
    for user, sock in (("stranger", "gateway-local"), ("adminweb", "ctl"), ("gwlocal", "ctl"),
                       ("gwtunnel", "gateway-local"), ("adminweb", "gateway-tunnel")):
        with pytest.raises((OSError, Closed, AssertionError)):
            Peer(a.table, socket_as(a.uid(user), [a.uid("admind")],
                                    a.run("admind", sock + ".sock")))


def test_local_token():
    x = Admind(["local_token_file " + "/nonexistent"])
    try:
        assert x.migrate().returncode == 0
        x.proc = None
        with open(x.path("token"), "w", encoding="ascii") as f:
            f.write("a-token-of-good-length\n")
        os.chmod(x.path("token"), 0o644)
        conf = open(x.path("conf"), encoding="ascii").read()
        with open(x.path("conf"), "w", encoding="ascii") as f:
            f.write(conf.replace("/nonexistent", x.path("token")))
        for n in ("check", "vault", "sandbox"):
            x.fake(n)
        x.start()
        with x.gateway() as g:
            for wrong in ("", "a-token-of-good-lengt", "a-token-of-good-length\n", "x" * 22):
                m = g.call("AUTHENTICATE", credential=wrong)
                assert failure(m) == "UNAUTHENTICATED"
                m = g.call("AUTHORISE", credential=wrong, tool="mcpbox_list_servers",
                           arguments=b"{}")
                assert failure(m) == "UNAUTHENTICATED"
            assert g.call("AUTHENTICATE",
                          credential="a-token-of-good-length")["principal"] == "local"
    finally:
        x.close()


# --- schema -----------------------------------------------------------------


def test_starts_only_on_its_own_schema():
    pg = Postgres(empty=True)
    pg.start()
    pg.roles()
    x = Admind(pg=pg)
    try:
        x.start(lives=False)
        x.until(lambda: x.proc.poll() is not None)
        assert x.proc.returncode == 1 and "run mcpbox-admind -m" in x.logs()
        assert x.migrate().returncode == 0
        with x.pg.connect("postgres") as c:
            have = c.execute("SELECT max(version) FROM mcpbox.schema_migrations").fetchone()[0]
        x.sql("INSERT INTO mcpbox.schema_migrations VALUES (%s, 'later', %s)", have + 1, bytes(32))
        before = len(x.logs())
        x.start(lives=False)
        x.until(lambda: x.proc.poll() is not None)
        assert f"schema is {have + 1}, this program's is {have}" in x.logs()[before:]
    finally:
        x.close()
        pg.close()


# --- the golden path and its refusals -----------------------------------------


def test_a_call_is_authorised_held_and_recorded(a, gw):
    name, version, digest = tool(a, code=f"def main():\n    return '{CANARY}'\n", timeout=1234)
    arguments = b'{"a": "\\u00e9 \xc3\xa9"}'
    m = gw.call("AUTHORISE", tool=name, arguments=arguments, client="c 1", protocol="2025-11-25",
                capabilities=b"{}")
    assert m["_"] == "RUN_ID" and m["timeout_ms"] == 1234
    i = m["execution"]
    assert execution(a, i) == ("open", None, None)
    held = a.held[i]
    assert held["listener"] == 1
    material = dict(untlv(held["context"][len("sealed:"):]))
    assert hashlib.sha256(material[1]).digest() == digest and material[2] == b"seal"
    assert material[7] == hashlib.sha256(arguments).digest()
    # the check saw the stored schema's bytes and the arguments' own
    asked = [x for x in a.fakes["check"].seen if x["_"] == "CHECK_ARGUMENTS"][-1]
    assert asked["schema_arguments"] == b'{"type":"object"}' + arguments
    assert asked["schema_len"] == 17
    assert a.record(i, out=b"hello\n", result=b'{"content":[1]}')["_"] == "OK"
    row = a.rows("SELECT state, outcome, stdout, result, arguments, args_sha256, principal, "
                 "version_id, version_hash, client, delivered FROM mcpbox.executions "
                 "WHERE id = %s", uuid.UUID(bytes=i))[0]
    assert row == ("closed", "done", "hello\n", '{"content":[1]}', arguments.decode(),
                   hashlib.sha256(arguments).digest(), "local", version, digest, "c 1", True)
    # a repetition is acknowledged and changes nothing
    assert a.record(i, FAILED, "EXCEPTION")["_"] == "OK"
    assert execution(a, i) == ("closed", "done", None)
    assert CANARY not in str([gw.hello]) and CANARY not in a.logs()


def test_a_gateway_never_gets_code(a):
    name, _, _ = tool(a, code=f"x = '{CANARY}'\ndef main(): pass")
    with a.gateway() as g:
        got = b""
        items, _ = catalogue(g)
        for _, j in items:
            got += j
        m = g.call("AUTHORISE", tool=name, arguments=b"{}")
        got += repr(m).encode()
        assert any(n == name for n, _ in items) and CANARY.encode() not in got
        a.record(m["execution"], REFUSED, "KILLED")


def test_invalid_arguments_say_all_errors(a, gw):
    name, _, _ = tool(a)
    before = a.rows("SELECT count(*) FROM mcpbox.executions")
    a.on_check = lambda m: ("CHECK_ERRORS", {
        "failure": FAILURES["INVALID_ARGUMENTS"], "summary": "2 errors",
        "json": b'[{"pointer":"/a","message":"one"},{"pointer":"/b","message":"two"}]'})
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    assert m["_"] == "RESULT" and m["is_error"] == 1 and failure(m) == "INVALID_ARGUMENTS"
    body = json.loads(m["body"])
    assert body["isError"] and all(w in body["content"][0]["text"] for w in ("one", "two"))
    assert a.rows("SELECT count(*) FROM mcpbox.executions") == before


def test_unknown_stopped_unapproved_revoked(a, gw):
    assert failure(gw.call("AUTHORISE", tool="no__such", arguments=b"{}")) == "UNKNOWN_TOOL"
    assert failure(gw.call("AUTHORISE", tool="mcpbox_no", arguments=b"{}")) == "UNKNOWN_TOOL"
    assert failure(gw.call("AUTHORISE", tool="x" * 200, arguments=b"{}")) == "UNKNOWN_TOOL"
    assert failure(gw.call("AUTHORISE", tool="", arguments=b"{}")) == "UNKNOWN_TOOL"
    name, version, _ = tool(a)
    server = a.rows("SELECT server_id FROM mcpbox.tool_versions WHERE id = %s", version)[0][0]
    a.sql("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", server)
    assert failure(gw.call("AUTHORISE", tool=name, arguments=b"{}")) == "STOPPED"
    a.sql("SELECT mcpbox.set_server_status(%s, 'running', 'x')", server)
    a.sql("SELECT mcpbox.revoke_version(%s, '', 'x')", version)
    assert failure(gw.call("AUTHORISE", tool=name, arguments=b"{}")) == "REVOKED"
    draft = uuid.uuid4()
    a.sql("SELECT mcpbox.create_tool(%s, %s, 'x')", uuid.uuid4(), preimage(
        server.bytes, draft.bytes, name.split("__")[0], "other"))
    m = gw.call("AUTHORISE", tool=name.split("__")[0] + "__other", arguments=b"{}")
    assert failure(m) == "NOT_APPROVED"


def test_revocation_between_check_and_intent_wins(a, gw):
    name, version, _ = tool(a)

    def check(m):
        a.sql("SELECT mcpbox.revoke_version(%s, '', 'x')", version)
        return "CHECK_OK", {}

    a.on_check = check
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    assert m["_"] == "REFUSED" and failure(m) == "REVOKED"
    assert not a.rows("SELECT 1 FROM mcpbox.executions WHERE version_id = %s", version)


def newer_version(a, name, version, code):
    """Another approved version of the tool; the one before serves no more."""
    server, t = a.rows("SELECT server_id, tool_id FROM mcpbox.tool_versions WHERE id = %s",
                       version)[0]
    pre = preimage(server.bytes, t.bytes, name.split("__")[0], code=code)
    request, new = uuid.uuid4(), uuid.uuid4()
    a.sql("SELECT mcpbox.add_version(%s, %s, '', 'x')", new, pre)
    a.sql("SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')", request, uuid.uuid4(), t)
    a.sql("SELECT mcpbox.decide_approval(%s, true, %s, 'root', now(), '', %s)", request,
          hashlib.sha256(pre).digest(), b"seal")
    return new, pre


def checks(a):
    """How often arguments were judged so far."""
    return len([x for x in a.fakes["check"].seen if x["_"] == "CHECK_ARGUMENTS"])


def test_a_remembered_version_is_asked_for_again(a, gw):
    """The second call knows the version from the first. Another one comes to
    serve after the call looked, before its row: the row is not made, and the
    call runs what serves now, with its arguments judged by that schema."""
    name, version, _ = tool(a)
    a.record(gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"])
    made, before = [], checks(a)

    def check(m):
        if not made:
            made.append(newer_version(a, name, version, "def main(): return 'newer'"))
        return "CHECK_OK", {}

    a.on_check = check
    # not {} again: those are known to be valid (test_verdicts.py)
    m = gw.call("AUTHORISE", tool=name, arguments=b'{"n":2}')
    assert m["_"] == "RUN_ID", m
    new, pre = made[0]
    material = dict(untlv(a.held[m["execution"]]["context"][len("sealed:"):]))
    assert material[1] == pre and checks(a) == before + 2
    assert a.rows("SELECT version_id FROM mcpbox.executions WHERE id = %s",
                  uuid.UUID(bytes=m["execution"])) == [(new,)]
    a.record(m["execution"])


def test_a_remembered_limit_is_asked_for_again(a, gw):
    """Nothing tells admind that an administrator changed a server's limits;
    the intent's INSERT does."""
    name, version, _ = tool(a)
    server = a.rows("SELECT server_id FROM mcpbox.tool_versions WHERE id = %s", version)[0][0]
    asked = []
    for memory in (100 << 20, 200 << 20, None):
        m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
        a.record(m["execution"])
        seen = hashlib.sha256(a.rows("SELECT mcpbox.server_limits_json(%s)", str(server))[0][0]
                              .encode()).digest()
        a.sql("SELECT mcpbox.set_server_limits(%s, %s, 'root', NULL, %s, " +
              ", ".join(["NULL"] * 14) + ")", server, seen, memory)
        m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
        material = dict(untlv(a.held[m["execution"]]["context"][len("sealed:"):]))
        asked.append(material.get(9))
        a.record(m["execution"])
    assert asked == [(100 << 20).to_bytes(8, "big"), (200 << 20).to_bytes(8, "big"), None]


def test_a_refused_intent_leaves_its_seal_unused(a, gw):
    """The vault seals while the row is being committed; refused, the context
    goes nowhere, however late the seal comes."""
    name, version, _ = tool(a)
    a.record(gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"])
    sealing, refused = [], threading.Event()

    def check(m):
        a.sql("SELECT mcpbox.revoke_version(%s, '', 'x')", version)
        return "CHECK_OK", {}

    def vault(m):
        if m["_"] == "SEAL_CONTEXT":
            sealing.append(m["execution"])
            refused.wait(VAULT_WAITS_S - 1)
        return a.honest_vault(m)

    a.on_check, a.on_vault = check, vault
    # not {} again: those are known to be valid (test_verdicts.py)
    m = gw.call("AUTHORISE", tool=name, arguments=b'{"n":2}')
    assert m["_"] == "REFUSED" and failure(m) == "REVOKED"
    refused.set()
    a.on_check = lambda m: ("CHECK_OK", {})
    other, _, _ = tool(a)
    m = gw.call("AUTHORISE", tool=other, arguments=b"{}")
    assert m["_"] == "RUN_ID"
    assert all(x not in a.held for x in sealing if x != m["execution"])
    a.record(m["execution"])


def test_what_is_sealed_early_waits_for_the_check(a, gw):
    """The vault seals while the arguments are judged. The sandbox hears nothing
    until they were found valid, and nothing at all if they were not; what records
    keep of them, which the check says, is in HELD and not under the seal."""
    name, _, _ = tool(a)
    sealed, held, early = [], [], []

    def check(verdict):
        def judge(m):
            a.until(lambda: sealed)             # before this answer
            time.sleep(0.2)
            early.extend(held)
            return verdict
        return judge

    def vault(m):
        if m["_"] == "SEAL_CONTEXT":
            sealed.append(m["execution"])
        return a.honest_vault(m)

    def sandbox(m):
        if m["_"] in ("HELD", "CANCEL"):
            held.append((m["_"], m["execution"]))
        return a.honest_sandbox(m)

    a.on_vault, a.on_sandbox = vault, sandbox
    a.on_check = check(("CHECK_ERRORS", {"failure": FAILURES["INVALID_ARGUMENTS"], "summary": "1 error",
                                         "json": b'[{"pointer":"/a","message":"one"}]'}))
    m = gw.call("AUTHORISE", tool=name, arguments=b'{"password":"p"}')
    assert failure(m) == "INVALID_ARGUMENTS"
    time.sleep(0.2)
    assert len(sealed) == 1 and held == []
    sealed.clear()
    a.on_check = check(("CHECK_OK", {"kept": b'{"password":"[redacted]"}'}))
    m = gw.call("AUTHORISE", tool=name, arguments=b'{"password":"p"}')
    assert m["_"] == "RUN_ID" and early == [] and held == [("HELD", m["execution"])]
    assert sealed == [m["execution"]]
    got = a.held[m["execution"]]
    intent = dict(untlv(dict(untlv(got["context"][len("sealed:"):]))[14]))
    assert got["arguments"] == b'{"password":"[redacted]"}' and got["arguments"] not in intent.values()
    assert a.record(m["execution"])["_"] == "OK"


def test_another_sandbox_gets_a_context_of_its_own(a, gw):
    """It came while the arguments were judged: what was sealed is another's."""
    name, _, _ = tool(a)
    sealed, before = [], a.sandbox_epoch

    def vault(m):
        if m["_"] == "SEAL_CONTEXT":
            sealed.append(m["epoch"])
        return a.honest_vault(m)

    def check(m):
        a.until(lambda: sealed)
        a.sandbox_epoch = os.urandom(16)
        ready = a.logs().count("sandbox_ready")
        a.fakes["sandbox"].drop()
        a.until(lambda: a.logs().count("sandbox_ready") > ready)
        return "CHECK_OK", {}

    a.on_vault, a.on_check = vault, check
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    a.on_check = lambda m: ("CHECK_OK", {})
    assert m["_"] == "RUN_ID"
    assert sealed == [before, a.sandbox_epoch]
    assert a.held[m["execution"]]["context"]
    assert a.record(m["execution"])["_"] == "OK"


def test_what_was_held_without_a_row_is_taken_back(a, gw):
    """The sandbox holds while the row is being committed. No row: it is told to
    forget, without a record (failure 0), and the gateway never learns the id."""
    name, _, _ = tool(a)
    held, there = [], threading.Event()

    def sandbox(m):
        if m["_"] == "HELD":
            held.append(m["execution"])
            there.set()
        return a.honest_sandbox(m)

    def let():
        there.wait(STATEMENT_S - 2)
        c.execute("SELECT pg_advisory_unlock(4712)")

    a.on_vault, a.on_sandbox = a.honest_vault, sandbox
    with a.pg.connect("postgres") as c:
        # Once the sandbox holds it, no row.
        c.execute("CREATE OR REPLACE FUNCTION public.none() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                  " PERFORM pg_advisory_xact_lock(4712); RETURN NULL; END $$")
        c.execute("SELECT pg_advisory_lock(4712)")
        c.execute("GRANT EXECUTE ON FUNCTION public.none TO PUBLIC")
        c.execute("CREATE TRIGGER a_none BEFORE INSERT ON mcpbox.executions FOR EACH ROW"
                  f" WHEN (NEW.tool = '{name}') EXECUTE FUNCTION public.none()")
        opener = threading.Thread(target=let)
        opener.start()
        try:
            m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
            assert m["_"] == "REFUSED", m
            a.until(lambda: held and [x for x, why in a.cancelled if why == 0 and x in held] == held)
        finally:
            opener.join(patience(10))
            c.execute("DROP TRIGGER a_none ON mcpbox.executions")
    assert a.rows("SELECT 1 FROM mcpbox.executions WHERE tool = %s", name) == []
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    assert m["_"] == "RUN_ID"
    assert a.record(m["execution"])["_"] == "OK"


def test_revocation_between_intent_and_run_id_wins(a, gw):
    name, version, _ = tool(a)

    def vault(m):
        if m["_"] == "SEAL_CONTEXT":
            # sealed while the row is being committed
            a.until(lambda: a.rows("SELECT 1 FROM mcpbox.executions WHERE version_id = %s",
                                   version))
            a.sql("SELECT mcpbox.revoke_version(%s, '', 'x')", version)
            # the notification reaches admind before this answer
            a.until(lambda: any(x == m["execution"] for x, _ in a.cancelled))
        return a.honest_vault(m)

    a.on_vault = vault
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    assert m["_"] == "REFUSED" and failure(m) == "REVOKED"


def test_stopping_cancels_what_runs(a, gw):
    name, version, _ = tool(a)
    i = gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"]
    server = a.rows("SELECT server_id FROM mcpbox.tool_versions WHERE id = %s", version)[0][0]
    a.sql("SELECT mcpbox.set_server_status(%s, 'stopped', 'x')", server)
    a.until(lambda: (i, FAILURES["STOPPED"]) in a.cancelled)
    assert a.record(i, KILLED, "STOPPED")["_"] == "OK"
    assert execution(a, i) == ("closed", "killed", "stopped")


@pytest.mark.parametrize("where", ["vault", "sandbox"])
@pytest.mark.parametrize("how", ["refuses", "dies", "lies"])
def test_failures_behind_the_intent_close_the_row(a, gw, where, how):
    name, version, _ = tool(a)
    step = {"vault": "SEAL_CONTEXT", "sandbox": "HELD"}[where]

    def bad(m):
        if m["_"] != step:
            return getattr(a, "honest_" + where)(m)
        # Sealing begins before the intent: what fails there fails behind it.
        a.until(lambda: a.rows("SELECT 1 FROM mcpbox.executions WHERE version_id = %s", version))
        if how == "refuses":
            return "REFUSED", {"failure": FAILURES["BUSY"], "message": "full"}
        if how == "lies":
            # a known message that is no answer to this
            return "REFUSED", {"failure": 60000, "message": "\u202e" * 50}
        a.fakes[where].drop()
        return None

    setattr(a, "on_" + where, bad)
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    assert m["_"] == "REFUSED"
    assert failure(m) == {"refuses": "BUSY", "lies": "INTERNAL", "dies": {
        "vault": "VAULT_UNAVAILABLE", "sandbox": "SANDBOX_UNAVAILABLE"}[where]}[how]
    a.until(lambda: a.rows("SELECT outcome FROM mcpbox.executions WHERE version_id = %s",
                           version) == [("refused",)])
    assert a.fakes[where].up.wait(patience(5))
    a.on_vault, a.on_sandbox = a.honest_vault, a.honest_sandbox

    def again():
        m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
        return m["_"] == "RUN_ID" and a.record(m["execution"])["_"] == "OK"

    a.until(again)


def test_a_gateway_that_goes_away_leaves_no_held_call(a):
    name, version, _ = tool(a)
    gone = threading.Event()

    def vault(m):
        if m["_"] == "SEAL_CONTEXT":
            gone.wait(patience(5))
            time.sleep(0.2)
        return a.honest_vault(m)

    a.on_vault = vault
    with a.gateway() as g:
        g.start("AUTHORISE", tool=name, arguments=b"{}")
        a.until(lambda: a.rows("SELECT 1 FROM mcpbox.executions WHERE version_id = %s", version))
    gone.set()
    a.until(lambda: any(a.held[x]["execution"] == x for x, _ in a.cancelled if x in a.held))
    i = a.rows("SELECT id FROM mcpbox.executions WHERE version_id = %s", version)[0][0].bytes
    a.until(lambda: any(x == i for x, _ in a.cancelled))
    assert a.record(i, REFUSED, "KILLED")["_"] == "OK"


def test_secrets_go_to_the_vault_only_for_who_names_them(a, gw):
    name, version, _ = tool(a, secrets=("TOKEN",))
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    assert m["_"] == "RESULT" and failure(m) == "MISSING_GRANT" and b"TOKEN" in m["body"]
    a.fakes["vault"].call("SECRET_STORE", server=name.split("__")[0], key="TOKEN", actor="root",
                          value=b"sealed value")
    a.fakes["vault"].call("SECRET_STORE", server=name.split("__")[0], key="OTHER", actor="root",
                          value=b"other value")
    m = gw.call("AUTHORISE", tool=name, arguments=b"{}")
    material = untlv(a.held[m["execution"]]["context"][len("sealed:"):])
    assert (3, b"TOKEN") in material and (4, b"sealed value") in material
    assert (3, b"OTHER") not in material
    a.record(m["execution"])


def test_bounds(a, gw):
    m = gw.call("AUTHORISE", tool="mcpbox_list_servers", arguments=b" " * (1024 * 1024 + 1))
    assert failure(m) == "TOO_LARGE"
    held = []
    name, _, _ = tool(a)
    a.on_check = held.append    # silence: calls pile up
    with a.gateway() as g:
        for _ in range(600):
            g.start("AUTHORISE", tool=name, arguments=b"{}")
        refused = []
        while len(refused) < 88:
            _, m = g.receive()
            if m["_"] != "CATALOGUE_CHANGED":
                refused.append(failure(m))
        assert refused == ["BUSY"] * 88
        # nobody else suffers but by the same bound
        assert failure(gw.call("AUTHORISE", tool=name, arguments=b"{}")) == "BUSY"
    a.fakes["check"].drop()
    assert a.fakes["check"].up.wait(patience(5))
    a.on_check = lambda m: ("CHECK_OK", {})
    a.until(lambda: gw.call("AUTHORISE", tool="mcpbox_list_servers",
                            arguments=b"{}")["_"] == "RESULT")


# --- management -------------------------------------------------------------


def test_management_calls_are_recorded(a, gw):
    m = gw.call("AUTHORISE", tool="mcpbox_list_servers", arguments=b"{}")
    assert m["_"] == "RESULT" and m["is_error"] == 0
    body = json.loads(m["body"])
    assert json.loads(body["content"][0]["text"]) == body["structuredContent"]
    a.until(lambda: a.rows("SELECT state, outcome, kind FROM mcpbox.executions WHERE tool = "
                           "'mcpbox_list_servers' ORDER BY created_at DESC LIMIT 1")
            == [("closed", "done", "management")])


def test_management_failures_are_results(a, gw):
    name = "srv" + secrets.token_hex(4)
    a.on_check = lambda m: ("CHECK_OK", {"fields": tlv((3, name), (4, "d"))})
    assert gw.call("AUTHORISE", tool="mcpbox_create_server", arguments=b"{}")["is_error"] == 0
    m = gw.call("AUTHORISE", tool="mcpbox_create_server", arguments=b"{}")
    assert m["_"] == "RESULT" and m["is_error"] == 1 and failure(m) == "CONFLICT"
    a.until(lambda: a.rows("SELECT outcome, failure FROM mcpbox.executions WHERE tool = "
                           "'mcpbox_create_server' AND state = 'closed' "
                           "ORDER BY created_at DESC LIMIT 1") == [("failed", "conflict")])


# --- catalogue --------------------------------------------------------------


def test_catalogue_is_ordered_and_byte_exact(a, gw):
    schema = b'{ "type" : "object",\n "x-a": 1e5, "x-u": "\\u0000" }'
    first, _, _ = tool(a, schema=schema)
    second, _, _ = tool(a, description='"\n\u2028')
    items, end = catalogue(gw)
    names = [n for n, _ in items]
    users = [n for n in names if not n.startswith("mcpbox_")]
    assert users == sorted(users) and names[:len(users)] == users
    assert first in users and second in users and end["count"] == len(items)
    found = dict(items)
    assert schema in found[first]
    for n, j in items:
        parsed = json.loads(j)
        assert parsed["name"] == n and isinstance(parsed["inputSchema"], dict)
    assert json.loads(found[second])["description"] == '"\n\u2028'
    assert end["revision"] == a.rows("SELECT revision FROM mcpbox.catalogue")[0][0]


def test_many_tools_are_streamed_in_pages(a, gw):
    prefix = "t" + secrets.token_hex(3)
    for n in range(70):
        a.approved_tool("many", f"{prefix}{n}")
    items, end = catalogue(gw)
    names = [n for n, _ in items]
    assert len(names) == len(set(names)) == end["count"]
    assert sum(n.startswith("many__" + prefix) for n in names) == 70


#: Seconds that admind waits for gateways before an approval holds.
WAITS_S = 0.2


def approved_beside(a, g):
    """Approves a new version and acknowledges the change as gateway g a little later.
    (what came in which order, was it approved before, seconds until the acknowledgement)"""
    name, version, _ = tool(a)
    server, t = a.rows("SELECT server_id, tool_id FROM mcpbox.tool_versions WHERE id = %s", version)[0]
    pre = preimage(server.bytes, t.bytes, name.split("__")[0], code="def main(): return 2")
    request = uuid.uuid4()
    a.sql("SELECT mcpbox.add_version(%s, %s, '', 'x')", uuid.uuid4(), pre)
    a.sql("SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')", request, uuid.uuid4(), t)
    order, done = [], threading.Event()

    def decide():
        m = a.fakes["vault"].call("DECISION_STORE", approval=request.bytes, approved=1,
                                  content=hashlib.sha256(pre).digest(), actor="root",
                                  time_us=time.time_ns() // 1000, seal=b"s")
        order.append(m["_"])
        done.set()

    # drain what came for the set-up above
    while True:
        try:
            got, m = g.receive(0.1)
        except TimeoutError:
            break
        if got != 0:    # an event has no answer
            g.send("OK", request=got)
    thread = threading.Thread(target=decide)
    began = time.monotonic()
    thread.start()
    got, m = g.receive()
    assert m["_"] == "CATALOGUE_CHANGED"
    time.sleep(0.02)
    before = done.is_set()
    order.append("acknowledged")
    g.send("OK", request=got)
    took = time.monotonic() - began
    thread.join(patience(20))
    return order, before, took


def test_an_approval_waits_for_the_gateways(a):
    """For 200 ms: where this machine took longer to acknowledge, it tries again."""
    with a.gateway() as g:
        g.call("GW_ATTACH")
        for _ in range(50):
            order, before, took = approved_beside(a, g)
            if took < WAITS_S:
                break
        else:
            pytest.fail(f"no acknowledgement in {WAITS_S} s: {took}")
        assert not before and order == ["acknowledged", "OK"]
        # a gateway that never answers holds nobody up
        a.fakes["vault"].call("AUDIT_EVENT", actor="x", action="login", subject="", detail="{}")


# --- approvals, logins, audit -------------------------------------------------


def test_content_and_decisions(a, ctl):
    server, t, request = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
    name = "c" + secrets.token_hex(4)
    pre = preimage(server.bytes, t.bytes, name)
    a.sql("SELECT mcpbox.create_server(%s, %s, '', 'x')", server, name)
    a.sql("SELECT mcpbox.create_tool(%s, %s, 'x')", uuid.uuid4(), pre)
    a.sql("SELECT mcpbox.request_publish(%s, %s, %s, 'please \"\u202e', 'x')", request,
          uuid.uuid4(), t)
    vault = a.fakes["vault"]
    m = vault.call("CONTENT_GET", approval=request.bytes)
    assert (m["kind"], m["state"], m["preimage"]) == ("tool", "pending", pre)
    m = ctl.call("APPROVAL_GET", approval=request.bytes)
    about = json.loads("{" + m["circumstances"] + "}")
    assert m["preimage"] == pre and about["server"] == name and about["notes"].startswith("please")
    assert failure(vault.call("CONTENT_GET", approval=bytes(16))) == "NOT_FOUND"
    decision = {"approval": request.bytes, "approved": 1, "actor": "root", "seal": b"s",
                "time_us": time.time_ns() // 1000}
    m = vault.call("DECISION_STORE", content=bytes(32), **decision)
    assert failure(m) == "HASH_MISMATCH"
    digest = hashlib.sha256(pre).digest()
    assert vault.call("DECISION_STORE", content=digest, **decision)["_"] == "OK"
    assert failure(vault.call("DECISION_STORE", content=digest, **decision)) == "ALREADY_DECIDED"
    assert a.rows("SELECT serving_version IS NOT NULL FROM mcpbox.tools WHERE id = %s",
                  t) == [(True,)]


def test_administrators(a):
    vault = a.fakes["vault"]
    m = vault.call("ADMIN_LOOKUP", username="nobody")
    assert m["_"] == "ADMIN_RECORD" and m["verifier"] == b"" and m["role"] == ""
    assert vault.call("ADMIN_STORE", username="alice", role="administrator", change="setup",
                      actor="root", verifier=b"v1")["_"] == "OK"
    assert failure(vault.call("ADMIN_STORE", username="bob", role="administrator", change="setup",
                              actor="root", verifier=b"v")) == "CONFLICT"
    m = vault.call("ADMIN_LOOKUP", username="alice")
    assert (m["role"], m["verifier"]) == ("administrator", b"v1")


def test_failed_logins_of_any_name_are_written(a):
    for n, actor in enumerate(("", "x" * 1000, "a\nb\x1b[2J", "\u202e", "ok")):
        m = a.fakes["vault"].call("AUDIT_EVENT", actor=actor, action="login_failed",
                                  subject=f"n{n}", detail='{"source":"::1"}')
        assert m["_"] == "OK", (actor, m)
    actors = [r[0] for r in a.rows("SELECT actor FROM mcpbox.audit_log WHERE action = "
                                   "'login_failed' ORDER BY seq")]
    assert len(actors) == 5 and actors[0] == "-" and actors[2] == "a?b?[2J"


def test_the_head_is_signed_at_approvals(a):
    tool(a)
    a.sql("SELECT mcpbox.audit_append('x', 'test', '', '{}')")
    test_content_and_decisions(a, a.ctl())
    a.until(lambda: a.rows("SELECT count(*) FROM mcpbox.audit_anchors")[0][0] > 0)
    seq, head, sig = a.rows("SELECT seq, head, signature FROM mcpbox.audit_anchors "
                            "ORDER BY seq DESC LIMIT 1")[0]
    assert sig == a.signature(seq, head)
    a.until(lambda: f"seq={seq} head={head.hex()} signature={sig.hex()}" in a.logs())


def test_the_process_that_is_away_is_named(a):
    """An export is sealed by the vault: nothing else is away, and nothing else is to be waited for."""
    a.fakes["vault"].close()
    try:
        with a.ctl() as c:
            def told():
                m = c.call("EXPORT")
                assert failure(m) == "VAULT_UNAVAILABLE", m
                return m["message"] == "the vault is not reachable"
            a.until(told)
    finally:
        a.fake("vault")
    assert a.fakes["vault"].up.wait(patience(15))


# --- reading ----------------------------------------------------------------


def test_web_needs_a_login(a):
    with a.web() as w:
        for what in ("servers", "tools", "approvals", "audit", "executions", "status"):
            for token in ("", "wrong", "A" * 43, "+" * 43, "A" * 42, "A" * 86):
                m = w.call("ADMIN_QUERY", what=what, token=token)
                assert m["_"] == "REFUSED" and failure(m) == "UNAUTHENTICATED", what
        m = w.call("APPROVAL_GET", approval=bytes(16), token="wrong")
        assert failure(m) == "UNAUTHENTICATED"
        digest = hashlib.sha256(b"tok").digest()
        tok = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        a.logins[digest] = ("v", "viewer")
        assert query(w, "servers", token=tok)["items"]
        assert failure(w.call("ADMIN_QUERY", what="audit", token=tok)) == "FORBIDDEN"
        a.logins[digest] = ("v", "reviewer")
        assert query(w, "audit", token=tok)["items"]
        a.logins[digest] = ("v", "nonsense")
        assert failure(w.call("ADMIN_QUERY", what="servers", token=tok)) == "FORBIDDEN"


@pytest.mark.parametrize("what", ["servers", "tools", "approvals", "audit", "executions"])
def test_pages_hold_everything_once(a, ctl, gw, what):
    for _ in range(3):
        name, _, _ = tool(a)
        a.record(gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"])
    everything, cursor, pages = [], "", 0
    while cursor is not None:
        p = query(ctl, what, cursor=cursor, limit=2)
        assert len(p["items"]) <= 2
        everything += [json.dumps(i, sort_keys=True) for i in p["items"]]
        cursor, pages = p["next_cursor"], pages + 1
    assert len(everything) == len(set(everything)) and pages > 1
    assert len(everything) == a.rows("SELECT count(*) FROM mcpbox." + {
        "audit": "audit_log", "approvals": "approval_requests"}.get(what, what))[0][0]


@pytest.mark.parametrize("what, kw", [
    ("nothing", {}), ("servers", {"limit": 201}), ("executions", {"cursor": "x"}),
    ("audit", {"cursor": "1; DROP TABLE x"}), ("servers", {"cursor": "x" * 301}),
    ("tools", {"filter_kind": "x" * 100})])
def test_bad_questions(a, ctl, what, kw):
    assert failure(ctl.call("ADMIN_QUERY", what=what, **kw)) == "INVALID_PARAMS"


def test_objects_status_and_doctor(a, ctl, gw):
    name, version, digest = tool(a)
    i = gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"]
    a.record(i)
    t = a.rows("SELECT tool_id, server_id FROM mcpbox.tool_versions WHERE id = %s", version)[0]
    assert query(ctl, "tool", id=str(t[0]))["tool"]["hash"] == digest.hex()
    assert query(ctl, "server", id=str(t[1]))["id"] == str(t[1])
    assert query(ctl, "execution", id=str(uuid.UUID(bytes=i)))["outcome"] == "done"
    for bad in ("", "x", str(uuid.uuid4())):
        assert failure(ctl.call("ADMIN_QUERY", what="tool", id=bad)) == "NOT_FOUND"
    s = query(ctl, "status")
    assert s["database"] and s["sandbox"] and s["gateways_local"] >= 1 and s["counts"]["tools"]
    report = json.loads(ctl.call("DOCTOR")["json"])
    assert {"process": "admind", "layer": "seccomp", "state": "enforced", "detail": "",
            "fix": ""} in report
    assert any(r["process"] == "sandboxd" and r["layer"] == "seccomp" for r in report)


# --- sessions ---------------------------------------------------------------


def test_ended_sessions_reach_all_gateways(a):
    expires = int(time.time() * 1000) + 600_000
    with a.gateway() as one, a.gateway() as two, a.gateway("tunnel") as three:
        for g in (one, two, three):
            g.call("GW_ATTACH")
        session = os.urandom(16)
        assert one.call("SESSION_END", session=session, expires_ms=expires)["_"] == "OK"

        def told(g):
            while True:
                _, m = g.receive(patience(5))
                if m["_"] == "SESSION_ENDED" and m["session"] == session:
                    return m["expires_ms"]

        assert told(two) == told(three) == expires
    with a.gateway() as late:
        late.call("GW_ATTACH")
        assert told(late) == expires


# --- records, epochs, sweep ------------------------------------------------------


def test_records_of_any_shape_are_taken(a, gw):
    """What sandboxd sends must never be refused for its content: it would be
    sent for ever."""
    name, _, _ = tool(a)
    for out, result, kw in (
            (b"\xff\xfe\0\x80abc" * 3, b"\0\xff", {}), (b"", b"", {}),
            (b"x" * 200_000, b"y" * 500_000, {}), ("é".encode() * 40_000, b"{}", {}),
            (b"", b"{}", {"failure": "NONE", "outcome": FAILED}),
            (b"", b"{}", {"failure": "TIMEOUT", "outcome": DONE})):
        i = gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"]
        assert a.record(i, out=out, result=result, **kw)["_"] == "OK"
        assert execution(a, i)[0] == "closed"


def test_records_that_come_together_are_kept_each(a, gw):
    """They are committed in one transaction; one of no row, one of a closed row
    and one sent twice keep no other from its own ending."""
    name, _, _ = tool(a)
    ids = [gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"] for _ in range(100)]
    a.record(ids[0], out=b"first")
    sandbox, now = a.fakes["sandbox"], time.time_ns() // 1000
    sent = {}
    with sandbox.lock:
        for n, i in enumerate([*ids, ids[7], os.urandom(16)]):
            fine = n % 2 == 0
            out = b"\xff\0" if n == 6 else b"out %d" % n
            sent[sandbox.peer.start(
                "RECORD", execution=i, epoch=a.sandbox_epoch, outcome=DONE if fine else FAILED,
                failure=0 if fine else FAILURES["TIMEOUT"], delivered=fine, started_us=now - n,
                ended_us=now + n, cpu_us=n, intent=b"", stdout_len=len(out),
                stdout_result=out + b"{}")] = n
        while sent:
            got, m = sandbox.answers.get(timeout=patience(10))
            assert m["_"] == "OK", m
            del sent[got]
    rows = {r[0].bytes: r[1:] for r in a.rows(
        "SELECT id, outcome, failure, delivered, stdout, cpu_us FROM mcpbox.executions "
        "WHERE tool = %s", name)}
    assert rows[ids[0]][3] == "first" and rows[ids[6]][3] == "??"
    assert all(rows[i] == (("done", None, True, f"out {n}", n) if n % 2 == 0 else
                           ("failed", "timeout", False, f"out {n}", n))
               for n, i in enumerate(ids) if n not in (0, 6))


def intent(version, digest, kind=1, principal="local", arguments="{}"):
    now = time.time_ns() // 1000
    return tlv((1, version.bytes), (2, digest), (3, "some__tool"), (4, principal), (5, 1),
               (6, bytes(32)), (7, now), (8, now + 1), (9, kind), (10, arguments))


def test_a_record_restores_a_lost_row(a):
    _, version, digest = tool(a)
    for args in ("{}", b"\xc3", b"\0" * 10):
        i = os.urandom(16)
        assert a.record(i, intent=intent(version, digest, arguments=args))["_"] == "OK"
        assert a.rows("SELECT state, restored, version_id FROM mcpbox.executions WHERE id = %s",
                      uuid.UUID(bytes=i)) == [("closed", True, version)]
    # without an intent there is nothing to restore, and nothing to keep sending
    for bad in (b"", b"\1\2\3", intent(version, digest, kind=9)):
        i = os.urandom(16)
        assert a.record(i, intent=bad)["_"] == "OK"
        assert execution(a, i) is None


@pytest.mark.parametrize("fields", [
    {"outcome": 9}, {"outcome": 0},
    {"outcome": 1, "stdout_len": 5, "stdout_result": b"abc"}])
def test_a_malformed_record_ends_the_connection(a, fields):
    s = a.fakes["sandbox"]
    assert s.up.wait(patience(5))
    before = s.peer
    before.start("RECORD", **fields)
    a.until(lambda: s.peer is not before and s.up.is_set())


def restart_sandbox(a, named=(), epoch=None):
    a.named = list(named)
    a.sandbox_epoch = epoch or os.urandom(16)
    a.fakes["sandbox"].epoch = a.sandbox_epoch
    before = a.logs().count("sandbox_ready")
    a.fakes["sandbox"].drop()
    a.until(lambda: a.logs().count("sandbox_ready") > before)


def test_a_new_sandbox_epoch_loses_what_was_open(a, gw):
    name, _, _ = tool(a)
    i = gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"]
    old = a.sandbox_epoch
    restart_sandbox(a)
    a.until(lambda: execution(a, i) == ("closed", "lost", "lost"))
    # its late record is acknowledged and changes nothing
    assert a.record(i, epoch=old)["_"] == "OK"
    assert execution(a, i) == ("closed", "lost", "lost")
    assert gw.call("AUTHORISE", tool=name, arguments=b"{}")["_"] == "RUN_ID"


def test_the_same_epoch_that_comes_back_keeps_its_calls(a, gw):
    name, _, _ = tool(a)
    i = gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"]
    restart_sandbox(a, [i], a.sandbox_epoch)
    time.sleep(1.2)
    assert execution(a, i) == ("open", None, None)
    assert a.record(i)["_"] == "OK"
    assert execution(a, i) == ("closed", "done", None)


def overdue(a, i, epoch, deadline="-50 minutes"):
    """An open row far past its deadline, as if its ending had been missed."""
    a.sql("INSERT INTO mcpbox.executions (id, kind, owner_epoch, principal, listener, tool, "
          "args_sha256, arguments, created_at, deadline) VALUES (%s, 'inspect', %s, 'local', "
          "'admind', 'x', sha256(''), '{}', now() - interval '1 hour', "
          "now() + %s::interval)", uuid.UUID(bytes=i), uuid.UUID(bytes=epoch), deadline)


def test_overdue_rows_are_lost_unless_named(a):
    named, unnamed = os.urandom(16), os.urandom(16)
    # Named before it is there: else a sweep may come between.
    restart_sandbox(a, [named], a.sandbox_epoch)
    overdue(a, named, a.sandbox_epoch)
    overdue(a, unnamed, a.sandbox_epoch)
    a.until(lambda: execution(a, unnamed) == ("closed", "lost", "lost"))
    assert execution(a, named) == ("open", None, None)
    assert a.record(named)["_"] == "OK"
    a.named = []


def test_what_an_admind_that_died_never_handed_over_is_lost_at_once(a):
    """Its deadline is far away, but it is older than this process, and the
    sandbox does not name it."""
    named, unnamed, epoch = os.urandom(16), os.urandom(16), a.sandbox_epoch
    sandbox = a.fakes["sandbox"]
    sandbox.greet = lambda peer: None       # nothing is swept meanwhile
    sandbox.drop()
    assert sandbox.up.wait(patience(5))
    for i in (named, unnamed):
        overdue(a, i, epoch, "1 hour")
    sandbox.greet = a.name_epoch
    restart_sandbox(a, [named], epoch)
    a.until(lambda: execution(a, unnamed) == ("closed", "lost", "lost"))
    assert execution(a, named) == ("open", None, None)
    assert a.record(named)["_"] == "OK"
    a.named = []


def test_overdue_rows_wait_while_the_sandbox_is_away(a):
    i, epoch = os.urandom(16), a.sandbox_epoch
    a.named = []
    sandbox = a.fakes["sandbox"]
    sandbox.greet = lambda peer: None       # back, but says nothing
    sandbox.drop()
    assert sandbox.up.wait(patience(5))
    overdue(a, i, epoch)
    time.sleep(2.5)
    assert execution(a, i) == ("open", None, None)
    sandbox.greet = a.name_epoch
    restart_sandbox(a, [], epoch)
    a.until(lambda: execution(a, i) == ("closed", "lost", "lost"))


def test_a_wrong_count_of_names_is_not_swept(a):
    sandbox, i = a.fakes["sandbox"], os.urandom(16)

    def short(peer):
        peer.send("EPOCH_BEGIN", epoch=a.sandbox_epoch)
        peer.send("EPOCH_END", count=1)

    sandbox.greet = short
    sandbox.drop()
    overdue(a, i, a.sandbox_epoch)
    time.sleep(2)
    assert execution(a, i) == ("open", None, None)
    sandbox.greet = a.name_epoch
    restart_sandbox(a, [i], a.sandbox_epoch)
    assert a.record(i)["_"] == "OK"
    a.named = []


# --- everything that can die ----------------------------------------------------


def test_killed_admind_leaves_one_record_a_call(a):
    name, _, _ = tool(a)
    with a.gateway() as g:
        run = g.call("AUTHORISE", tool=name, arguments=b"{}")["execution"]
        a.on_check = lambda m: ("CHECK_OK", {}) if m["_"] == "CHECK_MANAGEMENT" else None
        block = threading.Event()
        a.on_vault = lambda m: (block.wait(VAULT_WAITS_S - 2), None)[1]
    a.named = [run]
    a.kill()
    a.on_vault, a.on_check = a.honest_vault, lambda m: ("CHECK_OK", {})
    block.set()
    before = a.logs().count("sandbox_ready")
    a.start()
    a.until(lambda: a.logs().count("sandbox_ready") > before)
    assert execution(a, run) == ("open", None, None)
    assert a.record(run)["_"] == "OK"
    assert execution(a, run) == ("closed", "done", None)
    a.named = []
    a.until(lambda: a.rows("SELECT count(*) FROM mcpbox.executions WHERE state = 'open' "
                           "AND (tool = %s OR kind = 'management')", name) == [(0,)])
    assert a.rows("SELECT count(*) FROM mcpbox.epochs WHERE ended_at IS NULL AND kind = 'admind'"
                  ) == [(1,)]


@pytest.mark.parametrize("how", ["backends", "stop", "kill"])
def test_postgresql_dies_and_comes_back(a, how):
    name, _, _ = tool(a)
    with a.gateway() as g:
        run = g.call("AUTHORISE", tool=name, arguments=b"{}")["execution"]
        # what sandboxd gives back with the record: a crash may lose the row
        kept = dict(untlv(a.held[run]["context"][len("sealed:"):]))[14]
        if how == "backends":
            # The first one's end makes the postmaster end the others.
            for pid in a.pg.backends():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
        elif how == "stop":
            a.pg.stop()
        else:
            a.pg.kill()
        if how != "backends":
            def refused():
                m = g.call("AUTHORISE", tool=name, arguments=b"{}")
                return m["_"] == "REFUSED" and failure(m) == "STORAGE_UNAVAILABLE"

            a.until(refused)
            for call in (("AUTHORISE", {"tool": "mcpbox_list_servers", "arguments": b"{}"}),
                         ("GW_ATTACH", {}), ("CATALOGUE_GET", {"permission_set": "local"}),
                         ("SESSION_END", {"session": os.urandom(16), "expires_ms": 1})):
                m = g.call(call[0], **call[1])
                assert m["_"] == "REFUSED" and failure(m) == "STORAGE_UNAVAILABLE", (call, m)
            # a record stays unacknowledged until it is committed
            assert a.record(run, intent=kept)["_"] == "REFUSED"
            with a.ctl() as c:
                assert query(c, "status")["database"] is False
                assert json.loads(c.call("DOCTOR")["json"])
            a.fakes["vault"].call("AUDIT_EVENT", actor="x", action="login", subject="",
                                  detail="{}")
            a.pg.start()
        a.pg.wait()

        def works():
            m = g.call("AUTHORISE", tool=name, arguments=b"{}")
            if m["_"] != "RUN_ID":
                return False
            # as sandboxd does: again until it is acknowledged
            a.until(lambda: a.record(m["execution"])["_"] == "OK")
            return True

        a.until(works, 20)
        a.until(lambda: a.record(run, intent=kept)["_"] == "OK")
        assert execution(a, run)[:2] == ("closed", "done")
        a.until(lambda: a.rows("SELECT count(*) FROM mcpbox.executions WHERE state = 'open' AND "
                               "(tool = %s OR kind = 'management')", name)[0][0] == 0)
    assert a.proc.poll() is None


def test_stopped_postgresql_is_noticed(a):
    """A server that takes bytes and says nothing: typed failure, not a hang."""
    name, _, _ = tool(a)
    pids, before = a.pg.backends(), len(a.logs())
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):   # the set-up's own ended meanwhile
            os.kill(pid, 19)
    try:
        with a.gateway() as g:
            # They say nothing until both were answered.
            m = g.call("AUTHORISE", tool=name, arguments=b"{}", timeout=patience(40))
            assert failure(m) == "STORAGE_UNAVAILABLE" and "no answer" in a.logs()[before:]
            a.until(lambda: g.call("AUTHORISE", tool=name, arguments=b"{}",
                                   timeout=patience(40))["_"] == "RUN_ID", 60)
    finally:
        for pid in pids:
            try:
                os.kill(pid, 18)
            except ProcessLookupError:
                pass


def test_terminates_in_order(a):
    a.stop()
    assert a.proc.returncode == 0
