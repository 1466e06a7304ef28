"""Secrets by REST and mcpboxctl: who may set one, what is shown of it, and that
its value is found nowhere afterwards."""
import base64
import contextlib
import hashlib
import json
import os
import re
import resource
import secrets as random
import signal
import subprocess
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.patience import until

# Each on a way of its own; long enough that none is there by chance, and of
# letters that no encoding changes.
MARK = {way: f"MARK{way}" + random.token_hex(20) for way in (
    "rest", "ctl", "older", "refused", "long", "deleted")}
LEAK = """import sys
def main(fail: bool = False) -> dict:
    print(secrets["TOKEN"])
    print(secrets["TOKEN"], file=sys.stderr)
    if fail:
        raise ValueError("it was " + secrets["TOKEN"])
    return {"said": [secrets["TOKEN"], {"deep": "x" + secrets["TOKEN"]}]}
"""


@pytest.fixture(scope="module")
def server(instance):
    with Client(instance.address) as c:
        c.manage("mcpbox_create_server", name="vault_s", description="Of the tests.")
    return "/api/servers/vault_s/secrets"


def test_by_rest(rest, server):
    status, headers, made = rest.request("POST", server, {"key": "A_KEY", "description": "of it"})
    assert status == 200 and made["has_value"] is False and made["version"] == 0
    assert rest.request("POST", server, {"key": "A_KEY"})[0] == 409
    assert rest.request("POST", server, {"key": "lower"})[0] == 400
    assert rest.request("PUT", server + "/A_KEY", {"value": "one"})[::2] == (204, None)
    assert rest.request("PUT", server + "/A_KEY", {"value": MARK["older"]})[0] == 204
    assert rest.request("PUT", server + "/A_KEY", {"value": MARK["rest"]})[0] == 204
    status, headers, shown = rest.get(server + "/A_KEY")
    assert (shown["version"], shown["set_by"], shown["has_value"]) == (3, "admin", True)
    assert [h["action"] for h in shown["history"]] == ["set", "set", "set", "created"]
    assert not {"value", "ciphertext"} & set(shown)
    status, h, changed = rest.request("PATCH", server + "/A_KEY", {"description": "new"},
                                      {"If-Match": headers["etag"]})
    assert status == 200 and changed["description"] == "new"
    assert rest.request("PATCH", server + "/A_KEY", {"description": "x"},
                        {"If-Match": headers["etag"]})[0] == 412
    items = rest.get(server)[2]["items"]
    assert [i["key"] for i in items] == ["A_KEY"] and "history" not in items[0]
    assert rest.request("PUT", server + "/GONE", {"value": MARK["deleted"]})[0] == 204
    gone = rest.request("DELETE", server + "/GONE")
    assert gone[0] == 200 and gone[2] == {"key": "GONE", "deleted": True, "used_by": []}
    assert rest.get(server + "/GONE")[0] == 404
    assert rest.get("/api/servers/no_such/secrets")[0] == 404


@pytest.mark.parametrize("body", [
    {}, {"value": ""}, {"value": 5}, {"value": None}, {"value": "x" * 10001}, {"value": "x", "y": 1},
    {"value": ["x"]}, []])
def test_bodies_that_are_refused(rest, server, body):
    assert rest.request("PUT", server + "/BAD", body)[0] in (400, 413, 422)
    assert rest.get(server + "/BAD")[0] == 404


def test_names_that_are_refused(rest, server):
    for path in (server + "/lower", server + "/1A", server + "/A-B", "/api/servers/No.Such/secrets/A"):
        assert rest.request("PUT", path, {"value": MARK["refused"]})[0] in (400, 404), path
    assert rest.request("PUT", "/api/servers/no_such/secrets/A", {"value": MARK["refused"]})[0] == 404


def test_only_an_administrator_sets_one(instance, rest, server):
    """The vault judges the login, whatever admind and the web process think."""
    for name, role in (("rita", "reviewer"), ("victor", "viewer")):
        password = "a long password of " + name
        status, _, answer = rest.request("POST", "/api/administrators", {
            "username": name, "role": role, "new_password": password,
            "password": instance.password})
        assert status in (200, 201, 204), answer
        other = Rest(lambda: instance.address("admind-http"))
        assert other.login(name, password)[0] == 200
        assert other.request("PUT", server + "/A_KEY", {"value": MARK["refused"]})[0] == 403
        assert other.request("DELETE", server + "/A_KEY")[0] == 403
        assert other.request("POST", server, {"key": "X"})[0] == 403
        assert other.get(server)[0] == 200
    none = Rest(lambda: instance.address("admind-http"))
    assert none.request("PUT", server + "/A_KEY", {"value": MARK["refused"]})[0] == 401
    none.cookie, none.csrf = rest.cookie, "x" * 43
    assert none.request("PUT", server + "/A_KEY", {"value": MARK["refused"]})[0] == 401
    assert rest.get(server + "/A_KEY")[2]["version"] == 3
    assert any(i["action"] == "secret_refused" and i["actor"] == "rita"
               for i in rest.get("/api/audit")[2]["items"])


HASH = """import hashlib
def main() -> str:
    return hashlib.sha256(secrets["WHOLE"].encode()).hexdigest()
"""


@pytest.mark.parametrize("value", ["plain", 'q"b\\s/\n\t\r\b\f', "\u00e9\u20ac\U0001f600",
                                   "x" * 10000, "\u0001\u007f"],
                         ids=["plain", "escapes", "utf8", "longest", "controls"])
def test_every_character_arrives(instance, rest, server, value):
    """As it was sent, in JSON's escapes or not."""
    with Client(instance.address) as c:
        if "vault_s__whole" not in str(c.tools()):
            flow.publish(instance, c, "vault_s", "whole", HASH, secrets=["WHOLE"])
        for ascii_only in (True, False):
            body = json.dumps({"value": value}, ensure_ascii=ascii_only)
            assert rest.request("PUT", server + "/WHOLE", body.encode())[0] == 204
            said = c.call("vault_s__whole", {}).result["content"][0]["text"]
            assert said == hashlib.sha256(value.encode()).hexdigest()


def test_by_ctl(instance, server):
    assert instance.ctl("secret", "create", "vault_s", "TOKEN", "for the tests").stdout == \
        "secret TOKEN of server vault_s was made\n"
    shown = instance.ctl("secret", "show", "vault_s", "TOKEN").stdout
    assert shown.startswith("server_id: ") and "\ndescription: for the tests\n" in shown
    assert json.loads(instance.ctl("--json", "secret", "create", "vault_s", "GONE").stdout)
    assert instance.ctl("secret", "delete", "vault_s", "GONE").stdout == "secret GONE of server vault_s is gone\n"
    assert instance.ctl_json("secret", "show", "vault_s", "TOKEN")["has_value"] is False
    instance.ctl("secret", "set", "vault_s", "TOKEN", stdin=MARK["ctl"])
    r = instance.ctl("secret", "set", "vault_s", "TOKEN", "on-the-command-line", check=False, stdin="")
    assert r.returncode == 2
    r = instance.ctl("secret", "set", "vault_s", "LONG", stdin=MARK["long"] + "x" * 10000, check=False)
    assert r.returncode != 0 and MARK["long"] not in r.stdout + r.stderr
    assert "TOKEN" in instance.ctl("secret", "list", "vault_s").stdout
    assert instance.ctl("secret", "describe", "vault_s", "TOKEN", "changed").stdout == \
        "secret TOKEN of server vault_s was described\n"
    shown = instance.ctl_json("secret", "show", "vault_s", "TOKEN")
    assert shown["description"] == "changed" and shown["version"] == 1 and shown["set_by"] == "root"


def test_the_gone_server_takes_its_secrets(instance, rest):
    with Client(instance.address) as c:
        i = c.manage("mcpbox_create_server", name="leaves", description="Of the tests.")["id"]
        instance.ctl("secret", "set", "leaves", "TOKEN", stdin=MARK["deleted"])
        c.manage("mcpbox_delete_server", server_id=i)
    assert instance.psql(f"SELECT count(*) FROM mcpbox.server_secrets WHERE server_id = '{i}'") == [["0"]]
    for path in ("/api/servers/leaves/secrets", f"/api/servers/leaves@{i}/secrets"):
        assert rest.request("POST", path, {"key": "X"})[0] == 404
        assert rest.request("PUT", path + "/X", {"value": "x"})[0] in (400, 404)


# --- nowhere

def shapes(mark):
    """The value as it could stand somewhere."""
    b = mark.encode()
    return {b, b.hex().encode(), base64.b64encode(b)[:-4], b[::-1], mark.encode("utf-16-le"),
            b"".join(b"\\x%02x" % c for c in b)}


def found_in(data, marks):
    return [m for m in marks for s in shapes(MARK[m]) if s in data]


def files(top):
    for path, dirs, names in os.walk(top):
        for name in names:
            name = os.path.join(path, name)
            if os.path.isfile(name) and not os.path.islink(name):
                yield name


def memory(pid):
    """Writable memory of a process."""
    data = b""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, \
            open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps:
            span, flags = line.split()[:2]
            if flags.startswith("rw") and "[vv" not in line:
                at, end = (int(x, 16) for x in span.split("-"))
                try:
                    mem.seek(at)
                    data += mem.read(end - at)
                except OSError:
                    continue
    return data


@pytest.fixture(scope="module")
def used(instance, server):
    """Every way that a value takes, good and bad: a tool that prints, returns
    and raises it, wrong requests, a rotation; then all is flushed."""
    said = []
    with Client(instance.address) as c:
        flow.publish(instance, c, "vault_s", "leaks", LEAK, secrets=["TOKEN"])
        for arguments in ({}, {"fail": True}, {"fail": "yes"}):
            said.append(c.call("vault_s__leaks", arguments).raw)
        said.append(json.dumps(c.manage("mcpbox_list_servers")).encode())
    instance.ctl("key", "rotate")
    for what in ("servers", "tools", "executions", "audit", "status", "approvals list", "doctor"):
        said.append(instance.ctl(*what.split(), "--json").stdout.encode())
    rest = Rest(lambda: instance.address("admind-http"))
    assert rest.login("admin", instance.password)[0] == 200
    for path in ("/api/executions", "/api/audit", "/api/servers", "/api/status", "/api/activity",
                 server, server + "/TOKEN", server + "/A_KEY", "/metrics"):
        said.append(repr(rest.get(path)[2]).encode())
    for row in instance.psql("SELECT id FROM mcpbox.executions"):
        said.append(repr(rest.get("/api/executions/" + row[0])[2]).encode())
    instance.psql("CHECKPOINT")
    return said


ALL = sorted(MARK)


def test_answers(used):
    assert len(used) > 20
    for answer in used[:2]:
        assert b"[secret]" in answer, answer
    for answer in used:
        assert not found_in(answer, ALL), answer[:2000]


def test_environments_and_command_lines(instance, used):
    looked = 0
    for pid in instance.pids():
        for what in ("environ", "cmdline"):
            try:
                with open(f"/proc/{pid}/{what}", "rb") as f:
                    data = f.read()
            except (FileNotFoundError, ProcessLookupError):
                continue
            looked += 1
            assert not found_in(data, ALL), (pid, what)
    assert looked > 20


def test_files_of_the_instance(instance, used):
    """Logs, sockets' directories, the data directory of PostgreSQL with its WAL;
    proven first to be where what is stored in clear would be found."""
    canary = "CANARY" + random.token_hex(20)
    instance.psql(f"CREATE TABLE public.canary AS SELECT '{canary}'::text; CHECKPOINT")
    where, kinds = set(), set()
    for name in files(instance.state):
        with open(name, "rb") as f:
            data = f.read()
        assert not found_in(data, ALL), name
        where |= {name} if canary.encode() in data else set()
        kinds |= {re.sub(r".*/s/", "", name).split("/")[0]}
    assert any("pg_wal" in n for n in where), where
    assert any("/base/" in n for n in where), where
    assert "log" in kinds and "key" in kinds
    instance.psql("DROP TABLE public.canary")


def test_memory_of_the_processes(instance, used):
    """The vault forgets a value once it is sealed; admind never had one. (A
    zygote and the pool have none either; a call's runner is gone.)"""
    for name in ("admind-vault", "admind", "admind-check", "admind-http", "gatewayd-local", "sandboxd-spawn", "egress"):
        data = memory(instance.service_pid(name))
        assert len(data) > 100_000, name
        assert not found_in(data, ALL), name


def crash(pid, directory):
    """SIGSEGV of a process that may dump as much as it likes; what ELF files
    there are then that were not before."""
    with contextlib.suppress(PermissionError):	# without CAP_SYS_RESOURCE: as it is
        resource.prlimit(pid, resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))
    places = {directory, os.readlink(f"/proc/{pid}/cwd"), core_directory() or directory}
    before = {n for p in places for n in here(p)}
    os.kill(pid, signal.SIGSEGV)
    time.sleep(0.5)
    new = {n for p in places for n in here(p)} - before
    return [n for n in new if open(n, "rb").read(4) == b"\x7fELF"]


def core_directory():
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as f:
        pattern = f.read().strip()
    return None if pattern.startswith("|") else os.path.dirname(pattern)


def here(directory):
    return {os.path.join(directory, n) for n in os.listdir(directory)
            if os.path.isfile(os.path.join(directory, n))}


def test_no_core_file_can_be_made(instance, used, tmp_path):
    """Not dumpable: /proc says so by whom its files belong to; and a crash with
    no limit leaves no file, where that of another process of the same user
    does."""
    uid = instance.uid("vault")
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    os.chmod(tmp_path, 0o777)
    os.chmod(tmp_path.parent, 0o755)
    other = subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                              "sleep", "600"], cwd=tmp_path)
    until(lambda: os.stat(f"/proc/{other.pid}/environ").st_uid == uid)
    made = crash(other.pid, str(tmp_path))
    other.wait()
    for core in made:
        os.unlink(core)
    for name in ("admind-vault", "admind", "admind-http", "sandboxd"):
        pid = instance.service_pid(name)
        assert os.stat(f"/proc/{pid}/environ").st_uid == 0, name
        assert not crash(pid, str(tmp_path)), name
        until(lambda: instance.service_pid(name) not in (None, pid), say=lambda: name)
    # Where the kernel hands dumps to a program no file shows it either way.
    assert made or core_directory() is None or hard == 0
