"""What a process of a unit could do before it confines itself: run in the unit's
place by test_hardening.py. Prints one JSON object, action -> did it work.

	probe.py PORT		of a listener on this machine's loopback
"""
import ctypes
import json
import mmap
import os
import socket
import stat
import sys
import tempfile

CLONE_NEWUSER = 0x10000000
SYS_PTRACE, SYS_PERSONALITY, SYS_KEYCTL = 101, 135, 250	# x86-64
libc = ctypes.CDLL(None, use_errno=True)


def syscall(*args):
    if libc.syscall(*args) == -1:
        raise OSError(ctypes.get_errno(), "syscall")


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(60)
        s.connect(address)


def make(family, kind=socket.SOCK_DGRAM):
    socket.socket(family, kind).close()


def read(path):
    with open(path, "rb") as f:
        f.read(1)


def write(folder):
    path = os.path.join(folder, f"by-{os.getpid()}")
    with open(path, "wb"):
        os.unlink(path)


def suid():
    with tempfile.NamedTemporaryFile(dir="/tmp") as f:
        os.fchmod(f.fileno(), stat.S_ISUID | 0o700)


def executable_memory():
    with mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC):
        pass


def user_namespace():
    """In a child: it can't be left again."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if libc.unshare(CLONE_NEWUSER) == 0 else 1)
    if os.waitpid(pid, 0)[1] != 0:
        raise OSError("unshare")


def shared_memory(key):
    if libc.shmget(key, 0, 0) == -1:
        raise OSError(ctypes.get_errno(), "shmget")


ACTIONS = {
    "reach a listener": lambda: connect(socket.AF_INET, ("127.0.0.1", int(sys.argv[1]))),
    "reach an abstract socket": lambda: connect(socket.AF_UNIX, "\0canary"),
    "make AF_INET": lambda: make(socket.AF_INET),
    "make AF_INET6": lambda: make(socket.AF_INET6),
    "make AF_NETLINK": lambda: make(socket.AF_NETLINK, socket.SOCK_RAW),
    "write to /etc": lambda: write("/etc/canary"),
    "write to /var/lib": lambda: write("/var/lib/canary"),
    "write to /run": lambda: write("/run/canary"),
    "read the host's /tmp": lambda: read("/tmp/canary"),
    "read a home": lambda: read("/home/canary/file"),
    "read a device": lambda: read("/dev/canary"),
    "see process 1": lambda: read("/proc/1/status"),
    "see /proc/meminfo": lambda: read("/proc/meminfo"),
    "see a sysctl": lambda: read("/proc/sys/kernel/ostype"),
    "find shared memory": lambda: shared_memory(0x6d637062),
    "make a file setuid": suid,
    "get executable memory": executable_memory,
    "make a user namespace": user_namespace,
    "change the personality": lambda: syscall(SYS_PERSONALITY, 0x0040000),
    "use the keyring": lambda: syscall(SYS_KEYCTL, 0, -3, 1),
    "be traced": lambda: syscall(SYS_PTRACE, 0, 0, 0, 0),
}


def main():
    done = {}
    for name, action in ACTIONS.items():
        try:
            action()
            done[name] = True
        except (OSError, MemoryError) as e:
            done[name] = f"{type(e).__name__}: {e}"
    print(json.dumps(done))


main()
