"""A service manager with socket activation, for one process of an instance:
holds its listening socket and starts it with LISTEN_FDS, again and again."""
import os
import socket
import subprocess
import sys
import threading
import time

from harness.instance import GROUPS
from harness.patience import until

# The child that becomes the daemon: LISTEN_PID is its own pid, the socket is
# descriptor 3, and exec keeps both.
_BECOME = """
import os, sys
os.dup2(int(sys.argv[1]), 3, inheritable=True)
env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "LISTEN_PID": str(os.getpid()),
       "LISTEN_FDS": "1", "LISTEN_FDNAMES": "http",
       # LeakSanitizer can't look at a process that isn't dumpable.
       "ASAN_OPTIONS": "detect_leaks=0"}
os.execve("/usr/bin/setpriv", ["setpriv", *sys.argv[2:]], env)
"""


class Held:
    """Takes `service` of an instance over from runit. close() gives it back."""

    def __init__(self, instance, service="gatewayd-local", user="gwlocal", program="mcpbox-gatewayd"):
        self.instance, self.service = instance, service
        self.directory = os.path.join(instance.state, "service", service)
        subprocess.run(["sv", "-w", "10", "down", self.directory], check=True,
                       stdout=subprocess.DEVNULL)
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        uid = instance.uid(user)
        self.command = [
            "--reuid", str(uid), "--regid", str(uid),
            "--groups", ",".join(str(instance.uid(g)) for g in GROUPS[user]),
            "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--no-new-privs",
            os.path.join(instance.state, "libexec", program),
            "-f", os.path.join(instance.state, "conf", service + ".conf")]
        self.log = os.path.join(instance.parent, service + ".log")
        self.starts, self.statuses = 0, []
        self.stopping = threading.Event()
        self.process = None
        self._start()
        self.thread = threading.Thread(target=self._restart)
        self.thread.start()

    @property
    def address(self):
        return self.socket.getsockname()

    def _start(self):
        fd = self.socket.fileno()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-c", _BECOME, str(fd), *self.command], pass_fds=[fd],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.starts += 1

    def _restart(self):
        while True:
            self.statuses.append(self.process.wait())
            if self.stopping.is_set():
                return
            self._start()

    def signal(self, sig, wait=30):
        """To the process; waits until its successor has started. How long the
        old one took to end, in seconds."""
        before, process = self.starts, self.process
        begin = time.monotonic()
        process.send_signal(sig)
        until(lambda: self.starts != before, wait, 0.002, say=self.text)
        return time.monotonic() - begin

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def close(self):
        self.stopping.set()
        self.process.kill()
        self.thread.join()
        self.socket.close()
        subprocess.run(["sv", "-w", "10", "up", self.directory], check=False,
                       stdout=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
