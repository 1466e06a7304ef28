"""docs/OPERATIONS.md, "Another machine": the very lines that stand there, on two machines of namespaces, each with the
distribution's own PostgreSQL and users with other numbers."""
import os
import pathlib
import re
import shutil

import pytest

from harness.machine import Machine

GUIDE = pathlib.Path(__file__).resolve().parents[3] / "docs/OPERATIONS.md"
FILES = ("move.dump", "move.key", "move.tar.gz")


def lines():
    """Of the old machine, of the new one."""
    text = GUIDE.read_text(encoding="utf-8")
    block = re.search(r"^### Another machine\n.*?((?:^    [^\n]*\n)+)", text, re.S | re.M)[1]
    # /etc is where these machines' files can be had from outside
    block = re.sub(r" {2,}#.*", "", block.replace("    # the", "# the")).replace("/root/", "/etc/")
    old, new = block.split("# the new one")
    clean = lambda part: [s for x in part.splitlines()[1:] if (s := x.strip())]
    return clean(old), clean(new)


@pytest.fixture
def machines():
    made = []

    def machine():
        made.append(Machine())
        return made[-1]
    yield machine
    for m in made:
        print(m.logs()[-3000:])
        m.close()


def run(m, line, done):
    """One line, by root's shell. systemctl stands for the manager, apt for what the machine has."""
    if line.startswith("apt install"):
        return ""
    if line.startswith("systemctl disable"):
        return m.stop_daemons()
    line = line.replace("mcpbox_DATE_TIME", done.get("kept", ""))
    out = m.run("bash", "-euc", line, env={"PATH": m.libexec + ":/usr/sbin:/usr/bin:/sbin:/bin",
                                           "LC_ALL": "C.UTF-8"}, check=False)
    if line != "mcpboxctl doctor":  # no installation is whole here
        assert out.returncode == 0, (line, out.stdout, out.stderr)
    if line.startswith("systemctl restart"):  # which returns when all serve; the database is found a moment later
        for ask in ("key status", "servers"):
            m.sh(f"for i in {{1..200}}; do ! {m.libexec}/mcpboxctl {ask} >/dev/null 2>&1 || break; sleep 0.1; done")
    if line.startswith("mcpboxctl restore"):
        done["kept"] = re.search(r"mcpbox_\d{8}_\d{6}", out.stdout)[0]
    return out.stdout


def test_as_the_guide_says(machines):
    a = machines()
    a.write("/etc/password", "correct horse battery\n", "0600")
    assert a.setup("--username", "ada", "--password-file", "/etc/password")[1] == 0
    a.ctl("servers", "create", "demo", "what moves")
    a.ctl("secret", "create", "demo", "API_TOKEN")
    a.sh(f"echo v4lue | {a.libexec}/mcpboxctl secret set demo API_TOKEN")
    a.sh("mkdir -p /var/lib/mcpbox/modules/entry; echo 'log_level debug' >>/etc/mcpbox/gatewayd-local.conf")
    old, new = lines()
    assert len(old) >= 5 and len(new) >= 9
    done = {}
    ident = [run(a, line, done) for line in old][0].split()[2]
    # what the archive must not hold
    assert not re.search(r"key|password", a.sh("tar -tzf /etc/move.tar.gz"))

    b = machines()
    for name in FILES:
        shutil.copy(os.path.join(a.dir, "etc", name), os.path.join(b.dir, "etc", name))
    said = [run(b, line, done) for line in new]
    assert f"master key {ident}\n" in "".join(said) and " 0 unreadable" in "".join(said)
    assert "the chain holds" in "".join(said)
    assert b.sql("SELECT username FROM mcpbox.admin_users") == "ada"
    assert b.sql("SELECT name FROM mcpbox.servers WHERE deleted_at IS NULL") == "demo"
    assert b.sql("SELECT count(*) FROM pg_database WHERE datname ~ '^mcpbox_'") == "0"
    assert "log_level debug" in b.read("/etc/mcpbox/gatewayd-local.conf")
    assert b.sh("ls /var/lib/mcpbox/modules").split() == ["entry"]
    assert not os.path.exists(os.path.join(b.dir, "etc/move.key"))
