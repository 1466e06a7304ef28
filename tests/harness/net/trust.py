"""A certificate authority of a test's own, which runners trust: their certificates
come from the machine's /etc/ssl/certs, and here the calling thread, and what it
starts, see another directory in its place.

    ca = Authority(tmp)                   # a CA in this directory
    with ca.trusted(): Instance(...)      # its runners trust it alone
    ca.context("id.example")              # ssl.SSLContext of a server of that name
"""
import contextlib
import ctypes
import os
import ssl
import subprocess

CERTS = "/etc/ssl/certs"
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 4096, 16384, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


def _check(rc):
    if rc != 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def _openssl(*words):
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, text=True).stdout


class Authority:
    def __init__(self, top):
        self.top = top
        self.key, self.crt = top / "ca.key", top / "ca.crt"
        self.certs = top / "certs"
        self.certs.mkdir()
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                 "/CN=a test's authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", self.key, "-out", self.crt)
        name = _openssl("x509", "-in", self.crt, "-noout", "-subject_hash").strip() + ".0"
        (self.certs / name).write_bytes(self.crt.read_bytes())
        os.chmod(self.certs, 0o755)
        os.chmod(self.certs / name, 0o644)

    def context(self, *names, days=2):
        """Of a server with these names or addresses; several may be made. Its files are in self.top / names[0]."""
        top = self.top / names[0].replace(":", "_")
        top.mkdir(exist_ok=True)
        alt = ",".join(("IP:" if n.replace(".", "").isdigit() or ":" in n else "DNS:") + n for n in names)
        # Python 3.13 asks for these, and for the key usage of the authority (VERIFY_X509_STRICT; RFC 5280, 4.2.1).
        (top / "ext").write_text(f"subjectAltName={alt}\nauthorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n")
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=a server",
                 "-keyout", top / "key", "-out", top / "csr")
        _openssl("x509", "-req", "-in", top / "csr", "-CA", self.crt, "-CAkey", self.key, "-CAcreateserial", "-days", days,
                 "-extfile", top / "ext", "-out", top / "crt")
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(top / "crt", top / "key")
        return made

    @contextlib.contextmanager
    def trusted(self):
        back = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        cwd = os.getcwd()
        _check(_libc.unshare(CLONE_NEWNS))
        try:
            _check(_libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None))
            _check(_libc.mount(os.fsencode(self.certs), CERTS.encode(), None, ctypes.c_ulong(MS_BIND), None))
            yield self
        finally:
            _check(_libc.setns(back, CLONE_NEWNS))
            os.close(back)
            os.chdir(cwd)
