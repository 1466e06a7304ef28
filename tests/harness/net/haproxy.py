"""HAProxy as a TCP balancer, which tells its clients' addresses by the PROXY protocol."""
import os
import shutil
import socket
import subprocess
import tempfile

from harness.net.proxy import free_port
from harness.patience import patience, until


class Haproxy:
    """to: (host, port) of the server after it. header: the word of its `server` line."""

    def __init__(self, to, header="send-proxy-v2"):
        self.dir, self.port = tempfile.mkdtemp(prefix="mcphap"), free_port()
        self.stats = os.path.join(self.dir, "stats")
        conf = os.path.join(self.dir, "haproxy.cfg")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(f"""global
    stats socket {self.stats}
defaults
    mode tcp
    timeout connect 5s
    timeout client 10m
    timeout server 10m
listen balancer
    bind 127.0.0.1:{self.port}
    server one {to[0]}:{to[1]} {header} check check-send-proxy inter 1s
""")
        with open(os.path.join(self.dir, "log"), "ab") as log:
            self.process = subprocess.Popen(["haproxy", "-db", "-f", conf], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL)
        until(self.up, say=self.log)

    def row(self):
        """The server's line of `show stat`, by column."""
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(patience(10))
                s.connect(self.stats)
                s.sendall(b"show stat\n")
                text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
        except OSError:
            return None
        names, *lines = [x.strip("# ").split(",") for x in text.splitlines() if x]
        return next((dict(zip(names, x)) for x in lines if x[1] == "one"), None)

    def up(self):
        """One health check passed at least, and the last one."""
        row = self.row()
        return row is not None and row["status"] == "UP" and row["check_status"] == "L4OK"

    def log(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8") as f:
            return f.read()

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(patience(10))
        finally:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
