"""Files of one's own beside the package's: what they say holds, no upgrade asks
about them, and purge removes only what `mcpboxctl setup --database` wrote."""
import pathlib
import re
import subprocess

import pytest

from harness.patience import patience

ETC = pathlib.Path("/etc/mcpbox")
CA = "sslrootcert=/etc/mcpbox/database-ca.pem"
REMOTE = f"host=db.example hostaddr=192.0.2.1 port=5432 dbname=mcpbox user=U sslmode=verify-full {CA}"
# As setup_remote.c writes them.
SETUP = {
    "admind": f"owner_database {REMOTE}\ndatabase {REMOTE}\n",
    "mcpboxctl": f"superuser_database {REMOTE}\nowner_database_password_file /etc/mcpbox/owner_database.password\n"
                 f"owner_database {REMOTE}\n",
    "egress": "never 192.0.2.1:5432\n",
}


def header():
    """The first lines of what setup writes, from its source."""
    text = pathlib.Path("/src/admind/ctl/setup/setup_remote.c").read_text()
    literals = re.findall(r'"((?:[^"\\]|\\.)*)"', re.search(r"header\[\] =(.*?);\n\n", text, re.S)[1])
    return "".join(literals).replace("\\n", "\n")


def set_up():
    for name, text in SETUP.items():
        (ETC / f"{name}.conf.local").write_text(header() + text)


def shown(program, name):
    return subprocess.run([f"/usr/libexec/mcpbox/mcpbox-{program}", "-T", "-f", str(ETC / f"{name}.conf")], check=True,
                          capture_output=True, text=True, timeout=patience(20)).stdout


def test_upgrade_replaces_the_package_s_files_and_asks_nothing(machine, newer):
    machine.install()
    set_up()
    mine = {p: p.read_bytes() for p in ETC.glob("*.local")}
    assert len(mine) == 3

    def change(tree):
        for name in SETUP:
            with open(tree / f"etc/mcpbox/{name}.conf", "a") as f:
                f.write("# of the later version\n" + ("never 192.0.2.77\n" if name == "egress" else ""))

    # without a word about which to keep: dpkg would ask, and fail for want of an answer
    machine.dpkg("-i", "--force-unsafe-io", str(newer(change)))
    for name in SETUP:
        assert "# of the later version" in (ETC / f"{name}.conf").read_text()
    assert {p: p.read_bytes() for p in ETC.glob("*.local")} == mine
    assert not [p for p in ETC.iterdir() if ".dpkg-" in p.name]
    assert f"database {REMOTE}\n" in shown("admind", "admind")
    # what the later version denies is denied
    assert "never 192.0.2.77,192.0.2.1:5432\n" in shown("sandboxd-egress", "egress")


def test_each_file_says_where_one_s_own_lines_go(installed):
    for path in ETC.glob("*.conf"):
        words = " ".join(re.findall(r"^# ?(.*)$", path.read_text(), re.M))
        assert f"Put your own lines into {path.name}.local beside this file" in words, path


@pytest.mark.parametrize("line", [None, "connect_timeout 7s", "# a note", "#before-setup database host=/run/mine",
                                  "database host=/run/mine dbname=mcpbox user=mcpbox_app"])
def test_purge_removes_what_setup_wrote_alone(machine, line):
    machine.install()
    set_up()
    path = ETC / "admind.conf.local"
    if line:
        with open(path, "a") as f:
            f.write(line + "\n")
    mine = ETC / "sandboxd.conf.local"
    mine.write_text("slots 4\n")
    said = machine.dpkg("--purge", "mcpbox")
    assert sorted(ETC.iterdir()) == sorted([mine, *([path] if line else [])])
    assert all(f"rm {p}" in said for p in ETC.iterdir())
