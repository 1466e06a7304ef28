"""Terminals: a runner is even handed descriptors of real ones, and can do
nothing with them but read and write, which is what it was handed."""
import errno
import fcntl
import os
import pty
import socket
import struct
import termios

import pytest

from probes import runner_driver
from probes.conftest import PRELUDE, not_run

TIOCLINUX, TIOCSTI = 0x541C, 0x5412
REQUESTS = {
    "TIOCSTI": TIOCSTI, "TIOCLINUX": TIOCLINUX, "TIOCSCTTY": 0x540E,
    "TIOCNOTTY": 0x5422, "TIOCCONS": 0x541D, "TIOCSETD": 0x5423,
    "TIOCSWINSZ": 0x5414, "TIOCSPGRP": 0x5410, "TIOCGPGRP": 0x540F,
    "TIOCGSID": 0x5429, "TIOCEXCL": 0x540C, "TIOCNXCL": 0x540D,
    "TIOCPKT": 0x5420, "TIOCVHANGUP": 0x5437, "TIOCGPTPEER": 0x5441,
    "TIOCSPTLCK": 0x40045431, "TIOCSSERIAL": 0x541F, "TIOCMSET": 0x5418,
    "TCSETS": 0x5402, "TCSETSW": 0x5403, "TCSETSF": 0x5404,
    "TCSBRK": 0x5409, "TCXONC": 0x540A, "TCFLSH": 0x540B,
    "KDSETMODE": 0x4B3A, "KDSKBENT": 0x4B47, "KDSKBSENT": 0x4B49,
    "VT_ACTIVATE": 0x5606, "VT_LOCKSWITCH": 0x560B, "PIO_FONTX": 0x4B6C,
}

CODE = '''
def main(requests: dict):
    s = socket.socket(fileno=os.dup(3))
    _, fds, _, _ = socket.recv_fds(s, 16, 4)
    out = {"isatty": [os.isatty(fd) for fd in fds], "given": len(fds)}
    for name, request in requests.items():
        b = ctypes.create_string_buffer(bytes([6]) + bytes(255))
        out[name] = [syscall(16, fd, high | request, b)
                     for fd in fds for high in (0, 1 << 32, -1 << 32)]
    return {"value": out}
'''


@pytest.fixture(scope="module")
def answers(pool):
    """What a runner gets that is given a pty's two ends, and /dev/tty0 where
    there is one."""
    master, slave = pty.openpty()
    fds = [master, slave]
    try:
        fds.append(os.open("/dev/tty0", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        pass
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute(PRELUDE + CODE, {"requests": REQUESTS})
        socket.send_fds(runner.channel, [b"terminals"], fds)
        got = runner_driver.Call(runner, runner.result()).value["value"]
        assert got["given"] == len(fds) and got["isatty"] == [True] * len(fds)
        yield got
    finally:
        runner.close()
        for fd in fds:
            os.close(fd)


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_on_a_given_terminal(answers, name):
    assert set(answers[name]) == {-errno.EPERM}


def test_tioclinux_outside():
    """The control of the above: subcode 6, the shift state, which a console
    answers."""
    try:
        fd = os.open("/dev/tty0", os.O_RDWR | os.O_NOCTTY)
    except OSError as e:
        not_run(f"TIOCLINUX: no console here ({errno.errorcode[e.errno]})")
    try:
        got = fcntl.ioctl(fd, TIOCLINUX, bytes([6]))
        assert len(got) == 1
    finally:
        os.close(fd)


def test_size_and_input_of_a_terminal_outside():
    """Control: on a pty of ours these do what they are refused inside."""
    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 7, 9, 0, 0))
        assert struct.unpack("4H", fcntl.ioctl(
            master, termios.TIOCGWINSZ, bytes(8)))[:2] == (7, 9)
        fcntl.ioctl(slave, 0x540C)      # TIOCEXCL
        fcntl.ioctl(slave, 0x540D)
    finally:
        os.close(master)
        os.close(slave)


def test_no_descriptor_is_a_terminal(sandbox):
    assert sandbox.inside('''
def main():
    return [fd for fd in range(64) if os.isatty(fd)]
''') == []
