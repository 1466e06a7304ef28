"""Export and import (decision 0033): signed, by one instance or between two,
all or nothing, and never more than drafts."""
import base64
import hashlib
import json
import os
import secrets
import subprocess

import psycopg
import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text as said_text
from harness.clients.rest import Rest
from harness.patience import patience, until

CODE = "def main(n: int) -> int:\n    '''äöü 日本'''\n    return n + %d\n"


@pytest.fixture(scope="module")
def made(instance):
    """A server with an approved tool, a disabled draft, a secret and limits; its
    name, and the export."""
    name = "x" + secrets.token_hex(4)
    with Client(instance.address) as mcp:
        flow.publish(instance, mcp, name, "adds", CODE % 1)
        flow.draft(mcp, name, "waits", CODE % 2)
        server = next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == name)
        mcp.manage("mcpbox_create_server_secret", server_id=server, key="TOKEN", description="of a shop")
    instance.ctl("servers", "limits", name, "timeout_ms=12345")
    return name, instance.ctl("export", name).stdout


def parts(text):
    head, _, rest = text.partition("\n")
    return json.loads(head), [json.loads(line) for line in rest.splitlines()]


def servers(instance):
    return {s["name"]: s for s in instance.ctl_json("servers", "--limit", "200")["items"]}


def tools(instance, server):
    return [t for t in instance.ctl_json("query", "tools", "--server", server, "--limit", "200")["items"]]


def load(instance, tmp_path, text, *words, check=True):
    path = tmp_path / "export"
    path.write_text(text, encoding="utf-8")
    return instance.ctl("--json", "import", str(path), *words, check=check)


def test_what_an_export_is(made):
    name, text = made
    head, lines = parts(text)
    assert head["mcpbox_export"] == 1 and head["lines"] == len(lines) == 3 and head["exported_by"] == "root"
    assert lines[0]["server"]["name"] == name and lines[0]["server"]["limits"] == {"timeout_ms": 12345}
    assert lines[0]["server"]["secrets"] == [{"key": "TOKEN", "description": "of a shop"}]
    by = {line["object"]["name"]: line["object"] for line in lines[1:]}
    assert by["adds"]["state"] == "approved" and by["waits"]["state"] == "draft"
    assert (CODE % 1).encode() in base64.b64decode(by["adds"]["preimage"])


def test_an_import_makes_drafts_that_cannot_be_called(instance, mcp, made, tmp_path):
    name, text = made
    said = json.loads(load(instance, tmp_path, text).stdout)
    [s] = said["servers"]
    assert s["exported_as"] == name and s["name"] == name + "_imported" and said["objects"] == 2
    assert said["skipped"] == [] and said["skipped_count"] == 0 and said["needs_modules"] == []
    here = tools(instance, s["id"])
    assert {t["name"]: t["approval_status"] for t in here} == {"adds": "draft", "waits": "draft"}
    assert not any(t["callable"] or t["serving_version"] for t in here)
    exposed = f"{s['name']}__adds"
    assert exposed not in mcp.tools()
    refused = mcp.call(exposed, {"n": 1})
    assert refused.result is None and refused.error["data"]["failure_mode"] in ("unknown_tool", "not_approved"), refused
    # approved, it is the tool that it was
    tool = next(t for t in here if t["name"] == "adds")
    shown = instance.ctl_json("query", "tool", tool["id"])
    assert shown["versions"][0]["change_source"] == "import"
    mcp.manage("mcpbox_request_publish", tool_id=tool["id"])
    item = next(i for i in instance.ctl_json("approvals", "list")["items"] if i["tool_id"] == tool["id"])
    item = instance.ctl_json("approvals", "show", item["id"])
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    assert said_text(mcp.call(exposed, {"n": 1})) == "2"
    # limits came along, a secret only by name
    assert instance.ctl_json("servers", "limits", s["name"])["limits"]["timeout_ms"] == 12345
    again = json.loads(load(instance, tmp_path, text).stdout)
    assert again["servers"][0]["name"] == name + "_imported_2"


@pytest.mark.parametrize("change", ["a byte", "a line less", "a line twice", "an empty one", "signature", "hash",
                                    "no signature", "another's signature", "no head"])
def test_a_changed_file_is_refused(instance, made, tmp_path, change):
    _, text = made
    head, _, rest = text.partition("\n")
    h = json.loads(head)
    if change == "a byte":
        rest = rest.replace('"enabled" : true', '"enabled" : false', 1)
        assert rest != text.partition("\n")[2]
    elif change == "a line less":
        rest = "\n".join(rest.splitlines()[:-1]) + "\n"
    elif change == "a line twice":
        rest += rest.splitlines()[-1] + "\n"
    elif change == "an empty one":
        rest = ""
    elif change == "signature":
        h["signature"] = h["signature"][:-1] + ("0" if h["signature"][-1] != "0" else "1")
    elif change == "hash":
        h["sha256"] = "0" * 64
    elif change == "no signature":
        del h["signature"]
    elif change == "another's signature":
        h["signature"] = h["signature"][:20] + "0" * (len(h["signature"]) - 20)
    before = set(servers(instance))
    # who alters the text can make its hash fit, but not the vault's seal
    for fits in (False, True):
        if fits and change != "hash":
            h["sha256"] = hashlib.sha256(rest.encode()).hexdigest()
        changed = rest if change == "no head" else json.dumps(h) + "\n" + rest
        r = load(instance, tmp_path, changed, check=False)
        assert r.returncode == 1, (change, fits, r)
    assert set(servers(instance)) == before


def test_between_instances_by_a_transfer_key(instance, made, tmp_path):
    name, own = made
    key, other = str(tmp_path / "key"), str(tmp_path / "other")
    for path in (key, other):
        instance.ctl("transfer-key", path)
        assert os.stat(path).st_mode & 0o777 == 0o600
    assert instance.ctl("transfer-key", key, check=False).returncode == 1, "never overwritten"
    text = instance.ctl("export", name, "--transfer-key", key).stdout
    head, _ = parts(text)
    assert "signature" not in head and len(head["transfer_signature"]) == 64
    before = set(servers(instance))
    assert "no signature" in load(instance, tmp_path, text, check=False).stderr
    assert "not signed with this" in load(instance, tmp_path, text, "--transfer-key", other, check=False).stderr
    assert "not signed with this" in load(instance, tmp_path, own, "--transfer-key", key, check=False).stderr
    os.chmod(key, 0o640)
    assert "others may read" in load(instance, tmp_path, text, "--transfer-key", key, check=False).stderr
    os.chmod(key, 0o600)
    assert set(servers(instance)) == before
    # a head's own words are not believed: the text is what was signed
    said = json.loads(load(instance, tmp_path, text, "--transfer-key", key).stdout)
    assert said["objects"] == 2


def test_over_rest(instance, rest, made):
    name, _ = made
    code, _, head = rest.request("POST", "/api/exports", {"servers": [name]})
    assert code == 200 and head["lines"] == 3, head
    lines, cursor = [], ""
    while cursor is not None:
        code, _, page = rest.get(f"/api/exports/{head['id']}/lines?limit=2" + (f"&cursor={cursor}" if cursor else ""))
        assert code == 200
        lines += page["items"]
        cursor = page["next_cursor"]
    text = "".join(line + "\n" for line in lines)
    code, _, begun = rest.request("POST", "/api/imports", {})
    assert code == 200 and begun["bytes"] == 0
    where = f"/api/imports/{begun['id']}"
    data, at = text, 0
    while data:
        piece, data = data[:1000], data[1000:]
        body = {"from": at, "text": piece}
        answer = rest.request("PUT", where + "/text", body)
        assert answer[0] == 200
        assert rest.request("PUT", where + "/text", body)[2] == answer[2], "a lost answer does no harm"
        at = answer[2]["bytes"]
    assert at == head["bytes"] == len(text.encode())
    assert rest.request("PUT", where + "/text", {"from": at + 1, "text": "x"})[0] == 409
    code, _, why = rest.request("POST", where + "/finish", {"signature": "00" * 74})
    assert (code, why["failure_mode"]) == (403, "forbidden")
    code, _, said = rest.request("POST", where + "/finish", {"signature": head["signature"]})
    assert code == 200 and said["objects"] == 2 and said["servers"][0]["exported_as"] == name
    assert rest.request("POST", where + "/finish", {"signature": head["signature"]})[0] == 404
    code, _, begun = rest.request("POST", "/api/imports", {})
    assert rest.request("DELETE", f"/api/imports/{begun['id']}")[0] == 200
    assert rest.request("DELETE", f"/api/imports/{begun['id']}")[0] == 404
    for bad in ({"servers": "x"}, {"servers": [1]}, {"servers": ["No"]}, {"server": []}):
        assert rest.request("POST", "/api/exports", bad)[0] == 400
    assert rest.request("POST", "/api/exports", {"servers": ["nobody"]})[0] == 404
    stranger = Rest(lambda: instance.address("admind-http"))
    for method, path in (("POST", "/api/exports"), ("GET", f"/api/exports/{head['id']}/lines"), ("POST", "/api/imports"),
                         ("POST", where + "/finish")):
        assert stranger.request(method, path, {} if method == "POST" else None)[0] == 401


def test_killed_half_way_nothing_has_happened(instance, made, tmp_path):
    """The import's transaction is made slow; mcpboxctl, then admind's own
    connection, are gone in the middle of it."""
    name, text = made
    where = f"host={instance.run('postgresql')} dbname=mcpbox user=postgres"
    path = tmp_path / "export"
    path.write_text(text, encoding="utf-8")
    with psycopg.connect(where, autocommit=True) as c:
        c.execute("CREATE FUNCTION mcpbox.slow() RETURNS trigger LANGUAGE plpgsql AS "
                  "$$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$")
        c.execute("CREATE TRIGGER a_slow BEFORE INSERT ON mcpbox.tool_versions FOR EACH ROW "
                  "EXECUTE FUNCTION mcpbox.slow()")
        before = set(servers(instance))
        try:
            running = subprocess.Popen([os.path.join(instance.state, "bin", "mcpboxctl"), "import", str(path)], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            find = ("SELECT pid FROM pg_stat_activity WHERE query LIKE '%%import_finish%%' AND state = 'active' "
                    "AND usename = 'mcpbox_app'")
            pid = until(lambda: c.execute(find).fetchone())
            running.kill()
            running.wait(patience(10))
            c.execute("SELECT pg_terminate_backend(%s)", pid)
            until(lambda: not c.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", pid).fetchone())
            assert c.execute("SELECT count(*) FROM mcpbox.servers WHERE name LIKE %s", (name + "%",)).fetchone()[
                0] == sum(s.startswith(name) for s in before)
        finally:
            c.execute("DROP TRIGGER a_slow ON mcpbox.tool_versions; DROP FUNCTION mcpbox.slow()")
    said = json.loads(load(instance, tmp_path, text).stdout)
    assert said["objects"] == 2 and len(said["servers"]) == 1
