"""docs/ACCESS.md, "From quickstart to a call from elsewhere": its commands as they stand there, on a machine that is
the test's own: a network namespace with public addresses, a name server and an issuer, and its own /etc/hosts,
/etc/nginx and certificates. nginx is there before, for the issuer. quickstart, usermod and systemctl are played: an
instance is what the first one leaves. MCPBOX_WRITE=1 writes the page with what its commands print now."""
import contextlib
import ctypes
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from harness.clients import flow, transcript
from harness.clients.mcp import Client, request, text
from harness.clients.signed_token import RESOURCE, Issuer
from harness.instance import Instance
from harness.net.proxy import Proxy
from harness.net.trust import MS_BIND, Authority, _check, _libc
from harness.patience import until
from harness.played import dns as d
from harness.played.egress import DNS
from harness.played.upstream import Service

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/ACCESS.md"
TITLE = "## From quickstart to a call from elsewhere\n"
HOST, ID_HOST = "mcp.example.org", "id.example.org"
OURS, ID = "203.0.113.7", "93.184.216.34"
ADDRESSES = (OURS,)
SIX, DAYS = 6, 200
FOLDER = pathlib.Path("/etc/nginx/conf.d")
STATE = "/var/lib/mcpbox-quickstart"
#: The tool that quickstart makes.
GREET = re.search(r"^CODE = '''\\\n(.*?)^'''$", (PAGE.parents[1] / "contrib/demo_client.py").read_text(), re.M | re.S)[1]
SAYS = "Hello, {}! This ran in a sandbox of its own."
COMMANDS = re.compile(r"^```sh\n(.*?)^```$|^\$ ((?:[^\n]*\\\n)*[^\n]*\n)", re.M | re.S)


def section(text):
    return text[text.index(TITLE):text.index("\n## ", text.index(TITLE) + 1) + 1]


class Nginx(Proxy):
    """By the files of /etc/nginx, as the test's thread sees it, and by a user that is only in the socket's group."""

    def __init__(self, instance, folder):
        self.instance, self.dir, self.port, self.process = instance, str(folder), 443, None

    def where(self):
        return OURS, self.port

    def start(self):
        uid, gid = self.instance.uid("stranger"), self.instance.uid("gwtunnel")
        # Port 443 is a right that nginx as root has; its workers have none.
        self.process = subprocess.Popen(
            ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--groups", str(gid), "--bounding-set",
             "-all,+net_bind_service", "--inh-caps", "-all,+net_bind_service", "--ambient-caps",
             "-all,+net_bind_service", "--no-new-privs", shutil.which("nginx", path="/usr/sbin:/usr/bin"), "-g",
             f"daemon off; pid {self.dir}/pid; error_log {self.dir}/error.log;", "-e", f"{self.dir}/error.log"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.wait()

    def restart(self):
        self.close()
        self.start()


#: The issuer's site: it was on this machine before.
SITE = """server {{
	listen 443 ssl;
	server_name {host};
	ssl_certificate /etc/nginx/{host}.crt;
	ssl_certificate_key /etc/nginx/{host}.key;
	location / {{
		proxy_pass http://127.0.0.1:{port};
	}}
}}
"""


class Machine:
    """What the thread sees of the file system below /etc and /var/log is of this test while it is inside."""

    def __init__(self, top, instance, ca, issuer):
        self.top, self.ca = top, ca
        etc, log = top / "nginx", top / "log"
        for made in (etc / "conf.d", log, log / "tmp"):
            made.mkdir(parents=True)
            os.chown(made, instance.uid("stranger"), -1)
            os.chmod(made, 0o755)
        os.chmod(etc, 0o755)
        tmp = "".join(f"{k}_temp_path {log}/tmp/{k};\n" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (etc / "nginx.conf").write_text(f"events {{}}\nhttp {{\n{tmp}include /etc/nginx/conf.d/*.conf;\n}}\n")
        (etc / "conf.d" / "id.conf").write_text(SITE.format(host=ID_HOST, port=issuer.port))
        for host, name in ((HOST, "mcpbox"), (ID_HOST, ID_HOST)):
            ca.context(host, days=DAYS)
            for ending in ("crt", "key"):
                path = etc / f"{name}.{ending}"
                shutil.copy(ca.top / host / ending, path)
                os.chown(path, instance.uid("stranger"), -1)
                os.chmod(path, 0o400)
        # Programs look for one file, runs for files by their hash.
        shutil.copy(ca.crt, ca.certs / "ca-certificates.crt")
        os.chmod(ca.certs / "ca-certificates.crt", 0o644)
        (top / "hosts").write_text(f"127.0.0.1 localhost\n{OURS} {HOST}\n{ID} {ID_HOST}\n")
        os.chmod(top / "hosts", 0o644)
        self.seen = ((top / "hosts", "/etc/hosts"), (etc, "/etc/nginx"), (log, "/var/log/nginx"))

    @contextlib.contextmanager
    def entered(self):
        with self.ca.trusted():
            for here, there in self.seen:
                _check(_libc.mount(os.fsencode(here), there.encode(), None, ctypes.c_ulong(MS_BIND), None))
            yield


class Shell(transcript.Shell):
    """Files are how the commands of the page reach the test: whoever restarts nginx waits until it is there."""

    def __init__(self, folder, words, before):
        super().__init__(folder, words)
        self.before, self.ran = before, []

    def run(self, command):
        if hasattr(self, "ran"):
            self.before(command)
            self.ran.append(command)
        return super().run(command)


class Way:
    """The section as it is, and as it would be written now."""

    def __init__(self, page, shell, state, nginx):
        self.said, self.shell, self.nginx = page.text, shell, nginx
        self.now = page.written().replace(state, STATE)


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    top = tmp_path_factory.mktemp("ca")
    for folder in (top, *itertools.islice(top.parents, 2)):
        os.chmod(folder, 0o755)
    return Authority(top)


@pytest.fixture(scope="module")
def issuer(ns, dns):
    """https://id.example.org, with discovery."""
    dns.zone[ID_HOST] = d.Answer(a=[ID])
    i = Issuer("home")
    i.url = f"https://{ID_HOST}"
    pages = {"/.well-known/openid-configuration": {
        "issuer": i.url, "jwks_uri": i.url + "/jwks", "code_challenge_methods_supported": ["S256"]},
        "/jwks": i.entry()["jwks"]}

    def handle(r):
        return (200, {"Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())}, pages[r.path]) \
            if r.path in pages else (404, {}, b"")
    sock = ns.listen("127.0.0.1")
    i.port = sock.getsockname()[1]
    with Service(handle, sock=sock):
        yield i


@pytest.fixture(scope="module")
def instance(inside, dns, ca):
    """What quickstart leaves, as far as the page needs it."""
    with ca.trusted():
        i = Instance(sets=(f"egress:dns_servers={DNS}",))
    with Client(i.address) as c:
        flow.publish(i, c, "demo", "greet", GREET)
    yield i
    i.close()


@pytest.fixture(scope="module")
def way(instance, issuer, ca):
    top = pathlib.Path(instance.parent) / "machine"
    top.mkdir(mode=0o755)
    machine = Machine(top, instance, ca, issuer)
    folder = top / "home"
    folder.mkdir()
    (folder / "token").write_text(issuer.sign("ann", email="ann@example.org", email_verified=True) + "\n")
    nginx = Nginx(instance, top / "log")

    def before(command):
        if "systemctl restart nginx" in command:
            nginx.restart()
        elif command.startswith("curl"):
            # As for a person, "a few seconds later"; or nginx was just away.
            until(has_keys, 120, 0.2, say=lambda: instance.ctl_json("access", "show")["keys"])

    def has_keys():
        keys, = instance.ctl_json("access", "show")["keys"]
        if keys["error"]:
            instance.ctl("access", "refresh", "home", check=False)
        return keys["count"] == 1
    page = PAGE.read_text(encoding="utf-8")
    with machine.entered():
        nginx.start()
        shell = Shell(folder, {"sudo": "", "mcpboxctl": f"{instance.state}/bin/mcpboxctl", "usermod": "true",
                               "systemctl": "true"}, before)
        try:
            w = Way(transcript.Page(section(page), shell, None), shell, instance.state, nginx)
            yield w
        finally:
            shell.close()
            nginx.close()
    if os.environ.get("MCPBOX_WRITE") == "1":
        PAGE.write_text(page.replace(w.said, w.now), encoding="utf-8")


def test_it_prints_what_the_page_says(way):
    said, now = (re.sub(r"within \d+ s", "within N s", transcript.masked(t)) for t in (way.said, way.now))
    assert said.splitlines() == now.splitlines()


def test_six_commands_lead_to_a_call(instance, way):
    commands = [a or b for a, b in COMMANDS.findall(way.said)]
    assert len(commands) <= SIX and commands[0] == "sudo contrib/quickstart\n", commands
    assert len(way.shell.ran) == len(commands) - 2, "the first and the last are played"
    assert "\nThe way in is right.\n" in way.now
    assert f'\n"text":"{SAYS.format("Ada")}"\n' in way.now
    assert instance.psql("SELECT principal, listener, state, outcome FROM mcpbox.executions WHERE tool = 'demo__greet'"
                         " AND listener = 'tunnel'") == [["oidc:home:ann", "tunnel", "closed", "done"]]


def test_nginx_reads_what_remote_wrote(way):
    """As it was written: nobody edited that file."""
    assert sorted(p.name for p in FOLDER.iterdir()) == ["home.nginx.conf", "id.conf"]
    assert f"server_name {HOST};" in (FOLDER / "home.nginx.conf").read_text()
    assert f"claude mcp add --transport http home {RESOURCE}\n" in way.said


def test_the_file_for_tailscale_funnel(instance, way):
    """Funnel ends TLS and forwards to a port on loopback; the token goes through, and nothing else does."""
    made = instance.ctl("remote", "add", "tailscale", "phone", "--resource", "https://box.tail1.ts.net/mcp", "--out",
                        str(FOLDER))
    token, port = made.stdout.strip(), re.search(r"http://127\.0\.0\.1:(\d+)$", made.stderr, re.M)[1]
    way.nginx.restart()

    def door():
        return "127.0.0.1", int(port)
    with Client(door, token=token) as c:
        assert text(c.call("demo__greet", {"name": "Eve"})) == SAYS.format("Eve")
    assert request(door(), body={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).status == 401
    assert request(door(), "GET", "/.well-known/oauth-protected-resource/mcp").value["resource"] == RESOURCE
    assert request(door(), "GET", "/api/me").status == 404
