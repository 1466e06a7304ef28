"""contrib/quickstart as a person runs it, beside whatever else runs here: a
state directory and ports of its own."""
import json
import os
import pwd
import re
import shlex
import shutil
import socket
import stat
import subprocess
import urllib.error
import urllib.request

import pytest

from harness.patience import patience

SRC = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
QUICKSTART = os.path.join(SRC, "contrib", "quickstart")
STATE = f"/var/lib/mcpbqs-{os.getpid()}"


def run(*args, timeout=patience(400)):
    return subprocess.run([QUICKSTART, *args], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=timeout, cwd="/")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def started():
    """The first run: from nothing."""
    ports = free_port(), free_port()
    r = run("--state", STATE, "--mcp-port", str(ports[0]), "--admin-port", str(ports[1]))
    yield r, ports
    run("--purge", "--state", STATE)
    shutil.rmtree(STATE, ignore_errors=True)


def env():
    with open(os.path.join(STATE, "env"), encoding="ascii") as f:
        return dict(shlex.split(line)[0].split("=", 1) for line in f)


def test_first_run(started):
    r, ports = started
    assert r.returncode == 0, r.stdout + r.stderr
    assert "Hello, Ada!" in r.stdout
    assert re.search(r"^\d+\.\d ms$", r.stdout, re.M)
    assert f"claude mcp add --transport http mcpbox http://127.0.0.1:{ports[0]}/mcp" in r.stdout
    assert "Any local user" in r.stdout
    assert "degraded" in r.stdout or "enforced" in r.stdout


def test_the_panel_is_there(started):
    """A browser that opens the address of the last lines gets the panel, and each file that it names."""
    r, ports = started
    assert f"The same in a browser: http://127.0.0.1:{ports[1]}/\n" in r.stdout, r.stdout[-2000:]
    with urllib.request.urlopen(f"http://127.0.0.1:{ports[1]}/", timeout=patience(30)) as f:
        page = f.read().decode()
        assert "script-src 'self'" in f.headers["Content-Security-Policy"]
    files = re.findall(r'(?:src|href)="/?(panel/[^"]+)"', page)
    assert {n.rpartition(".")[2] for n in files} == {"js", "css"}, page
    for name in files:
        with urllib.request.urlopen(f"http://127.0.0.1:{ports[1]}/{name}", timeout=patience(30)) as f:
            assert f.read() and "immutable" in f.headers["Cache-Control"]


def test_it_compiled_several_files_as_one(started):
    """And had not to do it again file by file; no tests with it (decision 0087)."""
    assert started[0].returncode == 0
    with open(f"{STATE}/build/.source", encoding="utf-8") as f:
        assert "-Dunited=true" in f.read()
    objects = [n for _, _, names in os.walk(f"{STATE}/build") for n in names if n.endswith(".c.o")]
    assert 20 < len(objects) < 200 and not os.path.exists(f"{STATE}/build/tests"), len(objects)


def test_it_says_how_to_approve_and_links_its_cli(started):
    """Unless another one is there: then it says so."""
    r, _ = started
    theirs = "/usr/local/bin/mcpboxctl is there already" in r.stdout
    ctl = f"{STATE}/bin/mcpboxctl" if theirs else "mcpboxctl"
    for words in ("approvals list", "approvals show ID", "approvals approve ID --hash HEX", "approvals review"):
        assert f"sudo {ctl} {words}\n" in r.stdout, r.stdout
    assert theirs or os.path.realpath("/usr/local/bin/mcpboxctl") == f"{STATE}/bin/mcpboxctl"
    for page in ("man1/mcpboxctl.1", "man5/mcpbox.conf.5", "man7/mcpbox.7"):
        assert os.path.getsize(f"{STATE}/share/man/{page}") > 1000
    for name in ("man/man1/mcpboxctl.1", "man/man5/mcpbox.conf.5", "bash-completion/completions/mcpboxctl",
                 "zsh/site-functions/_mcpboxctl"):
        link = f"/usr/local/share/{name}"
        assert os.path.realpath(link) == f"{STATE}/share/{name}" or f"{link} is there already" in r.stdout, link


def test_the_bridge_it_names_answers(started):
    """As Claude Desktop would, as somebody who is not root."""
    r, _ = started
    given, = re.findall(r'(\{"mcpServers": \{.*?\}\}\})', r.stdout, re.S)
    server = json.loads(given)["mcpServers"]["mcpbox"]
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}})
    p = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                        server["command"], *server["args"]],
                       input=line + "\n", capture_output=True, text=True, timeout=patience(30), check=True)
    assert json.loads(p.stdout)["result"]["serverInfo"]["name"] == "mcpbox", p.stdout


def test_env_is_true(started):
    _, ports = started
    e = env()
    assert e["MCPBOX_MCP_URL"] == f"http://127.0.0.1:{ports[0]}/mcp"
    assert e["MCPBOX_ADMIN_URL"] == f"http://127.0.0.1:{ports[1]}"
    assert e["MCPBOX_DEMO_TOOL"] == "demo__greet"
    f = os.stat(e["MCPBOX_ADMIN_PASSWORD_FILE"])
    assert stat.S_IMODE(f.st_mode) == 0o600 and f.st_uid == 0
    with open(e["MCPBOX_ADMIN_PASSWORD_FILE"], encoding="ascii") as p:
        body = json.dumps({"username": e["MCPBOX_ADMIN_USER"], "password": p.read().strip()})
    request = urllib.request.Request(e["MCPBOX_ADMIN_URL"] + "/api/login", body.encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=patience(20)) as answer:
        assert json.load(answer)["role"] == "administrator"
    assert subprocess.run([e["MCPBOX_CTL"], "approvals", "list", "--json"], capture_output=True,
                          check=True).stdout.startswith(b"{")
    rows = subprocess.run(["psql", "-X", "-At", "-h", e["MCPBOX_PGHOST"], "-U", "postgres", "mcpbox",
                           "-c", "SELECT count(*) FROM mcpbox.executions WHERE state = 'closed'"],
                          capture_output=True, text=True, check=True).stdout
    assert int(rows) >= 1


def test_postgresql_is_private(started):
    e = env()
    d = os.stat(e["MCPBOX_PGHOST"])
    assert stat.S_IMODE(d.st_mode) == 0o750
    # No port, and peer authentication: another user isn't the owner.
    r = subprocess.run(["psql", "-X", "-h", e["MCPBOX_PGHOST"], "-U", "mcpbox_owner", "mcpbox",
                        "-c", "SELECT 1"], capture_output=True, text=True, check=False,
                       user="mcpbox-admin", extra_groups=["mcpbox-owner"])
    assert r.returncode != 0 and "Peer authentication failed" in r.stderr, r
    r = subprocess.run(["psql", "-X", "-h", e["MCPBOX_PGHOST"], "-U", "mcpbox_app", "mcpbox",
                        "-c", "SELECT 1"], capture_output=True, text=True, check=False,
                       user="nobody", group="nogroup", extra_groups=[])
    assert r.returncode != 0, r


def test_no_process_is_root(started):
    """Of ours: runit's own and nothing else."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                argv = f.read().decode(errors="replace").split("\0")
            if argv[0].startswith(STATE + "/libexec/"):
                assert os.stat(f"/proc/{pid}").st_uid != 0, argv
        except OSError:
            continue


def made():
    """The files that the first run spends its time on, by path: programs, databases. Another
    inode or time says that one was made again."""
    found = {}
    for top, _, names in os.walk(STATE):
        for name in names:
            if name == "PG_VERSION" or name.endswith(".o") or name.startswith("mcpbox-") and "/build" in top:
                s = os.stat(os.path.join(top, name))
                found[os.path.join(top, name)] = s.st_ino, s.st_mtime_ns
    assert {"PG_VERSION", "mcpbox-gatewayd"} <= {os.path.basename(p) for p in found}
    return found


def test_second_run_is_quick_and_keeps_everything(started):
    """Quick, since it makes nothing again and installs nothing."""
    before, there = env(), made()
    r = run("--state", STATE)
    assert r.returncode == 0, r.stdout + r.stderr
    assert "Hello, Ada!" in r.stdout and "approves" not in r.stdout and "Installing" not in r.stdout
    assert env() == before and made() == there


def test_stop_and_start_again(started):
    assert run("--stop", "--state", STATE).returncode == 0
    with pytest.raises(OSError):
        urllib.request.urlopen(env()["MCPBOX_MCP_URL"].replace("/mcp", "/health"), timeout=patience(5))
    assert run("--stop", "--state", STATE).returncode == 0
    with open(os.path.join(STATE, "conf", "egress.local"), "w", encoding="ascii") as f:
        f.write("never 192.0.2.1\n")
    there = made()
    r = run("--state", STATE)
    assert r.returncode == 0, r.stdout + r.stderr
    assert made() == there
    assert "Hello, Ada!" in r.stdout
    with open(os.path.join(STATE, "conf", "egress.conf"), encoding="ascii") as f:
        assert f.read().endswith("\nnever 192.0.2.1\n")      # lines of the owner's


def listed(token=None):
    """The status of tools/list as a client of this machine gets it."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
    request = urllib.request.Request(env()["MCPBOX_MCP_URL"], body.encode(), {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18", **({"Authorization": f"Bearer {token}"} if token else {})})
    try:
        with urllib.request.urlopen(request, timeout=patience(20)) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code


def test_a_token_asked_for_as_it_says_stays_asked_for(started):
    said = run("--state", STATE).stdout
    commands = re.search(r"To ask for a token, as root:\n((?: {4}.*\n)+)and run quickstart again", said)[1]
    assert listed() == 200
    subprocess.run(["/bin/sh", "-e", "-c", commands], check=True)
    for _ in range(2):              # the second time nothing is new
        r = run("--state", STATE)
        assert r.returncode == 0, r.stdout + r.stderr
        assert "Hello, Ada!" in r.stdout and "Any local user" not in r.stdout
        assert f"Bearer $(sudo cat {STATE}/local.token)" in r.stdout
        with open(env()["MCPBOX_TOKEN_FILE"], encoding="ascii") as f:
            token = f.read().strip()
        assert (listed(), listed("x" * 32), listed(token)) == (401, 401, 200)


def test_a_token_that_admind_may_not_read_is_named(started):
    """Before anything is changed: the listener asks on."""
    os.chown(f"{STATE}/local.token", 0, 0)
    try:
        r = run("--state", STATE)
        assert r.returncode != 0 and f"chown mcpbox-admin {STATE}/local.token" in r.stderr, r
        assert listed() == 401
    finally:
        os.chown(f"{STATE}/local.token", pwd.getpwnam("mcpbox-admin").pw_uid, 0)


def test_lines_in_a_file_that_it_writes_are_not_lost(started):
    path = f"{STATE}/conf/admind.conf"
    with open(path, encoding="utf-8") as f:
        before = f.read()
    with open(path, "a", encoding="utf-8") as f:
        f.write("local_destructive no\n")
    r = run("--state", STATE)
    assert r.returncode != 0 and f"{path} was edited" in r.stderr and f"{STATE}/conf/admind.local" in r.stderr, r
    with open(path, encoding="utf-8") as f:
        assert f.read() == before + "local_destructive no\n"
    os.remove(path)
    assert run("--state", STATE).returncode == 0
    with open(path, encoding="utf-8") as f:
        assert f.read() == before


@pytest.mark.parametrize("how", ["writable", "foreign", "relative", "file", "long", "other"])
def test_bad_state_directories_are_refused(tmp_path, how):
    base = f"/var/lib/mcpbq-{os.getpid()}-{how}"
    shutil.rmtree(base, ignore_errors=True)
    os.mkdir(base, 0o755)
    try:
        path = base + "/s"
        if how == "writable":
            os.chmod(base, 0o777)
        elif how == "foreign":
            os.chown(base, pwd.getpwnam("nobody").pw_uid, 0)
        elif how == "relative":
            path = "var/lib/x"
        elif how == "file":
            open(path, "w", encoding="ascii").close()
        elif how == "long":
            path = base + "/" + "x" * 60
        else:
            os.mkdir(path)
            open(path + "/precious", "w", encoding="ascii").close()
        r = run("--state", path, "--no-demo")
        assert r.returncode != 0 and "state" in r.stderr, r
        for purge in (run("--purge", "--state", path),):
            assert how != "other" or os.path.exists(path + "/precious"), purge
    finally:
        shutil.rmtree(base)


def test_taken_port_is_named():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        state = STATE + "b"
        r = run("--state", state, "--no-demo", "--mcp-port", str(s.getsockname()[1]))
        run("--purge", "--state", state)
        assert r.returncode != 0 and "port" in r.stderr, r


def test_usage():
    assert run("--no-such-option").returncode == 2
    assert run("--mcp-port", "70000").returncode != 0


def test_purge_removes_all(started):
    r = run("--purge", "--state", STATE)
    assert r.returncode == 0, r.stdout + r.stderr
    assert not os.path.exists(STATE)
    assert subprocess.run(["find", "/usr/local", "-lname", f"{STATE}/*"], capture_output=True, text=True,
                          check=True).stdout == ""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                assert STATE.encode() not in f.read()
        except OSError:
            continue
    if not os.path.isdir("/var/lib/mcpbox-instances"):	# no other quickstart here
        with pytest.raises(KeyError):
            pwd.getpwnam("mcpbox-pool")
    assert run("--purge", "--state", STATE).returncode == 0
