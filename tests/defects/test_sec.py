"""The security findings of the system this one replaces, by their SEC numbers:
those whose text is known and that have a counterpart here (docs/THREATS.md
lists the others, and why). Each first line says what the old system did."""
import concurrent.futures
import http.client
import json
import os
import socket
import subprocess
import threading
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import LEGACY, Client, request, text
from harness.clients.rest import Rest
from harness.patience import patience

SERVER = "sec"
MARK = "def main():\n    return 'IT RAN'\n"


def unique(prefix="t"):
    return prefix + uuid.uuid4().hex[:10]


def mode(reply):
    assert b"IT RAN" not in reply.raw, reply
    if reply.error:
        return reply.error["data"]["failure_mode"]
    assert reply.result.get("isError"), reply
    return reply.result["_meta"]["mcpbox/failure"]["failure_mode"]


def server_id(mcp, name):
    return next(s["id"] for s in mcp.manage("mcpbox_list_servers", page_size=100)["servers"] if s["name"] == name)


def approve(instance, mcp, tool_id, name):
    mcp.manage("mcpbox_request_publish", tool_id=tool_id)
    item = flow.pending(instance, name)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])


def secret_tool(instance, mcp, server, key, value):
    """A server with one secret, and the exposed name of a tool that shows how long it is."""
    flow.draft(mcp, server, unique(), MARK)
    mcp.manage("mcpbox_create_server_secret", server_id=server_id(mcp, server), key=key)
    instance.ctl("secret", "set", server, key, stdin=value)
    return flow.publish(instance, mcp, server, unique(), "import mcpbox\ndef main():\n"
                        f"    return len(mcpbox.secrets['{key}'])\n", secrets=[key])


def test_sec_001_an_edit_keeps_no_approval(instance, mcp):
    """Old: changed code ran under the old approval."""
    tool = unique()
    tool_id = flow.draft(mcp, SERVER, tool, "def main():\n    return 'approved'\n")
    approve(instance, mcp, tool_id, tool)
    for change in ({"python_code": MARK}, {"description": "Another.", "python_code": MARK}):
        mcp.manage("mcpbox_update_tool", tool_id=tool_id, **change)
        assert mcp.manage("mcpbox_get_tool_status", tool_id=tool_id)["approval_status"] == "draft"
        assert text(mcp.call(f"{SERVER}__{tool}")) == "approved"
        assert text(mcp.call("mcpbox_call_tool", {"name": f"{SERVER}__{tool}", "arguments": {}})) == "approved"


def test_sec_002_a_rollback_keeps_no_approval(instance, mcp):
    """Old: rolling back to any version kept the tool approved."""
    tool = unique()
    tool_id = flow.draft(mcp, SERVER, tool, MARK)
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code="def main():\n    return 'approved'\n")
    approve(instance, mcp, tool_id, tool)
    mcp.manage("mcpbox_rollback_tool", tool_id=tool_id, version=1)
    assert mcp.manage("mcpbox_get_tool_status", tool_id=tool_id)["approval_status"] == "draft"
    assert text(mcp.call(f"{SERVER}__{tool}")) == "approved"


def test_sec_004_any_module_may_be_imported_and_helps_nobody(instance, mcp):
    """Old: no list of modules that nobody could allow; os and ctypes meant the container."""
    name = flow.publish(instance, mcp, SERVER, unique(), "import os, ctypes, socket, subprocess\ndef main():\n"
                        "    out = []\n"
                        "    for what in (lambda: os.listdir('/home'), lambda: open('/etc/shadow'),\n"
                        "                 lambda: subprocess.run(['/bin/sh', '-c', 'true']), lambda: os.mkdir('/etc/x'),\n"
                        "                 lambda: socket.socket().bind(('127.0.0.1', 0))):\n"
                        "        try:\n            what()\n            out.append('done')\n"
                        "        except OSError as e:\n            out.append('refused')\n"
                        "    out.append(ctypes.CDLL(None).setuid(0))\n    return out\n")
    assert json.loads(text(mcp.call(name))) == ["refused"] * 5 + [-1]


def test_sec_005_a_stored_value_is_bound_to_its_place(instance, mcp):
    """Old: one secret's ciphertext put into another's row was opened."""
    one, two = unique("s"), unique("s")
    first = secret_tool(instance, mcp, one, "KEY", "a" * 11)
    second = secret_tool(instance, mcp, two, "KEY", "b" * 22)
    assert (text(mcp.call(first)), text(mcp.call(second))) == ("11", "22")
    value = instance.psql("SELECT encode(k.value, 'hex') FROM mcpbox.server_secrets k"
                          f" JOIN mcpbox.servers s ON s.id = k.server_id WHERE s.name = '{two}'")[0][0]
    instance.psql("SET session_replication_role = replica; UPDATE mcpbox.server_secrets SET value ="
                  f" decode('{value}', 'hex') WHERE server_id = (SELECT id FROM mcpbox.servers WHERE name = '{one}')")
    # what was remembered of the version is forgotten
    for verb in ("stop", "start"):
        mcp.manage(f"mcpbox_{verb}_server", server_id=server_id(mcp, one))
    r = mcp.call(first)
    assert r.error or r.result["isError"], r
    assert "22" not in json.dumps(r.result or {}), r
    assert text(mcp.call(second)) == "22"


def test_sec_006_output_is_the_calls_own(instance, mcp):
    """Old: two calls at once shared one captured output."""
    name = flow.publish(instance, mcp, SERVER, unique(), "import time\ndef main(who: str):\n"
                        "    for _ in range(20):\n        print(who)\n        time.sleep(0.01)\n    return who\n")

    def one(who):
        with Client(instance.address) as c:
            return who, c.call(name, {"who": who})

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for who, r in pool.map(one, [f"w{i}w" for i in range(16)]):
            others = [f"w{i}w" for i in range(16) if f"w{i}w" != who]
            assert who.encode() in r.raw and not any(o.encode() in r.raw for o in others), r


def test_sec_008_without_a_grant_nothing_is_reached(instance, mcp):
    """Old: no list of hosts meant every host."""
    with socket.create_server(("127.0.0.1", 0)) as canary:
        port = canary.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=patience(5)):
            canary.accept()[0].close()      # it can be reached from outside
        canary.settimeout(0.3)
        name = flow.publish(instance, mcp, SERVER, unique(), "import socket\ndef main(port: int):\n    try:\n"
                            "        socket.create_connection(('127.0.0.1', port), timeout=2)\n        return 'reached'\n"
                            "    except OSError as e:\n        return 'refused'\n")
        assert text(mcp.call(name, {"port": port})) == "refused"
        with pytest.raises(TimeoutError):
            canary.accept()


def test_sec_009_023_a_logout_ends_everything(instance):
    """Old: log-out happened in the browser only; then a refresh token outlived it."""
    r = Rest(lambda: instance.address("admind-http"))
    status, headers, value = r.login("admin", instance.password)
    assert status == 200
    assert not [k for k in value if "refresh" in k or k == "access_token"], value
    old = r.cookie, r.csrf
    # What a browser keeps for longer opens no door by itself.
    device = [c.split(";")[0] for c in headers["set-cookie"].split("\n") if not c.startswith("mcpbox_session=")]
    assert r.request("POST", "/api/logout", {})[0] in (200, 204)
    for cookie in [old[0], *device]:
        r.cookie, r.csrf = cookie, old[1]
        assert r.get("/api/me")[0] == 401
        assert r.request("POST", "/api/servers", {"name": unique("s")})[0] == 401


def test_sec_010_a_request_needs_the_logins_own_token(instance, rest):
    """Old: the comparison of the CSRF token told by its time; ours is constant, and nothing goes without."""
    other = Rest(rest.where)
    assert other.login("admin", instance.password)[0] == 200
    for csrf in (None, "", other.csrf, rest.csrf[:-1], rest.csrf + "a", rest.csrf.swapcase()):
        for method, body in (("POST", {"name": unique("s")}), ("GET", None)):
            status, _, value = rest.request(method, "/api/servers", body, {"X-CSRF-Token": csrf})
            assert status == 401 and value["failure_mode"] == "unauthenticated", (csrf, status, value)
    assert rest.request("POST", "/api/servers", {"name": unique("s")})[0] in (200, 201)


def test_sec_011_logins_come_from_no_key(instance):
    """Old: logins were signed by a key made of the encryption key, so who had one forged the other."""
    where = lambda: instance.address("admind-http")     # noqa: E731
    cookies = set()
    for _ in range(4):
        r = Rest(where)
        assert r.login("admin", instance.password)[0] == 200
        cookies.add(r.cookie.split("=", 1)[1])
        value = r.cookie.split("=", 1)[1]
        assert len(value) == len(r.csrf) == 43 and "." not in value + r.csrf    # random bytes, nothing signed
        half = r.cookie[:-1] + ("A" if r.cookie[-1] != "A" else "B")
        r.cookie = half
        assert r.get("/api/me")[0] == 401
    assert len(cookies) == 4


def test_sec_013_no_credential_among_the_headers_of_cors(instance):
    """Old: the service token's header was offered to every browser origin."""
    for path, where in (("/mcp", instance.address()), ("/api/servers", instance.address("admind-http"))):
        c = http.client.HTTPConnection(*where, timeout=patience(10))
        c.request("OPTIONS", path, headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST",
                                            "Access-Control-Request-Headers": "x-mcpbox-service-token, authorization"})
        r = c.getresponse()
        r.read()
        offered = {k.lower(): v for k, v in r.getheaders()}
        assert "access-control-allow-origin" not in offered, offered
        assert "service-token" not in offered.get("access-control-allow-headers", "").lower(), offered
        c.close()


def test_sec_014_credentials_and_people_are_in_no_log(instance, rest):
    """Old: e-mail addresses in the worker's log."""
    marked = "marked-" + uuid.uuid4().hex
    request(instance.address(), body={"jsonrpc": "2.0", "id": 1, "method": "ping"},
            headers={"Authorization": "Bearer " + marked, "X-MCPbox-User-Email": marked + "@example.org"})
    request(instance.run("gatewayd-tunnel", "mcp.sock"), body={"jsonrpc": "2.0", "id": 1, "method": "ping"},
            headers={"Authorization": "Bearer " + marked, "X-MCPbox-User-Email": marked + "@example.org"})
    Rest(rest.where).login("admin", marked)
    log = os.path.join(instance.state, "log")
    seen = 0
    for root, _, files in os.walk(log):
        for f in files:
            with open(os.path.join(root, f), "rb") as h:
                data = h.read()
            seen += len(data)
            assert marked.encode() not in data, f
    assert seen > 1000


def test_sec_015_a_call_says_nothing_about_its_own_confinement(mcp):
    """Old: /execute took the list of allowed modules from its caller."""
    tool_id = flow.draft(mcp, SERVER, unique(), MARK)
    for more in ({"modules": ["x"]}, {"allowed_modules": ["os"]}, {"limits": {"timeout_ms": 600000}},
                 {"secrets": ["KEY"]}, {"allowed_hosts": ["*"]}):
        r = mcp.call("mcpbox_test_code", {"tool_id": tool_id, "arguments": {}, **more})
        assert mode(r) == "invalid_arguments", r


@pytest.mark.parametrize("header", ["X-MCPbox-User-Email", "X-MCPbox-Service-Token", "X-MCPbox-Auth-Method",
                                    "X-MCPbox-Anything", "X-Forwarded-User"])
def test_sec_021_headers_that_claim_somebody_are_nobody(instance, header):
    """Old: a list of header names was stripped, others passed: here none means anything, on either listener."""
    tunnel = instance.run("gatewayd-tunnel", "mcp.sock")
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    r = request(tunnel, body=body, headers={header: "admin@example.org"})
    assert r.status == 401 and "www-authenticate" in r.headers, r
    made = instance.ctl_json("tokens", "create", unique("r"), "scopes=tools:read", "listeners=tunnel")
    r = request(tunnel, body=body, headers={header: "admin@example.org", "Authorization": "Bearer " + made["token"]})
    assert r.status == 200 and "mcpbox_create_tool" not in [t["name"] for t in r.result["tools"]], r
    assert request(instance.address(), body=body, headers={header: "admin@example.org"}).status == 200


@pytest.mark.parametrize("value", ["admin@example.org", "a.b.c", ""])
def test_sec_021_an_assertion_that_nobody_reads_lets_nobody_in(instance, value):
    """A signed token's field can't be overlooked: it makes nobody `local`, and spoils a token beside it. An API
    token says by itself who comes, with its own rights and no others: Access may be a second lock before it."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    made = instance.ctl_json("tokens", "create", unique("r"), "scopes=tools:read", "listeners=local,tunnel")
    for where in (instance.run("gatewayd-tunnel", "mcp.sock"), instance.address()):
        r = request(where, body=body, headers={"Cf-Access-Jwt-Assertion": value})
        assert r.status == 401 and "www-authenticate" in r.headers, r
        both = {"Cf-Access-Jwt-Assertion": value, "Authorization": "Bearer " + made["token"]}
        r = request(where, body=body, headers=both)
        assert r.status == 200 and "mcpbox_create_tool" not in [t["name"] for t in r.result["tools"]], r
        for other in ("x" + made["token"], "a.b.c"):
            r = request(where, body=body, headers={**both, "Authorization": "Bearer " + other})
            assert r.status == 400 and r.error["data"]["failure_mode"] == "invalid_request", r


def test_sec_025_a_secrets_value_is_bounded(instance, mcp, rest):
    """Old: values of any length."""
    s = unique("s")
    name = secret_tool(instance, mcp, s, "KEY", "x" * 10000)
    assert text(mcp.call(name)) == "10000"
    assert instance.ctl("secret", "set", s, "KEY", check=False, stdin="x" * 10001).returncode != 0
    status, _, value = rest.request("PUT", f"/api/servers/{s}/secrets/KEY", {"value": "x" * 10001})
    assert status in (400, 413) and value["failure_mode"], (status, value)
    assert text(mcp.call(name)) == "10000"


def test_sec_026_tracebacks_are_the_tools_own(instance, mcp):
    """Old: __traceback__ led to the frames of the sandbox."""
    name = flow.publish(instance, mcp, SERVER, unique(), "def main():\n    try:\n        1 / 0\n"
                        "    except ZeroDivisionError as e:\n        f, files = e.__traceback__.tb_frame, set()\n"
                        "        while f:\n            files.add(f.f_code.co_filename)\n"
                        "            assert not any('secret' in n.lower() for n in f.f_locals), list(f.f_locals)\n"
                        "            f = f.f_back\n        raise RuntimeError(sorted(files))\n")
    r = mcp.call(name)
    said = text(r)
    assert "RuntimeError" in said and "line" in said
    assert "harness" not in said and "/usr/libexec" not in said, said


def test_sec_027_every_answer_has_the_headers(instance, rest):
    """Old: nginx lost its security headers in nested locations."""
    anonymous = Rest(rest.where)
    for who, method, path in ((rest, "GET", "/api/servers"), (rest, "GET", "/api/none"), (anonymous, "GET", "/api/servers"),
                              (rest, "DELETE", "/api/me"), (anonymous, "GET", "/health"),
                              (anonymous, "POST", "/api/login")):
        _, headers, _ = who.request(method, path, {} if method == "POST" else None)
        for name, value in (("x-content-type-options", "nosniff"), ("x-frame-options", "DENY"),
                            ("cache-control", "no-store"), ("referrer-policy", "no-referrer")):
            assert headers.get(name) == value, (method, path, headers)
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in headers and "x-powered-by" not in headers


def test_sec_028_no_description_for_strangers(instance):
    """Old: /docs and /openapi.json were open to all."""
    anonymous = Rest(lambda: instance.address("admind-http"))
    for path in ("/docs", "/redoc", "/openapi.json", "/openapi.yaml", "/api/openapi.json", "/api/docs"):
        assert anonymous.get(path)[0] in (401, 404), path


@pytest.mark.parametrize("name", ["../../x; rm", "-r", "a b", "http://evil/x.whl", "a" * 300, "x==1; os_name", ".", "", "x[extra]"])
def test_sec_029_names_of_modules_are_judged(mcp, name):
    """Old: `../../x; rm` was taken by the MCP road."""
    tool_id = flow.draft(mcp, SERVER, unique(), MARK)
    r = mcp.call("mcpbox_request_module", {"tool_id": tool_id, "module_name": name, "justification": "j"})
    assert mode(r) in ("invalid_arguments", "invalid_params"), r
    assert not mcp.manage("mcpbox_get_tool_status", tool_id=tool_id)["module_requests"]


def test_sec_039_who_may_is_asked_at_the_listener(instance):
    """Old: the gateway believed the worker's word about who was allowed."""
    tunnel = instance.run("gatewayd-tunnel", "mcp.sock")
    made = instance.ctl_json("tokens", "create", unique("r"), "scopes=tools:read,tools:call", "listeners=tunnel")
    with Client(lambda: tunnel, version=LEGACY, token=made["token"]) as c:
        assert c.tools() is not None
        instance.ctl("tokens", "revoke", made["name"])
        r = c.request("tools/list")
        assert r.status == 401, r


def test_sec_f02_many_at_once_use_an_ended_login(instance):
    """Old (F-02): what ended a login was known to one worker of several."""
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login("admin", instance.password)[0] == 200
    cookie, csrf = r.cookie, r.csrf
    seen, stop = [], threading.Event()

    def use():
        mine = Rest(r.where)
        mine.cookie, mine.csrf = cookie, csrf
        while not stop.is_set():
            begun = ended.is_set()
            seen.append((begun, mine.get("/api/me")[0]))

    ended = threading.Event()
    threads = [threading.Thread(target=use) for _ in range(4)]
    for t in threads:
        t.start()
    while not seen:
        pass
    assert r.request("POST", "/api/logout", {})[0] in (200, 204)
    ended.set()
    mark = len(seen)
    while len(seen) < mark + 40:
        pass
    stop.set()
    for t in threads:
        t.join()
    assert {s for after, s in seen if after} == {401}, seen[-20:]


def test_sec_f05_0_0_0_0_is_no_host(mcp):
    """Old (F-05): 0.0.0.0/8 was missing from the list of addresses. Link-local can't even be asked for, loopback only
    as that address and port (tests/egress tries what egress opens)."""
    tool_id = flow.draft(mcp, SERVER, unique(), MARK)
    for host in ("0.0.0.0", "0.1.2.3", "localhost", "169.254.169.254", "fe80::1", "::ffff:127.0.0.1"):
        r = mcp.call("mcpbox_request_network_access", {"tool_id": tool_id, "host": host, "port": 443,
                                                      "justification": "j"})
        assert r.result and r.result.get("isError"), (host, r)
    for host in ("127.0.0.1", "::1"):
        r = mcp.call("mcpbox_request_network_access", {"tool_id": tool_id, "host": host, "justification": "j"})
        assert r.result and r.result.get("isError"), (host, r)


def test_sec_f06_a_body_is_bounded_without_a_length(instance):
    """Old (F-06): the 1 MiB limit read Content-Length, which a chunked body has not."""
    with socket.create_connection(instance.address(), timeout=patience(20)) as s:
        s.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  b"Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(80):
                s.sendall(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        except OSError:
            pass        # it was closed while we wrote
        try:
            got = s.recv(4096)
        except OSError:
            got = b"HTTP/1.1 413"
    assert got.split(b" ")[1:2] in ([b"413"], [b"400"], [b"411"], [b"501"]), got[:200]


def test_sec_f07_an_unsigned_import_is_refused(instance, tmp_path):
    """Old (F-07): exports without a signature were imported."""
    exported = subprocess.run([os.path.join(instance.state, "bin", "mcpboxctl"), "export"], capture_output=True,
                              check=True, timeout=patience(60)).stdout
    assert len(exported) > 100
    lines = exported.decode().splitlines()
    for forged in ("\n".join(lines[:-1]) + "\n", exported.decode().replace("sec", "soc"), "{}\n", ""):
        path = tmp_path / "forged"
        path.write_text(forged)
        r = instance.ctl("import", str(path), check=False)
        assert r.returncode == 1 or r.returncode == 2, r
        assert r.stderr, r
