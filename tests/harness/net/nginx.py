"""nginx in front of the tunnel's socket: contrib/nginx/mcpbox.conf as it is, with its paths, port and certificate."""
import os
import re
import shutil
import subprocess

from harness.instance import SRC
from harness.net.proxy import Proxy, free_port


class Nginx(Proxy):
    """Runs as a uid that is nobody but a member of the socket's group."""

    #: In contrib/nginx, where the maker names no other file.
    EXAMPLE = "mcpbox.conf"
    #: The user whose group it is in.
    GROUP = "gwtunnel"

    def __init__(self, instance, replace=(), name="nginx", site=None, tls=None, port=None):
        """site: another file than the example, of the same form. tls: (certificate, key), or it speaks plain HTTP;
        the key becomes a file of this uid. port: None takes a free one."""
        self.dir, self.tls = os.path.join(instance.parent, name), tls
        self.port = port or free_port()
        self.uid, self.gid = instance.uid("stranger"), instance.uid(self.GROUP)
        if tls:
            os.chown(tls[1], self.uid, self.uid)
        os.makedirs(self.dir)
        for path in (self.dir, os.path.join(self.dir, "tmp")):
            os.makedirs(path, exist_ok=True)
            os.chown(path, self.uid, self.uid)
        self.conf = os.path.join(self.dir, "nginx.conf")
        with open(site or os.path.join(SRC, "contrib", "nginx", self.EXAMPLE), encoding="utf-8") as f:
            site = f.read()
        site = self.bound(site, instance)
        for a, b in replace:
            assert a in site, a
            site = site.replace(a, b)
        tmp = "".join(f"{k}_temp_path {self.dir}/tmp/{k};\n" for k in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write(f"pid {self.dir}/pid;\nerror_log {self.dir}/error.log info;\ndaemon off;\nworker_processes 1;\n"
                    f"events {{ worker_connections 512; }}\nhttp {{\n{tmp}{site}}}\n")
        self.process = None
        self.start()

    def bound(self, site, instance):
        """The example's names and paths are this test's; nothing else of it changes."""
        certificate, key = ((f"ssl_certificate {self.tls[0]};", f"ssl_certificate_key {self.tls[1]};")
                            if self.tls else ("", ""))
        return self.replaced(site, (
            (r"unix:/\S+/gatewayd-tunnel/\S+;", f"unix:{instance.run('gatewayd-tunnel', 'mcp.sock')};"),
            (r"listen 443 ssl;", f"listen 127.0.0.1:{self.port}{' ssl' if self.tls else ''};"),
            (r"listen \[::\]:443 ssl;", ""), (r"ssl_certificate \S+;", certificate), (r"ssl_certificate_key \S+;", key),
            *(() if self.tls else ((r"ssl_protocols [^;]+;", ""),)),
            (r"access_log \S+;", f"access_log {self.dir}/access.log;")))

    @staticmethod
    def replaced(site, pairs):
        """The text with each pattern, which it has once, replaced."""
        for wanted, value in pairs:
            site, n = re.subn(wanted, value, site)
            assert n == 1, wanted
        return site

    def start(self):
        self.process = subprocess.Popen(
            ["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), "--groups", str(self.gid),
             "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs",
             shutil.which("nginx", path="/usr/sbin:/usr/bin"), "-e", f"{self.dir}/error.log", "-c", self.conf],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.wait()


class PanelNginx(Nginx):
    """contrib/nginx/mcpbox-panel.conf as it is. The inside network is 127.0.0.0/24, its machine with nginx OWN, and the
    machine that listens 127.0.0.1. nginx is in no group of mcpbox's."""
    OWN = "127.0.0.9"
    EXAMPLE, GROUP = "mcpbox-panel.conf", "stranger"

    def bound(self, site, instance):
        host, port = instance.address("admind-http")
        return self.replaced(site, (
            (r"server 127.0.0.1:8000;", f"server {host}:{port};"),
            (r"listen 192.168.1.10:8443 ssl;", f"listen 127.0.0.1:{self.port} ssl;"),
            (r"deny 192.168.1.10;\n\tdeny 127.0.0.1;", f"deny {self.OWN};"),
            (r"allow 192.168.1.0/24;", "allow 127.0.0.0/24;"),
            (r"ssl_certificate \S+;", f"ssl_certificate {self.tls[0]};"),
            (r"ssl_certificate_key \S+;", f"ssl_certificate_key {self.tls[1]};"),
            (r"access_log \S+;", f"access_log {self.dir}/access.log;")))
