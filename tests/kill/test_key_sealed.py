"""The master key sealed by real systemd-creds (decision 0058): made, rotated while
all runs, killed at every stage, copied out and brought in. Its plain bytes are
on no disk and in no argument."""
import base64
import glob
import os
import shutil
import signal
import subprocess
import threading

import pytest

from harness.instance import Instance
from harness.net.creds import PROGRAM, Sealed
from kill.halfway import stopped_after
from kill.test_key_rotation import answers, counts, resumed, status, value, SHOW
from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import patience, until

pytestmark = pytest.mark.skipif(not os.path.exists(PROGRAM), reason="needs systemd-creds(1)")
SECRETS = 30


@pytest.fixture(scope="module")
def machine():
    m = Sealed()
    try:
        if not m.works():
            pytest.skip("systemd-creds can't seal here")
        yield m
    finally:
        m.close()


def restart(instance):
    pid = instance.service_pid("admind-vault")
    os.kill(pid, signal.SIGKILL)
    until(lambda: instance.service_pid("admind-vault") not in (None, pid), 20, 0.05, say=instance.logs)


@pytest.fixture(scope="module")
def instance(machine):
    i = Instance()
    try:
        machine.serve(i)
        restart(i)
        resumed_status(i)
        with Client(i.address) as c:
            c.manage("mcpbox_create_server", name="rotated", description="Of the tests.")
            # The vault is there again; admind finds that a moment later.
            for n in range(SECRETS):
                until(lambda n=n: i.ctl("secret", "set", "rotated", f"S{n}", stdin=value(n),
                                        check=False).returncode == 0, 20, 0.1, say=i.logs)
            flow.publish(i, c, "rotated", "t0", SHOW, secrets=["S0"])
        yield i
    finally:
        i.close()


def resumed_status(i):
    until(lambda: i.ctl("key", "status", check=False).returncode == 0, 20, 0.1, say=i.logs)


def command(instance, *words):
    return [os.path.join(instance.state, "bin", "mcpboxctl"), "key", *words]


def key(machine, instance, *words, check=True, **kw):
    r = subprocess.run([*machine.prefix, *command(instance, *words)], capture_output=True,
                       text=True, check=False, timeout=patience(60), **kw)
    assert not check or r.returncode == 0, (r.stdout, r.stderr)
    return r


def at(instance, name=""):
    return os.path.join(instance.state, "key", name)


def names(instance):
    return {os.path.basename(p) for p in glob.glob(at(instance, "*"))}


def test_plain_files_of_root_are_rotated(machine, instance):
    """LoadCredential= of root's file: the vault could not read it itself."""
    before = status(instance)
    assert before["credential"] is True and names(instance) == {"master.key"}
    key(machine, instance, "rotate")
    now = status(instance)
    assert now["key"] != before["key"] and set(counts(instance)) == {now["key"]}
    assert names(instance) == {"master.key", "master.key." + before["key"]}
    for name in names(instance):
        st = os.stat(at(instance, name))
        assert (st.st_uid, st.st_mode & 0o777) == (0, 0o400)
    restart(instance)
    resumed(instance)
    assert status(instance)["key"] == now["key"]


def seal_it(machine, instance):
    """The key's plain file becomes the sealed one."""
    if os.path.exists(at(instance, "master.key.cred")):
        return
    sealed = machine.seal(at(instance, "master.key"), "master.key.cred")
    with open(at(instance, "new"), "wb") as f:
        f.write(sealed)
    os.chmod(at(instance, "new"), 0o400)
    os.rename(at(instance, "new"), at(instance, "master.key.cred"))
    for name in names(instance) - {"master.key.cred"}:
        os.unlink(at(instance, name))
    restart(instance)
    resumed(instance)


def test_sealed_it_is_rotated_and_never_plain_on_the_disk(machine, instance):
    seal_it(machine, instance)
    before = status(instance)
    assert before["credential"] is True
    seen, stop = {}, threading.Event()

    def watch():
        while not stop.is_set():
            for name in os.listdir(at(instance)):
                try:
                    with open(at(instance, name), "rb") as f:
                        seen[name] = max(seen.get(name, b""), f.read(), key=len)
                except OSError:
                    pass

    t = threading.Thread(target=watch)
    t.start()
    try:
        key(machine, instance, "rotate", "--batch", "5")
    finally:
        stop.set()
        t.join()
    now = status(instance)["key"]
    assert now != before["key"] and set(counts(instance)) == {now}
    assert names(instance) == {"master.key.cred", f"master.key.{before['key']}.cred"}
    # Each opens under its own name alone.
    master = machine.open(at(instance, "master.key.cred"))
    older = machine.open(at(instance, f"master.key.{before['key']}.cred"))
    assert len(master) == len(older) == 32 and master != older
    shutil.copy(at(instance, "master.key.cred"), machine.path("other.cred"))
    with pytest.raises(subprocess.CalledProcessError):
        machine.open(machine.path("other.cred"))
    for name, data in seen.items():
        assert master not in data and older not in data, name
        assert base64.b64encode(master) not in data and len(data) != 32, name
    restart(instance)
    resumed(instance)
    assert status(instance)["key"] == now


class Half:
    """A sealed rotation, stopped after some values."""

    def __init__(self, machine, instance, renewed):
        before = status(instance)["key"]
        self.proc = stopped_after(instance, renewed, lambda: subprocess.Popen(
            [*machine.prefix, *command(instance, "rotate", "--batch", "1")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        now = counts(instance)
        assert sum(n for k, n in now.items() if k not in (before, "0" * 16)) >= renewed, now
        assert now.get(before, 0) > 0, "it was over already"
        assert {"master.key.cred", "master.key.next.cred"} <= names(instance)

    def kill(self):
        self.proc.kill()
        self.proc.communicate()


def finish(machine, instance):
    key(machine, instance, "rotate")
    now = status(instance)["key"]
    assert set(counts(instance)) == {now}
    assert not {n for n in names(instance) if ".next" in n or ".fresh" in n or n == "master.key"}
    resumed(instance)
    return now


@pytest.mark.parametrize("victim", ["ctl", "admind-vault", "all"])
def test_killed_half_way(machine, instance, victim):
    seal_it(machine, instance)
    before = status(instance)["key"]
    half = Half(machine, instance, 3)
    if victim != "admind-vault":
        half.kill()
    if victim != "ctl":
        restart(instance)
        half.kill()
    resumed(instance)
    both = status(instance)
    assert both["older"] == before and both["key"] != before, "both from their credentials"
    assert finish(machine, instance) == both["key"], "no third key was made"


def states(machine, old, new, old_id):
    """What each stage leaves on the disk, as name -> (key, name it is sealed under)."""
    key_, next_ = {"master.key.cred": old}, {"master.key.next.cred": new}
    kept = {f"master.key.{old_id}.cred": old}
    return [key_ | {"master.key.fresh": None}, key_ | next_, key_ | next_ | {"master.key.fresh": None},
            key_ | next_ | kept, {"master.key.cred": new} | next_ | kept,
            {"master.key.cred": new} | kept]


@pytest.mark.parametrize("stage", range(6))
def test_killed_at_each_stage_of_the_files(machine, instance, stage):
    """Each state that a kill may leave: the vault starts, and the command ends it."""
    seal_it(machine, instance)
    old_id = status(instance)["key"]
    old = machine.open(at(instance, "master.key.cred"))
    if stage >= 4:
        # The database takes the new key alone by then.
        key(machine, instance, "rotate")
        new, new_id = machine.open(at(instance, "master.key.cred")), status(instance)["key"]
    else:
        new, new_id = os.urandom(32), None
    for name in names(instance):
        os.unlink(at(instance, name))
    for name, master in states(machine, old, new, old_id)[stage].items():
        data = b"half of someth"
        if master is not None:
            data = subprocess.run([*machine.prefix, PROGRAM, "encrypt", f"--name={name}", "-", "-"],
                                  input=master, capture_output=True, check=True).stdout
        with open(at(instance, name), "wb") as f:
            f.write(data)
        os.chmod(at(instance, name), 0o400)
    restart(instance)
    resumed(instance)
    now = finish(machine, instance)
    assert now != old_id and new_id in (None, now) if stage != 5 else now not in (old_id, new_id)
    answers(instance)


def test_a_copy_and_the_way_to_another_machine(machine, instance, tmp_path):
    seal_it(machine, instance)
    here = status(instance)["key"]
    master = machine.open(at(instance, "master.key.cred"))
    copy = str(tmp_path / "copy")
    key(machine, instance, "export", copy)
    with open(copy, "rb") as f:
        assert f.read() == master
    assert os.stat(copy).st_mode & 0o777 == 0o400
    r = key(machine, instance, "export", copy, check=False)
    assert r.returncode == 1 and "exists" in r.stderr
    paper = key(machine, instance, "export", "-").stdout
    assert base64.b64decode(paper) == master
    r = key(machine, instance, "import", copy)
    assert "already" in r.stdout
    # Another machine: no host key of this one, no TPM. The blob is worth nothing there.
    other = Sealed()
    try:
        shutil.copy(at(instance, "master.key.cred"), other.path("master.key.cred"))
        with pytest.raises(subprocess.CalledProcessError):
            other.open(other.path("master.key.cred"))
        os.mkdir(other.path("key"))
        words = ["--key-file", other.path("key", "master.key")]
        written = other.path("paper")
        with open(written, "w", encoding="ascii") as f:
            f.write(paper)
        key(other, instance, "import", written, *words)
        assert os.listdir(other.path("key")) == ["master.key.cred"]
        assert other.open(other.path("key", "master.key.cred")) == master
    finally:
        other.close()
    # Where there is a key already, both are valid and a rotation ends with it.
    foreign = str(tmp_path / "foreign")
    with open(foreign, "wb") as f:
        f.write(os.urandom(32))
    key(machine, instance, "import", foreign)
    assert {"master.key.cred", "master.key.next.cred"} <= names(instance)
    assert machine.open(at(instance, "master.key.next.cred")) == master
    restart(instance)
    resumed(instance)
    both = status(instance)
    assert both["key"] == here and both["older"] not in (None, here)
    r = key(machine, instance, "import", copy, check=False)
    assert r.returncode == 1 and "rotation is under way" in r.stderr
    assert finish(machine, instance) == here
    answers(instance)


def test_an_older_backups_key_comes_back(machine, instance):
    """OPERATIONS: a kept key, sealed, is what `key import` takes."""
    seal_it(machine, instance)
    before = status(instance)["key"]
    key(machine, instance, "rotate")
    now = status(instance)["key"]
    key(machine, instance, "import", at(instance, f"master.key.{before}.cred"))
    restart(instance)
    resumed(instance)
    both = status(instance)
    assert (both["key"], both["older"]) == (now, before)
    assert finish(machine, instance) == now


def test_a_restore_needs_the_sealed_key_of_its_time(machine, instance, tmp_path):
    """The refusal names the sealed file that the rotation left; with it the backup serves, and
    `key verify` says beforehand that a file which does not open will end everything."""
    seal_it(machine, instance)
    before, path = status(instance)["key"], str(tmp_path / "before.backup")
    instance.ctl("backup", path)
    now = finish(machine, instance)
    kept = at(instance, f"master.key.{before}.cred")
    r = instance.ctl("restore", path, check=False)
    assert r.returncode == 1 and f"under the master key {before}, which is not here" in r.stderr, r.stderr
    assert f"`mcpboxctl key import {kept}`" in r.stderr and "nothing was changed" in r.stderr
    assert set(counts(instance)) == {now}
    restart(instance)       # what it still held of the older key is gone
    resumed(instance)
    key(machine, instance, "import", kept)
    r = key(machine, instance, "verify", check=False)
    assert r.returncode == 1 and f"has not read the key {before}" in r.stderr, r.stderr
    restart(instance)
    resumed(instance)
    assert "`mcpboxctl key rotate`" in instance.ctl("restore", path).stdout
    restart(instance)
    resumed(instance)
    assert finish(machine, instance) == now
    good = at(instance, "good")
    os.rename(at(instance, "master.key.cred"), good)
    try:
        shutil.copy(kept, at(instance, "master.key.cred"))      # under a name that is not its own
        r = key(machine, instance, "verify", check=False)
        assert r.returncode == 1 and "systemd-creds decrypt" in r.stderr, r.stderr
    finally:
        os.rename(good, at(instance, "master.key.cred"))
    assert key(machine, instance, "verify").returncode == 0


def test_what_is_no_key_is_not_imported(machine, instance, tmp_path):
    seal_it(machine, instance)
    before = {n: os.stat(at(instance, n)).st_mtime_ns for n in names(instance)}
    for n, data in enumerate((b"", b"x" * 31, b"y" * 33, b"A" * 44, b"z" * 5000)):
        path = str(tmp_path / str(n))
        with open(path, "wb") as f:
            f.write(data)
        r = key(machine, instance, "import", path, check=False)
        assert r.returncode == 1, data[:5]
    r = key(machine, instance, "import", "/nonexistent", check=False)
    assert r.returncode == 1 and "No such file" in r.stderr
    assert {n: os.stat(at(instance, n)).st_mtime_ns for n in names(instance)} == before


def test_what_does_not_open_is_said(machine, instance):
    """A blob that was damaged, or of another machine: an error, and never a new key."""
    seal_it(machine, instance)
    path = at(instance, "master.key.cred")
    with open(path, "rb") as f:
        good = f.read()
    with open(path + ".bad", "wb") as f:
        f.write(good[:120] + bytes(b"BA"[c == 66] for c in good[120:124]) + good[124:])
    os.rename(path + ".bad", path)
    r = key(machine, instance, "rotate", check=False)
    assert r.returncode == 1 and "systemd-creds decrypt" in r.stderr, r.stderr
    assert not [n for n in names(instance) if "next" in n]
    with open(path + ".good", "wb") as f:
        f.write(good)
    os.rename(path + ".good", path)
    assert finish(machine, instance)
