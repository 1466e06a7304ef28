"""Per-call approval at the vault's own sockets, admind being ours and hostile:
no context of a version that must be confirmed without a person's yes to just
this call, and each yes once."""
import hashlib
import hmac
import os
import time

import pytest

from integration.vault import test_vault
from integration.vault.test_vault import (LOCAL, PASSWORD, TUNNEL, ask, preimage, refused, seal, unseal)
from harness.tlv import tlv

# Its fixtures.
vault, admind, web, ctl, sandbox = (test_vault.vault, test_vault.admind, test_vault.web,
                                    test_vault.ctl, test_vault.sandbox)
administrator, token, context_key = (test_vault.administrator, test_vault.token,
                                     test_vault.context_key)
NAME, WHO, ARGS = b"demo__greet", b"anna@example.org", b'{"n":1}'
DAY = 24 * 3600 * 1000


def confirmed(code=b"def main():\n    return 1\n"):
    """A version with confirm 1."""
    return preimage(code).replace(tlv((23, 0)), tlv((23, 1)))


def callreq(version, request, args=ARGS, who=WHO, listener=LOCAL, name=NAME, ms=60000):
    """common/request/callreq.h"""
    return b"mcpbox call 1\0" + tlv(
        (1, hashlib.sha256(version).digest()), (2, name), (3, who), (4, listener), (5, args),
        (6, request), (7, int(time.time() * 1000) + ms))


def approve_version(ctl, admind, pre):
    request = os.urandom(16)
    admind.requests[request] = ("tool", "pending", pre)
    m = ask(ctl, admind, "APPROVE", approval=request, reviewed=hashlib.sha256(pre).digest())
    assert m["_"] == "OK", m
    return admind.decisions[request]["seal"]


def say_yes(ctl, admind, content, request, reviewed=None, kind="call"):
    admind.requests[request] = (kind, "pending", content)
    return ask(ctl, admind, "APPROVE", approval=request,
               reviewed=reviewed or hashlib.sha256(content).digest())


def yes(ctl, admind, version, **kw):
    request = os.urandom(16)
    content = callreq(version, request, **kw)
    m = say_yes(ctl, admind, content, request)
    assert m["_"] == "OK", m
    d = admind.decisions[request]
    assert d["content"] == hashlib.sha256(content).digest() and d["approved"] == 1
    return d["seal"]


def material(pre, version_seal, call_seal=None, args=ARGS, who=WHO, listener=LOCAL):
    fields = [(1, pre), (2, version_seal), (7, hashlib.sha256(args).digest()), (8, 30000),
              (13, 5000), (14, tlv((4, who), (5, listener)))]
    return tlv(*fields, *([(29, call_seal)] if call_seal is not None else []))


@pytest.fixture(scope="module")
def version(ctl, admind):
    pre = confirmed()
    return pre, approve_version(ctl, admind, pre)


def test_a_yes_gives_one_context(ctl, admind, sandbox, version, context_key):
    s = yes(ctl, admind, version[0])
    m = seal(admind, sandbox.epoch, material(*version, s))
    assert m["_"] == "SEALED", m
    plain = unseal(context_key, sandbox.epoch, m["context"])
    assert (7, hashlib.sha256(ARGS).digest()) in plain
    assert not any(tag == 29 for tag, _ in plain)
    for _ in range(2):
        refused(seal(admind, sandbox.epoch, material(*version, s)), "NOT_CONFIRMED")


def test_no_context_without(ctl, admind, sandbox, version, context_key):
    good = yes(ctl, admind, version[0])
    body = good[:-32]
    forged = hmac.new(bytes(32), b"mcpbox call approval 1\0" + body, hashlib.sha256).digest()
    for s in (None, b"", b"\1", os.urandom(len(good)), body, good[:-1], good + b"\0", version[1],
              body + forged, b"\1" + good[1:], b"\1" + good[9:]):
        refused(seal(admind, sandbox.epoch, material(*version, s)), "NOT_CONFIRMED")
    for bit in range(0, len(good) * 8, 11):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        refused(seal(admind, sandbox.epoch, material(*version, bytes(bad))), "NOT_CONFIRMED")
    # None of these used it up.
    assert seal(admind, sandbox.epoch, material(*version, good))["_"] == "SEALED"


def test_just_this_call(ctl, admind, sandbox, version, context_key):
    s = yes(ctl, admind, version[0])
    other = confirmed(b"def main():\n    return 2\n")
    other = (other, approve_version(ctl, admind, other))
    for m in (material(*version, s, args=b'{"n":2}'), material(*version, s, args=ARGS + b" "),
              material(*version, s, who=b"bert"), material(*version, s, who=WHO + b"x"),
              material(*version, s, listener=TUNNEL), material(*other, s)):
        refused(seal(admind, sandbox.epoch, m), "NOT_CONFIRMED")
    # What was shown as a call of another tool is no yes to this one.
    named = yes(ctl, admind, version[0], name=b"demo__harmless")
    refused(seal(admind, sandbox.epoch, material(*version, named)), "NOT_CONFIRMED")
    assert seal(admind, sandbox.epoch, material(*version, s))["_"] == "SEALED"


def test_without_the_intent_nobody_calls(ctl, admind, sandbox, version, context_key):
    s = yes(ctl, admind, version[0])
    m = tlv((1, version[0]), (2, version[1]), (7, hashlib.sha256(ARGS).digest()), (8, 30000),
            (13, 5000), (14, b""), (29, s))
    refused(seal(admind, sandbox.epoch, m), "NOT_CONFIRMED")


def test_it_expires(ctl, admind, sandbox, version, context_key):
    s = yes(ctl, admind, version[0], ms=700)
    time.sleep(0.9)
    refused(seal(admind, sandbox.epoch, material(*version, s)), "NOT_CONFIRMED")


def test_what_a_reviewer_did_not_read_is_not_sealed(ctl, admind, version):
    request = os.urandom(16)
    content = callreq(version[0], request)
    refused(say_yes(ctl, admind, content, request, reviewed=os.urandom(32)), "HASH_MISMATCH")
    # admind shows one content and gives another
    refused(say_yes(ctl, admind, content, request,
                    reviewed=hashlib.sha256(callreq(version[0], request, args=b"{}")).digest()),
            "HASH_MISMATCH")
    assert request not in admind.decisions


@pytest.mark.parametrize("spoil,failure", [
    (lambda v, r: callreq(v, os.urandom(16)), "INVALID_PARAMS"),
    (lambda v, r: callreq(v, r, ms=-1), "ALREADY_DECIDED"),
    (lambda v, r: callreq(v, r, ms=DAY + 60000), "TOO_LARGE"),
    (lambda v, r: callreq(v, r)[:-1], "INVALID_PARAMS"),
    (lambda v, r: callreq(v, r) + b"\0", "INVALID_PARAMS"),
    (lambda v, r: v, "INVALID_PARAMS"),
    (lambda v, r: b"", "INVALID_PARAMS")])
def test_what_is_no_good_request_is_not_sealed(ctl, admind, version, spoil, failure):
    request = os.urandom(16)
    refused(say_yes(ctl, admind, spoil(version[0], request), request), failure)
    assert request not in admind.decisions


def test_kinds_do_not_pass_for_each_other(ctl, admind, version):
    """A call's content under the name of a tool's, and the other way round."""
    request = os.urandom(16)
    refused(say_yes(ctl, admind, callreq(version[0], request), request, kind="tool"),
            "INVALID_PARAMS")
    refused(say_yes(ctl, admind, version[0], request, kind="call"), "INVALID_PARAMS")


def test_a_calls_seal_is_no_versions(ctl, admind, sandbox, version, context_key):
    s = yes(ctl, admind, version[0])
    refused(seal(admind, sandbox.epoch, material(version[0], s, s)), "NOT_APPROVED")
    assert seal(admind, sandbox.epoch, material(*version, s))["_"] == "SEALED"


def test_a_version_that_needs_none(ctl, admind, sandbox, context_key):
    """The policy of admind: a yes that it brings has to be a good one."""
    pre = preimage()
    plain = (pre, approve_version(ctl, admind, pre))
    assert seal(admind, sandbox.epoch, material(*plain))["_"] == "SEALED"
    refused(seal(admind, sandbox.epoch, material(*plain, b"")), "NOT_CONFIRMED")
    s = yes(ctl, admind, pre)
    assert seal(admind, sandbox.epoch, material(*plain, s))["_"] == "SEALED"
    refused(seal(admind, sandbox.epoch, material(*plain, s)), "NOT_CONFIRMED")


def test_a_viewer_says_nothing(vault, web, ctl, admind, administrator, version):
    """Who may approve versions may approve calls; nobody else."""
    request = os.urandom(16)
    content = callreq(version[0], request)
    admind.requests[request] = ("call", "pending", content)
    digest = hashlib.sha256(content).digest()
    refused(ask(web, admind, "APPROVE", token="x" * 43, approval=request, reviewed=digest),
            "UNAUTHENTICATED")
    m = ask(web, admind, "LOGIN", username="admin", password=PASSWORD, source="127.0.0.1")
    assert ask(web, admind, "APPROVE", token=m["token"], approval=request,
               reviewed=digest)["_"] == "OK"
    assert admind.decisions[request]["actor"] == "admin"


def test_a_yes_does_not_outlive_the_vault(vault, ctl, admind, sandbox, version, context_key):
    """The memory of what was used ends with it, so the yeses do, too. The last
    test: it restarts the vault under all others."""
    pre = preimage()
    plain = (pre, approve_version(ctl, admind, pre))
    used, unused = yes(ctl, admind, version[0]), yes(ctl, admind, version[0])
    assert seal(admind, sandbox.epoch, material(*version, used))["_"] == "SEALED"
    vault.stop()
    vault.start()
    table = test_vault.table
    with test_vault.Admind.open(table, vault, "admind", "admind-vault", "admind") as a, \
            test_vault.Peer.open(table, vault, "sandbox", "admind-vault", "sandboxd") as box:
        assert box.call("CONTEXT_KEY_GET", epoch=box.epoch)["_"] == "CONTEXT_KEY"
        # The control: the keys are the same, and a version's approval stays.
        assert seal(a, box.epoch, material(*plain))["_"] == "SEALED"
        for s in (used, unused):
            refused(seal(a, box.epoch, material(*version, s)), "NOT_CONFIRMED")
