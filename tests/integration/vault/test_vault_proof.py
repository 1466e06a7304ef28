"""A login's proof at the vault's own sockets, admind being ours: what a login may do once its
person's last password is five minutes old, and what makes it fresh again. The proof grows old
in the vault's memory (harness/proof.py): nobody waits."""
import hashlib
import os
import time

import pytest

from harness.ipc import Peer
from harness.patience import patience, until
from harness.proof import age, boot_ms, proof_ms
from integration.vault import test_vault, test_vault_admins
from integration.vault.test_vault import FAILURES, PASSWORD, Admind, ask, drain, once, preimage, refused
from integration.vault.test_vault_admins import NEW, change, installed

# Its fixtures.
vault, admind, web, ctl = (test_vault.vault, test_vault.admind, test_vault.web, test_vault.ctl)
administrator, people = test_vault.administrator, test_vault_admins.people

#: What needs a fresh proof of every login, with the event that tells of a refusal.
#: test_vault_fresh.c sees that no message is forgotten.
NEED = {
    "APPROVE": ({"approval": b"a" * 16, "reviewed": b"h" * 32}, "approve_refused"),
    "POLICY_SET": ({"days": 1}, "policy_refused"),
    "ACCESS_SET": ({"document": b"{}"}, "access_refused"),
    "ADMIN_CHANGE": ({"password": PASSWORD, "change": "role", "username": "vic", "role": "reviewer"},
                     "administrator_refused"),
}


def logged_in(vault, web, admind, name="admin", stale=True):
    """A new login's token; stale: its proof is older than it may be."""
    since = boot_ms()
    m = ask(web, admind, "LOGIN", username=name, password=PASSWORD, source="127.0.0.1")
    assert m["_"] == "LOGIN_OK", m
    if stale:
        age(vault.process.pid, m["token"], since)
    return m["token"]


def pending(admind):
    """A request that admind shows: (its id, the hash of its content)."""
    request, pre = os.urandom(16), preimage()
    admind.requests[request] = ("tool", "pending", pre)
    return request, hashlib.sha256(pre).digest()


def approve(peer, admind, token, request, digest):
    return once(peer, admind, "APPROVE", token=token, approval=request, reviewed=digest)


def prove(web, admind, token, password=PASSWORD, source="10.0.0.7"):
    return once(web, admind, "PROVE", token=token, password=password, source=source)


def test_a_login_by_password_begins_proven(vault, web, admind, administrator):
    token = logged_in(vault, web, admind, stale=False)
    assert approve(web, admind, token, *pending(admind))["_"] == "OK"
    until = ask(web, admind, "WHOAMI", token=token)["proof_until_ms"]
    assert 0 < until - time.time_ns() // 1_000_000 <= proof_ms()


@pytest.mark.parametrize("name", NEED)
def test_stale(vault, web, admind, people, name):
    """A stolen login without the password: nothing is asked of admind, nothing changes."""
    fields, event = NEED[name]
    token = logged_in(vault, web, admind)
    drain(admind)
    before = (dict(admind.admins), dict(admind.decisions), dict(admind.secrets), len(admind.stores))
    events = len(admind.events)
    m = once(web, admind, name, token=token, **fields)
    refused(m, "PROOF_REQUIRED")
    assert "five minutes" in m["message"]
    drain(admind)
    assert (dict(admind.admins), dict(admind.decisions), dict(admind.secrets), len(admind.stores)) == before
    told = admind.events[events:]
    assert [(e[0], e[1]) for e in told] == [(event, "admin")]
    if name != "ADMIN_CHANGE":
        assert '"failure":"proof_required"' in told[0][3]
    assert event.encode() in vault.logs()


def test_what_needs_none(vault, web, admind, people):
    """Everything else a login may do with its old proof: above all reject and log out."""
    token = logged_in(vault, web, admind)
    for name, fields in test_vault.OF_A_LOGIN.items():
        if name not in NEED and name not in ("PROVE", "PASSWORD", "LOGOUT", "LOGIN_END", "POLICY_GET", "SEAL_VERIFY"):
            m = once(web, admind, name, token=token, **fields)
            assert m["_"] != "REFUSED", (name, m)
    refused(once(web, admind, "SEAL_VERIFY", token=token, seal_len=1, seal_preimage=b"xy"), "NOT_APPROVED")
    assert ask(web, admind, "WHOAMI", token=token)["proof_until_ms"] == 0
    assert once(web, admind, "LOGIN_END", token=token, username="vic")["_"] == "OK"
    assert once(web, admind, "LOGOUT", token=token)["_"] == "OK"


def test_proven_again(vault, web, admind, administrator):
    token, request = logged_in(vault, web, admind), pending(admind)
    refused(approve(web, admind, token, *request), "PROOF_REQUIRED")
    assert request[0] not in admind.decisions
    since = boot_ms()
    assert prove(web, admind, token)["_"] == "OK"
    assert ask(web, admind, "WHOAMI", token=token)["proof_until_ms"] > time.time() * 1000
    assert approve(web, admind, token, *request)["_"] == "OK"
    assert admind.decisions[request[0]]["actor"] == "admin"
    drain(admind)
    assert ("proof", "admin", "admin", '{"source":"10.0.0.7"}') in admind.events
    # and that proof grows old as well
    age(vault.process.pid, token, since)
    refused(approve(web, admind, token, *pending(admind)), "PROOF_REQUIRED")


def test_nearly_stale_is_fresh(vault, web, admind, administrator):
    """A control of the test's own clock: half of its time later the proof counts."""
    since = boot_ms()
    token = logged_in(vault, web, admind, stale=False)
    age(vault.process.pid, token, since, proof_ms() // 2)
    assert approve(web, admind, token, *pending(admind))["_"] == "OK"


def test_a_wrong_password_proves_nothing(vault, web, admind, administrator):
    token = logged_in(vault, web, admind)
    for password in ("wrong wrong wrong", "", "x" * 600):
        refused(prove(web, admind, token, password), "BAD_LOGIN")
        refused(approve(web, admind, token, *pending(admind)), "PROOF_REQUIRED")
    drain(admind)
    assert ("proof_failed", "admin", "admin", '{"source":"10.0.0.7"}') in admind.events
    # the login is as it was
    assert ask(web, admind, "WHOAMI", token=token)["username"] == "admin"
    assert prove(web, admind, token)["_"] == "OK"
    assert PASSWORD.encode() not in admind.seen


def test_another_persons_password_proves_nothing(vault, web, ctl, admind, people):
    assert change(ctl, admind, "create", "nina", role="administrator", new=NEW)["_"] == "OK"
    token = logged_in(vault, web, admind)
    try:
        refused(prove(web, admind, token, NEW), "BAD_LOGIN")
        # nor does admind help: the verifier that it brings is another name's
        own = admind.admins["admin"]
        admind.admins["admin"] = admind.admins["nina"]
        refused(prove(web, admind, token, NEW), "BAD_LOGIN")
        admind.admins["admin"] = own
        refused(approve(web, admind, token, *pending(admind)), "PROOF_REQUIRED")
    finally:
        assert change(ctl, admind, "delete", "nina")["_"] == "OK"


def test_a_proof_is_of_one_login(vault, web, admind, administrator):
    """The person proves himself in his own browser; the stolen login gains nothing."""
    mine, stolen = (logged_in(vault, web, admind) for _ in range(2))
    assert prove(web, admind, mine)["_"] == "OK"
    assert approve(web, admind, mine, *pending(admind))["_"] == "OK"
    refused(approve(web, admind, stolen, *pending(admind)), "PROOF_REQUIRED")
    assert ask(web, admind, "WHOAMI", token=stolen)["proof_until_ms"] == 0


def test_a_new_password_is_a_proof(vault, web, admind, administrator):
    token = logged_in(vault, web, admind)
    refused(approve(web, admind, token, *pending(admind)), "PROOF_REQUIRED")
    assert once(web, admind, "PASSWORD", token=token, old=PASSWORD, new=NEW)["_"] == "OK"
    assert approve(web, admind, token, *pending(admind))["_"] == "OK"
    assert once(web, admind, "PASSWORD", token=token, old=NEW, new=PASSWORD)["_"] == "OK"


def test_no_login_no_proof(vault, web, admind, administrator):
    token = logged_in(vault, web, admind)
    assert once(web, admind, "LOGOUT", token=token)["_"] == "OK"
    for other in (token, token[:43], "", "x" * 86):
        refused(prove(web, admind, other), "UNAUTHENTICATED")


def test_admind_proves_nobody(vault):
    with Admind.open(test_vault.table, vault, "admind", "admind-vault", "admind") as a:
        a.start("PROVE")
        assert a.closed()


def held(admind, w, token, message, **wanted):
    """A PROVE whose `message` to admind waits: (its number, that of the message, the message)."""
    request = w.start("PROVE", token=token, password=PASSWORD, source="::1")
    while True:
        asked, m = admind.receive(patience(5))
        if m["_"] == message and all(m[k] == v for k, v in wanted.items()):
            return request, asked, m
        admind.serve(asked, m)


def test_a_login_that_ended_meanwhile_is_not_proven(vault, web, ctl, admind, administrator):
    """While its password was judged, or its row written."""
    with Peer.open(test_vault.table, vault, "adminweb", "admind-vault", "http") as w:
        for message, wanted in (("ADMIN_LOOKUP", {}), ("AUDIT_EVENT", {"action": "proof"})):
            token = logged_in(vault, web, admind)
            request, asked, m = held(admind, w, token, message, **wanted)
            assert once(web, admind, "LOGOUT", token=token)["_"] == "OK"
            admind.serve(asked, m)
            refused(w.answer(request), "UNAUTHENTICATED")


def test_a_verifier_that_was_replaced_meanwhile_proves_nothing(vault, web, ctl, admind, people):
    """The person's other login changes the password; the proof under the former one is none."""
    with Peer.open(test_vault.table, vault, "adminweb", "admind-vault", "http") as w:
        token = logged_in(vault, web, admind)
        request, asked, m = held(admind, w, token, "AUDIT_EVENT", action="proof")
        assert once(web, admind, "PASSWORD", token=token, old=PASSWORD, new=NEW)["_"] == "OK"
        admind.serve(asked, m)
        refused(w.answer(request), "CONFLICT")
        assert once(web, admind, "PASSWORD", token=token, old=NEW, new=PASSWORD)["_"] == "OK"


def test_no_proof_without_its_row(vault, web, admind, administrator, monkeypatch):
    token = logged_in(vault, web, admind)
    monkeypatch.setattr(Admind, "on_audit_event", lambda self, m: (
        "REFUSED", {"failure": FAILURES["STORAGE_UNAVAILABLE"], "message": "no database"}))
    refused(prove(web, admind, token), "STORAGE_UNAVAILABLE")
    monkeypatch.undo()
    refused(approve(web, admind, token, *pending(admind)), "PROOF_REQUIRED")


def test_a_slow_admind_makes_no_proof_stale(vault, web, admind, administrator):
    """The proof counts when the request comes; it grows old while admind looks for the content."""
    since = boot_ms()
    token, (request, digest) = logged_in(vault, web, admind, stale=False), pending(admind)
    with Peer.open(test_vault.table, vault, "adminweb", "admind-vault", "http") as w:
        asking = w.start("APPROVE", token=token, approval=request, reviewed=digest)
        while True:
            asked, m = admind.receive(patience(5))
            if m["_"] == "CONTENT_GET":
                break
            admind.serve(asked, m)
        age(vault.process.pid, token, since)
        admind.serve(asked, m)
        while request not in admind.decisions:
            admind.serve(*admind.receive(patience(5)))
        assert w.answer(asking)["_"] == "OK"
    refused(approve(web, admind, token, *pending(admind)), "PROOF_REQUIRED")


def test_root_needs_no_proof(ctl, admind, people):
    """The way back in: uid 0's own socket."""
    request, digest = pending(admind)
    assert once(ctl, admind, "APPROVE", approval=request, reviewed=digest)["_"] == "OK"
    assert once(ctl, admind, "ADMIN_CHANGE", change="role", username="vic", role="reviewer")["_"] == "OK"
    assert once(ctl, admind, "SECRET_SET", server="demo", key="A_KEY", value=b"v")["_"] == "OK"


def test_wrong_proofs_are_throttled():
    """They count against the login that shows them: no other login of the person is concerned."""
    with installed() as (v, admind, web, _):
        stolen, mine = (logged_in(v, web, admind) for _ in range(2))
        codes = [prove(web, admind, stolen, "wrong wrong")["failure"] for _ in range(10)]
        assert codes == [FAILURES["BAD_LOGIN"]] * 10

        def unjudged(right):
            """A slow machine gives one guess back now and then: again."""
            while (m := prove(web, admind, stolen, "wrong wrong"))["failure"] != FAILURES["RATE_LIMITED"]:
                refused(m, "BAD_LOGIN")
            assert 0 < m["retry_after_ms"] <= 3000
            m = right()
            return m["_"] == "REFUSED" and m["failure"] == FAILURES["RATE_LIMITED"]
        # the right one is not even looked at, nor does another way to show a password give more guesses
        until(lambda: unjudged(lambda: prove(web, admind, stolen)))
        until(lambda: unjudged(lambda: once(web, admind, "PASSWORD", token=stolen, old=PASSWORD, new=PASSWORD)))
        assert prove(web, admind, mine)["_"] == "OK"
        assert approve(web, admind, mine, *pending(admind))["_"] == "OK"
        for _ in range(15):     # right ones cost nothing
            assert prove(web, admind, mine)["_"] == "OK"
