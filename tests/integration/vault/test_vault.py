"""The real vault, with every peer of it played by hand: above all a hostile
admind. It holds all rows and answers every question of the vault, and still
gets no approval, no secret outside an approved version, and no login."""
import base64
import hashlib
import hmac
import itertools
import os
import secrets
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from harness import work
from harness.instance import BUILD, GROUPS, OFFSETS, take_block
from harness.ipc import Closed, Peer, Table, socket_as
from harness.patience import WAIT_FACTOR, patience, until
from harness.tlv import tlv, untlv

CANARY = b"CANARY-" + secrets.token_hex(16).encode()
PASSWORD = "correct horse battery staple"
LOCAL, TUNNEL, ADMIND = 1, 2, 3
TOOL, INSPECT, TEST = 1, 2, 3
UNUSED_EPOCH = b"\xee" * 16


def preimage(code=b"def main():\n    return 1\n", server=b"demo", secret_names=(b"TOKEN",), **limits):
    fields = [(1, 1), (2, b"S" * 16), (3, b"T" * 16), (4, server), (5, b"greet"),
              (6, server + b"__greet"), (8, b"greets"), (11, b'{"type":"object"}'),
              (14, b"python"), (15, code)]
    fields += [(20, n) for n in sorted(secret_names)]
    fields += [(22, b"forbidden"), (23, 0)]
    fields += [(24, limits["timeout"])] if "timeout" in limits else []
    return b"mcpbox version 1\0" + tlv(*fields)


#: Passkeys of the played authenticator (harness/played/authenticator.py) work.
PASSKEYS = "passkey_rp_id localhost\npasskey_origins http://localhost:8000\npasskey_localhost yes\n"


class Vault:
    """The daemon alone, by number, in directories of its own."""

    def __init__(self):
        self.base, self.lock = take_block()
        self.dir = tempfile.mkdtemp(prefix="mcpv")
        os.chmod(self.dir, 0o711)
        uid = self.uid("vault")
        os.mkdir(self.path("run"), 0o755)
        os.makedirs(self.run("admind-vault"))
        os.chown(self.run("admind-vault"), uid, uid)
        os.chmod(self.run("admind-vault"), 0o750)
        self.key = os.urandom(32)
        self.write("master.key", self.key, 0o400, uid)
        self.write("conf", f"""run_dir {self.path("run")}
wait_factor {WAIT_FACTOR}
key_file {self.path("master.key")}
admind_user {self.uid("admind")}
web_user {self.uid("adminweb")}
sandboxd_user {self.uid("sandbox")}
argon2_memory 8M
argon2_passes 1
login_burst 1000
{PASSKEYS}""".encode(), 0o644, 0)
        shutil.copy(os.path.join(BUILD, "admind/vault/mcpbox-admind-vault"), self.path("vault"))
        os.chmod(self.path("vault"), 0o755)
        self.log = open(self.path("log"), "wb")
        self.start()

    def start(self):
        uid, before = self.uid("vault"), len(self.logs())
        self.process = subprocess.Popen(
            ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
             "--no-new-privs", self.path("vault"), "-f", self.path("conf")],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        until(lambda: b"ready" in self.logs()[before:] or self.process.poll() is not None, 10, say=self.logs)
        assert self.process.poll() is None, self.logs()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(patience(10)) == 0, self.logs()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir)
        self.lock.close()

    def write(self, name, data, mode, uid):
        with open(self.path(name), "wb") as f:
            f.write(data)
        os.chown(self.path(name), uid, uid)
        os.chmod(self.path(name), mode)

    def logs(self):
        with open(self.path("log"), "rb") as f:
            return f.read()

    def path(self, *p):
        return os.path.join(self.dir, *p)

    def run(self, *p):
        return self.path("run", *p)

    def sub_key(self, label):
        return HKDF(hashes.SHA256(), 32, None, label).derive(self.key)

    def memory(self):
        """All the process's writable memory."""
        found = b""
        pid = self.process.pid
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps, \
                open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
            for line in maps:
                span, flags = line.split()[:2]
                if not flags.startswith("rw") or "[vv" in line:
                    continue
                at, end = (int(x, 16) for x in span.split("-"))
                mem.seek(at)
                found += mem.read(end - at)
        return found

    def uid(self, name):
        return self.base + OFFSETS[name]

    def groups(self, name):
        return [self.uid(g) for g in GROUPS.get(name, ())]


class Admind(Peer):
    """admind's end, honest unless a test changes an answer. While a client
    waits, `serve` answers what the vault asks."""

    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.admins, self.secrets, self.requests = {}, {}, {}
        self.decisions, self.events, self.stores = {}, [], []
        self.seen = b""     # every byte the vault ever sent here

    def serve(self, request, m):
        self.seen += repr(m).encode()
        answer = getattr(self, "on_" + m["_"].lower(), None)
        if answer is not None:
            name, fields = answer(m)
            self.send(name, request=request, **fields)

    def on_admin_lookup(self, m):
        role, verifier = self.admins.get(m["username"], ("", b""))
        return "ADMIN_RECORD", {"role": role, "verifier": verifier}

    def on_admin_store(self, m):
        if m["change"] == "setup" and self.admins:
            return "REFUSED", {"failure": FAILURES["CONFLICT"], "message": "there is one"}
        self.stores.append((m["change"], m["username"], m["role"], m["actor"]))
        if m["change"] == "delete":
            self.admins.pop(m["username"])
        else:
            self.admins[m["username"]] = (m["role"], m["verifier"])
        return "OK", {}

    def on_secret_store(self, m):
        self.secrets[m["server"], m["key"]] = m["value"]
        return "OK", {}

    def on_content_get(self, m):
        kind, state, pre = self.requests[m["approval"]]
        return "CONTENT", {"kind": kind, "state": state, "preimage": pre}

    def on_decision_store(self, m):
        self.decisions[m["approval"]] = m
        return "OK", {}

    def on_audit_event(self, m):
        self.events.append((m["action"], m["actor"], m["subject"], m["detail"]))
        return "OK", {}


def failures():
    names = []
    src = os.path.join(os.path.dirname(__file__), "..", "..", "..", "common", "base", "failure.def")
    with open(src, encoding="ascii") as f:
        for line in f:
            if line.startswith("F("):
                names.append(line[2:].split(",")[0])
    return {n: i for i, n in enumerate(names)}


FAILURES = failures()
table = None


@pytest.fixture(scope="module")
def vault():
    global table
    table = Table()
    v = Vault()
    yield v
    print(v.logs().decode(errors="replace"))
    v.close()


@pytest.fixture(scope="module")
def admind(vault):
    with Admind.open(table, vault, "admind", "admind-vault", "admind") as a:
        yield a


@pytest.fixture(scope="module")
def web(vault, admind):
    with Peer.open(table, vault, "adminweb", "admind-vault", "http") as w:
        yield w


@pytest.fixture(scope="module")
def ctl(vault, admind):
    with Peer(table, socket_as(0, [], vault.run("admind-vault", "ctl.sock"))) as c:
        yield c


@pytest.fixture(scope="module")
def sandbox(vault):
    with Peer.open(table, vault, "sandbox", "admind-vault", "sandboxd") as s:
        yield s


def ask(peer, admind, name, timeout=patience(10), **fields):
    """One request of a client, with admind answering meanwhile. As a page does, it proves
    itself where that is asked for, so that no test depends on how long ago its login was."""
    m = once(peer, admind, name, timeout, **fields)
    if (m["_"] == "REFUSED" and m["failure"] == FAILURES["PROOF_REQUIRED"]
            and once(peer, admind, "PROVE", timeout, token=fields["token"], password=PASSWORD)["_"] == "OK"):
        m = once(peer, admind, name, timeout, **fields)
    return m


def once(peer, admind, name, timeout=patience(10), **fields):
    """One request as it is."""
    request = peer.start(name, **fields)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        for p in {admind, peer}:
            try:
                got, m = p.receive(0.005)
            except TimeoutError:
                continue
            if table.by_name[m["_"]]["kind"] == "request":
                admind.serve(got, m)
            elif p is peer and got == request:
                return m
    raise TimeoutError(name)


def drain(admind, seconds=0.3):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            admind.serve(*admind.receive(0.05))
        except TimeoutError:
            pass


def refused(m, failure):
    assert m["_"] == "REFUSED", m
    assert m["failure"] == FAILURES[failure], m
    return True


@pytest.fixture(scope="module")
def administrator(ctl, admind):
    assert ask(ctl, admind, "SETUP", username="admin", password=PASSWORD)["_"] == "OK"
    return "admin"


@pytest.fixture(scope="module")
def token(web, admind, administrator):
    m = ask(web, admind, "LOGIN", username="admin", password=PASSWORD, source="127.0.0.1")
    assert m["_"] == "LOGIN_OK", m
    return m["token"]


@pytest.fixture(scope="module")
def approved(ctl, admind):
    """Approved pre-image and its seal, by root."""
    pre, request = preimage(), os.urandom(16)
    admind.requests[request] = ("tool", "pending", pre)
    digest = hashlib.sha256(pre).digest()
    assert ask(ctl, admind, "APPROVE", approval=request, reviewed=digest)["_"] == "OK"
    d = admind.decisions[request]
    assert d["approved"] == 1 and d["content"] == digest and d["actor"] == "root"
    return pre, d["seal"]


@pytest.fixture(scope="module")
def stored(ctl, admind):
    """The canary as admind keeps it, for demo/TOKEN and demo/OTHER."""
    for server, key in (("demo", "TOKEN"), ("demo", "OTHER"), ("bank", "TOKEN")):
        assert ask(ctl, admind, "SECRET_SET", server=server, key=key, value=CANARY)["_"] == "OK"
    return admind.secrets


def material(pre=None, seal=None, values=(), extra=()):
    fields = [(1, pre)] if pre is not None else []
    fields += [(2, seal)] if seal is not None else []
    for name, value in values:
        fields += [(3, name), (4, value)]
    fields += [(7, hashlib.sha256(b"{}").digest()), (8, 30000), (13, 5000), (14, b"")]
    return tlv(*fields, *extra)


def seal(admind, epoch, what, kind=TOOL, listener=LOCAL, execution=b"X" * 16):
    return ask(admind, admind, "SEAL_CONTEXT", execution=execution, epoch=epoch,
               listener=listener, kind=kind, material=what)


def unseal(key, epoch, sealed, kind=TOOL, listener=LOCAL, execution=b"X" * 16):
    assert sealed[0] == 1
    aad = b"mcpbox context 1\0" + epoch + execution + bytes([listener, kind])
    return untlv(AESGCM(key).decrypt(sealed[1:13], sealed[13:], aad))


@pytest.fixture
def context_key(sandbox):
    m = sandbox.call("CONTEXT_KEY_GET", epoch=sandbox.epoch)
    assert m["_"] == "CONTEXT_KEY" and len(m["key"]) == 32
    return m["key"]


# --- who may connect, who may say what ---

@pytest.mark.parametrize("who,name", [
    ("stranger", "admind"), ("admind", "http"), ("admind", "ctl"), ("admind", "sandboxd"),
    ("adminweb", "admind"), ("adminweb", "ctl"), ("sandbox", "admind"), ("sandbox", "http"),
    ("vault", "ctl")])
def test_a_socket_is_for_one_user(vault, who, name):
    """By SO_PEERCRED, though the directory would let them in."""
    try:
        s = socket_as(vault.uid(who), [vault.uid("vault")],
                      vault.run("admind-vault", name + ".sock"))
    except PermissionError:
        return
    with pytest.raises((Closed, AssertionError, ConnectionError)):
        Peer(table, s)


@pytest.mark.parametrize("name", ["LOGIN", "APPROVE", "REJECT", "SETUP", "SECRET_SET", "PASSWORD", "PROVE",
                                  "WHOAMI", "CONTEXT_KEY_GET", "DOCTOR", "HELLO", "RUN"])
def test_admind_may_not_say(vault, name):
    with Admind.open(table, vault, "admind", "admind-vault", "admind") as a:
        a.start(name)
        assert a.closed()


@pytest.mark.parametrize("name", ["SEAL_CONTEXT", "SETUP", "KEY_NEXT", "KEY_STEP", "KEY_END",
                                  "KEY_STATUS", "AUDIT_SIGN", "SESSION_LOOKUP", "SESSION_KEY_GET", "CONTEXT_KEY_GET"])
def test_web_may_not_say(vault, name):
    with Peer.open(table, vault, "adminweb", "admind-vault", "http") as w:
        w.start(name)
        assert w.closed()


def test_a_second_admind_connection_is_used_and_its_end_survived(vault, admind, web):
    with Admind.open(table, vault, "admind", "admind-vault", "admind") as a:
        a.call("SESSION_KEY_GET")
    time.sleep(0.1)
    refused(ask(web, admind, "LOGIN", username="nobody", password=PASSWORD), "BAD_LOGIN")


# --- setup and logins ---

def test_setup_refuses_weak(ctl, admind):
    refused(ask(ctl, admind, "SETUP", username="x", password=PASSWORD), "INVALID_PARAMS")
    refused(ask(ctl, admind, "SETUP", username="9lives", password=PASSWORD), "INVALID_PARAMS")
    refused(ask(ctl, admind, "SETUP", username="admin", password="short"), "INVALID_PARAMS")
    refused(ask(ctl, admind, "SETUP", username="admin", password="é" * 11), "INVALID_PARAMS")
    refused(ask(ctl, admind, "SETUP", username="admin", password="x" * 129), "INVALID_PARAMS")


def test_second_setup_is_refused(ctl, admind, administrator):
    refused(ask(ctl, admind, "SETUP", username="other", password=PASSWORD), "CONFLICT")


def test_login_whoami_logout(web, admind, administrator):
    m = ask(web, admind, "LOGIN", username="admin", password=PASSWORD, source="10.0.0.9")
    assert m["_"] == "LOGIN_OK" and len(m["token"]) == 86 and "csrf" not in m
    assert m["role"] == "administrator"
    assert 11 * 3600 < m["expires_ms"] / 1000 - time.time() < 12 * 3600 + 5
    who = ask(web, admind, "WHOAMI", token=m["token"])
    assert who["username"] == "admin" and "csrf" not in who
    known = ask(admind, admind, "SESSION_LOOKUP", token=hashlib.sha256(m["token"].encode()).digest())
    assert known["username"] == "admin"
    assert ask(web, admind, "LOGOUT", token=m["token"])["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=m["token"]), "UNAUTHENTICATED")
    refused(ask(web, admind, "LOGOUT", token=m["token"]), "UNAUTHENTICATED")
    drain(admind)
    actions = [e[0] for e in admind.events]
    assert "login" in actions and "logout" in actions
    assert any('"10.0.0.9"' in e[3] for e in admind.events)
    assert m["token"].encode() not in admind.seen and PASSWORD.encode() not in admind.seen


#: All that admind-http asks with a login's token.
OF_A_LOGIN = {
    "WHOAMI": {}, "LOGOUT": {}, "PROVE": {"password": PASSWORD}, "LOGINS_GET": {}, "LOGIN_END": {"username": "admin"},
    "PASSWORD": {"old": PASSWORD, "new": PASSWORD + "x"},
    "ADMIN_CHANGE": {"password": PASSWORD, "change": "delete", "username": "nobody"},
    "APPROVE": {"approval": b"a" * 16, "reviewed": b"h" * 32}, "REJECT": {"approval": b"a" * 16, "reason": "no"},
    "SECRET_SET": {"server": "demo", "key": "A_KEY", "value": b"v"}, "POLICY_GET": {},
    "POLICY_SET": {"days": 1}, "ACCESS_SET": {"document": b"{}"}, "SEAL_VERIFY": {"seal_len": 1, "seal_preimage": b"xy"}}


def test_half_a_token_is_none(web, admind, administrator):
    """A browser's cookie and its header are a half each; admind has the hash. None of these is a login."""
    token = ask(web, admind, "LOGIN", username="admin", password=PASSWORD)["token"]
    digest = hashlib.sha256(token.encode()).digest()
    shown = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    halves = (token[:43], token[43:], token[43:] + token[:43], token[:43] * 2, token[43:] * 2, token[:-1], shown,
              shown * 2, digest.hex())
    for half in halves:
        for name, fields in OF_A_LOGIN.items():
            refused(ask(web, admind, name, token=half, **fields), "UNAUTHENTICATED")
    assert ask(web, admind, "WHOAMI", token=token)["_"] == "SESSION_INFO"


@pytest.mark.parametrize("user,password", [
    ("admin", "wrong password here"), ("nobody", PASSWORD), ("admin", ""), ("", PASSWORD),
    ("a'; drop table", PASSWORD), ("admin", "x" * 4000)])
def test_bad_login(web, admind, administrator, user, password):
    refused(ask(web, admind, "LOGIN", username=user, password=password), "BAD_LOGIN")


def test_unknown_users_cost_the_same(vault, web, admind, administrator):
    def login(user):
        return lambda: refused(ask(web, admind, "LOGIN", username=user, password="wrong password"), "BAD_LOGIN")

    known, unknown = work.least(vault.process.pid, login("admin"), login("nobody"), tries=8, cpu=work.cpu_of_threads)
    assert known * 0.5 < unknown < known * 2, (known, unknown)


def test_forged_verifiers_log_nobody_in(web, admind, administrator):
    """admind brings a verifier of its own making, another user's, another
    role's, an altered one, a secret's stored form."""
    good = admind.admins["admin"]
    flipped = bytearray(good[1])
    flipped[20] ^= 1
    try:
        for forged in [("administrator", b"$argon2id$v=19$m=8192,t=1,p=1$c2FsdHNhbHQ$AAAA"),
                       ("administrator", b"\1\1" + os.urandom(100)),
                       ("administrator", bytes(flipped)), ("viewer", good[1]),
                       ("owner", good[1]), ("", good[1])]:
            admind.admins["admin"] = forged
            refused(ask(web, admind, "LOGIN", username="admin", password=PASSWORD), "BAD_LOGIN")
        admind.admins["admin"] = good
        admind.admins["mallory"] = good
        refused(ask(web, admind, "LOGIN", username="mallory", password=PASSWORD), "BAD_LOGIN")
    finally:
        admind.admins.pop("mallory", None)
        admind.admins["admin"] = good
    assert ask(web, admind, "LOGIN", username="admin", password=PASSWORD)["_"] == "LOGIN_OK"


def test_login_without_its_audit_row_is_none(web, admind, administrator, monkeypatch):
    monkeypatch.setattr(Admind, "on_audit_event", lambda self, m: (
        "REFUSED", {"failure": FAILURES["STORAGE_UNAVAILABLE"], "message": "no database"}))
    refused(ask(web, admind, "LOGIN", username="admin", password=PASSWORD), "STORAGE_UNAVAILABLE")


def test_nonsense_answers_are_refused(web, admind, administrator, monkeypatch):
    monkeypatch.setattr(Admind, "on_admin_lookup", lambda self, m: ("OK", {}))
    refused(ask(web, admind, "LOGIN", username="admin", password=PASSWORD), "INTERNAL")


def test_password_change_ends_other_logins(web, admind, administrator):
    a, b = (ask(web, admind, "LOGIN", username="admin", password=PASSWORD)["token"]
            for _ in range(2))
    new = "another long password"
    refused(ask(web, admind, "PASSWORD", token=a, old="wrong wrong wrong", new=new), "BAD_LOGIN")
    refused(ask(web, admind, "PASSWORD", token=a, old=PASSWORD, new="short"), "INVALID_PARAMS")
    refused(ask(web, admind, "PASSWORD", token="x" * 43, old=PASSWORD, new=new), "UNAUTHENTICATED")
    assert ask(web, admind, "PASSWORD", token=a, old=PASSWORD, new=new)["_"] == "OK"
    refused(ask(web, admind, "WHOAMI", token=b), "UNAUTHENTICATED")
    assert ask(web, admind, "WHOAMI", token=a)["username"] == "admin"
    refused(ask(web, admind, "LOGIN", username="admin", password=PASSWORD), "BAD_LOGIN")
    assert ask(web, admind, "PASSWORD", token=a, old=new, new=PASSWORD)["_"] == "OK"
    # its audit row is written with it: by the statement behind ADMIN_STORE
    assert admind.stores[-1] == ("own_password", "admin", "administrator", "admin")


def test_many_logins_do_not_delay_contexts(vault, admind, web, approved, stored, context_key, sandbox):
    """A full queue of Argon2 work, and a context in between: it is sealed before half of that work is done. Where
    this process stood still meanwhile nothing is seen; so it may try again."""
    for _ in range(5):
        pending = [web.start("LOGIN", username="(x)", password=PASSWORD) for _ in range(60)]
        pre, s = approved
        assert seal(admind, sandbox.epoch, material(pre, s))["_"] == "SEALED"
        answers, before = [], None
        while len(answers) < len(pending):
            try:
                answers.append(web.receive(0)[1]["failure"])
                continue
            except TimeoutError:
                if before is None:
                    before = answers.count(FAILURES["BAD_LOGIN"])
            try:
                admind.serve(*admind.receive(0.01))
            except TimeoutError:
                pass
        assert set(answers) <= {FAILURES["BAD_LOGIN"], FAILURES["BUSY"]}
        assert answers.count(FAILURES["BUSY"]) >= 1 and answers.count(FAILURES["BAD_LOGIN"]) >= 10
        if before <= answers.count(FAILURES["BAD_LOGIN"]) / 2:
            break
    assert before <= answers.count(FAILURES["BAD_LOGIN"]) / 2, before


def test_a_flood_of_logins_does_not_lock_root_out(vault, admind, ctl, administrator, monkeypatch):
    """A web process that asks without end, while admind answers no look-up. It
    shows the cookie of a browser that logged in before: of others the vault
    takes far fewer (test_vault_admins.py)."""
    with Peer.open(table, vault, "adminweb", "admind-vault", "http") as w:
        device = ask(w, admind, "LOGIN", username="admin", password=PASSWORD)["device"]
    drain(admind)
    held = []

    def hold(self, request, m):
        held.append((request, m["_"]))

    with Peer.open(table, vault, "adminweb", "admind-vault", "http") as w:
        for _ in range(300):
            w.start("LOGIN", username="admin", password=PASSWORD, device=device)
        monkeypatch.setattr(Admind, "serve", hold)
        until(lambda: drain(admind, 0.05) or len(held) >= 256, say=lambda: len(held))
        drain(admind)
        monkeypatch.undo()
        answer = ask(ctl, admind, "SECRET_SET", server="demo", key="SPARE", value=b"x")
        for request, _ in held:
            admind.send("REFUSED", request=request, failure=FAILURES["BUSY"], message="no")
        drain(admind)
    assert [name for _, name in held] == ["ADMIN_LOOKUP"] * 256
    assert answer["_"] == "OK"


# --- approvals ---

def test_approve_needs_a_login(web, admind, administrator):
    request, pre = os.urandom(16), preimage()
    admind.requests[request] = ("tool", "pending", pre)
    digest = hashlib.sha256(pre).digest()
    for t in ("", "x" * 43, secrets.token_urlsafe(32)):
        refused(ask(web, admind, "APPROVE", token=t, approval=request, reviewed=digest),
                "UNAUTHENTICATED")
        refused(ask(web, admind, "REJECT", token=t, approval=request, reason="no"),
                "UNAUTHENTICATED")
    drain(admind)
    assert request not in admind.decisions
    assert "approve_refused" in [e[0] for e in admind.events]


def test_approve_by_login(web, admind, token):
    request, pre = os.urandom(16), preimage()
    admind.requests[request] = ("tool", "pending", pre)
    digest = hashlib.sha256(pre).digest()
    assert ask(web, admind, "APPROVE", token=token, approval=request, reviewed=digest)["_"] == "OK"
    d = admind.decisions[request]
    assert d["actor"] == "admin" and d["approved"] == 1
    fields = untlv(d["seal"][9:-32])
    assert (1, request) in fields and (4, digest) in fields and (5, b"TOKEN") in fields
    assert (7, b"admin") in fields and (2, b"S" * 16) in fields and (3, b"T" * 16) in fields


def test_a_viewer_may_not_decide(vault, web, admind, administrator):
    """A role is part of the sealed verifier; this one is made with the key."""
    key = AESGCM(vault.sub_key(b"verifiers"))
    sealed = admind.admins["admin"][1]
    assert sealed[0] == 2       # then the key's id; below, the form from before there were ids
    plain = key.decrypt(sealed[9:21], sealed[21:], b"administrators\0admin\0administrator")
    sealed_at, phc = plain.split(b" ", 1)
    # Sealed since this vault was set up.
    assert os.stat(vault.path("conf")).st_mtime - 1 <= int(sealed_at.removeprefix(b"t")) / 1e6 <= time.time()
    assert phc.startswith(b"$argon2id$v=19$m=8192,t=1,p=1$")
    for role, may in (("viewer", False), ("reviewer", True)):
        nonce = os.urandom(12)
        admind.admins["other"] = (role, b"\1\1" + nonce + key.encrypt(
            nonce, phc, b"administrators\0other\0" + role.encode()))
        m = ask(web, admind, "LOGIN", username="other", password=PASSWORD)
        assert m["role"] == role
        request, pre = os.urandom(16), preimage()
        admind.requests[request] = ("tool", "pending", pre)
        m = ask(web, admind, "APPROVE", token=m["token"], approval=request,
                reviewed=hashlib.sha256(pre).digest())
        assert m["_"] == "OK" if may else refused(m, "FORBIDDEN")
        assert (request in admind.decisions) == may
    del admind.admins["other"]


def test_a_login_that_ends_meanwhile_decides_nothing(vault, web, admind, administrator, monkeypatch):
    t = ask(web, admind, "LOGIN", username="admin", password=PASSWORD)["token"]
    request, pre = os.urandom(16), preimage()

    def log_out_first(self, m):
        with Peer.open(table, vault, "adminweb", "admind-vault", "http") as w:
            assert w.call("LOGOUT", token=t)["_"] == "OK"
        return "CONTENT", {"kind": "tool", "state": "pending", "preimage": pre}

    monkeypatch.setattr(Admind, "on_content_get", log_out_first)
    refused(ask(web, admind, "APPROVE", token=t, approval=request,
                reviewed=hashlib.sha256(pre).digest()), "UNAUTHENTICATED")
    assert request not in admind.decisions


def test_reject(web, admind, token):
    request = os.urandom(16)
    assert ask(web, admind, "REJECT", token=token, approval=request, reason="no")["_"] == "OK"
    d = admind.decisions[request]
    assert d["approved"] == 0 and d["seal"] == b"" and d["reason"] == "no" and d["actor"] == "admin"
    refused(ask(web, admind, "REJECT", token=token, approval=request, reason="x" * 2001), "TOO_LARGE")


def test_other_content_than_reviewed_is_refused(ctl, web, admind, token):
    """admind shows one content and gives the vault another."""
    request, shown = os.urandom(16), preimage()
    admind.requests[request] = ("tool", "pending", preimage(code=b"evil()\n"))
    digest = hashlib.sha256(shown).digest()
    refused(ask(web, admind, "APPROVE", token=token, approval=request, reviewed=digest),
            "HASH_MISMATCH")
    refused(ask(ctl, admind, "APPROVE", approval=request, reviewed=digest), "HASH_MISMATCH")
    drain(admind)
    assert request not in admind.decisions
    assert any(e[0] == "approve_refused" and "hash_mismatch" in e[3] for e in admind.events)


def test_all_of_a_digest_counts(ctl, admind):
    """Its last bit, its second half, and what comes after a byte that would end a text."""
    contents = (preimage(code=b"def main():\n    return %d\n" % n) for n in itertools.count())
    pre, digest = next((c, d) for c in contents if (d := hashlib.sha256(c).digest())[0] == 0)
    for other in (digest[:-1] + bytes([digest[-1] ^ 1]), digest[:16] + bytes(b ^ 1 for b in digest[16:]),
                  b"\0" + bytes(b ^ 1 for b in digest[1:])):
        request = os.urandom(16)
        admind.requests[request] = ("tool", "pending", pre)
        refused(ask(ctl, admind, "APPROVE", approval=request, reviewed=other), "HASH_MISMATCH")
        assert request not in admind.decisions
    assert ask(ctl, admind, "APPROVE", approval=request, reviewed=digest)["_"] == "OK"


@pytest.mark.parametrize("pre", [
    b"", b"mcpbox version 1\0", b"x" * 100, preimage() + b"\1", preimage()[:-1],
    preimage().replace(b"version 1", b"version 2")])
def test_malformed_content_is_not_sealed(ctl, admind, pre):
    request = os.urandom(16)
    admind.requests[request] = ("tool", "pending", pre)
    m = ask(ctl, admind, "APPROVE", approval=request, reviewed=hashlib.sha256(pre).digest())
    assert m["_"] == "REFUSED" and request not in admind.decisions


def test_decided_and_unknown_kinds_are_refused(ctl, admind):
    pre = preimage()
    digest = hashlib.sha256(pre).digest()
    for kind, state, failure in (("tool", "approved", "ALREADY_DECIDED"),
                                 ("tool", "", "ALREADY_DECIDED"),
                                 ("network", "pending", "INVALID_PARAMS")):
        request = os.urandom(16)
        admind.requests[request] = (kind, state, pre)
        refused(ask(ctl, admind, "APPROVE", approval=request, reviewed=digest), failure)
        assert request not in admind.decisions


def test_a_token_on_the_root_socket_is_refused(ctl, admind, token):
    refused(ask(ctl, admind, "APPROVE", token=token, approval=b"A" * 16), "INVALID_REQUEST")


def test_admind_refusing_to_store_is_told(ctl, admind, monkeypatch):
    request, pre = os.urandom(16), preimage()
    admind.requests[request] = ("tool", "pending", pre)
    monkeypatch.setattr(Admind, "on_decision_store", lambda self, m: (
        "REFUSED", {"failure": FAILURES["ALREADY_DECIDED"], "message": "somebody was faster"}))
    m = ask(ctl, admind, "APPROVE", approval=request, reviewed=hashlib.sha256(pre).digest())
    refused(m, "ALREADY_DECIDED")
    assert m["message"] == "somebody was faster"


# --- contexts ---

def test_context_of_an_approved_version(admind, sandbox, approved, stored, context_key):
    pre, s = approved
    m = seal(admind, sandbox.epoch, material(pre, s, [(b"TOKEN", stored["demo", "TOKEN"])]))
    assert m["_"] == "SEALED", m
    plain = unseal(context_key, sandbox.epoch, m["context"])
    assert (3, b"TOKEN") in plain and (4, CANARY) in plain
    assert (5, b"def main():\n    return 1\n") in plain and (6, b"demo__greet") in plain
    assert (15, hashlib.sha256(pre).digest()) in plain
    assert CANARY not in m["context"]
    assert CANARY not in admind.seen


@pytest.mark.parametrize("change", ["epoch", "execution", "listener", "kind"])
def test_a_context_opens_nowhere_else(admind, sandbox, approved, context_key, change):
    pre, s = approved
    m = seal(admind, sandbox.epoch, material(pre, s))
    args = {"epoch": sandbox.epoch, "execution": b"X" * 16, "listener": LOCAL, "kind": TOOL}
    args[change] = {"epoch": UNUSED_EPOCH, "execution": b"Y" * 16, "listener": TUNNEL,
                    "kind": TEST}[change]
    with pytest.raises(Exception, match="^$"):
        unseal(context_key, sealed=m["context"], **args)


def test_nonces_count_and_a_new_key_ends_the_old(admind, sandbox, approved, context_key):
    pre, s = approved
    nonces = [seal(admind, sandbox.epoch, material(pre, s))["context"][1:13] for _ in range(3)]
    assert nonces == [struct.pack(">IQ", 0, n) for n in (1, 2, 3)]
    new = sandbox.call("CONTEXT_KEY_GET", epoch=sandbox.epoch)["key"]
    assert new != context_key
    m = seal(admind, sandbox.epoch, material(pre, s))
    unseal(new, sandbox.epoch, m["context"])
    with pytest.raises(Exception, match="^$"):
        unseal(context_key, sandbox.epoch, m["context"])


def test_unknown_epoch_is_refused(admind, approved, context_key):
    pre, s = approved
    refused(seal(admind, UNUSED_EPOCH, material(pre, s)), "SANDBOX_UNAVAILABLE")


def test_a_sandbox_gets_its_own_epochs_key_only(vault, sandbox, context_key):
    with Peer.open(table, vault, "sandbox", "admind-vault", "sandboxd") as other:
        refused(other.call("CONTEXT_KEY_GET", epoch=sandbox.epoch), "FORBIDDEN")
        refused(other.call("CONTEXT_KEY_GET", epoch=bytes(16)), "FORBIDDEN")
        assert other.call("CONTEXT_KEY_GET", epoch=other.epoch)["_"] == "CONTEXT_KEY"


def test_forged_seals_are_refused(admind, sandbox, approved, context_key):
    pre, s = approved
    evil = preimage(code=b"evil()\n")
    body = s[:-32]
    swapped = body.replace(hashlib.sha256(pre).digest(), hashlib.sha256(evil).digest())
    guess = hmac.new(bytes(32), b"mcpbox approval 1\0" + swapped, hashlib.sha256).digest()
    for p, forged in [(evil, s), (evil, swapped + s[-32:]), (evil, swapped + guess), (evil, b""),
                      (evil, b"\1" + os.urandom(200)), (pre, body), (pre, s[:-1]), (pre, s + b"\0"),
                      (pre + b"\0", s), (pre, b"\1" + s[1:]), (pre, b"\3" + s[1:]),
                      (pre, s[:1] + bytes(8) + s[9:]), (pre, b"\1" + s[9:])]:
        refused(seal(admind, sandbox.epoch, material(p, forged)), "NOT_APPROVED")
    for bit in range(0, len(s) * 8, 7):
        flipped = bytearray(s)
        flipped[bit // 8] ^= 1 << bit % 8
        refused(seal(admind, sandbox.epoch, material(pre, bytes(flipped))), "NOT_APPROVED")


@pytest.mark.parametrize("what", [(), ("pre",), ("seal",)])
def test_a_tool_needs_version_and_seal(admind, sandbox, approved, context_key, what):
    pre, s = approved
    m = material(pre if "pre" in what else None, s if "seal" in what else None)
    refused(seal(admind, sandbox.epoch, m), "NOT_APPROVED")


def test_secrets_outside_the_approval(admind, ctl, sandbox, approved, stored, context_key):
    """The canary is planted under three names; only demo/TOKEN was approved."""
    pre, s = approved
    values = {k: stored[k] for k in stored}
    tries = [
        [(b"OTHER", values["demo", "OTHER"])],          # not named by the version
        [(b"OTHER", values["demo", "TOKEN"])],
        [(b"TOKEN", values["demo", "OTHER"])],          # another key's value
        [(b"TOKEN", values["bank", "TOKEN"])],          # another server's value
        [(b"TOKEN", values["demo", "TOKEN"][:-1])],
        [(b"TOKEN", b"\1\2" + values["demo", "TOKEN"][2:])],
        [(b"TOKEN", b"")], [(b"TOKEN", CANARY)],
        [(b"TOKEN", values["demo", "TOKEN"]), (b"OTHER", values["demo", "OTHER"])],
    ]
    for t in tries:
        refused(seal(admind, sandbox.epoch, material(pre, s, t)), "FORBIDDEN")
    # Twice the same, a name without value, a value without name.
    twice = [(b"TOKEN", values["demo", "TOKEN"])] * 2
    refused(seal(admind, sandbox.epoch, material(pre, s, twice)), "INVALID_REQUEST")
    for extra in ([(3, b"TOKEN")], [(4, values["demo", "TOKEN"])],
                  [(3, b"TOKEN"), (3, b"TOKEN"), (4, values["demo", "TOKEN"])]):
        refused(seal(admind, sandbox.epoch, material(pre, s, extra=extra)), "INVALID_REQUEST")
    # A version without secrets, approved: it gets none.
    plain, request = preimage(secret_names=()), os.urandom(16)
    admind.requests[request] = ("tool", "pending", plain)
    ask(ctl, admind, "APPROVE", approval=request, reviewed=hashlib.sha256(plain).digest())
    s2 = admind.decisions[request]["seal"]
    t = [(b"TOKEN", values["demo", "TOKEN"])]
    refused(seal(admind, sandbox.epoch, material(plain, s2, t)), "FORBIDDEN")
    assert CANARY not in admind.seen


@pytest.mark.parametrize("kind", [INSPECT, TEST])
def test_inspections_and_tests_carry_no_secret(admind, sandbox, approved, stored, context_key, kind):
    pre, s = approved
    value = stored["demo", "TOKEN"]
    own = [(5, b"print(1)"), (6, b"demo__draft")]
    for extra in ([(3, b"TOKEN"), (4, value)], [(1, pre)], [(2, s)], [(1, pre), (2, s)],
                  [(15, bytes(32))], [(99, b"")]):
        refused(seal(admind, sandbox.epoch, material(extra=own + extra), kind, ADMIND),
                "INVALID_REQUEST")
    m = seal(admind, sandbox.epoch, material(extra=own), kind, ADMIND)
    plain = unseal(context_key, sandbox.epoch, m["context"], kind, ADMIND)
    assert not {tag for tag, _ in plain} & {1, 2, 3, 4, 15}
    assert (5, b"print(1)") in plain and (6, b"demo__draft") in plain
    for listener in (LOCAL, TUNNEL):
        refused(seal(admind, sandbox.epoch, material(extra=own), kind, listener), "FORBIDDEN")


def test_an_installer_s_context_says_a_name_and_limits(admind, sandbox, approved, stored, context_key):
    """Nothing that runs, nowhere to connect to, no secret: sandboxd knows these itself."""
    pre, s = approved
    module, own = 6, [(6, b"module:six")]
    for extra in ([(5, b"print(1)")], [(3, b"TOKEN"), (4, stored["demo", "TOKEN"])], [(1, pre), (2, s)],
                  [(22, bytes(32))], [(23, b"http")], [(24, b"{}")], [(25, b"/usr/bin/true")],
                  [(31, s), (32, pre)], [(33, b"tcp evil.example 443")], [(34, b"tcp * 0")], [(35, bytes(16))],
                  [(30, struct.pack(">Q", 1))]):
        refused(seal(admind, sandbox.epoch, material(extra=own + extra), module, ADMIND),
                "INVALID_REQUEST")
    refused(seal(admind, sandbox.epoch, material(), module, ADMIND), "INVALID_REQUEST")
    for listener in (LOCAL, TUNNEL):
        refused(seal(admind, sandbox.epoch, material(extra=own), module, listener), "FORBIDDEN")
    m = seal(admind, sandbox.epoch, material(extra=own), module, ADMIND)
    plain = unseal(context_key, sandbox.epoch, m["context"], module, ADMIND)
    assert (6, b"module:six") in plain
    assert not {tag for tag, _ in plain} & {1, 2, 3, 4, 5, 15, 22, 23, 24, 25, 31, 32, 33, 34, 35}


def test_a_tool_takes_no_code_from_admind(admind, sandbox, approved, context_key):
    pre, s = approved
    for extra in ([(5, b"evil()")], [(6, b"other__name")], [(15, bytes(32))], [(7, bytes(32))],
                  [(8, b"\0" * 7)], [(200, b"")]):
        refused(seal(admind, sandbox.epoch, material(pre, s, extra=extra)), "INVALID_REQUEST")
    for kind, listener in ((0, LOCAL), (4, LOCAL), (TOOL, 0), (TOOL, 4)):
        refused(seal(admind, sandbox.epoch, material(pre, s), kind, listener), "INVALID_REQUEST")
    refused(seal(admind, sandbox.epoch, material(pre, s)[:-3]), "INVALID_REQUEST")


def test_reviewed_limits_bind(admind, ctl, sandbox, context_key):
    pre, request = preimage(timeout=1500), os.urandom(16)
    admind.requests[request] = ("tool", "pending", pre)
    ask(ctl, admind, "APPROVE", approval=request, reviewed=hashlib.sha256(pre).digest())
    m = seal(admind, sandbox.epoch, material(pre, admind.decisions[request]["seal"]))
    plain = unseal(context_key, sandbox.epoch, m["context"])
    assert [v for t, v in plain if t == 8] == [struct.pack(">Q", 1500)]


def test_large_context(admind, ctl, sandbox, context_key):
    """100 kB of code: through memfds both ways."""
    pre, request = preimage(code=b"#" * 100000), os.urandom(16)
    admind.requests[request] = ("tool", "pending", pre)
    ask(ctl, admind, "APPROVE", approval=request, reviewed=hashlib.sha256(pre).digest())
    m = seal(admind, sandbox.epoch, material(pre, admind.decisions[request]["seal"]))
    assert (5, b"#" * 100000) in unseal(context_key, sandbox.epoch, m["context"])


# --- limits, modules, commands: what a hostile admind can make of a context ---

#: name: (context tag, version tag, min, max), typed from common/version/limit.h's words
LIMITS = {"timeout_ms": (8, 24, 100, 600000), "memory_bytes": (9, 25, 33554432, 17179869184),
          "processes": (10, 26, 1, 1024), "tmp_bytes": (11, 27, 65536, 17179869184),
          "result_bytes": (12, 28, 1024, 1048576), "cpu_ms": (16, 29, 100, 3600000),
          "files": (17, 30, 16, 4096), "file_bytes": (18, 31, 4096, 17179869184),
          "stdout_bytes": (19, 32, 1024, 65536), "log_rate": (20, 34, 1, 1000),
          "progress_rate": (21, 35, 1, 100), "connections": (36, 44, 1, 65536),
          "network_bytes": (37, 45, 1024, 2**40), "network_rate": (38, 46, 1024, 2**40)}
DIGESTS = [hashlib.sha256(bytes([n])).hexdigest() for n in range(40)]


def version(kind=b"python", content=(), modules=(), tail=(), limits=()):
    """A version of any kind: content are the fields 15 to 19."""
    fields = [(1, 1), (2, b"S" * 16), (3, b"T" * 16), (4, b"demo"), (5, b"greet"),
              (6, b"demo__greet"), (8, b""), (11, b'{"type":"object"}'), (14, kind)]
    fields += [f for f in content if f[0] < 17]
    fields += [(17, m) for m in sorted(modules)]
    fields += [f for f in content if f[0] > 17]
    fields += sorted((LIMITS[n][1], v) for n, v in limits)
    return b"mcpbox version 1\0" + tlv(*fields, *tail)


def approve(ctl, admind, pre):
    request = os.urandom(16)
    admind.requests[request] = ("tool", "pending", pre)
    m = ask(ctl, admind, "APPROVE", approval=request, reviewed=hashlib.sha256(pre).digest())
    assert m["_"] == "OK", m
    return admind.decisions[request]["seal"]


def bare(pre, s, *extra, timeout=30000):
    """Material of a call with just these further fields."""
    return tlv((1, pre), (2, s), (7, hashlib.sha256(b"{}").digest()), (8, timeout), (13, 5000),
               (14, b""), *extra)


CODE = ((15, b"def main(): pass\n"),)


def test_an_approved_limit_cannot_be_raised(admind, ctl, sandbox, context_key):
    """The version's own limits bind, whatever admind says of them."""
    own = {n: lo + 1 for n, (_, _, lo, _) in LIMITS.items()}
    pre = version(content=CODE, limits=own.items())
    s = approve(ctl, admind, pre)
    wild = [(tag, hi) for n, (tag, _, _, hi) in LIMITS.items() if n != "timeout_ms"]
    m = seal(admind, sandbox.epoch, bare(pre, s, *wild, timeout=600000))
    plain = unseal(context_key, sandbox.epoch, m["context"])
    for n, (tag, _, _, _) in LIMITS.items():
        assert [v for t, v in plain if t == tag] == [struct.pack(">Q", own[n])], n


def test_unset_limits_stay_within_bounds(admind, ctl, sandbox, context_key):
    """What no version says admind says: any value an administrator could have
    set, nothing beyond, and nothing that is no number."""
    pre = version(content=CODE)
    s = approve(ctl, admind, pre)
    for n, (tag, _, lo, hi) in LIMITS.items():
        for good in (lo, hi):
            extra = [] if tag == 8 else [(tag, good)]
            m = seal(admind, sandbox.epoch, bare(pre, s, *extra, timeout=good if tag == 8 else 1000))
            assert (tag, struct.pack(">Q", good)) in unseal(context_key, sandbox.epoch, m["context"])
        for bad in (0, lo - 1, hi + 1, 2**63, 2**64 - 1):
            extra = [] if tag == 8 else [(tag, bad)]
            m = seal(admind, sandbox.epoch, bare(pre, s, *extra, timeout=bad if tag == 8 else 1000))
            assert m["_"] == "REFUSED" and m["failure"] == FAILURES["LIMIT"], (n, bad)
            assert n in m["message"], m
        if tag != 8:
            for bad in (b"", b"\0" * 7, b"\0" * 9):
                refused(seal(admind, sandbox.epoch, bare(pre, s, (tag, bad))), "INVALID_REQUEST")
            refused(seal(admind, sandbox.epoch, bare(pre, s, (tag, lo), (tag, hi))), "INVALID_REQUEST")
    for kind in (INSPECT, TEST):
        own = [(5, b"print(1)"), (6, b"demo__draft")]
        refused(seal(admind, sandbox.epoch, material(extra=[*own, (9, 2**40)]), kind, ADMIND), "LIMIT")


def test_a_version_from_before_the_bounds_is_cut_to_them(admind, ctl, sandbox, context_key):
    pre = version(content=CODE, limits=[("memory_bytes", 2**60), ("log_rate", 0)])
    s = approve(ctl, admind, pre)
    plain = unseal(context_key, sandbox.epoch,
                   seal(admind, sandbox.epoch, bare(pre, s))["context"])
    assert (9, struct.pack(">Q", 17179869184)) in plain and (20, struct.pack(">Q", 1)) in plain


def test_modules_come_from_the_approved_version_only(admind, ctl, sandbox, context_key):
    lock = [f"b{i} 1.{i} {DIGESTS[i]}".encode() for i in (3, 1, 2)]
    lock += [f"same 1 {DIGESTS[2]}".encode()]
    pre = version(content=CODE, modules=lock)
    s = approve(ctl, admind, pre)
    plain = unseal(context_key, sandbox.epoch,
                   seal(admind, sandbox.epoch, bare(pre, s))["context"])
    got = [v.hex() for t, v in plain if t == 22]
    assert got == sorted({DIGESTS[1], DIGESTS[2], DIGESTS[3]})
    # admind can neither add one nor replace one
    evil = bytes.fromhex(DIGESTS[9])
    refused(seal(admind, sandbox.epoch, bare(pre, s, (22, evil))), "INVALID_REQUEST")
    other = pre.replace(DIGESTS[1].encode(), DIGESTS[9].encode())
    refused(seal(admind, sandbox.epoch, bare(other, s)), "NOT_APPROVED")


@pytest.mark.parametrize("line", [
    b"requests", b"requests==2.0", b"requests 2.0 " + b"0" * 63, b"requests 2.0 " + b"g" * 64,
    b"requests 2.0 " + b"A" * 64, b"requests 2.0" + b"a" * 64, b"a" * 64])
def test_a_lock_that_is_none_runs_nothing(admind, ctl, sandbox, context_key, line):
    """Versions from before module locks, or made by a hostile admind."""
    pre = version(content=CODE, modules=[line])
    s = approve(ctl, admind, pre)
    refused(seal(admind, sandbox.epoch, bare(pre, s)), "INVALID_REQUEST")


def test_modules_of_a_call_are_few(admind, ctl, sandbox, context_key):
    for count, good in ((32, True), (33, False)):
        pre = version(content=CODE, modules=[f"m{i} 1 {DIGESTS[i]}".encode() for i in range(count)])
        m = seal(admind, sandbox.epoch, bare(pre, approve(ctl, admind, pre)))
        assert (m["_"] == "SEALED") is good, m
    own = [(5, b"print(1)"), (6, b"demo__draft")]
    digests = sorted(bytes.fromhex(d) for d in DIGESTS)
    for kind in (INSPECT, TEST):
        m = seal(admind, sandbox.epoch, material(extra=[*own, *((22, d) for d in digests[:32])]),
                 kind, ADMIND)
        assert m["_"] == "SEALED", m
        for bad in (digests[:33], [digests[1], digests[0]], [digests[0], digests[0]], [b"x"]):
            m = seal(admind, sandbox.epoch, material(extra=[*own, *((22, d) for d in bad)]), kind, ADMIND)
            assert m["_"] == "REFUSED", bad


SPEC = b'{"argv":["-n","{count}"]}'
COMMAND = ((16, SPEC), (18, b"/usr/bin/head"), (19, DIGESTS[5].encode()))


def test_a_command_runs_as_it_was_approved(admind, ctl, sandbox, context_key):
    pre = version(b"command", COMMAND)
    s = approve(ctl, admind, pre)
    plain = unseal(context_key, sandbox.epoch,
                   seal(admind, sandbox.epoch, bare(pre, s))["context"])
    assert (23, b"command") in plain and (24, SPEC) in plain and (25, b"/usr/bin/head") in plain
    assert (26, bytes.fromhex(DIGESTS[5])) in plain
    assert not {t for t, _ in plain} & {5, 22}
    # none of it can be said beside the version
    for extra in ((5, b"code"), (23, b"python"), (24, b"{}"), (25, b"/bin/sh"),
                  (26, bytes.fromhex(DIGESTS[6]))):
        refused(seal(admind, sandbox.epoch, bare(pre, s, extra)), "INVALID_REQUEST")


@pytest.mark.parametrize("name,method", [(None, None), (b"tool", 0), (b"prompt", 1), (b"resource", 2),
                                         (b"template", 2), (b"", "none"), (b"Prompt", "none")])
def test_what_a_result_must_be_comes_from_the_approved_version(admind, ctl, sandbox, context_key,
                                                               name, method):
    schema = b'{"type": "array"}'
    pre = b"mcpbox version 1\0" + tlv(
        (1, 1), (2, b"S" * 16), (3, b"T" * 16), (4, b"demo"), (5, b"greet"), (6, b"demo__greet"),
        (11, b'{"type":"object"}'), (12, schema), (14, b"python"), *CODE,
        *([] if name is None else [(36, name)]))
    s = approve(ctl, admind, pre)
    m = seal(admind, sandbox.epoch, bare(pre, s))
    if method == "none":
        refused(m, "INVALID_REQUEST")
        return
    plain = unseal(context_key, sandbox.epoch, m["context"])
    assert [v for t, v in plain if t == 28] == [schema]
    assert [v for t, v in plain if t == 27] == ([] if method is None else [struct.pack(">Q", method)])
    for extra in ((27, struct.pack(">Q", 0)), (28, b"{}")):
        refused(seal(admind, sandbox.epoch, bare(pre, s, extra)), "INVALID_REQUEST")


@pytest.mark.parametrize("kind,content", [
    (b"command", COMMAND[:2]), (b"command", (COMMAND[0], COMMAND[2])), (b"command", COMMAND[1:]),
    (b"command", (*COMMAND[:2], (19, b"A" * 64))), (b"command", (*COMMAND[:2], (19, b"0" * 63))),
    (b"command", CODE), (b"python", COMMAND), (b"http", CODE), (b"mcp", COMMAND), (b"", CODE),
    (b"Command", COMMAND)])
def test_half_a_version_runs_nothing(admind, ctl, sandbox, context_key, kind, content):
    pre = version(kind, content)
    s = approve(ctl, admind, pre)
    refused(seal(admind, sandbox.epoch, bare(pre, s)), "INVALID_REQUEST")


def test_inspections_are_of_code_or_of_a_command(admind, sandbox, context_key):
    name = (6, b"demo__draft")
    command = [(23, b"command"), (24, SPEC), (25, b"/usr/bin/head")]
    m = seal(admind, sandbox.epoch, material(extra=[name, *command]), INSPECT, ADMIND)
    plain = unseal(context_key, sandbox.epoch, m["context"], INSPECT, ADMIND)
    assert set(command) <= set(plain) and 26 not in {t for t, _ in plain}
    for wrong in ([], [(5, b"x"), *command], command[:2], command[1:], [command[0], command[2]],
                  [*command, (26, bytes(32))]):
        refused(seal(admind, sandbox.epoch, material(extra=[name, *wrong]), INSPECT, ADMIND),
                "INVALID_REQUEST")


# --- secrets, keys, audit, doctor ---

def test_secret_set(ctl, admind, stored):
    value = stored["demo", "TOKEN"]
    assert len(value) == 9 + 12 + len(CANARY) + 16 and value[:1] == b"\2"
    assert CANARY not in admind.seen
    for server, key, v in (("Demo", "TOKEN", b"x"), ("demo", "token", b"x"), ("demo", "", b"x"),
                           ("demo", "TOKEN", b""), ("demo", "TOKEN", b"x" * 10001)):
        refused(ask(ctl, admind, "SECRET_SET", server=server, key=key, value=v), "INVALID_PARAMS")


def test_session_key_is_stable(admind):
    a, b = (ask(admind, admind, "SESSION_KEY_GET")["key"] for _ in range(2))
    assert a == b and len(a) == 32


def test_audit_signatures(vault, admind):
    head = os.urandom(32)
    m = ask(admind, admind, "AUDIT_SIGN", seq=5, head=head)
    assert m["_"] == "AUDIT_SIGNATURE"
    assert ask(admind, admind, "AUDIT_SIGN", seq=5, head=head) == m
    refused(ask(admind, admind, "AUDIT_SIGN", seq=5, head=os.urandom(32)), "CONFLICT")
    refused(ask(admind, admind, "AUDIT_SIGN", seq=4, head=head), "CONFLICT")
    assert ask(admind, admind, "AUDIT_SIGN", seq=6, head=head)["signature"] != m["signature"]
    assert head.hex().encode() in vault.logs()


def test_doctor(ctl, admind):
    m = ask(ctl, admind, "DOCTOR")
    assert m["_"] == "DOCTOR_REPORT"
    assert b'"process":"admind-vault"' in m["json"] and b"key_memory" in m["json"]


def test_confinement(vault):
    """No capability, no new privileges, a filter on every thread; no core."""
    pid = vault.process.pid
    threads = os.listdir(f"/proc/{pid}/task")
    assert len(threads) == 3
    for t in threads:
        with open(f"/proc/{pid}/task/{t}/status", encoding="ascii") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
        assert int(status["Seccomp_filters"]) >= 2
        assert int(status["CapPrm"], 16) == 0 and int(status["CapEff"], 16) == 0
    assert os.stat(f"/proc/{pid}/mem").st_uid == 0      # not dumpable


def test_nothing_lingers_in_memory(vault, web, ctl, admind, sandbox, approved, stored, context_key,
                                   administrator):
    """The master key, passwords, tokens and secrets' values are wiped."""
    word = secrets.token_urlsafe(24)
    token = ask(web, admind, "LOGIN", username="admin", password=PASSWORD)["token"]
    refused(ask(web, admind, "LOGIN", username="admin", password=word), "BAD_LOGIN")
    ask(ctl, admind, "SECRET_SET", server="demo", key="TOKEN", value=b"GONE" + word.encode())
    pre, s = approved
    seal(admind, sandbox.epoch, material(pre, s, [(b"TOKEN", stored["demo", "TOKEN"])]))
    for _ in range(3):
        ask(admind, admind, "SESSION_KEY_GET")
    memory = vault.memory()
    assert vault.sub_key(b"secrets") in memory      # the search works
    for what in (vault.key, word.encode(), PASSWORD.encode(), token.encode(), CANARY):
        assert what not in memory, what


def test_without_admind(vault, web, admind, ctl, administrator):
    """Typed errors while admind is away; a new vault process forgets logins
    and context keys, and the verifiers still open."""
    saved = dict(admind.admins)
    vault.stop()
    vault.start()
    with Peer(table, socket_as(0, [], vault.run("admind-vault", "ctl.sock"))) as c, \
            Peer.open(table, vault, "adminweb", "admind-vault", "http") as w:
        refused(c.call("SECRET_SET", server="demo", key="TOKEN", value=b"x"), "BUSY")
        refused(c.call("APPROVE", approval=b"A" * 16), "BUSY")
        refused(w.call("LOGIN", username="admin", password=PASSWORD), "BUSY")
        with Admind.open(table, vault, "admind", "admind-vault", "admind") as a:
            a.admins = saved
            time.sleep(0.1)
            assert ask(w, a, "LOGIN", username="admin", password=PASSWORD)["_"] == "LOGIN_OK"
            # admind dies while it is asked.
            request = w.start("LOGIN", username="admin", password=PASSWORD)
            a.receive()
        assert refused(w.answer(request), "BUSY")


@pytest.mark.parametrize("spoil", ["mode", "owner", "short", "long", "link", "fifo", "absent"])
def test_bad_key_files_are_refused(vault, spoil):
    uid = vault.uid("vault")
    path = vault.path("key." + spoil)
    vault.write("key." + spoil, os.urandom({"short": 31, "long": 33}.get(spoil, 32)), 0o400, uid)
    if spoil == "mode":
        os.chmod(path, 0o440)
    elif spoil == "owner":
        os.chmod(path, 0o444)
        os.chown(path, 0, 0)
    elif spoil == "link":
        os.rename(path, path + ".real")
        os.symlink(path + ".real", path)
    elif spoil in ("fifo", "absent"):
        os.unlink(path)
        if spoil == "fifo":
            os.mkfifo(path, 0o400)
            os.chown(path, uid, uid)
    os.makedirs(vault.path("run2", "admind-vault"), exist_ok=True)
    os.chown(vault.path("run2", "admind-vault"), uid, uid)
    with open(vault.path("conf"), encoding="ascii") as f:
        conf = f.read().replace(vault.path("master.key"), path).replace(vault.path("run"), vault.path("run2"))
    vault.write("conf2", conf.encode(), 0o644, 0)
    r = subprocess.run(["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                        vault.path("vault"), "-f", vault.path("conf2")], stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=patience(10), check=False)
    assert r.returncode == 1 and path.encode() in r.stderr, r.stderr
