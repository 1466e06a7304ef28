"""Refusals: exit status 125, nothing is run, one sentence with the fix."""
import os
import pathlib
import subprocess

import pytest

from local.person import RUN, UID


def refused(r, *words):
    assert r.status == 125 and r.out == "", r
    assert r.err.startswith("mcpbox-run: ") and r.err.count("\n") == 1, r
    for w in words:
        assert w in r.err, (w, r)


PROTECTED = [".ssh", ".aws", ".gnupg", ".kube", ".docker", ".config/gh", ".config/gcloud", ".netrc", ".git-credentials",
             ".npmrc", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".local/share/keyrings"]


@pytest.mark.parametrize("path", ["/", "/home", "/etc", "/root", "/run", "/var", "/proc", "/sys", "/dev", "/tmp", "/etc/ssh"])
def test_folders_of_the_machine(person, path):
    if path != "/root":
        refused(person.run("true", cwd=path), "the current folder")
    refused(person.run("true", options=["--rw", path]), f"--rw {path}")
    refused(person.run("true", options=["--ro", path]), f"--ro {path}")


def test_the_home_folder_and_those_above(person):
    for path in (person.home, person.base, "/var/tmp"):
        refused(person.run("true", cwd=path), "the current folder")
        refused(person.run("true", options=["--rw", path]))
    # By another name of the same folder.
    link = person.base / "link"
    os.symlink(person.home, link)
    refused(person.run("true", cwd=link), "home folder")
    refused(person.run("true", options=["--ro", link]), "home folder")
    refused(person.run("true", options=["--ro", f"{person.project}/../../home/."]), "home folder")


@pytest.mark.parametrize("path", PROTECTED)
def test_protected_paths(person, path):
    folder = person.home / path
    folder.mkdir(parents=True)
    for p in (folder, *folder.parents):
        if p.is_relative_to(person.home):
            os.chown(p, UID, UID)
    inner = folder / "inner"
    inner.mkdir()
    for where in (folder, inner):
        refused(person.run("true", cwd=where), "protected")
        refused(person.run("true", options=["--rw", where]), "protected")
        refused(person.run("true", options=["--ro", where]), "protected")
    if folder.parent != person.home:
        refused(person.run("true", cwd=folder.parent), "has the protected", f"{path.split('/')[0]}/")


def test_ancestors_even_if_the_protected_path_is_not_there(person):
    (person.home / ".config").mkdir()
    refused(person.run("true", options=["--ro", person.home / ".config"]), ".config/")


def test_a_protected_path_that_is_a_link(person):
    keys = person.home / "keys/ssh"
    keys.mkdir(parents=True)
    os.symlink(keys, person.home / ".ssh")
    refused(person.run("true", options=["--ro", keys]), "protected")
    refused(person.run("true", options=["--ro", person.home / "keys"]), "protected")


def test_another_home_in_the_environment_does_not_open_the_real_one(person):
    """nobody's home is in the user database; HOME says another."""
    other = person.base / "elsewhere"
    other.mkdir()
    r = person.run("true", options=["--ro", person.home], env={"HOME": str(other)})
    assert r.status == 0, r  # the uid has no entry, so HOME decides
    refused(person.run("true", options=["--ro", "/root"], env={"HOME": str(other)}))


def test_folders_that_all_may_write_to(person):
    (person.home / "open").mkdir()
    (person.home / "open").chmod(0o777)
    inner = person.home / "open/inner"
    inner.mkdir()
    refused(person.run("true", cwd=person.home / "open"), "all users may write", "chmod o-w")
    refused(person.run("true", cwd=inner), "all users may write")


def test_a_folder_that_is_gone(person):
    gone = person.home / "gone"
    gone.mkdir()
    r = person.outside("sh", "-c", f"rmdir ../gone; exec {RUN} true", cwd=gone)
    assert r.status == 125 or (person.home / "gone").exists(), r
    os.chown(person.home, UID, UID)
    gone.mkdir(exist_ok=True)
    refused(person.outside("sh", "-c", f"rmdir ../gone; exec {RUN} true", cwd=gone), "is gone")


def test_root(person):
    r = subprocess.run([RUN, "true"], cwd=person.project, capture_output=True, text=True, check=False)
    assert r.returncode == 125 and "runuser" in r.stderr, r


def test_a_set_user_id_copy(person):
    copy = person.base / "copy"
    copy.write_bytes(pathlib.Path(RUN).read_bytes())
    copy.chmod(0o4755)
    refused(person.outside(copy, "true"), "chmod u-s")


@pytest.mark.parametrize("options,word", [
    (["--none"], "--none"), (["-x"], "-x"), (["--ro="], "needs a value"),
    (["--allow-hooks=1"], "takes no value"), (["--memory", "x"], "512M"), (["--memory", "0"], "512M"),
    (["--memory", "-1"], "512M"), (["--memory", "1T"], "512M"), (["--memory", "99999999999999999999"], "512M"),
    (["--tmp", "1MM"], "512M"), (["--env", "=x"], "NAME"), (["--env", "1a=x"], "NAME"), (["--env", "a-b=x"], "letters"),
    (["--env", "HOME=/x"], "HOME"), (["--profile", "none"], "none"), (["--profile", "/dev/null"], "no file"),
    (["--ro", "/usr/bin/env"], "no folder"), ([], "name the program"), (["--"], "name the program"),
    (["--ro"], "needs a value")])
def test_options(person, options, word):
    argv = [] if "name the program" in word or options == ["--ro"] else ["true"]
    refused(person.run(*argv, options=options), word)


def test_without_user_namespaces(person):
    """In a namespace that may have no further one: it says which setting helps."""
    r = person.outside("unshare", "-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_user_namespaces && "
                       f"exec setpriv --clear-groups {RUN} true")
    if "setpriv" in r.err or "unshare" in r.err:
        r = person.outside("unshare", "-U", f"--map-user={UID}", "--keep-caps", "sh", "-c",
                           f"echo 0 > /proc/sys/user/max_user_namespaces && exec {RUN} true")
    refused(r, "user.max_user_namespaces")


def test_a_mount_that_fails_ends_it(person):
    """Fails closed: /proc that is partly covered can't be mounted anew."""
    r = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs x /proc/sys && exec setpriv "
                        f"--reuid {UID} --regid {UID} --clear-groups {RUN} touch made"],
                       cwd=person.project, env=person.environment(), capture_output=True, text=True, check=False)
    assert r.returncode == 125 and "/proc" in r.stderr, r
    assert not (person.project / "made").exists()


def test_help_and_version_need_nothing(person):
    for option, word in (("--help", "usage: mcpbox-run"), ("--version", "mcpbox-run ")):
        r = person.run(options=[option], cwd="/")
        assert r.status == 0 and r.out.startswith(word) and r.err == "", r
