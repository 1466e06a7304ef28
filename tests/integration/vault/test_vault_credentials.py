"""Credentials that a run of a source seals for the vault (decision 0051), with a
hostile admind in between: it brings what a run made, and names run, version,
server and secret as it likes."""
import base64
import hashlib
import json

from harness.played.upstream import runner_modules
from harness.tlv import tlv

runner_modules()

import mcpbox_oauth as oauth                        # noqa: E402

from integration.vault import test_vault
from integration.vault.test_vault import approve, ask, bare, refused, seal, unseal

vault, admind, web, ctl, sandbox = (test_vault.vault, test_vault.admind, test_vault.web,
                                    test_vault.ctl, test_vault.sandbox)
context_key = test_vault.context_key
SECRET_NAME, SECRET_VALUE = 3, 4
RUN = b"E" * 16
DOCUMENT = {"access_token": "canary-of-a-token"}


def source(name="who", secrets=(b"OAUTH_WHO",), kind=b"mcp", object_=b"source"):
    return b"mcpbox version 1\0" + tlv(
        (1, 1), (2, b"S" * 16), (3, b"T" * 16), (4, b"demo"), (5, name.encode()),
        (6, b"demo__" + name.encode()), (8, b""), (11, b'{"type":"object"}'), (14, kind),
        (16, b'{"url":"https://a.example/mcp"}'), *((20, s) for s in secrets),
        (21, b"a.example:443"), *([(36, object_)] if object_ else []))


def run(admind, ctl, sandbox, context_key, pre, *material, execution=RUN):
    """(the version's hash, {name: value} of what the runner is given)"""
    m = seal(admind, sandbox.epoch, bare(pre, approve(ctl, admind, pre), *material), execution=execution)
    assert m["_"] == "SEALED", m
    plain = unseal(context_key, sandbox.epoch, m["context"], execution=execution)
    names = [v.decode() for t, v in plain if t == SECRET_NAME]
    values = [v.decode() for t, v in plain if t == SECRET_VALUE]
    return hashlib.sha256(pre).digest(), dict(zip(names, values))


def store(admind, made_by, sealed, **other):
    named = {"execution": RUN, "version": made_by, "server": b"demo", "key": b"OAUTH_WHO", **other}
    return ask(admind, admind, "CREDENTIAL_STORE", sealed=base64.b64decode(sealed),
               **{k: v.decode() if k in ("server", "key") else v for k, v in named.items()})


def test_what_a_run_sealed_is_its_secret_and_no_other(admind, ctl, sandbox, context_key):
    """A tool that was approved with another secret of the same server sends that
    to hosts of its own: tokens under that name would go there."""
    pre = source()
    version, given = run(admind, ctl, sandbox, context_key, pre)
    assert set(given) == {oauth.KEY_NAME}
    sealed = oauth.seal(DOCUMENT, given[oauth.KEY_NAME])
    admind.secrets.clear()
    for wrong in ({"key": b"API_KEY"}, {"key": b"OAUTH_WHOM"}, {"server": b"demoo"}, {"server": b"other"},
                  {"execution": b"F" * 16}, {"version": hashlib.sha256(b"").digest()}):
        refused(store(admind, version, sealed, **wrong), "FORBIDDEN")
    for wrong in ({"key": b"lower"}, {"key": b""}, {"server": b""}, {"server": b"../x"}):
        refused(store(admind, version, sealed, **wrong), "INVALID_PARAMS")
    assert not admind.secrets
    assert store(admind, version, sealed)["_"] == "OK"
    (at, value), = admind.secrets.items()
    assert at == ("demo", "OAUTH_WHO") and b"canary" not in value
    # and it comes back to a run of that version, in the clear (the canary is one)
    _, given = run(admind, ctl, sandbox, context_key, pre, (SECRET_NAME, b"OAUTH_WHO"), (SECRET_VALUE, value))
    assert json.loads(given["OAUTH_WHO"]) == DOCUMENT
    # not under another name, though the version names it, too
    both = source("both", (b"API_KEY", b"OAUTH_WHO"))
    m = seal(admind, sandbox.epoch, bare(both, approve(ctl, admind, both), (SECRET_NAME, b"API_KEY"),
                                         (SECRET_VALUE, value)))
    assert m["_"] == "REFUSED"


def test_of_several_secrets_the_first_is_the_one_that_is_made(admind, ctl, sandbox, context_key):
    version, given = run(admind, ctl, sandbox, context_key, source("two", (b"API_KEY", b"OAUTH_WHO")))
    sealed = oauth.seal(DOCUMENT, given[oauth.KEY_NAME])
    refused(store(admind, version, sealed), "FORBIDDEN")
    assert store(admind, version, sealed, key=b"API_KEY")["_"] == "OK"


def test_only_sources_get_a_key(admind, ctl, sandbox, context_key):
    for pre in (source("tool", object_=None), source("none", ())):
        assert oauth.KEY_NAME not in run(admind, ctl, sandbox, context_key, pre)[1]
