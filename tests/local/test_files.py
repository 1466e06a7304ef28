"""The program sees the folders that are named, and nothing else of the machine."""
import os
import stat

import pytest

from local.person import CANARY, UID

SECRETS = [".ssh/id_rsa", ".aws/credentials", ".gnupg/private", ".kube/config", ".docker/config.json",
           ".config/gh/hosts.yml", ".netrc", ".git-credentials", ".npmrc", ".pypirc", ".cargo/credentials.toml",
           "notes.txt", "other/project/file"]


@pytest.mark.parametrize("path", SECRETS)
def test_planted_secrets_of_the_home_folder(person, path):
    secret = person.write(path, CANARY)
    assert CANARY in person.outside("cat", secret).out
    r = person.run("cat", secret)
    assert r.status == 1 and CANARY not in r.out and "No such file" in r.err, r


def test_a_planted_file_elsewhere(person):
    secret = person.base / "canary"
    secret.write_text(CANARY)
    assert CANARY in person.outside("cat", secret).out
    for path in (secret, f"/proc/self/root{secret}", f"../../{secret.name}", f"/proc/1/root{secret}"):
        r = person.run("cat", path)
        assert r.status != 0 and CANARY not in r.out, (path, r)


def test_the_home_folder_is_empty_and_the_program_s_own(person):
    person.write("notes.txt", CANARY)
    r = person.sh("ls -A ~; echo mine > ~/made; cat ~/made")
    assert r.out.split() == ["project", "mine"], r
    assert not (person.home / "made").exists()
    assert person.sh("ls -A ~").out.split() == ["project"]


def test_the_root_has_what_it_lists(person):
    assert set(person.sh("ls /").out.split()) - {"lib32", "lib64", "libx32"} == {
        "bin", "dev", "etc", "lib", "proc", "run", "sbin", "tmp", "usr", "var"}
    assert set(person.sh("ls /dev").out.split()) == {
        "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
    assert person.sh("ls -A /run /var/lib 2>&1").status != 0


def test_devices_work(person):
    r = person.sh("echo x > /dev/null && head -c 4 /dev/zero | od -An -tx1 && head -c 8 /dev/urandom | wc -c;"
                  "head -c9 /dev/zero > /dev/full")
    assert "00 00 00 00" in r.out and "8" in r.out and "No space" in r.err, r


@pytest.mark.parametrize("path", ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/etc/ssl/private", "/etc/mcpbox",
                                  "/etc/hostname.canary", "/etc/fstab", "/etc/machine-id", "/etc/crontab"])
def test_the_rest_of_etc_is_absent(person, path):
    r = person.sh(f"test -e {path} || test -L {path}")
    assert r.status == 1, r


def test_etc_names_the_person_only(person):
    names = {line.split(":")[0] for line in person.run("cat", "/etc/passwd").out.splitlines()}
    assert names == {"root", str(UID), "nobody"}
    assert person.sh("getent hosts localhost && id -u && cat /etc/hostname").out.split()[-2:] == [str(UID), "sandbox"]


@pytest.mark.parametrize("path", ["/usr/x", "/x", "/etc/x", "/dev/x", "/usr/bin/x", "/proc/x", "/run/x", "/var/x"])
def test_the_system_can_not_be_written(person, path):
    r = person.sh(f"touch {path}")
    assert r.status != 0 and not os.path.exists(path), r


def test_the_project_can(person):
    r = person.sh("echo text > file && mkdir -p a/b && mv file a/b/ && cat a/b/file")
    assert r.out == "text\n", r
    made = person.project / "a/b/file"
    assert made.read_text() == "text\n" and made.stat().st_uid == UID


def test_dot_dot_leads_to_the_empty_home(person):
    person.write("above", CANARY)
    assert person.outside("cat", "../above").out == CANARY
    r = person.sh("ls -A ..; cat ../above; cat ../../home/above")
    assert r.out == "project\n" and CANARY not in r.out, r


def test_links_lead_nowhere(person):
    secret = person.write("above", CANARY)
    os.symlink(secret, person.project / "absolute")
    os.symlink("../above", person.project / "relative")
    for name in ("absolute", "relative"):
        assert person.outside("cat", name).out == CANARY
        r = person.run("cat", name)
        assert r.status == 1 and CANARY not in r.out, r


def test_named_folders(person):
    person.write("read/file", "read me")
    person.write("write/file", "write me")
    options = ["--ro", person.home / "read", "--rw", person.home / "write"]
    r = person.sh("cat ~/read/file ~/write/file; echo x > ~/write/new; echo x > ~/read/new", options)
    assert "read mewrite me" in r.out and "Read-only" in r.err, r
    assert (person.home / "write/new").exists() and not (person.home / "read/new").exists()
    assert person.sh("ls -d ~/read ~/write").status != 0


def test_a_named_folder_in_the_project_can_be_read_only(person):
    person.write("project/vendor/deep/file", "x")
    r = person.sh("rm -rf vendor; mv vendor v; echo y > vendor/deep/file; ls", ["--ro", "vendor"])
    assert (person.project / "vendor/deep/file").read_text() == "x", r


def test_a_folder_above_the_project(person):
    person.write("work/shared/file", "shared")
    person.write("work/mine/file", "mine")
    r = person.sh("cat ../shared/file; echo x > new; echo x > ../shared/new", ["--ro", person.home / "work"],
                  cwd=person.home / "work/mine")
    assert r.out == "shared" and (person.home / "work/mine/new").exists(), r
    assert not (person.home / "work/shared/new").exists()


def test_a_folder_that_may_be_missing(person):
    assert person.sh("true", ["--ro-try", person.home / "none"]).status == 0
    r = person.sh("true", ["--ro", person.home / "none"])
    assert r.status == 125 and "No such file" in r.err, r


def test_single_files_of_the_home_folder(person):
    person.write(".gitconfig", "[user]\n\tname = Planted\n")
    r = person.sh("cat ~/.gitconfig; echo x >> ~/.gitconfig", ["--home-file", ".gitconfig"])
    assert "Planted" in r.out and "Read-only" in r.err, r


@pytest.mark.parametrize("name", [".netrc", ".ssh/id_rsa", "/etc/shadow", "link"])
def test_files_that_are_refused(person, name):
    person.write(".netrc", CANARY)
    person.write(".ssh/id_rsa", CANARY)
    os.symlink("/etc/passwd", person.home / "link")
    r = person.sh("true", ["--home-file", name])
    assert r.status == 125 and name.split("/")[-1] in r.err, r


def test_tmp_is_the_program_s_own_and_has_a_size(person):
    with open("/tmp/mcpbox-run-canary", "w", encoding="utf-8") as f:
        f.write(CANARY)
    try:
        assert CANARY in person.outside("cat", "/tmp/mcpbox-run-canary").out
        r = person.sh("ls -A /tmp /var/tmp/; head -c 3M /dev/zero > /tmp/big; stat -c %s /tmp/big", ["--tmp", "1M"])
    finally:
        os.unlink("/tmp/mcpbox-run-canary")
    assert CANARY not in r.out and "mcpbox-run-canary" not in r.out and "No space" in r.err, r
    assert r.out.split()[-1] == str(1 << 20), r
    assert person.sh("ls -A /tmp").out == ""


def test_a_named_pipe_and_odd_names(person):
    odd = "a\nb\tc'\"\\ \x07"
    r = person.python(f"import os; n = {odd!r}\nopen(n, 'w').write('x'); os.mkfifo('pipe')\n"
                      "import threading; threading.Thread(target=lambda: open('pipe', 'w').write('through')).start()\n"
                      "print(open('pipe').read(), sorted(os.listdir('.')) == sorted([n, 'pipe']))")
    assert r.out == "through True\n", r
    assert (person.project / odd).read_text() == "x"


def test_a_project_with_an_odd_name(person):
    odd = person.home / "a b\nc\td'"
    odd.mkdir()
    os.chown(odd, UID, UID)
    r = person.sh("pwd; touch made", cwd=odd)
    assert r.out == f"{odd}\n" and (odd / "made").exists(), r


@pytest.mark.parametrize("how", ["os.chmod('f', 0o4755)", "os.chmod('f', 0o2755)", "os.fchmod(os.open('f', 0), 0o6755)",
                                 "os.open('g', os.O_CREAT | os.O_WRONLY, 0o4755)", "os.mknod('h', 0o104755)"])
def test_no_file_with_the_person_s_rights_is_left(person, how):
    """Each works outside: another user who runs the file would be the person."""
    script = f"import os; os.umask(0); open('f', 'w').close()\n{how}"
    assert person.outside("python3", "-c", script).status == 0
    assert any(p.stat().st_mode & (stat.S_ISUID | stat.S_ISGID) for p in person.project.iterdir())
    for p in person.project.iterdir():
        p.unlink()
    r = person.python(script)
    assert r.status == 1 and "PermissionError" in r.err, r
    assert not any(p.stat().st_mode & (stat.S_ISUID | stat.S_ISGID) for p in person.project.iterdir())


def test_set_user_id_files_of_the_host_lend_nothing(person):
    own = person.project / "id"
    own.write_bytes(open("/usr/bin/id", "rb").read())
    own.chmod(0o4755)   # root's
    assert person.outside(own, "-u").out == "0\n"
    r = person.run("./id", "-u")
    assert r.out == f"{UID}\n", r


def test_a_device_node_can_neither_be_made_nor_used(person):
    os.mknod(person.project / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    (person.project / "zero").chmod(0o666)
    assert person.outside("head", "-c1", "zero").status == 0
    r = person.sh("head -c1 zero; mknod new c 1 5")
    assert r.err.count("not permitted") + r.err.count("denied") == 2, r


def test_the_mounts_are_these(person):
    """As the program reads them: nothing of the host but what is listed."""
    at = [line.split()[4] for line in person.run("cat", "/proc/self/mountinfo").out.splitlines()]
    known = {"/", "/usr", "/proc", "/proc/keys", "/proc/key-users", "/tmp", "/var/tmp", "/dev/pts", "/dev/shm", str(person.home), str(person.project),
             "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
    assert [p for p in at if p not in known and not p.startswith(("/etc/", "/dev/"))] == []
    assert str(person.project) in at
