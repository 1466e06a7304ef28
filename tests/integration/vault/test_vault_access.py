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
        self.overs = []         # each ACCESS_STORE's
        admind.on_access_load = lambda m: ("ACCESS_SEALED", self.newest())
        admind.on_access_store = self.store

    def newest(self):
        """bring: a row (seal, document, serial) instead of the newest one; (): none."""
        row = self.bring if self.bring is not None else [
            (r["seal"], r["document"], r["serial"]) for r in self.rows[-1:]]
        if len(row) == 1:
            row = row[0]
        return {"seal": row[0], "document": sha(row[1]), "serial": row[2]} if row else {}

    def store(self, m):
        """As SQL does: over what the vault was told, and later than it."""
        now, last = self.newest(), time.time_ns() // 1000 + DAY_US
        follows = now.get("serial", 0) if now.get("serial", 0) <= last else 0
        self.overs.append(m["over"])
        if self.refuse:
            return "REFUSED", {"failure": test_vault.FAILURES[self.refuse], "message": "no\n[{}]"}
        if m["over"] != now.get("document", NONE) or not follows < m["serial"] <= last:
            return "REFUSED", {"failure": test_vault.FAILURES["HASH_MISMATCH"], "message": "read it again"}
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
    # but it locks nobody out
    newest = stored.rows[-1]
    stored.bring = (old["seal"], old["document"], newest["serial"] + 1)
    refused(put(ctl, admind, stored, b"{}", seen=sha(b"something else")), "HASH_MISMATCH")
    refused(put(ctl, admind, stored, b"{}", seen=NONE), "HASH_REQUIRED")
    assert put(ctl, admind, stored, b'{"x": 1}', seen=sha(old["document"]))["_"] == "ACCESS_STATE"
    stored.bring = None
    row = stored.rows[-1]
    assert row["serial"] > newest["serial"] + 1 and stored.overs[-1] == sha(old["document"])
    assert check(admind, row)["_"] == "OK"
    for before in (old, newest):
        refused(check(admind, before), "CONFLICT")


FAR = 10 * 365 * DAY_US


@pytest.mark.parametrize("ahead,follows", [
    (-1000000, False), (3600 * 1000000, True), (DAY_US - 60000000, True), (DAY_US + 3600 * 1000000, False), (FAR, False)])
def test_a_forged_row_locks_nobody_out(ctl, admind, stored, ahead, follows):
    """Its serial counts, but not as far as to use up the numbers; and what was sealed before holds no more."""
    assert put(ctl, admind, stored, b'{"mine": 1}')["_"] == "ACCESS_STATE"
    mine = stored.rows[-1]
    serial = time.time_ns() // 1000 + ahead
    forged = b'{"x": "forged"}'
    # (SQL names no serial that is dated more than a day ahead; a hostile admind may.)
    stored.bring = (os.urandom(len(mine["seal"])), forged, serial)
    refused(put(ctl, admind, stored, b"{}", seen=sha(b"something else")), "HASH_MISMATCH")
    refused(put(ctl, admind, stored, b"{}", seen=NONE), "HASH_REQUIRED")
    m = put(ctl, admind, stored, b'{"next": 1}', seen=sha(forged))
    assert m["_"] == "ACCESS_STATE", m
    stored.bring = None
    row = stored.rows[-1]
    assert row["over"] == sha(forged) and row["serial"] > mine["serial"]
    assert (row["serial"] == serial + 1) is follows
    assert row["serial"] <= time.time_ns() // 1000 + DAY_US
    assert check(admind, row)["_"] == "OK"
    refused(check(admind, mine), "CONFLICT")


def test_what_the_vault_knows_counts_as_seen(ctl, admind, stored):
    """Over a forged row, and after all rows are gone."""
    known = stored.rows[-1]
    stored.bring = (b"\2forged", b'{"x": 1}', known["serial"] + 1)
    assert put(ctl, admind, stored, b"{}", seen=sha(known["document"]))["_"] == "ACCESS_STATE"
    assert stored.overs[-1] == sha(b'{"x": 1}')
    known = stored.rows[-1]
    stored.bring = ()
    refused(put(ctl, admind, stored, b"{}", seen=sha(b"something else")), "HASH_MISMATCH")
    assert put(ctl, admind, stored, b"{}", seen=sha(known["document"]))["_"] == "ACCESS_STATE"
    # who reads a database without a document can name none
    assert put(ctl, admind, stored, b'{"y": 1}', seen=NONE)["_"] == "ACCESS_STATE"
    assert stored.overs[-2:] == [NONE, NONE]
    stored.bring = None
    assert stored.rows[-1]["serial"] > stored.rows[-2]["serial"] > known["serial"]
    refused(check(admind, known), "CONFLICT")
    assert check(admind, stored.rows[-1])["_"] == "OK"


def test_two_at_the_same_moment(ctl, web, admind, token, stored):
    """Both were made from the same document, and both readings came before the first was stored."""
    assert put(ctl, admind, stored, b'{"base": 1}')["_"] == "ACCESS_STATE"
    base = stored.newest()
    load, admind.on_access_load = admind.on_access_load, lambda m: ("ACCESS_SEALED", base)
    first = put(web, admind, stored, b'{"first": 1}', token, seen=base["document"])
    assert first["_"] == "ACCESS_STATE"
    second = put(ctl, admind, stored, b'{"second": 1}', seen=base["document"])
    admind.on_access_load = load
    refused(second, "HASH_MISMATCH")
    assert "read it again" in second["message"]
    assert stored.overs[-2:] == [base["document"]] * 2, "the second met the first in the database"
    assert stored.rows[-1]["document"] == b'{"first": 1}'
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
        again.bring = (b"\2" + b"another vault's seal" * 5, b"shown of that row", 1)
        refused(put(c, a, again, b"{}", seen=sha(b"something else")), "HASH_MISMATCH")
        assert put(c, a, again, b"{}", seen=sha(b"shown of that row"))["_"] == "ACCESS_STATE"
