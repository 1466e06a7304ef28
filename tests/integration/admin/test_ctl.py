"""mcpboxctl against a real vault and an admind played by hand, honest or not:
exit statuses, what is shown, and that nothing hostile drives the terminal."""
import hashlib
import json
import os
import pty
import select
import shutil
import socket
import subprocess
import threading
import uuid

import pytest

from harness.instance import BUILD
from harness.ipc import Closed, Peer, Table
from harness.patience import patience
from integration.vault import test_vault as tv

CTL = os.path.join(BUILD, "admind/ctl/mcpboxctl")
PASSWORD = "correct horse battery staple"
ID = uuid.UUID("0198e3a1-7b5c-7d1e-8f00-1c2d3e4f5a6b")
BIDI = "\u202e\u2066\x1b[2J"


class Suite:
    """Sockets of admind (control), sandboxd, and of admind's line to the
    vault; each answered by a thread."""

    def __init__(self, vault):
        self.vault, self.table = vault, Table()
        tv.table = self.table
        self.run_dir = vault.run()
        self.pre, self.state = tv.preimage(), "pending"
        self.given = None       # what the vault is given, if not self.pre
        self.circumstances = '"server":"demo","tool":"greet","version":1,"requested_by":"local"'
        self.json, self.queries, self.layers = b'{"items":[],"next_cursor":null}', [], b"[]"
        self.ids = b'{"items":[],"name":false}'
        self.changes = []       # all that was asked for beside queries; each is refused
        self.base = b""         # of the version that serves
        self.admind = tv.Admind.open(self.table, vault, "admind", "admind-vault", "admind")
        self.listeners, self.threads = [], []
        for process in ("admind", "sandboxd"):
            os.makedirs(vault.run(process), exist_ok=True)
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.bind(vault.run(process, "ctl.sock"))
            s.listen(16)
            self.listeners.append(s)
            self.thread(self.accept, s)
        self.thread(self.serve_vault)

    def thread(self, f, *args):
        t = threading.Thread(target=f, args=args, daemon=True)
        t.start()
        self.threads.append(t)

    def close(self):
        for s in self.listeners:
            s.shutdown(socket.SHUT_RDWR)
            s.close()
        self.admind.sock.shutdown(socket.SHUT_RDWR)
        for t in self.threads:
            t.join(patience(5))
        self.admind.sock.close()

    def accept(self, listener):
        while True:
            try:
                s, _ = listener.accept()
            except OSError:
                return
            self.thread(self.serve, s)

    def serve(self, sock):
        try:
            with Peer(self.table, sock) as p:
                while True:
                    request, m = p.receive()
                    self.answer(p, request, m)
        except (Closed, TimeoutError, OSError):
            pass

    def answer(self, p, request, m):
        if m["_"] == "ADMIN_QUERY":
            self.queries.append(m)
            p.send("ADMIN_JSON", request=request, json=self.ids if m["what"] == "ids" else self.json)
        elif m["_"] == "APPROVAL_GET":
            if m["approval"] != ID.bytes:
                p.send("REFUSED", request=request, failure=tv.FAILURES["NOT_FOUND"],
                       message="no such request " + BIDI)
            else:
                p.send("APPROVAL_CONTENT", request=request, kind="tool", state=self.state,
                       circumstances=self.circumstances, preimage=self.base if m["base"] else self.pre)
        elif m["_"] == "DOCTOR":
            p.send("DOCTOR_REPORT", request=request, json=self.layers)
        else:           # without an answer mcpboxctl waits for a minute
            self.changes.append(m)
            p.send("REFUSED", request=request, failure=tv.FAILURES["NOT_FOUND"], message="not here")

    def serve_vault(self):
        while True:
            try:
                request, m = self.admind.receive(patience(60))
            except (Closed, TimeoutError, OSError):
                return
            self.admind.requests[ID.bytes] = ("tool", self.state, self.given or self.pre)
            self.admind.serve(request, m)

    def ctl(self, *args, stdin=""):
        return subprocess.run([CTL, "--run-dir", self.run_dir, *args], input=stdin.encode(),
                              capture_output=True, timeout=patience(20), check=False)

    def text(self, *args, stdin="", status=0):
        r = self.ctl(*args, stdin=stdin)
        assert r.returncode == status, (r.returncode, r.stdout, r.stderr)
        assert r.stdout.isascii() or "--json" not in args
        return r.stdout.decode()


@pytest.fixture(scope="module")
def vault():
    v = tv.Vault()
    yield v
    v.close()


@pytest.fixture
def suite(vault):
    s = Suite(vault)
    yield s
    s.close()
    shutil.rmtree(vault.run("admind"))
    shutil.rmtree(vault.run("sandboxd"))


def digest(pre):
    return hashlib.sha256(pre).hexdigest()


@pytest.mark.parametrize("args", [
    [], ["nonsense"], ["approvals"], ["approvals", "show"], ["approvals", "nonsense", str(ID)],
    ["approvals", "show", "not-an-id"], ["approvals", "approve", str(ID)],
    ["approvals", "approve", str(ID), "--hash", "abc"],
    ["approvals", "approve", str(ID), "--hash", "G" * 64],
    ["approvals", "reject", str(ID)], ["approvals", "list", "more"], ["setup"],
    ["secret", "get", "demo", "TOKEN"], ["secret", "set", "demo"], ["servers", "a", "b"],
    ["servers", "--limit", "0"], ["servers", "--limit", "201"], ["servers", "--limit", "9x"],
    ["--nonsense"], ["-f", "/nonexistent", "status"]])
def test_usage(suite, args):
    r = suite.ctl(*args)
    assert r.returncode == 2 and r.stderr and not r.stdout


def test_usage_is_the_commands_own(suite):
    """One command's usage, of the words that were given; the nearest command named; no option
    that would do nothing."""
    for args, said, forms in (
            (["aprovals", "list"], "there is no command aprovals; did you mean approvals?", 0),
            (["xyzzy"], "mcpboxctl help lists them", 0),
            (["sta\x1btus"], "sta\\u{1b}tus", 0),
            (["approvals", "shwo", str(ID)], "did you mean show?", 10),
            (["approvals", "approve", str(ID)], "usage: mcpboxctl approvals approve ID --hash HEX", 1),
            (["status", "more"], "usage: mcpboxctl status", 1),
            (["status", "--hash", "0" * 64], "status takes no --hash", 1),
            (["status", "--nonsense"], "there is no option --nonsense", 1),
            (["status", "--json=yes"], "takes no value", 1),
            (["approvals", "list", "--state"], "--state needs a value", 1)):
        r = suite.ctl(*args)
        lines = r.stderr.decode().splitlines()
        assert r.returncode == 2 and not r.stdout and said in r.stderr.decode(), (args, r.stderr)
        assert sum("mcpboxctl " in line and not line.startswith("mcpboxctl") for line in lines) == forms, lines


def test_help_has_every_command_once(suite):
    every = {line.split()[1] for line in suite.text("--help").splitlines() if line.startswith("       mcpboxctl ")}
    rows = [line.split()[0] for line in suite.text("help").splitlines() if line.startswith("  ")]
    assert len(every) > 25 and sorted(rows) == sorted(every)
    for command in every:
        said = suite.text("help", command)
        assert said.startswith(f"{command}: ") and f"mcpboxctl {command}" in said
        assert suite.text(command, "--help") == said
    assert suite.text("help", "approvals", "show").count("usage: mcpboxctl approvals show ID\n\n") == 1
    r = suite.ctl("help", "approvls")
    assert r.returncode == 2 and b"did you mean approvals?" in r.stderr


def test_an_ids_first_digits(suite):
    suite.ids = json.dumps({"items": [str(ID)], "name": False}).encode()
    for word in ("0198", "0198E3a1", "0198e3a1-7b5c-7"):
        assert f"request            {ID}\n" in suite.text("approvals", "show", word)
        assert (suite.queries[-1]["what"], suite.queries[-1]["id"]) == ("ids", "approval/" + word)
    suite.text("executions", "0198e3a1")
    assert (suite.queries[-1]["what"], suite.queries[-1]["id"]) == ("execution", str(ID))
    suite.text("servers", "0198e3a1")
    assert (suite.queries[-1]["what"], suite.queries[-1]["id"]) == ("server", str(ID))
    assert suite.text("approvals", "reject", "0198", "--reason", "no") == "rejected\n"
    # A word that is a name is the name.
    suite.ids = json.dumps({"items": [str(ID)], "name": True}).encode()
    suite.text("servers", "0198e3a1")
    assert suite.queries[-1]["id"] == "0198e3a1"
    suite.text("servers", "demo")
    assert [q["what"] for q in suite.queries[-2:]] == ["server", "server"]


@pytest.mark.parametrize("found, status, said", [
    ([], 1, "not found"), ([str(ID), str(uuid.UUID(int=ID.int + 1))], 1, "ambiguous"),
    ([str(uuid.UUID(int=1))], 3, "unreadable"), (["x"], 3, "unreadable")])
def test_an_id_that_is_not_one_alone(suite, found, status, said):
    """One error, that says what to do; what admind found is not believed."""
    suite.ids = json.dumps({"items": found, "name": False}).encode()
    for args in (["approvals", "show"], ["approvals", "diff"], ["servers"], ["executions"]):
        r = suite.ctl(*args, "0198e3")
        assert r.returncode == status and said in r.stderr.decode() and not r.stdout, r.stderr
        assert status == 3 or b"`mcpboxctl " in r.stderr and r.stderr.count(b"\n") == 1


@pytest.mark.parametrize("word", ["019", "0198g", "0198-", "0198e3a17b5c", "", str(ID) + "0"])
def test_what_is_no_id(suite, word):
    r = suite.ctl("approvals", "show", word)
    assert r.returncode == 2 and b"first 4 or more digits" in r.stderr and not suite.queries


class Review:
    """approvals review on a terminal."""

    def __init__(self, suite, *args):
        self.master, slave = pty.openpty()
        self.p = subprocess.Popen([CTL, "--run-dir", suite.run_dir, "approvals", "review", *args],
                                  stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)

    def until(self, text):
        return read_terminal(self.master, text)

    def type(self, line):
        os.write(self.master, line.encode() + b"\n")

    def end(self, status):
        seen = read_terminal(self.master)
        assert self.p.wait(patience(20)) == status, seen
        os.close(self.master)
        return seen


def waiting(suite, *ids):
    suite.json = json.dumps({"items": [{"id": str(i)} for i in ids], "next_cursor": None}).encode()


def test_review_approves_what_was_shown(suite):
    waiting(suite, ID)
    shown = suite.text("approvals", "show", str(ID))
    r = Review(suite, "--kind", "tool")
    seen = r.until(b"q(uit): ").decode().replace("\r\n", "\n")
    assert shown in seen and (suite.queries[-1]["filter_state"], suite.queries[-1]["filter_kind"]) == ("pending", "tool")
    # Only y is a yes.
    for line in ("", "yes", "Y", " y", "y ", "y\x16\x01", "ja", "y" * 2000, "1"):
        r.type(line)
        assert b"Please answer" in r.until(b"q(uit): ")
        assert ID.bytes not in suite.admind.decisions
    r.type("y")
    assert b"1 approved, 0 rejected, 0 left" in r.end(0)
    d = suite.admind.decisions[ID.bytes]
    assert d["approved"] == 1 and d["content"].hex() == digest(suite.pre)


def test_review_does_not_approve_what_changed_after_it_was_shown(suite):
    waiting(suite, ID)
    r = Review(suite)
    r.until(b"q(uit): ")
    suite.given = tv.preimage(code=b"evil()\n")
    r.type("y")
    assert b"not what was reviewed" in r.until(b"left")
    r.end(1)
    assert ID.bytes not in suite.admind.decisions


def test_review_rejects_with_a_reason(suite):
    waiting(suite, ID)
    r = Review(suite)
    r.until(b"q(uit): ")
    r.type("n")
    r.until(b"reads it): ")
    r.type("  ")
    r.until(b"reads it): ")
    r.type("too broad")
    assert b"0 approved, 1 rejected" in r.end(0)
    d = suite.admind.decisions[ID.bytes]
    assert d["approved"] == 0 and d["reason"] == "too broad"


def test_review_skips_and_quits(suite):
    """A request that is gone, one that was decided, and the end of the input decide nothing."""
    gone = uuid.UUID(int=1)
    waiting(suite, ID, ID)
    r = Review(suite)
    r.until(b"q(uit): ")
    r.type("s")
    r.until(b"q(uit): ")
    r.type("q")
    assert b"0 approved, 0 rejected, 2 left" in r.end(0)
    waiting(suite, gone, ID)
    r = Review(suite)
    assert b"no such request \\u{202e}" in r.until(b"q(uit): ")
    os.write(r.master, b"\x04")
    assert b"0 approved" in r.end(1)
    suite.state = "approved"
    waiting(suite, ID)
    assert b"0 approved, 0 rejected, 0 left" in Review(suite).end(0)
    assert not suite.admind.decisions


def test_review_of_what_can_not_be_shown(suite):
    """Nobody approves what he can't read."""
    suite.pre = b"garbage"
    waiting(suite, ID)
    r = Review(suite)
    assert b"y(es)" not in r.until(b"reject? n(o) s(kip) q(uit): ")
    r.type("y")
    r.until(b"q(uit): ")
    r.type("s")
    r.end(0)
    assert not suite.admind.decisions


def test_review_wants_a_terminal(suite):
    waiting(suite, ID)
    for args in ([], ["--json"], ["--all"], ["--state", "pending"]):
        r = suite.ctl("approvals", "review", *args, stdin="y\n" * 9)
        assert r.returncode == 2 and not r.stdout and not suite.queries, args
    assert b"needs a terminal" in suite.ctl("approvals", "review", stdin="y\n").stderr


def test_unreachable(tmp_path):
    for args in (["status"], ["approvals", "show", str(ID)], ["doctor"], ["servers", "--json"]):
        r = subprocess.run([CTL, "--run-dir", str(tmp_path), *args], stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=patience(20), check=False)
        assert r.returncode == 3 and b"admind" in r.stderr


def test_a_stranger_is_refused(vault, suite):
    """The vault's own check: the directory would let this user in."""
    uid = vault.uid("stranger")
    tool = vault.path("ctl")
    shutil.copy(CTL, tool)
    os.chmod(tool, 0o755)
    os.chmod(vault.run("admind-vault"), 0o755)
    r = subprocess.run(["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups",
                        tool, "--run-dir", suite.run_dir, "secret", "set", "demo", "TOKEN"],
                       input=b"x", capture_output=True, timeout=patience(20), check=False)
    os.chmod(vault.run("admind-vault"), 0o750)
    assert r.returncode == 3, r.stderr


def test_setup(suite, tmp_path):
    path = tmp_path / "password"
    path.write_text(PASSWORD + "\n")
    r = suite.ctl("setup", "--username", "admin", "--password-file", "/nonexistent")
    assert r.returncode == 2
    assert suite.ctl("setup", "--username", "admin", stdin="short").returncode == 1
    assert suite.text("setup", "--username", "admin", "--password-file", str(path))
    assert suite.admind.admins["admin"][0] == "administrator"
    r = suite.ctl("setup", "--username", "second", stdin=PASSWORD)
    assert r.returncode == 1 and b"there is one" in r.stderr
    # The newline at the file's end is not part of the password.
    with Peer.open(suite.table, suite.vault, "adminweb", "admind-vault", "http") as w:
        assert w.call("LOGIN", username="admin", password=PASSWORD)["_"] == "LOGIN_OK"


def read_terminal(master, until=None):
    """What appears until that text, or until the end; never waits for ever."""
    seen = b""
    while until is None or until not in seen:
        assert select.select([master], [], [], 10)[0], seen
        try:
            more = os.read(master, 1000)
        except OSError:
            return seen
        if not more:
            return seen
        seen += more
    return seen


def test_setup_asks_a_person_twice(suite):
    """On a terminal: not shown, and both entries must be equal."""
    for second, status in (("another one here", 2), (PASSWORD, 0)):
        suite.admind.admins.clear()
        master, slave = pty.openpty()
        p = subprocess.Popen([CTL, "--run-dir", suite.run_dir, "setup", "--username", "person"],
                             stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        seen = b""
        for prompt, line in ((b"characters): ", PASSWORD), (b"again: ", second)):
            seen += read_terminal(master, prompt)
            os.write(master, line.encode() + b"\n")
        seen += read_terminal(master)
        assert p.wait(patience(10)) == status, seen
        os.close(master)
        assert PASSWORD.encode() not in seen
        assert (b"differ" in seen) == (status == 2)


def test_show(suite):
    suite.pre = tv.preimage(code=("def main():\n\tx = 'p\u0430ss" + BIDI + "'\n").encode())
    out = suite.text("approvals", "show", str(ID))
    assert digest(suite.pre) in out and "demo__greet" in out and "TOKEN" in out
    assert "     1 | def main():" in out and "p\\u{430}ss\\u{202e}\\u{2066}\\u{1b}[2J" in out
    assert "requested_by       local" in out
    item = json.loads(suite.text("approvals", "show", str(ID), "--json"))
    assert item["id"] == str(ID) and item["hash"] == digest(suite.pre) and item["state"] == "pending"
    assert item["server"] == "demo" and item["content"]["code"].endswith(BIDI + "'\n")
    assert item["content"]["secrets"] == ["TOKEN"]


def test_circumstances_cannot_pass_for_content(suite):
    """A hostile admind puts its own hash and content beside the real ones."""
    for evil in ('"hash":"' + "0" * 64 + '","content":{"code":"harmless"},"server":"demo"',
                 '"server":"demo"},"content":{', 'not json', '"server":"x","server":"y"',
                 '"notes":"\\u202e\\u001b[2J"'):
        suite.circumstances = evil
        out = suite.text("approvals", "show", str(ID), "--json")
        item = json.loads(out)
        assert item["hash"] == digest(suite.pre) and item["content"]["code"].startswith("def main")
        assert out.count('"hash"') == 1 and out.count('"content"') == 1
        text = suite.text("approvals", "show", str(ID))
        assert "0" * 64 not in text and "harmless" not in text
        assert "\x1b" not in text and "\u202e" not in text


def test_content_that_is_none_is_not_shown(suite):
    for pre in (b"", b"garbage", suite.pre[:-1], suite.pre + b"\0"):
        suite.pre = pre
        for more in ([], ["--json"]):
            r = suite.ctl("approvals", "show", str(ID), *more)
            assert r.returncode == 1 and r.stdout == b"" and b"cannot be shown" in r.stderr


def test_approve(suite):
    out = suite.text("approvals", "approve", str(ID), "--hash", digest(suite.pre))
    assert out == "approved\n"
    d = suite.admind.decisions[ID.bytes]
    assert d["approved"] == 1 and d["actor"] == "root" and d["content"].hex() == digest(suite.pre)
    suite.state = "approved"
    r = suite.ctl("approvals", "approve", str(ID), "--hash", digest(suite.pre))
    assert r.returncode == 1 and b"not pending" in r.stderr


def test_approve_refuses_other_content(suite):
    """Changed since it was read: here, and behind mcpboxctl's back."""
    r = suite.ctl("approvals", "approve", str(ID), "--hash", "0" * 64)
    assert r.returncode == 1 and digest(suite.pre).encode() in r.stderr
    suite.given = tv.preimage(code=b"evil()\n")
    r = suite.ctl("approvals", "approve", str(ID), "--hash", digest(suite.pre))
    assert r.returncode == 1 and b"not what was reviewed" in r.stderr
    assert ID.bytes not in suite.admind.decisions


def test_reject(suite):
    assert suite.text("approvals", "reject", str(ID), "--reason", "too broad") == "rejected\n"
    d = suite.admind.decisions[ID.bytes]
    assert d["approved"] == 0 and d["reason"] == "too broad" and d["seal"] == b""


def test_refusals_are_escaped(suite):
    r = suite.ctl("approvals", "show", str(uuid.UUID(int=1)))
    assert r.returncode == 1 and b"\\u{202e}\\u{2066}\\u{1b}[2J" in r.stderr
    assert b"\x1b" not in r.stderr


def test_a_refused_tail_says_why(suite):
    r = suite.ctl("activity", "tail")
    assert r.returncode == 1 and not r.stdout
    assert r.stderr.decode().startswith("mcpboxctl: refused: not here\nmcpboxctl: "), r.stderr


def test_secret_set(suite):
    for value in (tv.CANARY.decode(), tv.CANARY.decode() + "\n"):
        assert "TOKEN" in suite.text("secret", "set", "demo", "TOKEN", stdin=value)
        assert len(suite.admind.secrets["demo", "TOKEN"]) == 37 + len(tv.CANARY)
    assert tv.CANARY not in suite.admind.seen
    assert suite.ctl("secret", "set", "demo", "TOKEN", stdin="").returncode == 1
    assert suite.ctl("secret", "set", "Demo", "TOKEN", stdin="x").returncode == 1
    assert suite.ctl("secret", "set", "demo", "TOKEN", stdin="x" * 10003).returncode == 2


def test_tables(suite):
    suite.json = json.dumps({"items": [
        {"id": str(ID), "name": "demo" + BIDI, "status": "running", "tool_count": 3,
         "description": "line\nbreak"},
        {"id": "2", "name": "other", "status": "stopped"}], "next_cursor": "abc"}).encode()
    lines = suite.text("servers", "--limit", "7", "--cursor", "here").splitlines()
    assert lines[0].split() == ["id", "name", "status", "tool_count", "description"]
    assert "demo\\u{202e}" in lines[1] and "line\\u{a}break" in lines[1]
    assert lines[2].split() == ["2", "other", "stopped", "-", "-"]
    assert lines[3] == "more: --cursor abc" and len(lines) == 4
    q = suite.queries[-1]
    assert (q["what"], q["limit"], q["cursor"], q["token"], q["id"]) == ("servers", 7, "here", "", "")
    assert json.loads(suite.text("servers", "--json")) == json.loads(suite.json)
    # The queue is what waits, unless more is asked for.
    for words, state, kind in (((), "pending", ""), (("--kind", "tool"), "pending", "tool"), (("--all",), "", ""),
                               (("--state", "approved"), "approved", ""), (("--state", "pending"), "pending", "")):
        suite.text("approvals", "list", *words)
        q = suite.queries[-1]
        assert (q["what"], q["filter_state"], q["filter_kind"]) == ("approvals", state, kind)
    assert suite.ctl("approvals", "list", "--all", "--state", "pending").returncode == 2
    assert suite.ctl("approvals", "list", "more").returncode == 2
    assert suite.ctl("approvals", "list", "--state", "Pending").returncode == 2
    assert suite.ctl("approvals", "list", "--kind", "tools").returncode == 2
    for what in ("tools", "audit", "executions"):
        suite.text(what)
        assert suite.queries[-1]["what"] == what
    suite.json = b'{"name":"demo","nested":{"a":1},"list":[1,2]}'
    assert suite.text("servers", str(ID)) == "name: demo\nnested:\n  a: 1\nlist: 1, 2\n"
    assert (suite.queries[-1]["what"], suite.queries[-1]["id"]) == ("server", str(ID))
    assert suite.text("status") == "name: demo\nnested:\n  a: 1\nlist: 1, 2\n"


def test_no_json_for_people(suite):
    """Lists and objects within a row are words; what is none keeps its quotes, so that no two look
    alike. --json is as it was."""
    suite.json = json.dumps({"items": [
        {"name": "a", "scopes": ["tools:read", "tools:call"], "listeners": ["a, b", "none", "1", "\u202e"], "deny": [],
         "expires_at": None},
        {"name": "b", "scopes": [], "listeners": ["a", "b"], "deny": [1, True, None, {"x": []}]}],
        "next_cursor": None}).encode()
    lines = suite.text("tokens").splitlines()
    assert "tools:read, tools:call" in lines[1] and '"a, b", "none", "1", "\\u{202e}"' in lines[1], lines
    assert " none " in lines[1] and 'a, b' in lines[2] and '1, true, null, {"x":[]}' in lines[2], lines
    assert json.loads(suite.text("tokens", "--json")) == json.loads(suite.json)
    suite.json = json.dumps({"id": "x", "detail": {"host": "a", "ports": [1, 2]}, "connections": [
        {"host": "a.example", "port": 443, "why": "b, c"}, {"host": "", "ok": True}]}).encode()
    assert suite.text("query", "execution", "x") == (
        "id: x\ndetail:\n  host: a\n  ports: 1, 2\nconnections:\n  1:\n    host: a.example\n    port: 443\n"
        "    why: \"b, c\"\n  2:\n    host: \"\"\n    ok: true\n")


@pytest.mark.parametrize("kind, before, args", [
    ("server", "{}", ("query", "server", "{}")), ("tool", "{}", ("query", "tool", "{}")),
    ("tool", "{}/3", ("query", "version", "{}/3")), ("tool", "{}/2-3", ("query", "version_diff", "{}/2-3")),
    ("source", "{}", ("query", "source", "{}")), ("execution", "{}", ("query", "execution", "{}")),
    ("approval", "{}", ("query", "comments", "{}")), ("token", "{}", ("query", "token", "{}")),
    ("token", "{}", ("tokens", "show", "{}")), ("token", "{}", ("tokens", "revoke", "{}")),
    ("server", "{}", ("call", "server_start", "{}")), ("tool", "{}", ("call", "tool_disable", "{}", "reason=x")),
    ("tool", "{}/yaml", ("call", "module_revoke", "{}/yaml")), ("source", "{}", ("call", "source_delete", "{}")),
    ("approval", "{}", ("call", "approval_comment", "{}", "text=x"))])
def test_questions_and_actions_take_first_digits(suite, kind, before, args):
    """The id that was found, with what stands after its slash; a name, and an id, go as they are."""
    suite.json = b"{}"
    suite.ids = json.dumps({"items": [str(ID)], "name": False}).encode()
    short = str(ID)[:8]
    r = suite.ctl(*(a.format(short) for a in args))
    asked = [q for q in suite.queries if q["what"] == "ids"]
    assert [q["id"] for q in asked] == [f"{kind}/{short}"], (r, suite.queries)
    if args[0] == "query":
        assert r.returncode == 0 and suite.queries[-1]["id"] == before.format(ID), r
        suite.text(*(a.format(ID) for a in args))
        assert suite.queries[-1]["id"] == before.format(ID) and len(asked) == 1
    elif args[:2] == ("tokens", "show"):
        assert suite.queries[-1]["id"] == before.format(ID) and not suite.changes, r
    else:
        assert [m.get("id", m.get("which")) for m in suite.changes] == [before.format(ID)], (r, suite.changes)
        assert r.returncode == 1 and b"not here" in r.stderr, r
    suite.changes.clear()
    suite.ids = json.dumps({"items": [str(ID), str(uuid.UUID(int=ID.int + 1))], "name": False}).encode()
    r = suite.ctl(*(a.format(short) for a in args))
    assert r.returncode == 1 and b"ambiguous" in r.stderr, r
    assert suite.queries[-1]["what"] == "ids" and not suite.changes     # nothing was asked or done with it


def test_an_export_for_people_is_rows(suite):
    """The names of the columns once, whatever pages there are; --json is the whole, a line each."""
    items = [{"seq": 7, "at": "2026-11-25T22:17:40Z", "actor": "admin", "action": "login", "subject": "-", "detail": {},
              "row": "00"}]
    suite.json = json.dumps({"items": items, "next_cursor": None}).encode()
    lines = suite.text("audit", "export").splitlines()
    assert len(lines) == 2 and lines[0].split() == ["seq", "at", "actor", "action", "subject", "detail"], lines
    assert lines[1].split()[:4] == ["7", "2026-11-25T22:17:40Z", "admin", "login"] and "{" not in lines[0]
    assert suite.queries[-1]["what"] == "audit_export"
    assert json.loads(suite.text("audit", "export", "--json")) == items[0]
    suite.json = json.dumps({"items": [{"id": str(ID), "tool": "a__b", "result": "x" * 99}], "next_cursor": None}).encode()
    assert suite.text("executions", "export").split() == ["id", "tool", str(ID), "a__b"]
    assert json.loads(suite.text("executions", "export", "--json"))["result"] == "x" * 99
    suite.json = b'{"items":[],"next_cursor":null}'
    assert suite.text("audit", "export") == "none\n" and suite.text("audit", "export", "--json") == ""


def test_gains_are_rows_of_words(suite):
    """Not JSON; a kind that we do not know can't pass for a row of ours."""
    suite.json = json.dumps({"changes": {"base": None, "fields": [], "diff": [], "gains": {
        "hosts": ["api.example.org"], "modules": [], "secrets": ["TOKEN", "a\nhash 00"],
        "limits": [{"limit": "cpu_ms", "before": 1000, "after": None}], "hash": ["x"]}}}).encode()
    lines = suite.text("tools", "diff", "greet", "1", "2").split("gains\n")[1].splitlines()
    assert lines[:2] == ["  hosts            api.example.org", "  secrets          TOKEN"], lines
    assert lines[2:5] == ["  secrets (9 bytes):", lines[3], lines[4]] and lines[3].split() == ["1", "|", "a"], lines
    assert "  limits           cpu_ms: 1000, then the default" in lines and "  other            x" in lines
    assert not [line for line in lines if line.startswith("hash") or line.startswith("  hash")]


@pytest.mark.parametrize("bad", [[], "x", {"gains": [1], "fields": 1, "diff": "x"},
                                 {"gains": {"hosts": 1}, "fields": {}, "diff": [[]]}, {"fields": ["x"], "diff": [None]}])
def test_a_difference_of_other_types_crashes_nothing(suite, bad):
    suite.json = json.dumps({"changes": bad}).encode()
    r = suite.ctl("tools", "diff", "greet", "1", "2")
    assert (r.returncode, r.stderr) == (0, b"") and r.stdout.startswith(b"compared with"), r
    assert b"gains\n" in r.stdout


@pytest.mark.parametrize("bad", [b"", b"{", b'{"a":1,"a":2}', b'{"a":"\x1b"}', b"{} {}", b"\xff"])
def test_answers_that_are_no_json(suite, bad):
    suite.json = bad
    for more in ([], ["--json"]):
        r = suite.ctl("servers", *more)
        assert r.returncode == 1 and r.stdout == b"" and b"not JSON" in r.stderr


def test_doctor(suite):
    suite.layers = json.dumps([{"process": "x", "layer": "seccomp", "state": "enforced",
                                "detail": "", "fix": ""}]).encode()
    out = suite.text("doctor")
    assert "admind-vault" in out and "key_memory" in out and "seccomp" in out
    rows = json.loads(suite.text("doctor", "--json"))
    assert {"process": "x", "layer": "seccomp", "state": "enforced", "detail": "", "fix": ""} in rows
    suite.layers = b"not json"
    assert suite.ctl("doctor").returncode == 1
    os.unlink(suite.vault.run("sandboxd", "ctl.sock"))
    suite.layers = b"[]"
    r = suite.ctl("doctor", "--json")
    assert r.returncode == 3
    assert {"process": "sandboxd", "state": "missing"}.items() <= json.loads(r.stdout)[-1].items()


def test_conf_file(suite, tmp_path):
    conf = tmp_path / "ctl.conf"
    conf.write_text(f"run_dir {suite.run_dir}\n")
    conf.chmod(0o644)
    r = subprocess.run([CTL, "servers", "-f", str(conf)], capture_output=True, timeout=patience(20),
                       stdin=subprocess.DEVNULL, check=False)
    assert r.returncode == 0 and r.stdout == b"none\n", r.stderr
