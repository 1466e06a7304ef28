"""The access document and people by REST and mcpboxctl, with the real daemons."""
import hashlib
import json
import os
import pty
import secrets
import subprocess
import threading

import pytest

from harness.clients.rest import Rest
from harness.instance import Instance
from harness.patience import patience, until
from integration.admin.test_ctl import read_terminal

KEY = {"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
DOCUMENT = {
    "resource": "https://mcp.example.org/mcp",
    "issuers": [{"name": "pocket", "issuer": "https://id.example.org", "jwks": {"keys": [KEY]}}],
    "rules": [{"issuer": "pocket", "claim": "email", "values": ["a@example.org"], "set": "family"}],
    "permission_sets": [{"name": "family", "scopes": ["tools:read", "tools:call"], "allow": ["*"], "deny": []}]}
ALICE = "oidc:pocket:alice"
NONE = '"' + "0" * 64 + '"'


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


@pytest.fixture(scope="module")
def rest(instance):
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login("admin", instance.password)[0] == 200
    return r


def now(rest):
    status, headers, value = rest.request("GET", "/api/access")
    assert status == 200, value
    return headers["etag"], value


def put(rest, document, etag=None):
    return rest.request("PUT", "/api/access", document, {} if etag is None else {"If-Match": etag})


def problem(answer, status, failure):
    assert (answer[0], answer[2]["failure_mode"]) == (status, failure), answer
    return answer[2]


def start(rest, document=None):
    """The document of a test."""
    status, _, value = put(rest, document or DOCUMENT, now(rest)[0])
    assert status == 200, value
    return value


# --- by REST ------------------------------------------------------------------


def test_there_is_none_at_first(rest):
    etag, value = now(rest)
    assert etag == NONE
    assert value == {"document": None, "sha256": None, "serial": None, "actor": None, "stored_at": None,
                     "in_force": False, "why": None, "keys": [], "telemetry": None}


def test_it_is_set_and_read(rest):
    status, headers, value = put(rest, DOCUMENT)
    assert status == 200, value
    sent = json.dumps(DOCUMENT).encode()
    assert (value["document"], value["actor"], value["in_force"], value["why"]) == (DOCUMENT, "admin", True, None)
    assert value["sha256"] == headers["etag"].strip('"')
    assert now(rest) == (headers["etag"], value)
    assert value["sha256"] == hashlib.sha256(sent).hexdigest(), "of the bytes that were sent"


def test_a_change_names_what_was_read(rest):
    old = start(rest)
    answer = problem(put(rest, {}), 428, "hash_required")
    assert answer["fix"] == "Read the access document, then send its ETag as If-Match."
    problem(put(rest, {}, "*"), 428, "hash_required")
    problem(put(rest, {}, '"' + "1" * 64 + '"'), 412, "hash_mismatch")
    problem(put(rest, {}, "W/" + NONE), 412, "hash_mismatch")
    assert now(rest)[1] == old
    etag = now(rest)[0]
    assert put(rest, {}, etag)[0] == 200
    problem(put(rest, DOCUMENT, etag), 412, "hash_mismatch")
    assert now(rest)[1]["document"] == {}


def test_all_mistakes_at_once(rest):
    before = now(rest)
    bad = json.loads(json.dumps(DOCUMENT))
    bad["issuers"][0]["issuer"] = "http://id.example.org"
    bad["rules"][0]["set"] = "nobody"
    answer = problem(put(rest, bad, before[0]), 400, "invalid_params")
    assert "/issuers/0/issuer" in answer["detail"] and "/rules/0/set" in answer["detail"], answer
    assert now(rest) == before


def test_a_name_is_one_issuer_for_good(rest):
    start(rest)
    other = json.loads(json.dumps(DOCUMENT))
    other["issuers"][0]["issuer"] = "https://other.example.org"
    answer = problem(put(rest, other, now(rest)[0]), 409, "conflict")
    assert "https://id.example.org" in answer["detail"]
    assert answer["fix"] == "Give the other issuer another name."


@pytest.mark.parametrize("body", [[], "text", 1])
def test_what_is_no_object(rest, body):
    problem(put(rest, body, now(rest)[0]), 400, "invalid_params")


def test_roles(instance, rest):
    for role in ("viewer", "reviewer"):
        name, word = role[:2] + secrets.token_hex(3), secrets.token_urlsafe(16)
        assert rest.request("POST", "/api/administrators", {
            "username": name, "role": role, "new_password": word, "password": instance.password})[0] == 204
        other = Rest(rest.where)
        assert other.login(name, word)[0] == 200
        etag = now(other)[0]
        assert other.request("GET", "/api/identities")[0] == 200
        problem(put(other, {}, etag), 403, "forbidden")
        problem(other.request("POST", "/api/access/refresh", {}), 403, "forbidden")
        problem(other.request("POST", "/api/notifications/test", {"target": "phone"}), 403, "forbidden")
        problem(other.request("POST", "/api/identities/withdraw", {"principal": ALICE}), 403, "forbidden")
        problem(other.request("POST", "/api/identities/restore", {"principal": ALICE}), 403, "forbidden")


def test_a_row_that_somebody_wrote(instance, rest):
    """It is not in force, it says why, and an administrator replaces it."""
    start(rest)
    instance.psql("INSERT INTO mcpbox.access_documents (serial, document, sha256, actor, seal) SELECT max(serial) + 1,"
                  " '{\"x\": 1}', sha256('{\"x\": 1}'), 'admin', 'seal' FROM mcpbox.access_documents")
    until(lambda: not now(rest)[1]["in_force"] and now(rest)[1]["document"] == {"x": 1}
          and now(rest)[1]["why"] not in (None, "admind is reading it"))
    etag = '"' + hashlib.sha256(json.dumps(DOCUMENT).encode()).hexdigest() + '"'
    assert put(rest, DOCUMENT, etag)[0] == 200, "the vault compares with what it knows"
    assert now(rest)[1]["in_force"] is True


def test_two_at_the_same_moment(instance, rest):
    """Each is made from the same document, and one of each pair is told."""
    others = [Rest(rest.where), Rest(rest.where)]
    for other in others:
        assert other.login("admin", instance.password)[0] == 200
    for n in range(8):
        start(rest)
        etag, answers = now(rest)[0], {}
        documents = [{**DOCUMENT, "resource": f"https://mcp-{n}-{i}.example.org/mcp"} for i in range(2)]

        def change(i):
            answers[i] = put(others[i], documents[i], etag)
        threads = [threading.Thread(target=change, args=(i,)) for i in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        first, = [i for i in answers if answers[i][0] == 200]
        answer = problem(answers[1 - first], 412, "hash_mismatch")
        assert answer["fix"] == "Read the access document again, then send its present ETag as If-Match."
        assert now(rest)[1]["document"] == documents[first]


def forge(instance, document, serial):
    """A row that somebody wrote who may write all of the database. serial: SQL of it, from the newest row's."""
    text = json.dumps(document)
    instance.psql("SET session_replication_role = replica; INSERT INTO mcpbox.access_documents (serial, document, sha256,"
                  f" actor, seal) SELECT {serial}, '{text}', sha256('{text}'), 'admin', 'seal'"
                  " FROM mcpbox.access_now; NOTIFY mcpbox_access, 'document'")
    return '"' + hashlib.sha256(text.encode()).hexdigest() + '"'


def stands(rest, document):
    """The row is shown, and it says why it is not in force."""
    def so():
        value = now(rest)[1]
        return value["document"] == document and not value["in_force"] and value["why"] not in (
            None, "admind is reading it")
    until(so)


#: A forged row of now, of an hour and of ten years ahead.
SERIALS = ["serial + 1", "serial + 3600000000", "serial + 315360000000000"]


@pytest.mark.parametrize("serial", SERIALS)
def test_a_forged_row_locks_nobody_out(instance, rest, serial):
    """Who was shown it replaces it, and the document of before stays closed."""
    old = start(rest)
    row = {"n": SERIALS.index(serial)}
    etag = forge(instance, row, serial)
    stands(rest, row)
    assert now(rest)[0] == etag
    status, _, value = put(rest, {}, etag)
    assert status == 200, value
    assert (value["document"], value["in_force"]) == ({}, True)
    assert old["serial"] < value["serial"] < old["serial"] + 2 * 86400 * 1000000
    problem(put(rest, DOCUMENT, etag), 412, "hash_mismatch")
    # brought back, the document of before is older than the one that the vault knows
    instance.psql("SET session_replication_role = replica; INSERT INTO mcpbox.access_documents (serial, document, sha256,"
                  f" actor, seal) SELECT {value['serial'] + 1}, document, sha256, actor, seal"
                  f" FROM mcpbox.access_documents WHERE serial = {old['serial']}; NOTIFY mcpbox_access, 'document'")
    stands(rest, DOCUMENT)
    assert "newer" in now(rest)[1]["why"]
    assert start(rest)["in_force"] is True


def test_a_restored_database_locks_nobody_out(instance, rest):
    """Its rows are older than what the vault knows; or there are none."""
    old = start(rest)
    assert put(rest, {}, now(rest)[0])[0] == 200
    away = "SET session_replication_role = replica; DELETE FROM mcpbox.access_voids; DELETE FROM mcpbox.access_documents"
    instance.psql(f"{away} WHERE serial > {old['serial']}; NOTIFY mcpbox_access, 'document'")
    stands(rest, DOCUMENT)
    assert start(rest)["in_force"] is True
    instance.psql(f"{away}; NOTIFY mcpbox_access, 'document'")
    until(lambda: now(rest)[0] == NONE)
    problem(put(rest, {}, '"' + "1" * 64 + '"'), 412, "hash_mismatch")
    status, _, value = put(rest, DOCUMENT)
    assert (status, value["in_force"]) == (200, True), value


def test_people(instance, rest):
    start(rest)
    shown = rest.request("POST", "/api/identities/withdraw", {"principal": ALICE, "reason": "left"})[2]
    assert (shown["state"], shown["withdrawn_by"], shown["first_seen"]) == ("withdrawn", "admin", None)
    for query, there in (("", True), ("?state=withdrawn", True), ("?state=active", False), ("?issuer=pocket", True),
                         ("?issuer=other", False), ("?issuer=pocket&state=withdrawn", True),
                         ("?issuer=pocket&state=active", False)):
        status, _, page = rest.request("GET", "/api/identities" + query)
        assert status == 200 and [i["principal"] for i in page["items"]] == ([ALICE] if there else []), query
    problem(rest.request("GET", "/api/identities?state=gone"), 400, "invalid_params")
    problem(rest.request("POST", "/api/identities/withdraw", {"principal": "local"}), 400, "invalid_params")
    problem(rest.request("POST", "/api/identities/withdraw", {"principal": "oidc:poket:a"}), 404, "not_found")
    problem(rest.request("POST", "/api/identities/restore", {"principal": "oidc:pocket:nobody"}), 404, "not_found")
    problem(rest.request("POST", "/api/identities/restore", {}), 400, "invalid_params")
    shown = rest.request("POST", "/api/identities/restore", {"principal": ALICE})[2]
    assert (shown["state"], shown["reason"]) == ("active", None)


def test_pages_of_people(instance, rest):
    start(rest)
    for n in range(5):
        assert rest.request("POST", "/api/identities/withdraw", {"principal": f"oidc:pocket:p?/&{n}"})[0] == 200
    from urllib.parse import quote
    found, cursor = [], ""
    while cursor is not None:
        page = rest.request("GET", f"/api/identities?state=withdrawn&limit=2{cursor and '&cursor=' + quote(cursor, '')}")[2]
        found, cursor = found + [i["principal"] for i in page["items"]], page["next_cursor"]
    assert [p for p in found if "p?/&" in p] == [f"oidc:pocket:p?/&{n}" for n in range(5)]


# --- by mcpboxctl ---------------------------------------------------------------


def document_file(tmp_path, document):
    path = tmp_path / "access.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document, indent=2) + "\n")
    return str(path)


def run(instance, *args):
    return instance.ctl(*args, check=False)


def test_ctl_shows_what_can_be_set_again(instance, rest, tmp_path):
    start(rest)
    r = run(instance, "access", "show")
    assert r.returncode == 0 and json.loads(r.stdout) == DOCUMENT
    assert "by admin; it is in force" in r.stderr
    assert json.loads(run(instance, "access", "show", "--json").stdout) == now(rest)[1]
    r = run(instance, "access", "set", document_file(tmp_path, r.stdout))
    assert r.returncode == 0 and "nothing changes" in r.stderr


def test_ctl_shows_the_difference(instance, rest, tmp_path):
    start(rest)
    new = json.loads(json.dumps(DOCUMENT))
    new["issuers"][0]["jwks"]["keys"] = [{**KEY, "kid": "k2"}]
    new["issuers"][0]["leeway_seconds"] = 30
    new["rules"].insert(0, {"issuer": "pocket", "claim": "group", "values": ["staff"], "set": "staff"})
    new["permission_sets"].append({"name": "staff", "scopes": ["tools:read"], "allow": ["weather__*"], "deny": []})
    r = run(instance, "access", "set", document_file(tmp_path, new))
    assert r.returncode == 0, r.stderr
    assert r.stdout.splitlines() == [
        "~ issuer pocket: leeway_seconds  https://id.example.org; leeway_seconds 30",
        "- key of issuer pocket: kid k1, OKP Ed25519", "+ key of issuer pocket: kid k2, OKP Ed25519",
        "+ permission set staff; scopes tools:read; allow weather__*",
        "+ rule 1: issuer pocket, group staff -> set staff"]
    value = now(rest)[1]
    assert (value["document"], value["actor"], value["in_force"]) == (new, "root", True)
    swapped = {**new, "rules": new["rules"][::-1]}
    r = run(instance, "access", "set", document_file(tmp_path, swapped))
    assert r.stdout.splitlines()[0] == "~ rules: another order; the first that fits wins"
    r = run(instance, "access", "set", document_file(tmp_path, "{}\n"))
    rows = r.stdout.splitlines()
    assert rows[0] == "- member resource https://mcp.example.org/mcp" or rows[0] == "- member resource"
    assert {"- issuer pocket", "- permission set family", "- permission set staff"} <= set(rows)
    assert now(rest)[1]["document"] == {}


def test_ctl_replaces_a_row_that_somebody_wrote(instance, rest, tmp_path):
    """The difference is not made to that row: a stranger's issuer would not be on the screen."""
    start(rest)
    strange = json.loads(json.dumps(DOCUMENT))
    strange["issuers"].append({"name": "strange", "issuer": "https://evil.example.org", "jwks": {"keys": [KEY]}})
    forge(instance, strange, SERIALS[1])
    stands(rest, strange)
    r = run(instance, "access", "show")
    assert json.loads(r.stdout) == strange and "NOT in force" in r.stderr
    r = run(instance, "access", "set", document_file(tmp_path, strange))
    assert r.returncode == 0, r.stderr
    assert "NOT in force" in r.stderr and "compared with none" in r.stderr
    assert {"+ issuer pocket  https://id.example.org", "+ issuer strange  https://evil.example.org"} <= set(
        r.stdout.splitlines())
    assert now(rest)[1]["in_force"] is True
    assert start(rest)["in_force"] is True


def test_ctl_builds_nothing_on_a_row_that_somebody_wrote(instance, rest):
    """remote makes a new document from the stored one, and a script says --yes: a stranger's issuer would be sealed."""
    start(rest)
    strange = json.loads(json.dumps(DOCUMENT))
    strange["issuers"].append({"name": "strange", "issuer": "https://evil.example.org", "jwks": {"keys": [KEY]}})
    forge(instance, strange, SERIALS[1])
    stands(rest, strange)
    for words in (("add", "oidc", "mine", "--resource", DOCUMENT["resource"], "--issuer", "https://mine.example.org",
                   "--discovery", "--sub", "x"), ("remove", "pocket")):
        r = run(instance, "remote", *words, "--yes")
        assert r.returncode != 0 and "nothing is built on it" in r.stderr, r
        stands(rest, strange)
    start(rest)


def test_ctl_meets_another_administrator(instance, rest, tmp_path):
    """The document is changed while mcpboxctl shows the difference and asks."""
    start(rest)
    master, slave = pty.openpty()
    ctl = subprocess.Popen([*instance.ctl_prefix, os.path.join(instance.state, "bin", "mcpboxctl"), "access", "set",
                            document_file(tmp_path, "{}")], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    assert b"- issuer pocket" in read_terminal(master, b"[y/N] ")
    other = {**DOCUMENT, "resource": "https://mcp.example.net/mcp"}
    assert put(rest, other, now(rest)[0])[0] == 200
    os.write(master, b"y\n")
    seen = read_terminal(master).decode()
    assert ctl.wait(patience(20)) == 1, seen
    os.close(master)
    assert "changed meanwhile: read it again" in seen and "by admin; it is in force" in seen
    assert "mcpboxctl access show" in seen
    assert now(rest)[1]["document"] == other, "the first one's change stands"


def test_ctl_says_all_mistakes(instance, rest, tmp_path):
    before = now(rest)
    r = run(instance, "access", "set", document_file(tmp_path, {"issuers": [], "x": 1, "y": 2}))
    assert r.returncode == 1 and "/x" in r.stderr and "/y" in r.stderr, r.stderr
    assert "\\u{a}" not in r.stderr, "errors are rows"
    for text in ("", "{", "[]", '{"a": 1, "a": 2}'):
        r = run(instance, "access", "set", document_file(tmp_path, text))
        assert r.returncode == 2 and "no JSON object" in r.stderr, (text, r.stderr)
    r = run(instance, "access", "set", document_file(tmp_path, '{"x": "' + "a" * 262144 + '"}'))
    assert r.returncode != 0 and "too long" in r.stderr
    assert now(rest) == before


def test_ctl_and_hostile_names(instance, rest, tmp_path):
    """No name in a document moves the terminal's cursor."""
    bad = '{"permission_sets": [{"name": "\\u001b[2J\\u202e", "scopes": [], "\\u001b]0;x\\u0007": 1}]}'
    r = run(instance, "access", "set", document_file(tmp_path, bad))
    assert r.returncode == 1
    assert "\x1b" not in r.stdout + r.stderr and "\u202e" not in r.stdout + r.stderr
    assert "\\u{1b}[2J" in r.stdout


def test_ctl_people(instance, rest):
    start(rest)
    r = run(instance, "identities", "withdraw", "oidc:pocket:bob", "--reason", "left")
    assert r.returncode == 0 and "withdrawn" in r.stdout, r.stderr
    for words in (["identities"], ["identities", "list", "--state", "withdrawn"],
                  ["identities", "list", "--issuer", "pocket"]):
        assert "oidc:pocket:bob" in run(instance, *words).stdout
    assert "oidc:pocket:bob" not in run(instance, "identities", "list", "--state", "active").stdout
    assert run(instance, "identities", "restore", "oidc:pocket:bob").returncode == 0
    r = run(instance, "identities", "withdraw", "bob")
    assert r.returncode == 1 and "oidc:ISSUER:SUBJECT" in r.stderr
    assert run(instance, "identities", "list", "x").returncode == 2
    assert run(instance, "access", "set").returncode == 2
