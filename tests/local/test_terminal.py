"""A person's terminal: what is passed through, and that nothing comes back by it."""
import fcntl
import hashlib
import os
import re
import signal
import struct
import subprocess
import termios

import pytest

from harness.patience import until
from local.person import RUN, marked, processes

#: Pushes a line into the input of a terminal, as if the person had typed it.
PUSH = """
import fcntl, os, sys, termios
for path in ("0", "1", "2", "/dev/tty", "/proc/self/fd/0", "/dev/stdin"):
    try:
        fd = int(path) if path.isdigit() else os.open(path, os.O_RDWR)
        for c in b"touch pushed\\n":
            fcntl.ioctl(fd, termios.TIOCSTI, bytes([c]))
        print(path, "pushed")
    except OSError as e:
        print(path, "errno", e.errno)
"""


def test_it_is_a_terminal(person, terminals):
    t = terminals(person.terminal("sh", "-c", "tty; test -t 0 && test -t 1 && test -t 2 && echo all; stty size; ps -o tty= -p $$"))
    t.expect("/dev/pts/0")
    t.expect("all")
    t.expect("24 80")
    t.expect("pts/0")
    assert t.wait() == 0


def test_the_mode_is_taken_over_and_given_back(person, terminals):
    t = terminals(person.terminal("sh", "-c", "stty -a; echo ready; read line; stty -echo raw; echo got $line"))
    before = t.attributes()
    assert before[3] & termios.ECHO
    t.expect("ready")
    assert not t.attributes()[3] & termios.ICANON  # raw while it runs
    t.send("typed\r")
    t.expect("got typed")
    assert t.wait() == 0
    assert t.attributes() == before


def test_the_size_follows(person, terminals):
    t = terminals(person.terminal("bash", "-c", "trap 'stty size' WINCH; stty size; echo ready; while :; do read -t 1 x; done"))
    t.expect("24 80")
    t.expect("ready")
    t.size(50, 132)
    t.expect("50 132")
    t.send("\x03")
    t.wait()


@pytest.mark.parametrize("key,sig", [("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)])
def test_keys_end_the_program(person, terminals, key, sig):
    mark = f"7654{int(sig)}.5"
    t = terminals(person.terminal("sh", "-c", f"echo ready; exec sleep {mark}"))
    t.expect("ready")
    until(lambda: any(line.startswith("sleep") for line in marked(mark).values()))
    t.send(key)
    assert t.wait() == 128 + sig
    until(lambda: marked(mark) == {})


def test_the_terminal_s_end_ends_the_program(person, terminals):
    mark = "76549.5"
    t = terminals(person.terminal("sh", "-c", f"echo ready; exec sleep {mark}"))
    t.expect("ready")
    until(lambda: any(line.startswith("sleep") for line in marked(mark).values()))
    os.kill(t.process.pid, signal.SIGHUP)  # as the kernel does when the window is closed
    assert t.wait() == 128 + signal.SIGHUP
    until(lambda: marked(mark) == {})


def test_a_pushed_line_reaches_no_one_outside(person, terminals):
    legacy = open("/proc/sys/dev/tty/legacy_tiocsti", encoding="ascii").read().strip() \
        if os.path.exists("/proc/sys/dev/tty/legacy_tiocsti") else "1"
    if legacy == "1":
        # The control: without the sandbox the kernel takes it.
        t = terminals(person.terminal("python3", "-c", PUSH, confined=False))
        t.expect("0 pushed")
        t.wait()
    t = terminals(person.terminal("python3", "-c", PUSH))
    t.wait()
    text = t.read()
    assert "pushed\r\n" not in text and len(re.findall(r"errno 1\b", text)) == 6, text
    # Nothing is in the input of the person's terminal.
    os.set_blocking(t.slave, False)
    new = termios.tcgetattr(t.slave)
    new[3] &= ~termios.ICANON
    termios.tcsetattr(t.slave, termios.TCSANOW, new)
    with pytest.raises(BlockingIOError):
        os.read(t.slave, 100)


def test_a_pushed_line_on_a_passed_terminal(person, terminals):
    """Output goes to a pipe, so the program has the person's terminal itself as input."""
    t = terminals(person.terminal("python3", "-c", PUSH, stdout=subprocess.PIPE))
    out = t.process.stdout.read().decode()
    assert t.wait() == 0 and "pushed\n" not in out, out
    assert "0 errno 1\n" in out and "/dev/tty errno 6\n" in out, out
    os.set_blocking(t.slave, False)
    new = termios.tcgetattr(t.slave)
    new[3] &= ~termios.ICANON
    termios.tcsetattr(t.slave, termios.TCSANOW, new)
    with pytest.raises(BlockingIOError):
        os.read(t.slave, 100)


def test_no_other_terminal_is_there(person, terminals):
    t = terminals(person.terminal("sh", "-c", "ls /dev/pts /dev/tty? /dev/console; echo end"))
    text = t.expect("end")
    assert re.findall(r"^(\d+) +ptmx\r$", text, re.M) == ["0"], text


def test_typed_lines_reach_the_program_through_a_pipe(person, terminals):
    t = terminals(person.terminal("cat", stdout=subprocess.PIPE))
    t.send("line\n\x04")
    assert t.process.stdout.read() == b"line\n" and t.wait() == 0


def test_an_interrupt_without_a_terminal_of_its_own(person, terminals):
    """Ctrl-C where only the input is a terminal: mcpbox-run passes it on."""
    mark = "76548.5"
    t = terminals(person.terminal("sh", "-c", f"echo ready; exec sleep {mark}", stdout=subprocess.PIPE))
    assert t.process.stdout.readline() == b"ready\n"
    until(lambda: any(line.startswith("sleep") for line in marked(mark).values()))
    t.send("\x03")
    assert t.wait() == 128 + signal.SIGINT


def test_job_control_of_a_shell_inside(person, terminals):
    t = terminals(person.terminal("bash", "--norc", "-i", env={"PS1": "> "}))
    t.expect("$ ")
    t.send("cat\n")
    until(lambda: "cat" in {line.strip() for line in processes().values()})
    t.send("echoed\n")
    t.expect("echoed\r\nechoed")
    t.send("\x1a")
    t.expect("Stopped")
    t.send("jobs\n")
    t.expect("cat")
    t.send("fg\n")
    t.expect("cat\r\n")
    t.send("again\n")
    t.expect("again\r\nagain")
    t.send("\x04")
    t.expect("$ ")
    t.send("sleep 0.01 & wait; echo done-$((1+1))\n")
    t.expect("done-2")
    t.send("exit 5\n")
    assert t.wait() == 5
    assert "no job control" not in t.read()


def test_stop_and_go_on_by_the_shell_outside(person, terminals):
    """Ctrl-Z stops the job of the outer shell; fg goes on, in raw mode again."""
    t = terminals(person.terminal("bash", "--norc", "-i", confined=False))
    t.expect("$ ")
    t.send(f"{RUN} sh -c 'echo up; read a; echo got $a; stty size'\n")
    t.expect("up\r\n")
    t.send("\x1a")
    t.expect("Stopped")
    t.expect("$ ")
    t.size(30, 90)
    t.send("echo outer-$((2+3))\n")
    t.expect("outer-5")
    t.send("fg\n")
    t.expect("echo up")
    t.send("line\n")
    t.expect("got line")
    t.expect("30 90")
    t.expect("$ ")
    t.send("echo status-$?\n")
    t.expect("status-0")
    t.send("exit\n")
    t.wait()


def test_in_the_background(person, terminals):
    t = terminals(person.terminal("bash", "--norc", "-i", confined=False))
    t.expect("$ ")
    t.send(f"{RUN} sh -c 'wc -c; echo in-$((1+1))' & wait\n")
    t.expect("in-2")
    t.send("exit\n")
    t.wait()


def test_vim(person, terminals):
    """Opens, writes, suspends, goes on, quits; the screen is the person's again."""
    t = terminals(person.terminal("vim", "-u", "NONE", "-N", "file.txt"))
    t.expect("file.txt")
    t.send("ihello from vim\x1b")
    t.expect("hello from vim")
    t.send(":w\r")
    t.expect("written")
    until((person.project / "file.txt").exists)
    t.send(":q\r")
    assert t.wait() == 0
    assert (person.project / "file.txt").read_text() == "hello from vim\n"


def test_much_output_arrives_whole(person, terminals):
    t = terminals(person.terminal("sh", "-c", "seq 20000; echo the-end"))
    assert t.wait() == 0
    numbers = [int(w) for w in re.findall(r"^(\d+)\r$", t.read().replace("\n", "\n"), re.M)]
    assert numbers == list(range(1, 20001)) and "the-end" in t.read()


def test_much_input_arrives_whole(person, terminals):
    t = terminals(person.terminal("sh", "-c", "stty raw -echo; echo ready; head -c 100000 | sha256sum"))
    t.expect("ready")
    sent = 0
    data = bytes(range(32, 96)) * 1563
    while sent < 100000:
        try:
            sent += os.write(t.master, data[sent:min(sent + 4096, 100000)])
        except BlockingIOError:
            t.read()
    assert t.wait() == 0
    assert hashlib.sha256(data[:100000]).hexdigest() in t.read()


def test_the_program_can_not_change_the_person_s_terminal(person, terminals):
    t = terminals(person.terminal("sh", "-c", "stty rows 1 cols 1; stty -echo; kill -KILL $$"))
    before = t.attributes()
    assert t.wait() == 128 + signal.SIGKILL
    assert t.attributes() == before
    assert fcntl.ioctl(t.master, termios.TIOCGWINSZ, b"\0" * 8) == struct.pack("HHHH", 24, 80, 0, 0)
