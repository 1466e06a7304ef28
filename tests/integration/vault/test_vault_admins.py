"""Administrators at the vault's own sockets, admind being ours and hostile: who
may change whom, what a person's logins are worth afterwards, and whom a flood of
wrong passwords keeps out."""
import contextlib
import hashlib
import os
import time

import pytest

from harness.ipc import Peer
from harness.patience import patience, until
from integration.vault import test_vault
from integration.vault.test_vault import FAILURES, PASSWORD, Admind, ask, drain, refused

# Its fixtures.
vault, admind, web, ctl = (test_vault.vault, test_vault.admind, test_vault.web, test_vault.ctl)
administrator, token = test_vault.administrator, test_vault.token
NEW = "a new password of hers"


def login(web, admind, name, password=PASSWORD, **more):
    m = ask(web, admind, "LOGIN", username=name, password=password, source="127.0.0.1", **more)
    assert m["_"] == "LOGIN_OK", m
    return m


def change(peer, admind, what, name, **more):
    return ask(peer, admind, "ADMIN_CHANGE", change=what, username=name, **more)


@pytest.fixture
def people(ctl, admind, administrator):
    """A reviewer and a viewer, made by root."""
    for name, role in (("rita", "reviewer"), ("vic", "viewer")):
        if name in admind.admins:
            assert change(ctl, admind, "delete", name)["_"] == "OK"
        assert change(ctl, admind, "create", name, role=role, new=PASSWORD)["_"] == "OK"
        assert admind.stores[-1] == ("create", name, role, "root")


def test_roles(web, admind, people):
    assert login(web, admind, "rita")["role"] == "reviewer"
    assert login(web, admind, "vic")["role"] == "viewer"


def test_an_administrator_changes_others_with_the_own_password(web, admind, token, people):
    own = {"token": token, "password": PASSWORD}
    assert change(web, admind, "create", "nina", role="viewer", new=NEW, **own)["_"] == "OK"
    assert admind.stores[-1] == ("create", "nina", "viewer", "admin")
    nina = login(web, admind, "nina", NEW)["token"]
    assert change(web, admind, "role", "nina", role="reviewer", **own)["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=nina), "UNAUTHENTICATED")
    nina = login(web, admind, "nina", NEW)      # with the password as it was
    assert nina["role"] == "reviewer"
    assert change(web, admind, "password", "nina", new=PASSWORD, **own)["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=nina["token"]), "UNAUTHENTICATED")
    refused(ask(web, admind, "LOGIN", username="nina", password=NEW), "BAD_LOGIN")
    nina = login(web, admind, "nina")["token"]
    assert change(web, admind, "delete", "nina", **own)["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=nina), "UNAUTHENTICATED")
    refused(ask(web, admind, "LOGIN", username="nina", password=PASSWORD), "BAD_LOGIN")
    assert [s[0] for s in admind.stores[-4:]] == ["create", "role", "password", "delete"]
    assert ask(web, admind, "WHOAMI", token=token)["username"] == "admin"


CHANGES = [("create", "newone", {"role": "viewer", "new": NEW}), ("role", "vic", {"role": "reviewer"}),
           ("password", "vic", {"new": NEW}), ("delete", "vic", {})]


@pytest.mark.parametrize("what,name,more", CHANGES)
def test_a_login_alone_changes_nobody(web, admind, token, people, what, name, more):
    """A stolen cookie, or a web process taken over: no account outlives it."""
    before = dict(admind.admins)
    for password in ("", "wrong wrong wrong", "x" * 600):
        refused(change(web, admind, what, name, token=token, password=password, **more), "BAD_LOGIN")
    for t in ("", "x" * 43):
        refused(change(web, admind, what, name, token=t, password=PASSWORD, **more), "UNAUTHENTICATED")
    for who in ("rita", "vic"):
        t = login(web, admind, who)["token"]
        refused(change(web, admind, what, name, token=t, password=PASSWORD, **more), "FORBIDDEN")
    drain(admind)
    assert admind.admins == before
    assert "password_wrong" in [e[0] for e in admind.events]


@pytest.mark.parametrize("what,name,more", [
    ("create", "9lives", {"role": "viewer", "new": NEW}), ("create", "ok_name", {"role": "owner", "new": NEW}),
    ("create", "ok_name", {"role": "viewer", "new": "short"}), ("create", "ok_name", {"new": NEW}),
    ("role", "vic", {"role": ""}), ("role", "vic", {"role": "viewer", "new": NEW}),
    ("password", "vic", {"new": "x" * 129}), ("password", "vic", {"new": NEW, "role": "administrator"}),
    ("delete", "vic", {"role": "viewer"}), ("", "vic", {}), ("setup", "vic", {}), ("own_password", "vic", {}),
    ("deleted", "vic", {}), ("password", "admin", {"new": NEW})])
def test_unfit_changes(web, admind, token, people, what, name, more):
    before = dict(admind.admins)
    refused(change(web, admind, what, name, token=token, password=PASSWORD, **more), "INVALID_PARAMS")
    assert admind.admins == before


@pytest.mark.parametrize("what,more", [("role", {"role": "viewer"}), ("password", {"new": NEW})])
def test_nobody_is_not_changed(ctl, admind, administrator, what, more):
    refused(change(ctl, admind, what, "nobody", **more), "NOT_FOUND")


def test_admind_may_change_nobody(vault, admind):
    for name in ("ADMIN_CHANGE", "DEVICE_MAKE", "LOGINS_GET", "LOGIN_END", "AUDIT_CHECK"):
        with Admind.open(test_vault.table, vault, "admind", "admind-vault", "admind") as a:
            a.start(name)
            assert a.closed(), name


def test_the_web_process_has_no_codes(vault):
    for name in ("DEVICE_MAKE", "AUDIT_CHECK"):
        with Peer.open(test_vault.table, vault, "adminweb", "admind-vault", "http") as w:
            w.start(name)
            assert w.closed(), name


# --- what a hostile admind can bring back ---

def test_what_was_taken_away_does_not_come_back(web, ctl, admind, people, token):
    """A demotion, a former password, a person who was deleted: admind keeps every
    verifier it ever stored, and brings them again."""
    assert change(ctl, admind, "create", "eve", role="administrator", new=PASSWORD)["_"] == "OK"
    great = admind.admins["eve"]
    assert change(ctl, admind, "role", "eve", role="viewer")["_"] == "OK"
    small = admind.admins["eve"]
    admind.admins["eve"] = great
    refused(ask(web, admind, "LOGIN", username="eve", password=PASSWORD), "BAD_LOGIN")
    admind.admins["eve"] = small
    assert login(web, admind, "eve")["role"] == "viewer"
    assert change(ctl, admind, "password", "eve", new=NEW)["_"] == "OK"
    renewed = admind.admins["eve"]
    for old in (great, small):
        admind.admins["eve"] = old
        refused(ask(web, admind, "LOGIN", username="eve", password=PASSWORD), "BAD_LOGIN")
    admind.admins["eve"] = renewed
    assert change(ctl, admind, "delete", "eve")["_"] == "OK"
    for old in (great, small, renewed):
        admind.admins["eve"] = old
        for password in (PASSWORD, NEW):
            refused(ask(web, admind, "LOGIN", username="eve", password=password), "BAD_LOGIN")
    del admind.admins["eve"]
    assert change(ctl, admind, "create", "eve", role="viewer", new=PASSWORD)["_"] == "OK"
    assert login(web, admind, "eve")["role"] == "viewer"
    assert change(ctl, admind, "delete", "eve")["_"] == "OK"


def test_a_change_that_was_not_committed_changed_nothing(web, ctl, admind, people, monkeypatch):
    monkeypatch.setattr(Admind, "on_admin_store", lambda self, m: (
        "REFUSED", {"failure": FAILURES["STORAGE_UNAVAILABLE"], "message": "no database"}))
    for what, more in (("password", {"new": NEW}), ("role", {"role": "reviewer"}), ("delete", {})):
        t = login(web, admind, "vic")["token"]
        refused(change(ctl, admind, what, "vic", **more), "STORAGE_UNAVAILABLE")
        assert ask(web, admind, "WHOAMI", token=t)["role"] == "viewer"
    login(web, admind, "vic")


def test_a_login_begun_before_a_new_role_is_none(vault, web, ctl, admind, people):
    """Its verifier was fetched, its password is right, its audit row is being
    written; then the role changes."""
    with Peer.open(test_vault.table, vault, "adminweb", "admind-vault", "http") as w:
        request = w.start("LOGIN", username="rita", password=PASSWORD, source="::1")
        while True:
            held, m = admind.receive(patience(5))
            if m["_"] == "AUDIT_EVENT" and m["action"] == "login":
                break
            admind.serve(held, m)
        assert change(ctl, admind, "role", "rita", role="viewer")["_"] == "OK"
        admind.send("OK", request=held)
        refused(w.answer(request), "CONFLICT")


# --- logins ---

def test_logins_are_listed_and_ended(web, ctl, admind, people, token):
    def items(peer, **who):
        import json
        return json.loads(ask(peer, admind, "LOGINS_GET", **who)["json"])["items"]

    agent = "Browser/1 é"
    rita = [login(web, admind, "rita", agent=agent)["token"] for _ in range(2)]
    vic = login(web, admind, "vic", agent=b"x" * 127 + "é".encode())["token"]
    own = items(web, token=rita[0])
    assert {i["username"] for i in own} == {"rita"} and [i["current"] for i in own].count(True) == 1
    assert own[-1]["agent"] == agent and own[-1]["source"] == "127.0.0.1"
    everybody = items(web, token=token)
    assert {"admin", "rita", "vic"} <= {i["username"] for i in everybody}
    assert [i for i in everybody if i["username"] == "vic"][0]["agent"] == ""   # cut inside a character
    assert {i["username"] for i in items(ctl, username="vic")} == {"vic"}
    theirs = {i["username"]: bytes.fromhex(i["id"].replace("-", "")) for i in everybody}
    # another's is not even there; an administrator ends it
    refused(ask(web, admind, "LOGIN_END", token=rita[0], login=theirs["vic"]), "NOT_FOUND")
    refused(ask(web, admind, "LOGIN_END", token=rita[0], username="vic"), "FORBIDDEN")
    refused(ask(web, admind, "LOGIN_END", token=token, login=os.urandom(16)), "NOT_FOUND")
    refused(ask(web, admind, "WHOAMI", token=theirs["vic"].hex()), "UNAUTHENTICATED")
    assert ask(web, admind, "LOGIN_END", token=token, login=theirs["vic"])["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=vic), "UNAUTHENTICATED")
    other = next(i for i in own if not i["current"])
    assert ask(web, admind, "LOGIN_END", token=rita[0],
               login=bytes.fromhex(other["id"].replace("-", "")))["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=rita[1]), "UNAUTHENTICATED")
    assert ask(ctl, admind, "LOGIN_END", username="rita")["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=rita[0]), "UNAUTHENTICATED")
    refused(ask(web, admind, "LOGINS_GET", token=rita[0]), "UNAUTHENTICATED")
    drain(admind)
    ended = [e for e in admind.events if e[0] == "login_ended"]
    assert [(e[1], e[2]) for e in ended[-3:]] == [("admin", "vic"), ("rita", "rita"), ("root", "rita")]


def test_an_end_needs_nobody(vault, ctl, web, admind, people, monkeypatch):
    """Also while admind writes nothing down."""
    t = login(web, admind, "vic")["token"]
    monkeypatch.setattr(Admind, "on_audit_event", lambda self, m: (
        "REFUSED", {"failure": FAILURES["STORAGE_UNAVAILABLE"], "message": "no"}))
    assert ask(ctl, admind, "LOGIN_END", username="vic")["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=t), "UNAUTHENTICATED")
    assert b"login_ended" in vault.logs()


def test_a_look_up_is_use(web, admind, token):
    before = ask(web, admind, "WHOAMI", token=token)
    time.sleep(0.02)
    after = ask(admind, admind, "SESSION_LOOKUP", token=hashlib.sha256(token.encode()).digest())
    assert after["idle_ms"] > before["idle_ms"] and after["expires_ms"] == before["expires_ms"]
    assert 7100 < after["idle_ms"] / 1000 - time.time() < 7205


# --- a vault as it is installed, for what wrong passwords cost ---

@contextlib.contextmanager
def installed(settings=""):
    """A vault with the burst of an installation, an administrator, and admind."""
    test_vault.table = test_vault.table or test_vault.Table()
    v = test_vault.Vault()
    v.stop()
    with open(v.path("conf"), encoding="ascii") as f:
        conf = f.read().replace("login_burst 1000\n", settings)
    v.write("conf", conf.encode(), 0o644, 0)
    v.start()
    a = Admind.open(test_vault.table, v, "admind", "admind-vault", "admind")
    w = Peer.open(test_vault.table, v, "adminweb", "admind-vault", "http")
    c = Peer(test_vault.table, test_vault.socket_as(0, [], v.run("admind-vault", "ctl.sock")))
    for name in ("admin", "other"):
        m = (ask(c, a, "SETUP", username=name, password=PASSWORD) if name == "admin"
             else change(c, a, "create", name, role="viewer", new=PASSWORD))
        assert m["_"] == "OK", m
    yield v, a, w, c
    for p in (a, w, c):
        p.sock.close()
    v.close()


@pytest.fixture(scope="module")
def strict():
    with installed() as made:
        yield made


def exhaust(web, admind, name, **more):
    """Wrong passwords until they are refused unjudged; the last answer."""
    for n in range(200):
        m = ask(web, admind, "LOGIN", username=name, password="wrong wrong", **more)
        if m["failure"] != FAILURES["BAD_LOGIN"]:
            refused(m, "RATE_LIMITED")
            assert 0 < m["retry_after_ms"] <= 3000
            return n, m
    raise AssertionError("never refused")


def test_nobody_locks_others_out(strict):
    """All are 127.0.0.1. One guesses at admin without end: who logged in here
    before gets in, from a new browser with a code of root's, others as ever."""
    _, admind, web, ctl = strict
    device = login(web, admind, "admin")["device"]
    n, m = exhaust(web, admind, "admin")
    assert n == 10
    assert "mcpboxctl administrators device" in m["message"]
    # the attacker goes on, and the right password is not even looked at ...
    refused(ask(web, admind, "LOGIN", username="admin", password=PASSWORD), "RATE_LIMITED")
    # ... but from the browser that is known
    for _ in range(12):
        device = login(web, admind, "admin", device=device)["device"]
        exhaust(web, admind, "admin")
    # another person is not concerned
    login(web, admind, "other")
    # a new browser, with root's code
    code = ask(ctl, admind, "DEVICE_MAKE", username="admin")
    assert code["_"] == "DEVICE_CODE" and 890 < code["expires_ms"] / 1000 - time.time() <= 901
    login(web, admind, "admin", device=code["device"])
    drain(admind)
    assert ("device_code", "root", "admin", "{}") in admind.events


def test_a_device_is_one_persons(strict):
    """Neither forged, nor another's, nor the guesser's own."""
    _, admind, web, ctl = strict
    theirs = login(web, admind, "other", device="")["device"]
    exhaust(web, admind, "admin")
    for device in (theirs, theirs[:-1], "A" * len(theirs), "x" * 400, "é"):
        refused(ask(web, admind, "LOGIN", username="admin", password=PASSWORD, device=device), "RATE_LIMITED")
    code = ask(ctl, admind, "DEVICE_MAKE", username="other")["device"]
    refused(ask(web, admind, "LOGIN", username="admin", password=PASSWORD, device=code), "RATE_LIMITED")
    # a stolen cookie buys ten guesses, then one in 3 s, and no login
    assert exhaust(web, admind, "other", device=theirs)[0] == 10
    other = login(web, admind, "other")["device"]
    login(web, admind, "other", device=other)


def test_only_failures_cost(strict):
    _, admind, web, _ = strict
    device = ""
    for _ in range(25):
        device = login(web, admind, "other", device=device)["device"]


def test_wrong_own_passwords_count_against_that_login(strict):
    _, admind, web, ctl = strict
    device = ask(ctl, admind, "DEVICE_MAKE", username="admin")["device"]
    stolen, mine = (login(web, admind, "admin", device=device)["token"] for _ in range(2))
    codes = [ask(web, admind, "PASSWORD", token=stolen, old="wrong wrong", new=NEW)["failure"] for _ in range(14)]
    assert codes[:10] == [FAILURES["BAD_LOGIN"]] * 10 and codes[-1] == FAILURES["RATE_LIMITED"]
    refused(change(web, admind, "delete", "other", token=stolen, password=PASSWORD), "RATE_LIMITED")
    assert change(web, admind, "role", "other", role="reviewer", token=mine, password=PASSWORD)["_"] == "OK"
    assert change(web, admind, "role", "other", role="viewer", token=mine, password=PASSWORD)["_"] == "OK"


IDLE_S = 2


def test_a_login_that_is_not_used_ends():
    def tried(admind, web):
        used, idle = (login(web, admind, "admin")["token"] for _ in range(2))
        last = time.monotonic()
        for _ in range(5):
            time.sleep(0.3 * IDLE_S)
            now = time.monotonic()
            if ask(web, admind, "WHOAMI", token=used)["_"] != "SESSION_INFO":
                assert time.monotonic() - last >= IDLE_S    # this machine was late: again
                return False
            last = now
        refused(ask(web, admind, "WHOAMI", token=idle), "UNAUTHENTICATED")
        return True

    with installed(f"login_idle {IDLE_S}s\n") as (_, admind, web, _):
        until(lambda: tried(admind, web))


def test_all_names_together(strict):
    """Whoever tries many names has one bucket for them all, also for those that
    don't exist; the known browser is not concerned."""
    _, admind, web, ctl = strict
    device = ask(ctl, admind, "DEVICE_MAKE", username="admin")["device"]
    device = login(web, admind, "admin", device=device)["device"]
    for n in range(120):
        m = ask(web, admind, "LOGIN", username=f"user{n}", password="wrong wrong")
        if m["failure"] == FAILURES["RATE_LIMITED"]:
            break
    assert n < 90 and m["retry_after_ms"] <= 1000, (n, m)
    login(web, admind, "admin", device=device)


def test_a_flood_of_strangers_keeps_no_room(strict):
    """While admind answers no look-up: strangers hold few requests, a known
    browser's goes through."""
    v, admind, web, ctl = strict
    device = ask(ctl, admind, "DEVICE_MAKE", username="admin")["device"]
    # let all names fill up again, a little
    time.sleep(3)
    drain(admind)
    with Peer.open(test_vault.table, v, "adminweb", "admind-vault", "http") as w:
        for n in range(300):
            w.start("LOGIN", username=f"name{n}", password="wrong wrong")
        asked = [admind.receive()]
        while True:
            try:
                asked.append(admind.receive(0.2))
            except TimeoutError:
                break
        assert 1 <= len(asked) <= 64
        login(web, admind, "admin", device=device)
        for request, _ in asked:
            admind.send("REFUSED", request=request, failure=FAILURES["BUSY"], message="no")
        drain(admind)


# --- signatures of the audit chain ---

def test_signatures_are_checked_for_root(ctl, admind):
    head = os.urandom(32)
    seq = 1000
    good = ask(admind, admind, "AUDIT_SIGN", seq=seq, head=head)["signature"]

    def anchor(n, h, s):
        return n.to_bytes(8, "big") + h + s

    bad = [anchor(seq + 1, head, good), anchor(seq, os.urandom(32), good), anchor(seq, head, os.urandom(32))]
    m = ask(ctl, admind, "AUDIT_CHECK", anchors=anchor(seq, head, good) + b"".join(bad))
    assert m["_"] == "AUDIT_CHECKED" and m["valid"] == b"\1\0\0\0"
    assert (m["seq"], m["head"]) == (seq, head)
    refused(ask(ctl, admind, "AUDIT_CHECK", anchors=b"x" * 71), "INVALID_PARAMS")
    refused(ask(ctl, admind, "AUDIT_CHECK", anchors=b"x" * 72 * 801), "INVALID_PARAMS")
    assert ask(ctl, admind, "AUDIT_CHECK")["valid"] == b""
