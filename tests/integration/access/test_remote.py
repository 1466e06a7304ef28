"""mcpboxctl remote add, list, show and remove, on real daemons: the screens, the document, the files, and that no
other way in is disturbed."""
import base64
import json
import os
import pty
import re
import select
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from harness.clients.api_token import where
from harness.clients.mcp import request
from harness.clients.signed_token import RESOURCE, Issuer, document, set_document
from harness.instance import Instance
from harness.patience import patience, until

OTHER = Issuer("other")
SETS = {"use": {"scopes": ["tools:call"], "allow": ["*"], "deny": []}}
THERE = document((OTHER,), (("other", "any", None, "use"),), SETS)
HOME = Issuer("home")


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


@pytest.fixture(autouse=True)
def held(instance):
    """Each test begins with another way in, and no remote."""
    assert set_document(instance, THERE)["_"] == "ACCESS_STATE"
    path = os.path.join(instance.state, "remotes.json")
    if os.path.exists(path):
        os.unlink(path)


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({**HOME.entry()["jwks"], "public_cert": "of another kind"}))
    return str(path)


def unb64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def now(instance):
    return instance.ctl_json("access", "show")["document"]


def add(instance, keys, *more, check=True):
    return instance.ctl("remote", "add", "oidc", "home", "--resource", RESOURCE, "--issuer", HOME.url, "--jwks", keys,
                        "--email", "ann@example.org, bob@example.org", *more, check=check)


def comes_in(instance, token):
    r = request(where(instance)(), body={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
                headers={"MCP-Protocol-Version": "2025-06-18", "Authorization": "Bearer " + token})
    return r.status


def test_there_and_gone(instance, keys, tmp_path):
    ann = {"email": "ann@example.org", "email_verified": True}
    r = add(instance, keys, "--out", str(tmp_path), "--yes")
    assert r.stdout == ("+ issuer home  https://home.example.org\n+ key of issuer home: kid k, EC P-256\n"
                        "+ permission set home; scopes tools:read, tools:call; allow *\n"
                        "+ rule 2: issuer home, email ann@example.org, bob@example.org -> set home\n"), r.stdout
    assert f"wrote {tmp_path}/home.nginx.conf\nLeft to do by hand:\n1. Put home.nginx.conf into" in r.stderr
    assert f"2. At https://home.example.org, make an API (resource) of exactly {RESOURCE}\n" in r.stderr
    assert "      https://claude.ai/api/mcp/auth_callback\n" in r.stderr
    assert r.stderr.endswith(f"4. Add {RESOURCE} to the client\n5. mcpboxctl remote check home\n")
    assert now(instance)["issuers"] == [THERE["issuers"][0], {
        "name": "home", "issuer": HOME.url, "jwks": HOME.entry()["jwks"]}]
    assert comes_in(instance, HOME.sign("ann", **ann)) == 200
    until(lambda: instance.ctl_json("remote", "show", "home").get("people") == 1)
    rows = instance.ctl("remote", "list").stdout.splitlines()
    assert re.split(r"\s+", rows[0].strip()) == ["name", "kind", "url", "state", "people", "last_used_at"]
    assert re.match(rf"home +oidc +{RESOURCE} +in force +1 +20", rows[1]) and rows[2].startswith("other  oidc"), rows
    shown = instance.ctl("remote", "show", "home").stdout
    assert "rules:\n  1:\n    issuer: home\n    claim: email\n" in shown and "home.nginx.conf" in shown, shown
    r = instance.ctl("remote", "remove", "home", "--yes")
    assert r.stdout == ("- issuer home\n- permission set home\n"
                        "- rule 2: issuer home, email ann@example.org, bob@example.org -> set home\n"), r.stdout
    assert r.stderr == ("Remote home is removed.\nThis stays:\nthe API and the clients at the issuer\n"
                        f"file {tmp_path}/home.nginx.conf\n"), r.stderr
    assert now(instance) == THERE
    assert comes_in(instance, HOME.sign("ann", **ann)) == 401 and comes_in(instance, OTHER.sign("x")) == 200
    r = instance.ctl("remote", "remove", "home", check=False)
    assert r.returncode == 1 and "there is no remote home; mcpboxctl remote list" in r.stderr


def test_files_are_never_lost(instance, keys, tmp_path):
    site = tmp_path / "home.caddy"
    site.write_text("mine\n")
    r = add(instance, keys, "--out", str(tmp_path), "--proxy", "caddy", "--yes")
    assert f"{site} was there: it is {site}.old now\nwrote {site}\n" in r.stderr
    assert (tmp_path / "home.caddy.old").read_text() == "mine\n"
    text = site.read_text()
    assert "mcp.example.org {\n" in text and f"unix/{instance.run('gatewayd-tunnel', 'mcp.sock')} {{\n" in text
    r = instance.ctl("remote", "remove", "home", "--yes")
    assert site.exists() and f"file {site}\n" in r.stderr


def test_what_is_missing_is_named_at_once(instance):
    before = now(instance)
    r = instance.ctl("remote", "add", "oidc", "home", check=False)
    assert r.returncode == 2
    for option in ("--resource", "--issuer", "--jwks", "--email"):
        assert f"mcpboxctl: {option} is missing: " in r.stderr, r.stderr
    r = instance.ctl("remote", "add", "access", "home", "--resource", RESOURCE, check=False)
    assert "--team is missing" in r.stderr and "--aud is missing" in r.stderr and r.returncode == 2
    assert now(instance) == before


@pytest.mark.parametrize("words, says", [
    (("oidc", "Home"), "a remote's name is a letter of a-z"),
    (("ftp", "home"), "of the kind worker, access, oidc, tailscale or token"),
    (("oidc", "home", "--resource", "https://mcp.example.org"), "--resource is https://HOST/mcp"),
    (("oidc", "home", "--resource", "https://x;return 200;/mcp"), "--resource is https://HOST/mcp"),
    (("oidc", "other", "--resource", RESOURCE, "--issuer", "https://x.example.org", "--email", "a@b", "--discovery"),
     "there is a remote or an issuer of this name already"),
    (("oidc", "home", "--resource", "https://two.example.org/mcp", "--issuer", "https://x.example.org", "--email",
      "a@b", "--discovery"), f"the access document's resource is {RESOURCE}"),
    (("access", "home", "--resource", RESOURCE, "--team", "a.b", "--aud", "x", "--email", "a@b"),
     "--team is of a-z, 0-9 and -"),
    (("oidc", "home", "--resource", RESOURCE, "--issuer", "https://x.example.org", "--email", "a@b", "--jwks",
      "/dev/null"), "--jwks is no JWK set"),
    (("oidc", "home", "--resource", RESOURCE, "--issuer", "https://x.example.org", "--email", "a@b", "--jwks",
      "/dev/null", "--discovery", "--key-hosts", "x"), "--key-hosts is for keys that are fetched"),
    (("worker", "home", "--resource", RESOURCE, "--issuer", "https://x.example.org", "--email", "a@b", "--key-hosts", "x"),
     "--key-hosts is for keys that are fetched"),
    (("token", "home", "--resource", RESOURCE, "--key-hosts", "x"), "--key-hosts is for keys that are fetched"),
    (("oidc", "home", "--resource", RESOURCE, "--issuer", "https://x.example.org", "--email", "a@b", "--discovery",
      "--key-hosts", "https://x"), "key_hosts/0: must be a host that a run may reach")])
def test_refusals(instance, words, says):
    before = now(instance)
    r = instance.ctl("remote", "add", *words, check=False)
    assert r.returncode in (1, 2) and says in r.stderr, r.stderr
    assert now(instance) == before and not os.path.exists(os.path.join(instance.state, "remotes.json"))


def test_a_token(instance):
    r = instance.ctl("remote", "add", "token", "phone", "--resource", RESOURCE, "--scopes", "tools:call")
    token = r.stdout.strip()
    assert re.fullmatch(r"mbt_\S{43}", token) and token not in r.stderr
    assert "Authorization: Bearer TOKEN" in r.stderr
    shown = instance.ctl_json("remote", "show", "phone")
    assert (shown["kind"], shown["state"], shown["token"]["scopes"]) == ("token", "active", ["tools:call"]), shown
    with open(os.path.join(instance.state, "remotes.json"), encoding="utf-8") as f:
        assert token not in f.read()
    r = instance.ctl("remote", "remove", "phone")
    assert "Remote phone is removed." in r.stderr
    assert comes_in(instance, token) == 401 and now(instance) == THERE
    assert instance.ctl_json("tokens", "show", "phone")["state"] == "revoked"


def test_tailscale(instance, tmp_path):
    r = instance.ctl("remote", "add", "tailscale", "home", "--resource", "https://box.tail1.ts.net/mcp", "--out",
                     str(tmp_path))
    assert "2. tailscale funnel --bg http://127.0.0.1:8480\n" in r.stderr, r.stderr
    assert "listen 127.0.0.1:8480;\n" in (tmp_path / "home.nginx.conf").read_text()
    assert instance.ctl_json("remote", "list")["items"][0]["url"] == "https://box.tail1.ts.net/mcp"


def test_access(instance, keys, tmp_path):
    r = instance.ctl("remote", "add", "access", "cf", "--resource", RESOURCE, "--team", "acme", "--aud", "f" * 64,
                     "--email", "ann@example.org", "--set", "use", "--jwks", keys, "--out", str(tmp_path), "--yes")
    assert (f"+ issuer cf  https://acme.cloudflareaccess.com; audiences {'f' * 64}; header cf-access-jwt-assertion;"
            " types jwt; email trusted\n" in r.stdout and "+ permission set" not in r.stdout), r.stdout
    assert "make the self-hosted application of cf.access.json" in r.stderr, r.stderr
    assert now(instance)["issuers"][1] == {
        "name": "cf", "issuer": "https://acme.cloudflareaccess.com", "audiences": ["f" * 64],
        "header": "cf-access-jwt-assertion", "types": ["jwt"], "email": "trusted", "jwks": HOME.entry()["jwks"]}
    made = json.loads((tmp_path / "cf.access.json").read_text())
    assert made["domain"] == "mcp.example.org/mcp" and made["oauth_configuration"]["enabled"] is True
    assert "hostname: mcp.example.org\n" in (tmp_path / "cf.cloudflared.yml").read_text()
    r = instance.ctl("remote", "remove", "cf", "--yes")
    assert "permission set use: other rules name it\n" in r.stderr and now(instance) == THERE


@pytest.mark.parametrize("words, source", [
    (("oidc", "found", "--issuer", "https://id.example.org", "--discovery"), {"discovery": True}),
    (("access", "cf", "--team", "acme", "--aud", "f" * 64), {
        "jwks_url": "https://acme.cloudflareaccess.com/cdn-cgi/access/certs"})])
def test_hosts_of_keys(instance, words, source):
    r = instance.ctl("remote", "add", *words, "--resource", RESOURCE, "--email", "ann@example.org", "--yes",
                     "--key-hosts", "keys.example.org, 192.168.1.5:443")
    assert "; key_hosts keys.example.org, 192.168.1.5:443" in r.stdout, r.stdout
    issuer = now(instance)["issuers"][1]
    assert issuer["key_hosts"] == ["keys.example.org", "192.168.1.5:443"] and source.items() <= issuer.items(), issuer


def test_a_worker(instance, tmp_path):
    r = instance.ctl("remote", "add", "worker", "edge", "--resource", RESOURCE, "--issuer", "https://id.example.org",
                     "--email", "ann@example.org", "--out", str(tmp_path), "--yes")
    *rows, last = r.stdout.splitlines()
    private = json.loads(last)
    assert rows[0] == "+ issuer edge  https://mcp.example.org; algorithms EdDSA; bound true; scopes token", rows
    issuer = now(instance)["issuers"][1]
    key, = issuer["jwks"]["keys"]
    assert issuer["bound"] is True and issuer["scopes"] == "token" and issuer["algorithms"] == ["EdDSA"]
    assert "d" not in key and all(private[m] == key[m] for m in ("kty", "crv", "x", "kid", "alg"))
    public = Ed25519PrivateKey.from_private_bytes(unb64(private["d"])).public_key().public_bytes(
        Encoding.Raw, PublicFormat.Raw)
    assert public == unb64(key["x"])
    # It is printed, and nowhere else.
    assert private["d"] not in r.stderr and "SIGNING_KEY" in r.stderr
    for folder in (tmp_path, Path(instance.state)):
        for f in folder.glob("*.json*"):
            assert private["d"] not in f.read_text()
    assert '"RESOURCE": "https://mcp.example.org/mcp"' in (tmp_path / "edge.wrangler.jsonc").read_text()
    assert instance.ctl_json("remote", "show", "edge")["kind"] == "worker"
    instance.ctl("remote", "remove", "edge", "--yes")
    assert now(instance) == THERE


def test_an_issuer_that_came_otherwise(instance):
    """It is a way in as well: listed, shown and taken away, and its set, which somebody else made, stays."""
    shown = instance.ctl_json("remote", "show", "other")
    assert (shown["kind"], shown["url"], shown["state"]) == ("oidc", RESOURCE, "in force")
    r = instance.ctl("remote", "remove", "other", "--yes")
    assert "permission set use: it was there before; no rule names it now\n" in r.stderr
    assert now(instance) == {**THERE, "issuers": [], "rules": []}


def test_a_set_that_tokens_have_stays(instance, keys):
    """The token keeps its rights; the people of the remote are gone. Later the set has nobody, and goes with the next
    remote of its name."""
    add(instance, keys, "--yes")
    token = instance.ctl_json("tokens", "create", "tv", "--set", "home")["token"]
    ended = instance.ctl_json("tokens", "create", "old", "--set", "home")["name"]
    instance.ctl("tokens", "revoke", ended)
    r = instance.ctl("remote", "remove", "home", "--yes")
    assert "This stays:\npermission set home: API tokens have it: tv\nthe API" in r.stderr, r.stderr
    assert "permission set" not in r.stdout
    assert now(instance)["issuers"] == THERE["issuers"] and now(instance)["rules"] == THERE["rules"]
    assert [s["name"] for s in now(instance)["permission_sets"]] == ["use", "home"]
    assert comes_in(instance, token) == 200
    assert comes_in(instance, HOME.sign("ann", email="ann@example.org", email_verified=True)) == 401
    # Without --set the name is taken; with it the token changes nothing.
    assert "--set home uses it" in add(instance, keys, "--yes", check=False).stderr
    instance.ctl("tokens", "revoke", "tv")
    add(instance, keys, "--set", "home", "--yes")
    r = instance.ctl("remote", "remove", "home", "--yes")
    assert "- permission set home\n" in r.stdout and now(instance) == THERE


def at_terminal(instance, words, answers):
    """Types each answer when its question is there; returns the screen."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(os.path.join(instance.state, "bin", "mcpboxctl"), ["mcpboxctl", *words])
    screen, answers = "", list(answers)
    while True:
        if not select.select([fd], [], [], patience(60))[0]:
            raise AssertionError(screen)
        try:
            data = os.read(fd, 4096)
        except OSError:
            data = b""
        if not data:
            break
        screen += data.decode()
        if answers and answers[0][0] in screen.replace("\r", ""):
            os.write(fd, answers.pop(0)[1].encode() + b"\n")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), screen.replace("\r", "")


QUESTIONS = (("https://HOST/mcp: ", RESOURCE), ("as its metadata says it: ", HOME.url))


def test_it_asks_at_a_terminal(instance, keys):
    status, screen = at_terminal(instance, ("remote", "add", "oidc", "home"), (
        *QUESTIONS, ("fetches them): ", keys), ("commas between: ", "ann@example.org"),
        ("Set this document? [y/N] ", "y")))
    assert status == 0 and "+ issuer home" in screen and "Left to do by hand:" in screen, screen
    assert now(instance)["rules"][1] == {"issuer": "home", "claim": "email", "values": ["ann@example.org"],
                                         "set": "home"}


def test_no_changes_nothing(instance, keys, tmp_path):
    status, screen = at_terminal(instance, ("remote", "add", "oidc", "home", "--out", str(tmp_path)), (
        *QUESTIONS, ("fetches them): ", keys), ("commas between: ", "ann@example.org"),
        ("Set this document? [y/N] ", "n")))
    assert status == 1 and "nothing was changed" in screen, screen
    assert now(instance) == THERE and os.listdir(tmp_path) == ["keys.json"]
    assert instance.ctl("remote", "show", "home", check=False).returncode == 1
