"""The one socket that a runner has: what can be learnt of its other end, and
done to it, beyond frames (integration/sandbox/test_hostile_runner.py has those)."""
import errno
import os
import signal
import socket

import pytest

from harness.patience import patience
from probes import outside, runner_driver
from probes.conftest import PRELUDE, not_run

#: Both ends of a pair outside, the channel inside: as near as a control comes.
MINE = '''
def mine():
    if os.getpid() == 1:
        return socket.socket(fileno=os.dup(3))
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)[0]
'''


@pytest.mark.parametrize("name,option", [
    ("SO_PEERPIDFD", 77), ("SO_PEERGROUPS", 59), ("SO_PEERSEC", 31),
    ("SO_COOKIE", 57), ("SO_MEMINFO", 55), ("SO_NETNS_COOKIE", 71),
    ("SO_BINDTODEVICE", 25), ("SO_GET_FILTER", 26), ("SO_PEEK_OFF", 42)])
def test_facts_about_the_peer(sandbox, name, option):
    """A pidfd of sandboxd is the worst of them."""
    code = MINE + '''
def main(option: int):
    return attempt(mine().getsockopt, socket.SOL_SOCKET, option, 64)
'''
    out, inside = sandbox.attack(code, option=option)
    assert inside == "EPERM"
    if out in ("ENOPROTOOPT", "EOPNOTSUPP"):
        not_run(f"{name}: this kernel has no such option")
    assert out != "EPERM"


def test_pidfd_of_the_peer_is_not_had(pool):
    """The control: outside the option does give a handle of the process."""
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with a, b:
        try:
            fd = a.getsockopt(socket.SOL_SOCKET, 77)
        except OSError as e:
            assert e.errno == errno.ENOPROTOOPT
            not_run("SO_PEERPIDFD: not in this kernel")
        assert f"Pid:\t{os.getpid()}\n" in open(
            f"/proc/self/fdinfo/{fd}", encoding="ascii").read()
        os.close(fd)
    call = pool.call(PRELUDE + '''
def main():
    s = socket.socket(fileno=os.dup(3))
    before = len(os.listdir("/proc/self/fd"))
    refused = [attempt(s.getsockopt, socket.SOL_SOCKET, 77),
               attempt(s.setsockopt, socket.SOL_SOCKET, 76, 1)]
    return {"value": [refused, len(os.listdir("/proc/self/fd")) - before]}
''')
    assert call.value["value"] == [["EPERM", "EPERM"], 0]


def test_credentials_of_the_peer_say_nobody(sandbox):
    """pid 0, and ids that its user namespace has no name for."""
    code = MINE + '''
import struct
def main():
    return struct.unpack("3i", mine().getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
'''
    out, inside = sandbox.attack(code)
    assert out[0] > 1 and out[1] == 0
    assert inside == [0, 65534, 65534]


def test_credentials_are_not_forged(sandbox):
    code = '''
import struct
def main():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    b.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return [attempt(a.sendmsg, [b"x"], [(socket.SOL_SOCKET, 2,
            struct.pack("3i", *who))]) for who in
            ((os.getpid(), 0, 0), (os.getpid(), 8, 0), (os.getppid(), 0, 0))]
'''
    out, inside = sandbox.attack(code)
    assert out == [None] * 3
    assert inside[0] in ("EPERM", "EINVAL") and None not in inside


@pytest.mark.parametrize("name,option", [
    ("SO_ATTACH_FILTER", 26), ("SO_ATTACH_BPF", 50), ("SO_LOCK_FILTER", 44),
    ("SO_SNDBUF", 7), ("SO_RCVBUF", 8), ("SO_SNDBUFFORCE", 32),
    ("SO_MARK", 36), ("SO_PRIORITY", 12), ("SO_TIMESTAMPING", 37),
    ("SO_BUSY_POLL", 46), ("SO_PEEK_OFF", 42), ("SO_ZEROCOPY", 60),
    ("SO_TXTIME", 61), ("SO_PASSSEC", 34), ("SO_PASSPIDFD", 76),
    ("SO_PASSRIGHTS", 83), ("SO_INCOMING_CPU", 49), ("SO_RESERVE_MEM", 73)])
def test_options_of_the_channel(sandbox, name, option):
    code = MINE + '''
def main(option: int):
    return attempt(mine().setsockopt, socket.SOL_SOCKET, option,
                   bytes([1]) + bytes(15))
'''
    out, inside = sandbox.attack(code, option=option)
    assert inside == "EPERM"
    if out == "EPERM":
        not_run(f"{name}: root of this machine may not either")
    if out == "ENOPROTOOPT":
        not_run(f"{name}: this kernel has no such option")


@pytest.mark.parametrize("name,request_", [
    ("SIOCGSKNS", 0x894C), ("SIOCUNIXFILE", 0x89E0), ("SIOCGIFCONF", 0x8912),
    ("SIOCGSTAMP", 0x8906), ("SIOCOUTQ", 0x5411), ("SIOCATMARK", 0x8905),
    ("SIOCSPGRP", 0x8902), ("FIOASYNC", 0x5452), ("FIOSETOWN", 0x8901)])
def test_ioctls_of_the_channel(sandbox, name, request_):
    """SIOCGSKNS would be a descriptor of the namespace that it was made in."""
    code = MINE + '''
def main(request: int):
    buffer = ctypes.create_string_buffer(64)
    return syscall(16, mine().fileno(), request, buffer)
'''
    out, inside = sandbox.attack(code, request=request_)
    assert inside == -errno.EPERM
    if out == -errno.EPERM:
        not_run(f"{name}: root of this machine may not either")


def test_urgent_data(sandbox):
    """MSG_OOB on unix sockets: how a browser's sandbox was left in 2025."""
    code = '''
def main():
    a, b = socket.socketpair()
    return [attempt(a.send, b"x", socket.MSG_OOB),
            attempt(a.sendmsg, [b"x"], [], socket.MSG_OOB),
            attempt(b.recv, 1, socket.MSG_OOB),
            attempt(b.recvmsg, 1, 0, socket.MSG_OOB)]
'''
    out, inside = sandbox.attack(code)
    assert inside == ["EPERM"] * 4
    if out[0] == "EOPNOTSUPP":
        not_run("MSG_OOB: this kernel has none on unix sockets")
    assert out[0] is None and out[2] is None


def test_channel_is_not_opened_again(sandbox):
    code = '''
def main():
    return [attempt(os.open, "/proc/self/fd/3", f)
            for f in (os.O_RDONLY, os.O_RDWR, os.O_PATH)]
'''
    assert sandbox.inside(code)[:2] in (["ENXIO"] * 2, ["EACCES"] * 2)


def test_descriptors_sent_to_a_waiting_runner_end_it(pool):
    """What sandboxd never sends: whoever holds the other end puts nothing
    into a runner's table."""
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        pid = outside.host_pid(runner)
        before = outside.descriptors(pid)
        with open("/etc/hostname", "rb") as f:
            socket.send_fds(runner.channel, [b"x" * 16], [f.fileno()])
        assert runner.exited(2)
        assert before
    finally:
        runner.close()


def test_own_pair_carries_only_its_own(pool):
    """SCM_RIGHTS among its own processes works, and brings nothing that it
    did not have."""
    call = pool.call(PRELUDE + '''
import array
def main():
    a, b = socket.socketpair()
    with open("/tmp/x", "w") as f:
        f.write("mine")
    socket.send_fds(a, [b"x"], [os.open("/tmp/x", os.O_RDONLY)])
    _, fds, _, _ = socket.recv_fds(b, 1, 4)
    return {"value": [os.read(fds[0], 9).decode(),
                      attempt(os.open, "/proc/self/fd/%d" % fds[0],
                              os.O_RDWR)]}
''')
    assert call.value["value"] == ["mine", None]


def test_stopping_itself_does_not_outlive_its_time(pool):
    """SIGSTOP for every process it has: from outside it ends all the same."""
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute(PRELUDE + '''
import signal, time
def main():
    if os.fork() == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.2)
    for s in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGKILL):
        os.kill(1, s)       # pid 1 takes none of them from inside
    return 1
''', {})
        end = runner_driver.Call(runner, runner.result())
        assert end.kind == "run_result"
    finally:
        runner.close()
    runner = pool.fork()
    try:
        assert runner.ready()[0] == "ready"
        runner.execute(PRELUDE + '''
import ctypes, signal
def main():
    ctypes.pythonapi.PyGILState_Ensure()
    for s in range(1, 65):
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, [s])
        except ValueError:
            pass
    while True:
        pass
''', {})
        assert not runner.exited(0.3)
        signal.pidfd_send_signal(runner.pidfd, signal.SIGKILL)
        assert runner.exited(patience(1))
    finally:
        runner.close()
