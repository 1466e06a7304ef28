"""A certificate authority of a test, and what it signs."""
import datetime
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


class Authority:
    """Its certificate is at .path; of() makes (certificate, key) files for a name, good from and to so many days
    from now."""

    def __init__(self, folder):
        self.folder, self.key = folder, ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.certificate = self._sign(self.name, self.key, -30, 300, True, None)
        self.path = self._write("authority.pem", self.certificate.public_bytes(serialization.Encoding.PEM))

    def _write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, 0o644)
        return path

    def _sign(self, subject, key, begins, ends, authority, host):
        now = datetime.datetime.now(datetime.timezone.utc)
        b = (x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
             .serial_number(x509.random_serial_number()).not_valid_before(now + begins * DAY)
             .not_valid_after(now + ends * DAY)
             .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True))
        if host:
            b = b.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return b.sign(self.key, hashes.SHA256())

    def of(self, host, begins=-20, ends=200):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        certificate = self._sign(subject, key, begins, ends, False, host)
        name = f"{host}.{begins}.{ends}"
        return (self._write(name + ".pem", certificate.public_bytes(serialization.Encoding.PEM)),
                self._write(name + ".key", key.private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())))
