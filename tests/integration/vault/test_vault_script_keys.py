"""A script's key is no login: at the vault's own socket, whatever a taken-over
admind-http or admind passes on."""
import base64
import hashlib
import os
import pathlib
import re

import pytest

from integration.vault import test_vault
from integration.vault.test_vault import ask, drain, refused

# Its fixtures.
vault, admind, web, ctl = test_vault.vault, test_vault.admind, test_vault.web, test_vault.ctl
administrator, token = test_vault.administrator, test_vault.token
MESSAGES = pathlib.Path(__file__).resolve().parents[3] / "common/ipc/messages"

KEY = "mbk_" + "A" * 43
DIGEST = base64.urlsafe_b64encode(hashlib.sha256(KEY.encode()).digest()).decode().rstrip("=")


def with_a_token():
    """Every request that admind-http may send the vault with a login."""
    text = "".join(p.read_text(encoding="ascii") for p in sorted(MESSAGES.glob("*.h")))
    names = re.findall(r"^M\(\d+, (\w+), \w+, REQ, (?:\w+\|)*WEB(?:\|\w+)*, (?:\w+\|)*VAULT\b", text, re.M)
    return [n for n in names if re.search(r"IPC_FIELDS_%s\(F, S\)[^#]*\bstr, token," % n.lower(), text)]


@pytest.mark.parametrize("name", with_a_token())
def test_no_request_takes_a_key(web, admind, token, name):
    assert ask(web, admind, "WHOAMI", token=token)["_"] == "SESSION_INFO"
    for text in (KEY, "key:" + DIGEST, DIGEST, KEY + KEY[:39]):
        if name == "LOGOUT":    # nothing ends by it
            ask(web, admind, name, token=text)
        else:
            refused(ask(web, admind, name, token=text, approval=os.urandom(16)), "UNAUTHENTICATED")
    assert ask(web, admind, "WHOAMI", token=token)["_"] == "SESSION_INFO"
    drain(admind)
    assert not admind.decisions


def test_all_that_matters_is_among_them():
    assert {"APPROVE", "REJECT", "POLICY_SET", "ACCESS_SET", "ADMIN_CHANGE", "SECRET_SET", "PASSWORD",
            "LOGIN_END"} <= set(with_a_token())


def test_admind_can_not_look_a_key_up_there(admind, administrator):
    m = admind.call("SESSION_LOOKUP", token=hashlib.sha256(KEY.encode()).digest())
    assert m["_"] == "REFUSED", m
