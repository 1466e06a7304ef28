"""Passkeys at the vault's own sockets, admind being ours and hostile: what registers, what is a
second factor and a proof, and every way to get by without one."""
import hashlib
import json
import struct

import pytest

from harness.ipc import Peer
from harness.patience import patience, until
from harness.played.authenticator import BE, EDDSA, ES256, UP, UV, Passkey, b64
from harness.proof import age, boot_ms
from integration.vault import test_vault
from integration.vault.test_vault import FAILURES, OF_A_LOGIN, PASSWORD, Admind, ask, drain, once, refused
from integration.vault.test_vault_admins import change, installed

# Its fixtures.
vault = test_vault.vault


class Keeper(Admind):
    """admind, which keeps sets of passkeys too: and every older one, to bring it back."""

    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.sets, self.kept, self.changes = {}, [], []
        self.hide, self.refuse = False, None

    def on_admin_lookup(self, m):
        name, fields = super().on_admin_lookup(m)
        return name, dict(fields, passkeys=b"" if self.hide else self.sets.get(m["username"], b""))

    def on_passkeys_store(self, m):
        if self.refuse:
            return "REFUSED", {"failure": FAILURES[self.refuse], "message": "no"}
        user = m["username"]
        self.kept.append((self.admins.get(user), self.sets.get(user, b"")))
        self.changes.append((m["change"], user, m["actor"], json.loads(m["detail"])))
        self.sets[user] = m["passkeys"]
        if m["verifier"]:
            self.admins[user] = (m["role"], m["verifier"])
        return "OK", {}


@pytest.fixture(scope="module")
def admind(vault):
    with Keeper.open(test_vault.table, vault, "admind", "admind-vault", "admind") as a:
        yield a


@pytest.fixture(scope="module")
def web(vault, admind):
    with Peer.open(test_vault.table, vault, "adminweb", "admind-vault", "http") as w:
        yield w


ctl = test_vault.ctl


@pytest.fixture
def people(ctl, admind):
    """Three persons without passkeys, made by root."""
    admind.hide, admind.refuse = False, None
    for name, role in (("admin", "administrator"), ("rita", "reviewer"), ("vic", "viewer")):
        if name in admind.admins:
            assert change(ctl, admind, "delete", name)["_"] == "OK"
        admind.sets.pop(name, None)
        assert change(ctl, admind, "create", name, role=role, new=PASSWORD)["_"] == "OK"


def login(web, admind, name="rita"):
    m = ask(web, admind, "LOGIN", username=name, password=PASSWORD, source="127.0.0.1")
    assert m["_"] == "LOGIN_OK", m
    return m["token"]


def options(web, admind, token, kind):
    m = once(web, admind, "PASSKEY_CHALLENGE", token=token, kind=kind)
    assert m["_"] == "PASSKEY_OPTIONS", m
    return json.loads(m["json"])


def register(web, admind, token, key, asked=None, code="", **more):
    client, attestation = key.create(asked or options(web, admind, token, "register"), **more)
    return once(web, admind, "PASSKEY_REGISTER", token=token, code=code, label="a key",
                client_data=client, attestation=attestation)


def use(web, admind, token, kind, key, asked=None, **more):
    fields = key.get(asked or options(web, admind, token, kind), **more)
    return once(web, admind, "PASSKEY_ASSERT", token=token, kind=kind, **fields)


def enrolled(web, admind, name="rita", alg=ES256):
    """A person with a passkey: (the passkey, the whole login that registered it)."""
    token, key = login(web, admind, name), Passkey(alg)
    assert register(web, admind, token, key)["_"] == "OK"
    return key, token


def answered(admind, peer, request):
    """The answer to a request that was started before, with admind answering meanwhile."""
    found = []

    def come():
        drain(admind, 0.05)
        try:
            got, m = peer.receive(0.005)
        except TimeoutError:
            return False
        found.append(m)
        return got == request
    until(come, 20)
    return found[-1]


def is_pending(web, admind, token):
    """This login can do nothing: no message of a login, and none that admind looks up."""
    for name, fields in OF_A_LOGIN.items():
        if name != "LOGOUT":
            refused(ask(web, admind, name, token=token, **fields), "UNAUTHENTICATED")
    for name, fields in (("PASSKEYS_GET", {}), ("PASSKEY_REMOVE", {"credential": "AAAA"}),
                         ("PASSKEY_REGISTER", {"label": "x"}), ("PASSKEY_CHALLENGE", {"kind": "register"}),
                         ("PASSKEY_CHALLENGE", {"kind": "proof"}), ("PASSKEY_ASSERT", {"kind": "proof"})):
        refused(once(web, admind, name, token=token, **fields), "UNAUTHENTICATED")
    digest = hashlib.sha256(token.encode()).digest()
    refused(admind.call("SESSION_LOOKUP", token=digest), "UNAUTHENTICATED")
    return True


@pytest.mark.parametrize("alg", [ES256, EDDSA])
def test_second_factor(web, admind, people, alg):
    key, first = enrolled(web, admind, alg=alg)
    assert ask(web, admind, "WHOAMI", token=first)["_"] == "SESSION_INFO"
    assert admind.changes[-1][:3] == ("register", "rita", "rita")
    m = ask(web, admind, "LOGIN", username="rita", password=PASSWORD, source="127.0.0.1")
    assert m["passkey"] == 1
    assert is_pending(web, admind, m["token"])
    key.count = 1
    info = use(web, admind, m["token"], "login", key)
    assert info["_"] == "SESSION_INFO" and (info["username"], info["role"]) == ("rita", "reviewer")
    assert admind.changes[-1][0] == "login"
    assert info["proof_until_ms"] > 0
    assert ask(web, admind, "WHOAMI", token=m["token"])["role"] == "reviewer"
    digest = hashlib.sha256(m["token"].encode()).digest()
    assert admind.call("SESSION_LOOKUP", token=digest)["username"] == "rita"
    # the wrong password is still wrong, and others need no passkey
    refused(ask(web, admind, "LOGIN", username="rita", password="another password"), "BAD_LOGIN")
    assert ask(web, admind, "LOGIN", username="vic", password=PASSWORD)["passkey"] == 0


def test_a_pending_login_can_log_out(web, admind, people):
    key, _ = enrolled(web, admind)
    token = login(web, admind)
    asked = options(web, admind, token, "login")
    assert once(web, admind, "LOGOUT", token=token)["_"] == "OK"
    refused(use(web, admind, token, "login", key, asked), "UNAUTHENTICATED")


def test_pending_logins_end_none_that_are_whole(web, ctl, admind, people):
    key, whole = enrolled(web, admind)
    begun = login(web, admind)
    items = json.loads(ask(ctl, admind, "LOGINS_GET", username="rita")["json"])["items"]
    assert sorted(i["pending"] for i in items) == [False, True]
    assert use(web, admind, begun, "login", key)["_"] == "SESSION_INFO"
    assert ask(web, admind, "WHOAMI", token=whole)["_"] == "SESSION_INFO"
    begun = [login(web, admind) for _ in range(20)]
    assert ask(web, admind, "WHOAMI", token=whole)["_"] == "SESSION_INFO"
    refused(once(web, admind, "PASSKEY_CHALLENGE", token=begun[0], kind="login"), "UNAUTHENTICATED")
    assert options(web, admind, begun[-1], "login")["publicKey"]["allowCredentials"]


def test_other_logins_end_when_the_first_passkey_comes(web, admind, people):
    other = login(web, admind)
    enrolled(web, admind)
    refused(ask(web, admind, "WHOAMI", token=other), "UNAUTHENTICATED")


def test_proof(vault, web, admind, people):
    """A stale login registers nothing and removes nothing; its passkey makes it fresh."""
    since = boot_ms()
    key, token = enrolled(web, admind)
    age(vault.process.pid, token, since)
    more = Passkey()
    refused(register(web, admind, token, more), "PROOF_REQUIRED")
    refused(once(web, admind, "PASSKEY_REMOVE", token=token, credential=b64(key.id)), "PROOF_REQUIRED")
    assert use(web, admind, token, "proof", key)["proof_until_ms"] > 0
    assert admind.changes[-1][0] == "proof"
    assert register(web, admind, token, more)["_"] == "OK"
    items = json.loads(once(web, admind, "PASSKEYS_GET", token=token)["json"])["items"]
    assert [(i["id"], i["label"], i["role"]) for i in items] == [
        (b64(key.id), "a key", None), (b64(more.id), "a key", None)]
    assert items[0]["used_at"] and items[1]["used_at"] is None
    # the last one goes: a password is a login again
    for k in (key, more):
        assert once(web, admind, "PASSKEY_REMOVE", token=token, credential=b64(k.id))["_"] == "OK"
    assert admind.sets["rita"] == b""
    assert ask(web, admind, "LOGIN", username="rita", password=PASSWORD)["passkey"] == 0


def test_a_removed_passkey_ends_the_other_logins(web, ctl, admind, people):
    """A thief logged in with the passkey that is taken away, while another one stays."""
    lost, token = enrolled(web, admind)
    assert register(web, admind, token, Passkey())["_"] == "OK"
    thief = login(web, admind)
    assert use(web, admind, thief, "login", lost)["_"] == "SESSION_INFO"
    assert once(web, admind, "PASSKEY_REMOVE", token=token, credential=b64(lost.id))["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=thief), "UNAUTHENTICATED")
    assert ask(web, admind, "WHOAMI", token=token)["_"] == "SESSION_INFO"
    assert once(ctl, admind, "PASSKEY_REMOVE", username="rita")["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=token), "UNAUTHENTICATED")


def test_a_login_that_ended_meanwhile_removes_nothing(vault, web, admind, people):
    key, token = enrolled(web, admind)
    with Peer.open(test_vault.table, vault, "adminweb", "admind-vault", "http") as w:
        request = w.start("PASSKEY_REMOVE", token=token, credential=b64(key.id))
        while (got := admind.receive(patience(5)))[1]["_"] != "ADMIN_LOOKUP":
            admind.serve(*got)
        assert once(web, admind, "LOGOUT", token=token)["_"] == "OK"
        admind.serve(*got)
        refused(answered(admind, w, request), "UNAUTHENTICATED")
    assert ask(web, admind, "LOGIN", username="rita", password=PASSWORD)["passkey"] == 1


WRONG = {
    "another origin": (lambda k: None, {"origin": "http://localhost:8001"}),
    "a page of a stranger": (lambda k: None, {"origin": "https://evil.example"}),
    "another RP id": (lambda k: setattr(k, "rp_id", "evil.example"), {}),
    "nobody verified": (lambda k: setattr(k, "flags", UP), {}),
    "nobody there": (lambda k: setattr(k, "flags", UV), {}),
    "another kind of passkey": (lambda k: setattr(k, "flags", UP | UV | BE), {}),
    "the counter as it was": (lambda k: setattr(k, "count", 7), {}),
    "the counter gone back": (lambda k: setattr(k, "count", 1), {}),
    "another person's handle": (lambda k: setattr(k, "handle", bytes(16)), {}),
    "another id": (lambda k: setattr(k, "id", bytes(32)), {}),
    "another key": (lambda k: setattr(k, "key", Passkey().key), {}),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_assertions(web, admind, people, name):
    key, _ = enrolled(web, admind)
    token = login(web, admind)
    key.count = 7
    assert use(web, admind, token, "login", key)["_"] == "SESSION_INFO"
    token, (spoil, more) = login(web, admind), WRONG[name]
    key.count = 8
    spoil(key)
    before = admind.sets["rita"]
    refused(use(web, admind, token, "login", key, **more), "PASSKEY_REFUSED")
    drain(admind)
    if "counter" not in name:
        assert admind.events[-1][0] == "passkey_refused"
        assert is_pending(web, admind, token) and admind.sets["rita"] == before
        return
    # There may be a copy. However far it counts, neither gets in again.
    assert admind.changes[-1][:3] == ("cloned", "rita", "rita") and admind.sets["rita"] != before
    key.count = 2**32 - 1
    refused(use(web, admind, token, "login", key), "PASSKEY_REFUSED")
    assert is_pending(web, admind, token)


def test_a_login_without_a_proof_holds_no_change_up(vault, web, ctl, admind, people):
    """It is refused before admind is asked, so that a slow answer holds up nobody's change."""
    since = boot_ms()
    token = login(web, admind)
    age(vault.process.pid, token, since)
    with Peer.open(test_vault.table, vault, "adminweb", "admind-vault", "http") as w:
        refused(w.call("PASSKEY_REGISTER", token=token, label="x"), "PROOF_REQUIRED")
    assert change(ctl, admind, "role", "vic", role="reviewer")["_"] == "OK"


def test_malformed_answers_are_counted():
    """As wrong ones are: each costs the vault a look at the set."""
    with installed() as (v, admind, web, _):
        token, key = login(web, admind, "admin"), Passkey()

        def malformed():
            client, _ = key.create(options(web, admind, token, "register"))
            m = once(web, admind, "PASSKEY_REGISTER", token=token, label="x", client_data=client, attestation=b"\xff")
            return m["failure"] == FAILURES["RATE_LIMITED"] or not refused(m, "INVALID_PARAMS")
        until(malformed)


def test_passkeys_are_off_without_an_origin():
    """As an installation begins: nobody on [::1] has the origin of a page of ours."""
    with installed() as (v, admind, web, ctl):
        v.stop()
        with open(v.path("conf"), encoding="ascii") as f:
            conf = f.read()
        v.write("conf", conf.replace(test_vault.PASSKEYS, "").encode(), 0o644, 0)
        v.start()
        with (Admind.open(test_vault.table, v, "admind", "admind-vault", "admind") as a,
              Peer.open(test_vault.table, v, "adminweb", "admind-vault", "http") as w):
            a.admins = admind.admins
            token = login(w, a, "admin")
            for name, fields in (("PASSKEY_CHALLENGE", {"kind": "register"}), ("PASSKEY_CHALLENGE", {"kind": "proof"}),
                                 ("PASSKEY_REGISTER", {"label": "x"}), ("PASSKEY_ASSERT", {"kind": "proof"})):
                m = once(w, a, name, token=token, **fields)
                assert refused(m, "FORBIDDEN") and "passkey_origins" in m["message"]
            assert json.loads(once(w, a, "PASSKEYS_GET", token=token)["json"])["items"] == []


def test_wrong_registrations(web, admind, people):
    token = login(web, admind)
    for spoil, more in ((lambda k: None, {"origin": "https://evil.example"}),
                        (lambda k: setattr(k, "rp_id", "evil.example"), {}),
                        (lambda k: setattr(k, "flags", UP), {})):
        key = Passkey()
        spoil(key)
        refused(register(web, admind, token, key, **more), "PASSKEY_REFUSED")
    assert "rita" not in admind.sets
    # one challenge, one answer; and one passkey once
    key, asked = Passkey(), options(web, admind, token, "register")
    assert register(web, admind, token, key, asked)["_"] == "OK"
    refused(register(web, admind, token, Passkey(), asked), "PASSKEY_REFUSED")
    refused(register(web, admind, token, key), "CONFLICT")
    for _ in range(9):
        assert register(web, admind, token, Passkey())["_"] == "OK"
    refused(register(web, admind, token, Passkey()), "CONFLICT")


def test_replay_and_other_logins(web, admind, people):
    key, _ = enrolled(web, admind)
    a, b = login(web, admind), login(web, admind)
    asked = options(web, admind, a, "login")
    options(web, admind, b, "login")
    fields = key.get(asked)
    # another login's challenge; then the own one, which is gone after a wrong answer
    refused(once(web, admind, "PASSKEY_ASSERT", token=b, kind="login", **fields), "PASSKEY_REFUSED")
    assert once(web, admind, "PASSKEY_ASSERT", token=a, kind="login", **fields)["_"] == "SESSION_INFO"
    # replayed: at the same login as a proof, and at another one
    refused(once(web, admind, "PASSKEY_ASSERT", token=a, kind="proof", **fields), "PASSKEY_REFUSED")
    refused(once(web, admind, "PASSKEY_ASSERT", token=b, kind="login", **fields), "PASSKEY_REFUSED")
    # a challenge for a proof registers nothing
    asked = options(web, admind, a, "proof")
    asked["publicKey"]["user"] = {"id": "AAAA"}
    refused(register(web, admind, a, Passkey(), asked), "PASSKEY_REFUSED")
    assert is_pending(web, admind, b)


def test_another_persons_passkey(web, admind, people):
    enrolled(web, admind)
    other, _ = enrolled(web, admind, "vic")
    token = login(web, admind)
    refused(use(web, admind, token, "login", other), "PASSKEY_REFUSED")
    other.handle = b""
    refused(use(web, admind, token, "login", other), "PASSKEY_REFUSED")
    # admind gives one person's set to another
    admind.sets["rita"] = admind.sets["vic"]
    refused(once(web, admind, "PASSKEY_CHALLENGE", token=token, kind="login"), "FORBIDDEN")


def test_admind_hides_the_set(web, admind, people):
    """Without the set a login stays half, until root takes the passkeys away."""
    key, _ = enrolled(web, admind)
    admind.hide = True
    m = ask(web, admind, "LOGIN", username="rita", password=PASSWORD)
    assert m["passkey"] == 1 and is_pending(web, admind, m["token"])
    refused(once(web, admind, "PASSKEY_CHALLENGE", token=m["token"], kind="login"), "FORBIDDEN")
    admind.hide = False
    assert use(web, admind, m["token"], "login", key)["_"] == "SESSION_INFO"


def test_admind_brings_older_ones_and_plants_some(web, admind, people):
    key, token = enrolled(web, admind)
    with_one = admind.sets["rita"]
    lost = Passkey()
    assert register(web, admind, token, lost)["_"] == "OK"
    with_two = admind.sets["rita"]
    assert once(web, admind, "PASSKEY_REMOVE", token=token, credential=b64(lost.id))["_"] == "OK"
    now = admind.sets["rita"]
    flipped = bytearray(now)
    flipped[40] ^= 1
    begun = login(web, admind)
    for planted in (with_one, with_two, bytes(flipped), b"\x02" + bytes(200), admind.admins["rita"][1]):
        admind.sets["rita"] = planted
        refused(once(web, admind, "PASSKEY_CHALLENGE", token=begun, kind="login"), "FORBIDDEN")
    # the verifier of the time before the first passkey
    before = next(v for v, s in admind.kept if s == b"" and v is not None and v[0] == "reviewer")
    admind.sets["rita"], good = now, admind.admins["rita"]
    admind.admins["rita"] = before
    refused(ask(web, admind, "LOGIN", username="rita", password=PASSWORD), "BAD_LOGIN")
    admind.admins["rita"] = good
    assert use(web, admind, begun, "login", key)["_"] == "SESSION_INFO"


def test_what_was_not_stored_does_not_count(web, admind, people):
    token, key = login(web, admind), Passkey()
    admind.refuse = "STORAGE_UNAVAILABLE" if "STORAGE_UNAVAILABLE" in FAILURES else "BUSY"
    refused(register(web, admind, token, key), admind.refuse)
    admind.refuse = None
    assert ask(web, admind, "LOGIN", username="rita", password=PASSWORD)["passkey"] == 0
    assert register(web, admind, token, key)["_"] == "OK"
    begun = login(web, admind)
    admind.refuse = "BUSY"
    refused(use(web, admind, begun, "login", key), "BUSY")
    admind.refuse = None
    assert is_pending(web, admind, begun)


def test_a_new_password_keeps_the_second_factor(web, ctl, admind, people):
    key, token = enrolled(web, admind)
    assert ask(web, admind, "PASSWORD", token=token, old=PASSWORD, new=PASSWORD + "2")["_"] == "OK"
    assert ask(web, admind, "LOGIN", username="rita", password=PASSWORD + "2")["passkey"] == 1
    assert change(ctl, admind, "password", "rita", new=PASSWORD)["_"] == "OK"
    assert change(ctl, admind, "role", "rita", role="viewer")["_"] == "OK"
    token = login(web, admind)
    assert is_pending(web, admind, token)
    assert use(web, admind, token, "login", key)["role"] == "viewer"
    # who makes an administrator gives that one no passkeys of the own
    enrolled(web, admind, "admin")
    boss = login(web, admind, "admin")
    admind.changes.clear()
    refused(change(web, admind, "create", "nina", role="viewer", new=PASSWORD, token=boss, password=PASSWORD),
            "UNAUTHENTICATED")


def test_a_password_change_that_began_before_the_first_passkey(vault, web, admind, people):
    """Its verifier has no handle; sealing that again would take the second factor away. Passwords
    that are hashed before it make its way long, so that the passkey comes meanwhile."""
    token, other, key = login(web, admind), login(web, admind, "vic"), Passkey()
    asked = options(web, admind, token, "register")
    with Peer.open(test_vault.table, vault, "adminweb", "admind-vault", "http") as w:
        for _ in range(14):
            w.start("PROVE", token=other, password=PASSWORD)
        request = w.start("PASSWORD", token=token, old=PASSWORD, new=PASSWORD + "2")
        for _ in range(15):
            while (got := admind.receive(patience(5)))[1]["_"] != "ADMIN_LOOKUP":
                admind.serve(*got)
            admind.serve(*got)
        m = register(web, admind, token, key, asked)
        late = answered(admind, w, request)
    if m["_"] != "OK":      # the password was quicker
        refused(m, "BUSY")
        assert late["_"] == "OK" and register(web, admind, token, key)["_"] == "OK"
    new = PASSWORD + "2" if late["_"] == "OK" else PASSWORD
    assert ask(web, admind, "LOGIN", username="rita", password=new)["passkey"] == 1


def test_who_makes_another_gives_no_passkey_away(web, admind, people):
    _, boss = enrolled(web, admind, "admin")
    assert change(web, admind, "create", "nina", role="viewer", new=PASSWORD, token=boss,
                  password=PASSWORD)["_"] == "OK"
    assert ask(web, admind, "LOGIN", username="nina", password=PASSWORD)["passkey"] == 0
    assert change(web, admind, "delete", "nina", token=boss, password=PASSWORD)["_"] == "OK"


def test_root_is_the_way_back_in(web, ctl, admind, people):
    enrolled(web, admind)
    items = json.loads(once(ctl, admind, "PASSKEYS_GET", username="rita")["json"])["items"]
    assert [i["algorithm"] for i in items] == ["ES256"]
    admind.hide = True      # and even if the set is gone
    assert once(ctl, admind, "PASSKEY_REMOVE", username="rita")["_"] == "OK"
    admind.hide = False
    assert admind.changes[-1][:3] == ("remove", "rita", "root")
    assert ask(web, admind, "LOGIN", username="rita", password=PASSWORD)["passkey"] == 0
    # a deleted person's set is nothing to the next person of the name
    key, _ = enrolled(web, admind)
    kept = admind.sets["rita"]
    assert change(ctl, admind, "delete", "rita")["_"] == "OK"
    assert change(ctl, admind, "create", "rita", role="reviewer", new=PASSWORD)["_"] == "OK"
    admind.sets["rita"] = kept
    token = login(web, admind)
    assert json.loads(once(web, admind, "PASSKEYS_GET", token=token)["json"])["items"] == []
    refused(once(web, admind, "PASSKEY_CHALLENGE", token=token, kind="proof"), "NOT_FOUND")


def test_codes(ctl, admind, people):
    for name in ("rita", "a@", "@b", "a@B"):
        refused(once(ctl, admind, "PASSKEY_CODE_MAKE", username=name, role="viewer"), "INVALID_PARAMS")
    refused(once(ctl, admind, "PASSKEY_CODE_MAKE", username="jo@corp", role="root"), "INVALID_PARAMS")
    m = once(ctl, admind, "PASSKEY_CODE_MAKE", username="jo@corp", role="reviewer")
    assert m["_"] == "DEVICE_CODE" and len(m["device"]) == 27
    drain(admind)
    assert admind.events[-1] == ("passkey_code", "root", "jo@corp", '{"role":"reviewer"}')


def test_a_code_is_not_for_a_password(web, ctl, admind, people):
    token, key = login(web, admind), Passkey()
    code = once(ctl, admind, "PASSKEY_CODE_MAKE", username="jo@corp", role="reviewer")["device"]
    refused(register(web, admind, token, key, code=code), "PASSKEY_REFUSED")


def of_issuer(vault, token, since, old, new):
    """Turns a login by password into one by an issuer, unproven, in the vault's memory: as admind's
    word will make one (decision 0105). Its row begins with the token's hash and the name; the
    way it began and whether it is proven come before the time of its proof."""
    digest, now, changed = hashlib.sha256(token.encode()).digest(), boot_ms(), 0
    pid = vault.process.pid
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "r+b", buffering=0) as mem:
        for line in maps:
            span, flags = line.split()[:2]
            if not flags.startswith("rw") or "[vv" in line:
                continue
            start, end = (int(x, 16) for x in span.split("-"))
            mem.seek(start)
            data = mem.read(end - start)
            at = data.find(digest)
            while at != -1:
                for place in range(at + (-at % 8), min(at + 1024, len(data) - 8), 8):
                    value, = struct.unpack_from("=Q", data, place)
                    if since <= value <= now:
                        assert data[at + 32:].startswith(old.encode() + b"\0")
                        assert struct.unpack_from("=I?", data, place - 8) == (1, True)
                        mem.seek(start + at + 32)
                        mem.write(new.encode() + b"\0")
                        mem.seek(start + place - 8)
                        mem.write(struct.pack("=I?", 2, False))
                        changed += 1
                        break
                at = data.find(digest, at + 1)
    assert changed == 1, f"{changed} rows of this login were found"
    return token


def test_a_person_of_an_issuer(vault, web, ctl, admind, people):
    """Root's code lets the first passkey in, once, and limits what it conveys; admind's word does not."""
    def signed_in(name="jo@corp"):
        since = boot_ms()
        return of_issuer(vault, login(web, admind, "admin"), since, "admin", name)

    token, key, other = signed_in(), Passkey(), signed_in("al@corp")
    info = ask(web, admind, "WHOAMI", token=token)
    assert info.get("role") == "administrator", info    # as admind said
    refused(register(web, admind, token, key), "PROOF_REQUIRED")
    code = once(ctl, admind, "PASSKEY_CODE_MAKE", username="jo@corp", role="reviewer")["device"]
    refused(register(web, admind, token, key, code="x" * 27), "PASSKEY_REFUSED")
    refused(register(web, admind, other, key, code=code), "PASSKEY_REFUSED")    # another person's
    assert register(web, admind, token, key, code=code)["_"] == "OK"
    # proven, and no more than the code said
    info = ask(web, admind, "WHOAMI", token=token)
    assert info["role"] == "reviewer" and info["proof_until_ms"] > 0
    # once; and a further passkey has the same limit
    refused(register(web, admind, token, Passkey(), code=code), "PASSKEY_REFUSED")
    more = Passkey()
    assert register(web, admind, token, more)["_"] == "OK"
    items = json.loads(once(web, admind, "PASSKEYS_GET", token=token)["json"])["items"]
    assert [i["role"] for i in items] == ["reviewer", "reviewer"]
    # another login of that name: unproven, until a passkey
    again = signed_in()
    refused(once(web, admind, "APPROVE", token=again, approval=b"a" * 16, reviewed=b"h" * 32), "PROOF_REQUIRED")
    assert use(web, admind, again, "proof", more)["role"] == "reviewer"
    # admind hides the set, and root's new code is not enough: this vault knows that there is one
    fresh = once(ctl, admind, "PASSKEY_CODE_MAKE", username="jo@corp", role="administrator")["device"]
    admind.hide, third = True, signed_in()
    refused(once(web, admind, "PASSKEY_CHALLENGE", token=third, kind="register"), "FORBIDDEN")
    admind.hide = False
    # root takes all away: the person's logins end, and a code begins again
    assert once(ctl, admind, "PASSKEY_REMOVE", username="jo@corp")["_"] == "OK"
    assert admind.sets["jo@corp"] != b""
    for gone in (token, again, third):
        refused(ask(web, admind, "WHOAMI", token=gone), "UNAUTHENTICATED")
    third = signed_in()
    assert register(web, admind, third, Passkey(), code=fresh)["_"] == "OK"
    assert ask(web, admind, "WHOAMI", token=third)["role"] == "administrator"


def test_who_loses_all_passkeys_registers_none_without_a_code(vault, web, ctl, admind, people):
    """The proof of a passkey that is gone lets no further one in: also not the thief's own."""
    since = boot_ms()
    token, key = of_issuer(vault, login(web, admind, "admin"), since, "admin", "al@corp"), Passkey()
    code = once(ctl, admind, "PASSKEY_CODE_MAKE", username="al@corp", role="reviewer")["device"]
    assert register(web, admind, token, key, code=code)["_"] == "OK"
    assert once(web, admind, "PASSKEY_REMOVE", token=token, credential=b64(key.id))["_"] == "OK"
    refused(register(web, admind, token, Passkey()), "PASSKEY_REFUSED")
    code = once(ctl, admind, "PASSKEY_CODE_MAKE", username="al@corp", role="viewer")["device"]
    assert register(web, admind, token, Passkey(), code=code)["_"] == "OK"


def test_a_person_of_an_issuer_changes_administrators_by_a_passkey(vault, web, ctl, admind, people):
    """Without a password, and without a hash for one: the proof is the passkey's."""
    since = boot_ms()
    token, key = of_issuer(vault, login(web, admind, "admin"), since, "admin", "cy@corp"), Passkey()
    make = {"role": "viewer", "new": PASSWORD, "token": token}
    refused(once(web, admind, "ADMIN_CHANGE", change="create", username="nina", password="", **make), "PROOF_REQUIRED")
    code = once(ctl, admind, "PASSKEY_CODE_MAKE", username="cy@corp", role="administrator")["device"]
    assert register(web, admind, token, key, code=code)["_"] == "OK"
    lookups = admind.seen.count(b"'ADMIN_LOOKUP'")
    refused(once(web, admind, "PASSWORD", token=token, old=PASSWORD, new=PASSWORD + "2"), "FORBIDDEN")
    refused(change(web, admind, "create", "nina", password=PASSWORD, **make), "FORBIDDEN")
    assert admind.seen.count(b"'ADMIN_LOOKUP'") == lookups and "nina" not in admind.admins
    assert change(web, admind, "create", "nina", password="", **make)["_"] == "OK"
    assert admind.stores[-1] == ("create", "nina", "viewer", "cy@corp")
    assert ask(web, admind, "LOGIN", username="nina", password=PASSWORD)["passkey"] == 0
    key, _ = enrolled(web, admind, "nina")
    assert change(web, admind, "role", "nina", role="reviewer", token=token, password="")["_"] == "OK"
    assert ask(web, admind, "LOGIN", username="nina", password=PASSWORD)["passkey"] == 1
    assert change(web, admind, "delete", "nina", token=token, password="")["_"] == "OK"
    # a password's administrator still gives the own one
    boss = login(web, admind, "admin")
    refused(change(web, admind, "create", "nina", role="viewer", new=PASSWORD, token=boss, password=""), "BAD_LOGIN")


def test_an_unproven_login_of_an_issuer_ends_no_login_of_a_password(vault, web, ctl, admind, people):
    """admind can invent such a login, as an administrator's: it throws nobody with a password out."""
    def signed_in(name):
        since = boot_ms()
        return of_issuer(vault, login(web, admind, "admin"), since, "admin", name)

    rita, token, other = login(web, admind), signed_in("di@corp"), signed_in("ed@corp")
    logins = json.loads(ask(ctl, admind, "LOGINS_GET")["json"])["items"]
    ids = {i["username"]: bytes.fromhex(i["id"].replace("-", "")) for i in logins}
    for fields in ({"username": "rita"}, {"login": ids["rita"]}):
        refused(once(web, admind, "LOGIN_END", token=token, **fields), "PROOF_REQUIRED")
    assert ask(web, admind, "WHOAMI", token=rita)["_"] == "SESSION_INFO"
    assert once(web, admind, "LOGIN_END", token=token, login=ids["ed@corp"])["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=other), "UNAUTHENTICATED")
    code = once(ctl, admind, "PASSKEY_CODE_MAKE", username="di@corp", role="administrator")["device"]
    assert register(web, admind, token, Passkey(), code=code)["_"] == "OK"
    assert once(web, admind, "LOGIN_END", token=token, username="rita")["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=rita), "UNAUTHENTICATED")
