"""What a call sees of the machine that it runs on: decision 0073 lists it, and this
is the proof that the list says the truth. Each number inside lies between two looks
outside, or is one of them; what proc has beside is not there (test_proc.py)."""
import os
import socket

import pytest

from harness.patience import until

LOOK = '''
import struct, time
def first(path, word, column):
    """A number of the line that begins with a word."""
    for line in open(path):
        if line.split()[0] == word:
            return int(line.split()[column])
def sysinfo():
    """sysinfo(2): seconds since the start, the load, memory in all, processes."""
    room = ctypes.create_string_buffer(256)
    assert syscall(99, ctypes.cast(room, ctypes.c_void_p).value) == 0
    n = struct.unpack_from("q9QH", room)
    return {"uptime": n[0], "load": n[1], "memory": n[4], "processes": n[10]}
def main(what: str, path: str = ""):
    return {
        "uptime": lambda: sysinfo()["uptime"],
        "load": lambda: sysinfo()["load"],
        "memory": lambda: sysinfo()["memory"],
        "processes": lambda: sysinfo()["processes"],
        "getloadavg": lambda: list(os.getloadavg()),
        "pages": lambda: os.sysconf("SC_PHYS_PAGES"),
        "times": lambda: os.times()[4],
        "boot clock": lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
        "processors": lambda: sorted(os.sched_getaffinity(0)),
        "kernel": lambda: os.uname().release,
        "disk": lambda: os.statvfs(path).f_blocks,
        "packets": lambda: sum(int(line.split()[0], 16)
                               for line in open("/proc/self/net/softnet_stat")),
        "TCP memory": lambda: first("/proc/self/net/protocols", "TCP", 3),
        "TCP sockets": lambda: first("/proc/self/net/sockstat", "TCP:", 8),
    }[what]()
'''


@pytest.mark.parametrize("what", ["uptime", "times", "boot clock", "packets"])
def test_what_only_grows(sandbox, what):
    before = sandbox.outside(LOOK, what=what)
    inside = sandbox.inside(LOOK, what=what)
    assert before <= inside <= sandbox.outside(LOOK, what=what)


@pytest.mark.parametrize("what", ["memory", "pages", "processors", "kernel"])
def test_what_stays(sandbox, what):
    assert sandbox.inside(LOOK, what=what) == sandbox.outside(LOOK, what=what)


@pytest.mark.parametrize("what", ["load", "getloadavg", "processes", "TCP memory"])
def test_what_comes_and_goes(sandbox, what):
    """Once it did not change between two looks, or had not yet, or had already."""
    def looks():
        before = sandbox.outside(LOOK, what=what)
        inside = sandbox.inside(LOOK, what=what)
        return inside in (before, sandbox.outside(LOOK, what=what))
    until(looks)


def test_sockets_of_the_machine(sandbox):
    """200 that are made outside are seen in the count inside."""
    few = sandbox.inside(LOOK, what="TCP sockets")
    held = [socket.socket() for _ in range(200)]
    try:
        until(lambda: sandbox.inside(LOOK, what="TCP sockets") >= few + 100)
    finally:
        for s in held:
            s.close()


def test_the_disk_of_the_interpreter(sandbox):
    where = os.path.dirname(os.__file__)
    assert sandbox.inside(LOOK, what="disk", path=where) == os.statvfs(where).f_blocks


def test_what_is_its_own(sandbox):
    """Not the machine's: network devices, and the processes that proc shows."""
    code = '''
def main():
    devices = [line.split(":")[0].strip() for line in list(open("/proc/self/net/dev"))[2:]]
    return [sorted(devices), len([p for p in os.listdir("/proc") if p.isdigit()])]
'''
    outside, inside = sandbox.attack(code)
    assert outside[1] > 1
    assert inside == [["lo"], 1]
