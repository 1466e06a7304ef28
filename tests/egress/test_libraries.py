"""Unmodified libraries, and mcpbox.http, from tools in a sandbox: names, TLS end
to end, threads and event loops. The libraries are Debian's packages, copied into
the module store as an administrator would put them there."""
import json
import os
import shutil
import ssl
import subprocess

import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.instance import SRC
from harness.played import dns as d
from harness.played.upstream import Service

API = "93.184.216.34"
REQUIRES = ["api.example:80", "api.example:443"]


def handle(r):
    if r.path == "/status":
        return 418, {}, {"error": "of the server"}
    if r.path == "/lines":
        return 200, {"Content-Type": "text/plain"}, b"".join(b"line %d\n" % n for n in range(1000))
    if r.path == "/moved":
        return 302, {"Location": "http://api.example/landed"}, b""
    return 200, {}, {"method": r.method, "path": r.path, "body": r.body.decode(), "agent": r.headers.get("user-agent")}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """(chain file, key file, the CA's PEM text) for api.example."""
    top = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=api.example", "-addext", "subjectAltName=DNS:api.example", "-keyout", top / "key",
                    "-out", top / "crt"], check=True, capture_output=True)
    return top / "crt", top / "key", (top / "crt").read_text()


@pytest.fixture(scope="module")
def api(ns, dns, certificate):
    dns.zone["api.example"] = d.Answer(a=[API])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate[0], certificate[1])
    with Service(handle, sock=ns.listen(API, 80)) as plain, Service(handle, sock=ns.listen(API, 443), context=tls):
        yield plain


@pytest.fixture(scope="module")
def libraries(instance, tmp_path_factory):
    """The digest of an entry with requests, httpx, aiohttp and what they import."""
    top = tmp_path_factory.mktemp("libraries")
    said = subprocess.run(["/usr/bin/python3", "-I", "-c", """
import sys, os, json, requests, httpx, aiohttp, anyio._backends._asyncio
found = {m.split('.')[0] for m, v in list(sys.modules.items())
         if '/dist-packages/' in (getattr(v, '__file__', None) or '')}
print(json.dumps(sorted({os.path.join(os.path.dirname(sys.modules['requests'].__path__[0]), m) for m in found})))
"""], capture_output=True, text=True, check=True)
    for path in json.loads(said.stdout):
        if os.path.isdir(path):
            shutil.copytree(path, top / os.path.basename(path), ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
        else:
            shutil.copy(path + ".py", top)
    return subprocess.run([os.path.join(SRC, "contrib", "module-add"), os.path.join(instance.state, "modules"), str(top)],
                          capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def run(instance, api):
    """run(code, modules=[...], **arguments) -> the reply, of a tool made for it."""
    count = iter(range(100))
    granted = []
    with Client(instance.address) as c:
        def call(code, modules=(), requires=REQUIRES, **arguments):
            name = f"t{next(count)}"
            tool = flow.draft(c, "libs", name, code if not modules else "def main(): pass", requires=requires)
            for m in modules:
                instance.ctl("modules", "grant", f"libs__{name}", m)
            if modules:
                c.manage("mcpbox_update_tool", tool_id=tool, python_code=code, modules=list(modules))
            if not granted:
                for port in (80, 443):
                    c.manage("mcpbox_request_network_access", tool_id=tool, host="api.example", port=port,
                             justification="For the tests.")
                for item in instance.ctl_json("approvals", "list", "--kind", "network")["items"]:
                    shown = instance.ctl_json("approvals", "show", item["id"])
                    instance.ctl("approvals", "approve", item["id"], "--hash", shown["hash"])
                granted.append(True)
            c.manage("mcpbox_request_publish", tool_id=tool)
            item = flow.pending(instance, name)
            instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
            return c.call(f"libs__{name}", arguments)
        yield call


def value(r):
    assert not r.result.get("isError"), text(r)
    return json.loads(text(r))


def failed(r, *says):
    assert r.result.get("isError"), text(r)
    assert all(s in text(r) for s in says), text(r)
    return r.result["_meta"]["mcpbox/failure"]["failure_mode"]


# ---- mcpbox.http ----

def test_mcpbox_http(run):
    got = value(run("""
import mcpbox
def main() -> dict:
    a = mcpbox.http.get("http://api.example/a", params={"x": 1})
    b = mcpbox.http.post("http://api.example/b", json={"y": [1]})
    with mcpbox.http.stream("GET", "http://api.example/lines") as r:
        lines = sum(1 for _ in r.iter_lines())
    c = mcpbox.http.get("http://api.example/moved")
    return {"a": a.json()["path"], "b": b.json()["body"], "lines": lines, "c": c.json()["path"], "agent": a.json()["agent"]}
"""))
    assert got == {"a": "/a", "b": '{"y":[1]}', "lines": 1000, "c": "/landed", "agent": "mcpbox"}


def test_mcpbox_http_awaited(run):
    got = value(run("""
import asyncio, mcpbox
async def main() -> dict:
    answers = await asyncio.gather(*[mcpbox.http.get(f"http://api.example/{n}") for n in range(8)])
    lines = []
    async with mcpbox.http.stream("GET", "http://api.example/lines") as r:
        async for line in r.iter_lines():
            lines.append(line)
    return {"paths": [a.json()["path"] for a in answers], "last": lines[-1]}
"""))
    assert got == {"paths": [f"/{n}" for n in range(8)], "last": "line 999"}


def test_status_and_body_are_in_the_calls_error(run):
    r = run("import mcpbox\ndef main():\n    mcpbox.http.get('http://api.example/status').raise_for_status()\n")
    assert failed(r, "StatusError: HTTP 418", "of the server", "line 3") == "upstream_error"


def test_what_was_not_granted_says_what_to_do(run):
    for url in ("http://other.example/", "http://api.example:8080/", "http://127.0.0.1/"):
        r = run(f"import mcpbox\ndef main():\n    return mcpbox.http.get({url!r}).text\n")
        assert failed(r) == "missing_grant", text(r)
        assert "mcpbox_request_network_access" in text(r) or "127.0.0.1" in text(r)


def test_a_tool_that_declares_nothing_has_no_network(run):
    r = run("import mcpbox\ndef main():\n    return mcpbox.http.get('http://api.example/').text\n", requires=[])
    assert failed(r, "requires") == "upstream_error"
    assert "whether the host is in requires and granted" in r.result["_meta"]["mcpbox/failure"]["fix"]


def test_tls_by_mcpbox_http(run, certificate):
    r = run("import mcpbox\ndef main():\n    return mcpbox.http.get('https://api.example/').text\n")
    assert "certificate is refused" in text(r) and failed(r) == "upstream_error"     # its CA is nobody's here
    assert value(run("""
import mcpbox, mcpbox_http, ssl
def main(ca: str) -> dict:
    context = ssl.create_default_context(cadata=ca)
    r = mcpbox_http.request("GET", "https://api.example/tls", timeout=10, max_bytes=10000, context=context)
    import json
    return json.loads(r.body)
""", ca=certificate[2]))["path"] == "/tls"


# ---- the standard library ----

def test_urllib(run, certificate):
    got = value(run("""
import json, ssl, urllib.request, urllib.error
def main(ca: str) -> dict:
    plain = json.load(urllib.request.urlopen("http://api.example/plain", timeout=10))
    context = ssl.create_default_context(cadata=ca)
    tls = json.load(urllib.request.urlopen("https://api.example/tls", timeout=10, context=context))
    try:
        urllib.request.urlopen("http://api.example/status")
    except urllib.error.HTTPError as e:
        status = e.code
    return {"plain": plain["path"], "tls": tls["path"], "status": status}
""", ca=certificate[2]))
    assert got == {"plain": "/plain", "tls": "/tls", "status": 418}
    r = run("import urllib.request\ndef main():\n    urllib.request.urlopen('http://api.example/status')\n")
    assert failed(r, "HTTP status: 418", "of the server") == "exception"


def test_asyncio_streams(run):
    assert value(run("""
import asyncio
async def main() -> dict:
    reader, writer = await asyncio.open_connection("api.example", 80)
    writer.write(b"GET /s HTTP/1.1\\r\\nHost: api.example\\r\\nConnection: close\\r\\n\\r\\n")
    data = await reader.read()
    writer.close()
    return {"ok": data.startswith(b"HTTP/1.1 200")}
"""))["ok"]


# ---- others ----

@pytest.fixture(scope="module")
def granted(instance, libraries):
    instance.ctl("modules", "add", "libraries", "1.0", libraries)
    return ["libraries==1.0"]


def test_requests(run, granted):
    got = value(run("""
import requests
def main() -> dict:
    with requests.Session() as s:
        a = s.get("http://api.example/a", timeout=10).json()
        b = s.post("http://api.example/b", json=[1], timeout=10).json()
        c = s.get("http://api.example/moved", timeout=10).json()
    return {"a": a["path"], "b": b["body"], "c": c["path"]}
""", granted))
    assert got == {"a": "/a", "b": "[1]", "c": "/landed"}
    r = run("import requests\ndef main():\n    requests.get('http://api.example/status').raise_for_status()\n", granted)
    assert failed(r, "HTTPError", "HTTP status: 418", "of the server") == "exception"
    r = run("import requests\ndef main():\n    requests.get('http://other.example/')\n", granted)
    assert failed(r) == "missing_grant"


def test_httpx(run, granted):
    got = value(run("""
import asyncio, httpx
async def main() -> dict:
    async with httpx.AsyncClient(verify=False) as c:
        answers = await asyncio.gather(*[c.get(f"http://api.example/{n}") for n in range(4)])
    with httpx.Client(verify=False) as c:
        b = c.post("http://api.example/b", json={"x": 1}).json()
        t = c.get("https://api.example/tls").json()
    return {"paths": [a.json()["path"] for a in answers], "b": b["body"].replace(" ", ""), "tls": t["path"]}
""", granted))
    assert got == {"paths": ["/0", "/1", "/2", "/3"], "b": '{"x":1}', "tls": "/tls"}


def test_aiohttp(run, granted):
    got = value(run("""
import asyncio, aiohttp
async def main() -> dict:
    async with aiohttp.ClientSession() as s:
        async def one(n):
            async with s.get(f"http://api.example/{n}") as r:
                return (await r.json())["path"]
        paths = await asyncio.gather(*[one(n) for n in range(4)])
        async with s.get("https://api.example/tls", ssl=False) as r:
            tls = (await r.json())["path"]
    return {"paths": paths, "tls": tls}
""", granted))
    assert got == {"paths": ["/0", "/1", "/2", "/3"], "tls": "/tls"}
