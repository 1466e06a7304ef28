"""A proxy in front of the tunnel's socket, as a process of its own with files in a directory of its own."""
import contextlib
import os
import socket
import subprocess

from harness.patience import patience, until


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Proxy:
    """Has `dir`, `port` and `process`, which its maker sets."""

    def wait(self):
        """Until it listens. One that ended says why."""
        def listens():
            if self.process.poll() is not None:
                raise RuntimeError(self.log() + (self.process.stderr.read().decode() if self.process.stderr else ""))
            socket.create_connection(self.where(), timeout=patience(1)).close()
            return True
        until(listens, 10, say=self.log, during=OSError)

    def where(self):
        return "127.0.0.1", self.port

    def log(self, name="error.log"):
        with contextlib.suppress(OSError):
            with open(os.path.join(self.dir, name), encoding="utf-8", errors="replace") as f:
                return f.read()
        return ""

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(patience(10))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
