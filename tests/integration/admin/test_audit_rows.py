"""One of each: every decision, login, failed login, change of a secret, policy,
token or setting is a row of the audit log. What there is to be written is read
from the sources; what this file does not make, it says where it is made."""
import glob
import json
import os
import re

import pytest

from harness.clients import confirm, flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.instance import SRC, Instance
from harness.patience import until

CODE = "def main() -> int:\n    return {}\n"
PASSWORD, NEW = "a long password of theirs", "quite another password"
SERVER = "rowsof"

# action: the test that makes it, where that takes more than belongs here.
ELSEWHERE = {
    "access_refused": "integration/vault/test_vault_access.py::test_who_may_not",
    "administrator_refused": "integration/vault/test_vault_proof.py::test_stale",
    "access_set": "database/test_access.py::test_a_document_is_stored_shown_and_followed",
    "key_created": "database/access/test_script_keys.py::test_a_life",
    "key_revoked": "database/access/test_script_keys.py::test_a_life",
    "identity_restored": "database/test_access.py::test_a_person_is_withdrawn_and_restored",
    "identity_withdrawn": "database/test_access.py::test_a_person_is_withdrawn_and_restored",
    "approve_refused": "integration/vault/test_vault.py::test_approve_needs_a_login",
    "login_begun": "integration/admin/test_passkeys.py::test_second_factor_and_proof",
    "passkey_cloned": "integration/vault/test_vault_passkeys.py::test_wrong_assertions",
    "passkey_code": "integration/vault/test_vault_passkeys.py::test_codes",
    "passkey_refused": "integration/admin/test_passkeys.py::test_second_factor_and_proof",
    "passkey_registered": "integration/admin/test_passkeys.py::test_second_factor_and_proof",
    "passkey_removed": "integration/admin/test_passkeys.py::test_second_factor_and_proof",
    "module_install": "database/test_modules_installed.py::test_the_action",
    "openapi_imported": "database/test_http.py::test_each_is_a_request",
    "source_imported": "database/test_sources.py::test_each_step_is_in_the_audit_log",
    "source_authorising": "database/test_sources.py::test_each_step_is_in_the_audit_log",
    "source_authorised": "database/test_sources.py::test_each_step_is_in_the_audit_log",
    "tool_quarantined": "database/test_sources.py::test_the_approved_definition_comes_back",
    "tool_returned": "database/test_sources.py::test_the_approved_definition_comes_back",
}


def arguments(text, start):
    """The arguments of the call whose '(' is at start."""
    depth, quoted, out, begun = 0, None, [], start + 1
    for i in range(start, len(text)):
        c = text[i]
        if quoted:
            quoted = None if c == quoted else quoted
        elif c in "'\"":
            quoted = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return [*out, text[begun:i]]
        elif c == "," and depth == 1:
            out.append(text[begun:i])
            begun = i + 1
    raise ValueError(text[start:start + 80])


def bodies():
    """The newest body of each SQL function, without comments."""
    found = {}
    for path in [*glob.glob(os.path.join(SRC, "sql/schema/*.sql")),
                 *sorted(glob.glob(os.path.join(SRC, "sql/migrations/*.sql")))]:
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"--.*", "", f.read())
        for m in re.finditer(r"CREATE (?:OR REPLACE )?FUNCTION (\w+)\(.*?\$\$(.*?)\$\$", text, re.S):
            found[m.group(1)] = m.group(2)
    return found


# 'tool_' || state, as far as a state is decided or taken back.
STATES = {"tool_": ("approved", "rejected"), "module_": ("approved", "rejected"),
          "network_": ("approved", "rejected"), "call_": ("approved", "rejected")}


def actions():
    """All names of actions that the sources can write."""
    names = set()
    for body in bodies().values():
        for m in re.finditer(r"\baudit_append\(", body):
            what = arguments(body, m.end() - 1)[1].strip()
            if m := re.fullmatch(r"'(\w+)'", what):
                names.add(m.group(1))
            elif m := re.fullmatch(r"'(\w+_)' \|\| .*", what, re.S):
                names |= {m.group(1) + s for s in STATES[m.group(1)]}
            elif re.match(r"CASE\b", what):
                names |= set(re.findall(r"(?:THEN|ELSE)\s+'(\w+)'", what))
            elif what == "action":      # a variable, assigned above
                for a in re.findall(r"action := ([^;]*);", body):
                    names |= set(re.findall(r"(?:^|THEN|ELSE)\s*'(\w+)'", a))
            else:
                assert what in ("p_action",), what
    for path in glob.glob(os.path.join(SRC, "admind/vault/**/*.c"), recursive=True):
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        for m in re.finditer(r"\b(audit_event|attempt_audit|policies_refused)\(", text):
            what = arguments(text, m.end() - 1)[2].strip()
            if re.fullmatch(r'"\w+"', what):
                names.add(what.strip('"'))
    return names


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


def decide(i, request, yes=True):
    if yes:
        digest = i.ctl_json("approvals", "show", request)["hash"]
        i.ctl("approvals", "approve", request, "--hash", digest)
    else:
        i.ctl("approvals", "reject", request, "--reason", "no")


def people(i):
    def change(method, path, body, r):
        assert r.request(method, path, body)[0] == 204, path

    r = Rest(lambda: i.address("admind-http"))
    assert r.login("admin", i.password)[0] == 200
    assert Rest(r.where).login("admin", "wrong wrong wrong")[0] == 401
    own = {"password": i.password}
    change("POST", "/api/administrators", {"username": "rita", "role": "viewer", "new_password": NEW, **own}, r)
    assert r.request("POST", "/api/administrators/rita/delete", {"password": "wrong wrong"})[0] == 401
    change("POST", "/api/administrators/rita/password", {"new_password": PASSWORD, **own}, r)
    change("POST", "/api/proof", own, r)
    assert r.once("POST", "/api/proof", {"password": "wrong wrong wrong"})[0] == 401
    rita = Rest(r.where)
    assert rita.login("rita", PASSWORD)[0] == 200
    change("POST", "/api/password", {"old_password": PASSWORD, "new_password": NEW}, rita)
    assert rita.request("POST", "/api/logout")[0] == 204
    assert rita.login("rita", NEW)[0] == 200
    etag = rita.get("/api/approvals/policies")[1]["etag"]
    assert rita.request("PUT", "/api/approvals/policies", {"profile": "permissive"}, {"If-Match": etag})[0] == 403
    i.ctl("logins", "end", "--username", "rita")
    change("PUT", "/api/administrators/rita/role", {"role": "reviewer", **own}, r)
    change("POST", "/api/administrators/rita/delete", own, r)
    i.ctl("administrators", "device", "rita")
    return r


def servers_and_tools(i, r, mcp):
    i.ctl("servers", "create", "gone")
    for words in (("describe", "gone", "of no use"), ("stop", "gone"), ("start", "gone")):
        i.ctl("servers", *words)
    i.ctl("servers", "expose", "gone", "bare")
    i.ctl("servers", "limits", "gone", "cpu_ms=5000")
    i.ctl("sources", "add", "gone", "src", "https://mcp.example.org/mcp")
    source = i.ctl_json("sources", "gone")["items"][0]["id"]
    i.ctl("sources", "delete", source)
    i.ctl("secret", "create", "gone", "TOKEN")
    i.ctl("secret", "describe", "gone", "TOKEN", "of the far end")
    i.ctl("secret", "set", "gone", "TOKEN", stdin="a value")
    i.ctl("administrators", "create", "vic", "--role", "viewer", stdin=PASSWORD + "\n")
    vic = Rest(r.where)
    assert vic.login("vic", PASSWORD)[0] == 200
    assert vic.request("PUT", "/api/servers/gone/secrets/TOKEN", {"value": "a value"})[0] == 403
    i.ctl("secret", "delete", "gone", "TOKEN")
    i.ctl("servers", "delete", "gone")

    tool = flow.draft(mcp, SERVER, "one", CODE.format(1))
    for n in range(2, 14):
        mcp.manage("mcpbox_update_tool", tool_id=tool, python_code=CODE.format(n))
    i.ctl("tools", "prune", tool, "10")
    request = mcp.manage("mcpbox_request_publish", tool_id=tool)["request_id"]
    i.ctl("approvals", "comment", request, "what for?")
    decide(i, request)
    i.ctl("tools", "disable", tool)
    i.ctl("tools", "enable", tool)
    i.ctl("approvals", "revoke", request, "--reason", "second thoughts")
    mcp.manage("mcpbox_update_tool", tool_id=tool, python_code=CODE.format(9))
    decide(i, mcp.manage("mcpbox_request_publish", tool_id=tool)["request_id"], False)
    return tool


def grants(i, mcp, tool):
    for n in range(2):
        i.ctl("modules", "add", f"mod{n}", "1.0", "ab" * 32, "3", "99")
        decide(i, mcp.manage("mcpbox_request_module", tool_id=tool, module_name=f"mod{n}",
                             justification="x")["request_id"], n == 0)
        decide(i, mcp.manage("mcpbox_request_network_access", tool_id=tool, host=f"h{n}.example.org",
                             justification="x")["request_id"], n == 0)
    i.ctl("modules", "revoke", tool, "mod0==1.0")
    i.ctl("modules", "grant", tool, "mod1==1.0")
    i.ctl("modules", "withdraw", "mod1", "1.0")
    granted = next(g for g in i.ctl_json("approvals", "list", "--all", "--kind", "network")["items"]
                   if g["state"] == "approved")
    i.ctl("approvals", "revoke", granted["id"], "--reason", "no more")


def policies(i, r, mcp):
    """A second approver, then by themselves."""
    i.ctl("policies", "set", "tool=second", "module=require", "network=require")
    tool = flow.draft(mcp, SERVER, "two", CODE.format(2))
    request = mcp.manage("mcpbox_request_publish", tool_id=tool)["request_id"]
    digest = i.ctl_json("approvals", "show", request)["hash"]
    status, _, value = r.request("POST", f"/api/approvals/{request}/approve", {}, {"If-Match": f'"{digest}"'})
    assert status in (200, 202), value
    decide(i, request)
    i.ctl("policies", "set", "tool=require", "module=require", "network=require")
    mcp.manage("mcpbox_delete_tool", tool_id=tool)


def calls(i, mcp):
    """A call that waits for a person: yes, no, and nobody."""
    name = confirm.publish(i, mcp, SERVER, "wipe")
    for n, way in ((1, "yes"), (2, "no"), (3, None)):
        r = mcp.request("tools/call", {"name": name, "arguments": {"n": n}})
        if way is None:
            confirm.waiting(i, n)
            confirm.expire(i)
            break
        item = confirm.waiting(i, n)
        decide(i, item["id"], way == "yes")
        mcp.request("tools/call", {"name": name, "arguments": {"n": n}, "requestState": r.result["requestState"]})


def the_rest(i):
    i.ctl("settings", "set", "confirm_destructive", "off")
    i.ctl("settings", "reset", "confirm_destructive")
    i.ctl("tokens", "create", "robot", "scopes=tools:read", "expires=1d")
    i.ctl("tokens", "revoke", "robot")
    i.ctl("rates", "set", "principal", "local", "1000")
    i.ctl("rates", "remove", "principal", "local")
    i.ctl("breakers", "reset")
    i.ctl("servers", "create", "moved")
    path = os.path.join(i.parent, "export")
    with open(path, "w", encoding="utf-8") as f:
        f.write(i.ctl("export", "moved").stdout)
    i.ctl("servers", "delete", "moved")
    i.ctl("import", path)
    i.ctl("key", "rotate")


def test_one_of_each(instance):
    r = people(instance)
    with Client(instance.address) as mcp:
        calls(instance, mcp)
        tool = servers_and_tools(instance, r, mcp)
        grants(instance, mcp, tool)
        policies(instance, r, mcp)
    the_rest(instance)
    wanted = actions() - set(ELSEWHERE)
    assert len(wanted) > 55 and {"login", "login_failed", "tool_approved", "policy_set", "secret_set",
                                 "password_reset", "token_revoked", "server_stopped"} <= wanted
    def exported():
        return [json.loads(s) for s in instance.ctl("audit", "export", "--json").stdout.splitlines()]

    def all_there():    # what expires does so by itself
        rows = exported()
        return rows if wanted <= {row["action"] for row in rows} else None
    rows = until(all_there, 15, 0.5, say=lambda: sorted(wanted - {row["action"] for row in exported()}))
    # each says who and on what, and no secret
    assert all(row["actor"] and (row["subject"] or row["action"] in ("policy_set", "breakers_reset")) for row in rows)
    text = json.dumps(rows)
    for secret in (instance.password, PASSWORD, NEW, "wrong wrong", "a value"):
        assert secret not in text
    who = {row["action"]: row["actor"] for row in rows}
    assert who["login_failed"] == "admin" and who["admin_deleted"] == "admin" and who["login_ended"] == "root"
    assert who["tool_created"] == "local" and who["call_expired"] == "mcpbox"


def test_the_chain_holds_over_a_new_key(instance):
    """Behind a rotation, the older key forgotten: what rests was signed anew; the
    journal's older lines are told apart, and their heads still compared."""
    before = instance.service_pid("admind-vault")
    os.kill(before, 15)
    until(lambda: instance.service_pid("admind-vault") not in (None, before)
          and instance.ctl("doctor", check=False).returncode != 3, 15, 0.1)
    lines = ""
    for process in ("admind", "admind-vault"):
        with open(os.path.join(instance.state, "log", process, "current"), encoding="utf-8") as f:
            lines += f.read()
    r = instance.ctl("audit", "verify", "--json", "--journal", "-", stdin=lines)
    v = json.loads(r.stdout)
    assert v["ok"] and v["problems"] == [] and v["rows"] > 60
    assert 0 < v["journal_lines_of_older_keys"] < v["journal_lines"]


def test_who_makes_the_others():
    """The tests named above exist."""
    for where in ELSEWHERE.values():
        path, _, name = where.partition("::")
        with open(os.path.join(SRC, "tests", path), encoding="utf-8") as f:
            text = f.read()
        assert not name or f"def {name}(" in text, where
