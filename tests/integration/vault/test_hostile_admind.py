"""A taken-over admind: it owns the database connection and the policy, and
still can't approve, nor learn a secret outside an approved version."""
import hashlib
import os
import socket
import struct
import subprocess
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.instance import Instance
from harness.ipc import Closed, Peer, Table
from harness.patience import patience
from harness.tlv import tlv

SECRET = "CANARY_secret_a81f77"


@pytest.fixture(scope="module")
def table():
    return Table()


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    with Client(i.address) as c:
        flow.publish(i, c, "own", "tool", "def main() -> int:\n    return 1\n")
        # One more waits for review.
        tool_id = flow.draft(c, "own", "wanted", "def main() -> int:\n    return 2\n")
        c.manage("mcpbox_request_publish", tool_id=tool_id)
    yield i
    i.close()


@pytest.fixture
def vault(instance, table):
    """What admind has at the vault, as a second connection of its user."""
    with Peer.open(table, instance, "admind", "admind-vault", "admind") as p:
        yield p


def test_it_may_not_ask_for_a_decision(instance, table):
    item = flow.pending(instance, "wanted")
    for name, fields in (("APPROVE", {"approval": bytes.fromhex(item["id"].replace("-", "")),
                                      "reviewed": bytes.fromhex(item["hash"])}),
                         ("REJECT", {"approval": bytes.fromhex(item["id"].replace("-", ""))}),
                         ("LOGIN", {"username": "admin", "password": instance.password}),
                         ("SETUP", {"username": "own", "password": "x" * 20}),
                         ("SECRET_SET", {"server": "own", "key": "KEY", "value": b"x"}),
                         ("CONTEXT_KEY_GET", {"epoch": os.urandom(16)})):
        with Peer.open(table, instance, "admind", "admind-vault", "admind") as p:
            p.send(name, request=1, **fields)
            with pytest.raises(Closed):
                got = p.receive(patience(5))
                raise AssertionError(got)
    assert flow.pending(instance, "wanted")["hash"] == item["hash"]


def preimage(instance, tool):
    rows = instance.psql("SELECT encode(preimage, 'hex') FROM mcpbox.tool_versions v JOIN "
                         f"mcpbox.tools t ON t.id = v.tool_id WHERE t.name = '{tool}' "
                         "ORDER BY version_no DESC LIMIT 1")
    return bytes.fromhex(rows[0][0])


def seal_of(instance, tool):
    rows = instance.psql(
        "SELECT encode(s.seal, 'hex') FROM mcpbox.approval_seals s JOIN mcpbox.tool_versions v "
        f"ON s.subject = v.id JOIN mcpbox.tools t ON t.id = v.tool_id WHERE t.name = '{tool}'")
    return bytes.fromhex(rows[0][0])


@pytest.fixture(scope="module")
def epoch(instance, table):
    """An epoch that the vault has a context key for, so that a refusal below
    is never only for want of one."""
    with Peer.open(table, instance, "sandbox", "admind-vault", "sandboxd") as p:
        assert p.call("CONTEXT_KEY_GET", epoch=p.epoch)["_"] == "CONTEXT_KEY"
        yield p.epoch


def common_fields():
    return ((7, hashlib.sha256(b"{}").digest()), (8, struct.pack(">Q", 1000)),
            (13, struct.pack(">Q", 1000)))


def seal_context(vault, epoch, pre, approval):
    """SEAL_CONTEXT of kind TOOL, as for a call of its main()."""
    return vault.call("SEAL_CONTEXT", execution=os.urandom(16), epoch=epoch, listener=1, kind=1,
                      material=tlv((1, pre), (2, approval), *common_fields()))


def test_approved_content_gets_a_context(instance, vault, epoch):
    """The control: the same request with the right seal is served."""
    a = seal_context(vault, epoch, preimage(instance, "tool"), seal_of(instance, "tool"))
    assert a["_"] == "SEALED", a
    assert b"def main" not in a["context"]


def test_unapproved_content_gets_no_context(instance, vault, epoch):
    """No seal, an invented one, and another version's."""
    wanted, sealed = preimage(instance, "wanted"), seal_of(instance, "tool")
    for approval in (b"", b"\0" * len(sealed), sealed, os.urandom(len(sealed))):
        assert seal_context(vault, epoch, wanted, approval)["_"] == "REFUSED"


def test_a_changed_seal_or_content_gets_no_context(instance, vault, epoch):
    pre, sealed = preimage(instance, "tool"), seal_of(instance, "tool")
    for i in range(0, len(sealed), 7):
        bad = sealed[:i] + bytes([sealed[i] ^ 1]) + sealed[i + 1:]
        assert seal_context(vault, epoch, pre, bad)["_"] == "REFUSED", i
    changed = pre.replace(b"return 1", b"return 9")
    assert changed != pre
    assert seal_context(vault, epoch, changed, sealed)["_"] == "REFUSED"


def test_content_swapped_behind_the_reviewer_is_not_approved(instance, table):
    """The real admind is down; one of ours answers the vault's CONTENT_GET
    with other content than the administrator was shown."""
    item = flow.pending(instance, "wanted")
    shown = bytes.fromhex(item["hash"])
    service = os.path.join(instance.state, "service", "admind")
    subprocess.run(["sv", "-w", "10", "down", service], check=True, stdout=subprocess.DEVNULL)
    try:
        with Peer.open(table, instance, "admind", "admind-vault", "admind") as evil, \
                root_peer(table, instance) as ctl:
            approve = ctl.start("APPROVE", approval=bytes.fromhex(item["id"].replace("-", "")),
                                reviewed=shown)
            stored = []
            deadline = time.monotonic() + patience(10)
            while time.monotonic() < deadline:
                try:
                    request, f = evil.receive(patience(1))
                except TimeoutError:
                    break
                if f["_"] == "CONTENT_GET":
                    other = preimage(instance, "tool")
                    evil.send("CONTENT", request=request, kind="tool", state="pending",
                              preimage=other)
                else:
                    if f["_"] == "DECISION_STORE":
                        stored.append(f)
                    evil.send("OK", request=request)
            answer = ctl.answer(approve)
            assert answer["_"] == "REFUSED", answer
            assert not any(f["approved"] for f in stored)
    finally:
        subprocess.run(["sv", "up", service], check=True, stdout=subprocess.DEVNULL)
        instance.tool("wait")


def root_peer(table, instance):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(instance.run("admind-vault", "ctl.sock"))
    return Peer(table, s)


def test_a_row_marked_approved_by_hand_does_not_run(instance):
    """Even the database's owner can't approve: no seal, no context."""
    try:
        instance.psql("UPDATE mcpbox.tool_versions SET state = 'approved' WHERE tool_id = "
                      "(SELECT id FROM mcpbox.tools WHERE name = 'wanted')")
    except RuntimeError:
        pass	# refused by a constraint: better still
    with Client(instance.address) as c:
        r = c.call("own__wanted", {})
        assert r.result is None or r.result.get("isError"), r


def test_secrets_are_not_stored_in_clear(instance, table):
    with root_peer(table, instance) as ctl:
        a = ctl.call("SECRET_SET", server="own", key="API_KEY", value=SECRET.encode())
        assert a["_"] == "OK", a
    rows = instance.psql("SELECT encode(value, 'hex') FROM mcpbox.server_secrets")
    assert rows and SECRET.encode().hex() not in str(rows)
    dump = subprocess.run(["pg_dump", "-h", instance.run("postgresql"), "-U", "postgres", "mcpbox"],
                          capture_output=True, check=True).stdout
    assert SECRET.encode() not in dump and SECRET.encode().hex().encode() not in dump


def test_drafts_never_get_secrets(instance, vault, epoch):
    """kind INSPECT and TEST carry code of admind's choosing: with a stored
    secret in the material they are refused, without it they are sealed."""
    stored = bytes.fromhex(instance.psql("SELECT encode(value, 'hex') FROM mcpbox.server_secrets")[0][0])
    for kind in (2, 3):
        code = ((5, b"def main(): return 1"), (6, b"own__tool"), *common_fields())
        secret = ((3, b"API_KEY"), (4, stored))
        for material, answer in ((code, "SEALED"), (secret + code, "REFUSED")):
            a = vault.call("SEAL_CONTEXT", execution=os.urandom(16), epoch=epoch, listener=3,
                           kind=kind, material=tlv(*material))
            assert a["_"] == answer, (kind, a)


def test_an_approved_version_gets_only_the_secrets_it_names(instance, vault, epoch):
    """The seal of own__tool names none."""
    stored = bytes.fromhex(instance.psql("SELECT encode(value, 'hex') FROM mcpbox.server_secrets")[0][0])
    a = vault.call("SEAL_CONTEXT", execution=os.urandom(16), epoch=epoch, listener=1, kind=1,
                   material=tlv((1, preimage(instance, "tool")), (2, seal_of(instance, "tool")),
                                (3, b"API_KEY"), (4, stored), *common_fields()))
    assert a["_"] == "REFUSED" or SECRET.encode() not in a["context"]


def test_the_vault_returns_no_plaintext_and_no_key(instance, vault):
    key = open(os.path.join(instance.state, "key", "master.key"), "rb").read()
    a = vault.call("SESSION_KEY_GET")
    assert a["_"] == "SESSION_KEY" and a["key"] != key
