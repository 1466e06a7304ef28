"""Grants and policies of review at the vault's own sockets, admind being ours
and hostile: it approves nothing that no person, or no policy that a person set,
lets by; and what it brings back is honoured no further than decision 0038 says."""
import hashlib
import os
import struct

import pytest

from harness.tlv import tlv, untlv
from integration.vault import test_vault
from integration.vault.test_vault import ask, material, preimage, refused, seal

# Its fixtures.
vault, admind, web, ctl, sandbox = (test_vault.vault, test_vault.admind, test_vault.web,
                                    test_vault.ctl, test_vault.sandbox)
administrator, token, context_key = (test_vault.administrator, test_vault.token,
                                     test_vault.context_key)
REQUIRE, SECOND, AUTOMATIC = 1, 2, 3
SERVER, TOOL = b"S" * 16, b"T" * 16


def network(request, host=b"api.example.org", port=443, affected=(), proto=b"tcp"):
    return b"mcpbox grant 1\0" + tlv(
        (1, 2), (2, request), (3, SERVER), (4, b"demo"), (12, proto), (13, host), (14, port),
        *[(15, a) for a in affected])


def module(request, recorded=True):
    fields = [(1, 1), (2, request), (3, SERVER), (4, b"demo"), (5, TOOL), (6, b"greet"), (7, b"six")]
    if recorded:
        fields += [(8, b"1.16.0"), (9, b"D" * 32), (10, 3), (11, 99)]
    return b"mcpbox grant 1\0" + tlv(*fields)


def sha(data):
    return hashlib.sha256(data).digest()


def body(sealed):
    """A seal's TLV: {2, key id, body, MAC}."""
    assert sealed[0] == 2
    return untlv(sealed[9:-32])


class Policies:
    """What the played admind stores and brings."""

    def __init__(self, admind):
        self.stored, self.bring, self.first, self.refuse = [], None, b"", False
        self.serial, self.forged = 0, None      # of the newest row; of one that somebody wrote
        admind.on_policy_load = lambda m: ("POLICY_SEALED", {"seal": self.now(), "serial": self.newest()})
        admind.on_policy_store = self.store
        admind.on_content_get = lambda m: ("CONTENT", dict(
            zip(("kind", "state", "preimage"), admind.requests[m["approval"]]),
            policy=self.now(), first=self.first))

    def now(self):
        return self.bring if self.bring is not None else (self.stored[-1] if self.stored else b"")

    def store(self, m):
        if self.refuse:
            return "REFUSED", {"failure": test_vault.FAILURES["STORAGE_UNAVAILABLE"], "message": "no"}
        if m["over"] != self.newest() or m["serial"] <= self.newest():      # as SQL does
            return "REFUSED", {"failure": test_vault.FAILURES["HASH_MISMATCH"], "message": "read it again"}
        self.stored.append(m["seal"])
        self.serial, self.forged = m["serial"], None
        return "OK", {}

    def newest(self):
        return self.serial if self.forged is None else self.forged


@pytest.fixture(scope="module")
def policies(admind):
    return Policies(admind)


@pytest.fixture(autouse=True)
def honest(policies):
    yield
    policies.bring, policies.first, policies.refuse, policies.forged = None, b"", False, None


def state(peer, admind, token=""):
    m = ask(peer, admind, "POLICY_GET", token=token)
    assert m["_"] == "POLICY_STATE", m
    return m


def set_policy(peer, admind, tool=REQUIRE, module=REQUIRE, network=REQUIRE, days=30, token="", seen=None):
    seen = state(peer, admind, token)["seal"] if seen is None else seen
    return ask(peer, admind, "POLICY_SET", token=token, tool=tool, module=module, network=network,
               days=days, seen=seen)


def put(admind, kind, content):
    request = os.urandom(16)
    content = content(request) if callable(content) else content
    admind.requests[request] = (kind, "pending", content)
    return request, content


def approve(peer, admind, request, content, token=""):
    return ask(peer, admind, "APPROVE", token=token, approval=request, reviewed=sha(content))


def auto(admind, request):
    return ask(admind, admind, "APPROVE_AUTO", approval=request)


# --- who may say what ---


@pytest.mark.parametrize("who,name", [
    ("admind", "POLICY_SET"), ("admind", "POLICY_GET"), ("admind", "SEAL_VERIFY"),
    ("http", "APPROVE_AUTO"), ("http", "POLICY_STORE"), ("http", "POLICY_LOAD")])
def test_by_whom(vault, policies, who, name):
    user = "adminweb" if who == "http" else who
    with test_vault.Admind.open(test_vault.table, vault, user, "admind-vault", who) as p:
        p.start(name)
        assert p.closed()


# --- grants ---


def test_a_host_is_sealed(ctl, admind, policies):
    affected = sorted(os.urandom(32) for _ in range(3))
    request, content = put(admind, "network", lambda r: network(r, affected=affected))
    assert approve(ctl, admind, request, content)["_"] == "OK"
    d = admind.decisions[request]
    said = body(d["seal"])
    assert d["content"] == sha(content) and d["actor"] == "root"
    assert said[:-1] == [(1, request), (2, sha(content)), (3, struct.pack(">Q", 2)), (4, SERVER),
                         (9, b"tcp"), (10, b"api.example.org"), (11, struct.pack(">Q", 443)), (12, b"root")]
    m = ask(ctl, admind, "SEAL_VERIFY", seal_len=len(d["seal"]), seal_preimage=d["seal"] + content)
    assert (m["_"], m["about"], m["approver"]) == ("SEAL_SAYS", request, "root")
    wider = content.replace(b"api.example.org", b"*.a.example.org"[:15])
    refused(ask(ctl, admind, "SEAL_VERIFY", seal_len=len(d["seal"]), seal_preimage=d["seal"] + wider),
            "NOT_APPROVED")


def test_a_module_is_sealed_once_it_is_recorded(web, admind, token, policies):
    request, content = put(admind, "module", module)
    assert approve(web, admind, request, content, token)["_"] == "OK"
    said = dict(body(admind.decisions[request]["seal"]))
    assert (said[6], said[7], said[8], said[12]) == (b"six", b"1.16.0", b"D" * 32, b"admin")
    request, content = put(admind, "module", lambda r: module(r, False))
    refused(approve(web, admind, request, content, token), "MISSING_GRANT")
    assert request not in admind.decisions


def test_another_request_s_content(ctl, admind, policies):
    """A yes is to one request: a refused wish isn't granted by a later yes."""
    request, _ = put(admind, "network", network)
    other = network(os.urandom(16))
    admind.requests[request] = ("network", "pending", other)
    refused(approve(ctl, admind, request, other), "INVALID_PARAMS")


def test_what_was_shown(ctl, admind, policies):
    request, content = put(admind, "network", network)
    admind.requests[request] = ("network", "pending", network(request, host=b"evil.example.org"))
    refused(approve(ctl, admind, request, content), "HASH_MISMATCH")
    # or the list of what it touches, cut short
    request, content = put(admind, "network", lambda r: network(r, affected=[b"\1" * 32]))
    admind.requests[request] = ("network", "pending", network(request))
    refused(approve(ctl, admind, request, content), "HASH_MISMATCH")
    assert request not in admind.decisions


@pytest.mark.parametrize("host", [
    b"API.example.org", b"example.org.", b"localhost", b"127.1", b"169.254.169.254",
    b"*.org", b"**", b"", b"a b", b"192.168.001.1", b"2001:DB8::1", b"x\0.org", "b\u00fccher.org".encode(),
    b"a." * 127 + b"org", b"::ffff:10.0.0.1", b"fe80::1", b"0x7f.1"])
def test_a_host_in_no_form_of_ours(ctl, admind, policies, host):
    request, content = put(admind, "network", lambda r: network(r, host=host))
    refused(approve(ctl, admind, request, content), "INVALID_PARAMS")


@pytest.mark.parametrize("host", [b"127.0.0.1", b"::1", b"192.168.1.5", b"fd00::1"])
def test_what_is_not_public_may_be_granted(ctl, admind, policies, host):
    """Egress opens the port of the grant alone (egress/test_local.py)."""
    request, content = put(admind, "network", lambda r: network(r, host=host))
    assert approve(ctl, admind, request, content)["_"] == "OK"


@pytest.mark.parametrize("bad", [
    lambda c: c[:-1], lambda c: c + b"\0", lambda c: c.replace(tlv((14, 443)), tlv((14, 65536))),
    lambda c: c.replace(tlv((12, b"tcp")), tlv((12, b"icmp"))), lambda c: c + tlv((15, b"x" * 31)),
    lambda c: c + tlv((15, b"b" * 32), (15, b"a" * 32)), lambda c: c + tlv((15, b"a" * 32)) * 2,
    lambda c: c.replace(tlv((1, 2)), tlv((1, 3))), lambda c: c.replace(tlv((4, b"demo")), b""),
    lambda c: c.replace(tlv((4, b"demo")), tlv((4, b"de\nmo")))])
def test_bytes_in_no_form_of_ours(ctl, admind, policies, bad):
    request, content = put(admind, "network", lambda r: bad(network(r)))
    refused(approve(ctl, admind, request, content), "INVALID_PARAMS")


@pytest.mark.parametrize("kind,content", [("tool", network), ("module", network), ("network", module),
                                          ("call", module), ("network", preimage()), ("module", preimage())])
def test_kinds_do_not_pass_for_each_other(ctl, admind, policies, kind, content):
    request, content = put(admind, kind, content)
    refused(approve(ctl, admind, request, content), "INVALID_PARAMS")


def test_a_grant_s_seal_runs_nothing(ctl, admind, sandbox, context_key, policies):
    request, content = put(admind, "network", network)
    assert approve(ctl, admind, request, content)["_"] == "OK"
    grant = admind.decisions[request]["seal"]
    for pre in (preimage(secret_names=()), content):
        m = seal(admind, sandbox.epoch, material(pre, grant))
        assert m["_"] == "REFUSED", m


# --- policies ---


def test_policies_are_an_administrator_s(vault, web, ctl, admind, token, policies):
    m = state(web, admind, token)
    assert (m["tool"], m["module"], m["network"]) == (REQUIRE,) * 3
    refused(ask(web, admind, "POLICY_GET", token="x" * 43), "UNAUTHENTICATED")
    refused(ask(web, admind, "POLICY_SET", token="x" * 43, tool=1, module=1, network=1, days=1),
            "UNAUTHENTICATED")
    refused(ask(ctl, admind, "POLICY_SET", token=token, tool=1, module=1, network=1, days=1),
            "INVALID_REQUEST")
    m = set_policy(web, admind, module=SECOND, token=token)
    assert (m["_"], m["module"], m["actor"], m["until_us"]) == ("POLICY_STATE", SECOND, "admin", 0)
    said = dict(body(policies.stored[-1]))
    assert (said[2], said[3]) == (bytes([1, 2, 1]), b"admin")
    # changed meanwhile; no mode; days that are none
    refused(set_policy(web, admind, token=token, seen=bytes(32)), "HASH_MISMATCH")
    for wrong in ({"tool": 0}, {"network": 4}, {"days": 0}, {"days": 91}):
        refused(set_policy(ctl, admind, **wrong), "INVALID_PARAMS")
    policies.refuse = True
    refused(set_policy(ctl, admind, tool=AUTOMATIC), "STORAGE_UNAVAILABLE")
    assert state(ctl, admind)["tool"] == REQUIRE    # what wasn't stored doesn't hold
    policies.refuse = False
    assert set_policy(ctl, admind)["_"] == "POLICY_STATE"


def test_nothing_is_automatic_by_itself(ctl, admind, policies):
    set_policy(ctl, admind)
    for kind, content in (("tool", preimage(secret_names=())), ("network", network), ("module", module)):
        request, _ = put(admind, kind, content)
        refused(auto(admind, request), "FORBIDDEN")
        assert request not in admind.decisions


def test_what_a_policy_covers(ctl, admind, policies):
    m = set_policy(ctl, admind, AUTOMATIC, AUTOMATIC, AUTOMATIC, days=1)
    assert m["until_us"] > m["since_us"]
    for kind, content in (("tool", preimage(secret_names=())), ("network", network), ("module", module)):
        request, content = put(admind, kind, content)
        assert auto(admind, request)["_"] == "OK"
        d = admind.decisions[request]
        assert d["actor"] == "policy:root" and d["content"] == sha(content) and d["approved"] == 1
        said = dict(body(d["seal"]))
        assert b"policy:root" in said.values()
        assert struct.pack(">Q", m["since_us"]) in said.values()    # which policy
    for kind, content in (
            ("tool", preimage()),       # it names a secret
            ("tool", preimage(secret_names=()).replace(tlv((14, b"python")), tlv((14, b"mcp")))),   # another server's
            ("network", lambda r: network(r, host=b"*.example.org")),
            ("network", lambda r: network(r, host=b"192.168.1.7")),
            ("network", lambda r: network(r, host=b"nas")),
            ("network", lambda r: network(r, host=b"printer.home.arpa"))):
        request, _ = put(admind, kind, content)
        refused(auto(admind, request), "FORBIDDEN")
        assert request not in admind.decisions
    request, _ = put(admind, "module", lambda r: module(r, False))
    refused(auto(admind, request), "MISSING_GRANT")
    request, content = put(admind, "network", network)
    admind.requests[request] = ("network", "rejected", content)
    refused(auto(admind, request), "ALREADY_DECIDED")
    set_policy(ctl, admind)


def test_what_is_taken_away_needs_nobody(ctl, admind, policies):
    """admind will neither bring a policy nor store one: automatic ends all the
    same. What gives more than there was does not hold unless it is stored."""
    set_policy(ctl, admind, AUTOMATIC, AUTOMATIC, REQUIRE)
    request, _ = put(admind, "tool", preimage(secret_names=()))
    assert auto(admind, request)["_"] == "OK"
    load, admind.on_policy_load = admind.on_policy_load, lambda m: ("REFUSED", {
        "failure": test_vault.FAILURES["STORAGE_UNAVAILABLE"], "message": "no"})
    policies.refuse = True
    for more in ((AUTOMATIC, AUTOMATIC, AUTOMATIC), (REQUIRE, SECOND, AUTOMATIC)):
        refused(set_policy(ctl, admind, *more), "STORAGE_UNAVAILABLE")
        assert state(ctl, admind)["tool"] == AUTOMATIC
    refused(set_policy(ctl, admind, AUTOMATIC, AUTOMATIC, REQUIRE, days=90), "STORAGE_UNAVAILABLE")
    before = state(ctl, admind)["until_us"]
    refused(set_policy(ctl, admind, REQUIRE, SECOND, REQUIRE), "STORAGE_UNAVAILABLE")
    m = state(ctl, admind)
    assert (m["tool"], m["module"], m["network"]) == (REQUIRE, SECOND, REQUIRE) and before > m["until_us"]
    request, _ = put(admind, "tool", preimage(secret_names=()))
    refused(auto(admind, request), "FORBIDDEN")     # the stored one is brought, and is older
    assert request not in admind.decisions
    refused(set_policy(ctl, admind), "STORAGE_UNAVAILABLE")
    assert state(ctl, admind)["module"] == SECOND
    admind.on_policy_load, policies.refuse = load, False
    assert set_policy(ctl, admind)["_"] == "POLICY_STATE"


def test_an_older_policy_is_no_more(ctl, admind, policies):
    set_policy(ctl, admind, AUTOMATIC, AUTOMATIC, AUTOMATIC)
    old = policies.stored[-1]
    set_policy(ctl, admind)
    request, _ = put(admind, "tool", preimage(secret_names=()))
    for brought in (old, b"", b"\2", os.urandom(len(old)), old[:-1], old[:20] + bytes([old[20] ^ 1]) + old[21:]):
        policies.bring = brought
        refused(auto(admind, request), "FORBIDDEN")
        assert state(ctl, admind)["tool"] == REQUIRE    # and that is what is shown
    assert request not in admind.decisions


def test_two_set_it_at_the_same_moment(ctl, web, admind, token, policies):
    """Both were made from the same policy. The second one is refused and told, also if it only takes away: in
    force is what the first person set."""
    set_policy(ctl, admind)
    seen, count = state(ctl, admind)["seal"], len(policies.stored)
    store, late = admind.on_policy_store, []

    def meanwhile(m):
        """The second one's request comes while the first one's is being stored."""
        admind.on_policy_store = store
        late.append(set_policy(ctl, admind, SECOND, SECOND, SECOND, seen=seen))
        return store(m)

    admind.on_policy_store = meanwhile
    first = set_policy(web, admind, REQUIRE, SECOND, REQUIRE, token=token, seen=seen)
    assert (first["_"], first["module"]) == ("POLICY_STATE", SECOND)
    refused(late[0], "HASH_MISMATCH")
    assert "read it again" in late[0]["message"]
    m = state(ctl, admind)
    assert (m["tool"], m["module"], m["actor"]) == (REQUIRE, SECOND, "admin")
    assert len(policies.stored) == count + 1
    refused(set_policy(ctl, admind, SECOND, SECOND, SECOND, seen=seen), "HASH_MISMATCH")
    assert set_policy(ctl, admind)["_"] == "POLICY_STATE"


def test_another_node_s_vault_sets_it_at_the_same_moment(ctl, admind, policies):
    """The row is another one by the time this vault's is stored: the request says which row was read."""
    set_policy(ctl, admind, AUTOMATIC)
    base, overs = policies.newest(), []
    store = admind.on_policy_store

    def meanwhile(m):
        overs.append(m["over"])
        policies.forged = base + 1      # the other's row
        return store(m)

    admind.on_policy_store = meanwhile
    refused(set_policy(ctl, admind, AUTOMATIC, AUTOMATIC), "HASH_MISMATCH")
    admind.on_policy_store, policies.forged = store, None
    assert overs == [base]
    assert state(ctl, admind)["module"] == REQUIRE, "it gives more than there was, so it is not in force"
    assert set_policy(ctl, admind)["_"] == "POLICY_STATE"


def test_a_forged_row_of_later(ctl, admind, policies):
    set_policy(ctl, admind)
    for bring in (b"", b"\2forged"):
        policies.bring, policies.forged = bring, policies.serial + 3600 * 1000000
        assert set_policy(ctl, admind)["_"] == "POLICY_STATE"
        policies.bring = None
    # its serial is not followed to the year 2200
    before, policies.forged = policies.serial, 2 ** 62
    refused(set_policy(ctl, admind), "HASH_MISMATCH")
    policies.forged = None
    assert set_policy(ctl, admind)["_"] == "POLICY_STATE"
    assert before < policies.serial < before + 86400 * 1000000


# --- two persons ---


def test_two_persons(ctl, web, admind, token, policies):
    assert set_policy(ctl, admind, SECOND, SECOND, SECOND)["_"] == "POLICY_STATE"
    for kind, content in (("tool", preimage()), ("network", network), ("module", module)):
        request, content = put(admind, kind, content)
        assert approve(web, admind, request, content, token)["_"] == "HALF_APPROVED"
        d = admind.decisions[request]
        assert d["approved"] == 2 and d["actor"] == "admin"
        policies.first = d["seal"]
        refused(approve(web, admind, request, content, token), "CONFLICT")
        refused(auto(admind, request), "FORBIDDEN")
        assert approve(ctl, admind, request, content)["_"] == "OK"
        d = admind.decisions[request]
        said = body(d["seal"])
        assert d["approved"] == 1
        assert any(v == b"root" for _, v in said) and any(v == b"admin" for _, v in said)


def test_a_first_yes_of_another_s_making(ctl, web, admind, token, policies):
    """Forged, of another request, of other bytes, of another purpose: then the
    second yes is a first one. Nothing is approved."""
    assert state(ctl, admind)["tool"] == SECOND
    request, content = put(admind, "tool", preimage())
    other, _ = put(admind, "tool", content)
    changed, more = put(admind, "tool", preimage(b"def main():\n    return 2\n"))
    assert approve(web, admind, other, content, token)["_"] == "HALF_APPROVED"
    assert approve(web, admind, changed, more, token)["_"] == "HALF_APPROVED"
    for first in (b"", os.urandom(120), admind.decisions[other]["seal"], admind.decisions[changed]["seal"],
                  policies.stored[-1]):
        policies.first = first
        assert approve(ctl, admind, request, content)["_"] == "HALF_APPROVED"
        assert admind.decisions[request]["approved"] == 2
    # a first yes is no approval: nothing runs with it
    m = seal(admind, b"E" * 16, material(content, admind.decisions[request]["seal"]))
    assert m["_"] == "REFUSED", m
    # and no older policy makes one of it
    policies.bring = policies.stored[0]
    assert approve(ctl, admind, request, content)["_"] == "HALF_APPROVED"


def test_after_a_restart(vault, policies):
    """What decision 0038 admits, and no more: a vault that just began knows no
    policy, so an old automatic one holds until it sees a newer one."""
    old = next(s for s in policies.stored if dict(body(s))[2] == bytes([3, 3, 3]))
    vault.stop()
    vault.start()
    table = test_vault.table
    with test_vault.Admind.open(table, vault, "admind", "admind-vault", "admind") as a:
        p = Policies(a)
        p.stored = policies.stored
        p.bring = old
        request, _ = put(a, "tool", preimage(secret_names=()))
        secret, _ = put(a, "tool", preimage())
        assert auto(a, request)["_"] == "OK"
        refused(auto(a, secret), "FORBIDDEN")
        p.bring = None                  # the newest is seen once
        request, _ = put(a, "tool", preimage(secret_names=()))
        refused(auto(a, request), "FORBIDDEN")
        p.bring = old
        refused(auto(a, request), "FORBIDDEN")
