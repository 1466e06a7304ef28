"""The default cost of a password's hash. Most tests have a cheaper one
(harness/instance.py)."""
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from harness.ipc import Peer, Table, socket_as
from integration.vault import test_vault as alone


def test_the_default_is_64_mib_and_three_passes():
    alone.table = table = Table()
    v = alone.Vault()
    try:
        v.stop()
        with open(v.path("conf"), encoding="ascii") as f:
            lines = [line for line in f if not line.startswith("argon2_")]
        v.write("conf", "".join(lines).encode(), 0o644, 0)
        v.start()
        with alone.Admind.open(table, v, "admind", "admind-vault", "admind") as admind, \
                Peer(table, socket_as(0, [], v.run("admind-vault", "ctl.sock"))) as ctl:
            assert alone.ask(ctl, admind, "SETUP", username="admin", password=alone.PASSWORD)["_"] == "OK"
            sealed = admind.admins["admin"][1]
        plain = AESGCM(v.sub_key(b"verifiers")).decrypt(
            sealed[9:21], sealed[21:], b"administrators\0admin\0administrator")
        assert plain.split(b" ", 1)[1].startswith(b"$argon2id$v=19$m=65536,t=3,p=1$")
    finally:
        v.close()
