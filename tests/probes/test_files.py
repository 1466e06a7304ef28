"""No file of the host can be read, written or even seen."""
import os
import re
import secrets as random_names
import subprocess
import tempfile

import pytest

from harness.patience import until
from probes import outside, runner_driver

READ = '''
def main(path: str):
    try:
        with open(path) as f:
            return {"ok": True, "text": f.read(200)}
    except OSError as e:
        return {"ok": False, "errno": errno.errorcode[e.errno]}
'''


def plant(directory, mode=0o644):
    """A canary that even others may read."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, ".mcpbox-canary-" +
                        random_names.token_hex(8))
    with open(path, "w", encoding="ascii") as f:
        f.write("canary " + path)
    os.chmod(path, mode)
    return path


@pytest.mark.parametrize("directory", [
    "/root", "/root/.ssh", "/root/.aws", "/root/.gnupg", "/root/.kube",
    "/root/.docker", "/home", "/etc", "/etc/ssh", "/var/lib", "/run", "/opt",
    "/srv", "/mnt", "/usr/share", "/usr/local", "/usr/lib", "/usr/bin",
    "/tmp", "/var/tmp", "/dev/shm", "/boot",
])
def test_planted_file(sandbox, directory):
    made = not os.path.isdir(directory)
    path = plant(directory)
    try:
        outside, inside = sandbox.attack(READ, path=path)
        assert outside["ok"] and "canary" in outside["text"]
        assert inside == {"ok": False, "errno": "ENOENT"}, path
    finally:
        os.unlink(path)
        if made:
            os.rmdir(directory)


@pytest.mark.parametrize("path", [
    "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id",
    "/etc/ssl/private", "/etc/ssl/openssl.cnf", "/bin/sh", "/usr/bin/python3",
    "/proc/kallsyms", "/proc/sys/kernel/hostname", "/proc/version",
    "/proc/mounts", "/proc/net/dev", "/proc/meminfo", "/sys/kernel/uevent_seqnum",
    "/dev/tty", "/dev/console", "/dev/ptmx", "/dev/mem", "/dev/kmsg",
])
def test_host_path(sandbox, path):
    assert not sandbox.inside(READ, path=path)["ok"]


def test_parent_directories_lead_nowhere(sandbox):
    path = plant("/root")
    try:
        for trick in ("../" * 40 + path[1:], "/tmp/.." + path,
                      "/proc/self/root" + path,
                      "/proc/self/cwd/" + "../" * 40 + path[1:],
                      "/proc/1/root" + path, "/usr/lib/../.." + path):
            outside, inside = sandbox.attack(READ, path=trick)
            # pid 1's root is not ours where the tests run in a container
            assert outside["ok"] or trick.startswith("/proc/1/"), trick
            assert not inside["ok"], trick
    finally:
        os.unlink(path)


WHITEOUT = '''
import stat, tempfile
def main():
    """Renames with each flag (1: only if there is nothing, 2: exchange, 4: leave a
    whiteout, 8 and a high one: there are none such): what is answered, and whether
    the old name is a device then."""
    out = {}
    with tempfile.TemporaryDirectory() as top:
        one, two = os.path.join(top, "one").encode(), os.path.join(top, "two").encode()
        for flags in (0, 1, 2, 4, 5, 6, 8, 1 << 31):
            for path in (one, two)[:2 if flags & 2 else 1]:
                open(path, "w").close()
            answer = syscall(316, -100, one, -100, two, flags)
            device = os.path.lexists(one) and stat.S_ISCHR(os.lstat(one).st_mode)
            out[str(flags)] = [errno.errorcode.get(-answer, "done"), device]
            for path in (one, two):
                if os.path.lexists(path):
                    os.unlink(path)
    return out
'''


def test_a_rename_leaves_no_device(sandbox):
    """A whiteout (renameat2(2)) is a device node that needs no right to make."""
    outside, inside = sandbox.attack(WHITEOUT)
    done = {flags: ["done", False] for flags in ("0", "1", "2")}
    assert outside == done | {"4": ["done", True], "5": ["done", True], "6": ["EINVAL", False],
                              "8": ["EINVAL", False], str(1 << 31): ["EINVAL", False]}
    assert inside == done | {flags: ["EPERM", False] for flags in ("4", "5", "6", "8", str(1 << 31))}


def test_descriptor_of_the_old_root(sandbox):
    """Nothing left open leads out: every descriptor is listed by number."""
    assert sandbox.inside('''
def main():
    import stat
    kinds = {}
    for fd in range(256):
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            continue
        kinds[fd] = ("dir" if stat.S_ISDIR(mode) else
                     "file" if stat.S_ISREG(mode) else
                     "block" if stat.S_ISBLK(mode) else "other")
    return [k for k, v in kinds.items() if v != "other"] + [
        "too many"] * (len(kinds) > 12)
''') == []


def test_root_holds_only_this(sandbox):
    assert sorted(sandbox.inside("def main(): return os.listdir('/')")) == [
        "dev", "etc", "lib", "lib64", "modules", "proc", "tmp", "usr"]
    assert sorted(sandbox.inside("def main(): return os.listdir('/dev')")) == [
        "full", "null", "random", "shm", "urandom", "zero"]
    assert sandbox.inside("def main(): return os.readlink('/dev/shm')"
                          ) == "/tmp"
    # places for granted modules: this call has none
    assert sandbox.inside("def main(): return [n for n in os.listdir("
                          "'/modules') if os.listdir('/modules/' + n)]") == []
    assert sorted(sandbox.inside("def main(): return os.listdir('/etc')")) == [
        "group", "host.conf", "hosts", "nsswitch.conf", "nsswitch.network", "passwd",
        "resolv.conf", "services", "ssl"]
    # the resolver's is ours, whatever the host's says
    assert sandbox.inside("def main(): return open('/etc/resolv.conf').read()") == (
        "nameserver 127.0.0.1\noptions use-vc timeout:5 attempts:1\n")


def test_certificates_are_the_host_s_public_ones():
    """By their hashes and in one bundle; nothing else of that directory, and no
    private key that lies among them by mistake."""
    certs = "/etc/ssl/certs"
    os.makedirs(certs, exist_ok=True)
    planted = {"0badcafe.7": "-----BEGIN CERTIFICATE-----\nx\n-----BEGIN PRIVATE KEY-----\n",
               "0badcafe.8": "-----BEGIN CERTIFICATE-----\ny\n", "0badcafe.9": "z\n", "mine.key": "w\n"}
    for name, text in planted.items():
        with open(os.path.join(certs, name), "w", encoding="ascii") as f:
            f.write(text)
    host = set(os.listdir(certs))
    try:
        pool = runner_driver.Pool()
        try:
            got = pool.call("import os\ndef main():\n    return {n: open('/etc/ssl/certs/' + n).read()\n"
                            "        for n in os.listdir('/etc/ssl/certs')}\n", {}, result_max=4 << 20).value
        finally:
            pool.close()
    finally:
        for name in planted:
            os.unlink(os.path.join(certs, name))
    assert got.pop("0badcafe.8") == planted["0badcafe.8"]
    assert set(got) == {n for n in host - set(planted)
                        if re.fullmatch(r"[0-9a-f]{8}\.\d+", n) or n == "ca-certificates.crt"}
    for name, text in got.items():
        with open(os.path.join(certs, name), encoding="utf-8") as f:
            assert f.read() == text


def test_no_executable_file(sandbox):
    """Not one regular file that could be executed, wherever it is."""
    assert sandbox.inside('''
def main():
    import stat
    found = []
    for top in ("/usr", "/etc", "/dev", "/tmp"):
        for where, _, names in os.walk(top):
            for name in names:
                path = os.path.join(where, name)
                st = os.lstat(path)
                if stat.S_ISREG(st.st_mode) and st.st_mode & 0o6000:
                    found.append(path)
                if stat.S_ISREG(st.st_mode) and name in ("sh", "bash",
                                                         "python3"):
                    found.append(path)
    return found
''') == []


@pytest.mark.parametrize("path", [
    "/canary", "/usr/canary", "/usr/lib/canary", "/etc/canary", "/dev/canary",
    "/proc/canary", "/lib/canary", "/etc/passwd", "/usr/share/zoneinfo/UTC",
])
def test_write_outside_tmp(sandbox, path):
    code = '''
def main(path: str):
    return attempt(lambda: open(path, "a").write("x"))
'''
    assert sandbox.inside(code, path=path) in ("EROFS", "EACCES", "EPERM",
                                               "ENOENT")
    if path.endswith("canary"):
        assert not os.path.exists(path)


def test_remount_and_chmod_of_the_library(sandbox):
    before = os.stat("/usr/lib/python3.11" if os.path.isdir(
        "/usr/lib/python3.11") else "/usr/lib/python3").st_mode
    got = sandbox.inside('''
def main():
    path = os.path.dirname(os.__file__)
    return [attempt(os.chmod, path, 0o777),
            attempt(os.rename, path, path + "2"),
            attempt(os.unlink, os.__file__)]
''')
    assert None not in got, got
    assert before == os.stat("/usr/lib/python3.11" if os.path.isdir(
        "/usr/lib/python3.11") else "/usr/lib/python3").st_mode


def test_second_runner_s_tmp_is_empty(sandbox):
    name = random_names.token_hex(8)
    write = "def main(name: str):\n    open('/tmp/' + name, 'w').write('x')\n" \
            "    return os.listdir('/tmp')\n"
    assert sandbox.inside(write, name=name) == [name]
    assert sandbox.inside("def main(): return os.listdir('/tmp')") == []
    assert not os.path.exists("/tmp/" + name)


def test_two_runners_at_once_do_not_share_tmp(pool):
    first, second = pool.fork(), pool.fork()
    try:
        assert first.ready()[0] == "ready"
        assert second.ready()[0] == "ready"
        first.execute("import os, time\ndef main():\n"
                      "    open('/tmp/x', 'w').write('canary')\n"
                      "    while os.path.exists('/tmp/x'): time.sleep(0.01)\n    return 1\n", {})
        seen = f"/proc/{outside.host_pid(first)}/root/tmp/x"
        until(lambda: os.path.exists(seen))
        second.execute("import os\ndef main():\n    return os.listdir('/tmp')\n", {})
        assert second.result()[0] == "run_result"
        assert b'"text":"[]"' in second.body
        # It still runs, and the file is still there.
        assert os.path.exists(seen) and not first.exited(0)
    finally:
        first.close()
        second.close()


def test_tmp_is_not_executable(sandbox):
    """A shared object written to /tmp cannot be loaded either."""
    with tempfile.TemporaryDirectory() as d:
        src = os.path.join(d, "x.c")
        with open(src, "w", encoding="ascii") as f:
            f.write("int canary(void) { return 7; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-nostdlib", "-o",
                        d + "/x.so", src], check=True)
        with open(d + "/x.so", "rb") as f:
            import base64
            so = base64.b64encode(f.read()).decode()
    code = '''
import base64, tempfile
def main(so: str):
    path = tempfile.mkdtemp() + "/x.so"
    open(path, "wb").write(base64.b64decode(so))
    try:
        return ctypes.CDLL(path).canary()
    except OSError as e:
        return str(e)
'''
    outside, inside = sandbox.attack(code, so=so)
    assert outside == 7
    assert inside != 7 and "failed to map" in inside


def test_nothing_executes(sandbox):
    code = '''
def main():
    import subprocess
    out = []
    for path in ("/bin/true", "/usr/bin/true"):
        out.append(attempt(subprocess.run, [path]))
    pid = os.fork()
    if pid == 0:
        try:
            os.execv("/usr/bin/true", ["true"])
        except OSError:
            pass
        os._exit(9)
    out.append(os.waitpid(pid, 0)[1] >> 8)
    return out
'''
    outside, inside = sandbox.attack(code)
    assert outside == [None, None, 0]
    assert inside[0] is not None and inside[1] is not None and inside[2] == 9
