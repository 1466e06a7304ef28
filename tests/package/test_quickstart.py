"""contrib/quickstart --package (decision 0096): the programs of a package in place of a build."""
import os
import pathlib
import shutil
import socket
import subprocess

import pytest

from harness.patience import patience

SRC = pathlib.Path(__file__).resolve().parents[2]
STATE = pathlib.Path(f"/var/lib/mcpbqp-{os.getpid()}")
SOURCES = "usr/share/doc/mcpbox/sources.sha256"


def quickstart(*args, cwd="/"):
    return subprocess.run([SRC / "contrib/quickstart", "--state", STATE, *args], capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL, timeout=patience(400), cwd=cwd)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def installed():
    r = subprocess.run(["dpkg-query", "-W", "-f=${Status}", "mcpbox"], capture_output=True, text=True, check=False)
    return r.stdout, pathlib.Path("/usr/libexec/mcpbox").exists()


BEFORE = installed()


@pytest.fixture(scope="module")
def started(package):
    yield quickstart("--package", package.deb.name, "--mcp-port", free_port(), "--admin-port", free_port(),
                     cwd=package.deb.parent)
    quickstart("--purge")
    shutil.rmtree(STATE, ignore_errors=True)


def test_its_programs_run_and_nothing_is_compiled(started, package):
    assert started.returncode == 0, started.stdout + started.stderr
    assert "Hello, Ada!" in started.stdout and "Building" not in started.stdout
    assert not [n for _, _, names in os.walk(STATE / "build") for n in names if n.endswith((".o", ".c"))]
    # mcpbox-run belongs to no instance: it speaks with no daemon.
    for p in (p for p in package.programs if p.name != "mcpbox-run"):
        assert (STATE / "libexec" / p.name).read_bytes() == p.read_bytes(), p.name
    for n in ("man/man5/mcpbox.conf.5", "man/man1/mcpboxctl.1"):
        assert (STATE / "share" / n).read_text(encoding="utf-8").count("mcpbox")


def test_nothing_of_it_is_installed(started):
    assert started.returncode == 0 and installed() == BEFORE


def test_again_it_unpacks_nothing_and_keeps_the_tool(started, package):
    assert started.returncode == 0
    r = quickstart("--package", package.deb)
    assert r.returncode == 0 and "Hello, Ada!" in r.stdout and "Unpacking" not in r.stdout, r.stdout + r.stderr


@pytest.fixture
def other(package, tmp_path):
    """A package with the fields and sources of ours, but for those that are given."""
    def made(**fields):
        sources = fields.pop("sources", (package.root / SOURCES).read_text(encoding="ascii"))
        names = ("Package", "Version", "Architecture", "Maintainer", "Description")
        control = {n: package.field(n).splitlines()[0] for n in names} | fields
        (tmp_path / "p/DEBIAN").mkdir(parents=True)
        (tmp_path / "p/DEBIAN/control").write_text("".join(f"{n}: {v}\n" for n, v in control.items()), encoding="utf-8")
        if sources is not None:
            (tmp_path / "p" / SOURCES).parent.mkdir(parents=True)
            (tmp_path / "p" / SOURCES).write_text(sources, encoding="ascii")
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tmp_path / "p", tmp_path / "x.deb"], check=True,
                       capture_output=True)
        return tmp_path / "x.deb"
    return made


@pytest.mark.parametrize("fields, says", [
    ({"Package": "mcpcrate"}, "is not a Debian package of mcpbox"),
    ({"Architecture": "m68k"}, "is for m68k, and this machine is amd64"),
    ({"Version": "0.1.0-1+deb99"}, "is 0.1.0-1+deb99, and this machine needs +deb"),
    ({"Version": "0.1.0-1+deb999"}, "contrib/debian/build --suite makes it"),
    ({"sources": "0" * 64 + "\n"}, "was built from other sources than"),
    ({"sources": None}, "was built from other sources than"),
])
def test_what_does_not_fit_is_refused_before_anything_happens(started, other, fields, says):
    assert started.returncode == 0
    before = (STATE / "build/.source").read_text(encoding="ascii")
    r = quickstart("--package", other(**fields))
    assert r.returncode == 1 and says in r.stderr and r.stderr.startswith("quickstart: --package: "), r
    assert (STATE / "build/.source").read_text(encoding="ascii") == before
    assert "Installing" not in r.stdout and "Starting" not in r.stdout
    assert not (STATE / "package.deb").exists()


def test_what_is_no_package_is_named(started, tmp_path):
    assert started.returncode == 0
    (tmp_path / "x.deb").write_text("no package\n", encoding="ascii")
    r = quickstart("--package", tmp_path / "x.deb")
    assert r.returncode == 1 and f"{tmp_path}/x.deb is not a Debian package of mcpbox" in r.stderr, r
    r = quickstart("--package", tmp_path / "none.deb")
    assert r.returncode == 1 and f"{tmp_path}/none.deb can't be read" in r.stderr, r


def test_the_value_is_of_the_sources_and_of_nothing_else(tmp_path):
    """Not of times, modes or what Python leaves; but of a name and of a byte."""
    def value():
        return subprocess.run([SRC / "contrib/debian/sources", tmp_path / "t"], capture_output=True, text=True,
                              check=True).stdout
    names = [n for n in subprocess.run(["git", "-c", "safe.directory=*", "ls-files"], cwd=SRC, capture_output=True, text=True,
                                       check=True).stdout.split("\n")
             if n.startswith(("common/", "admind/", "gatewayd/", "sandboxd/", "sql/", "docs/", "meson"))]
    for n in names:
        (tmp_path / "t" / n).parent.mkdir(parents=True, exist_ok=True)
        if (SRC / n).exists():
            shutil.copyfile(SRC / n, tmp_path / "t" / n)
    first = value()
    assert len(first) == 65
    os.utime(tmp_path / "t/meson.build", (1, 1))
    (tmp_path / "t/meson.build").chmod(0o600)
    (tmp_path / "t/common/__pycache__").mkdir()
    (tmp_path / "t/common/__pycache__/x.pyc").write_bytes(b"x")
    (tmp_path / "t/docs/THREATS.md").unlink()
    assert value() == first
    (tmp_path / "t/common/base/ids.c").rename(tmp_path / "t/common/base/ids2.c")
    assert value() != first
    (tmp_path / "t/common/base/ids2.c").rename(tmp_path / "t/common/base/ids.c")
    assert value() == first
    with open(tmp_path / "t/sql/schema/base.sql", "a", encoding="utf-8") as f:
        f.write("\n")
    assert value() != first
