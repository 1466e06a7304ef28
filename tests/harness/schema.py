"""The schema as mcpbox-admind has it: number 1 is sql/schema, in the order of
admind/meson.build; from 2 on they are sql/migrations."""
import hashlib
import re

from harness.pg import ROOT


def migrations():
    """[(name, bytes)], from number 1 on."""
    text = (ROOT / "admind/meson.build").read_text()
    names = re.findall(r"'\.\./sql/schema/(\w+\.sql)'", text)
    assert sorted(names) == sorted(p.name for p in (ROOT / "sql/schema").glob("*.sql"))
    schema = b"".join((ROOT / "sql/schema" / n).read_bytes() for n in names)
    later = sorted((ROOT / "sql/migrations").glob("*.sql"))
    return [("schema", schema), *((p.stem[5:], p.read_bytes()) for p in later)]


def checksums():
    """The checksums that databases record, from number 1 on: that of sql/landed.txt, or
    the SHA-256 of the bytes (docs/decisions/0091)."""
    landed = re.findall(r"^\d+ ([0-9a-f]{64}) ", (ROOT / "sql/landed.txt").read_text(encoding="ascii"), re.M)
    own = [hashlib.sha256(text).digest() for _, text in migrations()]
    return [*map(bytes.fromhex, landed), *own[len(landed):]]
