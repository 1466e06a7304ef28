"""Caddy in front of the tunnel's socket: contrib/caddy/Caddyfile as it is, with its name, paths and port."""
import os
import re
import shutil
import subprocess

from harness.instance import SRC
from harness.net.proxy import Proxy, free_port


class Caddy(Proxy):
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
        self.wait()

    def close(self):
        super().close()
        self.errors.close()
