"""mcpboxctl remote check: through a real nginx with TLS of a test's authority, to real daemons, with an issuer on
loopback. The right way first; then each fault has its own sentence at its own step, and all other steps are as they
were."""
import contextlib
import json
import os
import shutil
import socket
import ssl
import threading

import pytest

from harness.clients.signed_token import RESOURCE, Person
from harness.instance import Instance
from harness.net.authority import Authority
from harness.net.nginx import Nginx
from harness.net.proxy import free_port
from harness.patience import until
from harness.played.issuer import PlayedIssuer

HOST = "mcp.example.org"
MCP = "\tlocation ~ ^/mcp(/[a-z][a-z0-9-]*)?$ {\n"
METADATA = "\tlocation ~ ^/\\.well-known/oauth-protected-resource(/mcp(/[a-z][a-z0-9-]*)?)?$ {\n"
STEPS = ["name", "certificate", "metadata", "metadata", "challenge", "authorization", "issuer", "keys", "clock",
         "listener", "document", "call"]


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


@pytest.fixture(scope="module")
def authority(instance):
    path = os.path.join(instance.parent, "authority")
    os.mkdir(path)
    os.chmod(path, 0o755)
    return Authority(path)


@pytest.fixture(scope="module")
def issuer(instance, authority):
    """Its remote is set up by the wizard, which also writes nginx's file."""
    i = PlayedIssuer()
    keys = os.path.join(authority.folder, "keys.json")
    with open(keys, "w", encoding="utf-8") as f:
        json.dump(i.entry()["jwks"], f)
    instance.ctl("remote", "add", "oidc", "home", "--resource", RESOURCE, "--issuer", i.url, "--jwks", keys, "--email",
                 "ann@example.org", "--out", authority.folder, "--yes")
    yield i
    i.close()


@pytest.fixture(scope="module")
def good(authority):
    return authority.of(HOST)


@contextlib.contextmanager
def proxy(instance, authority, certificate, *replace):
    """nginx by the file that `remote add` wrote, with these changes."""
    site = os.path.join(authority.folder, "home.nginx.conf")
    n = Nginx(instance, replace, name="nginx", site=site, tls=certificate)
    try:
        yield n
    finally:
        n.close()
        shutil.rmtree(n.dir)


class Way:
    def __init__(self, instance, authority):
        self.instance, self.authority = instance, authority

    def check(self, port, *more, as_json=True):
        return self.instance.ctl("remote", "check", "home", "--from", f"127.0.0.1:{port}", "--ca", self.authority.path,
                                 *more, *(["--json"] if as_json else []), check=False)

    def steps(self, port, *more, code=1):
        r = self.check(port, *more)
        assert r.returncode == code, r.stdout + r.stderr
        got = json.loads(r.stdout)
        assert got["ok"] == (code == 0) and got["name"] == "home" and got["url"] == RESOURCE
        for s in got["steps"]:
            assert bool(s["fix"]) == (s["state"] == "wrong"), s
        return got["steps"]

    def wrong(self, port, *more):
        """{step: (finding, remedy)} of the wrong ones."""
        return {s["step"]: (s["found"], s["fix"]) for s in self.steps(port, *more) if s["state"] == "wrong"}


@pytest.fixture
def way(instance, authority, issuer):
    return Way(instance, authority)


@pytest.fixture
def token(instance, issuer, tmp_path):
    path = tmp_path / "token"
    path.write_text(Person(instance, issuer, "ann", email="ann@example.org", email_verified=True).token() + "\n")
    return str(path)


def test_the_right_way(instance, authority, good, way, issuer, token):
    with proxy(instance, authority, good) as n:
        steps = way.steps(n.port, "--token", token, code=0)
        assert [s["step"] for s in steps] == STEPS and {s["state"] for s in steps} == {"ok"}, steps
        r = way.check(n.port, "--token", token, as_json=False)
        assert r.returncode == 0 and r.stderr == ""
        lines = r.stdout.splitlines()
        assert lines[0] == f"home (oidc): {RESOURCE}" and lines[-1] == "The way in is right.", r.stdout
        assert lines[1] == f"ok     name           {HOST} is 127.0.0.1", r.stdout
        assert "ok     call           initialize and tools/list, with 2 tools" in lines, r.stdout
        assert all(len(x) <= 80 for x in lines), r.stdout
        # Without a token nothing is called, and that is no fault.
        last = way.steps(n.port, code=0)[-1]
        assert (last["state"], last["found"]) == ("unseen", "nothing was called: --token FILE does")


FAULTS = {
    "paths": ([(METADATA, "\tlocation = /nothing {\n")],
              {"metadata": "/.well-known/oauth-protected-resource answers 404: the proxy does not pass it"}),
    "authorization": ([(MCP, MCP + '\t\tproxy_set_header Authorization "";\n')],
                      {"authorization": "a token gets the answer of a request without one: the proxy strips"
                                        " Authorization"}),
    "challenge": ([(MCP, MCP + "\t\tproxy_hide_header WWW-Authenticate;\n")],
                  {"challenge": "POST /mcp answers 401 without WWW-Authenticate: the proxy strips it"}),
    "login": ([(MCP, MCP + "\t\treturn 302 https://login.example.org/;\n")],
              {"challenge": "POST /mcp answers 302, and sends clients to https://login.example.org/",
               "authorization": "POST /mcp with a token answers 302, and sends clients to https://login.example.org/"}),
    "page": ([(METADATA, METADATA + "\t\tdefault_type text/html;\n\t\treturn 200 '<html>Sign in</html>';\n")],
             {"metadata": "/.well-known/oauth-protected-resource answers 200 with a web page: something else than"
                          " mcpbox is there"}),
    "resource": ([(METADATA, METADATA + "\t\tdefault_type application/json;\n"
                   "\t\treturn 200 '{\"resource\":\"https://mcp.example.org/mcp/\"}';\n")],
                 {"metadata": "/.well-known/oauth-protected-resource says the resource https://mcp.example.org/mcp/,"
                              f" not {RESOURCE}"}),
    "open": ([(MCP, MCP + "\t\treturn 200 '{}';\n")],
             {"challenge": "POST /mcp answers without a credential: everybody is let in",
              "authorization": "a bad token gets 200 instead of 401"}),
    "firewall": ([(MCP, MCP + "\t\treturn 403;\n")],
                 {"challenge": "POST /mcp without a credential answers 403 instead of 401",
                  "authorization": "a bad token gets 403 instead of 401"})}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_proxy(instance, authority, good, way, fault):
    replace, says = FAULTS[fault]
    with proxy(instance, authority, good, *replace) as n:
        wrong = way.wrong(n.port)
    assert {step: found for step, (found, _) in wrong.items()} == says


def test_a_fault_on_the_screen(instance, authority, good, way):
    with proxy(instance, authority, good, *FAULTS["authorization"][0]) as n:
        r = way.check(n.port, as_json=False)
    assert r.returncode == 1
    assert ("WRONG  authorization  a token gets the answer of a request without one: the\n"
            "                      proxy strips Authorization\n"
            "                      The proxy must pass the field Authorization of requests as\n"
            "                      it came (no proxy_set_header Authorization, no auth_basic,\n"
            "                      no login of its own).\n") in r.stdout, r.stdout
    assert r.stdout.endswith("\n1 step is wrong. Begin with the first.\n"), r.stdout


@pytest.mark.parametrize("ends, says", [(-1, "the certificate ended on 20"), (10, "the certificate ends on 20")])
def test_a_certificate(instance, authority, way, ends, says):
    with proxy(instance, authority, authority.of(HOST, ends=ends)) as n:
        steps = way.steps(n.port)
    (found, fix), = [(s["found"], s["fix"]) for s in steps if s["state"] == "wrong"]
    assert says in found and "Renew it" in fix
    if ends < 0:	# nothing is asked through it
        assert [s["state"] for s in steps[:3]] == ["ok", "wrong", "unseen"] and steps[3]["step"] == "issuer", steps


def test_a_certificate_of_another_name(instance, authority, way):
    with proxy(instance, authority, authority.of("other.example.org")) as n:
        wrong = way.wrong(n.port)
    assert list(wrong) == ["certificate"] and wrong["certificate"][0].startswith("TLS fails: "), wrong


def test_nothing_is_there(way):
    wrong = way.wrong(free_port())
    assert list(wrong) == ["name"] and "nothing accepts the connection" in wrong["name"][0], wrong


def test_faults_of_the_issuer(instance, authority, good, way, issuer):
    with proxy(instance, authority, good) as n:
        key = issuer.key
        issuer.rotate()
        (found, fix), = way.wrong(n.port).values()
        assert "the issuer changed its keys: 1 (kid k) not in the access document" in found
        assert "mcpboxctl access show, access set FILE" in fix
        issuer.key = key
        for member, value, says in (
                ("issuer", issuer.url + "/", f"the issuer says it is {issuer.url}/, not {issuer.url}"),
                ("code_challenge_methods_supported", ["plain"], "do not name code_challenge_methods_supported S256")):
            issuer.metadata = {member: value}
            wrong = way.wrong(n.port)
            assert list(wrong) == ["issuer"] and says in wrong["issuer"][0], wrong
        # It chooses no address but https, or loopback while it is there itself.
        for url in ("http://127.0.0.1.example.org/keys", "file:///etc/passwd", "http://169.254.169.254/"):
            issuer.metadata = {"jwks_uri": url}
            wrong = way.wrong(n.port)
            assert list(wrong) == ["keys"] and "name no address of keys that can be asked" in wrong["keys"][0], wrong
        issuer.metadata = {}
        issuer.ahead = 3600
        wrong = way.wrong(n.port)
        assert list(wrong) == ["clock"] and " s behind the other side's" in wrong["clock"][0], wrong
        issuer.ahead = 0
        assert way.steps(n.port, code=0)


def test_a_dead_gateway(instance, authority, good, way):
    with proxy(instance, authority, good) as n:
        service = os.path.join(instance.state, "service", "gatewayd-tunnel")
        assert instance.control.sv("-w", "60", "down", service) == 0
        try:
            wrong = way.wrong(n.port)
            for step in ("metadata", "challenge", "authorization"):
                assert wrong[step][0].endswith(" answers 502: the proxy does not reach mcpbox"), wrong
            assert "gatewayd-tunnel gives no answer at " in wrong["listener"][0], wrong
            assert "mcpbox-gatewayd@tunnel" in wrong["listener"][1]
        finally:
            assert instance.control.sv("up", service) == 0
            instance.tool("wait")
        until(lambda: way.check(n.port).returncode == 0)


def test_a_token_that_is_refused(instance, authority, good, way, issuer, tmp_path):
    path = tmp_path / "token"
    path.write_text(Person(instance, issuer, "eve", email="eve@example.org", email_verified=True).token())
    with proxy(instance, authority, good) as n:
        wrong = way.wrong(n.port, "--token", str(path))
        assert list(wrong) == ["call"] and "initialize answers 403: " in wrong["call"][0], wrong
    path.write_text("two words")
    r = way.check(1, "--token", str(path))
    assert r.returncode == 1 and "--token is a file with one token" in r.stderr and "two words" not in r.stderr


def test_unknown(instance, way):
    r = instance.ctl("remote", "check", "none", check=False)
    assert r.returncode == 1 and "there is no remote none" in r.stderr


class Hostile:
    """Answers each request with these bytes, by TLS; during() is called while a request is held."""

    def __init__(self, certificate, answer, during=lambda peer: None):
        self.answer, self.during = answer, during
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        self.socket = context.wrap_socket(socket.create_server(("127.0.0.1", 0)), server_side=True)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                s, peer = self.socket.accept()
            except ssl.SSLError:
                continue
            except OSError:
                return
            with s, contextlib.suppress(OSError):
                s.recv(65536)
                self.during(peer)
                s.sendall(self.answer)

    def close(self):
        self.socket.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"


@pytest.mark.parametrize("answer", [
    b"", b"\0" * 100, b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 200_000,
    HEAD + b"\r\n" + b'{"resource":"' + b"\x1b[2J\x1b]0;x\x07" * 50 + b'"}',
    HEAD + b"\r\n" + b'{"resource":"' + b"x" * 5_000_000 + b'"}',
    HEAD + b"\r\n" + b"[" * 100_000,
    HEAD + b"Content-Length: 999999999999\r\n\r\n{",
    b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer realm=\"\x1b[31m\xff\", resource_metadata=\"" + b"z" * 9000 +
    b"\"\r\nContent-Length: 0\r\n\r\n"],
    ids=["nothing", "zeroes", "field", "terminal", "large", "deep", "short", "redirect", "challenge"])
def test_hostile_answers(good, way, answer):
    """Each is a fault with its sentence; no byte of it but printable ASCII reaches the terminal."""
    h = Hostile(good, answer)
    try:
        r = way.check(h.port, as_json=False)
        wrong = way.wrong(h.port)
    finally:
        h.close()
    assert r.returncode == 1 and "WRONG  metadata" in r.stdout and r.stderr == "", r.stdout + r.stderr
    assert all(c == "\n" or " " <= c <= "~" for c in r.stdout), repr(r.stdout)
    assert "root:" not in r.stdout and "metadata" in wrong and "challenge" in wrong


def owner_of(peer):
    """The pid of the process that connected from this address."""
    wanted = f"{peer[1]:04X}"
    with open("/proc/net/tcp", encoding="ascii") as f:
        inodes = {r.split()[9] for r in f if r.split()[1].endswith(":" + wanted)}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                link = os.readlink(f"/proc/{pid}/fd/{fd}")
                if link.startswith("socket:[") and link[8:-1] in inodes:
                    return pid
    return None


def test_the_child_has_no_rights(good, way):
    """Looked at while it waits for an answer: who asks is not root, and has nothing of root's."""
    seen = []

    def look(peer):
        pid = owner_of(peer)
        if pid is None:
            return
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        links = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        with open(f"/proc/{pid}/limits", encoding="ascii") as f:
            limits = f.read()
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            terminal = f.read().rsplit(")", 1)[1].split()[4]
        seen.append((status, links, limits, terminal))

    h = Hostile(good, HEAD + b"Content-Length: 2\r\n\r\n{}", look)
    try:
        assert way.wrong(h.port)
    finally:
        h.close()
    assert seen
    for status, links, limits, terminal in seen:
        assert set(status["Uid"].split()) == {"65534"} and "0" not in status["Gid"].split(), status
        assert status["Groups"].strip() == "" and status["NoNewPrivs"] == "1"
        assert all(int(status[c], 16) == 0 for c in ("CapPrm", "CapEff", "CapInh", "CapAmb")), status
        assert {links[fd] for fd in "012"} == {"/dev/null"} and terminal == "0"
        assert all(v == "/dev/null" or v.startswith(("pipe:", "socket:", "anon_inode:")) for v in links.values()), links
        assert [x.split()[-3:-1] for x in limits.splitlines() if x.startswith("Max file size")] == [["0", "0"]], limits
