"""docs/FIRST-HOUR.md is a transcript: what it says is what happens. MCPBOX_WRITE=1 writes it
with what its commands print now; read the difference before it is committed."""
import os
import pathlib
import re

import pytest

from harness.clients import transcript
from harness.clients.mcp import Client, text
from harness.patience import until

SRC = pathlib.Path(__file__).resolve().parents[2]
PAGE = SRC / "docs/FIRST-HOUR.md"
STATE = "/var/lib/mcpbox-quickstart"


@pytest.fixture(scope="module")
def first_hour(instance, tmp_path_factory):
    """The page as it is, and as it would be written now: on an instance beside others, whose
    ports and paths stand for quickstart's."""
    admin, ctl = instance.address("admind-http"), f"{instance.state}/bin/mcpboxctl"
    folder = tmp_path_factory.mktemp("hour")
    (folder / "admin.password").write_text(instance.password + "\n", encoding="ascii")
    shell = transcript.Shell(folder, {"sudo": "", "mcpboxctl": ctl})
    with Client(instance.address) as client:
        def call(tool, arguments):
            reply = client.call(tool, arguments)
            assert reply.result and not reply.result.get("isError"), (tool, reply)
            # A record may come after its answer; the page shows it next.
            until(lambda: instance.psql("SELECT count(*) FROM mcpbox.executions WHERE state <> 'closed'")[0][0] == "0")
            return text(reply)
        page = transcript.Page(PAGE.read_text(encoding="utf-8"), shell, call)
        page.now = {"http://127.0.0.1:8000": f"http://{admin[0]}:{admin[1]}", STATE: str(folder)}
        written = page.written()
    shell.close()
    for run, shown in ((f"http://{admin[0]}:{admin[1]}", "http://127.0.0.1:8000"), (str(folder), STATE)):
        written = written.replace(run, shown)
    if os.environ.get("MCPBOX_WRITE") == "1":
        PAGE.write_text(written, encoding="utf-8")
    return page.text, written


def test_it_prints_what_the_page_says(first_hour):
    said, now = (transcript.masked(t) for t in first_hour)
    assert said.splitlines() == now.splitlines()


def test_the_page_shows_what_it_promises(first_hour):
    said, _ = first_hour
    commands = re.findall(r"^\$ (.*)", said, re.M)
    for part in ("approvals list", "approvals show", "approvals approve", "secret set", "approvals diff", "approvals reject",
                 "executions", "servers stop", "X-CSRF-Token", "If-Match"):
        assert any(part in c for c in commands) or part in said, part
    assert len(commands) > 15


def test_a_page_that_says_something_else_fails(tmp_path):
    """The machinery itself: another text, a line too few; not another id."""
    shell = transcript.Shell(tmp_path, {"sudo": ""})
    a, b = "0198e3a1-7b5c-7d11-9a3c-5f0e2b7c6d41", "0198e3a1-0000-7d11-9a3c-5f0e2b7c6d41"

    def same(printed, command):
        page = transcript.Page(f"```console\n$ {command}\n{printed}\n```\n", shell, None)
        return transcript.masked(page.text) == transcript.masked(page.written())
    assert same("x 1", "sudo echo 'x  1'") and same(f"id {a}", f"echo id {b}")
    assert not same("x 1", "echo x 2") and not same("x", "printf 'x\\ny\\n'") and not same("x\ny", "echo x")
    page = transcript.Page(f"```console\n$ echo {b}\n{a}\n$ echo {a}; V=3\n{a}\n$ echo $V\n3\n```\n", shell, None)
    assert [now.strip() for _, _, now in page.steps()] == [b, b, "3"]
    shell.close()
