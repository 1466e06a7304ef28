"""A PostgreSQL on another machine, as the suite sees it: TCP on a loopback
address, TLS with a certificate of an authority of its own, passwords."""
import os
import shutil
import socket
import subprocess

from harness.pg import Postgres


class Authority:
    """Certificates by openssl(1), in a directory."""

    def __init__(self, directory, name="test authority"):
        self.dir = str(directory)
        os.makedirs(self.dir, exist_ok=True)
        os.chmod(self.dir, 0o755)
        self.key, self.cert = self.path("ca.key"), self.path("ca.pem")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                      "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", self.key,
                      "-out", self.cert)
        os.chmod(self.cert, 0o644)

    def path(self, name):
        return os.path.join(self.dir, name)

    @staticmethod
    def _openssl(*args):
        subprocess.run(["openssl", *args], check=True, capture_output=True)

    def issue(self, name):
        """(certificate, key) of a server of that DNS name."""
        key, csr, cert, ext = (self.path(f"{name}.{e}") for e in ("key", "csr", "pem", "ext"))
        with open(ext, "w", encoding="ascii") as f:
            f.write(f"subjectAltName=DNS:{name}\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-subj", f"/CN={name}", "-keyout", key, "-out", csr)
        self._openssl("x509", "-req", "-in", csr, "-CA", self.cert, "-CAkey", self.key,
                      "-CAcreateserial", "-days", "2", "-extfile", ext, "-out", cert)
        return cert, key


def free_port(address):
    with socket.socket() as s:
        s.bind((address, 0))
        return s.getsockname()[1]


class PostgresTls(Postgres):
    """The tests themselves come by the socket, as before."""

    NAME, PASSWORD = "db.test.example", "p'a\\ss w0rd"

    def __init__(self, address="127.0.0.1"):
        super().__init__()
        self.address, self.port = address, free_port(address)
        self.authority = Authority(self.dir / "authority")
        self.use(self.authority.issue(self.NAME))

    def use(self, pair):
        """Serves with that certificate from the next start or reload on."""
        for source, name in zip(pair, ("server.pem", "server.key")):
            path = self.dir / name
            shutil.copy(source, path)
            os.chown(path, self.user.pw_uid, self.user.pw_gid)
            os.chmod(path, 0o600)
        self.options = [f"listen_addresses={self.address}", f"port={self.port}", "ssl=on",
                        f"ssl_cert_file={self.dir / 'server.pem'}",
                        f"ssl_key_file={self.dir / 'server.key'}",
                        f"hba_file={self.dir / 'hba'}"]
        hba = self.dir / "hba"
        hba.write_text(f"local all all trust\nhostssl all all {self.address}/32 scram-sha-256\n",
                       encoding="ascii")
        os.chown(hba, self.user.pw_uid, self.user.pw_gid)

    def passwords(self, password=None):
        quoted = (password or self.PASSWORD).replace("'", "''")
        with self.connect("postgres", "postgres") as c:
            for role in ("mcpbox_app", "mcpbox_owner", "postgres"):
                c.execute(f"ALTER ROLE {role} PASSWORD '{quoted}'")

    def suite(self, user, dbname="mcpbox", **kw):
        """A connection string as the suite's configuration has it; keywords replace or, with
        None, remove."""
        words = {"host": self.NAME, "hostaddr": self.address, "port": self.port, "dbname": dbname,
                 "user": user, "sslmode": "verify-full", "sslrootcert": self.authority.cert} | kw
        return " ".join(f"{k}={v}" for k, v in words.items() if v is not None)
