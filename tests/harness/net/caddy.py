"""Caddy in front of the tunnel's socket: contrib/caddy/Caddyfile as it is, with its name, paths and port; or a site that
`mcpboxctl remote add` wrote, imported by a Caddyfile."""
import os
import re
import shutil
import subprocess

from harness.instance import SRC
from harness.net.proxy import Proxy, free_port


class Caddy(Proxy):
    """Runs as a uid that is nobody but a member of the socket's group."""

    def __init__(self, instance, site=None):
        """site: the path of a file to import, after the options that the example has for all sites."""
        self.dir = os.path.join(instance.parent, "caddy")
        self.port = free_port()
        os.makedirs(self.dir)
        uid, gid = instance.uid("stranger"), instance.uid("gwtunnel")
        os.chown(self.dir, uid, uid)
        with open(site or os.path.join(SRC, "contrib", "caddy", "Caddyfile"), encoding="utf-8") as f:
            text = f.read()
        # The example's names and paths are this test's; nothing else of it changes. Whoever wrote a site knew the socket.
        for wanted, value in ((r"unix//\S+/gatewayd-tunnel/mcp\.sock" if site else r"unix//run/mcpbox/\S+",
                               f"unix/{instance.run('gatewayd-tunnel', 'mcp.sock')}"),
                              (r"(?m)^mcp\.example\.org \{", f"http://:{self.port} {{"),
                              (r"output file \S+", f"output file {self.dir}/access.log")):
            text, n = re.subn(wanted, value, text)
            assert n == 1, wanted
        if site:
            with open(os.path.join(self.dir, "site.caddy"), "w", encoding="utf-8") as f:
                f.write(text)
            with open(os.path.join(SRC, "contrib", "caddy", "Caddyfile"), encoding="utf-8") as f:
                options, _, _ = f.read().partition("\nmcp.example.org {\n")
            text = options + "\nimport site.caddy\n"
        conf = os.path.join(self.dir, "Caddyfile")
        with open(conf, "w", encoding="utf-8") as f:
            f.write(text)
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
