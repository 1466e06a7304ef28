"""Kind command: what a program gets, and that no trick with its arguments gets
out. The shell itself is on the list here, so that what holds is not the list.
"""
import base64
import hashlib
import json
import os
import shutil
import subprocess
import time

import pytest

from harness.patience import patience, until
from probes import runner_driver
from probes.test_files import plant

COMMAND = {"kind": 1}       # enum runner_kind
PROGRAMS = [f"/usr/bin/{name}" for name in (
    "awk", "cat", "chmod", "cp", "echo", "env", "find", "grep", "head", "id",
    "ls", "md5sum", "mkfifo", "nproc", "od", "printf", "sed", "sh", "sleep",
    "sort", "stat", "tar", "tr", "true", "wc", "yes")]
#: A program with the set-id bit, which a copy must not have.
SETID = "/opt/mcpbox-test-setid-id"
#: The dynamic loader, which is a program too.
LOADER = next(filter(os.path.exists, (
    "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")))


@pytest.fixture(scope="module")
def box():
    shutil.copyfile("/usr/bin/id", SETID)
    os.chown(SETID, 0, 0)
    os.chmod(SETID, 0o4755)
    pool = runner_driver.Pool(commands=",".join(
        [*PROGRAMS, SETID, "/usr/bin/mcpbox-not-there", "/etc/passwd"]))
    yield Box(pool)
    pool.close()
    os.unlink(SETID)


class Box:
    def __init__(self, pool):
        self.pool = pool

    def call(self, argv, arguments=None, executable="/usr/bin/sh", spec=None,
             digest=None, **execute):
        with open(executable, "rb") as f:
            has = hashlib.sha256(f.read()).digest()
        spec = {"argv": list(argv), **(spec or {})}
        return self.pool.call(
            json.dumps(spec), arguments or {}, profile=COMMAND,
            executable=executable,
            executable_digest=has if digest is None else digest, **execute)

    def run(self, *argv, **more):
        """structuredContent of a command that was run to its end."""
        return self.call(argv, **more).body["structuredContent"]

    def sh(self, script, **more):
        return self.run("-c", script, **more)

    def inspect(self, spec, executable="/usr/bin/grep"):
        return self.pool.inspect(json.dumps(spec), profile=COMMAND,
                                 executable=executable)


def outside(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=patience(30), check=False)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


@pytest.fixture
def canary():
    path = plant("/root")
    yield path
    os.unlink(path)


# --- What it is ------------------------------------------------------------

def test_inspection_finds_schema_and_digest(box):
    found = box.inspect({"argv": ["-n", "--", "{pattern}", "x{file}y"],
                         "stdin": "{text}"})
    with open("/usr/bin/grep", "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    names = ["file", "pattern", "text"]
    assert found == {
        "ok": True, "doc": None, "is_async": False,
        "executable_digest": digest,
        "input_schema": {
            "type": "object", "required": names,
            "properties": {n: {"type": "string"} for n in names},
            "additionalProperties": False}}


def test_not_on_the_list(box):
    found = box.inspect({"argv": []}, "/usr/bin/python3")
    assert found["ok"] is False
    assert "not on the list" in found["error"]["message"]
    assert "/usr/bin/grep" in found["error"]["message"]
    call = box.call([], executable="/usr/bin/dd")
    assert call.kind == "run_error" and call.failure_name == "bad_code"
    assert "not on the list" in call.text


def test_only_programs_get_in(box):
    """What is no program of this machine was left out, with all else kept."""
    assert box.inspect({"argv": []}, "/etc/passwd")["ok"] is False
    assert box.sh("cat /etc/shadow")["exit_code"] != 0


@pytest.mark.parametrize("spec, says", [
    ([], "object"), ({}, "argv"), ({"argv": "ls"}, "argv"),
    ({"argv": [1]}, "argv[0]"), ({"argv": ["a\0b"]}, "NUL"),
    ({"argv": ["x" * 4097]}, "4096"), ({"argv": ["x"] * 257}, "256"),
    ({"argv": [], "stdin": "a{b}"}, "placeholder"),
    ({"argv": [], "env": {"A B": "c"}}, "variable"),
    ({"argv": [], "env": {"A": 1}}, "env.A"),
    ({"argv": [], "cwd": "/"}, "cwd"),
])
def test_bad_spec(box, spec, says):
    found = box.inspect(spec)
    assert found["ok"] is False and says in found["error"]["message"]


def test_changed_program(box):
    """The version was approved with another program behind this name."""
    call = box.call(["-u"], executable="/usr/bin/id", digest=b"\x11" * 32)
    assert call.kind == "run_error" and call.failure_name == "bad_code"
    assert "11" * 32 in call.text and "approved" in call.text
    call = box.call(["-u"], executable="/usr/bin/id", digest=b"")
    assert call.failure_name == "bad_code", "no digest is no permission"


def test_arguments(box):
    out = box.run("[%s]\\n", "{text}", "a{number}b", "{flag}", "{many}",
                  "{object}", "{", "}", "{}", "{a b}", "$HOME", "${1}",
                  "`id`", "{absent}", "--x={absent}", "{nothing}",
                  executable="/usr/bin/printf",
                  arguments={"text": "a b;|&\n'\"$(id)", "number": 1.5,
                             "flag": True, "many": [1, "ü"],
                             "object": {"k": None}, "nothing": None})
    assert out["stdout"] == "".join(f"[{s}]\n" for s in (
        "a b;|&\n'\"$(id)", "a1.5b", "true", '[1,"ü"]', '{"k":null}', "{",
        "}", "{}", "{a b}", "$HOME", "${1}", "`id`"))


def test_an_argument_is_not_read_twice(box):
    out = box.run("%s", "{a}{b}", executable="/usr/bin/printf",
                  arguments={"a": "{b}", "b": "{a}"})
    assert out["stdout"] == "{b}{a}"


def test_dashes_end_the_options(box):
    call = box.call(["-c", "--", "{p}"], {"p": "--version", "t": "--version\n"},
                    executable="/usr/bin/grep", spec={"stdin": "{t}"})
    assert call.body["structuredContent"]["stdout"] == "1\n"


def test_impossible_arguments(box):
    for value, says in (("a\0b", "NUL"), ("x" * 131072, "131071"),
                        ("\ud800", "surrogate")):
        call = box.call(["{a}"], {"a": value}, executable="/usr/bin/echo")
        assert call.failure_name == "invalid_arguments", value[:3]
        assert says in call.text
    call = box.call(["{a}"] * 40, {"a": "x" * 120000},
                    executable="/usr/bin/echo")
    assert call.failure_name == "invalid_arguments"
    assert "too long" in call.text


def test_streams_and_exit_code(box):
    call = box.call(["-c", "echo out; echo err >&2; exit 42"])
    assert call.kind == "run_error" and call.failure_name == "exception"
    assert call.body["isError"] is True
    got = call.body["structuredContent"]
    assert got.pop("duration_ms") < 10000
    assert got == {"exit_code": 42, "stdout": "out\n", "stderr": "err\n",
                   "stdout_truncated": False, "stderr_truncated": False}
    assert [b["text"] for b in call.body["content"]] == [
        "The command ended with exit code 42.\nout\n",
        "--- stderr ---\nerr\n"]
    call = box.call(["-c", "echo out; echo err >&2"])
    assert call.kind == "run_result" and call.body["isError"] is False
    assert [b["text"] for b in call.body["content"]] == [
        "out\n", "--- stderr ---\nerr\n"]


def test_ended_by_a_signal(box):
    got = box.sh("echo before; kill -TERM $$")
    assert got["exit_code"] is None and got["signal"] == "SIGTERM"
    assert got["stdout"] == "before\n"


def test_output_that_is_no_text(box):
    got = box.run(r"a\377\000b", executable="/usr/bin/printf")
    assert base64.b64decode(got["stdout_base64"]) == b"a\xff\0b"
    assert got["stdout"] == "a�\0b"
    assert "stderr_base64" not in got


def test_input(box):
    """M-28: nothing but what the call gives; else it is at its end."""
    assert box.run(executable="/usr/bin/cat")["stdout"] == ""
    text = "ü" * 50000      # more than a pipe holds
    got = box.run("-c", executable="/usr/bin/wc", arguments={"t": text},
                  spec={"stdin": "{t}"})
    assert got["stdout"] == "100000\n"
    got = box.run("-c", "1", executable="/usr/bin/head",
                  arguments={"t": text}, spec={"stdin": "{t}"})
    assert got["exit_code"] == 0, "who reads less than all is no error"


def test_environment_and_place(box):
    """M-15: names that are always the same, and the spec's own."""
    got = box.run("-0", executable="/usr/bin/env",
                  spec={"env": {"EXTRA": "{literal}", "TZ": "CET"}})
    assert sorted(got["stdout"].rstrip("\0").split("\0")) == [
        "EXTRA={literal}", "HOME=/tmp", "LANG=C.UTF-8", "PATH=/usr/bin:/bin",
        "SSL_CERT_DIR=/etc/ssl/certs", "TERM=dumb", "TMPDIR=/tmp", "TZ=CET"]
    got = box.sh("pwd; echo x > file; cat file; id -un; umask")
    lines = got["stdout"].split()
    assert lines[:2] == ["/tmp", "x"] and lines[2].startswith("tool")


def test_large_output_is_cut(box):
    """What is kept fits into the result; the rest was read and is counted."""
    call = box.call(["-c", "yes 0123456789 | head -c 300000"],
                    result_max=20000)
    assert call.kind == "run_result" and len(call.raw) <= 20000
    got = call.body["structuredContent"]
    assert got["stdout_truncated"] is True and len(got["stdout"]) > 4000
    assert "more bytes were printed" in call.text


def test_cut_between_characters(box):
    got = box.call(["-c", "yes ü€ | head -c 90000"],
                   result_max=20011).body["structuredContent"]
    assert got["stdout_truncated"] and "stdout_base64" not in got
    assert set(got["stdout"]) == {"ü", "€", "\n"}


def test_escapes_count(box):
    """Six bytes for one in JSON, four thirds and more in base64."""
    for byte in (r"\001", r"\377"):
        call = box.call(["-c", f"yes | head -c 60000 | tr 'y\\n' '{byte}'"],
                        result_max=30000)
        assert call.kind == "run_result" and len(call.raw) <= 30000
        assert call.body["structuredContent"]["stdout_truncated"]


def test_who_holds_the_pipe_holds_nothing(box):
    got = box.sh("sleep 1000000 & sleep 1000000 & echo done")
    assert got["stdout"] == "done\n"


def host_memory(runner):
    """Resident KiB of the runner's pid 1, seen from outside."""
    with open(f"/proc/self/fdinfo/{runner.pidfd}", encoding="ascii") as f:
        pid = next(line.split()[1] for line in f if line.startswith("Pid:"))
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f
                    if line.startswith("VmRSS:"))


def read_bytes(runner):
    """Bytes that the runner's pid 1 has read of anything."""
    with open(f"/proc/self/fdinfo/{runner.pidfd}", encoding="ascii") as f:
        pid = next(line.split()[1] for line in f if line.startswith("Pid:"))
    with open(f"/proc/{pid}/io", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("rchar:"))


def test_flood_costs_constant_memory(box):
    """M-25, C-39: `yes` for its whole time."""
    runner = box.pool.fork(**COMMAND)
    try:
        assert runner.ready()[0] == "ready"
        with open("/usr/bin/yes", "rb") as f:
            digest = hashlib.sha256(f.read()).digest()
        runner.execute(json.dumps({"argv": []}), {}, executable="/usr/bin/yes",
                       executable_digest=digest)
        # More than it may keep; then many times as much as its memory may grow.
        until(lambda: read_bytes(runner) > 8 << 20)
        early, began, before = host_memory(runner), time.monotonic(), read_bytes(runner)
        until(lambda: read_bytes(runner) > before + (64 << 20))
        assert host_memory(runner) < early + 4096
        # It is thrown away slowly, however fast the machine is, so that it costs
        # little (command.c: some 64 MB a second).
        assert time.monotonic() - began > (64 << 20) / 128e6
        assert not runner.exited(0)
    finally:
        runner.close()


def test_limits_name_themselves(box):
    call = box.call(["-c", "while :; do :; done"], cpu_ms=1000)
    assert call.failure_name == "limit" and "cpu_ms is 1000 ms" in call.text
    call = box.call(["-c", "exec head -c 9000 /dev/zero > /tmp/f"],
                    file_bytes=4096)
    assert call.failure_name == "limit"
    assert "file_bytes is 4096 bytes" in call.text
    call = box.call([], executable="/usr/bin/true", processes=1)
    assert call.failure_name == "limit" and "processes is 1" in call.text
    call = box.call(["-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done"],
                    processes=4)
    assert "fork" in call.text.lower() or call.kind == "run_error"


# --- What it cannot reach --------------------------------------------------

@pytest.mark.parametrize("case, argv", [
    ("C-30 newline", ["/usr/bin/sh", "-c", "true\ncat CANARY"]),
    ("C-31 ampersand", ["/usr/bin/sh", "-c", "true & cat CANARY; wait"]),
    ("C-32 env", ["/usr/bin/env", "sh", "-c", "cat CANARY"]),
    ("C-32 env -S", ["/usr/bin/env", "-S", "cat CANARY"]),
    ("C-33 find", ["/usr/bin/find", "/tmp", "-maxdepth", "0", "-exec", "cat",
                   "CANARY", ";"]),
    ("C-34 awk", ["/usr/bin/awk", 'BEGIN{system("cat CANARY")}']),
    ("C-34 awk file", ["/usr/bin/awk", "{print}", "CANARY"]),
    ("C-34 awk pipe", ["/usr/bin/awk",
                       'BEGIN{"cat CANARY" | getline x; print x}']),
    ("C-35 sed e", ["/usr/bin/sed", "1e cat CANARY", "/etc/hosts"]),
    ("C-35 sed r", ["/usr/bin/sed", "-n", "1r CANARY", "/etc/hosts"]),
    ("C-37 tar", ["/usr/bin/tar", "-cf", "/dev/null", "--checkpoint=1",
                  "--checkpoint-action=exec=cat CANARY", "/etc/hosts"]),
    ("C-41 cd", ["/usr/bin/sh", "-c", "cd /root && cat CANARY"]),
    ("link", ["/usr/bin/sh", "-c",
              "cd /tmp; ln -s CANARY c$$ 2>&-; cp -P CANARY . ; cat CANARY"]),
    ("proc root", ["/usr/bin/cat", "/proc/self/rootCANARY"]),
    ("dots", ["/usr/bin/cat", "../../../../../..CANARY"]),
])
def test_no_trick_reads_a_file(box, canary, case, argv):
    argv = [item.replace("CANARY", canary) for item in argv]
    assert "canary " in outside(*argv), case + " proves nothing"
    call = box.call(argv[1:], executable=argv[0])
    assert "canary /" not in json.dumps(call.body), case
    assert call.body["structuredContent"] is not None


def test_sort_compress_program(box, canary, tmp_path):
    """C-36: sort starts a program of the caller's choice, with its rights."""
    script = f"cat {canary} >&2; cat"
    argv = ["-S", "20k", "-T", "/tmp", "--compress-program"]
    helper = tmp_path / "helper"
    helper.write_text(f"#!/bin/sh\n{script}\n")
    helper.chmod(0o755)
    lines = "\n".join(str(n) for n in range(8000))
    done = subprocess.run(["/usr/bin/sort", *argv, str(helper)], input=lines,
                          capture_output=True, text=True, check=False)
    assert "canary /" in done.stderr
    body = box.call([*argv[:-1], "--compress-program=sh"], {"t": lines},
                    executable="/usr/bin/sort", spec={"stdin": "{t}"}).body
    assert "canary /" not in json.dumps(body)
    got = box.sh(f"printf '#!/bin/sh\\n{script}\\n' > h; chmod 755 h; "
                 "yes 123456789 | head -8000 | sort -S 20k --compress-program=/tmp/h")
    assert "canary /" not in json.dumps(got)


def test_dollar_is_a_dollar(box):
    """C-38"""
    got = box.run("$HOME", "{a}", "*", executable="/usr/bin/echo",
                  arguments={"a": "${HOME} `id`"})
    assert got["stdout"] == "$HOME ${HOME} `id` *\n"


def test_harmless_texts_pass(box):
    """C-40, C-41, C-42: nothing is refused for what it looks like."""
    text = "a;b\na|b\n"
    for pattern in (";", "a|b", "&&", "`", "$("):
        got = box.run("-F", "--", pattern, executable="/usr/bin/grep",
                      arguments={"t": text}, spec={"stdin": "{t}"})
        assert got["exit_code"] == (0 if pattern in text else 1)
    assert box.sh("cd /tmp && pwd")["stdout"] == "/tmp\n"
    with open("/usr/bin/ls", "rb") as f:
        digest = hashlib.sha256(f.read()).digest()
    assert box.call(["-d", "/tmp"], executable="/bin/ls", digest=digest
                    ).body["structuredContent"]["stdout"] == "/tmp\n"


@pytest.mark.parametrize("script", [
    "cp /usr/bin/id /tmp/x && chmod 755 /tmp/x && /tmp/x",
    "cp /usr/bin/id /tmp/x && chmod 755 /tmp/x && "
    f"exec {LOADER} /tmp/x",
    "printf '#!/bin/sh\\nid\\n' > /tmp/x; chmod 755 /tmp/x; /tmp/x",
    "exec $(ls -d /lib/*/libc.so.6 /lib64/libc.so.6 2>&- | head -1)",
])
def test_only_the_list_is_executed(box, script):
    """Nothing that a command made or found; control: the same, outside."""
    made = "/tmp/x"
    if os.path.exists(made):
        os.unlink(made)
    assert "uid=0" in outside("sh", "-c", script) or "GNU C" in outside(
        "sh", "-c", script)
    if os.path.exists(made):
        os.unlink(made)
    got = box.sh(script)
    assert got["exit_code"] != 0 and "uid=" not in got["stdout"], got
    assert "GNU C" not in got["stdout"], got


def test_set_id_programs(box):
    """The bit does not come along, and would do nothing."""
    done = subprocess.run([SETID], user=65534, group=65534, extra_groups=[],
                          capture_output=True, text=True, check=True)
    assert "euid=0(root)" in done.stdout
    got = box.run(executable=SETID)
    assert got["exit_code"] == 0 and "euid" not in got["stdout"]
    assert "uid=0" not in got["stdout"]
    got = box.run("-c", "%a %u", SETID, executable="/usr/bin/stat")
    assert got["stdout"].split()[0] == "555"
    got = box.sh("cp /usr/bin/id i; chmod 4755 i; stat -c %a i; "
                 "grep NoNewPrivs /proc/self/status")
    assert got["stdout"].split()[-1] == "1"


def test_the_toolbox_is_read_only(box):
    got = box.sh("for f in /usr/bin/id /etc/hosts /x /dev/x /proc/1/comm "
                 "/usr/x; do echo x > $f && echo WROTE $f; done; true")
    assert "WROTE" not in got["stdout"] and got["exit_code"] == 0
    got = box.sh("echo x > /tmp/ok && echo WROTE")
    assert got["stdout"] == "WROTE\n", "the control"


def test_nothing_of_the_platform_is_open(box):
    got = box.sh("ls -l /proc/self/fd /proc/1/fd; cat /proc/1/environ; "
                 "cat /proc/1/maps")
    fds = [line for line in got["stdout"].splitlines() if "->" in line]
    assert len(fds) == 4, fds       # 0, 1, 2 and the directory ls reads
    assert "socket" not in got["stdout"]
    assert len(got["stderr"].splitlines()) == 3, got    # pid 1 is hidden


def test_pid_1_survives(box):
    got = box.sh("kill -9 1; kill -STOP 1; kill -TERM -1; kill -9 -- -1; "
                 "echo alive")
    assert got.get("signal") in (None, "SIGKILL")
    got = box.sh("kill -9 1; kill -STOP 1; kill -TERM 1; echo alive")
    assert got["stdout"] == "alive\n"


def test_nobody_else_is_seen(box):
    got = box.sh("ls /proc")
    pids = [p for p in got["stdout"].split() if p.isdigit()]
    assert len(pids) <= 3, pids
    assert "kallsyms" not in got["stdout"]


def test_system_calls_of_a_program(box):
    """The filter is a command's, and on."""
    got = box.sh("grep -E '^(Seccomp|CapEff|CapBnd|CapPrm):' "
                 "/proc/self/status")
    lines = dict(line.split() for line in got["stdout"].splitlines())
    assert lines == {"Seccomp:": "2", "CapEff:": "0" * 16,
                     "CapPrm:": "0" * 16, "CapBnd:": "0" * 16}
    assert outside("sh", "-c", "mkfifo /tmp/mcpbox-fifo; rm /tmp/mcpbox-fifo"
                   ) == ""
    got = box.sh("cat < /dev/tcp/127.0.0.1/1")
    assert got["exit_code"] != 0
