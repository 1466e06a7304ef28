"""Caddy in front of the tunnel's socket: contrib/caddy/Caddyfile as it is, with its name, paths and port."""
import contextlib
import os
import re
import shutil
import socket
import subprocess

from harness.instance import SRC
from harness.net.nginx import free_port
from harness.patience import patience, until


class Caddy:
    """Runs as a uid that is nobody but a member of the socket's group."""

    def __init__(self, instance):
        self.dir = os.path.join(instance.parent, "caddy")
        self.port = free_port()
        os.makedirs(self.dir)
        uid, gid = instance.uid("stranger"), instance.uid("gwtunnel")
        os.chown(self.dir, uid, uid)
        with open(os.path.join(SRC, "contrib", "caddy", "Caddyfile"), encoding="utf-8") as f:
            site = f.read()
        # The example's names and paths are this test's; nothing else of it changes.
        for wanted, value in ((r"unix//run/mcpbox/\S+", f"unix/{instance.run('gatewayd-tunnel', 'mcp.sock')}"),
                              (r"(?m)^mcp\.example\.org \{", f"http://:{self.port} {{"),
                              (r"output file \S+", f"output file {self.dir}/access.log")):
            site, n = re.subn(wanted, value, site)
            assert n == 1, wanted
        conf = os.path.join(self.dir, "Caddyfile")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(site)
        self.errors = open(os.path.join(self.dir, "error.log"), "wb")
        self.process = subprocess.Popen(
            ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--groups", str(gid), "--inh-caps=-all",
             "--bounding-set=-all", "--no-new-privs", shutil.which("caddy", path="/usr/sbin:/usr/bin"), "run",
             "--adapter", "caddyfile", "--config", conf],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors,
            env={"PATH": "/usr/bin:/bin", "HOME": self.dir, "XDG_DATA_HOME": self.dir, "XDG_CONFIG_HOME": self.dir})

        def listens():
            if self.process.poll() is not None:
                raise RuntimeError(self.log())
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
        self.errors.close()
