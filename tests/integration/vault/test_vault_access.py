"""The access document at the vault's own sockets, admind being ours and hostile: it
sets no document, and brings no older one back while this vault lives."""
import hashlib
import os
import struct
import time

import pytest

from integration.vault import test_vault
from integration.vault.test_vault import PASSWORD, ask, refused
from integration.vault.test_vault_review import body

# Its fixtures.
vault, admind, web, ctl, sandbox = (test_vault.vault, test_vault.admind, test_vault.web,
                                    test_vault.ctl, test_vault.sandbox)
administrator, token = test_vault.administrator, test_vault.token
NONE = bytes(32)
DAY_US = 86400 * 1000000


def sha(data):
    return hashlib.sha256(data).digest()


class Stored:
    """What the played admind stores and brings."""

    def __init__(self, admind):
        self.rows, self.bring, self.refuse = [], None, None
        admind.on_access_load = lambda m: ("ACCESS_SEALED", {
            "seal": self.bring if self.bring is not None else (self.rows[-1]["seal"] if self.rows else b"")})
        admind.on_access_store = self.store

    def store(self, m):
        if self.refuse:
            return "REFUSED", {"failure": test_vault.FAILURES[self.refuse], "message": "no\n[{}]"}
        self.rows.append(m)
        return "OK", {}


@pytest.fixture(scope="module")
def stored(admind):
    return Stored(admind)


@pytest.fixture(autouse=True)
def honest(stored):
    yield
    stored.bring = stored.refuse = None


def put(peer, admind, stored, document, token="", seen=None):
    seen = (sha(stored.rows[-1]["document"]) if stored.rows else NONE) if seen is None else seen
    return ask(peer, admind, "ACCESS_SET", token=token, seen=seen, document=document)


def check(admind, row, document=None):
    return ask(admind, admind, "ACCESS_CHECK", document=sha(row["document"] if document is None else document),
               seal=row["seal"])


@pytest.mark.parametrize("who,name", [
    ("admind", "ACCESS_SET"), ("http", "ACCESS_CHECK"), ("http", "ACCESS_LOAD"), ("http", "ACCESS_STORE"),
    ("sandboxd", "ACCESS_SET"), ("sandboxd", "ACCESS_CHECK")])
def test_by_whom(vault, stored, who, name):
    user = {"http": "adminweb", "sandboxd": "sandbox"}.get(who, who)
    with test_vault.Admind.open(test_vault.table, vault, user, "admind-vault", who) as p:
        p.start(name, **({"document": b"{}"} if name == "ACCESS_SET" else {}))
        assert p.closed()


def test_an_administrator_or_root_sets_it(web, ctl, admind, token, stored):
    before = time.time_ns() // 1000
    m = put(web, admind, stored, b"{}", token)
    assert (m["_"], m["actor"], m["document"]) == ("ACCESS_STATE", "admin", sha(b"{}"))
    row = stored.rows[-1]
    assert (row["serial"], row["actor"], row["document"]) == (m["serial"], "admin", b"{}")
    assert before <= m["serial"] <= time.time_ns() // 1000
    assert body(row["seal"]) == [(1, struct.pack(">Q", m["serial"])), (2, b"admin"), (3, sha(b"{}"))]
    assert check(admind, row)["_"] == "OK"
    m = put(ctl, admind, stored, b'{"rules": []}')
    assert m["actor"] == "root" and m["serial"] > row["serial"]


def test_who_may_not(web, ctl, admind, token, stored):
    count, events = len(stored.rows), len(admind.events)
    refused(put(web, admind, stored, b"{}", "x" * 86), "UNAUTHENTICATED")
    refused(put(web, admind, stored, b"{}", ""), "UNAUTHENTICATED")
    refused(put(ctl, admind, stored, b"{}", token), "INVALID_REQUEST")
    for name, role in (("vic", "viewer"), ("rea", "reviewer")):
        m = ask(ctl, admind, "ADMIN_CHANGE", change="create", username=name, role=role, new=PASSWORD)
        assert m["_"] == "OK", m
        login = ask(web, admind, "LOGIN", username=name, password=PASSWORD, source="127.0.0.1")["token"]
        m = put(web, admind, stored, b"{}", login)
        refused(m, "FORBIDDEN")
        assert m["message"] == "only an administrator may change the access document"
    test_vault.until(lambda: test_vault.drain(admind, 0.05) or [
        e[:3] for e in admind.events[events:] if e[0] == "access_refused"] == [
            ("access_refused", who, "access document") for who in ("unknown", "unknown", "root", "vic", "rea")])
    assert len(stored.rows) == count, "nothing reached admind's table"


def test_what_was_read(ctl, admind, stored):
    refused(put(ctl, admind, stored, b"{}", seen=sha(b"something else")), "HASH_MISMATCH")
    refused(put(ctl, admind, stored, b"{}", seen=NONE), "HASH_REQUIRED")
    assert put(ctl, admind, stored, b"{}")["_"] == "ACCESS_STATE"


def test_sizes(ctl, admind, stored):
    m = put(ctl, admind, stored, b"")
    refused(m, "INVALID_PARAMS")
    assert "{}" in m["message"], "it says what to send instead"
    largest = b'{"x": "' + b"a" * (256 * 1024 - 9) + b'"}'
    assert put(ctl, admind, stored, largest)["_"] == "ACCESS_STATE"
    assert stored.rows[-1]["document"] == largest and check(admind, stored.rows[-1])["_"] == "OK"


def test_what_admind_refuses_does_not_hold(ctl, admind, stored):
    held = stored.rows[-1]
    stored.refuse = "INVALID_PARAMS"
    m = put(ctl, admind, stored, b'{"bad": 1}')
    refused(m, "INVALID_PARAMS")
    assert m["message"] == "no\n[{}]", "all errors come through"
    stored.refuse = None
    assert check(admind, held)["_"] == "OK"
    assert put(ctl, admind, stored, b"{}")["_"] == "ACCESS_STATE"
    # nonsense, or no answer about what is stored
    admind.on_access_load, load = (lambda m: ("OK", {})), admind.on_access_load
    refused(put(ctl, admind, stored, b"{}"), "INTERNAL")
    admind.on_access_load = lambda m: ("REFUSED", {
        "failure": test_vault.FAILURES["STORAGE_UNAVAILABLE"], "message": "no database"})
    refused(put(ctl, admind, stored, b"{}"), "STORAGE_UNAVAILABLE")
    admind.on_access_load = load


def test_admind_makes_no_document(ctl, admind, stored):
    row = stored.rows[-1]
    refused(check(admind, row, b'{"mine": 1}'), "HASH_MISMATCH")
    for seal in (b"", b"\2", os.urandom(len(row["seal"])), row["seal"][:-1],
                 *(row["seal"][:i] + bytes([row["seal"][i] ^ 1]) + row["seal"][i + 1:]
                   for i in range(0, len(row["seal"]), 3))):
        refused(check(admind, {**row, "seal": seal}), "NOT_APPROVED")
    assert check(admind, row)["_"] == "OK"


def test_an_older_document_is_no_more(ctl, admind, stored):
    old = stored.rows[-1]
    assert put(ctl, admind, stored, b'{"rules": []}')["_"] == "ACCESS_STATE"
    refused(check(admind, old), "CONFLICT")
    # nor is it the one that a change was made from
    stored.bring = old["seal"]
    refused(put(ctl, admind, stored, b"{}", seen=sha(old["document"])), "HASH_MISMATCH")
    stored.bring = b""
    refused(put(ctl, admind, stored, b"{}", seen=NONE), "HASH_REQUIRED")
    assert put(ctl, admind, stored, b"{}", seen=sha(b'{"rules": []}'))["_"] == "ACCESS_STATE"
    stored.bring = None
    assert check(admind, stored.rows[-1])["_"] == "OK"


def test_a_seal_of_another_purpose(ctl, admind, stored):
    m = ask(ctl, admind, "EXPORT_SIGN", sha256=sha(stored.rows[-1]["document"]))
    assert m["_"] == "EXPORT_SEAL"
    refused(check(admind, {**stored.rows[-1], "seal": m["seal"]}), "NOT_APPROVED")


def test_after_a_restart(vault, stored):
    """What the decision admits, and no more: a vault that just began knows no document. And one that it can't
    read locks nobody out."""
    vault.stop()
    vault.start()
    table = test_vault.table
    with test_vault.Admind.open(table, vault, "admind", "admind-vault", "admind") as a, \
            test_vault.Peer(table, test_vault.socket_as(0, [], vault.run("admind-vault", "ctl.sock"))) as c:
        again = Stored(a)
        again.rows = stored.rows
        older, newest = stored.rows[-2:]
        assert check(a, older)["_"] == "OK"
        assert check(a, newest)["_"] == "OK"
        refused(check(a, older), "CONFLICT")
    vault.stop()
    vault.start()
    with test_vault.Admind.open(table, vault, "admind", "admind-vault", "admind") as a, \
            test_vault.Peer(table, test_vault.socket_as(0, [], vault.run("admind-vault", "ctl.sock"))) as c:
        again = Stored(a)
        again.bring = b"\2" + b"another vault's seal" * 5
        assert put(c, a, again, b"{}", seen=sha(b"shown of that row"))["_"] == "ACCESS_STATE"
