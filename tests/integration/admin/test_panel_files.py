"""The panel's files at the admin port: headers, forms, names, and directories that end the
start. admind-http runs alone here, so nothing of this needs a login, admind or the vault."""
import contextlib
import gzip
import hashlib
import http.client
import os
import pathlib
import re
import secrets
import shutil
import socket
import subprocess
import tempfile

import pytest

from harness.patience import patience, until
from harness.place import BUILD

#: No entry of passwd has it, and no file is its own but those of these tests.
USER = 1_899_999_999
PAGE = b"<!doctype html>\n<title>a panel of tests</title>\n<script type=module src=panel/main-3K74SSMO.js></script>\n"
SCRIPT = b"export const rows = [" + b"'a row of tests', " * 20_000 + b"];\n"
FILES = {"index.html": PAGE, "main-3K74SSMO.js": SCRIPT, "main-0123456789.css": b"body { color: CanvasText }\n" * 40,
         "mark-abcdefghij.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>\n"}
TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
         "svg": "image/svg+xml; charset=utf-8"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'%s; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
          "trusted-types 'none'")


#: The default of mcp_url.
GATEWAY = " http://127.0.0.1:8002"


def packed(data):
    return gzip.compress(data, 9, mtime=0)


class Web:
    """mcpbox-admind-http as a process, with a directory of files that a test may spoil."""

    def __init__(self, top):
        self.top, self.panel, self.process = top, top / "panel", None
        self.panel.mkdir(mode=0o755)
        (top / "state").mkdir()
        os.chown(top / "state", USER, USER)
        for name, data in FILES.items():
            self.put(name, data)
            if name[-3:] != "svg":
                self.put(name + ".gz", packed(data))

    def put(self, name, data, mode=0o644):
        (self.panel / name).write_bytes(data)
        (self.panel / name).chmod(mode)

    @property
    def log(self):
        return (self.top / "log").read_text(encoding="utf-8")

    def start(self, panel=None, more=""):
        (self.top / "state/addr").unlink(missing_ok=True)
        conf = self.top / "admind-http.conf"
        conf.write_text(f"run_dir {self.top}/run\nlisten 127.0.0.1:0\naddr_file {self.top}/state/addr\n"
                        f"panel {self.panel if panel is None else panel}\n{more}", encoding="utf-8")
        with open(self.top / "log", "wb") as log:
            self.process = subprocess.Popen([web_program(), "-f", conf], stderr=log, stdin=subprocess.DEVNULL,
                                            user=USER, group=USER, extra_groups=[])
        return self

    def up(self, panel=None, more=""):
        self.start(panel, more)
        until(lambda: self.process.poll() is not None or (self.top / "state/addr").exists(), 10)
        assert self.process.poll() is None, self.log
        return self

    def refused(self, more=""):
        """Starts, which must fail. Returns the log's last line."""
        self.start(more=more)
        assert self.process.wait(patience(30)) == 1, self.log
        return self.log.splitlines()[-1]

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def address(self):
        host, port = (self.top / "state/addr").read_text(encoding="ascii").strip().rsplit(":", 1)
        return host, int(port)

    def ask(self, path="/", method="GET", **headers):
        c = http.client.HTTPConnection(*self.address, timeout=patience(30))
        try:
            c.putrequest(method, path, skip_accept_encoding=True, skip_host="Host" in headers)
            for name, value in headers.items():
                c.putheader(name.replace("_", "-"), value)
            c.endheaders()
            r = c.getresponse()
            return r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()
        finally:
            c.close()


def web_program():
    return os.path.join(BUILD, "admind/http/mcpbox-admind-http")


@pytest.fixture
def web(request):
    top = pathlib.Path(tempfile.mkdtemp(prefix="mcpw"))
    top.chmod(0o755)
    w = Web(top)
    try:
        yield w
    finally:
        w.end()
        shutil.rmtree(top)


@pytest.fixture(scope="module")
def served():
    """One that is not spoilt."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="mcpw"))
    top.chmod(0o755)
    w = Web(top)
    try:
        yield w.up()
    finally:
        w.end()
        shutil.rmtree(top)


def tag(data):
    return f'"{hashlib.sha256(data).hexdigest()}"'


def test_the_page(served):
    status, headers, body = served.ask()
    assert (status, body) == (200, PAGE) and headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == "no-cache" and headers["etag"] == tag(PAGE)
    assert headers["vary"] == "Accept-Encoding" and "content-encoding" not in headers


@pytest.mark.parametrize("name", sorted(set(FILES) - {"index.html"}))
def test_a_file(served, name):
    status, headers, body = served.ask(f"/panel/{name}")
    assert (status, body) == (200, FILES[name]) and headers["content-type"] == TYPES[name.rpartition(".")[2]]
    assert headers["cache-control"] == "public, max-age=31536000, immutable" and headers["etag"] == tag(FILES[name])
    assert int(headers["content-length"]) == len(FILES[name])


@pytest.mark.parametrize("path", ["/", *(f"/panel/{n}" for n in FILES if n != "index.html")])
def test_headers_and_no_cookie(served, path):
    _, headers, _ = served.ask(path)
    assert headers["content-security-policy"] == POLICY % GATEWAY
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY" and "set-cookie" not in headers
    allowed = dict(w.split("=", 1) for w in headers["permissions-policy"].split(", "))
    assert {k for k, v in allowed.items() if v != "()"} == \
        {"publickey-credentials-get", "publickey-credentials-create"}
    assert {"camera", "microphone", "geolocation", "usb", "payment"} <= set(allowed)


@pytest.mark.parametrize("url,source", [("https://mcp.example.org/mcp", " https://mcp.example.org"), ("-", "")])
def test_the_gateway_is_one_source_of_the_policy(web, url, source):
    assert web.up(more=f"mcp_url {url}\n").ask()[1]["content-security-policy"] == POLICY % source
    web.end()


@pytest.mark.parametrize("url", [
    "http://127.0.0.1:8002", "127.0.0.1:8002/mcp", "http://*/mcp", "http://a.example;script-src/mcp", "http://[::1]:8002/mcp",
    "http://a.example:80/mcp", "http://a.example/mcp?x", "http://a.example/mcp;script-src", "http://A.example/mcp", "*", "'unsafe-inline'"])
def test_another_text_is_no_source(web, url):
    assert "mcp_url is an address such as http://127.0.0.1:8002/mcp" in web.refused(f"mcp_url {url}\n")


def test_answers_of_rest_keep_their_policy(served):
    for path in ("/health", "/api/me", "/x", "/panel/x"):
        _, headers, _ = served.ask(path)
        assert headers["content-security-policy"] == \
            "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'", path
        assert headers["cache-control"] == "no-store" and "permissions-policy" not in headers, path


def test_gzip(served):
    """The bytes are those of the file, whichever form came; each form has a tag of its own."""
    for path, data in (("/", PAGE), ("/panel/main-3K74SSMO.js", SCRIPT)):
        _, plain, _ = served.ask(path)
        status, headers, body = served.ask(path, Accept_Encoding="br, gzip;q=0.8")
        assert (status, headers["content-encoding"], headers["vary"]) == (200, "gzip", "Accept-Encoding"), path
        assert gzip.decompress(body) == data and headers["etag"] == tag(packed(data)) != plain["etag"]
        assert headers["content-type"] == plain["content-type"] and int(headers["content-length"]) == len(body)
        for value in ("", "br", "identity", "gzip;q=0", "gzip;q=x"):
            status, headers, body = served.ask(path, Accept_Encoding=value)
            assert (status, body) == (200, data) and "content-encoding" not in headers, value


def test_a_file_without_gzip(served):
    status, headers, body = served.ask("/panel/mark-abcdefghij.svg", Accept_Encoding="gzip")
    assert (status, body) == (200, FILES["mark-abcdefghij.svg"])
    assert "content-encoding" not in headers and "vary" not in headers


def test_not_modified(served):
    for path, data in (("/", PAGE), ("/panel/main-3K74SSMO.js", SCRIPT)):
        for method in ("GET", "HEAD"):
            for value in (tag(data), "W/" + tag(data), f'"x", {tag(data)}', "*"):
                status, headers, body = served.ask(path, method, If_None_Match=value)
                assert (status, body) == (304, b""), (path, method, value)
                assert headers["etag"] == tag(data) and "content-length" not in headers
                assert headers["content-security-policy"] == POLICY % GATEWAY and headers["vary"] == "Accept-Encoding"
                assert headers["cache-control"] == served.ask(path)[1]["cache-control"]
        for value in ('"x"', tag(data)[1:-1], tag(packed(data))):
            assert served.ask(path, If_None_Match=value)[::2] == (200, data), (path, value)
        assert served.ask(path, If_None_Match=tag(packed(data)), Accept_Encoding="gzip")[0] == 304
        assert served.ask(path, If_None_Match=tag(data), Accept_Encoding="gzip")[0] == 200


def test_head(served):
    for path in ("/", *(f"/panel/{n}" for n in FILES if n != "index.html")):
        for accepted in ("gzip", "identity"):
            get, head = (served.ask(path, m, Accept_Encoding=accepted) for m in ("GET", "HEAD"))
            assert head[0] == 200 and head[2] == b""
            assert {k: v for k, v in head[1].items() if k != "date"} == \
                {k: v for k, v in get[1].items() if k != "date"}


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods(served, method):
    for path in ("/", "/panel/main-3K74SSMO.js"):
        status, headers, _ = served.ask(path, method)
        assert status == 405 and headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("name", [
    "main-3K74SSMO.js.gz", "main-3K74SSMO.JS", "main-3K74SSMO", "MAIN-3K74SSMO.js", "index.html", ".", "..", "", "x",
    "../panel/main-3K74SSMO.js", "..%2f..%2fadmind-http.conf", "..%2fadmind-http.conf", "%2e%2e/admind-http.conf",
    "../admind-http.conf", "..\\admind-http.conf", "/main-3K74SSMO.js", "main-3K74SSMO.js/", "./main-3K74SSMO.js",
    "main-3K74SSMO%2ejs", "main-3K74SSMO.js%00", "main-3K74SSMO.js%00.css", "m%61in-3K74SSMO.js", "//", "a" * 1000])
def test_other_names(served, name):
    """Sent as they are."""
    c = socket.create_connection(served.address, timeout=patience(30))
    with contextlib.closing(c):
        c.sendall(f"GET /panel/{name} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: c.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split(b" ", 2)[1] in (b"404", b"400"), head
    assert b"application/problem+json" in head and b"run_dir" not in body and b"a row of tests" not in body


def test_raw_bytes_in_a_name(served):
    """NUL, bytes over 127, ends of lines; and a name that is longer than a line may be."""
    for raw in (b"a" * 9000, b"main-3K74SSMO.js\0", b"\0", b"main\xff", b"main\r\nX: y", b"main 3"):
        c = socket.create_connection(served.address, timeout=patience(30))
        with contextlib.closing(c):
            c.sendall(b"GET /panel/" + raw + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda c=c: c.recv(65536), b""))
        assert answer.split(b" ", 2)[1] == (b"414" if len(raw) > 100 else b"400") and b"a row of tests" not in answer, raw


def test_a_query_is_refused(served):
    for path in ("/?x=1", "/panel/main-3K74SSMO.js?x=1"):
        assert served.ask(path)[0] == 400


def test_pages_of_other_origins(served):
    """A link of any page may lead to / ; a script of another origin is not for its page."""
    script = "/panel/main-3K74SSMO.js"
    for site in ("cross-site", "same-site"):
        assert served.ask("/", Sec_Fetch_Site=site)[0] == 200
        status, headers, body = served.ask(script, Sec_Fetch_Site=site)
        assert status == 403 and SCRIPT[:20] not in body and "etag" not in headers, site
    for site in ("same-origin", "none"):
        assert served.ask(script, Sec_Fetch_Site=site)[0] == 200
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        for path in ("/", script):
            assert served.ask(path, **headers)[0] == 403, (path, headers)


def test_localhost_is_sent_on_to_the_address(served):
    status, headers, body = served.ask(Host="localhost:8000")
    assert (status, headers["location"], body) == (307, "http://127.0.0.1:8000/", b"") and "etag" not in headers


def test_a_login_changes_nothing(served):
    """Cookies and keys are not read, wrong ones included."""
    for path in ("/", "/panel/main-3K74SSMO.js"):
        want = served.ask(path)
        for headers in ({"Cookie": "mcpbox_session=" + "a" * 43}, {"X-CSRF-Token": "b" * 43},
                        {"Authorization": "Bearer x"}):
            got = served.ask(path, **headers)
            assert got[::2] == want[::2] and "set-cookie" not in got[1]


def test_a_slow_reader_holds_no_copy(web):
    """Twenty clients that read nothing: a copy of the largest file for each would show in the
    process's memory."""
    large = secrets.token_bytes(2**20 - 64)     # not compressible, so all of it is sent
    web.put("large-3K74SSMO.js", large)
    web.up()
    web.ask("/panel/large-3K74SSMO.js")

    def memory():
        text = pathlib.Path(f"/proc/{web.process.pid}/status").read_text(encoding="ascii")
        return int(re.search(r"^RssAnon:\s+(\d+) kB", text, re.M)[1]) * 1024
    before, clients = memory(), []
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            c = stack.enter_context(contextlib.closing(socket.socket()))
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.settimeout(patience(30))
            c.connect(web.address)
            c.sendall(b"GET /panel/large-3K74SSMO.js HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            clients.append((c, c.recv(100)))
        assert all(first.startswith(b"HTTP/1.1 200 ") for _, first in clients)
        assert memory() - before < 4 * len(large)
        # and all of it comes, once it is read
        c, first = clients[0]
        answer = first + b"".join(iter(lambda: c.recv(65536), b""))
        assert answer.partition(b"\r\n\r\n")[2] == large


def test_files_are_read_at_start_alone(web):
    web.up()
    web.put("index.html", b"another")
    web.put("later-3K74SSMO.js", b"later")
    (web.panel / "main-3K74SSMO.js").unlink()
    assert web.ask()[2] == PAGE and web.ask("/panel/main-3K74SSMO.js")[2] == SCRIPT
    assert web.ask("/panel/later-3K74SSMO.js")[0] == 404
    web.end()
    (web.panel / "main-3K74SSMO.js.gz").unlink()
    web.up()
    assert web.ask()[2] == b"another" and web.ask("/panel/later-3K74SSMO.js")[2] == b"later"
    assert web.ask("/panel/main-3K74SSMO.js")[0] == 404


@pytest.mark.parametrize("panel", ["-", "/nonexistent/panel"])
def test_without_a_panel(web, panel):
    web.up(panel)
    status, headers, body = web.ask()
    assert status == 200 and b"-Dpanel=enabled" in body and headers["cache-control"] == "no-store"
    assert web.ask("/panel/main-3K74SSMO.js")[0] == 404
    assert [line for line in web.log.splitlines() if "how to get the panel" in line] == \
        [line for line in web.log.splitlines() if panel != "-" and f"{panel} is not there" in line]
    assert ("is not there" in web.log) == (panel != "-")


def link(web):
    (web.panel / "main-3K74SSMO.css").symlink_to("/etc/hostname")


def absent(web):
    (web.panel / "index.html").unlink()
    (web.panel / "index.html.gz").unlink()


SPOILT = {
    "main-3K74SSMO.css: a symbolic link": link,
    "deep-3K74SSMO.js: not a regular file": lambda web: (web.panel / "deep-3K74SSMO.js").mkdir(),
    "pipe-3K74SSMO.js: not a regular file": lambda web: os.mkfifo(web.panel / "pipe-3K74SSMO.js", 0o644),
    "large-3K74SSMO.js: too large": lambda web: web.put("large-3K74SSMO.js", bytes(2**20 + 1)),
    "main.js: a file of the panel is not called so": lambda web: web.put("main.js", b""),
    "main-3K74SSMO.js.map: a file of the panel is not called so": lambda web: web.put("main-3K74SSMO.js.map", b""),
    ".hidden-3K74SSMO.js: a file of the panel is not called so": lambda web: web.put(".hidden-3K74SSMO.js", b""),
    "lone-3K74SSMO.js.gz is there": lambda web: web.put("lone-3K74SSMO.js.gz", packed(b"")),
    "open-3K74SSMO.js: every user may write it": lambda web: web.put("open-3K74SSMO.js", b"", 0o666),
    "shut-3K74SSMO.js: it can't be opened": lambda web: web.put("shut-3K74SSMO.js", b"", 0o600),
    "no index.html": absent,
    "panel: every user may write it": lambda web: web.panel.chmod(0o777),
    "panel: this process's own user may write it": lambda web: os.chown(web.panel, USER, USER),
    "main-3K74SSMO.js: this process's own user may write it":
        lambda web: os.chown(web.panel / "main-3K74SSMO.js", USER, USER),
    "group-3K74SSMO.js: this process's own user may write it":
        lambda web: (web.put("group-3K74SSMO.js", b"", 0o664), os.chown(web.panel / "group-3K74SSMO.js", 0, USER)),
    "panel: Not a directory": lambda web: (shutil.rmtree(web.panel), web.panel.write_bytes(b"")),
}


@pytest.mark.parametrize("why", SPOILT)
def test_a_wrong_directory_ends_the_start(web, why):
    """One line says which file it is, and nothing is served."""
    SPOILT[why](web)
    assert why in web.refused()
    assert not (web.top / "state/addr").exists()
