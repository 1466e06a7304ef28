"""Passkeys over REST, in the whole suite and a real database: registered, the second half of a
login, a proof with which something is approved; and what gets nobody in."""
import json

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.played.authenticator import EDDSA, ES256, UP, Passkey, b64
from harness.proof import age, boot_ms

CODE = "def main() -> int:\n    return {}\n"
PASSWORD = "a long password of theirs"
INSTANCE_SETS = ("admind-vault:passkey_rp_id=localhost", "admind-vault:passkey_origins=http://localhost:8000",
                 "admind-vault:passkey_localhost=yes")


@pytest.fixture(scope="module")
def mcp(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture
def person(instance):
    """A reviewer without passkeys."""
    if "rita" in [a["username"] for a in instance.ctl_json("administrators")["items"]]:
        instance.ctl("administrators", "delete", "rita")
    instance.ctl("administrators", "create", "rita", "--role", "reviewer", stdin=PASSWORD + "\n")
    return "rita"


def begun(instance, name, password=PASSWORD):
    """A login by password: (its client, the answer)."""
    rest = Rest(lambda: instance.address("admind-http"), proves=False)
    status, _, value = rest.login(name, password)
    assert status == 200, value
    return rest, value


def options(rest, kind):
    status, _, value = rest.request("POST", "/api/passkeys/challenge", {"kind": kind})
    assert status == 200, value
    return value


def register(rest, key, label="a key", **more):
    credential = key.created_json(options(rest, "register"), **more)
    return rest.request("POST", "/api/passkeys", {"label": label, "credential": credential})


def finish(rest, key, asked=None, **more):
    assertion = key.got_json(asked or options(rest, "login"), **more)
    return rest.request("POST", "/api/login/passkey", {"assertion": assertion})


def problem(answer, status, mode):
    assert (answer[0], answer[2]["failure_mode"]) == (status, mode), answer


def enrolled(instance, name, alg=ES256):
    rest, value = begun(instance, name)
    assert value["passkey_required"] is False
    key = Passkey(alg)
    assert register(rest, key)[0] == 204
    return rest, key


def events(instance, subject):
    return [(r["action"], r["actor"]) for r in map(
        json.loads, instance.ctl("audit", "export", "--json").stdout.splitlines()) if subject in r["subject"]]


@pytest.mark.parametrize("alg", [ES256, EDDSA])
def test_second_factor_and_proof(instance, mcp, person, alg):
    first, key = enrolled(instance, person, alg)
    item, = first.get("/api/passkeys")[2]["items"]
    assert (item["id"], item["label"], item["role"], item["copied"]) == (b64(key.id), "a key", None, False)
    since = boot_ms()
    rest, value = begun(instance, person)
    assert value["passkey_required"] is True
    # half a login reads nothing, at the vault and at admind
    for method, path, body in (("GET", "/api/me", None), ("GET", "/api/servers", None),
                               ("GET", "/api/approvals", None), ("GET", "/api/passkeys", None),
                               ("POST", "/api/proof", {"password": PASSWORD}),
                               ("POST", "/api/password", {"old_password": PASSWORD, "new_password": PASSWORD + "2"})):
        problem(rest.request(method, path, body), 401, "unauthenticated")
    status, headers, value = finish(rest, key)
    assert status == 200 and (value["username"], value["role"]) == (person, "reviewer") and value["proof_until"]
    assert "mcpbox_session=" in headers["set-cookie"]
    # its proof gets old; a passkey makes a new one, and with that it approves
    age(instance.service_pid("admind-vault"), rest.cookie.split("=", 1)[1] + rest.csrf, since)
    tool = flow.draft(mcp, "passkeys", f"t{abs(alg)}", CODE.format(1))
    request = mcp.manage("mcpbox_request_publish", tool_id=tool)["request_id"]
    tag = rest.get("/api/approvals/" + request)[1]["etag"]
    path = f"/api/approvals/{request}/approve"
    problem(rest.request("POST", path, {}, {"If-Match": tag}), 403, "proof_required")
    problem(rest.request("POST", "/api/passkeys/remove", {"id": b64(key.id)}), 403, "proof_required")
    assertion = key.got_json(options(rest, "proof"))
    problem(rest.request("POST", "/api/proof", {"assertion": assertion, "password": PASSWORD}), 400, "invalid_params")
    assert rest.request("POST", "/api/proof", {"assertion": assertion})[0] == 204
    problem(rest.request("POST", "/api/proof", {"assertion": assertion}), 403, "passkey_refused")
    assert rest.request("POST", path, {}, {"If-Match": tag})[0] in (200, 204)
    # without it the password is a login again
    assert rest.request("POST", "/api/passkeys/remove", {"id": b64(key.id)})[0] == 204
    assert begun(instance, person)[1]["passkey_required"] is False
    told = events(instance, person)
    for action in ("passkey_registered", "login_begun", "login", "proof", "passkey_removed", "passkey_refused"):
        assert (action, person) in told, action


def test_what_gets_nobody_in(instance, person):
    _, key = enrolled(instance, person)
    rest, _ = begun(instance, person)
    asked = options(rest, "login")
    problem(finish(rest, key, asked, origin="http://localhost:8001"), 403, "passkey_refused")
    problem(finish(rest, key, asked), 403, "passkey_refused")   # the challenge is gone
    key.rp_id = "evil.example"
    problem(finish(rest, key), 403, "passkey_refused")
    key.rp_id, flags = "localhost", key.flags
    key.flags = UP
    problem(finish(rest, key), 403, "passkey_refused")
    key.flags = flags
    problem(finish(rest, Passkey()), 403, "passkey_refused")
    for junk in ({}, {"assertion": 1}, {"assertion": {"id": "AA"}}, {"assertion": {"id": "AA", "response": {
            "clientDataJSON": "!", "authenticatorData": "AA", "signature": "AA"}}}):
        problem(rest.request("POST", "/api/login/passkey", junk), 400, "invalid_params")
    problem(rest.get("/api/me"), 401, "unauthenticated")
    assert rest.request("POST", "/api/logout", {})[0] == 204
    rest, _ = begun(instance, person)
    assert finish(rest, key)[0] == 200


def test_a_row_that_somebody_wrote(instance, person):
    """Whoever writes the table gets nobody in, and out of a login only its person."""
    _, key = enrolled(instance, person)
    row = instance.psql("SELECT encode(passkeys, 'hex') FROM mcpbox.admin_passkeys WHERE username = 'rita'")[0][0]
    for write in ("UPDATE mcpbox.admin_passkeys SET passkeys = passkeys || '\\x00' WHERE username = 'rita'",
                  "DELETE FROM mcpbox.admin_passkeys WHERE username = 'rita'"):
        instance.psql(write)
        rest, value = begun(instance, person)
        assert value["passkey_required"] is True
        problem(rest.request("POST", "/api/passkeys/challenge", {"kind": "login"}), 403, "forbidden")
    instance.psql(f"INSERT INTO mcpbox.admin_passkeys VALUES ('rita', '\\x{row}')")
    rest, _ = begun(instance, person)
    assert finish(rest, key)[0] == 200


def test_root_is_the_way_back_in(instance, person):
    enrolled(instance, person)
    item, = instance.ctl_json("passkeys", person)["items"]
    assert item["algorithm"] == "ES256"
    instance.ctl("passkeys", "remove", person, item["id"])
    rest, value = begun(instance, person)
    assert value["passkey_required"] is False
    assert register(rest, Passkey())[0] == 204 and register(rest, Passkey())[0] == 204
    instance.ctl("passkeys", "remove", person, "--all")
    assert begun(instance, person)[1]["passkey_required"] is False
    assert ("passkey_removed", "root") in events(instance, person)
    code = instance.ctl_json("passkeys", "code", "jo@corp", "--role", "reviewer")
    assert len(code["code"]) == 27
    # a deleted administrator's passkeys go, too
    problem(rest.get("/api/me"), 401, "unauthenticated")
    rest, _ = begun(instance, person)
    assert register(rest, Passkey())[0] == 204
    instance.ctl("administrators", "delete", person)
    assert instance.psql("SELECT count(*) FROM mcpbox.admin_passkeys") == [["0"]]
