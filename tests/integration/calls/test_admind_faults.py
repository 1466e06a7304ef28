"""admind while its peers and PostgreSQL fail at the worst moments: one record a
call, the settings that commits are made with, and nothing left behind."""
import hashlib
import json
import os
import secrets
import select
import threading
import time
import uuid

import pytest

from harness.patience import patience
from harness.played.admind import FAILURES, failure, preimage
from harness.tlv import tlv, untlv


#: Here faults go on and on, and so do callers.

pytestmark = pytest.mark.usefixtures("honest")


def tool(a):
    server = "s" + secrets.token_hex(5)
    return (server + "__greet",) + a.approved_tool(server)


def answer(gw, request):
    """Of a request that was started; admind's own requests may come first."""
    while True:
        got, m = gw.receive(patience(40))
        if request in (got, None) and m["_"] in ("RESULT", "REFUSED", "RUN_ID"):
            return m


def executions(a, name):
    return a.rows("SELECT kind, state, outcome, failure, restored FROM mcpbox.executions WHERE tool = %s"
                  " ORDER BY kind", name)


def lose(a, name):
    """What a crash of PostgreSQL does to intents of its last moments. The vault
    is asked while the row is being committed, so it may have to be waited for."""
    a.until(lambda: a.rows("SELECT 1 FROM mcpbox.executions WHERE tool = %s AND state = 'open'",
                           name))
    with a.pg.connect("postgres") as c:
        c.execute("SET session_replication_role = replica")
        assert c.execute("DELETE FROM mcpbox.executions WHERE tool = %s AND state = 'open'", (name,)).rowcount


# --- intents that a crash lost ---------------------------------------------------


@pytest.mark.parametrize("step", ["SEAL_CONTEXT", "HELD"])
def test_a_refused_call_whose_intent_was_lost_has_its_record(a, gw, step):
    name, version, digest = tool(a)

    def bad(m):
        if m["_"] == step:
            lose(a, name)
            return "REFUSED", {"failure": FAILURES["BUSY"], "message": "full"}
        return a.honest_vault(m) if step == "SEAL_CONTEXT" else a.honest_sandbox(m)

    setattr(a, "on_vault" if step == "SEAL_CONTEXT" else "on_sandbox", bad)
    m = gw.call("AUTHORISE", tool=name, arguments=b'{"x":1}', client="c", protocol="p")
    assert m["_"] == "REFUSED" and failure(m) == "BUSY" and m["retry_after_ms"] > 0
    a.until(lambda: executions(a, name) == [("tool", "closed", "refused", "busy", True)])
    assert a.rows("SELECT version_id, version_hash, principal, listener, arguments FROM mcpbox.executions"
                  " WHERE tool = %s", name) == [(version, digest, "local", "local", '{"x":1}')]


def test_a_management_call_whose_intent_was_lost_has_its_record(a, gw):
    """And so has the inspection in it."""
    server = uuid.uuid4()
    a.sql("SELECT mcpbox.create_server(%s, %s, '', 'x')", server, "s" + server.hex[:10])
    name = f"s{server.hex[:10]}__fresh"
    fields = tlv((1, server.bytes), (3, "fresh"), (5, "def main(): pass"))
    a.on_check = lambda m: ("CHECK_OK", {"fields": fields})

    def sandbox(m):
        if m["_"] == "HELD":
            lose(a, name)
            lose(a, "mcpbox_create_tool")
            return "REFUSED", {"failure": FAILURES["BUSY"], "message": "full"}
        return a.honest_sandbox(m)

    a.on_sandbox = sandbox
    before = a.rows("SELECT count(*) FROM mcpbox.executions WHERE tool = 'mcpbox_create_tool'")[0][0]
    m = gw.call("AUTHORISE", tool="mcpbox_create_tool", arguments=b"{}")
    assert m["_"] == "REFUSED" and failure(m) == "BUSY", m
    a.until(lambda: executions(a, name) == [("inspect", "closed", "refused", "busy", True)])
    a.until(lambda: len(executions(a, "mcpbox_create_tool")) == before + 1)
    assert executions(a, "mcpbox_create_tool")[-1] == ("management", "closed", "failed", "busy", True)


def test_an_intent_that_commits_late_is_closed(a, gw):
    """The backend hangs with the intent, admind gives up on it, and then it
    commits: the row is closed by the ending that waited for it."""
    name, version, _ = tool(a)
    with a.pg.connect("postgres") as c:
        # Stops the INSERT of this tool's intent behind its own row, before its commit.
        c.execute("CREATE OR REPLACE FUNCTION public.hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                  " PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$")
        c.execute("GRANT EXECUTE ON FUNCTION public.hang TO PUBLIC")
        c.execute("CREATE TRIGGER zz_hang AFTER INSERT ON mcpbox.executions FOR EACH ROW"
                  f" WHEN (NEW.tool = '{name}' AND NOT NEW.restored) EXECUTE FUNCTION public.hang()")
        try:
            c.execute("SELECT pg_advisory_lock(4711)")
            m = answer(gw, gw.start("AUTHORISE", tool=name, arguments=b"{}"))
            assert m["_"] == "REFUSED" and failure(m) == "STORAGE_UNAVAILABLE"
        finally:
            c.execute("SELECT pg_advisory_unlock(4711)")
            a.until(lambda: len(executions(a, name)) == 1)
            c.execute("DROP TRIGGER zz_hang ON mcpbox.executions")
    a.until(lambda: [e[1:4] for e in executions(a, name)] == [("closed", "refused", "storage_unavailable")])


# --- a hostile sandbox -----------------------------------------------------------


def test_a_sandbox_answers_for_its_own_epoch_only(a, gw):
    name, _, _ = tool(a)
    run = gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"]
    kept = dict(untlv(a.held[run]["context"][len("sealed:"):]))[14]
    own = a.rows("SELECT epoch FROM mcpbox.epochs WHERE kind = 'admind' AND ended_at IS NULL")[0][0].bytes
    rows = a.rows("SELECT count(*) FROM mcpbox.executions WHERE state = 'closed'")
    for epoch in (own, os.urandom(16)):
        assert a.record(run, epoch=epoch, intent=kept)["_"] == "OK"
        assert a.record(os.urandom(16), epoch=epoch, intent=kept)["_"] == "OK"
    assert a.rows("SELECT count(*) FROM mcpbox.executions WHERE state = 'closed'") == rows
    assert a.record(run)["_"] == "OK"
    assert executions(a, name) == [("tool", "closed", "done", None, False)]


def test_a_sandbox_makes_up_no_management_calls(a, gw):
    name, _, _ = tool(a)
    run = gw.call("AUTHORISE", tool=name, arguments=b"{}")["execution"]
    kept = untlv(dict(untlv(a.held[run]["context"][len("sealed:"):]))[14])
    forged = tlv(*[(t, 4 if t == 9 else v) for t, v in kept])
    invented = os.urandom(16)
    assert a.record(invented, intent=forged)["_"] == "OK"
    assert not a.rows("SELECT 1 FROM mcpbox.executions WHERE id = %s", uuid.UUID(bytes=invented))
    a.record(run)


# --- how commits are made ----------------------------------------------------------


def test_what_waits_for_the_disk(a, gw):
    """Intents don't; endings, approvals and the audit log do."""
    with a.pg.connect("postgres") as c:
        c.execute("CREATE TABLE public.seen (what text, setting text)")
        c.execute("CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
                  " INSERT INTO public.seen VALUES (TG_TABLE_NAME || ' ' || TG_OP || CASE WHEN TG_TABLE_NAME ="
                  " 'executions' THEN ' ' || (to_json(NEW) ->> 'state') ELSE '' END,"
                  " current_setting('synchronous_commit')); RETURN NULL; END $$")
        tables = ("executions", "audit_log", "approval_requests", "approval_seals", "tool_versions", "epochs",
                  "ended_sessions", "admin_users", "server_secrets", "servers", "tools", "audit_anchors")
        for t in tables:
            c.execute(f"CREATE TRIGGER zz_note AFTER INSERT OR UPDATE ON mcpbox.{t} FOR EACH ROW"
                      " EXECUTE FUNCTION public.note()")
        try:
            # Not by approved_tool(), which has a connection of its own: by admind.
            name = "w" + secrets.token_hex(5)
            a.on_check = lambda m: ("CHECK_OK", {"fields": tlv((3, name))})
            server = json.loads(gw.call("AUTHORISE", tool="mcpbox_create_server", arguments=b"{}")["body"]
                                )["structuredContent"]["id"]
            a.on_check = lambda m: ("CHECK_OK", {"fields": tlv((1, uuid.UUID(server).bytes))})
            gw.call("AUTHORISE", tool="mcpbox_stop_server", arguments=b"{}")
            vault = a.fakes["vault"]
            vault.call("ADMIN_STORE", username=name, role="viewer", change="create", actor="root", verifier=b"v")
            vault.call("SECRET_STORE", server=name, key="K", actor="root", value=b"x")
            vault.call("AUDIT_EVENT", actor="x", action="login", subject="", detail="{}")
            gw.call("SESSION_END", session=os.urandom(16), expires_ms=int(time.time() * 1000) + 60000)
            called, version, digest = tool(a)
            c.execute("DELETE FROM public.seen WHERE what LIKE 'approval%' OR what LIKE 'tool%'")
            a.on_check = lambda m: ("CHECK_OK", {"fields": b""})
            run = gw.call("AUTHORISE", tool=called, arguments=b"{}")["execution"]
            kept = dict(untlv(a.held[run]["context"][len("sealed:"):]))[14]
            assert a.record(run)["_"] == "OK"
            assert a.record(os.urandom(16), intent=kept)["_"] == "OK"
            request = _pending(a)
            m = vault.call("DECISION_STORE", approval=request[0].bytes, approved=1, content=request[1], actor="root",
                           time_us=1, reason="", seal=b"seal")
            assert m["_"] == "OK", m
            a.until(lambda: {s for s, in c.execute("SELECT what FROM public.seen")} >= {"audit_anchors INSERT"})
            seen = set(c.execute("SELECT DISTINCT what, setting FROM public.seen").fetchall())
        finally:
            for t in tables:
                c.execute(f"DROP TRIGGER zz_note ON mcpbox.{t}")
            c.execute("DROP TABLE public.seen")
    on = {w for w, s in seen if s == "on"}
    off = {w for w, s in seen if s == "off"}
    assert on | off == {w for w, _ in seen}
    assert off == {"executions INSERT open"}, seen
    assert on >= {"executions UPDATE closed", "executions INSERT closed", "audit_log INSERT",
                  "approval_requests UPDATE", "approval_seals INSERT", "tool_versions UPDATE", "tools UPDATE",
                  "ended_sessions INSERT", "admin_users INSERT", "server_secrets INSERT", "servers INSERT",
                  "servers UPDATE", "audit_anchors INSERT"}, seen


def _pending(a):
    """A pending request, made without admind: (id, hash)"""
    server, t, version, request = (uuid.uuid4() for _ in range(4))
    name = "p" + server.hex[:10]
    pre = preimage(server.bytes, t.bytes, name, "greet")
    with a.pg.connect("mcpbox_app") as app:
        app.execute("SELECT mcpbox.create_server(%s, %s, '', 'x')", (server, name))
        app.execute("SELECT mcpbox.create_tool(%s, %s, 'x')", (version, pre))
        app.execute("SELECT mcpbox.request_publish(%s, %s, %s, '', 'x')", (request, uuid.uuid4(), t))
    return request, hashlib.sha256(pre).digest()


def test_no_lane_is_waited_for_longer_than_promised(a, gw):
    """A person at psql holds a lock for ever: writers are told in bounded
    time, others are served meanwhile, and it works again afterwards."""
    name, _, _ = tool(a)
    with a.pg.connect("postgres") as c:
        c.autocommit = False
        c.execute("SELECT * FROM mcpbox.audit_head FOR UPDATE")
        a.on_check = lambda m: ("CHECK_OK", {"fields": tlv((3, "n" + secrets.token_hex(5)))
                                             if m["_"] == "CHECK_MANAGEMENT" else b""})
        first = None
        # A caller that waits for the writer's lane is never first; a slow machine may be late once.
        for _ in range(5):
            r = gw.start("AUTHORISE", tool="mcpbox_create_server", arguments=b"{}")
            with a.gateway() as other:
                m = other.call("AUTHORISE", tool=name, arguments=b"{}")
                assert m["_"] == "RUN_ID", m
                first = not select.select([gw.sock], [], [], 0)[0]
                assert a.record(m["execution"])["_"] == "OK"
            m = answer(gw, r)
            assert m["_"] == "REFUSED" and failure(m) == "STORAGE_UNAVAILABLE", m
            assert m["retry_after_ms"] > 0
            if first:
                break
        assert first, "the others wait for the writer"
        c.rollback()

    def works():
        return gw.call("AUTHORISE", tool="mcpbox_create_server", arguments=b"{}",
                       timeout=patience(40))["_"] == "RESULT"

    a.until(works, 30)


# --- everything at random ------------------------------------------------------------


def test_backends_end_one_by_one_under_load(a):
    """pg_terminate_backend in a loop takes single connections away, so that the
    lanes are up and down in every combination."""
    name, _, _ = tool(a)
    stop, answers, lock = threading.Event(), [], threading.Lock()

    def caller():
        with a.gateway() as g:
            while not stop.is_set():
                m = g.call("AUTHORISE", tool=name, arguments=b"{}", timeout=patience(40))
                if m["_"] == "RUN_ID":
                    kept = dict(untlv(a.held[m["execution"]]["context"][len("sealed:"):]))[14]
                    while a.record(m["execution"], intent=kept)["_"] != "OK":
                        time.sleep(0.02)
                with lock:
                    answers.append((m["_"], m.get("failure"), m.get("execution")))

    def manager():
        with a.gateway() as g:
            while not stop.is_set():
                m = g.call("AUTHORISE", tool="mcpbox_list_servers", arguments=b"{}", timeout=patience(40))
                with lock:
                    answers.append((m["_"], m.get("failure") or 0, None))

    a.on_check = lambda m: ("CHECK_OK", {"fields": b""})
    threads = [threading.Thread(target=f) for f in (caller, caller, caller, manager)]
    for t in threads:
        t.start()
    ended = 0
    with a.pg.connect("postgres") as c:
        # On a slow machine few calls come through between two: then more seldom.
        while ended < 300 or [k for k, _, _ in answers].count("RUN_ID") <= 20:
            c.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mcpbox_app'"
                      " ORDER BY random() LIMIT 1")
            ended += 1
            assert ended < 1000, answers[-5:]
            time.sleep(0.03 if ended < 300 else 0.5)
    stop.set()
    for t in threads:
        t.join(patience(60))
        assert not t.is_alive()
    kinds = {(k, f) for k, f, _ in answers}
    assert kinds <= {("RUN_ID", None), ("RESULT", 0)} | {
        ("REFUSED", FAILURES[f]) for f in ("STORAGE_UNAVAILABLE", "BUSY", "SANDBOX_UNAVAILABLE")}, kinds
    ran = [x for k, _, x in answers if k == "RUN_ID"]
    assert len(ran) > 20 and len(set(ran)) == len(ran)
    a.until(lambda: a.rows("SELECT count(*) FROM mcpbox.executions WHERE state = 'open'") == [(0,)], 30)
    rows = a.rows("SELECT id, outcome FROM mcpbox.executions WHERE tool = %s", name)
    done = {i.bytes for i, o in rows if o == "done"}
    assert done == set(ran)
    assert {o for _, o in rows} <= {"done", "refused"}


def test_large_arguments_have_a_budget(a, gw):
    """Many calls with the largest arguments are busy, and soon over."""
    name, _, _ = tool(a)
    held = []
    a.on_check = held.append    # silence
    large = b'{"x":"' + b"a" * (1024 * 1024 - 16) + b'"}'
    with a.gateway() as g:
        for _ in range(90):
            g.start("AUTHORISE", tool=name, arguments=large)
        got = [answer(g, None)["_"]]
        assert failure(gw.call("AUTHORISE", tool=name, arguments=b"{}")) == "BUSY" and got == ["REFUSED"]
    a.fakes["check"].drop()
    a.until(lambda: a.fakes["check"].up.is_set())
    a.on_check = lambda m: ("CHECK_OK", {"fields": b""})
    a.until(lambda: gw.call("AUTHORISE", tool="mcpbox_list_servers", arguments=b"{}")["_"] == "RESULT")


def test_nothing_is_left_behind(a):
    """After all of the above admind takes exactly as many calls as at first,
    and its memory and descriptors are what they were."""
    def size():
        with open(f"/proc/{a.proc.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * 4096

    def fds():
        return len(os.listdir(f"/proc/{a.proc.pid}/fd"))

    name, _, _ = tool(a)
    held, sizes = [], []
    time.sleep(0.5)     # connections of tests before this one
    at_first = fds()
    for _ in range(4):
        a.until(lambda: a.fakes["check"].up.is_set())
        a.on_check = held.append    # silence
        with a.gateway() as g:
            for _ in range(600):
                g.start("AUTHORISE", tool=name, arguments=b"{}")
            busy = []
            while len(busy) < 88:
                _, m = g.receive()
                if m["_"] == "REFUSED":
                    busy.append((failure(m), m["retry_after_ms"] > 0))
            assert busy == [("BUSY", True)] * 88
            # Asked, all of them: one that asks later would get the next answer.
            a.until(lambda: len(held) == 512)
            held.clear()
        a.fakes["check"].drop()
        a.until(lambda: a.fakes["check"].up.is_set())
        a.on_check = lambda m: ("CHECK_OK", {"fields": b""})
        with a.gateway() as g:
            a.until(lambda: g.call("AUTHORISE", tool="mcpbox_list_servers", arguments=b"{}")["_"] == "RESULT")
        a.until(lambda: fds() <= at_first)
        sizes.append(size())
    assert sizes[-1] - sizes[0] < 2 << 20, sizes
