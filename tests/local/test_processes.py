"""The program's processes: what they see of others, how they end, what is passed."""
import ctypes
import os
import signal
import subprocess
import threading

import pytest

from harness.patience import patience, until
from local.person import CANARY, RUN, UID, marked

STATUSES = [0, 1, 42, 125, 126, 127, 128, 255]


@pytest.mark.parametrize("status", STATUSES)
def test_the_status_is_the_program_s(person, status):
    assert person.sh(f"exit {status}").status == status


@pytest.mark.parametrize("name", ["KILL", "TERM", "INT", "SEGV", "ABRT", "PIPE", "USR1"])
def test_a_signal_gives_128_and_its_number(person, name):
    r = person.sh(f"kill -{name} $$")
    assert r.status == 128 + getattr(signal, f"SIG{name}"), r


def test_not_found_and_not_executable(person):
    person.write("project/text", "no program")
    person.write("bin/tool", "#!/bin/sh\necho tool\n", 0o755)
    for argv, status, word in (("no-such-program", 127, "--ro"), ("./none", 127, "--ro"), ("./text", 126, "denied"),
                               (str(person.home / "bin/tool"), 127, "--ro"), ("./", 126, "denied")):
        r = person.run(argv)
        assert r.status == status and word in r.err and r.err.startswith("mcpbox-run: "), (argv, r)
    assert person.run(person.home / "bin/tool", options=["--ro", person.home / "bin"]).out == "tool\n"
    assert person.run("tool", options=["--ro", person.home / "bin"],
                      env={"PATH": f"{person.home}/bin:/usr/bin"}).out == "tool\n"


def test_arguments_arrive_as_they_are(person):
    odd = ["", "a b", "*", "$HOME", "--ro", "é", "line\nfeed", "-"]
    r = person.python("import sys; print(sys.argv[1:])")
    assert r.out == "[]\n"
    r = person.run("python3", "-c", "import sys; print(sys.argv[1:])", *odd)
    assert r.out == f"{odd}\n", r


def test_input_and_output_are_passed(person):
    r = person.sh("cat; echo error >&2", input=b"given\0bytes")
    assert r.out == "given\0bytes" and r.err == "error\n"
    big = os.urandom(1 << 20)
    p = person.start(RUN, "cat", stdin=subprocess.PIPE)
    assert p.communicate(big, timeout=patience(60))[0] == big


def test_the_reader_of_a_pipe_hears_its_end(person):
    """mcpbox-run keeps no copy of the output: the program may close it and go on."""
    p = person.start(RUN, "sh", "-c", "echo x; exec >&-; read line", stdin=subprocess.PIPE)
    done = threading.Thread(target=p.stdout.read)
    done.start()
    done.join(patience(30))
    assert not done.is_alive() and p.poll() is None
    p.communicate(b"line\n", timeout=patience(60))
    assert p.returncode == 0


def test_other_descriptors_are_closed(person):
    secret = person.write("secret", CANARY)
    with open(secret, "rb") as f:
        fd = f.fileno()
        os.set_inheritable(fd, True)
        assert CANARY in person.outside("bash", "-c", f"cat <&{fd}", pass_fds=[fd]).out
        f.seek(0)
        r = person.sh("ls /proc/self/fd", pass_fds=[fd])
        assert set(r.out.split()) == {"0", "1", "2", "3"}, r  # 3: of ls itself
        assert person.run("bash", "-c", f"cat <&{fd}", pass_fds=[fd]).status != 0


def test_missing_descriptors_do_not_become_files(person):
    r = person.outside("sh", "-c", f"exec {RUN} sh -c 'ls -l /proc/self/fd; cat' <&- 2>&-")
    assert r.out.count("/dev/null") == 2, r


def test_only_its_own_processes_are_seen(person):
    other = person.start("sleep", "1000")
    try:
        assert str(other.pid) in person.outside("sh", "-c", "cd /proc && echo *").out.split()
        r = person.sh("cd /proc && echo [0-9]*; cat /proc/self/stat | cut -d' ' -f1; cat /proc/1/comm")
        pids = {int(w) for w in r.out.splitlines()[0].split()}
        assert other.pid not in pids and max(pids) < 20, r
        assert person.outside("sh", "-c", f"kill -0 {other.pid}").status == 0
        for target in (other.pid, os.getpid(), -1):
            person.sh(f"kill -9 {target}; kill -0 {target}")
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_signal_to_its_group_and_session_reaches_nobody_outside(person):
    """Outside, kill(0) ends the shell that started it, too."""
    script = "sh -c 'kill -TERM 0'; echo alive"
    assert "alive" not in person.outside("setsid", "-w", "sh", "-c", script).out
    r = person.outside("setsid", "-w", "sh", "-c", f"{RUN} sh -c 'kill -TERM 0; kill -TERM -1'; echo alive")
    assert "alive" in r.out, r


def test_pid_1_is_out_of_reach(person):
    r = person.python("""
import os, ctypes
libc = ctypes.CDLL(None, use_errno=True)
for sig in (9, 15, 19):
    try: os.kill(1, sig)
    except OSError as e: print(e.errno)
print(libc.ptrace(16, 1, 0, 0), ctypes.get_errno())
for name in ("environ", "mem", "maps", "fd", "root"):
    try:
        os.listdir(f"/proc/1/{name}") if name in ("fd", "root") else open(f"/proc/1/{name}").read(1)
        print("read", name)
    except OSError: pass
print("alive")
""")
    assert r.status == 0 and r.out.endswith("alive\n") and "read" not in r.out and "-1 1\n" in r.out, r


def test_it_can_trace_its_own(person):
    r = person.sh("sleep 100 & python3 -c \"import ctypes; print(ctypes.CDLL(None).ptrace(16, $!, 0, 0))\"; kill -9 $!")
    assert r.out.startswith("0"), r


def test_namespaces_are_new(person):
    names = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
    inside = person.sh("for n in " + " ".join(names) + "; do readlink /proc/self/ns/$n; done").out.split()
    outside = [os.readlink(f"/proc/self/ns/{n}") for n in names]
    assert len(inside) == 7 and not set(inside) & set(outside)
    assert person.sh("hostname; cat /proc/self/uid_map").out.split() == ["sandbox", str(UID), str(UID), "1"]


def test_shared_memory_of_the_host(person):
    libc = ctypes.CDLL(None, use_errno=True)
    key = 0x6d637072
    segment = libc.shmget(key, 4096, 0o1000 | 0o666)
    assert segment >= 0
    try:
        look = f"import ctypes; print(ctypes.CDLL(None).shmget({key}, 4096, 0))"
        assert person.outside("python3", "-c", look).out == f"{segment}\n"
        assert person.python(look).out == "-1\n"
    finally:
        libc.shmctl(segment, 0, None)


def test_the_environment_is_a_list(person):
    secret = {"AWS_SECRET_ACCESS_KEY": CANARY, "GITHUB_TOKEN": CANARY, "LD_PRELOAD": "", "SSH_AUTH_SOCK": "/x",
              "DBUS_SESSION_BUS_ADDRESS": "x", "DISPLAY": ":0", "XDG_RUNTIME_DIR": "/run/user/1", "LC_TIME": "C"}
    assert CANARY in person.outside("env", env=secret).out
    r = person.sh("env; cat /proc/*/environ | tr '\\0' '\\n'", env=secret)
    names = {line.split("=")[0] for line in person.run("env", env=secret).out.splitlines()}
    assert CANARY not in r.out and names == {
        "HOME", "LANG", "LC_TIME", "LOGNAME", "MCPBOX_RUN", "PATH", "PWD", "SHELL", "TERM", "USER"}, r


def test_named_variables(person):
    r = person.sh('echo "$A-$B-$C-$D"', ["--env", "A", "--env", "B=given=x", "--env", "C", "--env", "D="],
                  env={"A": "of the caller", "B": "other"})
    assert r.out == "of the caller-given=x--\n", r


def test_path_has_visible_folders_only(person):
    person.write("project/bin/x", "")
    path = f"{person.home}/.local/bin:{person.project}/bin:relative::/usr/bin:/sbin:/opt/bin"
    assert person.sh("echo $PATH", env={"PATH": path}).out == f"{person.project}/bin:/usr/bin:/sbin\n"
    assert person.sh("echo $PATH", env={"PATH": "/nowhere"}).out == "/usr/local/bin:/usr/bin:/bin\n"


@pytest.mark.parametrize("how", ["project", "program", "both"])
def test_links_to_the_program_and_to_the_folder(person, how):
    program, cwd = RUN, person.project
    if how != "project":
        program = person.base / "link"
        os.symlink(RUN, program)
    if how != "program":
        cwd = person.base / "folder"
        os.symlink(person.project, cwd)
    r = person.outside(program, "sh", "-c", "pwd; touch made", cwd=cwd)
    assert r.out == f"{person.project}\n" and (person.project / "made").exists(), r


def test_orphans_end_with_the_program(person):
    mark = "1234567.25"
    r = person.sh(f"setsid sleep {mark} & (trap '' TERM HUP INT; sleep {mark}) & sh -c 'sleep {mark} &'; echo done")
    assert r.out == "done\n" and marked(mark) == {}, r


def test_orphans_are_reaped(person):
    r = person.sh("for i in $(seq 50); do (sh -c 'true &'); done; sleep 0.01; cat /proc/[0-9]*/status | grep -c '^State:.Z'")
    assert int(r.out) <= 2, r


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_all_ends_with_mcpbox_run(person, sig):
    mark = f"1234{int(sig)}.75"
    trap = "trap '' TERM INT HUP QUIT; " if sig == signal.SIGKILL else ""
    p = person.start(RUN, "sh", "-c", f"{trap}setsid sleep {mark} & sleep {mark} & echo up; wait")
    try:
        assert p.stdout.readline() == b"up\n"
        until(lambda: len(marked(f"sleep {mark}")) >= 2)
        p.send_signal(sig)
        status = p.wait(patience(30))
        until(lambda: marked(mark) == {}, 30, say=lambda: marked(mark))
    finally:
        p.kill()
        p.wait()
    # A background process of a shell ignores INT and QUIT; the shell does not.
    assert status == (-sig if sig == signal.SIGKILL else 128 + sig)


def test_a_signal_is_passed_to_a_program_that_handles_it(person):
    p = person.start(RUN, "python3", "-uc", "import signal, sys\n"
                     "signal.signal(signal.SIGTERM, lambda *a: sys.exit(7))\nprint('up')\nsignal.pause()")
    assert p.stdout.readline() == b"up\n"
    p.terminate()
    assert p.wait(patience(30)) == 7


def test_an_ignored_signal_stays_ignored(person):
    r = person.outside("sh", "-c", f"trap '' HUP; exec {RUN} sh -c 'kill -HUP $$; echo alive'")
    assert r.out == "alive\n", r


def test_thirty_two_at_once(person):
    running = [person.start(RUN, "sh", "-c", f"echo {i} > file{i}; cat file{i}; echo $$; exit {i}") for i in range(32)]
    results = [(p.communicate(timeout=patience(120)), p.returncode) for p in running]
    for i, ((out, err), status) in enumerate(results):
        assert status == i and out.split()[0] == str(i).encode() and err == b"", (i, out, err, status)
