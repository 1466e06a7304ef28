"""The real vault while its master key is rotated, with a hostile admind that
brings every row; and who may set a secret."""
import hashlib
import os
import signal
import struct
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from harness.ipc import Peer, Table, socket_as
from harness.patience import patience
from harness.tlv import tlv, untlv
from integration.vault import test_vault as tv
from integration.vault.test_vault import (  # noqa: F401 fixtures
    CANARY, FAILURES, PASSWORD, Vault, admind, administrator, approved, ask, context_key, ctl,
    drain, material, preimage, refused, sandbox, seal, stored, token, unseal, web)

ID, PLACE, COLUMN, VALUE, RENEWED = 1, 2, 3, 4, 5
KINDS = ("secret", "verifier", "passkeys", "seal", "first", "policy", "access", "anchor")


@pytest.fixture(scope="module")
def vault():
    tv.table = Table()
    v = Vault()
    yield v
    print(v.logs().decode(errors="replace"))
    v.close()


def derive(key, label):
    return HKDF(hashes.SHA256(), 32, None, label).derive(key)


def key_id(key):
    return derive(key, b"key-id")[:8]


@pytest.fixture
def rows(admind):
    """What rests, as admind holds it: kind -> {id: (place, column, value)};
    served to the vault and changed by it."""
    rest = {k: {} for k in KINDS}
    admind.phases = []

    def on_renew_get(m):
        out, n = b"", 0
        for i, (place, column, value) in sorted(rest[m["kind"]].items()):
            if i <= m["after"] or (m["key"] and value[1:9] == m["key"]) or n == m["limit"]:
                continue
            out += tlv((ID, i.encode()), (PLACE, place), (COLUMN, column), (VALUE, value))
            n += 1
        return "RENEW_ROWS", {"rows": out}

    def on_renew_store(m):
        fields = untlv(m["rows"])
        for (_, i), (_, old), (_, new) in zip(fields[::3], fields[1::3], fields[2::3]):
            place, column, value = rest[m["kind"]][i.decode()]
            assert value == old
            rest[m["kind"]][i.decode()] = (place, column, new)
        return "OK", {}

    def on_renew_phase(m):
        admind.phases.append((m["end"], m["key"], m["leave"]))
        return "OK", {}

    admind.on_renew_get, admind.on_renew_store = on_renew_get, on_renew_store
    admind.on_renew_phase = on_renew_phase
    return rest


def new_file(vault, key=None, mode=0o400, uid=None, name="master.key.next"):
    key = os.urandom(32) if key is None else key
    if os.path.exists(vault.path(name)):
        os.unlink(vault.path(name))
    vault.write(name, key, mode, vault.uid("vault") if uid is None else uid)
    return key


def give(peer, admind, vault, name="master.key.next"):
    """KEY_NEXT with a descriptor of root's."""
    fd = os.open(vault.path(name), os.O_RDONLY)
    try:
        return with_fd(peer, admind, fd)
    finally:
        os.close(fd)


def with_fd(peer, admind, fd):
    request, peer.next_id = peer.next_id, peer.next_id + 1
    number = tv.table.by_name["KEY_NEXT"]["number"]
    peer.raw(struct.pack(">HHIQ", number, 0, 0, request), [fd])
    deadline = time.monotonic() + patience(10)
    while time.monotonic() < deadline:
        for p in (admind, peer):
            try:
                got, m = p.receive(0.005)
            except TimeoutError:
                continue
            if tv.table.by_name[m["_"]]["kind"] == "request":
                admind.serve(got, m)
            elif p is peer and got == request:
                return m
    raise TimeoutError


def whole_pass(ctl, admind, renew=1, limit=100):
    total = {"seen": 0, "renewed": 0, "unreadable": 0, "names": ""}
    after = ""
    while True:
        m = ask(ctl, admind, "KEY_STEP", renew=renew, after=after, limit=limit)
        assert m["_"] == "KEY_STATE", m
        for k in total:
            total[k] += m[k]
        after = m["after"]
        if not after:
            return total


def anchor(admind, seq, head):
    m = ask(admind, admind, "AUDIT_SIGN", seq=seq, head=head)
    return m["signature"]


def test_nobody_but_root(vault, admind):
    for who, name in (("admind", "admind"), ("adminweb", "http"), ("sandbox", "sandboxd")):
        for message in ("KEY_STATUS", "KEY_STEP", "KEY_END"):
            with Peer.open(tv.table, vault, who, "admind-vault", name) as p:
                p.start(message)
                assert p.closed(), (who, message)


def test_files_that_are_no_next_key(vault, ctl, admind, rows):
    uid = vault.uid("vault")
    for key, mode, owner in ((b"x" * 31, 0o400, uid), (b"x" * 33, 0o400, uid), (b"", 0o400, uid),
                             (b"x" * 32, 0o440, uid), (b"x" * 32, 0o600, uid), (b"x" * 32, 0o400, 0)):
        new_file(vault, key, mode, owner)
        refused(give(ctl, admind, vault), "INVALID_PARAMS")
    new_file(vault)
    fd = os.open(vault.path("master.key.next"), os.O_RDONLY)
    os.unlink(vault.path("master.key.next"))
    refused(with_fd(ctl, admind, fd), "INVALID_PARAMS")     # on no disk
    os.close(fd)
    r, w = os.pipe()
    refused(with_fd(ctl, admind, r), "INVALID_PARAMS")
    os.close(r)
    os.close(w)
    m = ask(ctl, admind, "KEY_STATUS")
    assert m["key"] == key_id(vault.key) and m["older"] == b"" and not admind.phases


def test_without_admind_nothing_begins(vault, ctl, admind, rows):
    new_file(vault)
    admind.on_renew_phase = lambda m: (
        "REFUSED", {"failure": FAILURES["STORAGE_UNAVAILABLE"], "message": "no database"})
    refused(give(ctl, admind, vault), "STORAGE_UNAVAILABLE")
    assert ask(ctl, admind, "KEY_STATUS")["key"] == key_id(vault.key)
    os.unlink(vault.path("master.key.next"))


def test_a_password_that_was_changed_is_not_renewed(ctl, admind, rows, administrator):
    """Else a rotation would keep it, for a restart of the vault to come."""
    def change(what, **fields):
        assert ask(ctl, admind, "ADMIN_CHANGE", change=what, username="bob", **fields)["_"] == "OK"
        role, verifier = admind.admins["bob"]
        return b"bob", role.encode(), verifier
    first = change("create", role="administrator", new=PASSWORD)
    rows["verifier"] = {"bob": first}
    assert whole_pass(ctl, admind, renew=0)["unreadable"] == 0
    second = change("password", new="x" + PASSWORD)
    lower = change("role", role="viewer")
    for row, bad in ((first, 1), (second, 1), (lower, 0)):
        rows["verifier"] = {"bob": row}
        total = whole_pass(ctl, admind, renew=0)
        assert (total["seen"], total["unreadable"]) == (1, bad), row


def test_a_rotation(vault, ctl, web, admind, rows, administrator, approved, stored, sandbox,
                    context_key):
    """Everything is the same afterwards, under the new key; what a hostile
    admind mixed in is not."""
    pre, s = approved
    rows["secret"] = {f"1/{k}": (server.encode(), k.encode(), v)
                      for (server, k), v in stored.items() if server == "demo"}
    role, verifier = admind.admins["admin"]
    rows["verifier"] = {"admin": (b"admin", role.encode(), verifier)}
    rows["seal"] = {"a": (b"", b"version", s)}
    head = os.urandom(32)
    rows["anchor"] = {"00000000000000000050": (b"50", head.hex().encode(), anchor(admind, 50, head))}
    honest = {k: set(v) for k, v in rows.items()}
    # A secret at another place, another key's, a verifier as a secret, of another
    # role; a seal for another purpose, altered; a signature of another row.
    rows["secret"]["9/MOVED"] = (b"bank", b"TOKEN", stored["demo", "TOKEN"])
    rows["secret"]["9/NAMED"] = (b"demo", b"NAMED", stored["demo", "TOKEN"])
    rows["secret"]["9/OTHER"] = (b"admin", role.encode(), verifier)
    rows["secret"]["9/SHORT"] = (b"demo", b"TOKEN", b"\2" * 20)
    rows["verifier"]["raised"] = (b"admin", b"owner", verifier)
    rows["verifier"]["mallory"] = (b"mallory", role.encode(), verifier)
    rows["first"]["b"] = rows["policy"]["1"] = (b"", b"", s)
    for i, purpose in enumerate((b"call", b"grant", b"policy", b"")):
        rows["seal"][f"b{i}"] = (b"", purpose, s)
    rows["seal"]["c"] = (b"", b"version", s[:-1] + bytes([s[-1] ^ 1]))
    rows["anchor"]["00000000000000000051"] = (b"51", head.hex().encode(), anchor(admind, 50, head))
    rows["anchor"]["00000000000000000052"] = (b"52", b"zz", bytes(32))
    total = whole_pass(ctl, admind, renew=0)
    bad = 15
    assert total["unreadable"] == bad and total["renewed"] == 0, total
    assert "secret bank/TOKEN" in total["names"]

    new = new_file(vault)
    before = {k: dict(v) for k, v in rows.items()}
    m = give(ctl, admind, vault)
    assert (m["_"], m["key"], m["older"]) == ("KEY_STATE", key_id(new), key_id(vault.key))
    assert admind.phases == [(0, key_id(new), 0)]
    assert give(ctl, admind, vault)["_"] == "KEY_STATE"      # again: nothing new
    other = new_file(vault, name="other")
    refused(give(ctl, admind, vault, "other"), "CONFLICT")
    assert other

    # Meanwhile both: an old value, and a new one.
    assert ask(web, admind, "LOGIN", username="admin", password=PASSWORD)["_"] == "LOGIN_OK"
    m = seal(admind, sandbox.epoch, material(pre, s, [(b"TOKEN", stored["demo", "TOKEN"])]))
    assert (4, CANARY) in unseal(context_key, sandbox.epoch, m["context"])
    assert ask(ctl, admind, "SECRET_SET", server="demo", key="FRESH", value=b"x")["_"] == "OK"
    assert admind.secrets["demo", "FRESH"][:9] == b"\2" + key_id(new)

    total = whole_pass(ctl, admind, limit=1)
    assert total["unreadable"] == bad, total
    for kind, ids in honest.items():
        for i in rows[kind]:
            same = rows[kind][i] == before[kind][i]
            assert same == (i not in ids), (kind, i)
    assert whole_pass(ctl, admind)["renewed"] == len(rows["anchor"]) - 2   # they name no key
    assert CANARY not in admind.seen

    # The place is still the same, and the content.
    k = AESGCM(derive(new, b"secrets"))
    value = rows["secret"]["1/TOKEN"][2]
    assert value[:9] == b"\2" + key_id(new)
    assert k.decrypt(value[9:21], value[21:], b"server_secrets\0demo\0TOKEN") == CANARY
    renewed = rows["seal"]["a"][2]
    assert renewed[9:-32] == s[9:-32] and renewed[:9] == b"\2" + key_id(new) and renewed != s

    m = ask(ctl, admind, "KEY_END", leave=bad)
    assert m["_"] == "KEY_STATE" and m["over"] == 1
    assert admind.phases[-1] == (1, key_id(new), bad)
    # A call that was on its way still passes; behind the next rotation's start,
    # as behind half a minute, nothing under the old key does.
    m = seal(admind, sandbox.epoch, material(pre, s))
    assert m["_"] == "SEALED"
    assert ask(ctl, admind, "KEY_STATUS")["older"] == key_id(vault.key)
    newer = new_file(vault)
    assert give(ctl, admind, vault)["older"] == key_id(new)
    refused(seal(admind, sandbox.epoch, material(pre, s)), "NOT_APPROVED")
    refused(seal(admind, sandbox.epoch, material(pre, renewed, [(b"TOKEN", stored["demo", "TOKEN"])])),
            "FORBIDDEN")
    m = seal(admind, sandbox.epoch, material(pre, renewed, [(b"TOKEN", value)]))
    assert (4, CANARY) in unseal(context_key, sandbox.epoch, m["context"])
    admind.admins["admin"] = ("administrator", rows["verifier"]["admin"][2])
    assert ask(web, admind, "LOGIN", username="admin", password=PASSWORD)["_"] == "LOGIN_OK"
    vault.old, vault.newer = new, newer


def test_the_vault_restarts_with_both(vault, ctl, admind, rows, sandbox):
    """It reads the files as they stand, and tells the database again."""
    for name, key in (("master.key", vault.old), ("master.key.next", vault.newer)):
        os.unlink(vault.path(name))
        vault.write(name, key, 0o400, vault.uid("vault"))
    vault.process.send_signal(signal.SIGKILL)
    vault.process.wait()
    vault.start()
    with tv.Admind.open(tv.table, vault, "admind", "admind-vault", "admind") as a, \
            Peer(tv.table, socket_as(0, [], vault.run("admind-vault", "ctl.sock"))) as c:
        phases = []
        a.on_renew_phase = lambda m: (phases.append((m["end"], m["key"])), ("OK", {}))[1]
        drain(a)
        assert phases == [(0, key_id(vault.newer))]
        m = ask(c, a, "KEY_STATUS")
        assert (m["key"], m["older"]) == (key_id(vault.newer), key_id(vault.old))
        # Rows that make no sense, refusals, silence: nothing is ended by them.
        for answer in (("RENEW_ROWS", {"rows": b"\1\0\0"}), ("RENEW_ROWS", {"rows": tlv((ID, b"x"))}),
                       ("RENEW_ROWS", {"rows": tlv((VALUE, b"x"), (ID, b"x"))}), ("OK", {}),
                       ("RENEW_ROWS", {"rows": tlv((ID, b"\xff"), (PLACE, b""), (COLUMN, b""), (VALUE, b""))}),
                       ("RENEW_ROWS", {"rows": tlv((ID, b"x" * 700), (PLACE, b""), (COLUMN, b""), (VALUE, b""))})):
            a.on_renew_get = lambda m, answer=answer: answer
            refused(ask(c, a, "KEY_STEP", renew=1, after="", limit=5), "INTERNAL")
        for after, limit in (("x", 5), ("9:", 5), ("0", 5), ("", 0), ("", 1000)):
            refused(ask(c, a, "KEY_STEP", renew=1, after=after, limit=limit), "INVALID_PARAMS")
        a.on_renew_phase = lambda m: ("REFUSED", {"failure": FAILURES["CONFLICT"], "message": "left"})
        refused(ask(c, a, "KEY_END", leave=0), "CONFLICT")
        assert ask(c, a, "KEY_STATUS")["older"] == key_id(vault.old)


# --- who may set a secret ---

@pytest.fixture(scope="module")
def judged():
    tv.table = Table()
    v = Vault()
    try:
        with tv.Admind.open(tv.table, v, "admind", "admind-vault", "admind") as a, \
                Peer.open(tv.table, v, "adminweb", "admind-vault", "http") as w, \
                Peer(tv.table, socket_as(0, [], v.run("admind-vault", "ctl.sock"))) as c:
            assert ask(c, a, "SETUP", username="admin", password=PASSWORD)["_"] == "OK"
            yield v, a, w, c
    finally:
        v.close()


def login(w, a, name="admin"):
    m = ask(w, a, "LOGIN", username=name, password=PASSWORD)
    assert m["_"] == "LOGIN_OK", m
    return m["token"]


def put(w, a, token, key="TOKEN", value=CANARY, server="demo"):
    return ask(w, a, "SECRET_SET", token=token, server=server, key=key, value=value)


def test_an_administrators_login_sets_one(judged):
    _, a, w, c = judged
    t = login(w, a)
    assert put(w, a, t)["_"] == "OK" and ("demo", "TOKEN") in a.secrets
    assert CANARY not in a.seen
    refused(put(w, a, t, key="lower"), "INVALID_PARAMS")
    refused(put(w, a, t, value=b""), "INVALID_PARAMS")
    refused(put(c, a, t, key="C"), "INVALID_REQUEST")       # root needs none
    assert ask(w, a, "LOGOUT", token=t)["_"] == "OK"
    refused(put(w, a, t, key="LATER"), "UNAUTHENTICATED")
    assert ("demo", "LATER") not in a.secrets


def test_no_other_does(judged):
    """Roles are sealed with the verifier: admind can't raise one."""
    v, a, w, _ = judged
    for t in ("", "x" * 43, "x" * 10000):
        refused(put(w, a, t, key="NONE"), "UNAUTHENTICATED")
    role, good = a.admins["admin"]
    k = AESGCM(v.sub_key(b"verifiers"))
    plain = k.decrypt(good[9:21], good[21:], b"administrators\0admin\0" + role.encode())
    for role in ("reviewer", "viewer"):
        nonce = os.urandom(12)
        a.admins["other"] = (role, good[:9] + nonce + k.encrypt(
            nonce, plain, b"administrators\0other\0" + role.encode()))
        t = login(w, a, "other")
        refused(put(w, a, t, key="NONE"), "FORBIDDEN")
        drain(a)
        assert ("secret_refused", "other") in [e[:2] for e in a.events]
        a.admins["other"] = ("administrator", a.admins["other"][1])
        refused(ask(w, a, "LOGIN", username="other", password=PASSWORD), "BAD_LOGIN")
    assert ("demo", "NONE") not in a.secrets


def test_nothing_of_a_value_stays_in_memory(judged):
    v, a, w, c = judged
    seen = [b"MEMORY" + os.urandom(16).hex().encode() for _ in range(3)]
    t = login(w, a)
    assert put(w, a, t, key="M", value=seen[0])["_"] == "OK"
    assert put(c, a, "", key="M", value=seen[1])["_"] == "OK"
    refused(put(w, a, "x" * 43, key="M", value=seen[2]), "UNAUTHENTICATED")
    # A request is wiped when its answer is out: one more answer, and the others' are.
    refused(put(w, a, "x" * 43, key="M", value=b"of no matter"), "UNAUTHENTICATED")
    memory = v.memory()
    assert len(memory) > 1_000_000 and not [s for s in seen if s in memory]
