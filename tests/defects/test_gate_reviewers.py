"""The approval gate attacked at the decision: reviewers who race, yeses said
again, and a taken-over admind that makes yeses up. See harness/clients/gate.py for how
a run is seen; harness/ipc.py plays admind."""
import concurrent.futures
import hashlib
import os
import socket
import struct
import threading

import pytest

from harness.clients.gate import Gate, body, failure, unique, whole
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.ipc import Peer, Table
from harness.patience import patience
from harness.tlv import tlv

SERVER = "deciders"
PASSWORD = "a long password of theirs"


@pytest.fixture(scope="module")
def gate(instance):
    with Client(instance.address) as c:
        c.manage("mcpbox_create_server", name=SERVER)
    return Gate(instance)


@pytest.fixture(scope="module")
def logins(instance):
    """Two logins each of two persons: [Rest]"""
    instance.ctl("administrators", "create", "rita", "--role", "reviewer", stdin=PASSWORD + "\n")
    out = []
    for who, password in (("admin", instance.password), ("rita", PASSWORD)) * 2:
        out.append(Rest(lambda: instance.address("admind-http")))
        assert out[-1].login(who, password)[0] == 200
    return out


def decide(rest, item, what="approve", digest=None, headers=None):
    """(status, answer)"""
    given = {} if what == "approve" else {"reason": "no"}
    r = rest.request("POST", f"/api/approvals/{item['id']}/{what}", given,
                     {"If-Match": f'"{digest or item["hash"]}"', **(headers or {})})
    return r[0], r[2]


def at_once(*jobs):
    start = threading.Barrier(len(jobs))

    def run(job):
        start.wait(patience(30))
        return job()

    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


# --- races ---


def test_two_reviewers_race_to_approve(gate, mcp, logins):
    """One decision, one seal, one row in the audit log, each time."""
    for _ in range(3):
        tool, name, mark = gate.draft(mcp, SERVER)
        item = gate.ask(mcp, tool)
        got = at_once(*[lambda r=r: decide(r, item)[0] for r in logins], lambda: gate.yes(item))
        assert sorted(map(str, got[:4])) in (["200"] + ["409"] * 3, ["409"] * 4), got
        assert (got[:4].count(200) + (got[4] == 0)) == 1, got
        assert gate.instance.psql(
            "SELECT (SELECT count(*) FROM mcpbox.approval_seals WHERE request_id = a.id), (SELECT count(*) FROM "
            "mcpbox.audit_log WHERE action = 'tool_approved' AND detail::json ->> 'request_id' = a.id::text) "
            f"FROM mcpbox.approval_requests a WHERE id = '{item['id']}'") == [["1", "1"]]
        gate.runs(mcp, f"{SERVER}__{name}", mark)


def test_one_approves_and_one_rejects(gate, mcp, logins):
    """Whoever is first: what runs is what the winner said."""
    for n in range(4):
        tool, name, mark = gate.draft(mcp, SERVER)
        item = gate.ask(mcp, tool)
        yes, no = at_once(lambda: decide(logins[n % 4], item)[0],
                          lambda: decide(logins[(n + 1) % 4], item, "reject")[0])
        assert sorted((yes, no)) == [200, 409]
        if yes == 200:
            gate.runs(mcp, f"{SERVER}__{name}", mark)
        else:
            gate.silent(mcp, f"{SERVER}__{name}", mark)


def test_an_approval_races_with_an_end(gate, mcp, logins):
    """The tool's or the server's end beside the yes: it is over whoever is first."""
    for n in range(4):
        server = unique("s") if n % 2 else SERVER
        tool, name, mark = gate.draft(mcp, server)
        item = gate.ask(mcp, tool)
        sid = next(s["id"] for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"] if s["name"] == server)

        def end():
            with Client(gate.instance.address) as c:
                if server == SERVER:
                    c.manage("mcpbox_delete_tool", tool_id=tool)
                else:
                    c.manage("mcpbox_delete_server", server_id=sid)

        yes, _ = at_once(lambda: decide(logins[n % 4], item)[0], end)
        assert yes in (200, 404, 409)
        gate.silent(mcp, f"{server}__{name}", mark)


def test_two_are_needed_and_one_is_fast(gate, mcp, logins):
    """Under `second`: one person on every road at once stays one person."""
    gate.instance.ctl("policies", "set", "tool=second", "module=require", "network=require")
    try:
        tool, name, mark = gate.draft(mcp, SERVER)
        exposed, item = f"{SERVER}__{name}", gate.ask(mcp, tool)
        got = at_once(*[lambda r=r: decide(r, item) for r in (logins[0], logins[2]) * 2])
        assert [a["state"] for s, a in got if s == 200] == ["pending"], got
        gate.silent(mcp, exposed, mark)
        # edited meanwhile: the yes to the one is no half of a yes to the other
        second, code = gate.code()
        mcp.manage("mcpbox_update_tool", tool_id=tool, python_code=code)
        fresh = gate.ask(mcp, tool)
        status, answer = decide(logins[1], fresh)
        assert status == 200 and answer["state"] == "pending"
        assert decide(logins[3], fresh)[0] == 409
        gate.silent(mcp, exposed, mark, second)
        assert decide(logins[0], fresh)[1]["state"] == "approved"
        gate.runs(mcp, exposed, second)
        # two persons at the same moment: whole or half, never from one alone
        tool, name, mark = gate.draft(mcp, SERVER)
        item = gate.ask(mcp, tool)
        got = at_once(*[lambda r=r: decide(r, item) for r in logins])
        state = gate.state(tool)
        if state[0] != "approved":
            gate.silent(mcp, f"{SERVER}__{name}", mark)
            first = gate.instance.psql(f"SELECT actor FROM mcpbox.approval_firsts WHERE request_id = '{item['id']}'")
            assert decide(logins[0 if first == [["rita"]] else 1], item)[1]["state"] == "approved", got
        names = gate.instance.psql("SELECT f.actor, a.decided_by FROM mcpbox.approval_requests a JOIN "
                                   f"mcpbox.approval_firsts f ON f.request_id = a.id WHERE a.id = '{item['id']}'")
        assert sorted(names[0]) == ["admin", "rita"]
        gate.runs(mcp, f"{SERVER}__{name}", mark)
    finally:
        gate.instance.ctl("policies", "set", "tool=require", "module=require", "network=require")


# --- replays ---


def test_a_yes_said_again(gate, mcp, logins):
    """After it was done, after it was taken back, for the next version, and under
    the idempotency key of the first."""
    tool, name, first = gate.draft(mcp, SERVER)
    exposed, item = f"{SERVER}__{name}", gate.ask(mcp, tool)
    key = {"Idempotency-Key": unique("k")}
    assert decide(logins[0], item, headers=key)[0] == 200
    gate.runs(mcp, exposed, first)

    def again():
        for r in logins[:2]:
            assert decide(r, item)[0] == 409
        assert decide(logins[0], item, headers=key)[0] in (200, 409)    # at most the old answer
        assert gate.yes(item) == 1
        bulk = {"action": "approve", "items": [{"id": item["id"], "hash": item["hash"]}]}
        assert logins[0].request("POST", "/api/approvals/bulk", bulk)[2]["items"][0]["failure_mode"] == "already_decided"

    again()
    gate.instance.ctl("call", "tool_revoke", tool, "reason=taken back")
    again()
    gate.silent(mcp, exposed, first)
    second, code = gate.code()
    mcp.manage("mcpbox_update_tool", tool_id=tool, python_code=code)
    fresh = gate.ask(mcp, tool)
    again()
    assert decide(logins[0], fresh, digest=item["hash"])[0] == 412
    assert decide(logins[0], fresh, digest=item["hash"], headers=key)[0] in (409, 412)
    gate.silent(mcp, exposed, first, second)
    # the same bytes asked for once more are another request, that waits
    gate.instance.ctl("approvals", "reject", fresh["id"], "--reason", "no")
    mcp.manage("mcpbox_rollback_tool", tool_id=tool, version=1)
    same = gate.ask(mcp, tool)
    assert same["hash"] == item["hash"] and same["id"] != item["id"]
    again()
    gate.silent(mcp, exposed, first, second)
    assert decide(logins[1], same)[0] == 200
    gate.runs(mcp, exposed, first)


# --- a taken-over admind ---


@pytest.fixture(scope="module")
def table():
    return Table()


def stored(gate, tool, version=1):
    """(pre-image, hash, seal or None) as the database has them."""
    pre, digest, seal = gate.instance.psql(
        "SELECT encode(v.preimage, 'hex'), encode(v.hash, 'hex'), encode(s.seal, 'hex') FROM mcpbox.tool_versions v "
        f"LEFT JOIN mcpbox.approval_seals s ON s.subject = v.id WHERE v.tool_id = '{tool}' AND version_no = {version}")[0]
    return bytes.fromhex(pre), digest, bytes.fromhex(seal) if seal else None


@pytest.mark.parametrize("forgery", ["nothing", "zeros", "random", "another tool's", "an older version's", "a host's",
                                     "a first yes", "one bit"])
def test_a_decision_that_admind_made_up(gate, mcp, logins, forgery):
    """All that admind may say to the database, it says: decide_approval() with a seal
    that is none. The database believes it, lists the tool; and it doesn't run."""
    tool, exposed, old = gate.approved(mcp, SERVER)
    before = stored(gate, tool)[2]
    if forgery == "an older version's":
        mark, code = gate.code()
        mcp.manage("mcpbox_update_tool", tool_id=tool, python_code=code)
        seal = before
    else:
        tool, name, mark = gate.draft(mcp, SERVER)
        exposed, old = f"{SERVER}__{name}", mark
        seal = {"nothing": b"", "zeros": bytes(len(before)), "random": os.urandom(len(before)),
                "another tool's": before, "one bit": before}.get(forgery)
    if forgery == "a host's":
        wish = mcp.manage("mcpbox_request_network_access", tool_id=tool, host=unique("h") + ".example.org",
                          justification="x")["request_id"]
        assert gate.yes(gate.instance.ctl_json("approvals", "show", wish)) == 0
        seal = bytes.fromhex(gate.instance.psql(
            f"SELECT encode(seal, 'hex') FROM mcpbox.approval_seals WHERE request_id = '{wish}'")[0][0])
    elif forgery == "a first yes":
        gate.instance.ctl("policies", "set", "tool=second", "module=require", "network=require")
        try:
            item = gate.ask(mcp, tool)
            assert decide(logins[0], item)[1]["state"] == "pending"
        finally:
            gate.instance.ctl("policies", "set", "tool=require", "module=require", "network=require")
        seal = bytes.fromhex(gate.instance.psql(
            f"SELECT encode(seal, 'hex') FROM mcpbox.approval_firsts WHERE request_id = '{item['id']}'")[0][0])
    elif forgery == "one bit":
        seal = seal[:-1] + bytes([seal[-1] ^ 1])
    if forgery != "a first yes":
        item = gate.ask(mcp, tool)
    said = None
    try:
        gate.instance.psql(f"SELECT mcpbox.decide_approval('{item['id']}', true, '\\x{item['hash']}', 'root', "
                           f"clock_timestamp(), '', '\\x{seal.hex()}')", role="mcpbox_app")
        assert gate.state(tool)[0] == "approved"
    except RuntimeError as e:
        said = str(e)
        assert forgery in ("nothing", "zeros", "random") and "permission" not in said, said
    marks = {old, mark}
    before = {m: gate.records(m) for m in marks}
    for r in (mcp.call(exposed), mcp.call("mcpbox_call_tool", {"name": exposed, "arguments": {}})):
        assert failure(r) in ("not_approved", "internal"), r
        assert not any(m.encode() in r.raw for m in gate.meant), r
    assert before == {m: gate.records(m) for m in marks}
    mcp.manage("mcpbox_delete_tool", tool_id=tool)


@pytest.mark.parametrize("statement", [
    "UPDATE mcpbox.tool_versions SET state = 'approved' WHERE state = 'pending_review'",
    "UPDATE mcpbox.tools SET serving_version = (SELECT id FROM mcpbox.tool_versions LIMIT 1)",
    "UPDATE mcpbox.approval_requests SET state = 'approved'",
    "INSERT INTO mcpbox.approval_seals SELECT * FROM mcpbox.approval_seals",
    "DELETE FROM mcpbox.approval_seals", "DELETE FROM mcpbox.audit_log",
    "INSERT INTO mcpbox.callable SELECT * FROM mcpbox.callable", "UPDATE mcpbox.callable SET hash = hash",
    "INSERT INTO mcpbox.network_grants SELECT * FROM mcpbox.network_grants",
    "INSERT INTO mcpbox.approval_policies SELECT * FROM mcpbox.approval_policies",
    "SELECT mcpbox.act_tool_enable('root', '', NULL, '{}')"])
def test_what_the_run_time_role_may_not(gate, statement):
    assert gate.instance.psql("SELECT current_user", role="mcpbox_app") == [["mcpbox_app"]]
    with pytest.raises(RuntimeError, match="permission denied"):
        gate.instance.psql(statement, role="mcpbox_app")


def test_a_seal_is_for_every_byte(gate, instance, mcp, table):
    """The vault is given the seal of an approved canary with a pre-image in which
    one field is another's, longer, gone or there twice: no context. With the
    pre-image as it was, there is one."""
    tool, _, _ = gate.approved(mcp, SERVER, annotations={"readOnlyHint": True}, limits={"timeout_ms": 9000},
                               title="A title", task="optional")
    pre, digest, seal = stored(gate, tool)
    assert hashlib.sha256(pre).hexdigest() == digest
    fields = body(pre)
    assert whole(fields) == pre and len(fields) > 10
    with Peer.open(table, instance, "sandbox", "admind-vault", "sandboxd") as sandbox, \
            Peer.open(table, instance, "admind", "admind-vault", "admind") as admind:
        assert sandbox.call("CONTEXT_KEY_GET", epoch=sandbox.epoch)["_"] == "CONTEXT_KEY"

        def context(bytes_, kind=1):
            return admind.call("SEAL_CONTEXT", execution=os.urandom(16), epoch=sandbox.epoch, listener=1, kind=kind,
                               material=tlv((1, bytes_), (2, seal), (7, hashlib.sha256(b"{}").digest()),
                                            (8, struct.pack(">Q", 1000)), (13, struct.pack(">Q", 1000))))["_"]

        assert context(pre) == "SEALED"
        for i, (tag, value) in enumerate(fields):
            other = bytes([value[0] ^ 1]) + value[1:] if value else b"x"
            for changed in ([(tag, other)], [(tag, value + b" ")], [], [(tag, value)] * 2):
                assert context(whole(fields[:i] + changed + fields[i + 1:])) == "REFUSED", (tag, changed)
        # fields that it lacks: a secret, a host, a module; and other limits
        for tag in range(1, 41):
            if tag not in dict(fields):
                for value in (b"TOKEN", struct.pack(">Q", 1 << 40), b"evil.example.org"):
                    at = sum(t <= tag for t, _ in fields)
                    assert context(whole(fields[:at] + [(tag, value)] + fields[at:])) == "REFUSED", tag
        assert context(whole(fields, b"mcpbox grant 1\0")) == "REFUSED"
        assert context(pre) == "SEALED"


def test_a_yes_played_again_at_the_vault(gate, instance, mcp, table):
    """Who may approve says the same frame again, to the vault itself: the real
    admind stores no second decision, and a revoked one stays so."""
    tool, name, mark = gate.draft(mcp, SERVER)
    exposed, item = f"{SERVER}__{name}", gate.ask(mcp, tool)
    frame = {"approval": bytes.fromhex(item["id"].replace("-", "")), "reviewed": bytes.fromhex(item["hash"])}
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(instance.run("admind-vault", "ctl.sock"))
    with Peer(table, s) as root:
        assert root.call("APPROVE", **frame)["_"] == "OK"
        gate.runs(mcp, exposed, mark)
        assert root.call("APPROVE", **frame)["_"] == "REFUSED"
        instance.ctl("call", "tool_revoke", tool, "reason=of the test")
        for _ in range(3):
            assert root.call("APPROVE", **frame)["_"] == "REFUSED"
    gate.silent(mcp, exposed, mark)
    assert instance.psql("SELECT count(*) FROM mcpbox.approval_seals "
                         f"WHERE request_id = '{item['id']}'") == [["1"]]


def test_nothing_else_ran(gate):
    gate.balance()
